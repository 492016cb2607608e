"""What ``eatss inspect`` prints, as JSON in isl's own notation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from eatss.analysis import KernelFacts, ReferenceFacts
from eatss.analysis.facts import Memory, VolumeKind
from eatss.analysis.program import AnalysedProgram, AnalysedScop
from eatss.codec import BY_NAME, json_text
from eatss.polyhedral.graph import statement_graph
from eatss.polyhedral.kernel import Kernel, Loop, Reduction
from eatss.polyhedral.program import StatementGraph
from eatss.polyhedral.recomputed_producers import recomputed_arrays
from eatss.report.inspection_table import inspection_table
from eatss.scops import ElementType, Statement


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectedArray:
    """An array; ``extent`` is the set of its elements. A ``local`` one is dead after the region.

    ``copy_of`` is the array of which it has the values from before the region; ``null`` for none.
    """

    name: str
    element_type: ElementType
    extent: str
    local: bool
    copy_of: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectedDependences:
    """The dependences of a region as relations of statement instances."""

    flow: str
    anti: str
    output: str


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
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
