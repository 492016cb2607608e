"""What ``eatss select`` prints, and what a build with PPCG has made."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from eatss.expected_run import ExpectedRun, sizes_text, why_unknown
from eatss.model import PUBLISHED, Selection
from eatss.model.selection import CellResult, KernelSelection, ReferenceSelection
from eatss.prediction.expected import Prediction
from eatss.report.diagnostics import diagnostics_text
from eatss.report.expectation import (
    amounts_text,
    blocks_words,
    cut_lines,
    host_text,
    sum_words,
    terms_tables,
    uncalibrated,
)
from eatss.report.render import indented_table, render
from eatss.targets import TARGETS
from eatss.text import bytes_text

if TYPE_CHECKING:
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
    head = Text(selection.file, style="bold")
    head.append(f"  {', '.join(selection.functions)}", style="not bold")
    about = f"{selection.gpu}, {selection.dtype}, {_goal(selection)}"
    about += "" if selection.options.model in PUBLISHED else f", {sizes_text(selection.sizes)}"
    head.append(f"\n{about}", style="not bold")
    if selection.uniform_sizes is not None:
        sizes = ", ".join(map(str, selection.uniform_sizes))
        head.append(f", one vector for the program: {sizes}", style="not bold")
    parts: list[RenderableType] = [head]
    for kernel in selection.kernels:
        generated = TARGETS[selection.options.target].own
        predicted = selection.options.model not in PUBLISHED
        parts += ["", *_kernel(kernel, predicted=predicted, generated=generated, explain=explain)]
    if selection.host_statements:
        parts += ["", host_text(selection.host_statements, selection.host_time_s)]
    if selection.options.model not in PUBLISHED:
        parts += ["", _program_verdict(selection)]
    if selection.options.model == "prediction" and not selection.calibrated:
        parts += ["", uncalibrated(selection.gpu)]
    return parts


def kernel_parts(kernel: KernelSelection) -> list[RenderableType]:
    """Return what is told of one kernel, which does not know whose code its sizes are for."""
    predicted = kernel.predicted is not None or kernel.keeps_default
    generated = predicted and kernel.default is None and not kernel.keeps_default
    return _kernel(kernel, predicted=predicted, generated=generated, explain=False)


def _goal(selection: Selection) -> str:
    """Return target and objective; the published objective has two ways of counting."""
    options = selection.options
    counted = f", model {options.model}" if options.model in PUBLISHED else ""
    return f"target {options.target}, objective {options.objective}{counted}"


def _program_verdict(selection: Selection) -> Text:
    """Return what is expected of the program, beside what PPCG takes by itself."""
    options = selection.ppcg_options
    chosen = _amounts(selection.expected, [kernel.predicted for kernel in selection.kernels])
    if options is None:
        return Text(f"expected: {chosen}")
    if not selection.kernels:
        return Text(f"PPCG makes no kernel of this program; expected: {chosen}")
    if selection.keeps_default:
        return Text(f"PPCG's default stands, nothing is expected to beat it surely: {chosen}")
    flags = f"--max-shared-memory={options.max_shared_memory}"
    flags += " --unroll-gpu-tile" if options.unroll_gpu_tile else ""
    text = Text(f"expected: {chosen}, with {flags}")
    default = [kernel.default for kernel in selection.kernels]
    text.append(f"\nPPCG's default: {_amounts(selection.expected_of_default, default)}")
    return text


def _amounts(run: ExpectedRun | None, kernels: Sequence[Prediction | None]) -> str:
    """Return what a program takes, or why that is not known."""
    return why_unknown(kernels) if run is None else run.amounts


def _kernel(
    kernel: KernelSelection, *, predicted: bool, generated: bool, explain: bool
) -> list[RenderableType]:
    head = Text(kernel.name, style="bold cyan")
    head.append(f"  {', '.join(kernel.statements)}", style="default")
    if kernel.host_loops:
        head.append(f"  inside host loops {', '.join(kernel.host_loops)}", style="default")
    if not kernel.tile_sizes and kernel.spread is None:
        one = kernel.predicted
        if one is not None and one.launches:
            text = f"expected {amounts_text(one.time_s, one.energy_j)}, bound by {one.bound}"
            head.append(f"\n  {text}{_launches(one)}", style="default")
        head.append(f"\n  {kernel.note}", style="default")
        return [head]
    if kernel.predicted is not None and not kernel.predicted.launches:
        head.append(f"\n  {kernel.note}", style="default")
        return [head]
    verdict = _generated_verdict(kernel) if generated and predicted else _verdict(kernel)
    head.append(f"\n  {verdict}", style="default")
    for line in cut_lines(kernel):
        head.append(f"\n  {line}", style="default")
    loops = _dealt_loops(kernel) if predicted else _loops(kernel)
    parts: list[RenderableType] = [head]
    if kernel.row_block is None:  # else these are of the kernel alone
        parts += [*([loops] if kernel.loops else []), _references(kernel, predicted=predicted)]
        parts.append(_limits(kernel))
    if kernel.note is not None:
        parts.append(Text(f"  note: {kernel.note}"))
    if kernel.alternatives:
        parts.append(_alternatives(kernel))
    if explain:
        parts += _explanation(kernel)
    return parts


def _generated_verdict(kernel: KernelSelection) -> str:
    """Return what is expected of generated code; it has no default to beat."""
    one = kernel.predicted
    assert one is not None  # a kernel that cannot launch is an error
    expected = amounts_text(one.time_s, one.energy_j)
    return (
        f"expected {expected}, {one.power_w:.0f} W, bound by {one.bound}\n"
        f"  {blocks_words(one, kernel.shared_sum)}{_launches(one)}; {_proof(kernel)}"
    )


def _launches(one: Prediction) -> str:
    return f", {one.launches} launches" if one.launches > 1 else ""


def _proof(kernel: KernelSelection) -> str:
    calls = f"{kernel.solver_calls} solver call{'s' * (kernel.solver_calls != 1)}"
    took = f"{1000 * kernel.solve_time_s:.0f} ms"
    return f"optimal: {kernel.optimal} ({kernel.compared} layouts, {calls}, {took})"


def _predicted_verdict(kernel: KernelSelection) -> str:
    if kernel.predicted is None:
        return "PPCG's default, which is not expected to launch; nothing else is either"
    one = kernel.predicted
    sizes = "sizes of ours"
    if kernel.keeps_default:
        sizes = "PPCG's default sizes"
    elif one == kernel.default:
        sizes = "as PPCG's default"
    text = (
        f"{sizes}: {amounts_text(one.time_s, one.energy_j)}, {one.power_w:.0f} W expected, "
        f"bound by {one.bound}"
    )
    if not kernel.keeps_default:
        default = kernel.default
        other = (
            "does not launch" if default is None else amounts_text(default.time_s, default.energy_j)
        )
        text += (
            f"; default {other}\n  optimal: {kernel.optimal} ({kernel.compared} candidates, "
            f"{kernel.solver_calls} solver call, {1000 * kernel.solve_time_s:.0f} ms)"
        )
    return text


def _verdict(kernel: KernelSelection) -> str:
    if kernel.predicted is not None or kernel.keeps_default:
        return _predicted_verdict(kernel)
    return (
        f"split {kernel.split_factor:g}, warp fraction {kernel.warp_fraction:g}; "
        f"objective {kernel.objective}, optimal: {kernel.optimal} "
        f"({kernel.solver_calls} solver calls, {1000 * kernel.solve_time_s:.0f} ms)"
    )


def _loops(kernel: KernelSelection) -> Table:
    table = indented_table(
        "loop", "", "tile", "threads", "weight", numbers=("tile", "threads", "weight")
    )
    sizes, block, weights = dict(kernel.tile_sizes), dict(kernel.block), dict(kernel.weights)
    for loop in kernel.loops:
        kind = "parallel" if loop in kernel.parallel else "serial"
        table.add_row(
            loop,
            f"{kind}, CMA" if loop == kernel.cma_loop else kind,
            Text(str(sizes[loop]), style="bold"),
            str(block.get(loop, "-")),
            str(weights.get(loop, 0)),
        )
    for loop in kernel.inner_loops:
        table.add_row(loop, "inside the tile, not tiled", "-", "-", "-")
    return table


def _summed(kernel: KernelSelection) -> str:
    lanes = 1 if kernel.spread is None else kernel.spread.lanes
    return f"{sum_words(kernel)}, spread{', x' if lanes > 1 else ''}"


def _dealt_loops(kernel: KernelSelection) -> Table:
    """Return the loops with the points that each thread has along them."""
    table = indented_table(
        "loop", "", "tile", "threads", "points", numbers=("tile", "threads", "points")
    )
    sizes, block = dict(kernel.tile_sizes), dict(kernel.block)
    for loop in kernel.loops:
        tile, threads = sizes[loop], block.get(loop)
        kind = "parallel" if loop in kernel.parallel else "serial"
        lanes = kernel.spread is not None and kernel.spread.lanes > 1
        if block and loop == kernel.block[-1][0] and not lanes:
            kind += ", x"
        if kernel.shared_sum is not None and loop == kernel.shared_sum.loop:
            how = "streamed" if kernel.shared_sum.streamed else "shared"
            kind = f"{sum_words(kernel)}, {how}"
        if loop in kernel.sum_loops and kernel.spread is not None:
            kind, tile = _summed(kernel), kernel.spread.tile
        dealt = ("-", "-") if threads is None else (str(threads), str(-(-tile // threads)))
        on_host = loop == kernel.host_loop
        table.add_row(
            loop,
            "on the host" if on_host else kind,
            Text("-" if on_host else str(tile), style="bold"),
            *dealt,
        )
    for loop in kernel.inner_loops:
        summed = loop in kernel.sum_loops
        table.add_row(
            loop, _summed(kernel) if summed else "inside the tile, not tiled",
            Text(str(kernel.spread.tile), style="bold") if summed and kernel.spread else "-",
            "-", "-",
        )  # fmt: skip
    return table


def _references(kernel: KernelSelection, *, predicted: bool) -> Table:
    table = indented_table("reference", "memory", "CMA", "temporal reuse", "spatial reuse")
    names = [reference.access for reference in kernel.references]
    for reference in kernel.references:
        several = names.count(reference.access) > 1
        table.add_row(
            f"{reference.access} in {', '.join(reference.statements)}"
            if several
            else reference.access,
            reference.placement if predicted else _memory(reference),
            "yes" if reference.cma else "no",
            ", ".join(reference.temporal) or "-",
            ", ".join(reference.spatial) or "-",
        )
    return table


def _memory(reference: ReferenceSelection) -> str:
    moved = reference.memory != reference.placement
    return f"{reference.memory}, through {reference.placement}" if moved else reference.memory


def _limits(kernel: KernelSelection) -> Table:
    table = indented_table("limit", "used", "available", "", "", numbers=("used", "available", ""))
    for usage in kernel.usage:
        share = f"{usage.used / usage.available:.0%}" if usage.available else "-"
        table.add_row(
            _LIMITS.get(usage.name, usage.title),
            _amount(usage.used, usage.unit),
            _amount(usage.available, usage.unit),
            share,
            Text("binds", style="yellow") if usage.binding else "",
        )
    return table


def _alternatives(kernel: KernelSelection) -> Table:
    columns = ("rank", "split", "fraction", "tile sizes", "objective", "traffic")
    table = indented_table(*columns, numbers=("split", "fraction", "objective", "traffic"))
    chosen = CellResult(
        split_factor=kernel.split_factor,
        warp_fraction=kernel.warp_fraction,
        tile_sizes=kernel.tile_sizes,
        objective=kernel.objective,
        optimal=kernel.optimal,
        traffic=kernel.traffic,
    )
    for rank, cell in enumerate((chosen, *kernel.alternatives), start=1):
        unproven = "" if cell.optimal == "proven" else " (best found)"
        table.add_row(
            "best" if rank == 1 else str(rank),
            f"{cell.split_factor:g}",
            f"{cell.warp_fraction:g}",
            ", ".join(f"{loop} {size}" for loop, size in cell.tile_sizes) + unproven,
            str(cell.objective),
            f"{cell.traffic:.4g}",
        )
    return table


def _explanation(kernel: KernelSelection) -> list[RenderableType]:
    if kernel.predicted is not None:
        return terms_tables(kernel.predicted)
    lines = Text(f"  maximised: {kernel.objective_formula}")
    lines.append(
        f"\n  sizes are multiples of {kernel.alignment}; "
        f"{kernel.distinct_references} references touch different cache lines; "
        f"{kernel.threads_per_block} threads a block"
    )
    lines.append(
        f"\n  traffic: {kernel.traffic:.4g} elements from L2 for each iteration point (estimate)"
    )
    if not kernel.dropped:
        return [lines]
    table = indented_table("dropped: split", "fraction", "why", numbers=("fraction",))
    for cell in kernel.dropped:
        table.add_row(f"{cell.split_factor:g}", f"{cell.warp_fraction:g}", cell.reason)
    return [lines, table]


def _amount(amount: int, unit: str) -> str:
    return bytes_text(amount) if unit == "bytes" else f"{amount} {unit}"


def build_parts(build: PpcgBuild) -> list[RenderableType]:
    """Return the files of a build, its sizes, how PPCG was run, and warnings."""
    files = ", ".join(str(file) for file in build.files) or "nothing written"
    parts: list[RenderableType] = [Text(files, style="bold")]
    if build.program is not None:
        parts.append(Text(f"to verify and measure: {build.program}"))
    parts += [Text(shlex.join(command), style="dim") for command in build.commands]
    if build.warnings:
        parts += ["", diagnostics_text(build.warnings)]
    if build.selection is not None:
        parts += ["", *selection_parts(build.selection)]
    return parts
