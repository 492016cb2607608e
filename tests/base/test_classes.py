"""What belongs together, beside what networkx finds."""

from __future__ import annotations

import networkx as nx  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st

from eatss.base.classes import cycles_in_order

NUMBERS = range(7)
EDGES = st.lists(st.tuples(st.sampled_from(NUMBERS), st.sampled_from(NUMBERS)), max_size=12)


@given(EDGES)
def test_cycles_come_behind_what_leads_to_them_the_first_first(
    edges: list[tuple[int, int]],
) -> None:
    graph = nx.DiGraph(edges)
    graph.add_nodes_from(NUMBERS)
    tied = nx.condensation(graph)
    members = {node: sorted(data["members"]) for node, data in tied.nodes(data=True)}
    order = nx.lexicographical_topological_sort(tied, key=lambda node: members[node])
    assert cycles_in_order(NUMBERS, edges) == [members[node] for node in order]
