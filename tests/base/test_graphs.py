import networkx as nx  # type: ignore[import-untyped]
import numpy as np

from eatss.base.graphs import components


def test_components_are_those_of_networkx_in_the_order_of_its_topological_sort() -> None:
    dice = np.random.default_rng(3)
    for _ in range(200):
        count = int(dice.integers(1, 12))
        edges = [
            *map(tuple, dice.integers(0, count, (int(dice.integers(0, 2 * count)), 2)).tolist())
        ]
        graph = nx.DiGraph(edges)
        graph.add_nodes_from(range(count))
        tied = nx.condensation(graph)
        members = {node: tuple(sorted(own["members"])) for node, own in tied.nodes(data=True)}
        order = nx.lexicographical_topological_sort(tied, key=lambda node: members[node])
        assert components(range(count), edges) == tuple(members[node] for node in order)
