"""What ``eatss select``, ``predict``, ``codegen`` and ``ppcg`` print of kernels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from math import prod
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from eatss.base.codec import JsonForm, json_text
from eatss.base.diagnostics import Diagnostics
from eatss.base.frozen import frozen
from eatss.base.shown import (
    ExpectedRun,
    energy_text,
    pairs_text,
    sizes_text,
    time_text,
    why_unknown,
)
from eatss.base.targets import TARGETS
from eatss.base.text import bytes_text, counted
from eatss.choose.options import PUBLISHED
from eatss.choose.selection import CellResult, KernelSelection, ReferenceSelection, Selection, Usage
from eatss.cost.expected import HOST_INSTANCE_S, Prediction
from eatss.program import KernelCode, Launch, Program, every_step
from eatss.report.render import (
    NONE,
    Columns,
    Parts,
    apart,
    bold,
    facts,
    figure,
    grouped,
    headed,
    listing,
    listing_of,
    render,
    uncalibrated,
)

if TYPE_CHECKING:
    from eatss.analysis.facts import ReferenceFacts
    from eatss.choose.expectation import KernelExpectation, ProgramExpectation


def selection_table(selection: Selection, *, explain: bool = False) -> str:
    """Return a selection for people; ``explain`` adds the grid and the objective."""
    return render(*selection_parts(selection, explain=explain))


def selection_parts(selection: Selection, *, explain: bool = False) -> Parts:
    """Return a selection, part by part: head, kernels, what is expected of the program."""
    options = selection.options
    predicted = options.model not in PUBLISHED
    # the published objective has two ways of counting
    counted_by = sizes_text(selection.sizes) if predicted else f"model {options.model}"
    uniform = ""
    if selection.uniform_sizes is not None:
        sizes = ", ".join(map(str, selection.uniform_sizes))
        uniform = f", one vector for the program: {sizes}"
    about = (
        f"{selection.gpu}, {selection.dtype}, target {options.target}, objective "
        f"{options.objective}, {counted_by}{uniform}"
    )
    generated = TARGETS[options.target].own
    guessed = options.model == "prediction" and not selection.calibrated
    return apart(
        [headed(selection.file, f"  {', '.join(selection.functions)}", f"\n{about}")],
        *(
            _selected(kernel, predicted=predicted, generated=generated, explain=explain)
            for kernel in selection.kernels
        ),
        _host(selection.host_statements, selection.host_time_s),
        [_program_verdict(selection)] if predicted else [],
        [uncalibrated(selection.gpu)] if guessed else [],
    )


def _program_verdict(selection: Selection) -> str:
    """Return what is expected of the program, beside what PPCG takes by itself."""
    options, kernels = selection.ppcg_options, selection.kernels

    def amounts(run: ExpectedRun | None, found: Iterable[Prediction | None]) -> str:
        return why_unknown([*zip(kernels, found, strict=True)]) if run is None else run.amounts

    chosen = amounts(selection.expected, (kernel.predicted for kernel in kernels))
    distance = "" if selection.expected is None else selection.expected.distance
    if options is None:
        return f"expected: {chosen}{distance}"
    if not kernels:
        return f"PPCG makes no kernel of this program; expected: {chosen}"
    if selection.keeps_default:
        kept = "PPCG's default is kept: no candidate is predicted to be clearly better"
        return f"{kept}: {chosen}{distance}"
    unroll = " --unroll-gpu-tile" if options.unroll_gpu_tile else ""
    default = amounts(selection.expected_of_default, (kernel.default for kernel in kernels))
    return (
        f"expected: {chosen}, with --max-shared-memory={options.max_shared_memory}{unroll}"
        f"{distance}\n"
        f"PPCG's default: {default}"
    )


def _selected(kernel: KernelSelection, *, predicted: bool, generated: bool, explain: bool) -> Parts:
    one = kernel.predicted
    tiled = kernel.tile_sizes or kernel.spread is not None
    if not tiled or (one is not None and not one.launches):
        lines = [*_variant_lines(kernel)] if kernel.joined else [kernel.note]
        if one is not None and one.launches:
            lines.insert(0, f"expected {one.amounts}, bound by {one.bound}{_launches(one)}")
        return [_head(kernel, lines, kernel.host_loops)]
    verdict = _generated_verdict(kernel) if generated and predicted else _ppcg_verdict(kernel)
    parts: Parts = [_head(kernel, [verdict, *_variant_lines(kernel)], kernel.host_loops)]
    if not kernel.joined:  # else these are of the kernel alone
        if kernel.loops:
            parts.append(_loops(kernel, predicted=predicted))
        rows = zip(kernel.references, reference_rows(kernel.references), strict=True)
        titles = ("reference", "memory", "CMA", "temporal reuse", "spatial reuse")
        placed = (
            (name, reference.placement if predicted else _memory(reference), *reuse)
            for reference, (name, *reuse) in rows
        )
        parts += [listing(titles, placed), _limits(kernel.usage)]
    if kernel.note is not None:
        parts.append(f"  note: {kernel.note}")
    if kernel.alternatives:
        parts.append(_alternatives(kernel))
    return [*parts, *(_explanation(kernel) if explain else ())]


def _memory(reference: ReferenceSelection) -> str:
    if reference.memory == reference.placement:
        return reference.memory
    return f"{reference.memory}, through {reference.placement}"


def _launches(one: Prediction) -> str:
    return f", {one.launches} launches" if one.launches > 1 else ""


_BOUND_BY = "--gap 2% or --within 2s looks through all sizes between those offered"


def _bound(kernel: KernelSelection) -> str:
    """Return what is known of all other sizes."""
    if not kernel.bound:
        ways = "one block runs the loop of several" if kernel.loop_block else _BOUND_BY
        return f"not bounded: {ways}"
    unit = kernel.objective_formula.rpartition(", in ")[2]
    texts = {"nJ": (energy_text, 1e-9), "ps": (time_text, 1e-12)}
    text, small = texts.get(unit, (lambda amount: f"{amount:.0f} {unit}", 1))
    least = text(kernel.bound * small)
    gap = f"{kernel.gap:.1%}"
    below = f"{gap} below this; " if gap != "0.0%" else ""
    boxes = f"{grouped(kernel.boxes)} {'box' if kernel.boxes == 1 else 'boxes'}"
    took = f"{boxes}, {1000 * kernel.solve_time_s:.0f} ms"
    return f"lower bound, margins included: {least} ({below}{took})"


def _generated_verdict(kernel: KernelSelection) -> str:
    """Return what is expected of generated code; it has no default to beat."""
    one = kernel.predicted
    assert one is not None  # a kernel that cannot launch is an error
    least = (
        ""
        if kernel.time_tile or kernel.loop_block
        else f"; least of {counted(kernel.compared, 'layout')}"
    )
    return (
        f"expected {_with_power(one)}, bound by {one.bound}\n"
        f"  {_blocks(one, kernel)}{_launches(one)}{least}\n  {_bound(kernel)}"
    )


def _ppcg_verdict(kernel: KernelSelection) -> str:
    """Return what is expected of PPCG's code, or what a published objective reaches."""
    one, default = kernel.predicted, kernel.default
    if one is None and kernel.keeps_default:
        return "PPCG's default; neither it nor any candidate is predicted to launch"
    if one is None:
        calls = (
            f"{counted(kernel.solver_calls, 'solver call')}, {1000 * kernel.solve_time_s:.0f} ms"
        )
        return (
            f"split {kernel.split_factor:g}, warp fraction {kernel.warp_fraction:g}; objective "
            f"{kernel.objective}, optimal: {kernel.optimal} ({calls})"
        )
    about = f"{_with_power(one)} expected, bound by {one.bound}"
    if kernel.keeps_default:
        return f"PPCG's default sizes: {about}\n  {_bound(kernel)}"
    other = "does not launch" if default is None else default.amounts
    sizes = "same as PPCG's default" if one == default else "selected"
    proof = _bound(kernel)
    return f"{sizes}: {about}; PPCG's default {other}\n  {proof}"


