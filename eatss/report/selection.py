"""What ``eatss select``, ``predict``, ``codegen`` and ``ppcg`` print of kernels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from math import prod
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from eatss.base.codec import JsonForm, json_text
from eatss.base.diagnostics import Diagnostics
from eatss.base.frozen import frozen
from eatss.base.shown import energy_text, pairs_text, sizes_text, time_text, why_unknown
from eatss.base.targets import TARGETS
from eatss.base.text import bytes_text, counted
from eatss.choose.options import PUBLISHED
from eatss.choose.selection import KernelSelection, Selection
from eatss.cost.expected import Prediction
from eatss.program import KernelCode, Launch, Program, every_step
from eatss.report.render import (
    NONE,
    Columns,
    Parts,
    apart,
    bold,
    facts,
    figure,
    headed,
    listed,
    listing,
    listing_of,
    render,
    uncalibrated,
)

if TYPE_CHECKING:
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
    guessed = options.model == "prediction" and not selection.calibrated
    return apart(
        _title(selection, f"target {options.target}", f"objective {options.objective}", counted_by),
        *(_selected(kernel, selection, explain=explain) for kernel in selection.kernels),
        _host(selection.host_statements, selection.host_time_s),
        [_verdict(selection)] if predicted else [],
        [uncalibrated(selection.gpu)] if guessed else [],
    )


def _title(found: Selection | ProgramExpectation, *about: str) -> Parts:
    """Return what a result is of, and for which card."""
    functions = f"  {', '.join(found.functions)}"
    return [headed(found.file, functions, f"\n{listed(found.gpu, found.dtype, *about)}")]


def _verdict(selection: Selection) -> str:
    """Return what is expected of the program, beside what PPCG takes by itself."""
    options, run = selection.ppcg_options, selection.expected
    kernels = [(kernel, kernel.predicted) for kernel in selection.kernels]
    found = why_unknown(kernels) if run is None else f"{run.amounts}{run.distance}"
    if options is None or not kernels:
        return f"expected: {found}"
    if selection.keeps_default:
        kept = "PPCG's default is kept: no candidate is predicted to be clearly better"
        return f"{kept}: {found}"
    told = f"--max-shared-memory={options.max_shared_memory}"
    told += " --unroll-gpu-tile" * options.unroll_gpu_tile
    default = selection.expected_of_default
    usual = "does not launch" if default is None else default.amounts
    return f"expected: {found}, with {told}\nPPCG's default: {usual}"


def _selected(kernel: KernelSelection, selection: Selection, *, explain: bool) -> Parts:
    one, predicted = kernel.predicted, selection.options.model not in PUBLISHED
    ppcg = not TARGETS[selection.options.target].own
    lines = [*_expected(one)] if one is not None and one.launches else []
    if one is not None and not one.launches:
        return [_head(kernel, [kernel.note], kernel.host_loops)]
    if predicted and ppcg:
        lines.append(_beside_default(kernel))
    if predicted and kernel.tile_sizes:
        lines.append(_bound(kernel))
    if not predicted:
        lines.append(
            f"split {kernel.split_factor:g}, warp fraction {kernel.warp_fraction:g}; objective "
            f"{kernel.objective}, optimal: {kernel.optimal} ({kernel.solver_calls} solver calls, "
            f"{1000 * kernel.solve_time_s:.0f} ms)"
        )
    lines += _ways(kernel)
    parts: Parts = [_head(kernel, [*lines, kernel.note], kernel.host_loops)]
    if not kernel.joined and (kernel.tile_sizes or kernel.spread):  # else these are of it alone
        parts += [_loops(kernel), listing_of(kernel.references, _REFERENCE)]
        parts.append(listing_of(kernel.usage, _LIMIT))
    if kernel.alternatives:
        parts.append(listing_of((kernel, *kernel.alternatives), _ALTERNATIVE))
    return [*parts, *(_explanation(kernel) if explain else ())]


def _expected(one: Prediction) -> Iterator[str]:
    """Yield what is expected of a kernel, and how it is launched."""
    launches = f", {one.launches} launches" if one.launches > 1 else ""
    yield f"expected {one.amounts}, {one.power_w:.0f} W, bound by {one.bound}"
    yield f"{counted(one.blocks, 'block')} of {counted(one.threads, 'thread')}{launches}"


def _beside_default(kernel: KernelSelection) -> str:
    if kernel.keeps_default:
        return "these are PPCG's default sizes"
    other = "does not launch" if kernel.default is None else kernel.default.amounts
    return f"PPCG's default: {other}"


_UNITS = {"nJ": (energy_text, 1e-9), "ps": (time_text, 1e-12)}


def _bound(kernel: KernelSelection) -> str:
    """Return what is known of all other sizes."""
    if not kernel.bound:
        return f"least of {counted(kernel.compared, 'layout')}" if kernel.compared else ""
    unit = kernel.objective_formula.rpartition(", in ")[2]
    text, small = _UNITS.get(unit, (lambda amount: f"{amount:.0f} {unit}", 1))
    gap = f"{kernel.gap:.1%}"
    below = f"{gap} below this; " if gap != "0.0%" else ""
    took = f"{counted(kernel.boxes, 'box', 'boxes')}, {1000 * kernel.solve_time_s:.0f} ms"
    return f"lower bound, margins included: {text(kernel.bound * small)} ({below}{took})"


def _loops(kernel: KernelSelection) -> Table:
    """Return the loops: the points of a thread along each, or its weight in a published objective.

    What generated code does with a loop besides tiling it is said beside its kind.
    """
    sizes, block = dict(kernel.tile_sizes), dict(kernel.block)
    weights, shared = dict(kernel.weights), kernel.shared_sum
    if kernel.spread is not None:
        sizes |= dict.fromkeys(kernel.sum_loops, kernel.spread.tile)
    rows = []
    for loop in (*kernel.loops, *kernel.inner_loops):
        tile, threads = sizes.get(loop), block.get(loop)
        words = ["parallel" if loop in kernel.parallel else "serial"]
        words += ["CMA"] * (loop == kernel.cma_loop)
        if loop in kernel.sum_loops or (shared is not None and loop == shared.loop):
            words.append("spread")
        last = weights.get(loop) if weights else threads and tile and -(-tile // threads)
        rows.append((loop, ", ".join(words), bold(tile or NONE), threads, last))
    return listing(("loop", "", ">tile", ">threads", ">weight" if weights else ">points"), rows)


REUSE: Columns = {
    "CMA": "cma",
    "temporal reuse": lambda one: ", ".join(one.temporal) or None,
    "spatial reuse": lambda one: ", ".join(one.spatial) or None,
}
"""Whether and how a reference is reused."""

_REFERENCE: Columns = {"reference": "access", "memory": "placement", **REUSE}

_LIMITS = {
    "shared_per_sm": "shared memory of an SM",
    "shared_per_block": "shared memory of a block",
}


def _amount(number: int, unit: str) -> str:
    return bytes_text(number) if unit == "bytes" else f"{number} {unit}"


_LIMIT: Columns = {
    "limit": lambda one: _LIMITS.get(one.name, one.title),
    ">used": lambda one: _amount(one.used, one.unit),
    ">available": lambda one: _amount(one.available, one.unit),
    ">": lambda one: f"{one.used / one.available:.0%}" if one.available else None,
    "": lambda one: Text("binds", style="yellow") if one.binding else "",
}

_CELL: Columns = {
    ">split": lambda one: f"{one.split_factor:g}",
    ">fraction": lambda one: f"{one.warp_fraction:g}",
}
"""A choice of the paper's objective."""

