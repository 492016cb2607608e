"""What ``eatss select`` prints."""

from __future__ import annotations

import json
from math import prod

from rich.console import JustifyMethod, RenderableType
from rich.table import Table
from rich.text import Text

from eatss.model import Selection
from eatss.model.build import bytes_text
from eatss.model.ppcg import ppcg_max_shared_memory
from eatss.model.selection import CellResult, KernelSelection, ReferenceSelection
from eatss.report.render import render

_LIMITS = {
    "shared_per_sm": "shared memory of an SM",
    "shared_per_block": "shared memory of a block",
}


def render_selection(selection: Selection, output: str, *, explain: bool = False) -> str:
    """Return a selection as ``table``, ``json``, ``ppcg`` or ``ppcg-args``."""
    if output == "json":
        return json.dumps(selection.to_dict(), indent=2, ensure_ascii=False) + "\n"
    if output == "ppcg":
        return selection.ppcg_sizes + "\n"
    if output == "ppcg-args":
        return (
            f"--max-shared-memory={ppcg_max_shared_memory(selection)}\n"
            f"--sizes={selection.ppcg_sizes}\n"
        )
    return selection_table(selection, explain=explain)


def selection_table(selection: Selection, *, explain: bool) -> str:
    """Return a selection for people; ``explain`` adds the grid and the objective."""
    head = Text(selection.file, style="bold")
    head.append(f"  {', '.join(selection.functions)}", style="not bold")
    head.append(f"\n{selection.gpu}, {selection.dtype}, model {selection.model}", style="not bold")
    if selection.uniform_sizes is not None:
        sizes = ", ".join(map(str, selection.uniform_sizes))
        head.append(f", one vector for the program: {sizes}", style="not bold")
    parts: list[RenderableType] = [head]
    for kernel in selection.kernels:
        parts += ["", *_kernel(kernel, explain=explain)]
    if selection.host_statements:
        names = ", ".join(selection.host_statements)
        parts += ["", f"stays on the host, because nothing is parallel there: {names}"]
    return render(*parts)


def _kernel(kernel: KernelSelection, *, explain: bool) -> list[RenderableType]:
    head = Text(kernel.name, style="bold cyan")
    head.append(f"  {', '.join(kernel.statements)}", style="default")
    if kernel.host_loops:
        head.append(f"  inside host loops {', '.join(kernel.host_loops)}", style="default")
    if not kernel.tile_sizes:
        head.append(f"\n  {kernel.note}", style="default")
        return [head]
    head.append(f"\n  {_verdict(kernel)}", style="default")
    parts: list[RenderableType] = [head, _loops(kernel), _references(kernel), _limits(kernel)]
    if kernel.note is not None:
        parts.append(Text(f"  note: {kernel.note}"))
    if kernel.alternatives:
        parts.append(_alternatives(kernel))
    if explain:
        parts += _explanation(kernel)
    return parts


def _verdict(kernel: KernelSelection) -> str:
    if kernel.compared:
        return (
            f"{kernel.threads_per_block} threads of {_points(kernel)} points; "
            f"{kernel.objective / 1000:.4g} pJ an iteration (estimate), optimal: {kernel.optimal} "
            f"(all {kernel.compared} layouts compared, {1000 * kernel.solve_time_s:.0f} ms)"
        )
    return (
        f"split {kernel.split_factor:g}, warp fraction {kernel.warp_fraction:g}; "
        f"objective {kernel.objective}, optimal: {kernel.optimal} "
        f"({kernel.solver_calls} solver calls, {1000 * kernel.solve_time_s:.0f} ms)"
    )


def _points(kernel: KernelSelection) -> int:
    """Return the points of a thread."""
    sizes = dict(kernel.tile_sizes)
    return prod(-(-sizes[loop] // threads) for loop, threads in kernel.block)


def _loops(kernel: KernelSelection) -> Table:
    if kernel.compared:
        return _dealt_loops(kernel)
    table = _table("loop", "", "tile", "threads", "weight", numbers=("tile", "threads", "weight"))
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


def _dealt_loops(kernel: KernelSelection) -> Table:
    """Return the loops with the points that each thread has along them."""
    table = _table("loop", "", "tile", "threads", "points", numbers=("tile", "threads", "points"))
    sizes, block = dict(kernel.tile_sizes), dict(kernel.block)
    for loop in kernel.loops:
        kind = "parallel" if loop in kernel.parallel else "serial"
        threads = block.get(loop)
        table.add_row(
            loop,
            f"{kind}, x" if block and loop == kernel.block[-1][0] else kind,
            Text(str(sizes[loop]), style="bold"),
            "-" if threads is None else str(threads),
            "-" if threads is None else str(-(-sizes[loop] // threads)),
        )
    for loop in kernel.inner_loops:
        table.add_row(loop, "inside the tile, not tiled", "-", "-", "-")
    return table


def _references(kernel: KernelSelection) -> Table:
    table = _table("reference", "memory", "CMA", "temporal reuse", "spatial reuse")
    names = [reference.access for reference in kernel.references]
    for reference in kernel.references:
        several = names.count(reference.access) > 1
        table.add_row(
            f"{reference.access} in {', '.join(reference.statements)}"
            if several
            else reference.access,
            _memory(kernel, reference),
            "yes" if reference.cma else "no",
            ", ".join(reference.temporal) or "-",
            ", ".join(reference.spatial) or "-",
        )
    return table


def _memory(kernel: KernelSelection, reference: ReferenceSelection) -> str:
    if kernel.compared:
        return reference.placement
    moved = reference.memory != reference.placement
    return f"{reference.memory}, through {reference.placement}" if moved else reference.memory


def _limits(kernel: KernelSelection) -> Table:
    table = _table("limit", "used", "available", "", "", numbers=("used", "available", ""))
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
    table = _table(*columns, numbers=("split", "fraction", "objective", "traffic"))
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
    if kernel.compared:
        lines = Text(f"  {kernel.objective_formula}")
        lines.append(f"\n  traffic: {kernel.traffic:.4g} elements from L2 an iteration (estimate)")
        return [lines]
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
    table = _table("dropped: split", "fraction", "why", numbers=("fraction",))
    for cell in kernel.dropped:
        table.add_row(f"{cell.split_factor:g}", f"{cell.warp_fraction:g}", cell.reason)
    return [lines, table]


def _amount(amount: int, unit: str) -> str:
    return bytes_text(amount) if unit == "bytes" else f"{amount} {unit}"


def _table(*columns: str, numbers: tuple[str, ...] = ()) -> Table:
    """Return an indented table without rules; ``numbers`` are aligned to the right."""
    table = Table(box=None, padding=(0, 0, 0, 2))
    for column in columns:
        justify: JustifyMethod = "right" if column in numbers else "left"
        table.add_column(column, justify=justify, header_style="dim", overflow="fold")
    return table
