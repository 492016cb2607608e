"""Indices as sums in order, with quotients and remainders in their shortest form."""

from __future__ import annotations

from dataclasses import replace

from eatss.program import (
    Apply,
    Constant,
    IntExpr,
    Name,
    Operator,
    substitute,
)
from eatss.program.linear import Linear, linear

_SUMS = (Operator.ADD, Operator.SUB, Operator.MUL)

_Atoms = dict[IntExpr, str]
"""What is no sum or product, by the name that stands for it."""


def in_order(index: IntExpr) -> IntExpr:
    """Return an index as a sum of names, quotients and remainders, what cancels left out.

    Divisions are those of dividends that are not negative: ``(2 * m + l % 2) / 4`` is ``m / 2``,
    and ``(2 * m + l % 2) % 4`` is ``2 * (m % 2) + l % 2``.
    """
    atoms: _Atoms = {}
    form = linear(_opaque(index, atoms))
    return index if form is None else _named(form, atoms)


def _opaque(one: IntExpr, atoms: _Atoms) -> IntExpr:
    """Return an expression with names for what is no sum or product."""
    if not isinstance(one, Apply):
        return one
    if one.operator in _SUMS:
        return replace(one, operands=tuple(_opaque(each, atoms) for each in one.operands))
    one = replace(one, operands=tuple(map(in_order, one.operands)))
    shorter = _divided(one)
    if shorter is not None:
        return _opaque(shorter, atoms)
    return Name(atoms.setdefault(one, f"eatss_atom{len(atoms)}"))


def _named(form: Linear, atoms: _Atoms) -> IntExpr:
    return substitute(form.expression(), {name: one for one, name in atoms.items()})


def _divided(one: Apply) -> IntExpr | None:
    """Return a quotient or remainder in a shorter form, ``None`` if it is as short as can be.

    ``(g x + s) / (g c)`` is ``x / c``, its remainder ``g (x % c) + s``, for ``0 <= s < g``.
    """
    if one.operator not in (Operator.QUOTIENT, Operator.REMAINDER):
        return None
    value, by = one.operands
    parts = _parts(value, by.value) if isinstance(by, Constant) else None
    if parts is None:
        return None
    unit, count, rest, small = parts
    if one.operator is Operator.QUOTIENT:
        return rest if count == 1 else rest // count
    if count == 1:
        return small
    turns = rest % count
    return unit * turns + small


def _parts(value: IntExpr, by: int) -> tuple[int, int, IntExpr, IntExpr] | None:
    """Return ``g``, ``c``, ``x`` and ``s``, ``None`` if there are none with ``g > 1``."""
    atoms: _Atoms = {}
    form = linear(_opaque(value, atoms))
    if form is None:
        return None
    most = {name: _most(atom) for atom, name in atoms.items()}
    for unit in range(by, 1, -1):
        if by % unit:
            continue
        small = Linear(
            {name: c for name, c in form.terms.items() if c % unit}, form.constant % unit
        )
        bounds = [c * most.get(name, unit) for name, c in small.terms.items()]
        if any(bound < 0 for bound in bounds) or sum(bounds) + small.constant >= unit:
            continue
        large = {name: c // unit for name, c in form.terms.items() if not c % unit}
        rest = Linear(large, form.constant // unit)
        return unit, by // unit, _named(rest, atoms), _named(small, atoms)
    return None


def _most(atom: IntExpr) -> int:
    """Return the largest value of a remainder; of what has no bound, one that fits nowhere."""
    if isinstance(atom, Apply) and atom.operator is Operator.REMAINDER:
        by = atom.operands[1]
        if isinstance(by, Constant):
            return by.value - 1
    return 1 << 62
