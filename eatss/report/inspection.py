"""What ``eatss inspect`` prints."""

from __future__ import annotations

import islpy as isl
from rich.text import Text

from eatss.analysis.analyse import AnalysedProgram, AnalysedScop
from eatss.analysis.facts import KernelFacts
from eatss.polyhedral.expression import Array
from eatss.polyhedral.kernel import Kernel, Loop
from eatss.polyhedral.recomputed_producers import recomputed_arrays
from eatss.report.render import Columns, Parts, headed, listing, listing_of, render
from eatss.report.selection import REUSE


def _element(array: Array) -> str:
    local = f" (copy of {array.copy_of})" if array.copy_of else " (local)"
    return array.element_type.value + (local if array.is_local else "")


_ARRAY: Columns = {"arrays": "name", "element": _element, "extent": "extent"}
_STATEMENT: Columns = {
    "statements": "name",
    "line": "span.line",
    "text": "text",
    "domain": "domain",
}


def _scop_text(file: str, analysed: AnalysedScop) -> str:
    scheduled = analysed.scheduled
    scop, dependences = scheduled.scop, scheduled.dependences
    title = Text(f"{file}:{scop.span.line}: ", style="dim")
    title.append(f"{scop.function}, region {scop.index}", style="bold")
    pieces: Parts = [title]
    if scop.parameters:
        pieces.append(f"parameters {', '.join(scop.parameters)}; context {scop.context}")
    pieces.append(listing_of(scop.arrays, _ARRAY))
    if recomputed := recomputed_arrays(scop):
        pieces.append(f"  recomputed where read: {', '.join(recomputed)}")
    accesses = (
        (statement.name, access.kind.value, access.text, access.relation)
        for statement in scop.statements
        for access in statement.accesses
    )
    pieces += [
        listing_of(scop.statements, _STATEMENT),
        listing(("accesses", "kind", "reference", "relation"), accesses),
    ]
    for name in ("flow", "anti", "output"):
        maps = getattr(dependences, name).get_map_list()
        found = sorted(str(maps.get_at(position)) for position in range(maps.n_map()))
        text = headed(f"{name} dependences", *(f"\n  {one}" for one in found))
        pieces.append(text if found else text.append(" none", style="dim"))
    printer = isl.Printer.to_str(scheduled.schedule.get_ctx())
    printer = printer.set_yaml_style(isl.yaml_style.BLOCK).print_schedule(scheduled.schedule)
    tree = (f"\n  {line}" for line in printer.get_str().splitlines())
    pieces += [headed("schedule tree", *tree), headed("kernels")]
    for kernel, facts in zip(scheduled.kernels, analysed.facts, strict=True):
        pieces.append(_kernel_head(kernel, facts))
        if facts.references:
            pieces.append(listing_of(facts.references, _REFERENCE))
    if scheduled.host_statements:
        names = ", ".join(scheduled.host_statements)
        pieces.append(f"  on the host, because nothing is parallel there: {names}")
    return render(*pieces)


def _kernel_head(kernel: Kernel, facts: KernelFacts) -> Text:
    hosts = f"; inside host loops {', '.join(kernel.host_loops)}" if kernel.host_loops else ""
    alone = "" if kernel.loops else "; no parallel loop: runs in one thread"
    statements = f"  statements {', '.join(kernel.statements)}"
    head = headed(f"  {facts.name}", statements, hosts, alone, of_kernel=True)
    if kernel.loops:
        head.append(
            f"\n    loops {', '.join(map(_loop, kernel.loops))}; CMA loop "
            f"{facts.cma_loop or 'none'}; distinct references {facts.distinct_references}"
        )
    if kernel.inner_loops:
        head.append(f"\n    not tiled {', '.join(map(_loop, kernel.inner_loops))}")
    for one in kernel.reductions:
        head.append(
            f"\n    {one.statement} reduces into {one.array} with '{one.operator}' along "
            f"{', '.join(one.loops)}"
        )
    return head


_REFERENCE: Columns = {
    "reference": "access",
    "": lambda one: "r" * one.reads + "w" * one.writes,
    "memory": "memory.value",
    **REUSE,
    "elements a tile": lambda one: str(one.elements),
}


def _loop(loop: Loop) -> str:
    kind = "parallel" if loop.parallel else "serial"
    return f"{loop.name} ({kind}{'' if loop.trip_count is None else f', {loop.trip_count}'})"


def render_inspection(program: AnalysedProgram) -> str:
    """Return what is known of a program; sets, relations and schedules in the notation of isl."""
    return "\n".join(_scop_text(program.file, scop) for scop in program.scops)
