"""Reads division and rounding: C's ``/``, ``%``, shifts and bits by a constant, floor and ceil.

C truncates towards zero and isl rounds down; everything that turns one into the other is here.
The functions take what reads their operands.
"""

from __future__ import annotations

from typing import Protocol

import islpy as isl

from eatss.frontend.calls import is_library_function
from eatss.frontend.ranges import RangeProver
from eatss.frontend.refusals import NotAffineError, not_affine
from eatss.frontend.tree import ELEMENTS, Node
from eatss.frontend.values import Poly, Value, ValueAlgebra

_BITWISE = ("&", "|", "^")
_MAX_RUNS = 4


class OperandReader(Protocol):
    """Reads integer operands; ``AffineReader`` is one."""

    algebra: ValueAlgebra
    ranges: RangeProver

    def value(self, node: Node, domain: isl.Set) -> Value:
        """Read an integer expression whose value is used in ``domain``."""


def by_constant(reader: OperandReader, node: Node, domain: isl.Set) -> Value:
    """Read ``/``, ``%``, ``&``, ``|``, ``^``, ``<<`` and ``>>`` with a constant right operand.

    Raises:
        NotAffineError: If the right operand is not a constant, or one C leaves undefined.
    """
    value, right = (reader.value(operand, domain) for operand in node.children)
    amount = reader.algebra.constant_of(right)
    if amount is None and node.op in _BITWISE:
        value, amount = right, reader.algebra.constant_of(value)
        if amount is None:
            raise NotAffineError(node, f"no operand of '{node.op}' is a constant")
    if amount is None:
        raise NotAffineError(node, f"right operand of '{node.op}' is not a constant")
    if node.op in ("/", "%"):
        return _divide(reader, node, value, amount, domain)
    if node.op in _BITWISE:
        return _of_bits(reader, node, value, amount, domain)
    if not 0 <= amount < node.type.bits:
        raise NotAffineError(
            node,
            f"shift by {amount} is undefined",
            code="EATSS-F042",
            hint="shift by less than the width of the type",
        )
    if node.op == "<<":
        return reader.algebra.scale(value, 1 << amount)
    return reader.algebra.floor_divide(value, 1 << amount)


def _of_bits(reader: OperandReader, node: Node, value: Value, mask: int, domain: isl.Set) -> Value:
    """Read what bits say: ``x | c = x + c - (x & c)``, ``x ^ c = x + c - 2 (x & c)``."""
    runs = _runs_of_ones(mask)
    if len(runs) > _MAX_RUNS:
        raise NotAffineError(node, f"bits of {mask} that are far apart")
    algebra = reader.algebra
    common: Value = Poly.constant(0)
    for low, high in runs:
        above = value if high is None else low_bits(reader, value, high, domain)
        common = algebra.add(common, above)
        if low:
            common = algebra.add(common, low_bits(reader, value, low, domain), -1)
    if node.op == "&":
        return common
    both = algebra.add(value, mask)
    return algebra.add(both, common, -1 if node.op == "|" else -2)


def _runs_of_ones(mask: int) -> list[tuple[int, int | None]]:
    """Return where the ones of a number begin and end; those of a negative one have no end."""
    runs: list[tuple[int, int | None]] = []
    at = 0
    while mask not in (0, -1):
        low = (mask & -mask).bit_length() - 1
        high = (~(mask >> low) & -~(mask >> low)).bit_length() - 1
        if mask >> low == -1:
            break
        runs.append((at + low, at + low + high))
        at, mask = at + low + high, mask >> (low + high)
    if mask < 0:
        runs.append((at + (mask & -mask).bit_length() - 1, None))
    return runs


def low_bits(reader: OperandReader, value: Value, bits: int, domain: isl.Set) -> Value:
    """Return ``value mod 2^bits``, which is the value where that is proven to be one of them."""
    algebra = reader.algebra
    if reader.ranges.proven(domain, algebra.within(0, value, (1 << bits) - 1)):
        return value
    return algebra.modulo(value, 1 << bits)


