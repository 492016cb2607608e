"""Reads the generated code of a thread back into a set and compares it with what was to be run.

The code is trusted no more than the layout: its loops and conditions become constraints again,
and the instances they reach must be those of the thread, each reached once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

import islpy as isl

from eatss.codegen.errors import internal_error_at
from eatss.codegen.linear import linear
from eatss.codegen.nodes import Block, If, Leaf, Loop, Node
from eatss.codegen.thread_code import Phase, thread_instances
from eatss.diagnostics import SourceSpan
from eatss.isl_names import parameter_names, without_parameters
from eatss.program import Apply, IntExpr, Name, Operator

_INFIX = {
    Operator.ADD: "+",
    Operator.MUL: "*",
    Operator.EQ: "=",
    Operator.LE: "<=",
    Operator.LT: "<",
    Operator.GE: ">=",
    Operator.GT: ">",
    Operator.AND: "and",
    Operator.OR: "or",
}

_BOUNDS = {
    Operator.LE: Operator.MIN,
    Operator.LT: Operator.MIN,
    Operator.GE: Operator.MAX,
    Operator.GT: Operator.MAX,
}


@dataclass(frozen=True, slots=True)
class _Reached:
    """What stands around a leaf: counters, outermost first, and conditions in isl's notation."""

    counters: tuple[str, ...]
    conditions: tuple[str, ...]
    leaf: Leaf


def check_coverage_of(phase: Phase, node: Node | None, known: isl.Set, span: SourceSpan) -> None:
    """Check that the code of a thread runs its instances, each once.

    Args:
        phase: what is to be run.
        node: the code; ``None`` runs nothing.
        known: what is known of the parameters, the thread's coordinates among them.
        span: where the statements are, for the error.

    Raises:
        InternalError: ``EATSS-K901``.
    """
    reached: dict[str, list[isl.Map]] = {}
    parameters = parameter_names(known)
    for item in _leaves(node, (), ()) if node is not None else ():
        relation = _relation(item, parameters, known)
        reached.setdefault(item.leaf.instance, []).append(relation)
    for instance in phase.instances:
        wanted = without_parameters(thread_instances(phase, instance), phase.bound)
        wanted = wanted.intersect_params(known)
        maps = reached.get(str(instance.get_tuple_name()), [])
        if not _is_partition(maps, wanted):
            raise internal_error_at(
                "EATSS-K901", "generated code does not run every instance once", span=span
            )


def _is_partition(maps: Sequence[isl.Map], wanted: isl.Set) -> bool:
    """Tell whether the maps reach every point of a set, each from one place."""
    covered: isl.Set | None = None
    for relation in maps:
        if not relation.is_injective():
            return False
        here = relation.range()
        if covered is not None and not covered.is_disjoint(here):
            return False
        covered = here if covered is None else covered.union(here)
    if covered is None:
        return bool(wanted.is_empty())
    return bool(covered.is_equal(wanted))


def _relation(item: _Reached, parameters: Sequence[str], known: isl.Set) -> isl.Map:
    values = ", ".join(_text(value) for value in item.leaf.values)
    text = (
        f"[{', '.join(parameters)}] -> {{ [{', '.join(item.counters)}] -> "
        f"{item.leaf.instance}[{values}] : {' and '.join(item.conditions)} }}"
    )
    return isl.Map.read_from_str(known.get_ctx(), text).intersect_params(known)


def _leaves(
    node: Node, counters: tuple[str, ...], conditions: tuple[str, ...]
) -> Iterator[_Reached]:
    if isinstance(node, Leaf):
        yield _Reached(counters, conditions, node)
    elif isinstance(node, Block):
        for child in node.body:
            yield from _leaves(child, counters, conditions)
    elif isinstance(node, If):
        condition = _text(node.condition)
        yield from _leaves(node.body, counters, (*conditions, f"({condition})"))
        if node.orelse is not None:
            yield from _leaves(node.orelse, counters, (*conditions, f"not ({condition})"))
    else:
        yield from _leaves(
            node.body, (*counters, node.counter), (*conditions, *_loop_conditions(node))
        )


def _loop_conditions(loop: Loop) -> Iterator[str]:
    yield from _each(Apply(Operator.GE, (Name(loop.counter), loop.lower)))
    yield from _each(loop.condition)
    if loop.step != 1:
        yield f"({loop.counter} - {_text(loop.lower)}) mod {loop.step} = 0"


def _each(condition: IntExpr) -> Iterator[str]:
    """Yield the parts of a condition all of which hold; ``a <= min(b, c)`` are two."""
    bound = _BOUNDS.get(condition.operator) if isinstance(condition, Apply) else None
    if isinstance(condition, Apply) and condition.operator is Operator.AND:
        for operand in condition.operands:
            yield from _each(operand)
    elif isinstance(condition, Apply) and bound is not None:
        left, right = condition.operands
        inner = isinstance(right, Apply) and right.operator is bound
        for operand in right.operands if inner and isinstance(right, Apply) else (right,):
            yield _applied(condition.operator, [_text(left), _text(operand)])
    else:
        yield f"({_text(condition)})"


def _text(expression: IntExpr) -> str:
    """Return an expression in isl's notation; sums are flat, for isl's parser nests badly."""
    form = linear(expression)
    if form is not None:
        text = str(form.constant)
        for name, coefficient in form.terms.items():
            text += f" {'+' if coefficient > 0 else '-'} {abs(coefficient)} {name}"
        return f"({text})" if form.terms else text
    assert isinstance(expression, Apply)
    return _applied(expression.operator, [_text(operand) for operand in expression.operands])


def _applied(operator: Operator, operands: Sequence[str]) -> str:
    if operator in _INFIX:
        return "(" + f" {_INFIX[operator]} ".join(operands) + ")"
    if operator is Operator.SUB:
        return f"(-1 * {operands[0]})" if len(operands) == 1 else f"({' - '.join(operands)})"
    if operator in (Operator.FLOORDIV, Operator.QUOTIENT):
        return f"floor({operands[0]} / {operands[1]})"
    if operator in (Operator.MOD, Operator.REMAINDER):
        return f"({operands[0]} mod {operands[1]})"
    if operator in (Operator.MIN, Operator.MAX):
        return reduce(lambda one, other: f"{operator.value}({one}, {other})", operands)
    condition, yes, no = operands
    return f"({yes} if {condition} else {no})"
