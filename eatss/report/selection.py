"""What ``eatss select`` prints, and what a build with PPCG has made."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from eatss.base.expected_run import ExpectedRun, sizes_text, why_unknown
from eatss.base.shown import pairs_text
from eatss.base.targets import TARGETS
from eatss.base.text import bytes_text
from eatss.choose import PUBLISHED, Selection
from eatss.choose.selection import CellResult, KernelSelection, ReferenceSelection
from eatss.cost.expected import Prediction
from eatss.report.diagnostics import diagnostics_text
from eatss.report.expectation import (
    amounts_text,
    blocks_words,
    cut_lines,
    host_text,
    kernel_head,
    sum_words,
    terms_tables,
    uncalibrated,
)
from eatss.report.render import NONE, apart, counted, headed, listing, render

if TYPE_CHECKING:
    from eatss.analysis.facts import ReferenceFacts
    from eatss.building import PpcgBuild

_LIMITS = {
    "shared_per_sm": "shared memory of an SM",
    "shared_per_block": "shared memory of a block",
}


def selection_table(selection: Selection, *, explain: bool = False) -> str:
    """Return a selection for people; ``explain`` adds the grid and the objective."""
    return render(*selection_parts(selection, explain=explain))


def selection_parts(selection: Selection, *, explain: bool = False) -> list[RenderableType]:
    """Return what is told of a selection, part by part."""
    options, hosts = selection.options, selection.host_statements
    predicted = options.model not in PUBLISHED
    # the published objective has two ways of counting
    counted_by = f", {sizes_text(selection.sizes)}" if predicted else f", model {options.model}"
    uniform = ""
    if selection.uniform_sizes is not None:
        sizes = ", ".join(map(str, selection.uniform_sizes))
        uniform = f", one vector for the program: {sizes}"
    head = headed(
        selection.file,
        f"  {', '.join(selection.functions)}",
        f"\n{selection.gpu}, {selection.dtype}, target {options.target}, objective "
        f"{options.objective}{counted_by}{uniform}",
    )
    own = TARGETS[options.target].own
    return apart(
        [head],
        *(
            _kernel(kernel, predicted=predicted, own=own, explain=explain)
            for kernel in selection.kernels
        ),
        [host_text(hosts, selection.host_time_s)] if hosts else [],
        [_program_verdict(selection)] if predicted else [],
        [uncalibrated(selection.gpu)]
        if options.model == "prediction" and not selection.calibrated
        else [],
    )


def kernel_parts(kernel: KernelSelection) -> list[RenderableType]:
    """Return what is told of one kernel, which does not know whose code its sizes are for."""
    predicted = kernel.predicted is not None or kernel.keeps_default
    own = predicted and kernel.default is None and not kernel.keeps_default
    return _kernel(kernel, predicted=predicted, own=own, explain=False)


def _program_verdict(selection: Selection) -> str:
    """Return what is expected of the program, beside what PPCG takes by itself."""

    def amounts(run: ExpectedRun | None, kernels: Sequence[Prediction | None]) -> str:
        return why_unknown(kernels) if run is None else run.amounts

    options, kernels = selection.ppcg_options, selection.kernels
    chosen = amounts(selection.expected, [kernel.predicted for kernel in kernels])
    if options is None:
        return f"expected: {chosen}"
    if not kernels:
        return f"PPCG makes no kernel of this program; expected: {chosen}"
    if selection.keeps_default:
        return f"PPCG's default stands, nothing is expected to beat it surely: {chosen}"
    unroll = " --unroll-gpu-tile" if options.unroll_gpu_tile else ""
    default = amounts(selection.expected_of_default, [kernel.default for kernel in kernels])
    return (
        f"expected: {chosen}, with --max-shared-memory={options.max_shared_memory}{unroll}\n"
        f"PPCG's default: {default}"
    )


def _kernel(
    kernel: KernelSelection, *, predicted: bool, own: bool, explain: bool
) -> list[RenderableType]:
    one = kernel.predicted
    spread = kernel.tile_sizes or kernel.spread is not None
    if not spread or (one is not None and not one.launches):
        lines = [kernel.note]
        if one is not None and one.launches:
            lines.insert(0, f"expected {amounts_text(one)}, bound by {one.bound}{_launches(one)}")
        return [kernel_head(kernel, lines, kernel.host_loops)]
    lines = [_own_verdict(kernel) if own and predicted else _verdict(kernel), *cut_lines(kernel)]
    parts: list[RenderableType] = [kernel_head(kernel, lines, kernel.host_loops)]
    if kernel.row_block is None:  # else these are of the kernel alone
        if kernel.loops:
            parts.append(_dealt_loops(kernel) if predicted else _weighted_loops(kernel))
        parts += [_references(kernel, predicted=predicted), _limits(kernel)]
    if kernel.note is not None:
        parts.append(f"  note: {kernel.note}")
    if kernel.alternatives:
        parts.append(_alternatives(kernel))
    return [*parts, *(_explanation(kernel) if explain else ())]


def _own_verdict(kernel: KernelSelection) -> str:
    """Return what is expected of generated code; it has no default to beat."""
    one = kernel.predicted
    assert one is not None  # a kernel that cannot launch is an error
    return (
        f"expected {amounts_text(one)}, {one.power_w:.0f} W, bound by {one.bound}\n"
        f"  {blocks_words(one, kernel.shared_sum)}{_launches(one)}; "
        + _proof(
            kernel, f"{kernel.compared} layouts, {counted(kernel.solver_calls, 'solver call')}"
        )
    )


def _launches(one: Prediction) -> str:
    return f", {one.launches} launches" if one.launches > 1 else ""


def _proof(kernel: KernelSelection, of: str) -> str:
    return f"optimal: {kernel.optimal} ({of}, {1000 * kernel.solve_time_s:.0f} ms)"


def _verdict(kernel: KernelSelection) -> str:
    """Return what is expected of PPCG's code, or what a published objective reaches."""
    one, default = kernel.predicted, kernel.default
    if one is None and kernel.keeps_default:
        return "PPCG's default, which is not expected to launch; nothing else is either"
    if one is None:
        return (
            f"split {kernel.split_factor:g}, warp fraction {kernel.warp_fraction:g}; objective "
            f"{kernel.objective}, {_proof(kernel, f'{kernel.solver_calls} solver calls')}"
        )
    about = f"{amounts_text(one)}, {one.power_w:.0f} W expected, bound by {one.bound}"
    if kernel.keeps_default:
        return f"PPCG's default sizes: {about}"
    other = "does not launch" if default is None else amounts_text(default)
    tried = f"{kernel.compared} candidates, {kernel.solver_calls} solver call"
    sizes = "as PPCG's default" if one == default else "sizes of ours"
    return f"{sizes}: {about}; default {other}\n  {_proof(kernel, tried)}"


