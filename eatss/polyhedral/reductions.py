"""Reductions: updates ``t = t op e`` whose order does not matter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TypeAlias

import islpy as isl

from eatss.polyhedral.isl_names import moving_dims, same_except
from eatss.polyhedral.kernel import Reduction, Reference
from eatss.polyhedral.program import Dependences
from eatss.polyhedral.references import Placed
from eatss.polyhedral.scops import (
    AffineValue,
    Binary,
    Call,
    Cast,
    ElementType,
    Expression,
    Read,
    Scop,
    Select,
    Statement,
    Unary,
    preorder,
)
from eatss.polyhedral.scops.expression import label

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


_Update: TypeAlias = tuple[str, frozenset[int]]
"""An operator, and the accesses that read the target."""


@dataclass(frozen=True, slots=True)
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
        return (operator, frozenset({read})) if _reads(value).count(read) == 1 else None

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
        straight, crossed = (
            all(map(self._alike, arms, order)) for order in (compared, compared[::-1])
        )
        bare = map(self._bare, arms)
        is_own = [isinstance(arm, Read) and self._reads_target(arm.access) for arm in bare]
        if not (straight or crossed) or sum(is_own) != 1 or (self.stored.is_floating and is_own[0]):
            return None
        target, other = arms if is_own[0] else arms[::-1]
        if any(map(self._reads_target, _reads(other))):
            return None
        larger = (condition.operator in _LARGER) == straight
        reads = (*_reads(target), *filter(self._reads_target, _reads(condition)))
        return ("max" if larger else "min"), frozenset(reads)

    def _alike(self, one: Expression, other: Expression) -> bool:
        """Tell whether two expressions of the statement have the same value."""
        pairs = zip_longest(preorder(one), preorder(other))
        return all(a is not None and b is not None and self._same_node(a, b) for a, b in pairs)

    def _same_node(self, one: Expression, other: Expression) -> bool:
        """Tell whether two nodes are the same, whatever stands below them."""
        if isinstance(one, Read) and isinstance(other, Read):
            first, second = (self.statement.accesses[read.access] for read in (one, other))
            return first.array == second.array and first.relation.is_equal(second.relation)
        if isinstance(one, AffineValue) and isinstance(other, AffineValue):
            same = one.element_type is other.element_type
            return same and one.value.is_equal(other.value)
        return label(one) == label(other)

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


def _reads(value: Expression) -> list[int]:
    return [one.access for one in preorder(value) if isinstance(one, Read)]


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
    return uses.is_subset(inside)
