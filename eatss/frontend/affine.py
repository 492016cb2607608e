"""Reads affine expressions and conditions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import islpy as isl

from eatss.base.frozen import frozen
from eatss.frontend.declarations import SymbolTable, Variable
from eatss.frontend.refusals import (
    NotAffineError,
    Reporter,
    floating,
    is_library_function,
    not_affine,
    refusal,
)
from eatss.frontend.tree import TRUTHS, Node, chain
from eatss.frontend.values import Poly, RangeProver, Value, ValueAlgebra
from eatss.polyhedral.isl_names import coalesced
from eatss.polyhedral.scop import AccessKind

# -- affine ------------------------------------------------------------------------------------
# Reads C integer expressions as quasi-affine values and C conditions as sets.
#
# C integers are exact here as long as nothing overflows. Signed overflow is undefined in C and
# is taken not to happen. Unsigned arithmetic is exact modulo 2^bits: sums and products are
# kept as integers, and where one is consumed (compared, divided, widened, used as a
# subscript) it is proven to lie in its type's range; a value that may be negative there is refused.


_INNER = frozenset({"binary", "unary", "conditional", "cast", "call"})


class AffineReader:
    """Reads expressions under the counters that are active.

    ``scalars`` has what scalars that the region sets are, where that is known. What reads raises
    :class:`NotAffineError` for what is not quasi-affine, or may leave its type's range.
    """

    def __init__(self, symbols: SymbolTable, algebra: ValueAlgebra) -> None:
        self._symbols = symbols
        self.algebra = algebra
        self.active: dict[Variable, str] = {}
        self.ranges = RangeProver(algebra)
        self.scalars: dict[Variable, Value] = {}

    def is_index(self, node: Node) -> bool:
        """Tell whether an integer expression names nothing but what is affine.

        That is counters, parameters, constants and scalars of which it is known what they are.
        """
        variable = self._symbols.of(node) if node.kind == "name" else None
        is_known = variable is not None and (variable.role != "data" or variable in self.scalars)
        parts = node.children[1:] if node.kind == "call" else node.children
        return node.type.is_integer and (
            is_known
            or node.kind == "int"
            or (node.kind in _INNER and all(map(self.is_index, parts)))
        )

    # -- integers -----------------------------------------------------------------

    def value(self, node: Node, domain: isl.Set) -> Value:
        """Read an integer expression whose value is used in ``domain``."""
        value = self._ring(node, domain)
        self.ranges.check(node, value, domain)
        return value

    def function(self, node: Node, domain: isl.Set) -> isl.PwAff:
        """Read an integer expression as an isl function of parameters."""
        return self.algebra.function(self.value(node, domain))

    def _ring(self, node: Node, domain: isl.Set) -> Value:
        """Read a value that may still wrap: congruent to C's modulo 2^bits."""
        return (self._sum if node.is_binary("+", "-") else self._term)(node, domain)

    def _sum(self, node: Node, domain: isl.Set) -> Value:
        """Read a sum along its left spine without recursion, polynomials first."""
        parts: list[tuple[Value, int]] = []
        while node.is_binary("+", "-"):
            parts.append((self._ring(node.children[1], domain), 1 if node.op == "+" else -1))
            node = node.children[0]
        parts.append((self._ring(node, domain), 1))
        total: Value = Poly({})
        others = [part for part in parts if not isinstance(part[0], Poly)]
        for value, sign in (*(p for p in parts if isinstance(p[0], Poly)), *reversed(others)):
            total = self.algebra.add(total, value, sign)
        return total

    def _term(self, node: Node, domain: isl.Set) -> Value:  # noqa: C901, PLR0911 - one for each form
        match node.kind:
            case "int" if isinstance(node.value, int):
                return Poly.constant(node.value)
            case "name":
                return self._name(node)
            case "binary" | "unary" if node.op in TRUTHS:
                return self.algebra.choose(self.condition(node, domain), 1, 0)
            case "binary" if node.op == "*":
                return self._product(node, domain)
            case "binary" if node.op in ("/", "%"):
                return self._divide(node, domain)
            case "binary" if node.op in ("<<", ">>"):
                return self._shift(node, domain)
            case "binary":
                for child in node.children:
                    self._ring(child, domain)  # data is the better reason
            case "unary" if node.op in ("+", "-"):
                value = self._ring(node.children[0], domain)
                return self.algebra.scale(value, 1 if node.op == "+" else -1)
            case "cast":
                return self._cast(node, domain)
            case "conditional":
                return self._conditional(node, domain)
            case "call":
                return self._call(node, domain)
        raise not_affine(node)

    def _name(self, node: Node) -> Value:
        variable = self._symbols.of(node)
        if variable is None:
            raise NotAffineError(node, "no_variable", name=node.name)
        if variable.shape.qualified_volatile:
            raise NotAffineError(node, "volatile", name=node.name)
        if variable in self.scalars:
            return self.scalars[variable]
        if variable in self.active:
            return Poly.unknown(self.active[variable])
        if variable.role == "counter":
            raise NotAffineError(node, "outside_loop", name=node.name)
        if variable.role == "data" or not variable.shape.element.is_integer:
            is_set = variable.is_local or variable.first_write is not None
            kind = "set_inside" if variable.is_scalar and is_set else "data"
            raise NotAffineError(node, kind, depends=True, name=node.name)
        if variable.constant is not None:
            return Poly.constant(variable.constant)
        self.ranges.used_parameters.setdefault(variable.unique_name, variable)
        return Poly.unknown(variable.unique_name)

    def _shift(self, node: Node, domain: isl.Set) -> Value:
        """Read a number that is shifted by a number, as sizes are defined: ``1 << 10``."""
        number, by = (self.algebra.constant_of(self.value(one, domain)) for one in node.children)
        if number is None or by is None or not 0 <= by < node.type.bits:
            raise not_affine(node)
        return Poly.constant(number << by if node.op == "<<" else number >> by)

    def _divide(self, node: Node, domain: isl.Set) -> Value:
        """Read ``/`` and ``%`` by a constant: C truncates, isl rounds down."""
        value, divisor = self._by_constant(node, node.children, domain)
        algebra, constant = self.algebra, self.algebra.constant_of(value)
        if constant is not None:
            quotient = abs(constant) // divisor * (1 if constant >= 0 else -1)
            return Poly.constant(quotient if node.op == "/" else constant - quotient * divisor)
        sides = algebra.function(value), algebra.function(divisor)
        non_negative = self.ranges.proven(domain, algebra.at_least(value, 0))
        if node.op == "%":
            return algebra.modulo(value, divisor) if non_negative else isl.PwAff.tdiv_r(*sides)
        return algebra.floor_divide(value, divisor) if non_negative else isl.PwAff.tdiv_q(*sides)

    def _by_constant(
        self, node: Node, operands: Sequence[Node], domain: isl.Set
    ) -> tuple[Value, int]:
        """Read what is divided, and the constant greater than zero that it is divided by."""
        value, below = (self.value(one, domain) for one in operands)
        divisor = self.algebra.constant_of(below)
        if divisor is None or divisor < 1:
            raise NotAffineError(node, "operand", name=node.op or node.name or "/")
        return value, divisor

    def _rounded(self, node: Node, domain: isl.Set) -> Value:
        """Read ``(int) floor((double) a / b)``, which macros of floord expand to."""
        call = node.children[0]
        if call.kind == "call" and call.name == "floor" and is_library_function(call.children[0]):
            quotient = call.children[1]
            sides = quotient.children if quotient.is_binary("/") else []
            operands = [side.children[0] for side in sides if side.kind == "cast"]
            if len(operands) == 2 and all(
                one.type.is_integer and one.type.bits <= 32 for one in operands
            ):
                return self._floor(node, operands, domain)
        raise NotAffineError(node, "from_floating")

    def _floor(self, node: Node, operands: Sequence[Node], domain: isl.Set) -> Value:
        """Return a quotient rounded down, or up by ``ceild``."""
        value, divisor = self._by_constant(node, operands, domain)
        if node.name == "ceild":
            value = self.algebra.add(value, divisor - 1)
        return self.algebra.floor_divide(value, divisor)

    def _product(self, node: Node, domain: isl.Set) -> Value:
        left, right = (self._ring(factor, domain) for factor in node.children)
        for factor, other in ((left, right), (right, left)):
            constant = self.algebra.constant_of(factor)
            if constant is not None:
                return self.algebra.scale(other, constant)
        if isinstance(left, Poly) and isinstance(right, Poly):
            product = left.times(right)
            if all(len(monomial) <= 8 for monomial in product.terms):
                return product
        raise NotAffineError(node, "product")

    def _cast(self, node: Node, domain: isl.Set) -> Value:
        operand = node.children[0]
        target, source = node.type, operand.type
        if not target.is_integer:
            raise NotAffineError(node, "converted", type=target.spelling)
        if not source.is_integer:
            return self._rounded(node, domain)
        if target.bits <= 1:
            return self.algebra.choose(self.condition(operand, domain), 1, 0)
        if not source.signed and target.bits > source.bits:
            return self.value(operand, domain)
        value = self._ring(operand, domain)
        if not target.holds(source) and (target.signed or target.bits < 32):
            self.ranges.check(node, value, domain)
        return value

    def _conditional(self, node: Node, domain: isl.Set) -> Value:
        test, *arms = node.children
        holds = self.condition(test, domain)
        places = domain.intersect(holds), domain.subtract(holds)
        read = self._ring if node.type.signed else self.value
        values = [read(arm, place) for arm, place in zip(arms, places, strict=True)]
        return self.algebra.choose(holds, *values)

    def _call(self, node: Node, domain: isl.Set) -> Value:
        callee, *arguments = node.children
        if not is_library_function(callee):
            raise NotAffineError(node, refusal(node), name=node.name or "?")
        match node.name, arguments:
            case "min" | "MIN" | "imin" | "Min" | "max" | "MAX" | "imax" | "Max", [_, _]:
                left, right = (self.value(one, domain) for one in arguments)
                is_max = node.name.lower().endswith("max")
                return self.algebra.extremum(left, right, is_max=is_max)
            case "floord" | "ceild", [_, _]:
                return self._floor(node, arguments, domain)
            case "abs" | "labs", [argument]:
                value = self.value(argument, domain)
                return self.algebra.extremum(value, self.algebra.scale(value, -1), is_max=True)
        raise NotAffineError(node, "called", name=node.name or "?")

    # -- conditions ---------------------------------------------------------------

    def condition(self, node: Node, domain: isl.Set) -> isl.Set:
        """Read a condition, of affine comparisons, as the set where it holds."""
        if node.is_binary("&&", "||"):
            return self._logical(node, domain)
        if node.op == "!":
            return self.condition(node.children[0], domain).complement()
        if node.op in TRUTHS:
            return self._comparison(node, domain)
        if node.kind == "cast" and node.type.bits <= 1:
            return self.condition(node.children[0], domain)
        if not node.type.is_integer:
            raise floating(node)
        return self.algebra.function(self.value(node, domain)).non_zero_set()

    def _logical(self, node: Node, domain: isl.Set) -> isl.Set:
        """Read a chain of one logical operator along its left spine without recursion."""
        is_and = node.op == "&&"
        first, *others = chain(node, node.op)
        reached = domain
        holds = here = self.condition(first, domain)
        for operand in others:
            reached = reached.intersect(here) if is_and else reached.subtract(here)
            here = self.condition(operand, reached)
            holds = holds.intersect(here) if is_and else holds.union(here)
            if holds.n_basic_set() > 8:
                holds = coalesced(holds)
        return holds

    def _comparison(self, node: Node, domain: isl.Set) -> isl.Set:
        left, right = self.operands(node, domain)
        if node.op in ("==", "!="):
            gap = self.algebra.function(self.algebra.add(left, right, -1))
            return gap.zero_set() if node.op == "==" else gap.non_zero_set()
        greater, smaller = (left, right) if node.op[0] == ">" else (right, left)
        return self.algebra.at_least(greater, smaller, int(len(node.op) == 1))

    def operands(self, node: Node, domain: isl.Set) -> tuple[Value, Value]:
        """Read both sides of a comparison."""
        left, right = node.children
        for side in (left, right):
            if not side.type.is_integer:
                raise floating(side)
        return self.value(left, domain), self.value(right, domain)


# -- reading -----------------------------------------------------------------------------------
# Who reads a region, and a reference as it is before it becomes part of a ``Scop``.


Common: TypeAlias = tuple[SymbolTable, AffineReader, Reporter]
"""What all who read a region share: its variables, what is affine, and what is wrong."""


class RegionReader:
    """Reads a part of one region."""

    def __init__(self, common: Common) -> None:
        self._common = common
        symbols, affine, reporter = common
        self._symbols, self._affine, self._reporter = common
        self._algebra, self._ranges = affine.algebra, affine.ranges
        self._of = symbols.of
        self._error, self._refuse, self._quoted = reporter.error, reporter.refuse, reporter.quoted

    def _free(self, name: str) -> str:
        """Return a name for a counter inside the loops around."""
        return self._symbols.free(name, self._affine.active.values())


@frozen
class RawAccess:
    """A reference with its subscripts as values of counters and parameters.

    It is made at the points of ``domain`` at which its statement runs.
    """

    variable: Variable
    kind: AccessKind
    subscripts: tuple[Value, ...]
    node: Node
    domain: isl.Set