def _bold(text: object) -> Text:
    return Text(str(text), style="bold")


def _weighted_loops(kernel: KernelSelection) -> Table:
    sizes, block, weights = dict(kernel.tile_sizes), dict(kernel.block), dict(kernel.weights)
    rows = (
        (
            loop,
            _kind(kernel, loop) + (", CMA" if loop == kernel.cma_loop else ""),
            _bold(sizes[loop]),
            str(block.get(loop, NONE)),
            str(weights.get(loop, 0)),
        )
        for loop in kernel.loops
    )
    inner = ((loop, "inside the tile, not tiled", *[NONE] * 3) for loop in kernel.inner_loops)
    return listing(("loop", "", ">tile", ">threads", ">weight"), (*rows, *inner))


def _kind(kernel: KernelSelection, loop: str) -> str:
    return "parallel" if loop in kernel.parallel else "serial"


def _dealt_loops(kernel: KernelSelection) -> Table:
    """Return the loops with the points that each thread has along them."""
    sizes, block, spread = dict(kernel.tile_sizes), dict(kernel.block), kernel.spread
    sums = set() if spread is None else {*kernel.sum_loops}
    lanes = spread is not None and spread.lanes > 1
    summed = f"{sum_words(kernel)}, spread{', x' if lanes else ''}"
    rows: list[tuple[RenderableType, ...]] = []
    for loop in kernel.loops:
        tile, threads, kind = sizes[loop], block.get(loop), _kind(kernel, loop)
        if block and loop == kernel.block[-1][0] and not lanes:
            kind += ", x"
        if kernel.shared_sum is not None and loop == kernel.shared_sum.loop:
            how = "streamed" if kernel.shared_sum.streamed else "shared"
            kind = f"{sum_words(kernel)}, {how}"
        if spread is not None and loop in sums:
            kind, tile = summed, spread.tile
        dealt = (NONE, NONE) if threads is None else (str(threads), str(-(-tile // threads)))
        on_host = loop == kernel.host_loop
        rows.append(
            (loop, "on the host" if on_host else kind, _bold(NONE if on_host else tile), *dealt)
        )
    for loop in kernel.inner_loops:
        one: tuple[RenderableType, ...] = ("inside the tile, not tiled", NONE)
        if loop in kernel.sum_loops:
            one = (summed, NONE if spread is None else _bold(spread.tile))
        rows.append((loop, *one, NONE, NONE))
    return listing(("loop", "", ">tile", ">threads", ">points"), rows)


def reference_rows(
    references: Sequence[ReferenceFacts] | Sequence[ReferenceSelection],
) -> Iterator[tuple[str, str, str, str]]:
    """Yield a name that tells each reference from the others, and whether and how it is reused."""
    names = [reference.access for reference in references]
    for one in references:
        several = names.count(one.access) > 1
        yield (
            f"{one.access} in {', '.join(one.statements)}" if several else one.access,
            "yes" if one.cma else "no",
            ", ".join(one.temporal) or NONE,
            ", ".join(one.spatial) or NONE,
        )


def _references(kernel: KernelSelection, *, predicted: bool) -> Table:
    rows = []
    for one, (name, *reuse) in zip(
        kernel.references, reference_rows(kernel.references), strict=True
    ):
        through = f", through {one.placement}" if one.memory != one.placement else ""
        rows.append((name, one.placement if predicted else f"{one.memory}{through}", *reuse))
    return listing(("reference", "memory", "CMA", "temporal reuse", "spatial reuse"), rows)


def _limits(kernel: KernelSelection) -> Table:
    def amount(number: int, unit: str) -> str:
        return bytes_text(number) if unit == "bytes" else f"{number} {unit}"

    rows = (
        (
            _LIMITS.get(usage.name, usage.title),
            amount(usage.used, usage.unit),
            amount(usage.available, usage.unit),
            f"{usage.used / usage.available:.0%}" if usage.available else NONE,
            Text("binds", style="yellow") if usage.binding else "",
        )
        for usage in kernel.usage
    )
    return listing(("limit", ">used", ">available", ">", ">"), rows)


def _alternatives(kernel: KernelSelection) -> Table:
    cells: tuple[KernelSelection | CellResult, ...] = (kernel, *kernel.alternatives)
    rows = (
        (
            str(rank) if rank > 1 else "best",
            f"{cell.split_factor:g}",
            f"{cell.warp_fraction:g}",
            pairs_text(cell.tile_sizes) + ("" if cell.optimal == "proven" else " (best found)"),
            str(cell.objective),
            f"{cell.traffic:.4g}",
        )
        for rank, cell in enumerate(cells, start=1)
    )
    titles = ("rank", ">split", ">fraction", "tile sizes", ">objective", ">traffic")
    return listing(titles, rows)


def _explanation(kernel: KernelSelection) -> list[RenderableType]:
    if kernel.predicted is not None:
        return terms_tables(kernel.predicted)
    lines = (
        f"  maximised: {kernel.objective_formula}\n"
        f"  sizes are multiples of {kernel.alignment}; "
        f"{kernel.distinct_references} references touch different cache lines; "
        f"{kernel.threads_per_block} threads a block\n"
        f"  traffic: {kernel.traffic:.4g} elements from L2 for each iteration point (estimate)"
    )
    rows = (
        (f"{cell.split_factor:g}", f"{cell.warp_fraction:g}", cell.reason)
        for cell in kernel.dropped
    )
    table = listing(("dropped: split", ">fraction", "why"), rows)
    return [lines, table] if kernel.dropped else [lines]


def build_parts(build: PpcgBuild) -> list[RenderableType]:
    """Return the files of a build, its sizes, how PPCG was run, and warnings."""
    files = ", ".join(map(str, build.files)) or "nothing written"
    program = [] if build.program is None else [f"to verify and measure: {build.program}"]
    commands = (Text(shlex.join(command), style="dim") for command in build.commands)
    return apart(
        [headed(files), *program, *commands],
        [diagnostics_text(build.warnings)] if build.warnings else [],
        [] if build.selection is None else selection_parts(build.selection),
    )
