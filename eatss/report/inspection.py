"""What ``eatss inspect`` prints, as JSON in isl's own notation."""

from __future__ import annotations

import json
from typing import Any

from eatss.analysis import KernelFacts, ReferenceFacts, Volume
from eatss.analysis.program import AnalysedProgram, AnalysedScop
from eatss.polyhedral.graph import statement_graph
from eatss.polyhedral.kernel import Kernel, Loop, Reduction
from eatss.report.inspection_table import inspection_table
from eatss.scop import Statement


def render_inspection(program: AnalysedProgram, output: str) -> str:
    """Return an inspection as ``table`` or ``json``."""
    if output == "json":
        return json.dumps(inspection_dict(program), indent=2, ensure_ascii=False) + "\n"
    return inspection_table(program)


def inspection_dict(program: AnalysedProgram) -> dict[str, Any]:
    """Return all that is known of a program as plain JSON types, sets in isl notation."""
    return {
        "schema_version": 1,
        "file": program.file,
        "scops": [_scop(scop) for scop in program.scops],
    }


def _scop(analysed: AnalysedScop) -> dict[str, Any]:
    scheduled = analysed.scheduled
    scop = scheduled.scop
    dependences = scheduled.dependences
    graph = statement_graph(scheduled.general)
    return {
        "function": scop.function,
        "line": scop.span.line,
        "parameters": list(scop.parameters),
        "context": str(scop.context),
        "arrays": [
            {
                "name": array.name,
                "element_type": array.element_type.value,
                "extent": str(array.extent),
                "local": array.is_local,
            }
            for array in scop.arrays
        ],
        "statements": [_statement(statement) for statement in scop.statements],
        "dependences": {
            "flow": str(dependences.flow),
            "anti": str(dependences.anti),
            "output": str(dependences.output),
        },
        "statement_graph": {
            "edges": [list(edge) for edge in graph.edges],
            "components": [list(component) for component in graph.components],
            "fusable": [list(pair) for pair in graph.fusable],
        },
        "schedule_tree": scheduled.schedule.to_str(),
        "host_statements": list(scheduled.host_statements),
        "kernels": [
            _kernel(kernel, facts)
            for kernel, facts in zip(scheduled.kernels, analysed.facts, strict=True)
        ],
    }


def _statement(statement: Statement) -> dict[str, Any]:
    return {
        "name": statement.name,
        "line": statement.span.line,
        "column": statement.span.column,
        "loops": list(statement.loops),
        "domain": str(statement.domain),
        "reads": [str(access.relation) for access in statement.reads],
        "writes": [str(statement.write.relation)],
        "schedule": str(statement.schedule),
        "text": statement.text,
    }


def _kernel(kernel: Kernel, facts: KernelFacts) -> dict[str, Any]:
    return {
        "name": facts.name,
        "statements": list(kernel.statements),
        "host_loops": list(kernel.host_loops),
        "loops": [_loop(loop) for loop in kernel.loops],
        "inner_loops": [_loop(loop) for loop in kernel.inner_loops],
        "parallel": [loop.name for loop in kernel.parallel_loops],
        "permutable": kernel.permutable,
        "schedule": str(kernel.schedule),
        "cma_loop": facts.cma_loop,
        "stride_one": dict(facts.stride_one),
        "distinct_references": facts.distinct_references,
        "element_bytes": facts.element_bytes,
        "references": [_reference(reference) for reference in facts.references],
        "volume_kind": facts.volume_kind.value,
        "volumes": [_volume(volume) for volume in facts.volumes],
        "reductions": [_reduction(reduction) for reduction in kernel.reductions],
    }


def _loop(loop: Loop) -> dict[str, Any]:
    return {"name": loop.name, "parallel": loop.parallel, "trip_count": loop.trip_count}


def _reference(reference: ReferenceFacts) -> dict[str, Any]:
    return {
        "array": reference.array,
        "access": reference.access,
        "statements": list(reference.statements),
        "reads": reference.reads,
        "writes": reference.writes,
        "memory": reference.memory.value,
        "cma": reference.cma,
        "temporal": list(reference.temporal),
        "invariant": list(reference.invariant),
        "spatial": list(reference.spatial),
    }


def _volume(volume: Volume) -> dict[str, Any]:
    return {
        "array": volume.array,
        "memory": volume.memory.value,
        "references": list(volume.references),
        "elements": str(volume.elements),
        "exact": volume.exact,
    }


def _reduction(reduction: Reduction) -> dict[str, Any]:
    return {
        "statement": reduction.statement,
        "array": reduction.array,
        "operator": reduction.operator,
        "loops": list(reduction.loops),
    }