def _loops(kernel: KernelSelection, *, predicted: bool) -> Table:
    """Return the loops: the points of a thread along each, or its weight in a published objective.

    What generated code does with a loop besides tiling it is said beside its kind.
    """
    sizes, block, weights = dict(kernel.tile_sizes), dict(kernel.block), dict(kernel.weights)
    shared, spread = kernel.shared_sum, kernel.spread
    lanes = spread is not None and spread.lanes > 1
    rows: list[tuple[object, ...]] = []
    for loop in (*kernel.loops, *kernel.inner_loops):
        tile, threads = sizes.get(loop), block.get(loop)
        kind = "parallel" if loop in kernel.parallel else "serial"
        if loop not in kernel.loops:
            kind = "inside the tile, not tiled"
        if not predicted:
            kind += ", CMA" if loop == kernel.cma_loop else ""
        elif block and loop == kernel.block[-1][0] and not lanes:
            kind += ", x"
        if shared is not None and loop == shared.loop:
            kind = f"{_sum(kernel)}, {'stream-K' if shared.streamed else 'split'}"
        if spread is not None and loop in kernel.sum_loops:
            kind, tile = f"{_sum(kernel)}, spread{', x' if lanes else ''}", spread.tile
        last = -(-tile // threads) if threads and tile else None
        if not predicted:
            last = weights.get(loop, 0) if loop in kernel.loops else None
        rows.append((loop, kind, bold(tile or NONE), threads, last))
    return listing(("loop", "", ">tile", ">threads", ">points" if predicted else ">weight"), rows)


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


_LIMITS = {
    "shared_per_sm": "shared memory of an SM",
    "shared_per_block": "shared memory of a block",
}


def _limits(usages: Iterable[Usage]) -> Table:
    def amount(number: int, unit: str) -> str:
        return bytes_text(number) if unit == "bytes" else f"{number} {unit}"

    columns: Columns = {
        "limit": lambda one: _LIMITS.get(one.name, one.title),
        ">used": lambda one: amount(one.used, one.unit),
        ">available": lambda one: amount(one.available, one.unit),
        ">": lambda one: f"{one.used / one.available:.0%}" if one.available else None,
        "": lambda one: Text("binds", style="yellow") if one.binding else "",
    }
    return listing_of(usages, columns)


def _alternatives(kernel: KernelSelection) -> Table:
    cells: tuple[KernelSelection | CellResult, ...] = (kernel, *kernel.alternatives)
    best: Columns = {"rank": lambda one: 1 + cells.index(one)}
    columns: Columns = {
        "tile sizes": lambda one: (
            pairs_text(one.tile_sizes) + ("" if one.optimal == "proven" else " (best found)")
        ),
        "objective": "objective",
        "traffic": "traffic",
    }
    return listing_of(cells, best | _CELL | columns)


_CELL: Columns = {
    ">split": lambda one: f"{one.split_factor:g}",
    ">fraction": lambda one: f"{one.warp_fraction:g}",
}
"""A choice of the paper's objective."""


def _explanation(kernel: KernelSelection) -> Parts:
    if kernel.predicted is not None:
        return _terms(kernel.predicted)
    lines = (
        f"  maximised: {kernel.objective_formula}\n"
        f"  sizes are multiples of {kernel.alignment}; "
        f"{kernel.distinct_references} references touch different cache lines; "
        f"{kernel.threads_per_block} threads a block\n"
        f"  traffic: {figure(kernel.traffic)} elements from L2 for each iteration point (estimate)"
    )
    if not kernel.dropped:
        return [lines]
    return [lines, "  dropped:", listing_of(kernel.dropped, {**_CELL, "why": "reason"})]


def expectation_parts(expectation: ProgramExpectation) -> Parts:
    """Return what ``eatss predict`` expects of sizes that were named."""
    about = (
        f"{expectation.gpu}, {expectation.dtype}, target {expectation.target}, "
        f"{sizes_text(expectation.sizes)}"
    )
    run = expectation.expected
    kernels = [(kernel, kernel.predicted) for kernel in expectation.kernels]
    return apart(
        [headed(expectation.file, f"  {', '.join(expectation.functions)}", f"\n{about}")],
        *(_expected(kernel, expectation.target) for kernel in expectation.kernels),
        _host(expectation.host_statements, expectation.host_time_s),
        [f"the program: {why_unknown(kernels) if run is None else run.amounts}"],
        [listing_of(expectation.clocks, _AT_CLOCK)] if expectation.clocks else [],
        [] if expectation.calibrated else [uncalibrated(expectation.gpu)],
    )


_AT_CLOCK: Columns = {
    "MHz": "clock_mhz",
    "ms": "time_s",
    "J": "energy_j",
    "W": lambda one: one.energy_j and one.energy_j / one.time_s,
}


def _expected(kernel: KernelExpectation, target: str) -> Parts:
    one, usual = kernel.predicted, kernel.default
    lines = list(_layout_lines(kernel))
    if one is None or not one.launches:
        lines.append(f"not predicted: {kernel.note}" if one is None else f"{kernel.note}")
        return [_head(kernel, lines)]
    about = f"expected {_with_power(one)}; bound by {one.bound}"
    if not TARGETS[target].own:
        default = "PPCG's default does not launch"
        if usual is not None:
            ratio = usual.energy_j / one.energy_j
            default = f"PPCG's default takes {usual.amounts} ({ratio:.2f} ×)"
        lines.append(f"{about}; {default}")
    elif usual is None or usual == one:
        same = "no prediction for the selected sizes"
        lines += [about, "these are the sizes selected for least energy" if usual else same]
    else:
        ratio = usual.energy_j / one.energy_j
        selected = f"selected: {_with_power(usual)}; bound by {usual.bound}"
        lines += [about, f"{selected} ({ratio:.2f} × the energy)"]
    lines.append(
        f"{_blocks(one, kernel)}, {one.resident_blocks} resident on an SM, about "
        f"{one.registers} registers a thread, {one.shared_bytes} bytes of shared memory a block"
    )
    return [_head(kernel, lines), *_terms(one)]


def _layout_lines(kernel: KernelExpectation) -> Iterator[str]:
    """Yield what the layout of a kernel is, unless it cannot launch."""
    if not kernel.joined and kernel.predicted is not None and not kernel.predicted.launches:
        return
    sizes = pairs_text([pair for pair in kernel.tile_sizes if pair[0] not in kernel.sum_loops])
    if sizes and not kernel.joined:
        block = " × ".join(str(size) for _, size in reversed(kernel.block))
        shared = f"; {', '.join(kernel.shared)} in shared memory" if kernel.shared else ""
        yield f"tiles {sizes}; block {block} threads{shared}"
    yield from _variant_lines(kernel)


def _variant_lines(kernel: KernelExpectation | KernelSelection) -> Iterator[str]:
    """Yield what generated code does besides tiling, a line each: split sums, pipelines, ….

    Of kernels that become one it is what their blocks do.
    """
    if (block := kernel.row_block) is not None:
        yield (
            f"one fused kernel{_beside(block.kernels)}: {counted(block.rows, 'row')} a block, "
            f"{'side by side in a warp, ' * block.columns}"
            f"{block.lanes} threads a row, {block.tile} elements at a time"
        )
        return
    if (tile := kernel.time_tile) is not None:
        others = _beside(tile.kernels)
        yield f"time tiles: {tile.depth} steps a launch{others}, {tile.cells} cells in registers"
        return
    if (own := kernel.class_block) is not None:
        width = f", {own.width} points of their loop each" if own.width > 1 else ""
        yield f"a class of tiles{_beside(own.kernels)}: {own.threads} threads a block{width}"
        return
    if (loop := kernel.loop_block) is not None:
        cells = " × ".join(map(str, loop.tiles))
        tiles = f"blocks of {loop.threads} threads run tiles of {cells} of the host loop"
        alone = f"one block of {loop.threads} threads runs the host loop{_beside(loop.kernels)}"
        yield tiles if cells else alone
        return
    if (spread := kernel.spread) is not None:
        parts = [f"{spread.lanes} lanes"] if spread.lanes > 1 else []
        parts += [f"up to {spread.chunks} blocks"] if spread.chunks > 1 else []
        parts += [f"up to {spread.outer} blocks along an outer loop"] if spread.outer > 1 else []
        parts.append(f"{spread.tile} steps at a time")
        yield f"{_sum(kernel)} over {', '.join(kernel.sum_loops)}: {', '.join(parts)}"
    if (shared := kernel.shared_sum) is not None:
        how = f"split across up to {shared.blocks} blocks"
        if shared.streamed:
            how = f"stream-K, the k-tiles of all tiles shared evenly by {shared.blocks} blocks"
        yield f"{_sum(kernel)} over {shared.loop}: {how}"
    stages = kernel.stages if kernel.warps is None else kernel.warps.stages
    tensor = "" if kernel.warps is None else f"tensor cores: {kernel.warps.instruction}"
    ahead = f"copies {counted(stages - 1, 'tile')} ahead" if stages > 1 else ""
    if tensor or ahead:
        yield ", ".join(filter(None, (tensor, ahead)))


def _beside(kernels: Sequence[str]) -> str:
    """Return with which others the first of some kernels is one."""
    return f" with {', '.join(kernels[1:])}" if len(kernels) > 1 else ""


def _blocks(one: Prediction, kernel: KernelExpectation | KernelSelection) -> str:
    """Return how many blocks there are, and tiles where blocks have none of their own."""
    shared, threads = kernel.shared_sum, counted(one.threads, "thread")
    if shared is None or not shared.streamed:
        return f"{counted(one.blocks, 'block')} of {threads}"
    return f"{counted(one.blocks, 'tile')} for {counted(shared.blocks, 'block')} of {threads}"


def _sum(kernel: KernelExpectation | KernelSelection) -> str:
    """Return what several threads of a kernel have parts of, ``"sum"`` or ``"maximum and sum"``."""
    return " and ".join(kernel.sum_kinds) or "sum"


def _terms(prediction: Prediction) -> Parts:
    """Return what each part of the card takes on its own, and where the energy goes."""
    return [
        listing((title, ">"), ((name, text(amount)) for name, amount in terms if amount > 0))
        for title, terms, text in (
            ("time alone", prediction.times_s, time_text),
            ("energy", prediction.energies_j, energy_text),
        )
    ]


def _with_power(one: Prediction) -> str:
    return f"{one.amounts}, {one.power_w:.0f} W"


def _head(
    kernel: KernelExpectation | KernelSelection | KernelCode,
    lines: Iterable[str | None] = (),
    host_loops: Sequence[str] = (),
) -> Text:
    """Return the name, statements and host loops of a kernel, and below what is said of it."""
    inside = f"  inside host loops {', '.join(host_loops)}" if host_loops else ""
    below = (f"\n  {line}" for line in lines)
    return headed(kernel.name, f"  {', '.join(kernel.statements)}", inside, *below, of_kernel=True)


def _host(statements: Sequence[str], time_s: float | None) -> list[str]:
    """Return which statements run on the host, and how long they take there at least."""
    if not statements:
        return []
    text = f"stays on the host, because nothing is parallel there: {', '.join(statements)}"
    if time_s:
        cycle = time_text(HOST_INSTANCE_S)
        text += f"\n  at least {time_text(time_s)} there, {cycle} for each instance of a statement"
    return [text]


@frozen
class PrintedPlan(Program):
    """A launch plan, what a run is expected to take, and what was said of the source.

    Attributes:
        expected: What a run is expected to take on the card, and at which sizes; ``None`` where
            nothing was predicted.
        warnings: What was said of the source and of the sizes.
    """

    json_layout = JsonForm(apart=("text",))

    warnings: Diagnostics = ()


def render_program(
    program: Program,
    output: str,
    warnings: Diagnostics = (),
) -> str:
    """Return a program as ``table`` or ``json`` (a :class:`PrintedPlan`)."""
    if output == "json":
        plan = {one.name: getattr(program, one.name) for one in fields(program)}
        return json_text(PrintedPlan(**plan, warnings=warnings))
    return render(*program_parts(program))


def program_parts(program: Program) -> Parts:
    """Return a generated program: its kernels, and what is expected of a run."""
    functions = dict.fromkeys(entry.function for entry in program.entries)
    how = ", strict order of operations" * program.strict_fp
    how += ", approximate divisions" * program.fast_math
    about = f"{program.gpu}, {program.dtype}, {program.index_bits}-bit indices{how}"
    loops: dict[str, list[str]] = {}
    for entry in program.entries:
        for step, around in every_step(entry.body):
            if isinstance(step, Launch):
                loops.setdefault(step.kernel, [loop.counter for loop in around])
    return apart(
        [headed(program.original.file, f"  {', '.join(functions)}", f"\n{about}")],
        *(_generated(kernel, loops.get(kernel.name, ())) for kernel in program.kernels),
        [] if program.expected is None else [f"expected: {program.expected}"],
    )


def _generated(kernel: KernelCode, host_loops: Sequence[str]) -> Parts:
    shape = " x ".join(map(str, kernel.block))
    dynamic = ", passed at launch" if kernel.dynamic_shared else ""
    rows: tuple[tuple[str, RenderableType], ...] = (
        ("  tiles", bold(pairs_text(kernel.tile_sizes) or "none")),
        ("  block", f"{shape} = {counted(prod(kernel.block), 'thread')}"),
        ("  shared", bytes_text(kernel.shared_bytes) + dynamic),
        ("  registers", f"about {kernel.registers} a thread"),
        *(("  note", note) for note in kernel.notes),
    )
    return [_head(kernel, host_loops=host_loops), facts(rows, no_wrap=False)]
