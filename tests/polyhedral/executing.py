"""Run regions of numbers: their instances in the order of time, and what each access touches."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import islpy as isl

from eatss.frontend.options import FrontendOptions
from eatss.frontend.parse import parse_file
from eatss.polyhedral.expression import (
    AffineValue,
    Binary,
    Call,
    Cast,
    Expression,
    Literal,
    Read,
    Select,
    Unary,
    operands,
)
from eatss.polyhedral.isl_names import IN, maps_of, points_of
from eatss.polyhedral.kernel import ScheduledScop
from eatss.polyhedral.scop import Scop, Statement

Element = tuple[str, tuple[int, ...]]

_BINARY: Mapping[str, Any] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
    ">": operator.gt, "<": operator.lt, "&": operator.and_, "|": operator.or_, "^": operator.xor,
}  # fmt: skip


def region_of(loops: str, arguments: str, before: str = "", inside: str = "", **sizes: int) -> Scop:
    """Return the region of a function, macros of some sizes defined."""
    head = f"{before}void f({arguments}) {{\n{inside}"
    options = FrontendOptions(defines=tuple(f"{name}={size}" for name, size in sizes.items()))
    text = f"{head}\n#pragma scop\n{loops}\n#pragma endscop\n}}\n"
    (scop,) = parse_file(text, options=options).scops
    return scop


def as_scheduled(scheduled: ScheduledScop) -> Scop:
    """Return the region whose order is that of its schedule."""
    times = scheduled.schedule.get_map().intersect_domain(scheduled.scop.domain)
    found = {one.get_tuple_name(IN): one for one in maps_of(times)}
    statements = [replace(one, schedule=found[one.name]) for one in scheduled.scop.statements]
    return replace(scheduled.scop, statements=tuple(statements))


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


def exact_values(
    scop: Scop, first: Callable[[Element], Any], calls: Mapping[str, Callable[[Any], Any]]
) -> dict[Element, Any]:
    """Return what a region leaves in the arrays of its callers, computed without rounding.

    Args:
        scop: the region.
        first: the value of an element before.
        calls: what functions of one argument are; others are maxima and minima.
    """
    memory: dict[Element, Any] = {}

    def value(node: Expression, touched: Mapping[int, Element], at: isl.Set) -> Any:
        own = [value(one, touched, at) for one in operands(node)]
        match node:
            case Read(access=access):
                return memory.get(touched[access], first(touched[access]))
            case AffineValue():
                found = isl.Map.from_pw_aff(node.value).intersect_domain(at)
                return points_of(found.range())[0][0]
            case Literal(text=text):
                number = eval(re.sub(r"(?<=\d)[fulL]+", "", text))
                finite = isinstance(number, float) and math.isfinite(number)
                return Fraction(str(number)) if finite else number
            case Unary():
                return -own[0]
            case Binary(operator=sign):
                return _BINARY[sign](*own)
            case Select():
                return own[1] if own[0] else own[2]
            case Call(function=name):
                known = max if "max" in name else min
                return calls[name](own[0]) if name in calls else known(o for o in own if o == o)
        return own[0]  # of a conversion

    for statement, at, touched in instances(scop):
        memory[touched[0]] = value(statement.value, touched, at)
    return {at: own for at, own in memory.items() if not scop.array(at[0]).is_local}
