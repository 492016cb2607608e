"""Integer expressions in isl's notation, to prove what generated text says."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from eatss.program import Apply, IntExpr, Operator
from eatss.program.linear import linear

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


_RELATIONS = frozenset({Operator.EQ, Operator.LE, Operator.LT, Operator.GE, Operator.GT})


def isl_notation(expression: IntExpr) -> str:
    """Return an expression in isl's notation; sums are flat, for isl's parser nests badly."""
    form = linear(expression)
    if form is not None:
        text = str(form.constant)
        for name, coefficient in form.terms.items():
            text += f" {'+' if coefficient > 0 else '-'} {abs(coefficient)} {name}"
        return f"({text})" if form.terms else text
    assert isinstance(expression, Apply)
    if expression.operator in _RELATIONS and (case := _first_case(expression)) is not None:
        return _by_cases(expression, case)
    return _applied(expression.operator, [isl_notation(operand) for operand in expression.operands])


def _first_case(expression: IntExpr) -> Apply | None:
    """Return an expression that falls into cases inside another, none inside it."""
    if not isinstance(expression, Apply):
        return None
    for operand in expression.operands:
        found = _first_case(operand)
        if found is not None:
            return found
    return expression if expression.operator is Operator.SELECT else None


def _by_cases(relation: Apply, case: Apply) -> str:
    """Return a relation with one value told by cases: isl's constraints have no ``?:``."""
    condition, yes, no = case.operands
    holds = isl_notation(condition)
    true, false = (isl_notation(_with(relation, case, value)) for value in (yes, no))
    return f"(({holds} and {true}) or (not {holds} and {false}))"


def _with(expression: IntExpr, old: Apply, new: IntExpr) -> IntExpr:
    if expression == old:
        return new
    if not isinstance(expression, Apply):
        return expression
    operands = tuple(_with(operand, old, new) for operand in expression.operands)
    return Apply(expression.operator, operands)


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
    raise ValueError(f"{operator} has no place in isl's constraints")
