"""The values of scalars: which accesses they join, and the iterations that they stay in."""

from __future__ import annotations

from collections.abc import Iterator

import islpy as isl
import networkx as nx  # type: ignore[import-untyped]

from eatss.frozen import frozen
from eatss.isl_names import equal_leading_dims, maps_of
from eatss.polyhedral.accesses import Place, dependent_accesses
from eatss.polyhedral.dependences import flow_of, tag_accesses
from eatss.scops import Array, Scop


@frozen
class LiveRange:
    """Accesses of a scalar that values join.

    ``places`` are the statements and, of accesses spelled alike, the first. ``flow`` maps the
    instances that write to those that read. ``depth`` is how many outer loops tell the iterations
    apart that values stay in (0: none, or a value is from before the region), ``deepest`` how many
    loops are around the innermost of the statements.
    """

    scalar: Array
    places: frozenset[Place]
    flow: isl.UnionMap
    depth: int
    deepest: int


def live_ranges(scop: Scop) -> Iterator[LiveRange]:
    """Yield the live ranges of the scalars that are dead after the region."""
    scalars = {one.name: one for one in scop.arrays if not one.n_dims and scop.is_dead_after(one)}
    if not scalars:
        return
    accesses = tag_accesses(scop)
    places = {f"__ref{item.number}": item.place for item in dependent_accesses(scop)}
    own = isl.UnionSet.empty(scop.context.get_space())
    for scalar in scalars.values():
        own = own.union(isl.Set.universe(scalar.extent.get_space()).to_union_set())
    flow = flow_of(
        accesses.reads.intersect_range(own),
        accesses.schedule,
        must=accesses.writes.intersect_range(own),
    )
    from_before = {places[_tag(one.domain())] for one in maps_of(flow.get_may_no_source())}
    values = [
        (places[_tag(one.domain())], places[_tag(one.range())], one.factor_domain())
        for one in maps_of(flow.get_may_dependence())
    ]
    joined = nx.Graph([(written, read) for written, read, _ in values])
    for group in nx.connected_components(joined):
        inside = isl.UnionMap.empty(scop.context.get_space())
        for written, _, relation in values:
            if written in group:
                inside = inside.union(relation.to_union_map())
        name, at = next(iter(group))
        loops = [len(scop.statement(name).loops) for name, _ in group]
        yield LiveRange(
            scalar=scalars[scop.statement(name).accesses[at].array],
            places=frozenset(group),
            flow=inside,
            depth=_depth(inside, min(loops)) if group.isdisjoint(from_before) else 0,
            deepest=max(loops),
        )


def _tag(tagged: isl.Set) -> str:
    """Return the name of the access in ``[S[i] -> __ref3[]]``."""
    return str(tagged.unwrap().get_tuple_name(isl.dim_type.out))


def _depth(values: isl.UnionMap, most: int) -> int:
    """Return how many outer loops, up to ``most``, have one value where one is written and read."""
    same = (k for k in range(most, 0, -1) if values.is_subset(equal_leading_dims(values, k)))
    return next(same, 0)
