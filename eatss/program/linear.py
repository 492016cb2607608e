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
        result: IntExpr = Constant(0)
        for name, coefficient in sorted(self.terms.items(), key=lambda term: term[1] < 0):
            product = abs(coefficient) * Name(name)
            if result == Constant(0):
                result = product if coefficient > 0 else _negative(product)
            else:
                result = result + product if coefficient > 0 else result - product
        return result + self.constant


@fixed
class Definition:
    """A C variable that equals a linear form."""

    name: str
    form: Linear


def _negative(product: IntExpr) -> IntExpr:
    match product:
        case Apply(_, (Constant(value), name)):
            return -value * name
    return Apply(Operator.SUB, (product,))


def linear(expression: IntExpr) -> Linear | None:
    """Return an expression as a linear form, ``None`` if it is none."""
    match expression:
        case Constant(value):
            return Linear({}, value)
        case Name(name):
            return Linear({name: 1}, 0)
    operator, forms = expression.operator, complete(map(linear, expression.operands))
    if forms is None or operator not in (Operator.ADD, Operator.SUB, Operator.MUL):
        return None
    sign = -1 if operator is Operator.SUB else 1
    found, *others = forms
    if not others:
        return found * sign
    for one in others:
        if operator is not Operator.MUL:
            found = found.plus(one, sign)
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
    quotients: list[Apply] = []

    def apart(one: IntExpr) -> IntExpr:
        """Return a sum with a name in the place of each quotient."""
        match one:
            case Apply(Operator.FLOORDIV | Operator.QUOTIENT):
                quotients.append(one)
                return Name(_QUOTIENT)
            case Apply(Operator.ADD | Operator.SUB, operands):
                return replace(one, operands=tuple(map(apart, operands)))
        return one

    form = linear(apart(end))
    if form is None or len(quotients) > 1:
        return None
    quotient = form.terms.get(_QUOTIENT, 0)
    scaled = form.plus(Linear({_QUOTIENT: 1}, 0), -quotient) * step
    for one in quotients:
        dividend = linear(one.operands[0])
        if dividend is None or one.operands[1] != Constant(step):
            return None
        scaled = scaled.plus(dividend, quotient)
    # point <= w - floor(e / s) is point - w <= ceil(-e / s), or s (point - w) < s - e
    # point >= w + floor(e / s) is s (point - w) >= e - (s - 1)
    sign = 1 if upper else -1
    slack = sign * (step - 1) if quotient * sign < 0 else 0
    return [scaled.plus(base).plus(Linear({}, slack)).expression()]


_QUOTIENT = " quotient"
"""What stands for a quotient; no variable is called so."""


def strict(condition: IntExpr) -> IntExpr:
    """Write ``a <= b - 1`` and ``b >= a + 1`` as ``a < b``, ``b >= a + c`` as ``a + c <= b``."""
    match condition:
        case Apply(Operator.AND | Operator.OR, operands):
            return replace(condition, operands=tuple(map(strict, operands)))
        case Apply(Operator.GE, (left, Apply(Operator.ADD, (_, Constant(added))) as right)):
            return right + -1 < left if added == 1 else right <= left
        case Apply(Operator.LE, (left, right)) if (raised := _raised(right)) is not None:
            return left < raised
    return condition


def _raised(expression: IntExpr) -> IntExpr | None:
    """Return ``expression + 1`` where that is no longer."""
    match expression:
        case Apply(Operator.MIN | Operator.MAX, operands):
            raised: IntExprs | None = complete(map(_raised, operands))
            return None if raised is None else replace(expression, operands=raised)
        case Constant() | Apply(Operator.ADD | Operator.SUB, (_, Constant())):
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