_ALTERNATIVE: Columns = {
    **_CELL,
    "tile sizes": lambda one: pairs_text(one.tile_sizes),
    "objective": "objective",
    "traffic": "traffic",
}


def _explanation(kernel: KernelSelection) -> Parts:
    if kernel.predicted is not None:
        return _terms(kernel.predicted)
    lines = (
        f"  maximised: {kernel.objective_formula}\n"
        f"  sizes are multiples of {kernel.alignment}; "
        f"{kernel.distinct_references} references touch different cache lines\n"
        f"  traffic: {figure(kernel.traffic)} elements from L2 for each iteration point (estimate)"
    )
    dropped = listing_of(kernel.dropped, {**_CELL, "why it was dropped": "reason"})
    return [lines, *[dropped] * bool(kernel.dropped)]


def expectation_parts(expectation: ProgramExpectation) -> Parts:
    """Return what ``eatss predict`` expects of sizes that were named."""
    run = expectation.expected
    kernels = [(kernel, kernel.predicted) for kernel in expectation.kernels]
    about = f"target {expectation.target}", sizes_text(expectation.sizes)
    return apart(
        _title(expectation, *about),
        *(_named(kernel, expectation.target) for kernel in expectation.kernels),
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


def _named(kernel: KernelExpectation, target: str) -> Parts:
    """Return what is expected of sizes that were named, beside those that the target takes."""
    one, usual, lines = kernel.predicted, kernel.default, []
    if kernel.tile_sizes and not kernel.joined:
        block = " × ".join(str(size) for _, size in reversed(kernel.block))
        shared = f"; {', '.join(kernel.shared)} in shared memory" if kernel.shared else ""
        lines.append(f"tiles {pairs_text(kernel.tile_sizes)}; block {block} threads{shared}")
    lines += _ways(kernel)
    if one is None or not one.launches:
        return [_head(kernel, [*lines, f"not predicted: {kernel.note}"])]
    other = "what is selected" if TARGETS[target].own else "PPCG's default"
    beside = "does not launch"
    if usual is not None:
        beside = f"takes {usual.amounts} ({usual.energy_j / one.energy_j:.2f} × the energy)"
    used = (
        f"{one.resident_blocks} blocks resident on an SM, about {one.registers} registers a "
        f"thread, {one.shared_bytes} bytes of shared memory a block"
    )
    return [_head(kernel, [*lines, *_expected(one), used, f"{other} {beside}"]), *_terms(one)]


_JOINED = {
    "row_block": "one fused kernel: {0.rows} rows a block, {0.lanes} threads a row, {0.tile} "
    "elements at a time",
    "time_tile": "time tiles: {0.depth} steps a launch, {0.cells} cells in registers",
    "class_block": "a class of tiles: {0.threads} threads a block",
    "loop_block": "blocks of {0.threads} threads run the host loop",
}
"""What blocks do of kernels that become one, by the attribute that says so."""

_TOGETHER = {
    "shared_sum": "{sums} over {0.loop}: up to {0.blocks} blocks share it",
    "spread": "{sums} over {loops}: {0.lanes} lanes, up to {0.chunks} × {0.outer} blocks, "
    "{0.tile} steps at a time",
    "warps": "tensor cores: {0.instruction}, {0.stages} tiles in shared memory at once",
}
"""What threads and blocks do of one kernel besides tiling, likewise."""


def _ways(kernel: KernelExpectation | KernelSelection) -> Iterator[str]:
    """Yield what generated code does besides tiling, a line each."""
    words = {"sums": " and ".join(kernel.sum_kinds) or "sum", "loops": ", ".join(kernel.sum_loops)}
    for name, text in (_JOINED if kernel.joined else _TOGETHER).items():
        if (way := getattr(kernel, name)) is not None:
            others = f" with {', '.join(kernel.joined[1:])}" if kernel.joined[1:] else ""
            yield text.replace(":", f"{others}:", 1).format(way, **words)
    if kernel.stages > 1:
        yield f"copies {counted(kernel.stages - 1, 'tile')} ahead"


def _terms(prediction: Prediction) -> Parts:
    """Return what each part of the card takes on its own, and where the energy goes."""
    return [
        listing((title, ">"), ((name, text(amount)) for name, amount in terms if amount > 0))
        for title, terms, text in (
            ("time alone", prediction.times_s, time_text),
            ("energy", prediction.energies_j, energy_text),
        )
    ]


def _head(
    kernel: KernelExpectation | KernelSelection | KernelCode,
    lines: Iterable[str | None] = (),
    host_loops: Sequence[str] = (),
) -> Text:
    """Return the name, statements and host loops of a kernel, and below what is said of it."""
    inside = f"  inside host loops {', '.join(host_loops)}" if host_loops else ""
    below = (f"\n  {line}" for line in lines if line)
    return headed(kernel.name, f"  {', '.join(kernel.statements)}", inside, *below, of_kernel=True)


def _host(statements: Sequence[str], time_s: float | None) -> Parts:
    """Return which statements run on the host, and how long they take there at least."""
    least = f", at least {time_text(time_s)}" if time_s else ""
    text = f"stays on the host, because nothing is parallel there: {', '.join(statements)}{least}"
    return [text] * bool(statements)


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
    rows = (
        ("  tiles", bold(pairs_text(kernel.tile_sizes) or "none")),
        ("  block", f"{shape} = {counted(prod(kernel.block), 'thread')}"),
        ("  shared", bytes_text(kernel.shared_bytes) + dynamic),
        ("  registers", f"about {kernel.registers} a thread"),
        *(("  note", note) for note in kernel.notes),
    )
    return [_head(kernel, host_loops=host_loops), facts(rows, no_wrap=False)]