def _divide(
    reader: OperandReader, node: Node, value: Value, divisor: int, domain: isl.Set
) -> Value:
    """C truncates towards zero: ``a / -c = -(a / c)`` and ``a % -c = a % c``."""
    if divisor == 0:
        raise NotAffineError(
            node, f"'{node.op}' by zero", code="EATSS-F042",
            hint="the divisor must be a non-zero constant",
        )  # fmt: skip
    size = abs(divisor)
    constant = reader.algebra.constant_of(value)
    if constant is not None:
        quotient = abs(constant) // size * (1 if constant * divisor >= 0 else -1)
        result = quotient if node.op == "/" else constant - quotient * divisor
        return Poly.constant(result)
    if size == 1:
        return reader.algebra.scale(value, divisor) if node.op == "/" else Poly.constant(0)
    non_negative = reader.ranges.proven(domain, reader.algebra.at_least(value, 0))
    if node.op == "/":
        if non_negative:
            quotient_f = reader.algebra.floor_divide(value, size)
        else:
            quotient_f = reader.algebra.function(value).tdiv_q(reader.algebra.function(size))
        return reader.algebra.scale(quotient_f, 1 if divisor > 0 else -1)
    if non_negative:
        return reader.algebra.modulo(value, size)
    return reader.algebra.function(value).tdiv_r(reader.algebra.function(size))


def rounded(reader: OperandReader, node: Node, domain: isl.Set) -> Value:
    """Read ``(int) floor((double) a / b)`` and its like, as old floord macros expand to."""
    numerator, divisor, exact = fraction(reader, node.children[0], domain)
    if not exact:
        raise NotAffineError(node, "conversion of a floating-point value to an integer")
    assert divisor == 1
    return numerator


def fraction(reader: OperandReader, node: Node, domain: isl.Set) -> tuple[Value, int, bool]:
    """Read a floating expression as ``value / divisor``; exact if that is an integer."""
    if node.kind == "cast" and not node.type.is_integer:
        operand = node.children[0]
        if operand.type.is_integer:
            if operand.type.bits > 32 or node.type.bits < 64:
                raise NotAffineError(node, "rounding of a large integer")
            return reader.value(operand, domain), 1, True
        return fraction(reader, operand, domain)
    if node.kind == "float" and isinstance(node.value, float):
        if node.value == int(node.value) and abs(node.value) < 2**31:
            return Poly.constant(int(node.value)), 1, True
    elif node.is_binary("/"):
        top, below, _ = fraction(reader, node.children[0], domain)
        amount, unit, _ = fraction(reader, node.children[1], domain)
        divisor = reader.algebra.constant_of(amount)
        if below == unit == 1 and divisor:
            sign = 1 if divisor > 0 else -1
            return reader.algebra.scale(top, sign), abs(divisor), abs(divisor) == 1
    elif (
        node.kind == "call"
        and node.name in ("floor", "ceil")
        and is_library_function(node.children[0])
    ):
        top, below, _ = fraction(reader, node.children[1], domain)
        if node.name == "floor":
            return reader.algebra.floor_divide(top, below), 1, True
        up = reader.algebra.add(top, below - 1)
        return reader.algebra.floor_divide(up, below), 1, True
    raise why_not(node)


def why_not(node: Node) -> NotAffineError:
    """Find the reason a floating expression is not affine: data, or only its form."""
    for inner in node.preorder():
        if inner.kind in ELEMENTS:
            return not_affine(inner)
        if inner.kind == "name" and inner.type.kind == "floating":
            return NotAffineError(inner, f"'{inner.name}' is data", "data")
    return NotAffineError(node, "floating-point expression")


def rounded_division(reader: OperandReader, node: Node, domain: isl.Set) -> Value:
    """Read CLooG's ``floord`` and ``ceild``."""
    value = reader.value(node.children[1], domain)
    divisor = reader.algebra.constant_of(reader.value(node.children[2], domain))
    if not divisor:
        raise NotAffineError(
            node, f"second argument of {node.name} is not a non-zero constant",
            code="EATSS-F042", hint="the divisor must be a non-zero constant",
        )  # fmt: skip
    if divisor < 0:
        value, divisor = reader.algebra.scale(value, -1), -divisor
    if node.name == "ceild":
        value = reader.algebra.add(value, divisor - 1)
    return reader.algebra.floor_divide(value, divisor)
