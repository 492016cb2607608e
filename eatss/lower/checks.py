"""Reads the generated code of a thread back into a set and compares it with what was to be run.

The code is trusted no more than the layout: its loops and conditions become constraints again,
and the instances they reach must be those of the thread, each reached once.

Checks of generated code; they always run, and a failure is a fault of eatss.

isl proves over all sizes that every instance lies in the range of the loops around it, and that
what an instance needs is computed before it by the same thread or by an earlier launch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import reduce

import islpy as isl

from eatss.base.diagnostics import SourceSpan, input_error, internal_error
from eatss.base.frozen import Names, frozen, their_names
from eatss.lower.arrays import TileRange, isl_notation, union_of
from eatss.lower.kernel.nodes import For, If, Instance, Let, Nodes
from eatss.lower.mapping import MappedLoop, SerialTile
from eatss.lower.mapping import Mapping as LoopMapping
from eatss.lower.pieces import Part, Piece, tied_instances
from eatss.lower.scans import is_scan
from eatss.lower.storage import Registers, StoragePlan
from eatss.lower.thread_ast import Phase, order_of, subtree_of, thread_instances, tile_set
from eatss.lower.units import launches_respect, only_updates, tied_between
from eatss.polyhedral.isl_names import (
    IN,
    OUT,
    among,
    maps_of,
    padding,
    parameter_names,
    parameters_set,
    time_depth,
    without_parameters,
)
from eatss.polyhedral.kernels import update_of
from eatss.polyhedral.scheduling import coincidence_dependences, live_ranges_overlap
from eatss.polyhedral.scop import Scop, Statement
from eatss.polyhedral.tiled_sums import in_any_order
from eatss.polyhedral.tree import follows
from eatss.program import (
    Apply,
    Constant,
    IntExpr,
    Name,
    Operator,
    equals,
    names_in,
    substitute,
)
from eatss.program.expression import Environment

_BOUNDS = {
    Operator.LE: Operator.MIN,
    Operator.LT: Operator.MIN,
    Operator.GE: Operator.MAX,
    Operator.GT: Operator.MAX,
}


@frozen
class _Around:
    """What stands around a node: counters, outermost first, and conditions in isl's notation.

    ``values`` are what names stand for, in terms of the counters and of what a thread knows.
    """

    values: Environment
    counters: Names = ()
    conditions: Names = ()

    def meant(self, expression: IntExpr) -> IntExpr:
        return substitute(expression, self.values)

    def where(self, *conditions: str) -> _Around:
        return replace(self, conditions=(*self.conditions, *conditions))

    def counting(self, name: str) -> _Around:
        """Return it in a loop; the counter is called after its depth."""
        counter = f"eatss_n{len(self.counters)}"
        values = {**self.values, name: Name(counter)}
        return replace(self, counters=(*self.counters, counter), values=values)


def check_coverage_of(
    phase: Phase,
    nodes: Nodes,
    values: Environment,
    known: isl.Set,
    span: SourceSpan,
) -> None:
    """Check that the code of a thread runs its instances, each once.

    Args:
        phase: what is to be run.
        nodes: the code.
        values: what names in it stand for that it does not define.
        known: what is known of the parameters, the thread's coordinates among them.
        span: where the statements are, for the error.

    Raises:
        InternalError: ``EATSS-K901``.
    """
    reached: dict[str, list[isl.Map]] = {}
    parameters = parameter_names(known)
    for one, around in _instances(nodes, _Around(values=values)):
        reached.setdefault(one.name, []).append(_relation(one, around, parameters, known))
    for instance in phase.instances:
        wanted = without_parameters(thread_instances(phase, instance), phase.bound)
        wanted = wanted.intersect_params(known)
        if not _is_partition(reached.get(str(instance.get_tuple_name()), []), wanted):
            raise internal_error(
                "EATSS-K901", "generated code does not run every instance once", span=span
            )


def _is_partition(maps: Sequence[isl.Map], wanted: isl.Set) -> bool:
    """Tell whether the maps reach every point of a set, each from one place."""
    covered = isl.Set.empty(wanted.get_space())
    for relation in maps:
        here = relation.range()
        if not (relation.is_injective() and covered.is_disjoint(here)):
            return False
        covered = covered.union(here)
    return bool(covered.is_equal(wanted))


def _relation(one: Instance, around: _Around, parameters: Sequence[str], known: isl.Set) -> isl.Map:
    dims = [f"v{position}'" for position in range(len(one.values))]
    equal = map(isl_notation, map(equals, map(Name, dims), map(around.meant, one.values)))
    text = (
        f"[{', '.join(parameters)}] -> {{ [{', '.join(around.counters)}] -> "
        f"{one.name}[{', '.join(dims)}] : {' and '.join((*equal, *around.conditions))} }}"
    )
    return isl.Map.read_from_str(known.get_ctx(), text).intersect_params(known)


def _instances(nodes: Nodes, around: _Around) -> Iterator[tuple[Instance, _Around]]:
    """Yield instances, each with what stands around it."""
    for node in nodes:
        match node:
            case Instance():
                yield node, around
            case Let():
                values = {**around.values, node.name: around.meant(node.value)}
                around = replace(around, values=values)
            case If():
                tests = [*_texts(map(around.meant, node.conditions))]
                yield from _instances(node.body, around.where(*tests))
                yield from _instances(node.orelse, around.where(f"not ({' and '.join(tests)})"))
            case For():
                inner, lower = around.counting(node.counter), around.meant(node.lower)
                counter = inner.values[node.counter]
                stride = Apply(Operator.MOD, (counter - lower, node.step))
                bounds = (counter >= lower, inner.meant(node.condition), equals(stride, 0))
                yield from _instances(node.body, inner.where(*_texts(bounds)))


def _texts(conditions: Iterable[IntExpr]) -> Iterator[str]:
    return (text for one in conditions for text in _each(one))


def _each(condition: IntExpr) -> Iterator[str]:
    """Yield the parts of a condition all of which hold; ``a <= min(b, c)`` are two."""
    match condition:
        case Apply(Operator.AND, operands):
            yield from _texts(operands)
        case Apply(kind, (left, right)) if kind in _BOUNDS:
            match right:
                case Apply(bound, operands) if bound is _BOUNDS[kind]:
                    parts = operands
                case _:
                    parts = (right,)
            yield from (isl_notation(Apply(kind, (left, one))) for one in parts)
        case _:
            yield f"({isl_notation(condition)})"


def crosses_threads(piece: Piece, mapping: LoopMapping) -> bool:
    """Tell whether one thread of a launch would need what another computes."""
    names = their_names(mapping.mapped)
    if not names:
        return False
    needed, tied = coincidence_dependences(piece.scop, piece.dependences), piece.tied(names)
    free = {name: without_parameters(domain, names) for name, domain in tied.items()}
    for relation in maps_of(needed):
        source, sink = (relation.get_tuple_name(k) for k in (IN, OUT))
        if source not in tied or sink not in tied:
            continue
        between = relation.intersect_domain(free[source]).intersect_range(free[sink])
        if between.is_empty():
            continue
        same_thread = isl.Map.from_domain_and_range(tied[source], tied[sink])
        if not between.is_subset(without_parameters(same_thread, names)):
            return True
    return False


def check_order(
    piece: Piece,
    mapping: LoopMapping,
    parts: Sequence[Part],
    storage: StoragePlan,
    *,
    strict: bool,
) -> bool:
    """Check that a thread runs its instances in an order that respects every dependence.

    What memory never gets is used while registers have it, and there alone. A sum that is split or
    shared keeps no order, so every dependence has to join updates of one element. Unless
    ``strict``, other sums need not keep theirs: then all other accesses to an element have to.

    Returns:
        Whether all sums come to what they do in the order of the source: they are added up in it,
        or are of integers.

    Raises:
        InternalError: ``EATSS-K901``, a statement is lost, or the order is wrong.
        InputError: ``EATSS-K019``, a recurrence or a sum whose order is to be kept runs in another.
    """
    span, scop, dependences = piece.statements[0].span, piece.scop, piece.dependences
    _check_covered(piece, (name for part in parts for name in part.statements), "parts")
    in_order = keep_order(scop, piece.statements, strict=strict)
    if mapping.shares_sums:
        rows, along = their_names(mapping.mapped), mapping.split
        if mapping.scan is None:
            whole = only_updates(piece)
        else:
            whole = along is not None and is_scan(piece, along.name, rows, scop, dependences)
        if not whole:
            raise internal_error("EATSS-K901", "a split sum computes more than sums", span=span)
        written = {scop.array(statement.write.array) for statement in piece.statements}
        exact = not any(array.element_type.is_floating for array in written)
        if strict and not exact:
            raise internal_error(
                "EATSS-K901", "a sum is split that has to keep its order", span=span
            )
        return exact
    time = _time(piece, mapping, parts)
    needed = dependences.flow.union(dependences.forced)
    tied = union_of(tied_instances(piece, their_names(mapping.mapped)).values())
    here = among(needed, tied)
    for one in storage.registers:
        if one.are_alone and not _stays(piece, mapping, one, time):
            raise internal_error(
                "EATSS-K901", f"registers do not have all that is read of '{one.array}'", span=span
            )
    order, flow = (tied_between(r, tied) for r in (dependences.order, dependences.tagged_flow))
    if follows(here, time) and not live_ranges_overlap(order, flow, time):
        return in_order
    here = among(needed.union(dependences.anti).union(dependences.output), tied)
    here = among(in_any_order(here, piece.kernel), tied)
    if strict or not follows(here, time):
        raise internal_error(
            "EATSS-K901", "a thread runs its instances in the wrong order", span=span
        )
    return False


def _stays(piece: Piece, mapping: LoopMapping, own: Registers, time: isl.MultiUnionPwAff) -> bool:
    """Tell whether a thread alone uses values in a register, and each before the next is there.

    What a sum adds is no next one to what the sum begins with or comes to: its order is free.
    """
    scop, dependences = piece.scop, piece.dependences
    tied = tied_instances(piece, their_names(mapping.mapped))
    made, used = (
        reduce(isl.UnionSet.union, found, scop.no_points)
        for reads in (False, True)
        for found in ([tied[name] for name, at in own.places if bool(at) == reads],)
    )
    flow = dependences.flow.intersect_domain(made)
    last = made.subtract(dependences.output.domain())
    times = isl.UnionMap.from_multi_union_pw_aff(time)
    first, then = times.intersect_domain(made), times.intersect_domain(used)
    element = scop.array(own.array).element_type
    sums = scop.no_points
    for name in {name for name, at in own.places if not at} & {n for n, at in own.places if at}:
        if update_of(scop.statement(name), element) is not None:
            sums = sums.union(tied[name])

    def between(next_ones: isl.UnionMap) -> isl.UnionMap:
        return first.lex_lt_union_map(next_ones).apply_range(next_ones.lex_lt_union_map(then))

    added = between(first.intersect_domain(sums)).subtract_domain(sums).subtract_range(sums)
    others = between(first.subtract_domain(sums))
    return (
        bool(flow.range().is_equal(used))
        and bool(others.union(added).is_disjoint(flow))
        and (scop.array(own.array).is_local or bool(last.is_empty()))
    )


def keep_order(scop: Scop, statements: Sequence[Statement], *, strict: bool) -> bool:
    """Tell whether statements add up what the source does in its order.

    Raises:
        InputError: ``EATSS-K019``, they do not and are to.
    """
    others = (
        one
        for one in statements
        if one.reorders and scop.array(one.write.array).element_type.is_floating
    )
    first = next(others, None)
    if strict and first is not None:
        raise input_error(
            "EATSS-K019",
            "a recurrence or a sum is decided to run in chunks, from its end, or with factors "
            "taken out: not in its order",
            span=first.span,
            hint="select with --strict-fp",
        )
    return first is None


def check_launches(piece: Piece, launches: Sequence[Piece]) -> None:
    """Check that a piece made into several launches computes the same.

    Raises:
        InternalError: ``EATSS-K901``, a statement is lost, or the order is wrong.
    """
    own = (statement.name for launch in launches for statement in launch.statements)
    _check_covered(piece, own, "kernels")
    if len(launches) > 1 and not launches_respect(piece, launches):
        span = piece.statements[0].span
        raise internal_error("EATSS-K901", "kernels run in the wrong order", span=span)


def _check_covered(piece: Piece, names: Iterable[str], what: str) -> None:
    if sorted(names) != sorted(their_names(piece.statements)):
        span = piece.statements[0].span
        raise internal_error("EATSS-K901", f"the {what} do not cover the statements", span=span)


def _time(piece: Piece, mapping: LoopMapping, parts: Sequence[Part]) -> isl.MultiUnionPwAff:
    """Return when a thread runs each instance: part by part, tile after tile."""
    times = []
    for part in parts:
        serial = tuple(tile for tile in mapping.serial if tile.name in part.serial)
        phase = Phase(
            instances=piece.domains_of(part),
            bound=piece.bound,
            mapped=(),
            serial=serial,
            below=subtree_of(piece, mapping),
        )
        times.append(isl.UnionMap.from_multi_union_pw_aff(order_of(phase)))
    depth = max(time_depth(time) for time in times)
    whole = (one.apply_range(padding(one, at, depth)) for at, one in enumerate(times))
    return isl.MultiUnionPwAff.from_union_map(union_of(whole))


def check_ranges(
    instances: Sequence[isl.Set],
    bound: Sequence[str],
    loops: Sequence[MappedLoop | SerialTile],
    ranges: Sequence[TileRange],
    known: isl.Set,
    span: SourceSpan,
) -> None:
    """Check that the loops over tiles, as they are printed, run wherever there are instances.

    Args:
        instances: placed domains.
        bound: names of the band loops they are bound by.
        loops: the loops over tiles around them.
        ranges: what is printed for each of these loops.
        known: what the code inside takes for granted.
        span: where the statements are, for the error.

    Raises:
        InternalError: ``EATSS-K901``.
    """
    if not loops:
        return
    context = known.get_ctx()
    tile = tile_set(context, loops)
    for loop in loops:
        aligned = f"{loop.origin} mod {loop.tile} = 0"
        tile = tile.intersect(parameters_set(context, [loop.origin], aligned))
    for instance in instances:
        here = without_parameters(instance.params().intersect(tile), bound)
        reached = all(
            here.is_subset(_reached(loop, printed, here))
            for loop, printed in zip(loops, ranges, strict=True)
        )
        if not reached or not here.is_subset(known):
            raise internal_error(
                "EATSS-K901", "the loops over tiles leave instances out", span=span
            )


def _reached(loop: MappedLoop | SerialTile, printed: TileRange, here: isl.Set) -> isl.Set:
    """Return where the origin of a loop is one of those the printed loop takes."""
    origin, first = Name(loop.origin), printed.first
    offset = Apply(Operator.SUB, (origin, first))
    span = Apply(Operator.MUL, (Constant(loop.tile), printed.count))
    conditions = (
        origin >= first,
        origin <= printed.last,
        equals(Apply(Operator.MOD, (offset, Constant(loop.tile))), 0),
        offset < span,
    )
    names = {loop.origin, *parameter_names(here)}
    names.update(*(names_in(condition) for condition in conditions))
    text = " and ".join(isl_notation(condition) for condition in conditions)
    return parameters_set(here.get_ctx(), sorted(names), text)
