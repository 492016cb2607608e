"""What ``eatss predict`` prints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.text import Text

from eatss.analysis.layout import SharedSum
from eatss.base.expected_run import sizes_text, why_unknown
from eatss.base.shown import energy_text, pairs_text, time_text
from eatss.base.targets import TARGETS
from eatss.cards.scaled import REFERENCE
from eatss.cost.expected import HOST_INSTANCE_S, Prediction
from eatss.report.render import apart, counted, headed, listing

if TYPE_CHECKING:
    from eatss.choose.expectation import KernelExpectation, ProgramExpectation
    from eatss.choose.selection import KernelSelection
    from eatss.program import KernelCode


def expectation_parts(expectation: ProgramExpectation) -> list[RenderableType]:
    """Return what is told of an expectation, part by part."""
    about = f"{expectation.gpu}, {expectation.dtype}, target {expectation.target}"
    head = headed(
        expectation.file,
        f"  {', '.join(expectation.functions)}",
        f"\n{about}, {sizes_text(expectation.sizes)}",
    )
    run, hosts = expectation.expected, expectation.host_statements
    kernels = [kernel.predicted for kernel in expectation.kernels]
    return apart(
        [head],
        *(_kernel(kernel, expectation.target) for kernel in expectation.kernels),
        [host_text(hosts, expectation.host_time_s)] if hosts else [],
        [f"the program: {why_unknown(kernels) if run is None else run.amounts}"],
        [] if expectation.calibrated else [uncalibrated(expectation.gpu)],
    )


def _kernel(kernel: KernelExpectation, target: str) -> list[RenderableType]:
    one, own = kernel.predicted, TARGETS[target].own
    lines = list(_layout_lines(kernel))
    if one is None or not one.launches:
        lines.append(kernel.note or "a block of it does not fit the card")
        return [kernel_head(kernel, lines)]
    lines.append(
        f"expected {_amounts(one)}; bound by {one.bound}"
        + ("" if own else f"; {_against_default(one, kernel.default)}")
    )
    if own:
        lines.append(_against_selected(one, kernel.default))
    lines.append(
        f"{blocks_words(one, kernel.shared_sum)}, {one.resident_blocks} of an SM at a time, about "
        f"{one.registers} registers a thread, {one.shared_bytes} bytes of shared memory a block"
    )
    return [kernel_head(kernel, lines), *terms_tables(one)]


def _layout_lines(kernel: KernelExpectation) -> Iterator[str]:
    """Yield what the layout of a kernel is, unless it cannot launch."""
    if kernel.row_block is None and kernel.predicted is not None and not kernel.predicted.launches:
        return
    others = {kernel.host_loop, *kernel.sum_loops}
    sizes = pairs_text([pair for pair in kernel.tile_sizes if pair[0] not in others])
    if sizes and kernel.row_block is None:
        block = " × ".join(str(size) for _, size in reversed(kernel.block))
        shared = f"; {', '.join(kernel.shared)} in shared memory" if kernel.shared else ""
        yield f"tiles {sizes}; block {block} threads{shared}"
    yield from cut_lines(kernel)


def kernel_head(
    kernel: KernelExpectation | KernelSelection | KernelCode,
    lines: Iterable[str | None] = (),
    host_loops: Sequence[str] = (),
) -> Text:
    """Return the name, statements and host loops of a kernel, and below what is said of it."""
    inside = f"  inside host loops {', '.join(host_loops)}" if host_loops else ""
    below = (f"\n  {line}" for line in lines)
    return headed(kernel.name, f"  {', '.join(kernel.statements)}", inside, *below, of_kernel=True)


def host_text(statements: Sequence[str], time_s: float | None) -> str:
    """Return which statements run on the host, and how long they take there at least."""
    text = f"stays on the host, because nothing is parallel there: {', '.join(statements)}"
    if time_s:
        cycle = time_text(HOST_INSTANCE_S)
        text += f"\n  at least {time_text(time_s)} there, {cycle} for each instance of a statement"
    return text


def uncalibrated(gpu: str) -> str:
    """Return what a prediction for a card rests on that nobody characterised."""
    return (
        f"uncalibrated: nothing was measured on a card like {gpu}; prices and rates are those of "
        f"an {REFERENCE.upper()}, scaled by specifications"
    )


def cut_lines(kernel: KernelExpectation | KernelSelection) -> Iterator[str]:
    """Yield what the layout of a kernel in generated code has besides sizes, a line each.

    That is how sums are spread or shared, what its host runs, what warps compute together, and how
    far copies run ahead. Of kernels that become one it is what their blocks do.
    """
    if (block := kernel.row_block) is not None:
        others = f" with {', '.join(block.kernels[1:])}" if len(block.kernels) > 1 else ""
        yield (
            f"one kernel{others}: {counted(block.rows, 'row')} a block, "
            f"{block.lanes} threads a row, {block.tile} elements at a time"
        )
        return
    if (spread := kernel.spread) is not None:
        parts = [f"{spread.lanes} lanes"] if spread.lanes > 1 else []
        parts += [f"up to {spread.chunks} blocks"] if spread.chunks > 1 else []
        parts.append(f"{spread.tile} steps at a time")
        yield f"{sum_words(kernel)} over {', '.join(kernel.sum_loops)}: {', '.join(parts)}"
    if (shared := kernel.shared_sum) is not None:
        blocks = f"shared by up to {shared.blocks} blocks"
        if shared.streamed:
            blocks = f"{shared.blocks} blocks take equal shares of the turns of all tiles"
        yield f"{sum_words(kernel)} over {shared.loop}: {blocks}"
    if kernel.host_loop is not None:
        yield f"the loop {kernel.host_loop} runs on the host"
    warps = kernel.warps
    stages = kernel.stages if warps is None else warps.stages
    ahead = f"copies {counted(stages - 1, 'tile')} ahead" if stages > 1 else ""
    if warps is not None:
        said = f"products by tensor cores: {warps.instruction}"
        yield f"{said}, {ahead}" if ahead else said
    elif ahead:
        yield ahead


def blocks_words(one: Prediction, shared: SharedSum | None) -> str:
    """Return how many blocks there are, and tiles where blocks have none of their own."""
    threads = counted(one.threads, "thread")
    if shared is None or not shared.streamed:
        return f"{counted(one.blocks, 'block')} of {threads}"
    return f"{counted(one.blocks, 'tile')} for {counted(shared.blocks, 'block')} of {threads}"


def sum_words(kernel: KernelExpectation | KernelSelection) -> str:
    """Return what several threads of a kernel have parts of, ``"sum"`` or ``"maximum and sum"``."""
    return " and ".join(kernel.sum_kinds) or "sum"


def _amounts(one: Prediction) -> str:
    return f"{amounts_text(one)}, {one.power_w:.0f} W"


def _against_default(one: Prediction, default: Prediction | None) -> str:
    if default is None:
        return "PPCG's default does not launch"
    return f"PPCG's default takes {amounts_text(default)} ({default.energy_j / one.energy_j:.2f} ×)"


def _against_selected(one: Prediction, selected: Prediction | None) -> str:
    """Return the same for what eatss selects."""
    if selected is None:
        return "nothing is expected of what is selected"
    if selected == one:
        return "this is what is selected for least energy"
    ratio = selected.energy_j / one.energy_j
    return f"selected: {_amounts(selected)}; bound by {selected.bound} ({ratio:.2f} × the energy)"


def terms_tables(prediction: Prediction) -> list[RenderableType]:
    """Return what each part of the card takes on its own, and where the energy goes."""
    return [
        listing((title, ">"), ((name, text(amount)) for name, amount in terms if amount > 0))
        for title, terms, text in (
            ("time alone", prediction.times_s, time_text),
            ("energy", prediction.energies_j, energy_text),
        )
    ]


def amounts_text(one: Prediction) -> str:
    """Return what a run of a kernel takes, ``31.28 ms, 8.37 J``."""
    return f"{time_text(one.time_s)}, {energy_text(one.energy_j)}"
