"""isl's expressions and sets of parameters as integer expressions."""

from __future__ import annotations

import islpy as isl

from eatss.isl_names import ast_expression_kind, ast_operator, coalesced, integer
from eatss.program import Apply, Constant, IntExpr, Name, Operator, difference, negated

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
    kind = ast_expression_kind(expression)
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
