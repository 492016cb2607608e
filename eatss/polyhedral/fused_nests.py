"""Nests that follow each other become one: what makes a value shares a launch with what uses it.

    for (i) for (j) { Y[i][j] = 0; for (k) Y[i][j] += X[i][k] * W[j][k]; }
    for (i) for (j) Y[i][j] = fmax(Y[i][j] + b[j], 0);

isl keeps nests apart where one has fewer loops than the other. Where their parallel loops can be
matched so that no dependence between them leaves its point, they may share a band. What has no
serial loop then stands before the first iteration of those of the other, or behind the last: an
epilogue. Nests with as many serial loops, or none, that need nothing of each other and read the
same elements go through them together: several results from one reading.

A reduction of what a nest makes may share the loops of its terms, the last statement of a point:

    for (i) for (j) { d[i][j] = 0; for (k) d[i][j] += (X[i][k] - Y[j][k]) * (X[i][k] - Y[j][k]); }
    for (i) for (j) best[i] = fmin(best[i], d[i][j]);

Points then have parts of it, which code combines (:attr:`Statement.combined`), and ``d`` stays in
registers. What begins the reduction is moved in front of both, what uses it behind them. A sum of
all there is may have such parts alone, where lanes along no loop find neighbours in all that is
read: ``t += A[i][j] * B[j][i]``.

Recurrences that need nothing of each other are side by side: the outermost loop of one stands
behind that of the other, so that each block has rows of one of them.

What has no serial loop may run in the steps of a recurrence, each point in the last one that makes
what it needs:

    for (i) for (j = n; j-- > 0;) Y[i][j] = a * Y[i][j + 1] + X[i][j];
    for (i) for (j) Z[i][j] = X[i][j] - Y[i][j];  // at n - 1 - j

isl may also lay one loop of a band behind another one, by ``N + j``. Such loops are parted, so that
they are phases of the same rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cmp_to_key, partial, reduce
from itertools import combinations, compress, pairwise, permutations, product
from operator import not_

import islpy as isl

from eatss.base.diagnostics import IllegalScheduleError
from eatss.base.frozen import fixed
from eatss.base.memo import remembered
from eatss.base.targets import Fusion
from eatss.polyhedral.dependences import tried
from eatss.polyhedral.expression import combiner_of
from eatss.polyhedral.isl_names import (
    AffineForm,
    affine_form,
    involved_dims,
    linear_function,
    maps_of,
    node_kind,
    only_form,
    output_affs,
    set_names,
    sets_of,
)
from eatss.polyhedral.kernel import ScheduledScop
from eatss.polyhedral.kernels import update_of
from eatss.polyhedral.parts import still_loops
from eatss.polyhedral.schedule import copied_to, cut_again
from eatss.polyhedral.scheduling import local_dependences
from eatss.polyhedral.scop import Scop
from eatss.polyhedral.source_order import in_source_order
from eatss.polyhedral.tree import (
    PARTED,
    bands,
    branches,
    coincident,
    functions,
    is_tilable,
    parts_of,
    together,
    with_band,
    with_parts,
)

_OPERATIONS = 1_000_000
"""What isl may do for one region."""

_MOST_LOOPS = 4
"""Parallel loops that are matched: there are 24 ways."""


@remembered
def with_fused_nests(scheduled: ScheduledScop, fusion: Fusion) -> ScheduledScop:
    """Return a region whose nests share bands where that is legal.

    The region itself where none do. Schedules are checked as all are.
    """
    found = tried(scheduled.scop, _OPERATIONS, partial(_changed, scheduled, fusion))
    return scheduled if found is None else found


def _changed(scheduled: ScheduledScop, fusion: Fusion) -> ScheduledScop:
    if fusion == "source":
        for schedule in in_source_order(scheduled):
            with suppress(IllegalScheduleError):
                return cut_again(scheduled, schedule)
        return scheduled
    root = scheduled.schedule.get_root()
    nests = (_Nest.of(one) for one in bands(root) if fusion == "rows")
    if any(nest is not None and len(nest.parts()) > 1 for nest in nests):
        scheduled = cut_again(scheduled, _parted(root).get_schedule())
    scheduled = _with_rows_first(scheduled) if fusion == "rows" else scheduled
    own = "users" if fusion == "sums" else fusion
    found = _with_fused_nests(scheduled, own)
    return _with_reductions(found) if fusion == "sums" else found


def _beside(scheduled: ScheduledScop, node: isl.ScheduleNode) -> isl.ScheduleNode | None:
    """Return a sequence in which recurrences that need nothing of each other are one nest.

    All that needs nothing of each other comes together: what runs once, then nests. ``None`` where
    there are no such recurrences.
    """
    sums = {one.statement for own in scheduled.kernels for one in own.reductions}
    nodes = list(parts_of(node))
    needed = local_dependences(scheduled.dependences.needed, node)
    layers = _generations([one.get_domain() for one in nodes], needed)
    order, found = list[isl.ScheduleNode | _Nest](), False
    for layer in layers:
        once = [nodes[at].get_domain() for at in layer if node_kind(nodes[at]) == "leaf"]
        if once:
            order.append(_Nest(reduce(isl.UnionSet.union, once), (), (), tuple(once)))
        last: _Nest | None = None
        for one in (nodes[at] for at in layer if node_kind(nodes[at]) != "leaf"):
            own = _Nest.of(one)
            if own is None or not own.serial or sums & {*set_names(own.domain)}:
                order.append(one)
                continue
            both = None if last is None else _behind(last, own)
            if both is not None:
                order, found = [one for one in order if one is not last], True
            last = both or own
            order.append(last)
    return _in_order(node, order) if found else None


def _generations(domains: Sequence[isl.UnionSet], relation: isl.UnionMap) -> list[list[int]]:
    """Return the numbers of sets so that a relation leads forward between them, if it can."""
    import networkx as nx  # type: ignore[import-untyped]  # noqa: PLC0415 - sizes alone need none

    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(domains)))
    for (one, first), (other, then) in permutations(enumerate(domains), 2):
        if not relation.intersect_domain(first).intersect_range(then).is_empty():
            graph.add_edge(one, other)
    ordered = nx.is_directed_acyclic_graph(graph)
    return [sorted(one) for one in nx.topological_generations(graph)] if ordered else []


def _behind(first: _Nest, then: _Nest) -> _Nest | None:
    """Return two nests as one, the outermost loop of one behind that of the other.

    Loops inside begin together.
    """
    count = len(first.parallel)
    if (count, len(first.serial)) != (len(then.parallel), len(then.serial)):
        return None
    loops = list[isl.UnionPwAff]()
    for one, other in zip(
        (*first.parallel, *first.serial), (*then.parallel, *then.serial), strict=True
    ):
        values, own = (
            reduce(isl.Set.union, nest.values(loop)).coalesce()
            for nest, loop in ((first, one), (then, other))
        )
        end = values.dim_max(0).add_constant_val(isl.Val.one(values.get_ctx()))
        place = only_form(values.dim_min(0) if loops else end)
        begin = only_form(own.dim_min(0))
        if place is None or begin is None:
            return None
        by = isl.UnionPwAff.aff_on_domain(then.domain, place.sub(begin))
        loops.append(one.union_add(other.add(by)))
    return first.beside(then, loops[:count], loops[count:])


def _with_rows_first(scheduled: ScheduledScop) -> ScheduledScop:
    """Return a region whose nests begin with the parallel loops that others have alone."""
    root = scheduled.schedule.get_root().get_child(0)
    parts = list(parts_of(root))
    nests = [_Nest.of(one) for one in parts]
    turned = [one and _rows_first(scheduled, root, one, nests) for one in nests]
    if not any(turned):
        return scheduled
    tree = _in_order(root, [own or part for own, part in zip(turned, parts, strict=True)])
    with suppress(IllegalScheduleError):
        return cut_again(scheduled, tree.get_schedule())
    return scheduled


def _rows_first(
    scheduled: ScheduledScop, node: isl.ScheduleNode, nest: _Nest, others: Sequence[_Nest | None]
) -> _Nest | None:
    """Return a nest whose first loops are those of a nest with fewer, ``None`` if it begins so.

    What one needs of the other is at the same point of these.
    """
    for other in others:
        if other is None or not 0 < len(other.parallel) < len(nest.parallel) <= _MOST_LOOPS:
            continue
        between = _between(scheduled, node, nest, other)
        if between.is_empty():
            continue
        for number, order in enumerate(permutations(nest.parallel)):
            pairs = zip(order, other.parallel, strict=False)
            rows = together([loop.union_add(row) for loop, row in pairs])
            if between.is_subset(between.eq_at_multi_union_pw_aff(rows)):
                return replace(nest, parallel=order) if number else None
    return None


def _with_reductions(scheduled: ScheduledScop) -> ScheduledScop:
    """Return a region in which reductions share the nests that make what they reduce."""
    root = scheduled.schedule.get_root().get_child(0)
    parts = list(parts_of(root))
    nests = [_Nest.of(one) for one in parts]
    for at, place in combinations(range(len(parts)), 2):
        first, then = nests[at], nests[place]
        if first is None or then is None:
            continue
        for reduced, front, behind in _summed(scheduled, then):
            both = _as_one(scheduled, root, first, reduced, "users")
            if both is None:
                continue
            between = parts[at + 1 : place]  # comes in front
            tree = _in_order(
                root, [*parts[:at], *between, *front, both, *behind, *parts[place + 1 :]]
            )
            with suppress(IllegalScheduleError):
                return _with_reductions(_combined(scheduled, reduced, tree, both.assumes))
    for at, part in enumerate(parts):
        crossed = _crossed(scheduled, part)
        if crossed is not None:
            tree = _in_order(root, [*parts[:at], crossed, *parts[at + 1 :]])
            with suppress(IllegalScheduleError):
                return _with_reductions(_combined(scheduled, crossed, tree))
    return scheduled


def _combined(
    scheduled: ScheduledScop,
    reduced: _Nest,
    tree: isl.ScheduleNode,
    assumes: isl.Set | None = None,
) -> ScheduledScop:
    """Return a region with another tree, in which points have parts of a reduction."""
    (name,) = set_names(reduced.domain)
    statements = tuple(
        replace(one, combined=one.combined or one.name == name) for one in scheduled.scop.statements
    )
    marked = replace(scheduled, scop=replace(scheduled.scop, statements=statements))
    return cut_again(marked, tree.get_schedule(), assumes)


def _crossed(scheduled: ScheduledScop, part: isl.ScheduleNode) -> _Nest | None:
    """Return the nest of a reduction of all to one element, alone, of which points have parts.

    ``None`` for others, and where lanes along one loop serve all that is read.
    """
    scop, names = scheduled.scop, set_names(part.get_domain())
    own = scop.statement(names[0])
    kind = scop.types[own.write.array]
    operator = update_of(own, kind)
    if len(names) > 1 or own.combined or operator is None or still_loops(own) != own.loops:
        return None
    reads = [output_affs(one.relation) for one in own.reads if scop.array(one.array).n_dims > 1]
    moved = [[{*involved_dims(one)} for one in read] for read in reads]
    apart = any(
        set().union(*one) == set().union(*other)
        and one[-1]
        and other[-1]
        and one[-1].isdisjoint(other[-1])
        for one, other in combinations(moved, 2)
    )
    once = [one.array for one in own.accesses].count(own.write.array) == 2
    if not apart or not once or combiner_of(operator, kind) is None:
        return None
    return _Nest(
        domain=own.domain.to_union_set(),
        parallel=tuple(map(isl.UnionPwAff.from_pw_aff, output_affs(own.domain.identity()))),
        serial=(),
        leaves=(own.domain.to_union_set().universe(),),
    )


def _summed(
    scheduled: ScheduledScop, nest: _Nest
) -> Iterator[tuple[_Nest, list[_Nest], list[_Nest]]]:
    """Yield a reduction of a nest, its loops shared by points, between what else the nest does.

    That runs once in its serial loops, as what begins the reduction, or uses what it comes to.
    """
    names = set_names(nest.domain)
    kernel = scheduled.kernel_of.get(names[0]) if nest.serial else None
    if kernel is None or kernel.inner_loops or {*kernel.statements} != {*names}:
        return
    serial = {loop.name for loop in kernel.loops if not loop.parallel}
    parts = [
        nest.within(own)
        for leaf in nest.leaves
        for own in map(isl.UnionSet.from_set, sets_of(leaf))
    ]
    for one in kernel.reductions:
        kind = scheduled.scop.array(one.array).element_type
        if not serial <= {*one.loops} or combiner_of(one.operator, kind) is None:
            continue
        kept, others = (
            [own for own in parts if (set_names(own.domain) == (one.statement,)) == summed]
            for summed in (True, False)
        )
        values = (found for own in others for loop in own.serial for found in own.values(loop))
        if len(kept) != 1 or not all(isl.Map.from_range(own).is_single_valued() for own in values):
            continue
        (own,), once = kept, [replace(other, serial=()) for other in others]
        after = scheduled.dependences.memory_based.intersect_domain(own.domain)
        is_after = [not after.intersect_range(other.domain).is_empty() for other in once]
        shared = replace(own, parallel=(*own.parallel, *own.serial), serial=())
        yield shared, [*compress(once, map(not_, is_after))], [*compress(once, is_after)]


def _in_order(
    root: isl.ScheduleNode, parts: Sequence[isl.ScheduleNode | _Nest], *, in_order: bool = True
) -> isl.ScheduleNode:
    """Return a tree of subtrees and nests, in their order if that is asked."""

    def filled(at: int, leaf: isl.ScheduleNode) -> isl.ScheduleNode:
        one = parts[at]
        return one.at_leaf(leaf) if isinstance(one, _Nest) else copied_to(leaf, one)

    if len(parts) == 1:
        return filled(0, root.cut())
    filters = [
        one.domain.universe() if isinstance(one, _Nest) else one.parent().filter_get_filter()
        for one in parts
    ]
    return with_parts(root.cut(), filters, filled, in_order=in_order)


def _parted(node: isl.ScheduleNode) -> isl.ScheduleNode:
    """Return a node of a tree in which loops that take turns in a band are bands of their own."""
    nest = _Nest.of(node)
    if nest is None:
        for at in range(node.n_children()):
            node = _parted(node.get_child(at)).parent()
        return node
    parts = nest.parts()
    return node if len(parts) == 1 else _in_order(node, parts)


@remembered
def _with_fused_nests(scheduled: ScheduledScop, fusion: Fusion) -> ScheduledScop:
    for root, assumes in _fused(scheduled, scheduled.schedule.get_root(), fusion):
        with suppress(IllegalScheduleError):
            found = cut_again(scheduled, root.get_schedule(), assumes)
            return found if fusion == "beside" else _with_fused_nests(found, fusion)
    return scheduled


@fixed
class _Nest:
    """A band: its instances, parallel and serial loops, and the leaves below it in their order.

    It is right for sizes that it ``assumes``, ``None`` for all.
    """

    domain: isl.UnionSet
    parallel: tuple[isl.UnionPwAff, ...]
    serial: tuple[isl.UnionPwAff, ...]
    leaves: tuple[isl.UnionSet, ...]
    assumes: isl.Set | None = None

    @classmethod
    def of(cls, node: isl.ScheduleNode) -> _Nest | None:
        """Return the nest at a node, ``None`` where there is none, or loops stand below it."""
        if not is_tilable(node):
            return None
        count, own, leaves = sum(coincident(node)), functions(node), _leaves(node.get_child(0))
        if not all(coincident(node)[:count]) or not leaves:
            return None
        return cls(node.get_domain(), tuple(own[:count]), tuple(own[count:]), leaves)

    def at_leaf(self, leaf: isl.ScheduleNode) -> isl.ScheduleNode:
        """Put it at a leaf."""
        if not self.parallel:
            return with_parts(leaf, self.leaves, lambda _, leaf: leaf, in_order=True)
        marks = [True] * len(self.parallel) + [False] * len(self.serial)
        band = with_band(leaf, (*self.parallel, *self.serial), marks)
        if len(self.leaves) == 1:
            return band
        below = band.get_child(0)
        return with_parts(below, self.leaves, lambda _, leaf: leaf, in_order=True).parent()

    def beside(
        self, then: _Nest, parallel: Iterable[isl.UnionPwAff], serial: Iterable[isl.UnionPwAff]
    ) -> _Nest:
        """Return what runs another nest too, behind this one in each point of their loops."""
        domain = self.domain.union(then.domain)
        return _Nest(domain, tuple(parallel), tuple(serial), (*self.leaves, *then.leaves))

    def parts(self) -> list[_Nest]:
        """Return nests that compute the same one after the other, each along its counter."""
        if len(self.serial) != 1:
            return [self]
        (loop,) = self.serial
        relation = isl.UnionMap.from_union_pw_aff(loop).intersect_domain(self.domain)
        reached = [_Reach.of(one, self.leaves) for one in maps_of(relation)]
        groups: list[list[_Reach]] = []
        for own in reached:
            if own.moves:
                apart = [one for one in groups if _before(one, [own]) or _before([own], one)]
                groups = [*apart, [own, *(one for g in groups if g not in apart for one in g)]]
        if len(groups) < 2:
            return [self]
        groups.sort(key=cmp_to_key(_order))
        domains: list[list[isl.UnionSet]] = [[] for _ in groups]
        for own in reached:
            behind = sum(_before(one, [own]) for one in groups[:-1])
            domains[behind].append(own.domain)
        moving = [one.domain for one in reached if one.moves]
        return [self._part(reduce(isl.UnionSet.union, own), moving) for own in domains]

    def _part(self, domain: isl.UnionSet, moving: Collection[isl.UnionSet]) -> _Nest:
        """Return the nest of some statements, the first of which that moves along its counter."""
        found = self.within(domain)
        (loop,) = found.serial
        first = next(one for one in moving if one.is_subset(domain))
        (own,) = maps_of(isl.UnionMap.from_union_pw_aff(loop.intersect_domain(first)))
        (function,) = output_affs(own)
        form = affine_form(function)
        return found if form is None else replace(found, serial=(_shifted(loop, form),))

    def within(self, domain: isl.UnionSet) -> _Nest:
        """Return the nest of some of its instances."""
        leaves = (one.intersect(domain) for one in self.leaves)
        return replace(
            self,
            domain=self.domain.intersect(domain),
            parallel=tuple(one.intersect_domain(domain) for one in self.parallel),
            serial=tuple(one.intersect_domain(domain) for one in self.serial),
            leaves=tuple(one for one in leaves if not one.is_empty()),
        )

    def values(self, function: isl.UnionPwAff) -> list[isl.Set]:
        """Return which values a loop takes in each of its statements."""
        relation = isl.UnionMap.from_union_pw_aff(function).intersect_domain(self.domain)
        return [one.range() for one in maps_of(relation)]


@fixed
class _Reach:
    """The values that a loop takes in a statement, and the number of the leaf that it is at."""

    domain: isl.UnionSet
    values: isl.Set
    leaf: int

    @classmethod
    def of(cls, relation: isl.Map, leaves: Sequence[isl.UnionSet]) -> _Reach:
        """Return the values of a map from instances."""
        domain = relation.domain().to_union_set().universe()
        leaf = next(at for at, one in enumerate(leaves) if not one.is_disjoint(domain))
        return cls(domain, relation.range(), leaf)

    @property
    def moves(self) -> bool:
        """Whether there are several."""
        return not isl.Map.from_range(self.values).is_single_valued()

    def is_before(self, other: _Reach) -> bool:
        """Tell whether all instances run before all of another statement, for all sizes."""
        if self.leaf < other.leaf:
            return bool(self.values.lex_gt_set(other.values).is_empty())
        return bool(self.values.lex_ge_set(other.values).is_empty())


def _before(first: Sequence[_Reach], then: Sequence[_Reach]) -> bool:
    return all(one.is_before(other) for one in first for other in then)


def _order(one: Sequence[_Reach], other: Sequence[_Reach]) -> int:
    return -1 if _before(one, other) else 1


def _shifted(loop: isl.UnionPwAff, form: AffineForm) -> isl.UnionPwAff:
    """Return a loop that begins as much earlier as a function of it has sizes and constants."""
    by = linear_function(loop.get_ctx(), form.constant, form.parameters)
    return loop.sub(isl.UnionPwAff.pw_aff_on_domain(loop.domain(), by))


def _leaves(node: isl.ScheduleNode) -> tuple[isl.UnionSet, ...]:
    """Return the leaves of a subtree, none where it has bands."""
    if node_kind(node) == "leaf":
        return (node.get_domain().universe(),)
    found = [_leaves(one) for one in branches(node)] if node_kind(node) in PARTED else []
    return tuple(one for own in found for one in own) if all(found) else ()


def _fused(
    scheduled: ScheduledScop, node: isl.ScheduleNode, fusion: Fusion
) -> Iterator[tuple[isl.ScheduleNode, isl.Set | None]]:
    """Yield trees in which two neighbours are one nest, and the sizes that each is right for."""
    if is_tilable(node):
        return
    if node_kind(node) in PARTED and fusion == "beside":
        own = _beside(scheduled, node)
        yield from () if own is None else ((own, None),)
        return
    for at in range(node.n_children()):
        yield from _fused(scheduled, node.get_child(at), fusion)
    if node_kind(node) not in PARTED:
        return
    ordered, parts = node_kind(node) == "sequence", list(branches(node))
    members = [  # those of a set need nothing of each other
        list(branches(one)) if ordered and node_kind(one) == "set" else [one] for one in parts
    ]
    nests = [[*map(_Nest.of, own)] for own in members]
    places = range(len(parts))
    for at, other in pairwise(places) if ordered else combinations(places, 2):
        for (here, first), (there, then) in product(enumerate(nests[at]), enumerate(nests[other])):
            if first is None or then is None:
                continue
            uses = bool(first.serial) and not then.serial  # a sum
            if not uses and len(nests[at]) + len(nests[other]) > len((first, then)):
                continue
            both = _as_one(scheduled, node, first, then, fusion)
            if both is not None:
                before, behind = (
                    [*one[:where], *one[where + 1 :]]
                    for one, where in ((members[at], here), (members[other], there))
                )
                rest = [*parts[at + 1 : other], *parts[other + 1 :]]
                tree: list[isl.ScheduleNode | _Nest] = [*parts[:at], *before, both, *behind, *rest]
                yield _in_order(node, tree, in_order=ordered), both.assumes


def _between(
    scheduled: ScheduledScop, node: isl.ScheduleNode, first: _Nest, then: _Nest
) -> isl.UnionMap:
    """Return what two nests below a node need of each other, either way."""
    local = local_dependences(scheduled.dependences.needed, node)
    forward = local.intersect_domain(first.domain).intersect_range(then.domain)
    backward = local.intersect_domain(then.domain).intersect_range(first.domain)
    return forward.union(backward)


def _as_one(
    scheduled: ScheduledScop, node: isl.ScheduleNode, first: _Nest, then: _Nest, fusion: Fusion
) -> _Nest | None:
    """Return two nests as one, ``None`` where they cannot be."""
    if fusion == "steps":
        return _in_steps(scheduled, node, first, then)
    if not len(first.parallel) == len(then.parallel) <= _MOST_LOOPS:
        return None
    between = _between(scheduled, node, first, then)
    if between.is_empty() and (fusion != "all" or bool(first.serial) != bool(then.serial)):
        return None
    for order in permutations(then.parallel):
        pairs = list(zip(first.parallel, order, strict=True))
        parallel = [one.union_add(other) for one, other in pairs]
        here = between.eq_at_multi_union_pw_aff(together(parallel))
        if between.is_subset(here) and _take_same_values(first, then, pairs):
            apart = between.is_empty()
            both = _with_serial_loops(first, then, parallel, apart=apart)
            alike = both is not None and apart and _read_alike(scheduled.scop, both, first, then)
            return both if alike or not apart else None
    return None


def _in_steps(
    scheduled: ScheduledScop, node: isl.ScheduleNode, first: _Nest, then: _Nest
) -> _Nest | None:
    """Return two nests as one, each point of the other in the step that makes all that it needs.

    Points that need nothing follow the others.
    """
    count, depth = len(first.parallel), len(first.parallel) + len(first.serial)
    if then.serial or not first.serial or len(then.parallel) != depth or depth > _MOST_LOOPS:
        return None
    between = _between(scheduled, node, first, then)
    steps = isl.UnionMap.from_multi_union_pw_aff(together(first.serial))
    made = maps_of(between.intersect_range(then.domain).reverse().apply_range(steps).lexmax())
    ends = [[only_form(one) for one in output_affs(own)] for own in made]
    if len(made) < len(set_names(then.domain)) or not all(map(all, ends)):
        return None
    serial = [
        reduce(isl.UnionPwAff.union_add, map(isl.UnionPwAff.from_aff, own), loop)
        for loop, *own in zip(first.serial, *ends, strict=True)
    ]
    for rows in permutations(then.parallel, count):
        pairs = list(zip(first.parallel, rows, strict=True))
        parallel = [one.union_add(other) for one, other in pairs]
        here = between.eq_at_multi_union_pw_aff(together(parallel))
        points = isl.UnionMap.from_multi_union_pw_aff(together((*parallel, *serial)))
        own = maps_of(points.intersect_domain(then.domain))
        once = all(one.is_injective() for one in own)
        if once and between.is_subset(here) and _take_same_values(first, then, pairs):
            return first.beside(then, parallel, serial)
    return None


def _read_alike(scop: Scop, both: _Nest, first: _Nest, then: _Nest) -> bool:
    """Tell whether two nests read an element both at each point of one nest."""
    time = isl.UnionMap.from_multi_union_pw_aff(together((*both.parallel, *both.serial)))

    def read(nest: _Nest) -> list[isl.UnionMap]:
        return [
            access.relation.to_union_map().apply_domain(time)
            for name in set_names(nest.domain)
            for access in scop.statement(name).reads
            if scop.array(access.array).n_dims
        ]

    return any(one.is_equal(other) for one, other in product(read(first), read(then)))


def _take_same_values(
    first: _Nest, then: _Nest, pairs: Sequence[tuple[isl.UnionPwAff, isl.UnionPwAff]]
) -> bool:
    """Tell whether both loops of each pair take the same values in every statement."""
    return all(
        _alike(known, values)
        for one, other in pairs
        for known, *rest in [[*first.values(one), *then.values(other)]]
        for values in rest
    )


def _with_serial_loops(
    first: _Nest, then: _Nest, parallel: Sequence[isl.UnionPwAff], *, apart: bool
) -> _Nest | None:
    """Return two nests as one where their serial loops allow it.

    Args:
        first: the one that comes first.
        then: the other.
        parallel: the loops of both.
        apart: whether they need nothing of each other.
    """
    ends: list[tuple[isl.UnionPwAff, isl.Set | None] | None]
    if not then.serial or not first.serial:
        looping, other, last = (first, then, True) if not then.serial else (then, first, False)
        ends = [_at_end(looping, one, other.domain, last=last) for one in looping.serial]
    elif apart and len(first.serial) == len(then.serial):
        pairs = list(zip(first.serial, then.serial, strict=True))
        fits = all(_same_reach(first, then, *pair) for pair in pairs)
        ends = [(one.union_add(other), None) if fits else None for one, other in pairs]
    else:
        return None
    found = [one for one in ends if one is not None]
    if len(found) < len(ends):
        return None
    needed = [own for _, own in found if own is not None]
    both = first.beside(then, parallel, [one for one, _ in found])
    return replace(both, assumes=reduce(isl.Set.intersect, needed)) if needed else both


def _same_reach(first: _Nest, then: _Nest, one: isl.UnionPwAff, other: isl.UnionPwAff) -> bool:
    own, others = first.values(one), then.values(other)
    return _alike(reduce(isl.Set.union, own), reduce(isl.Set.union, others))


def _alike(one: isl.Set, other: isl.Set) -> bool:
    """Tell whether two sets are equal for all sizes for which neither is empty."""
    both = one.params().intersect(other.params())
    return bool(one.intersect_params(both).is_equal(other.intersect_params(both)))


def _at_end(
    nest: _Nest, loop: isl.UnionPwAff, domain: isl.UnionSet, *, last: bool
) -> tuple[isl.UnionPwAff, isl.Set | None] | None:
    """Return a loop in which other instances stand at its begin, or behind its last iteration.

    With it come the sizes for which that is behind all that is done once in it. ``None`` where the
    end is not one affine function of sizes.
    """
    values = nest.values(loop)
    moving = [one for one in values if not isl.Map.from_range(one).is_single_valued()]
    if not moving:
        return None
    reached = reduce(isl.Set.union, moving).coalesce()
    end = only_form(reached.dim_max(0) if last else reached.dim_min(0))
    once = [only_form(one.dim_max(0)) for one in values if one not in moving]
    others = [one for one in once if one is not None]
    if end is None or len(others) < len(once):
        return None
    end = end.add_constant_val(isl.Val(int(last), end.get_ctx()))
    extended = loop.union_add(isl.UnionPwAff.aff_on_domain(domain, end))
    sets = [end.ge_set(one) if last else end.le_set(one) for one in others]
    needed = reduce(isl.Set.intersect, sets) if sets else None
    return extended, None if needed is None or needed.plain_is_universe() else needed
