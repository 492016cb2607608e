"""Reductions: updates ``t = t op e`` whose order does not matter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import TypeAlias

import islpy as isl

from eatss.isl_names import moving_dims, same_except
from eatss.polyhedral.kernel import Reduction, Reference
from eatss.polyhedral.program import Dependences
from eatss.polyhedral.references import Placed
from eatss.scops import (
    AffineValue,
    Binary,
    Call,
    Cast,
    ElementType,
    Expression,
    Read,
    Scop,
    Select,
    Unary,
    preorder,
)
from eatss.scops.expression import label

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
        update = _update(item, scop.array(item.statement.write.array).element_type)
        if update is None:
            continue
        operator, reads = update
        loops = _carrying_loops(dependences, item)
        still = _invariant_loops(item, references)
        loops = tuple(loop for loop in loops if loop in still)
        if loops and _is_private(dependences, item, reads, loops):
            found.append(
                Reduction(
                    statement=item.statement.name,
                    array=item.statement.write.array,
                    operator=operator,
                    loops=loops,
                )
            )
    return tuple(found)


_Update: TypeAlias = tuple[str, frozenset[int]]
"""An operator, and the accesses that read the target."""


def _update(item: Placed, stored: ElementType) -> _Update | None:
    """Return operator and read accesses of ``t`` if the statement is ``t = t op e``.

    Conversions on the way are passed over only if they keep what is stored, of type ``stored``.
    """
    statement = item.statement
    value = _bare(statement.value, stored)
    if isinstance(value, Select):
        return _chosen(item, value, stored)
    operator = _operator_of(value, stored)
    if operator is None:
        return None
    own = [
        term.access
        for term, positive in _terms(value, operator, stored, positive=True)
        if positive and isinstance(term, Read) and _reads_target(item, term.access)
    ]
    if len(own) != 1:
        return None
    (read,) = own
    reads = [term.access for term in preorder(value) if isinstance(term, Read)]
    return (operator, frozenset({read})) if reads.count(read) == 1 else None


def _chosen(item: Placed, value: Select, stored: ElementType) -> _Update | None:
    """Return ``max`` or ``min`` if a value is the larger or the smaller of ``t`` and another one.

    Where a NaN is compared, ``?:`` takes its second arm. So ``e > t ? e : t`` passes over each NaN
    among the terms, in any order. ``t > e ? t : e`` begins anew behind one, which order decides:
    of floating-point numbers it is none.
    """
    condition, arms = value.condition, (value.if_true, value.if_false)
    if not isinstance(condition, Binary) or condition.operator not in _LARGER | _SMALLER:
        return None
    compared = (condition.left, condition.right)
    straight, crossed = (
        all(_alike(item, *pair) for pair in zip(arms, order, strict=True))
        for order in (compared, compared[::-1])
    )
    own = [at for at, arm in enumerate(arms) if _is_target(item, arm, stored)]
    if not (straight or crossed) or len(own) != 1 or (stored.is_floating and own != [1]):
        return None
    (other,) = {0, 1} - set(own)
    if any(_reads_target(item, access) for access in _reads(arms[other])):
        return None
    larger = (condition.operator in _LARGER) == straight
    reads = frozenset(_reads(arms[own[0]])) | frozenset(
        access for access in _reads(condition) if _reads_target(item, access)
    )
    return ("max" if larger else "min"), reads


def _reads(value: Expression) -> list[int]:
    return [one.access for one in preorder(value) if isinstance(one, Read)]


def _is_target(item: Placed, value: Expression, stored: ElementType) -> bool:
    value = _bare(value, stored)
    return isinstance(value, Read) and _reads_target(item, value.access)


def _alike(item: Placed, one: Expression, other: Expression) -> bool:
    """Tell whether two expressions of a statement have the same value."""
    pairs = zip_longest(preorder(one), preorder(other))
    return all(a is not None and b is not None and _same_node(item, a, b) for a, b in pairs)


def _same_node(item: Placed, one: Expression, other: Expression) -> bool:
    """Tell whether two nodes are the same, whatever stands below them."""
    if isinstance(one, Read) and isinstance(other, Read):
        first, second = (item.statement.accesses[read.access] for read in (one, other))
        return first.array == second.array and bool(first.relation.is_equal(second.relation))
    if isinstance(one, AffineValue) and isinstance(other, AffineValue):
        same = one.element_type is other.element_type
        return same and bool(one.value.is_equal(other.value))
    return label(one) == label(other)


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


def _bare(value: Expression, stored: ElementType) -> Expression:
    """Return a value without conversions to floating types no narrower than what is stored.

    One to a half stays: halves are rounded to after each operation, and so in its order.
    """
    while (
        isinstance(value, Cast)
        and value.element_type.is_floating
        and value.element_type is not ElementType.HALF
        and (not stored.is_floating or value.element_type.size_bytes >= stored.size_bytes)
    ):
        value = value.operand
    return value


def _terms(
    value: Expression, operator: str, stored: ElementType, *, positive: bool
) -> Iterator[tuple[Expression, bool]]:
    """Yield the operands of nested uses of ``operator``, and whether each enters as it is.

    Sums of thousands of terms are deep trees, so no recursion.
    """
    waiting = [(value, positive)]
    while waiting:
        term, sign = waiting.pop()
        term = _bare(term, stored)
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


def _reads_target(item: Placed, access: int) -> bool:
    own = item.statement.accesses[access]
    write = item.statement.write
    return own.array == write.array and bool(own.relation.is_equal(write.relation))


def _self_flow(dependences: Dependences, item: Placed) -> isl.Map:
    space = item.statement.domain.get_space().map_from_set()
    return dependences.flow.extract_map(space)


def _carrying_loops(dependences: Dependences, item: Placed) -> tuple[str, ...]:
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
    dependences: Dependences, item: Placed, reads: frozenset[int], loops: tuple[str, ...]
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
    if not later.intersect(statement.domain).is_subset(carried.range()):
        return False
    again = carried.domain()
    uses = dependences.flow.intersect_domain(again)
    inside = apart.intersect_domain(statement.domain).to_union_map()
    return bool(uses.is_subset(inside))
