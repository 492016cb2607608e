"""What ``eatss inspect`` prints: for people, or as JSON in isl's own notation."""

from __future__ import annotations

from typing import Annotated

import islpy as isl
from rich.table import Table
from rich.text import Text

from eatss.analysis import KernelFacts, ReferenceFacts
from eatss.analysis.facts import Memory, VolumeKind
from eatss.analysis.program import AnalysedProgram, AnalysedScop
from eatss.codec import BY_NAME, json_text
from eatss.frozen import frozen
from eatss.polyhedral.graph import statement_graph
from eatss.polyhedral.kernel import Kernel, Loop, Reduction
from eatss.polyhedral.program import StatementGraph
from eatss.polyhedral.recomputed_producers import recomputed_arrays
from eatss.report.render import render
from eatss.scops import ElementType, Scop, Statement


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
        pieces += _kernel_text(kernel, facts)
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


def _kernel_text(kernel: Kernel, facts: KernelFacts) -> list[Text | Table]:
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


@frozen
class InspectedArray:
    """An array; ``extent`` is the set of its elements. A ``local`` one is dead after the region.

    ``copy_of`` is the array of which it has the values from before the region; ``null`` for none.
    """

    name: str
    element_type: ElementType
    extent: str
    local: bool
    copy_of: str | None


@frozen
class InspectedStatement:
    """A statement with its domain, accesses and schedule; lines and columns count from 1."""

    name: str
    line: int
    column: int
    loops: tuple[str, ...]
    domain: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    schedule: str
    text: str


@frozen
class InspectedDependences:
    """The dependences of a region as relations of statement instances."""

    flow: str
    anti: str
    output: str


@frozen
class InspectedVolume:
    """Elements that a tile touches through some references to one array.

    ``references`` count from 0 in those of the kernel. ``elements`` is a polynomial in the tile
    sizes, an upper bound where it is not ``exact``.
    """

    array: str
    memory: Memory
    references: tuple[int, ...]
    elements: str
    exact: bool


@frozen
class InspectedKernel:
    """A kernel and what the model knows of it.

    ``stride_one`` counts for each loop the references in which it is the fastest-varying subscript.
    ``distinct_references`` counts those that touch different cache lines.
    """

    name: str
    statements: tuple[str, ...]
    host_loops: tuple[str, ...]
    loops: tuple[Loop, ...]
    inner_loops: tuple[Loop, ...]
    parallel: tuple[str, ...]
    permutable: bool
    schedule: str
    cma_loop: str | None
    stride_one: Annotated[tuple[tuple[str, int], ...], BY_NAME]
    distinct_references: int
    element_bytes: int
    references: tuple[ReferenceFacts, ...]
    volume_kind: VolumeKind
    volumes: tuple[InspectedVolume, ...]
    reductions: tuple[Reduction, ...]


@frozen
class InspectedScop:
    """A region of the C file; ``host_statements`` are in no kernel.

    ``recomputed`` are arrays whose elements statements compute anew instead of reading them; one of
    the function's own is in no ``arrays`` then.
    """

    function: str
    line: int
    parameters: tuple[str, ...]
    context: str
    arrays: tuple[InspectedArray, ...]
    statements: tuple[InspectedStatement, ...]
    dependences: InspectedDependences
    statement_graph: StatementGraph
    schedule_tree: str
    host_statements: tuple[str, ...]
    kernels: tuple[InspectedKernel, ...]
    recomputed: tuple[str, ...] = ()


@frozen
class Inspection:
    """What eatss sees in a C file. Sets, relations and schedules are in the notation of isl."""

    file: str
    scops: tuple[InspectedScop, ...]
    schema_version: int = 1


def render_inspection(program: AnalysedProgram, output: str) -> str:
    """Return an inspection as ``table`` or ``json``."""
    return json_text(inspection(program)) if output == "json" else inspection_table(program)


def inspection(program: AnalysedProgram) -> Inspection:
    """Return all that is known of a program as text and plain nouns."""
    return Inspection(file=program.file, scops=tuple(map(_scop, program.scops)))


def _scop(analysed: AnalysedScop) -> InspectedScop:
    scheduled = analysed.scheduled
    scop, dependences = scheduled.scop, scheduled.dependences
    return InspectedScop(
        function=scop.function,
        line=scop.span.line,
        parameters=tuple(scop.parameters),
        context=str(scop.context),
        arrays=tuple(
            InspectedArray(
                name=array.name,
                element_type=array.element_type,
                extent=str(array.extent),
                local=array.is_local,
                copy_of=array.copy_of or None,
            )
            for array in scop.arrays
        ),
        statements=tuple(map(_statement, scop.statements)),
        dependences=InspectedDependences(
            flow=str(dependences.flow),
            anti=str(dependences.anti),
            output=str(dependences.output),
        ),
        statement_graph=statement_graph(scheduled.general),
        schedule_tree=scheduled.schedule.to_str(),
        host_statements=tuple(scheduled.host_statements),
        kernels=tuple(map(_kernel, scheduled.kernels, analysed.facts)),
        recomputed=recomputed_arrays(scop),
    )


def _statement(statement: Statement) -> InspectedStatement:
    return InspectedStatement(
        name=statement.name,
        line=statement.span.line,
        column=statement.span.column,
        loops=tuple(statement.loops),
        domain=str(statement.domain),
        reads=tuple(str(access.relation) for access in statement.reads),
        writes=(str(statement.write.relation),),
        schedule=str(statement.schedule),
        text=statement.text,
    )


def _kernel(kernel: Kernel, facts: KernelFacts) -> InspectedKernel:
    return InspectedKernel(
        name=facts.name,
        statements=tuple(kernel.statements),
        host_loops=tuple(kernel.host_loops),
        loops=kernel.loops,
        inner_loops=kernel.inner_loops,
        parallel=tuple(loop.name for loop in kernel.parallel_loops),
        permutable=kernel.permutable,
        schedule=str(kernel.schedule),
        cma_loop=facts.cma_loop,
        stride_one=facts.stride_one,
        distinct_references=facts.distinct_references,
        element_bytes=facts.element_bytes,
        references=facts.references,
        volume_kind=facts.volume_kind,
        volumes=tuple(
            InspectedVolume(
                array=volume.array,
                memory=volume.memory,
                references=volume.references,
                elements=str(volume.elements),
                exact=volume.exact,
            )
            for volume in facts.volumes
        ),
        reductions=kernel.reductions,
    )
