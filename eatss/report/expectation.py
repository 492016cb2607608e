"""What ``eatss predict`` prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.text import Text

from eatss.analysis.layout import RowBlock, SharedSum
from eatss.codec import json_text
from eatss.expected_run import sizes_text, why_unknown
from eatss.gpu.scaled import REFERENCE
from eatss.prediction.expected import HOST_INSTANCE_S, Prediction
from eatss.report.render import indented_table, render
from eatss.shown import energy_text, time_text
from eatss.targets import TARGETS

if TYPE_CHECKING:
    from eatss.model.expectation import KernelExpectation, ProgramExpectation
    from eatss.model.selection import KernelSelection


def render_expectation(expectation: ProgramExpectation, output: str) -> str:
    """Return an expectation as ``table`` or ``json``."""
    if output == "json":
        return json_text(expectation)
    return render(*expectation_parts(expectation))


def expectation_parts(expectation: ProgramExpectation) -> list[RenderableType]:
    """Return what is told of an expectation, part by part."""
    head = Text(expectation.file, style="bold")
    head.append(f"  {', '.join(expectation.functions)}", style="not bold")
    about = f"{expectation.gpu}, {expectation.dtype}, target {expectation.target}"
    head.append(f"\n{about}, {sizes_text(expectation.sizes)}", style="not bold")
    parts: list[RenderableType] = [head]
    for kernel in expectation.kernels:
        parts += ["", *_kernel(kernel, expectation.target)]
    if expectation.host_statements:
        parts += ["", host_text(expectation.host_statements, expectation.host_time_s)]
    run = expectation.expected
    kernels = [kernel.predicted for kernel in expectation.kernels]
    told = why_unknown(kernels) if run is None else run.amounts
    parts += ["", f"the program: {told}"]
    if not expectation.calibrated:
        parts += ["", uncalibrated(expectation.gpu)]
    return parts


def _kernel(kernel: KernelExpectation, target: str) -> list[RenderableType]:
    head = Text(kernel.name, style="bold cyan")
    head.append(f"  {', '.join(kernel.statements)}", style="default")
    others = {kernel.host_loop, *kernel.sum_loops}
    sizes = ", ".join(f"{loop} {size}" for loop, size in kernel.tile_sizes if loop not in others)
    block = " × ".join(str(size) for _, size in reversed(kernel.block))
    apart = kernel.row_block is None and (kernel.predicted is None or kernel.predicted.launches)
    if sizes and apart:
        head.append(f"\n  tiles {sizes}; block {block} threads", style="default")
        if kernel.shared:
            head.append(f"; {', '.join(kernel.shared)} in shared memory", style="default")
    for line in cut_lines(kernel) if apart or kernel.row_block is not None else ():
        head.append(f"\n  {line}", style="default")
    one = kernel.predicted
    if one is None or not one.launches:
        head.append(f"\n  {kernel.note or 'a block of it does not fit the card'}", style="default")
        return [head]
    against = _against_default(one, kernel.default) if not TARGETS[target].own else ""
    head.append(
        f"\n  expected {amounts_text(one.time_s, one.energy_j)}, {one.power_w:.0f} W; "
        f"bound by {one.bound}{against}",
        style="default",
    )
    if TARGETS[target].own:
        head.append(f"\n  {_against_selected(one, kernel.default)}", style="default")
    head.append(
        f"\n  {blocks_words(one, kernel.shared_sum)}, {one.resident_blocks} of an SM at a "
        f"time, about {one.registers} registers a thread, {one.shared_bytes} bytes of shared "
        "memory a block",
        style="default",
    )
    return [head, *terms_tables(one)]


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


def cut_lines(kernel: KernelExpectation | KernelSelection) -> list[str]:
    """Return what the layout of a kernel in generated code has besides sizes, a line each.

    That is how sums are spread or shared, what its host runs, what warps compute together, and how
    far copies run ahead. Of kernels that become one it is what their blocks do.
    """
    if kernel.row_block is not None:
        return [_row_line(kernel.row_block)]
    lines = []
    spread, shared_sum, warps = kernel.spread, kernel.shared_sum, kernel.warps
    if spread is not None:
        parts = [f"{spread.lanes} lanes"] if spread.lanes > 1 else []
        parts += [f"up to {spread.chunks} blocks"] if spread.chunks > 1 else []
        steps = f"{spread.tile} steps at a time"
        loops = ", ".join(kernel.sum_loops)
        lines.append(f"{sum_words(kernel)} over {loops}: {', '.join(parts)}, {steps}")
    if shared_sum is not None:
        blocks = f"shared by up to {shared_sum.blocks} blocks"
        if shared_sum.streamed:
            blocks = f"{shared_sum.blocks} blocks take equal shares of the turns of all tiles"
        lines.append(f"{sum_words(kernel)} over {shared_sum.loop}: {blocks}")
    if kernel.host_loop is not None:
        lines.append(f"the loop {kernel.host_loop} runs on the host")
    if warps is not None:
        ahead = "" if warps.stages == 1 else f", {_ahead(warps.stages)}"
        lines.append(f"products by tensor cores: {warps.instruction}{ahead}")
    elif kernel.stages > 1:
        lines.append(_ahead(kernel.stages))
    return lines


def _row_line(block: RowBlock) -> str:
    rows = f"{block.rows} {'row' if block.rows == 1 else 'rows'} a block"
    steps = f"{block.lanes} threads a row, {block.tile} elements at a time"
    with_others = f" with {', '.join(block.kernels[1:])}" if len(block.kernels) > 1 else ""
    return f"one kernel{with_others}: {rows}, {steps}"


def blocks_words(one: Prediction, shared: SharedSum | None) -> str:
    """Return how many blocks there are, and tiles where blocks have none of their own."""
    if shared is None or not shared.streamed:
        return f"{_count(one.blocks, 'block')} of {_count(one.threads, 'thread')}"
    blocks = f"{_count(shared.blocks, 'block')} of {_count(one.threads, 'thread')}"
    return f"{_count(one.blocks, 'tile')} for {blocks}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"


def sum_words(kernel: KernelExpectation | KernelSelection) -> str:
    """Return what several threads of a kernel have parts of, ``"sum"`` or ``"maximum and sum"``."""
    return " and ".join(kernel.sum_kinds) or "sum"


def _ahead(stages: int) -> str:
    return f"copies {stages - 1} {'tile' if stages == 2 else 'tiles'} ahead"


def _against_default(one: Prediction, default: Prediction | None) -> str:
    if default is None:
        return "; PPCG's default does not launch"
    ratio = default.energy_j / one.energy_j
    return (
        f"; PPCG's default takes {amounts_text(default.time_s, default.energy_j)} ({ratio:.2f} ×)"
    )


def _against_selected(one: Prediction, selected: Prediction | None) -> str:
    """Return the same for what eatss selects."""
    if selected is None:
        return "nothing is expected of what is selected"
    if selected == one:
        return "this is what is selected for least energy"
    ratio = selected.energy_j / one.energy_j
    return (
        f"selected: {amounts_text(selected.time_s, selected.energy_j)}, {selected.power_w:.0f} W; "
        f"bound by {selected.bound} ({ratio:.2f} × the energy)"
    )


def terms_tables(prediction: Prediction) -> list[RenderableType]:
    """Return what each part of the card takes on its own, and where the energy goes."""
    parts: list[RenderableType] = []
    for title, terms, text in (
        ("time alone", prediction.times_s, time_text),
        ("energy", prediction.energies_j, energy_text),
    ):
        table = indented_table(title, "", numbers=("",))
        for name, amount in terms:
            if amount > 0:
                table.add_row(name, text(amount))
        parts.append(table)
    return parts


def amounts_text(time_s: float | None, energy_j: float | None) -> str:
    """Return what a run takes, ``31.28 ms, 8.37 J``, nothing where one is not known."""
    if time_s is None or energy_j is None:
        return ""
    return f"{time_text(time_s)}, {energy_text(energy_j)}"
