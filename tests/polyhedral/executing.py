"""Run regions of numbers: their instances in the order of time, and what each access touches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import islpy as isl

from eatss.polyhedral.expression import (
    AffineValue,
    Cast,
    Expression,
    Literal,
    Read,
    operands,
)
from eatss.polyhedral.isl_names import points_of
from eatss.polyhedral.scop import Scop, Statement

Element = tuple[str, tuple[int, ...]]


def instances(scop: Scop) -> Iterator[tuple[Statement, isl.Set, Mapping[int, Element]]]:
    """Yield the instances of a region in the order of time, with what each access touches."""
    timed = []
    for statement in scop.statements:
        for at in points_of(statement.domain):
            one = isl.Set.read_from_str(scop.isl_context, f"{{ {statement.name}{list(at)} }}")
            (time,) = points_of(one.apply(statement.schedule))
            touched = {
                number: (access.array, points_of(one.apply(access.relation))[0])
                for number, access in enumerate(statement.accesses)
            }
            timed.append((time, statement, one, touched))
    for _, statement, one, touched in sorted(timed, key=lambda found: found[0]):
        yield statement, one, touched


def executed(scop: Scop) -> dict[Element, int]:
    """Return what a region leaves: a value is a number made of all operations that it took."""
    memory: dict[Element, int] = {}

    def value(node: Expression, touched: Mapping[int, Element], at: isl.Set) -> int:
        if isinstance(node, Read):
            return memory.get(touched[node.access], hash(touched[node.access]))
        if isinstance(node, AffineValue):
            function = isl.Map.from_pw_aff(node.value).intersect_domain(at)
            return hash((node.element_type.value, points_of(function.range())[0]))
        if isinstance(node, Literal):
            return hash((node.text, node.element_type.value))
        kind = node.element_type.value if isinstance(node, Cast) else getattr(node, "operator", "")
        own = [value(one, touched, at) for one in operands(node)]
        return hash((type(node).__name__, kind, getattr(node, "function", ""), *own))

    for statement, at, touched in instances(scop):
        memory[touched[0]] = value(statement.value, touched, at)
    return memory
