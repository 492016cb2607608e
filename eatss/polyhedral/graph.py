"""The statement graph: what depends on what, and what may share a loop."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import islpy as isl
import networkx as nx  # type: ignore[import-untyped]

from eatss.polyhedral.isl_names import IN, OUT, least_difference, maps_of
from eatss.polyhedral.program import General, StatementGraph
from eatss.polyhedral.scops import Scop

_Edge = tuple[str, str]


def statement_graph(general: General) -> StatementGraph:
    """Build the statement graph of a region, as it is for any sizes.

    Edges are flow, anti and output dependences. Two components may be fused if no third one
    has to run between them and some loop of each, legal as its outermost, can be shared:
    aligned up to a constant shift, no dependence between the two points backwards.
    """
    scop, dependences = general.scop, general.dependences
    relations: dict[_Edge, list[isl.Map]] = {}
    for relation in maps_of(dependences.memory_based):
        names = relation.get_tuple_name(IN), relation.get_tuple_name(OUT)
        relations.setdefault(names, []).append(relation)
    position = {statement.name: k for k, statement in enumerate(scop.statements)}
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(position)
    graph.add_edges_from(relations)
    condensed = nx.condensation(graph)
    members = condensed.nodes(data="members")
    first = {node: min(position[name] for name in names) for node, names in members}
    order = list(nx.lexicographical_topological_sort(condensed, key=first.__getitem__))
    components = tuple(
        tuple(sorted(condensed.nodes[node]["members"], key=position.__getitem__)) for node in order
    )
    between = _transitive_pairs(condensed, order)
    fusable = tuple(
        (a, b)
        for a in range(len(components))
        for b in range(a + 1, len(components))
        if (a, b) not in between and _may_fuse(scop, relations, components[a], components[b])
    )
    edges = tuple(sorted(relations, key=lambda e: (position[e[0]], position[e[1]])))
    return StatementGraph(edges=edges, components=components, fusable=fusable)


def _transitive_pairs(condensed: nx.DiGraph[int], order: list[int]) -> frozenset[tuple[int, int]]:
    """Return the pairs of components joined by a path through a third one."""
    index = {node: k for k, node in enumerate(order)}
    reach = {node: nx.descendants(condensed, node) for node in order}
    return frozenset(
        (index[a], index[c]) for a in order for b in condensed.successors(a) for c in reach[b]
    )


def _may_fuse(
    scop: Scop,
    relations: dict[_Edge, list[isl.Map]],
    first: tuple[str, ...],
    second: tuple[str, ...],
) -> bool:
    return any(
        all(
            least_difference(relation, one, other) is not None
            for source, sink in product(first, second)
            for relation in relations.get((source, sink), ())
        )
        for one in _outermost(scop, relations, first)
        for other in _outermost(scop, relations, second)
    )


def _outermost(
    scop: Scop, relations: dict[_Edge, list[isl.Map]], component: tuple[str, ...]
) -> Iterator[int]:
    """Yield the loops, by depth, that no dependence inside a component crosses backwards."""
    depth = min(len(scop.statement(name).loops) for name in component)
    inside = [r for pair in product(component, component) for r in relations.get(pair, ())]
    for level in range(depth):
        least = [least_difference(relation, level, level) for relation in inside]
        if all(value is not None and value >= 0 for value in least):
            yield level
