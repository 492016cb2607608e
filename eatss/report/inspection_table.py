"""What ``eatss inspect`` prints for people."""

from __future__ import annotations

import islpy as isl
from rich.table import Table
from rich.text import Text

from eatss.analysis import KernelFacts, VolumeKind
from eatss.analysis.program import AnalysedProgram, AnalysedScop
from eatss.polyhedral.kernel import Kernel, Loop
from eatss.polyhedral.recomputed_producers import recomputed_arrays
from eatss.report.render import render
from eatss.scops import Scop


def inspection_table(program: AnalysedProgram) -> str:
    """Return domains, accesses, dependences, schedule and kernels as text."""
    parts = [_scop_text(program.file, scop) for scop in program.scops]
    return "\n".join(parts)


def _scop_text(file: str, analysed: AnalysedScop) -> str:
    scheduled = analysed.scheduled
    scop = scheduled.scop
    title = Text(f"{file}:{scop.span.line}: ", style="dim")
    title.append(f"{scop.function}, region {scop.index}", style="bold")
    pieces: list[Text | Table] = [title]
    if scop.parameters:
        pieces.append(Text(f"parameters {', '.join(scop.parameters)}; context {scop.context}"))
    pieces.append(_arrays(scop))
    if recomputed := recomputed_arrays(scop):
        pieces.append(Text(f"  computed anew where it is read: {', '.join(recomputed)}"))
    pieces += [_statements(scop), _accesses(scop)]
    dependences = scheduled.dependences
    for name, relation in (
        ("flow", dependences.flow),
        ("anti", dependences.anti),
        ("output", dependences.output),
    ):
        pieces.append(_relation(f"{name} dependences", relation))
    pieces += [_schedule(scheduled.schedule), Text("kernels", style="bold")]
    for kernel, facts in zip(scheduled.kernels, analysed.facts, strict=True):
        pieces += _kernel(kernel, facts)
    if scheduled.host_statements:
        names = ", ".join(scheduled.host_statements)
        pieces.append(Text(f"  on the host, because nothing is parallel there: {names}"))
    return render(*pieces)


def _arrays(scop: Scop) -> Table:
    table = _table("arrays", "name", "element", "extent")
    for array in scop.arrays:
        local = f" (copy of {array.copy_of})" if array.copy_of else " (local)"
        element = array.element_type.value + (local if array.is_local else "")
        table.add_row(array.name, element, str(array.extent))
    return table


def _statements(scop: Scop) -> Table:
    table = _table("statements", "name", "line", "text", "domain")
    for statement in scop.statements:
        table.add_row(
            statement.name, str(statement.span.line), statement.text, str(statement.domain)
        )
    return table


def _accesses(scop: Scop) -> Table:
    table = _table("accesses", "statement", "kind", "reference", "relation")
    for statement in scop.statements:
        for access in statement.accesses:
            table.add_row(statement.name, access.kind.value, access.text, str(access.relation))
    return table


def _relation(title: str, relation: isl.UnionMap) -> Text:
    text = Text(title, style="bold")
    maps = relation.get_map_list()
    pieces = [str(maps.get_at(position)) for position in range(maps.n_map())]
    if not pieces:
        text.append(" none", style="dim")
    for piece in sorted(pieces):
        text.append(f"\n  {piece}", style="not bold")
    return text


def _schedule(schedule: isl.Schedule) -> Text:
    printer = isl.Printer.to_str(schedule.get_ctx())
    printer = printer.set_yaml_style(isl.yaml_style.BLOCK)
    printer = printer.print_schedule(schedule)
    text = Text("schedule tree", style="bold")
    for line in printer.get_str().splitlines():
        text.append(f"\n  {line}", style="not bold")
    return text


def _kernel(kernel: Kernel, facts: KernelFacts) -> list[Text | Table]:
    head = Text(f"  {facts.name}", style="bold cyan")
    head.append(f"  statements {', '.join(kernel.statements)}", style="default")
    if kernel.host_loops:
        head.append(f"; inside host loops {', '.join(kernel.host_loops)}", style="default")
    if not kernel.loops:
        head.append("; no parallel loop: runs in one thread", style="default")
    else:
        head.append(f"\n    loops {', '.join(_loop(loop) for loop in kernel.loops)}")
        cma = facts.cma_loop or "none"
        head.append(f"; CMA loop {cma}; distinct references {facts.distinct_references}")
    if kernel.inner_loops:
        inner = ", ".join(_loop(loop) for loop in kernel.inner_loops)
        head.append(f"\n    not tiled {inner}")
    for reduction in kernel.reductions:
        head.append(
            f"\n    {reduction.statement} reduces into {reduction.array} with "
            f"'{reduction.operator}' along {', '.join(reduction.loops)}"
        )
    pieces: list[Text | Table] = [head]
    if facts.references:
        pieces.append(_references(facts))
    return pieces


def _references(facts: KernelFacts) -> Table:
    table = _table(None, "reference", "", "memory", "CMA", "temporal", "spatial", "elements a tile")
    footprints = facts.volume_kind is VolumeKind.FOOTPRINT
    elements = {
        position: f"{volume.elements}{'' if volume.exact or not footprints else ' (bound)'}"
        for volume in facts.volumes
        for position in volume.references[:1]
    }
    names = [reference.access for reference in facts.references]
    for position, reference in enumerate(facts.references):
        several = names.count(reference.access) > 1
        direction = ("r" if reference.reads else "") + ("w" if reference.writes else "")
        table.add_row(
            f"{reference.access} in {', '.join(reference.statements)}"
            if several
            else reference.access,
            direction,
            reference.memory.value,
            "yes" if reference.cma else "no",
            ", ".join(reference.temporal) or "-",
            ", ".join(reference.spatial) or "-",
            elements.get(position, '"'),
        )
    return table


def _loop(loop: Loop) -> str:
    kind = "parallel" if loop.parallel else "serial"
    return f"{loop.name} ({kind}{'' if loop.trip_count is None else f', {loop.trip_count}'})"


def _table(title: str | None, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=True)
    for column in columns:
        table.add_column(column, overflow="fold", header_style="dim")
    return table
