"""A piece cut into parts: statements that share the serial loops inside a block.

An initialisation or a finish that the schedule puts at one iteration of a serial loop runs before
or after that loop instead of behind a guard in it. Statements are only parted where no
dependence at a point runs backwards, so parts one after another compute the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce

import islpy as isl
import networkx as nx  # type: ignore[import-untyped]

from eatss.base.frozen import frozen
from eatss.lower.schedule.pieces import Piece
from eatss.polyhedral import Dependences
from eatss.polyhedral.isl_names import output_affs, parameters_as_dims, without_parameters
from eatss.polyhedral.tree import alone


@frozen
class Part:
    """Statements in source order and the serial band loops that run around them."""

    statements: tuple[str, ...]
    serial: tuple[str, ...]


def parts_of(
    piece: Piece, mapped: Sequence[str], serial: Sequence[str], dependences: Dependences
) -> tuple[Part, ...]:
    """Cut a piece whose loops ``mapped`` go to threads into parts, in the order they run."""
    names = [statement.name for statement in piece.statements]
    moving = {name: _moving(piece, name, mapped, serial) for name in names}
    if not any(moving.values()):
        return (Part(statements=tuple(names), serial=()),)
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(names)
    tied = tied_instances(piece, mapped)
    graph.add_edges_from(edges(tied, dependences))
    for users in _users_of_one_place(piece, moving, tied, _backwards(piece, serial, dependences)):
        nx.add_cycle(graph, users)
    condensed = nx.condensation(graph)
    members = {
        node: tuple(sorted(data["members"], key=names.index))
        for node, data in condensed.nodes(data=True)
    }
    parts: list[Part] = []
    done: set[int] = set()
    while len(done) < len(members):
        ready = [
            node
            for node in sorted(members, key=lambda n: names.index(members[n][0]))
            if node not in done and all(p in done for p in condensed.predecessors(node))
        ]
        loops = {n: _union(serial, [moving[name] for name in members[n]]) for n in ready}
        still = [n for n in ready if not loops[n]]
        chosen = still or [n for n in ready if loops[n] == loops[ready[0]]]
        done.update(chosen)
        statements = tuple(sorted((name for n in chosen for name in members[n]), key=names.index))
        parts.append(Part(statements=statements, serial=loops[chosen[0]]))
    return tuple(_merged(parts, graph))


def _users_of_one_place(
    piece: Piece,
    moving: Mapping[str, frozenset[str]],
    tied: Mapping[str, isl.UnionSet],
    backwards: isl.UnionMap,
) -> Iterator[tuple[str, ...]]:
    """Yield the statements that share a place which serial iterations set anew.

    They stay together. Of scalars, dependences lead from a read to the next write of the original
    order, which may be another thread's, while here each thread has a scalar of its own. Writes
    that change places in the schedule do so around what reads the last of them, which has to stay
    among them: ``for (j = m; j-- > 0;) …; out[i] = j;``.
    """
    for array in dict.fromkeys(s.write.array for s in piece.statements):
        users = [s.name for s in piece.statements if s.uses(array)]
        writers = [s for s in piece.statements if s.write.array == array and moving[s.name]]
        if any(
            not output_affs(s.write.relation)
            or not backwards.intersect_domain(tied[s.name]).intersect_range(tied[s.name]).is_empty()
            for s in writers
        ):
            yield tuple(users)


def _backwards(piece: Piece, serial: Sequence[str], dependences: Dependences) -> isl.UnionMap:
    """Return the writes of one place that change their order in the serial loops."""
    functions = (alone(loop.member.function) for loop in piece.band if loop.name in serial)
    time = reduce(isl.MultiUnionPwAff.flat_range_product, functions)
    return dependences.output.lex_gt_at_multi_union_pw_aff(time)


def _merged(parts: Sequence[Part], graph: nx.DiGraph[str]) -> list[Part]:
    """Join neighbours that run in no serial loop and do not depend on each other.

    Inside a part the schedule decides the order, and it may have told dependent statements apart
    by the serial loop only.
    """
    joined: list[Part] = []
    for part in parts:
        last = joined[-1] if joined else None
        if (
            last is not None
            and not part.serial
            and not last.serial
            and not any(graph.has_edge(a, b) for a in last.statements for b in part.statements)
        ):
            joined[-1] = Part(statements=last.statements + part.statements, serial=())
        else:
            joined.append(part)
    return joined


def _union(order: Sequence[str], groups: Sequence[frozenset[str]]) -> tuple[str, ...]:
    together = frozenset().union(*groups)
    return tuple(name for name in order if name in together)


def _moving(
    piece: Piece, statement: str, mapped: Sequence[str], serial: Sequence[str]
) -> frozenset[str]:
    """Return the serial loops of which a statement has several iterations at one point."""
    domain = piece.domain_of(statement)
    others = [loop.name for loop in piece.band if loop.name not in (*mapped, *serial)]
    domain = without_parameters(domain, others)
    moving = set()
    for name in serial:
        rest = [other for other in serial if other != name]
        params = without_parameters(domain.params(), rest)
        if not _is_determined(params, name):
            moving.add(name)
    return frozenset(moving)


def _is_determined(params: isl.Set, name: str) -> bool:
    line = parameters_as_dims(params, (name,), "line")
    return isl.Map.from_range(line).is_single_valued()


def tied_instances(piece: Piece, mapped: Sequence[str]) -> dict[str, isl.UnionSet]:
    """Return the instances of each statement at one point of a launch."""
    others = [loop.name for loop in piece.band if loop.name not in mapped]
    pairs = zip(piece.statements, piece.placed, strict=True)
    return {one.name: without_parameters(at, others).to_union_set() for one, at in pairs}


def edges(tied: Mapping[str, isl.UnionSet], dependences: Dependences) -> Iterator[tuple[str, str]]:
    """Yield the dependences between different statements at one point of a launch."""
    for source, at_source in tied.items():
        leaving = dependences.memory_based.intersect_domain(at_source)
        for sink, at_sink in tied.items():
            if source != sink and not leaving.intersect_range(at_sink).is_empty():
                yield source, sink
