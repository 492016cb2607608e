"""isl's expressions and sets of parameters as integer expressions, and these in isl's notation.

The latter to prove what generated text says.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import islpy as isl

from eatss.polyhedral.isl_names import ast_operator, coalesced, integer, node_kind
from eatss.program import Apply, Constant, IntExpr, Name, Operator, difference, negated
from eatss.program.linear import linear

_OPERATORS = {
    "max": Operator.MAX,
    "min": Operator.MIN,
    "add": Operator.ADD,
    "mul": Operator.MUL,
    "fdiv_q": Operator.FLOORDIV,
    "pdiv_q": Operator.QUOTIENT,
    "pdiv_r": Operator.REMAINDER,
    "zdiv_r": Operator.REMAINDER,
    "div": Operator.QUOTIENT,
    "eq": Operator.EQ,
    "le": Operator.LE,
    "lt": Operator.LT,
    "ge": Operator.GE,
    "gt": Operator.GT,
    "and_": Operator.AND,
    "and_then": Operator.AND,
    "or_": Operator.OR,
    "or_else": Operator.OR,
    "cond": Operator.SELECT,
    "select": Operator.SELECT,
}

TRUE = Constant(1)
FALSE = Constant(0)


def expression_of(expression: isl.AstExpr) -> IntExpr:
    """Return an isl AST expression as an integer expression."""
    kind = node_kind(expression)
    if kind == "int":
        return Constant(integer(expression.get_val()))
    if kind == "id":
        return Name(str(expression.get_id().get_name()))
    operator = ast_operator(expression)
    operands = tuple(
        expression_of(expression.get_op_arg(k)) for k in range(expression.get_op_n_arg())
    )
    if operator == "minus":
        return negated(operands[0])
    if operator == "sub":
        return difference(*operands)
    return _flat(_OPERATORS[operator], operands)


def _flat(operator: Operator, operands: tuple[IntExpr, ...]) -> IntExpr:
    """Return ``a and b and c`` with one operator; likewise for ``or``, minimum and maximum."""
    if operator not in (Operator.AND, Operator.OR, Operator.MIN, Operator.MAX):
        return Apply(operator, operands)
    flat: list[IntExpr] = []
    for operand in operands:
        nested = isinstance(operand, Apply) and operand.operator is operator
        flat.extend(operand.operands if nested and isinstance(operand, Apply) else (operand,))
    return Apply(operator, tuple(flat))


def condition_of(params: isl.Set, context: isl.Set) -> IntExpr:
    """Return the condition that parameters lie in ``params``, given that they lie in ``context``.

    Both are sets of parameters.
    """
    if params.is_empty():
        return FALSE
    if context.is_subset(params):
        return TRUE
    simple = coalesced(params.gist(context))
    build = isl.AstBuild.from_context(context.params() if context.is_params() else context)
    return expression_of(build.expr_from_set(simple))


def value_of(function: isl.PwAff, context: isl.Set) -> IntExpr:
    """Return a function of parameters as an expression, given that they lie in ``context``."""
    simple = function.intersect_params(context).coalesce().gist_params(context)
    build = isl.AstBuild.from_context(context)
    return expression_of(build.expr_from_pw_aff(simple))


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
