"""What ``eatss inspect`` prints: for people, or as JSON in isl's own notation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Annotated, Any, TypeVar

import islpy as isl
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from eatss.analysis import KernelFacts, ReferenceFacts
from eatss.analysis.facts import Memory, VolumeKind
from eatss.analysis.program import AnalysedProgram, AnalysedScop
from eatss.base.codec import BY_NAME, json_text
from eatss.base.frozen import frozen
from eatss.polyhedral.expression import ElementType
from eatss.polyhedral.kernel import Kernel, Loop, Reduction, StatementGraph
from eatss.polyhedral.recomputed_producers import recomputed_arrays
from eatss.polyhedral.scheduling import statement_graph
from eatss.report.render import headed, render
from eatss.report.selection import reference_rows

T = TypeVar("T")


def _scop_text(file: str, analysed: AnalysedScop) -> str:
    scheduled = analysed.scheduled
    scop, dependences = scheduled.scop, scheduled.dependences
    title = Text(f"{file}:{scop.span.line}: ", style="dim")
    title.append(f"{scop.function}, region {scop.index}", style="bold")
    pieces: list[RenderableType] = [title]
    if scop.parameters:
        pieces.append(f"parameters {', '.join(scop.parameters)}; context {scop.context}")
    arrays = []
    for array in scop.arrays:
        local = f" (copy of {array.copy_of})" if array.copy_of else " (local)"
        element = array.element_type.value + (local if array.is_local else "")
        arrays.append((array.name, element, array.extent))
    pieces.append(_table("arrays", ("name", "element", "extent"), arrays))
    if recomputed := recomputed_arrays(scop):
        pieces.append(f"  computed anew where it is read: {', '.join(recomputed)}")
    statements = ((s.name, s.span.line, s.text, s.domain) for s in scop.statements)
    accesses = (
        (statement.name, access.kind.value, access.text, access.relation)
        for statement in scop.statements
        for access in statement.accesses
    )
    pieces += [
        _table("statements", ("name", "line", "text", "domain"), statements),
        _table("accesses", ("statement", "kind", "reference", "relation"), accesses),
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
            pieces.append(_references(facts))
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


def _references(facts: KernelFacts) -> Table:
    footprints = facts.volume_kind is VolumeKind.FOOTPRINT
    elements = {
        position: f"{volume.elements}{'' if volume.exact or not footprints else ' (bound)'}"
        for volume in facts.volumes
        for position in volume.references[:1]
    }
    rows = []
    for position, (name, *reuse) in enumerate(reference_rows(facts.references)):
        one = facts.references[position]
        direction = "r" * one.reads + "w" * one.writes
        rows.append((name, direction, one.memory.value, *reuse, elements.get(position, '"')))
    columns = ("reference", "", "memory", "CMA", "temporal", "spatial", "elements a tile")
    return _table(None, columns, rows)


def _loop(loop: Loop) -> str:
    kind = "parallel" if loop.parallel else "serial"
    return f"{loop.name} ({kind}{'' if loop.trip_count is None else f', {loop.trip_count}'})"


def _table(title: str | None, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=True)
    for column in columns:
        table.add_column(column, overflow="fold", header_style="dim")
    for row in rows:
        table.add_row(*map(str, row))
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
    if output == "json":
        return json_text(inspection(program))
    return "\n".join(_scop_text(program.file, scop) for scop in program.scops)


def inspection(program: AnalysedProgram) -> Inspection:
    """Return all that is known of a program as text and plain nouns."""
    return Inspection(file=program.file, scops=tuple(map(_scop, program.scops)))


def _inspected(kind: type[T], *sources: object, **others: Any) -> T:
    """Return a noun made of the attributes of others that are called like its fields.

    The first that has one counts; what is a text in the noun is made one.
    """
    given = {}
    for field in fields(kind):  # type: ignore[arg-type]
        if field.name not in others:
            source = next(one for one in sources if hasattr(one, field.name))
            value = getattr(source, field.name)
            value = tuple(value) if isinstance(value, list) else value
            given[field.name] = str(value) if field.type == "str" else value
    return kind(**given, **others)


def _scop(analysed: AnalysedScop) -> InspectedScop:
    scheduled = analysed.scheduled
    scop = scheduled.scop
    statements = (
        _inspected(
            InspectedStatement,
            one,
            one.span,
            reads=tuple(str(access.relation) for access in one.reads),
            writes=(str(one.write.relation),),
        )
        for one in scop.statements
    )
    return _inspected(
        InspectedScop,
        scop,
        scop.span,
        scheduled,
        arrays=tuple(
            _inspected(InspectedArray, one, local=one.is_local, copy_of=one.copy_of or None)
            for one in scop.arrays
        ),
        statements=tuple(statements),
        dependences=_inspected(InspectedDependences, scheduled.dependences),
        statement_graph=statement_graph(scheduled.general),
        schedule_tree=scheduled.schedule.to_str(),
        kernels=tuple(map(_kernel, scheduled.kernels, analysed.facts)),
        recomputed=recomputed_arrays(scop),
    )


def _kernel(kernel: Kernel, facts: KernelFacts) -> InspectedKernel:
    return _inspected(
        InspectedKernel,
        kernel,
        facts,
        name=facts.name,
        references=facts.references,
        parallel=tuple(loop.name for loop in kernel.parallel_loops),
        volumes=tuple(_inspected(InspectedVolume, one) for one in facts.volumes),
    )
