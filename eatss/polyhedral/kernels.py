"""The kernels of a schedule, with their references and reductions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import count
from typing import TypeAlias

import islpy as isl

from eatss.base.frozen import Names, distinct, fixed, frozen
from eatss.base.trees import free_name
from eatss.polyhedral.dependences import first_equal
from eatss.polyhedral.expression import (
    AffineValue,
    Binary,
    Call,
    Cast,
    ElementType,
    Expression,
    Read,
    Select,
    Unary,
    label,
    operands,
    reads_in,
)
from eatss.polyhedral.isl_names import (
    IN,
    OUT,
    SET,
    AffineForm,
    affine_form,
    bind_leading_outputs,
    coalesced,
    constant_value,
    counter_of,
    drop_leading_outputs,
    function_on,
    integer,
    involved_dims,
    involved_parameters,
    leading_dims,
    moving_dims,
    named_map,
    only_dim,
    outermost,
    output_affs,
    same_except,
    with_names,
)
from eatss.polyhedral.kernel import Kernel, Loop, Reduction, Reference, Subscript
from eatss.polyhedral.scop import Access, Dependences, Scop, Statement
from eatss.polyhedral.tree import KernelTree, Member

# -- references --------------------------------------------------------------------------------
# Distinct references of a kernel: accesses as functions of the kernel's loops, merged.


@frozen
class Placed:
    """A statement in a kernel.

    ``schedule`` maps its instances to kernel points, counters of host loops that none of its loops
    is being parameters; ``moving`` are the kernel's loops its instances move along.
    """

    statement: Statement
    schedule: isl.Map
    moving: Names


@dataclass(slots=True)
class _Group:
    """Uses found to be one reference so far: statements with the numbers of their accesses."""

    relation: isl.Map
    subscripts: tuple[Subscript, ...]
    uses: list[tuple[Statement, int]]

    @property
    def array(self) -> str:
        """What is accessed."""
        return self.accesses[0].array

    @property
    def accesses(self) -> list[Access]:
        """The accesses, in order."""
        return [statement.accesses[number] for statement, number in self.uses]


def merge_references(placed: Sequence[Placed], loops: Sequence[str]) -> tuple[Reference, ...]:
    """Return the distinct references of the statements, in order of first appearance.

    Two accesses are one reference if their subscripts are the same functions of the
    kernel's loops, or if wherever one of them happens the other touches the same
    element, as an initialisation that sits at the first iteration of its reduction. The access of
    the deepest statement gives the text.
    """
    groups: dict[tuple[object, ...], _Group] = {}
    for item in placed:
        back = item.schedule.reverse()
        seen = {}
        accesses = item.statement.accesses
        for number, first in enumerate(first_equal(accesses)):
            access = accesses[number]
            if first not in seen:
                relation = back.apply_range(access.relation)
                functions = output_affs(with_names(relation, IN, loops))
                key = (access.array, *(affine_form(one) or str(one) for one in functions))
                if key not in groups:
                    groups[key] = _Group(relation, tuple(map(_subscript, functions)), [])
                elif groups[key].uses[-1][0] is not item.statement:
                    groups[key].relation = coalesced(groups[key].relation.union(relation))
                seen[first] = groups[key]
            seen[first].uses.append((item.statement, number))
    return tuple(
        Reference(
            array=group.array,
            text=_deepest(group).text,
            statements=distinct(statement.name for statement, _ in group.uses),
            reads=not all(access.is_write for access in group.accesses),
            writes=any(access.is_write for access in group.accesses),
            subscripts=group.subscripts,
            relation=with_names(group.relation, IN, loops),
            places=frozenset((statement.name, number) for statement, number in group.uses),
        )
        for group in _joined([*groups.values()])
    )


def _deepest(group: _Group) -> Access:
    statement, number = max(group.uses, key=lambda use: len(use[0].loops))
    return statement.accesses[number]


def _joined(groups: Sequence[_Group]) -> list[_Group]:
    """Join the groups that touch the same elements, in order of first appearance.

    Subscripts that differ by a constant only never do, so groups are compared with those
    of another shape: a stencil of thousands of points costs no isl at all, whatever the subscript
    of its time buffer is.
    """
    merged = []
    by_shape: dict[tuple[object, ...], list[_Group]] = {}
    for group in groups:
        shape = group.array, *(one.direction for one in group.subscripts)
        others = (
            other
            for other_shape, alike in by_shape.items()
            if other_shape[0] == group.array and other_shape != shape
            for other in alike
            if not _is_apart(other, group)
        )
        for host in others:
            is_inside = host.relation.is_subset(group.relation)
            if group.relation.is_subset(host.relation) or is_inside:
                if is_inside:
                    host.subscripts, host.relation = group.subscripts, group.relation
                host.uses += group.uses
                break
        else:
            merged.append(group)
            by_shape.setdefault(shape, []).append(group)
    return merged


def _is_apart(one: _Group, other: _Group) -> bool:
    """Tell whether a subscript of both differs by a constant only."""
    return any(a.distance(b) for a, b in zip(one.subscripts, other.subscripts, strict=True))


def _subscript(function: isl.PwAff) -> Subscript:
    form = affine_form(function)
    text = "" if form else str(function)
    if form is None:
        loops, sizes = involved_dims(function), involved_parameters(function)
        form = AffineForm(tuple((n, 0) for n in loops), tuple((n, 0) for n in sizes), 0)
    return Subscript(
        coefficients=form.coefficients,
        symbols=tuple(sorted(form.parameters)),
        offset=form.constant,
        function=text,
    )


# -- reductions --------------------------------------------------------------------------------
# Reductions: updates ``t = t op e`` whose order does not matter.


_FUNCTIONS = frozenset({"fmax", "fmin", "fmaxf", "fminf"})
_INTEGER_FUNCTIONS = frozenset({"max", "min"})
_LARGER, _SMALLER = frozenset({">", ">="}), frozenset({"<", "<="})
_INVERSE = {"-": "+"}  # t - e adds -e
_OPERATORS = frozenset({"+", "*", "&", "|", "^"})


def find_reductions(
    scop: Scop,
    dependences: Dependences,
    placed: Sequence[Placed],
    references: Sequence[Reference],
) -> tuple[Reduction, ...]:
    """Return the reductions among the statements of a kernel, in source order."""
    found = []
    for item in placed:
        statement = item.statement
        update = _Value(statement, scop.array(statement.write.array).element_type).update()
        if update is None:
            continue
        operator, reads = update
        still = _invariant_loops(item, references)
        loops = tuple(loop for loop in _carrying_loops(dependences, item) if loop in still)
        if loops and _is_private(dependences, item, reads, loops):
            found.append(
                Reduction(
                    statement=statement.name,
                    array=statement.write.array,
                    operator=operator,
                    loops=loops,
                )
            )
    return tuple(found)


def update_of(statement: Statement, stored: ElementType) -> str | None:
    """Return the operator of a statement ``t = t op e`` that stores a type, ``None`` for others."""
    update = _Value(statement, stored).update()
    return None if update is None else update[0]


_Update: TypeAlias = tuple[str, frozenset[int]]
"""An operator, and the accesses that read the target."""


@fixed
class _Value:
    """What a statement stores to its target, of some type."""

    statement: Statement
    stored: ElementType

    def update(self) -> _Update | None:
        """Return operator and read accesses of ``t`` if the statement is ``t = t op e``.

        Conversions on the way are passed over only if they keep what is stored.
        """
        value = self._bare(self.statement.value)
        if isinstance(value, Select):
            return self._chosen(value)
        operator = _operator_of(value, self.stored)
        if operator is None:
            return None
        own = [
            term.access
            for term, positive in self._terms(value, operator)
            if positive and isinstance(term, Read) and self._reads_target(term.access)
        ]
        if len(own) != 1:
            return None
        (read,) = own
        return (operator, frozenset({read})) if reads_in(value).count(read) == 1 else None

    def _chosen(self, value: Select) -> _Update | None:
        """Return ``max`` or ``min`` if a value is the larger or the smaller of ``t`` and another.

        Where a NaN is compared, ``?:`` takes its second arm. So ``e > t ? e : t`` passes over each
        NaN among the terms, in any order. ``t > e ? t : e`` begins anew behind one, which order
        decides: of floating-point numbers it is none.
        """
        condition, arms = value.condition, (value.if_true, value.if_false)
        if not isinstance(condition, Binary) or condition.operator not in _LARGER | _SMALLER:
            return None
        compared = (condition.left, condition.right)
        orders = (zip(arms, order, strict=True) for order in (compared, compared[::-1]))
        straight, crossed = (
            all(alike(self.statement, *pair, self.statement) for pair in order) for order in orders
        )
        bare = map(self._bare, arms)
        is_own = [isinstance(arm, Read) and self._reads_target(arm.access) for arm in bare]
        if not (straight or crossed) or sum(is_own) != 1 or (self.stored.is_floating and is_own[0]):
            return None
        target, other = arms if is_own[0] else arms[::-1]
        if any(map(self._reads_target, reads_in(other))):
            return None
        larger = (condition.operator in _LARGER) == straight
        reads = (*reads_in(target), *filter(self._reads_target, reads_in(condition)))
        return ("max" if larger else "min"), frozenset(reads)

    def _bare(self, value: Expression) -> Expression:
        """Return a value without conversions to floating types no narrower than what is stored.

        One to a half stays: halves are rounded to after each operation, and so in its order.
        """
        while (
            isinstance(value, Cast)
            and value.element_type.is_floating
            and value.element_type is not ElementType.HALF
            and (
                not self.stored.is_floating
                or value.element_type.size_bytes >= self.stored.size_bytes
            )
        ):
            value = value.operand
        return value

    def _terms(self, value: Expression, operator: str) -> Iterator[tuple[Expression, bool]]:
        """Yield the operands of nested uses of ``operator``, and whether each enters as it is.

        Sums of thousands of terms are deep trees, so no recursion.
        """
        waiting = [(value, True)]
        while waiting:
            term, sign = waiting.pop()
            term = self._bare(term)
            if isinstance(term, Binary) and term.operator == operator:
                waiting += [(term.right, sign), (term.left, sign)]
            elif isinstance(term, Binary) and _INVERSE.get(term.operator) == operator:
                waiting += [(term.right, not sign), (term.left, sign)]
            elif isinstance(term, Unary) and term.operator == "-" and operator == "+":
                waiting.append((term.operand, not sign))
            elif isinstance(term, Call) and term.function == operator:
                waiting += [(argument, sign) for argument in reversed(term.arguments)]
            else:
                yield term, sign

    def _reads_target(self, access: int) -> bool:
        own, write = self.statement.accesses[access], self.statement.write
        return own.array == write.array and own.relation.is_equal(write.relation)


def alike(
    one: Statement,
    value: Expression,
    its: Expression,
    other: Statement,
    bare: Callable[[Expression], Expression] = lambda node: node,
) -> bool:
    """Tell whether two statements compute the same of what they read, instance by instance.

    ``bare`` takes off each part what does not count. Sums of thousands of terms are deep trees, so
    no recursion.
    """
    todo, same = [(value, its)], isl.MultiAff.identity_on_domain_space(other.domain.get_space())
    here = same.set_tuple_name(OUT, one.name)
    while todo:
        a, b = map(bare, todo.pop())
        if isinstance(a, Read) and isinstance(b, Read):
            first, then = one.accesses[a.access], other.accesses[b.access]
            relation = first.relation.set_tuple_name(IN, other.name)
            fine = first.array == then.array and relation.is_equal(then.relation)
        elif isinstance(a, AffineValue) and isinstance(b, AffineValue):
            own = a.value.pullback_multi_aff(here)
            fine = a.element_type is b.element_type and own.is_equal(b.value)
        else:
            fine = label(a) == label(b)
            todo += zip(operands(a), operands(b), strict=True) if fine else ()
        if not fine:
            return False
    return True


def _operator_of(value: Expression, stored: ElementType) -> str | None:
    if isinstance(value, Binary):
        operator = _INVERSE.get(value.operator, value.operator)
        return operator if operator in _OPERATORS else None
    if isinstance(value, Call) and (
        value.function in _FUNCTIONS
        # of floating-point numbers it is t > e ? t : e, or whatever a macro says
        or (value.function in _INTEGER_FUNCTIONS and not stored.is_floating)
    ):
        return value.function
    return None


def _self_flow(dependences: Dependences, item: Placed) -> isl.Map:
    space = item.statement.domain.get_space().map_from_set()
    return dependences.flow.extract_map(space)


def _carrying_loops(dependences: Dependences, item: Placed) -> Names:
    """Return the kernel's loops along which the statement's value flows to itself."""
    flow = _self_flow(dependences, item)
    if flow.is_empty():
        return ()
    steps = flow.apply_domain(item.schedule).apply_range(item.schedule)
    return moving_dims(steps, item.moving)


def _invariant_loops(item: Placed, references: Sequence[Reference]) -> frozenset[str]:
    """Return the loops the statement moves along while its target stays."""
    write = item.statement.write
    for reference in references:
        if (
            reference.array == write.array
            and reference.writes
            and item.statement.name in reference.statements
        ):
            return frozenset(item.moving) - reference.loops
    return frozenset()


def _is_private(
    dependences: Dependences, item: Placed, reads: frozenset[int], loops: Names
) -> bool:
    """Tell whether nothing but the update itself sees or sets the values in between.

    Along ``loops`` no other access of the statement may touch the target, every update but the
    first must take up the value of one before it (nothing resets the target on the way),
    and a value that is updated again may flow nowhere else.
    """
    statement = item.statement
    apart = same_except(item.schedule, loops)
    for number, access in enumerate(statement.accesses[1:], start=1):
        if number in reads or access.array != statement.write.array:
            continue
        meets = statement.write.relation.apply_range(access.relation.reverse())
        if not meets.intersect(apart).is_empty():
            return False
    carried = _self_flow(dependences, item).intersect(apart)
    earlier = statement.schedule.lex_lt_map(statement.schedule)
    later = apart.intersect(earlier).intersect_domain(statement.domain).range()
    if dependences.sizes is not None:
        later = later.intersect_params(dependences.sizes)
    if not later.intersect(statement.domain).is_subset(carried.range()):
        return False
    again = carried.domain()
    uses = dependences.flow.intersect_domain(again)
    inside = apart.intersect_domain(statement.domain).to_union_map()
    return uses.is_subset(inside)


# -- kernels -----------------------------------------------------------------------------------
# Kernels from the pieces of the schedule tree: loops, trip counts, references, reductions.


_Functions: TypeAlias = tuple[isl.PwAff | None, ...]
"""What a statement runs at in each loop, by its counters; ``None`` for those not around it."""


def build_kernels(
    scop: Scop, dependences: Dependences, trees: Sequence[KernelTree]
) -> tuple[Kernel, ...]:
    """Turn the pieces of the schedule tree into kernels, in launch order."""

    def made(index: int, tree: KernelTree) -> Kernel:
        alike = index, tree.host, tree.band, tree.permutable, tree.leaves
        return dependences.once(
            lambda: _kernel(scop, dependences, tree, index), "kernel", str(alike), of=scop
        )

    return tuple(map(made, range(len(trees)), trees))


def _kernel(scop: Scop, dependences: Dependences, tree: KernelTree, index: int) -> Kernel:
    all_loops = tree.host + tree.band + tree.inner
    places = [*_places(scop, tree, all_loops)]
    names = _loop_names(len(all_loops), places, taken=scop.parameters)
    n_host = len(tree.host)
    name = f"k{index}"
    full = [_at_loops(statement, functions, name, names) for statement, functions in places]
    loops = tuple(
        Loop(
            name=names[k],
            parallel=all_loops[k].parallel,
            trip_count=trip_count(_looping(full, places, k), names[k], scop.context),
        )
        for k in range(n_host, len(all_loops))
    )
    placed = tuple(
        Placed(
            statement=statement,
            schedule=_bound(relation, functions, names[:n_host]),
            moving=tuple(names[k] for k in range(n_host, len(names)) if _moves(functions[k])),
        )
        for relation, (statement, functions) in zip(full, places, strict=True)
    )
    schedule = scop.no_relation
    launches = leading_dims(full[0].range(), n_host)
    for relation in full:
        launches = launches.union(leading_dims(relation.range(), n_host))
        schedule = schedule.union(drop_leading_outputs(relation, n_host))
    references = merge_references(placed, names[n_host:])
    return Kernel(
        name=name,
        statements=tuple(one.statement.name for one in placed),
        host_loops=names[:n_host],
        loops=loops[: len(tree.band)],
        inner_loops=loops[len(tree.band) :],
        permutable=tree.permutable,
        schedule=schedule,
        launch_domain=coalesced(launches),
        references=references,
        reductions=find_reductions(scop, dependences, placed, references),
    )


def _at_loops(statement: Statement, functions: _Functions, name: str, names: Names) -> isl.Map:
    """Map instances to all loops; those not around a statement are at 0."""
    domain = statement.domain
    zero = isl.PwAff.zero_on_domain(isl.LocalSpace.from_space(domain.get_space()))
    values = [zero if one is None else one for one in functions]
    return named_map(domain, values, name, names).intersect_domain(domain)


def _bound(relation: isl.Map, functions: _Functions, host: Names) -> isl.Map:
    """Return a placement with counters of the host as parameters.

    Without those that a loop of the kernel is, up to a shift: subscripts are to be by that.
    """
    forms = [None if one is None else affine_form(one) for one in functions]
    shapes = [form and form[:2] for form in forms]
    names, kernel = list[str](), relation.get_tuple_name(OUT)
    for name, shape in zip(host, shapes, strict=False):
        if shape and shape[0] and shape in shapes[len(host) :]:
            relation = relation.project_out(OUT, len(names), 1)
        else:
            names.append(name)
    return bind_leading_outputs(relation.set_tuple_name(OUT, kernel), names)


def _looping(
    placed: Sequence[isl.Map], places: Sequence[tuple[Statement, _Functions]], loop: int
) -> list[isl.Set]:
    """Return the points of the statements in a loop, of those that move along it if any do."""
    own = [(m.range(), functions[loop]) for m, (_, functions) in zip(placed, places, strict=True)]
    inside = [points for points, function in own if function is not None]
    return [points for points, function in own if _moves(function)] or inside


def _places(
    scop: Scop, tree: KernelTree, loops: Sequence[Member]
) -> Iterator[tuple[Statement, _Functions]]:
    """Yield the statements of a kernel with where they run, in source order."""
    for statement in scop.statements:
        for leaf in tree.leaves:
            if statement.name in leaf.statements:
                around = {m.key for m in tree.host + tree.band + leaf.inner}
                yield (
                    statement,
                    tuple(_function(m, statement) if m.key in around else None for m in loops),
                )


def _function(loop: Member, statement: Statement) -> isl.PwAff:
    """Return the counter that a loop is; on a piece with ``i = k`` it is the outer one of both."""
    found = function_on(loop.function, statement.domain)
    return outermost(found, statement.domain) if statement.piece_of else found


def _moves(function: isl.PwAff | None) -> bool:
    if function is None:
        return False
    form = affine_form(function)
    return form is None or bool(form.coefficients)


def _loop_names(
    count_of: int, places: Sequence[tuple[Statement, _Functions]], taken: Sequence[str]
) -> Names:
    """Name each loop by the counter it is, up to a shift, for the deepest statement in it."""
    used = set(taken)
    names = []
    deepest_first = sorted(places, key=lambda place: -len(place[0].loops))
    for position in range(count_of):
        moving = (own[position] for _, own in deepest_first if _moves(own[position]))
        first = next(moving, None)
        wanted = None if first is None else counter_of(first, shifted=True)
        fresh = (name for k in count() if (name := f"c{k}") not in used)
        names.append(free_name(wanted or next(fresh), used))
    return tuple(names)


_ENUMERATED = 1 << 16  # a longer range with irregular holes is not counted one by one


def trip_count(domains: Sequence[isl.Set], loop: str, context: isl.Set) -> int | None:
    """Count the values ``loop`` takes over all ``domains``.

    Args:
        domains: sets of kernel points; each has a dimension called ``loop``.
        loop: the dimension counted.
        context: what is known of the parameters.

    Returns:
        The number of values; ``None`` where it depends on a parameter.
    """
    parts = (only_dim(domain.intersect_params(context), loop) for domain in domains)
    values = coalesced(reduce(isl.Set.union, (part.reset_tuple_id() for part in parts)))
    if values.is_empty():
        return 0
    if not (values.dim_has_lower_bound(SET, 0) and values.dim_has_upper_bound(SET, 0)):
        return None
    known = values.params()
    reach = coalesced(values.dim_max(0).sub(values.dim_min(0)).gist_params(known))
    span = constant_value(reach)
    return None if span is None else _count(values, span)


def _count(values: isl.Set, span: int) -> int | None:
    """Count the values of a range of ``span + 1`` that may have holes."""
    if _steps(values, 1).is_subset(values):
        return span + 1
    stride = integer(values.get_stride(0))
    if stride > 1 and _steps(values, stride).is_subset(values):
        return span // stride + 1
    if span > _ENUMERATED or not values.params().is_singleton():
        return None
    return integer(values.project_out_all_params().count_val())


def _steps(values: isl.Set, stride: int) -> isl.Set:
    """Return the integers from the smallest to the largest value in steps of some length."""
    up = f"{{ [a] -> [x] : x >= a and (x - a) mod {stride} = 0 }}"
    from_least, to_greatest = (
        isl.Map.read_from_str(values.get_ctx(), text) for text in (up, "{ [a] -> [x] : x <= a }")
    )
    found = values.lexmin().apply(from_least)
    return found.intersect(values.lexmax().apply(to_greatest))
