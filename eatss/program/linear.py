"""Linear forms, to say in the source's terms what isl says in terms of threads and points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

from eatss.base.frozen import complete, fixed
from eatss.program import Apply, Constant, IntExpr, Name, Operator
from eatss.program.expression import IntExprs, SizePairs, Sizes

Coefficients: TypeAlias = SizePairs
"""Those of a linear form by name, in order."""


@fixed
class Linear:
    """``Σ coefficient · name + constant``; no coefficient is 0."""

    terms: Sizes
    constant: int

    def plus(self, other: Linear, factor: int = 1) -> Linear:
        """Return ``self + factor * other``."""
        terms = dict(self.terms)
        for name, coefficient in other.terms.items():
            terms[name] = terms.get(name, 0) + factor * coefficient
        kept = {name: value for name, value in terms.items() if value}
        return Linear(kept, self.constant + factor * other.constant)

    def __mul__(self, factor: int) -> Linear:
        """Return ``self * factor``."""
        return Linear({}, 0).plus(self, factor)

    def expression(self) -> IntExpr:
        """Return the form as an expression, positive terms first."""
        result: IntExpr | None = None
        for name, coefficient in sorted(self.terms.items(), key=lambda term: term[1] < 0):
            product = abs(coefficient) * Name(name)
            if result is None:
                result = product if coefficient > 0 else _negative(product)
            elif coefficient > 0:
                result = result + product
            else:
                result = result - product
        return Constant(self.constant) if result is None else result + self.constant


@fixed
class Definition:
    """A C variable that equals a linear form."""

    name: str
    form: Linear


def _negative(product: IntExpr) -> IntExpr:
    if isinstance(product, Apply) and isinstance(product.operands[0], Constant):
        return -product.operands[0].value * product.operands[1]
    return Apply(Operator.SUB, (product,))


def linear(expression: IntExpr) -> Linear | None:
    """Return an expression as a linear form, ``None`` if it is none."""
    match expression:
        case Constant(value):
            return Linear({}, value)
        case Name(name):
            return Linear({name: 1}, 0)
    operator = expression.operator
    if operator not in (Operator.ADD, Operator.SUB, Operator.MUL):
        return None
    found: Linear | None = None
    for one in map(linear, expression.operands):
        if one is None:
            return None
        if found is None:
            found = one * -1 if operator is Operator.SUB and len(expression.operands) == 1 else one
        elif operator is not Operator.MUL:
            found = found.plus(one, -1 if operator is Operator.SUB else 1)
        elif found.terms and one.terms:
            return None
        else:
            found = one * found.constant if one.terms else found * one.constant
    return found


def as_sum(expression: IntExpr) -> IntExpr:
    """Return a linear expression as a sum of few terms, another one as it is."""
    form = linear(expression)
    return expression if form is None else form.expression()


def folded(expression: IntExpr, definitions: Sequence[Definition]) -> IntExpr:
    """Say linear parts of an expression by the variables defined, where that is shorter."""
    form = linear(expression)
    if form is not None:
        shorter = _shortest(form, definitions)
        return expression if shorter == form else shorter.expression()
    assert isinstance(expression, Apply)
    return _moved(
        replace(expression, operands=tuple(folded(o, definitions) for o in expression.operands)),
        definitions,
    )


def _moved(expression: Apply, definitions: Sequence[Definition]) -> IntExpr:
    """Fold both sides of a comparison together: ``0 <= N - i0 - t - 1`` is ``i < N``."""
    if expression.operator not in (Operator.LE, Operator.LT, Operator.GE, Operator.GT):
        return expression
    left, right = (linear(operand) for operand in expression.operands)
    if left is None or right is None:
        return expression
    apart = left.plus(right, -1)
    shorter = _shortest(apart, definitions)
    if shorter == apart:
        return expression
    positive = Linear({n: c for n, c in shorter.terms.items() if c > 0}, 0)
    negative = Linear({n: -c for n, c in shorter.terms.items() if c < 0}, -shorter.constant)
    return replace(expression, operands=(positive.expression(), negative.expression()))


def _shortest(form: Linear, definitions: Sequence[Definition]) -> Linear:
    for definition in definitions:
        for name, coefficient in definition.form.terms.items():
            factor, rest = divmod(form.terms.get(name, 0), coefficient)
            if not factor or rest:
                continue
            other = form.plus(definition.form, -factor).plus(Linear({definition.name: factor}, 0))
            if len(other.terms) < len(form.terms):
                form = other
                break
    return form


def bounds(end: IntExpr, step: int, base: Linear, *, upper: bool) -> list[IntExpr] | None:
    """Return bounds on ``base + step * point`` that say ``point <= end``, or ``point >= end``.

    ``None`` where ``end`` is no minimum (or maximum) of linear forms and quotients by ``step``.
    """
    if isinstance(end, Apply) and end.operator is (Operator.MIN if upper else Operator.MAX):
        parts = complete(bounds(operand, step, base, upper=upper) for operand in end.operands)
        return None if parts is None else [one for part in parts for one in part]
    parsed = _rounded(end, step)
    if parsed is None:
        return None
    # point <= w - floor(e / s) is point - w <= ceil(-e / s), or s (point - w) < s - e
    # point >= w + floor(e / s) is s (point - w) >= e - (s - 1)
    sign = 1 if upper else -1
    slack = sign * (step - 1) if parsed.sign * sign < 0 else 0
    return [parsed.scaled(step).plus(base).plus(Linear({}, slack)).expression()]


@fixed
class _Rounded:
    """``whole + sign * floor(divided / step)``; without a quotient ``sign`` is 0."""

    whole: Linear
    sign: int
    divided: Linear

    def scaled(self, step: int) -> Linear:
        """Return ``step * whole + sign * divided``."""
        return (self.whole * step).plus(self.divided, self.sign)


def _rounded(value: IntExpr, step: int) -> _Rounded | None:
    """Return a value as a linear form and at most one quotient by ``step``."""
    nothing = Linear({}, 0)
    form = linear(value)
    if form is not None:
        return _Rounded(form, 0, nothing)
    assert isinstance(value, Apply)
    if value.operator in (Operator.FLOORDIV, Operator.QUOTIENT):
        dividend, divisor = value.operands
        inner = linear(dividend)
        return _Rounded(nothing, 1, inner) if inner and divisor == Constant(step) else None
    if value.operator not in (Operator.ADD, Operator.SUB):
        return None
    result = _Rounded(nothing, 0, nothing)
    for position, operand in enumerate(value.operands):
        part = _rounded(operand, step)
        if part is None or (part.sign and result.sign):
            return None
        alone = len(value.operands) == 1
        sign = -1 if value.operator is Operator.SUB and (position > 0 or alone) else 1
        result = _Rounded(
            result.whole.plus(part.whole, sign),
            result.sign or sign * part.sign,
            part.divided if part.sign else result.divided,
        )
    return result


def strict(condition: IntExpr) -> IntExpr:
    """Write ``a <= b - 1`` and ``b >= a + 1`` as ``a < b``, ``b >= a + c`` as ``a + c <= b``."""
    if not isinstance(condition, Apply):
        return condition
    if condition.operator in (Operator.AND, Operator.OR):
        return replace(condition, operands=tuple(strict(o) for o in condition.operands))
    if condition.operator is Operator.GE:
        return _turned(condition)
    if condition.operator is not Operator.LE:
        return condition
    left, right = condition.operands
    raised = _raised(right)
    return condition if raised is None else left < raised


def _turned(condition: Apply) -> IntExpr:
    """Turn ``b >= a + c`` around, for ``c > 0``."""
    left, right = condition.operands
    added = (
        right.operands[1]
        if isinstance(right, Apply) and right.operator is Operator.ADD and len(right.operands) == 2
        else None
    )
    if not isinstance(added, Constant):
        return condition
    if added.value == 1:
        return right + -1 < left
    return right <= left


def _raised(expression: IntExpr) -> IntExpr | None:
    """Return ``expression + 1`` where that is no longer."""
    if isinstance(expression, Apply) and expression.operator in (Operator.MIN, Operator.MAX):
        raised: IntExprs | None = complete(map(_raised, expression.operands))
        return None if raised is None else replace(expression, operands=raised)
    if isinstance(expression, Constant):
        return Constant(expression.value + 1)
    if (
        isinstance(expression, Apply)
        and expression.operator in (Operator.ADD, Operator.SUB)
        and isinstance(expression.operands[-1], Constant)
        and len(expression.operands) == 2
    ):
        return expression + 1
    return None


def start_plus(first: IntExpr, more: IntExpr) -> IntExpr:
    """Return ``first + more``, a term that is zero left out."""
    if more == Constant(0):
        return first
    if first == Constant(0):
        return more
    terms = more.operands if isinstance(more, Apply) and more.operator is Operator.ADD else (more,)
    return Apply(Operator.ADD, (first, *terms))
