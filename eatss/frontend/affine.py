"""Reads affine expressions and conditions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import islpy as isl

from eatss.base.frozen import frozen
from eatss.base.polynomial import Monomial, accumulate
from eatss.frontend.declarations import SymbolTable, Variable
from eatss.frontend.refusals import (
    NotAffineError,
    Reporter,
    call_refusal,
    floating,
    is_library_function,
    not_affine,
    product_of_variables,
)
from eatss.frontend.tree import Node, chain
from eatss.frontend.values import (
    NonLinearError,
    Poly,
    RangeProver,
    TooManyPiecesError,
    Value,
    ValueAlgebra,
)
from eatss.polyhedral.expression import Expression
from eatss.polyhedral.isl_names import coalesced
from eatss.polyhedral.scop import AccessKind, SizeCondition

# -- affine ------------------------------------------------------------------------------------
# Reads C integer expressions as quasi-affine values and C conditions as sets.
#
# C integers are exact here as long as nothing overflows. Signed overflow is undefined in C and
# is taken not to happen. Unsigned arithmetic is exact modulo 2^bits: sums and products are
# kept as integers, and where one is consumed (compared, divided, widened, used as a
# subscript) it is proven to lie in its type's range; a value that may be negative there is refused.


_MINIMA = frozenset({"min", "MIN", "imin", "Min"})
_MAXIMA = frozenset({"max", "MAX", "imax", "Max"})
_INNER = frozenset({"binary", "unary", "conditional", "cast", "call"})
_COMPARISONS = frozenset({"<", "<=", ">", ">=", "==", "!="})


class AffineReader:
    """Reads expressions under the counters that are active.

    ``scalars`` has what scalars that the region sets are, where that is known.
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

    # -- entry points -------------------------------------------------------------

    def value(self, node: Node, domain: isl.Set) -> Value:
        """Read an integer expression whose value is used in ``domain``.

        Raises:
            NotAffineError: If it is not quasi-affine or may leave its type's range.
        """
        with self._guarded(node):
            value = self._ring(node, domain)
            self.ranges.check(node, value, domain)
            return value

    def function(self, node: Node, domain: isl.Set) -> isl.PwAff:
        """Read an integer expression as an isl function of parameters."""
        with self._guarded(node):
            return self.algebra.function(self.value(node, domain))

    def condition(self, node: Node, domain: isl.Set) -> isl.Set:
        """Read a condition as the set of parameter values where it holds.

        Raises:
            NotAffineError: If it is not a combination of affine comparisons.
        """
        with self._guarded(node):
            return self._condition(node, domain)

    def conditions(self) -> tuple[SizeCondition, ...]:
        """Return on what sizes it depends that values are those of C."""
        stated = self.ranges.stated.items()
        return tuple(SizeCondition(sizes=sizes, message=message) for message, sizes in stated)

    @contextmanager
    def _guarded(self, node: Node) -> Iterator[None]:
        try:
            yield
        except NonLinearError:
            raise product_of_variables(node) from None
        except TooManyPiecesError:
            raise NotAffineError(
                node, "expression has too many cases", code="EATSS-F009",
                hint="use fewer nested ?:, min and max in one expression",
            ) from None  # fmt: skip

    # -- integers -----------------------------------------------------------------

    def _ring(self, node: Node, domain: isl.Set) -> Value:
        """Read a value that may still wrap: congruent to C's modulo 2^bits."""
        with self._guarded(node):
            if node.is_binary("+", "-"):
                return self._sum(node, domain)
            return self._term(node, domain)

    def _sum(self, node: Node, domain: isl.Set) -> Value:
        """Read a sum along its left spine without recursion."""
        terms: dict[Monomial, int] = {}
        others: list[tuple[Value, int]] = []
        while node.is_binary("+", "-"):
            sign = 1 if node.op == "+" else -1
            self._collect(self._ring(node.children[1], domain), sign, terms, others)
            node = node.children[0]
        self._collect(self._ring(node, domain), 1, terms, others)
        total: Value = Poly(terms)
        for other, sign in reversed(others):
            total = self.algebra.add(total, other, sign)
        return total

    @staticmethod
    def _collect(
        value: Value, sign: int, terms: dict[Monomial, int], others: list[tuple[Value, int]]
    ) -> None:
        if isinstance(value, Poly):
            accumulate(terms, value, sign)
        else:
            others.append((value, sign))

    def _term(self, node: Node, domain: isl.Set) -> Value:  # noqa: PLR0911 - one for each form
        match node.kind:
            case "int" if isinstance(node.value, int):
                return Poly.constant(node.value)
            case "name":
                return self._name(node)
            case "binary":
                return self._binary(node, domain)
            case "unary":
                return self._unary(node, domain)
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
            raise NotAffineError(node, f"'{node.name}' is not a variable")
        if variable.shape.qualified_volatile:
            raise NotAffineError(
                node, f"'{node.name}' is volatile", code="EATSS-F040",
                hint="drop 'volatile' or copy the value before the region",
            )  # fmt: skip
        if variable in self.scalars:
            return self.scalars[variable]
        if variable in self.active:
            return Poly.unknown(self.active[variable])
        if variable.role == "counter":
            raise NotAffineError(
                node,
                f"counter '{node.name}' is used outside its loop",
                code="EATSS-F031",
                hint="write the value it has there, for example the loop's upper bound",
            )
        if variable.role == "data" or not variable.shape.element.is_integer:
            raise self._data(node, variable)
        if variable.constant is not None:
            return Poly.constant(variable.constant)
        self.ranges.used_parameters.setdefault(variable.unique_name, variable)
        return Poly.unknown(variable.unique_name)

    def _data(self, node: Node, variable: Variable) -> NotAffineError:
        if variable.is_scalar and (variable.is_local or variable.first_write is not None):
            return NotAffineError(
                node,
                f"'{node.name}' is set in the region, and what it is here is not known",
                "data",
                hint="set it to an affine expression of counters and parameters before, in each "
                "round of the loop (k = 2 * i, not k += 2)",
            )
        return NotAffineError(node, f"'{node.name}' is data", "data")

    def _binary(self, node: Node, domain: isl.Set) -> Value:
        if node.op == "*":
            return self._product(node, domain)
        if node.op in ("/", "%", ">>", "<<"):
            return self._by_constant(node, domain)
        if node.op in _COMPARISONS or node.op in ("&&", "||"):
            return self._truth(node, domain)
        for child in node.children:
            self._ring(child, domain)  # data is the better reason
        raise not_affine(node)

    def _by_constant(self, node: Node, domain: isl.Set) -> Value:
        """Read ``/``, ``%``, ``<<`` and ``>>`` with a constant right operand."""
        value, right = (self.value(operand, domain) for operand in node.children)
        amount = self.algebra.constant_of(right)
        if amount is None:
            raise NotAffineError(node, f"right operand of '{node.op}' is not a constant")
        if node.op in ("/", "%"):
            return self._divide(node, value, amount, domain)
        if not 0 <= amount < node.type.bits:
            raise NotAffineError(
                node, f"shift by {amount} is undefined", code="EATSS-F042",
                hint="shift by less than the width of the type",
            )  # fmt: skip
        if node.op == "<<":
            return self.algebra.scale(value, 1 << amount)
        return self.algebra.floor_divide(value, 1 << amount)

    def _divide(self, node: Node, value: Value, divisor: int, domain: isl.Set) -> Value:
        """C truncates, isl rounds down: ``a / -c = -(a / c)`` and ``a % -c = a % c``."""
        algebra, size = self.algebra, abs(self._divisor(node, divisor))
        constant = algebra.constant_of(value)
        if constant is not None:
            quotient = abs(constant) // size * (1 if constant * divisor >= 0 else -1)
            result = quotient if node.op == "/" else constant - quotient * divisor
            return Poly.constant(result)
        if size == 1:
            return algebra.scale(value, divisor) if node.op == "/" else Poly.constant(0)
        non_negative = self.ranges.proven(domain, algebra.at_least(value, 0))
        if node.op == "%":
            if non_negative:
                return algebra.modulo(value, size)
            return algebra.function(value).tdiv_r(algebra.function(size))
        if non_negative:
            quotient_f = algebra.floor_divide(value, size)
        else:
            quotient_f = algebra.function(value).tdiv_q(algebra.function(size))
        return algebra.scale(quotient_f, 1 if divisor > 0 else -1)

    @staticmethod
    def _divisor(node: Node, divisor: int | None) -> int:
        if not divisor:
            raise NotAffineError(
                node, f"'{node.op or node.name}' by what is no constant, or zero",
                code="EATSS-F042", hint="the divisor must be a non-zero constant",
            )  # fmt: skip
        return divisor

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
                top, below = (self.value(one, domain) for one in operands)
                return self._floor_divide(node, top, self.algebra.constant_of(below))
        raise NotAffineError(node, "conversion of a floating-point value to an integer")

    def _floor_divide(self, node: Node, value: Value, divisor: int | None) -> Value:
        sign = 1 if self._divisor(node, divisor) > 0 else -1
        return self.algebra.floor_divide(self.algebra.scale(value, sign), abs(divisor or 1))

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
        raise product_of_variables(node)

    def _unary(self, node: Node, domain: isl.Set) -> Value:
        if node.op in ("+", "-"):
            value = self._ring(node.children[0], domain)
            return self.algebra.scale(value, 1 if node.op == "+" else -1)
        if node.op == "!":
            return self._truth(node, domain)
        raise not_affine(node)

    def _truth(self, node: Node, domain: isl.Set) -> Value:
        """Read a comparison used as the number 0 or 1."""
        holds = self._condition(node, domain)
        return self.algebra.choose(holds, 1, 0)

    def _cast(self, node: Node, domain: isl.Set) -> Value:
        operand = node.children[0]
        target, source = node.type, operand.type
        if not target.is_integer:
            raise NotAffineError(node, f"conversion to {target.spelling}")
        if not source.is_integer:
            return self._rounded(node, domain)
        if target.bits <= 1:
            return self._truth(operand, domain)
        if not source.signed and target.bits > source.bits:
            return self.value(operand, domain)
        value = self._ring(operand, domain)
        fits = source.minimum >= target.minimum and source.maximum <= target.maximum
        if not fits and (target.signed or target.bits < 32):
            self.ranges.check(node, value, domain)
        return value

    def _conditional(self, node: Node, domain: isl.Set) -> Value:
        test, if_true, if_false = node.children
        holds = self._condition(test, domain)
        yes = self._ring(if_true, domain.intersect(holds))
        no = self._ring(if_false, domain.subtract(holds))
        if not node.type.signed:
            self.ranges.check(if_true, yes, domain.intersect(holds))
            self.ranges.check(if_false, no, domain.subtract(holds))
        return self.algebra.choose(holds, yes, no)

    def _call(self, node: Node, domain: isl.Set) -> Value:
        callee, *arguments = node.children
        if not is_library_function(callee):
            code, message, hint = call_refusal(callee)
            raise NotAffineError(node, message, code=code, hint=hint)
        if len(arguments) == 2 and node.name in _MINIMA | _MAXIMA:
            left, right = (self.value(a, domain) for a in arguments)
            return self.algebra.extremum(left, right, is_max=node.name in _MAXIMA)
        if len(arguments) == 2 and node.name in ("floord", "ceild"):
            value, below = (self.value(a, domain) for a in arguments)
            divisor = self._divisor(node, self.algebra.constant_of(below))
            if node.name == "ceild":
                value = self.algebra.add(value, divisor - (1 if divisor > 0 else -1))
            return self._floor_divide(node, value, divisor)
        if len(arguments) == 1 and node.name in ("abs", "labs"):
            value = self.value(arguments[0], domain)
            return self.algebra.extremum(value, self.algebra.scale(value, -1), is_max=True)
        raise NotAffineError(node, f"call of '{node.name or '?'}'")

    # -- conditions ---------------------------------------------------------------

    def _condition(self, node: Node, domain: isl.Set) -> isl.Set:
        with self._guarded(node):
            if node.is_binary("&&", "||"):
                return self._logical(node, domain)
            if node.kind == "unary" and node.op == "!":
                return self._condition(node.children[0], domain).complement()
            if node.is_binary(*_COMPARISONS):
                return self._comparison(node, domain)
            if node.kind == "cast" and node.type.bits <= 1:
                return self._condition(node.children[0], domain)
            if not node.type.is_integer:
                raise floating(node)
            value = self.value(node, domain)
            return self.algebra.unequal(value, 0)

    def _logical(self, node: Node, domain: isl.Set) -> isl.Set:
        """Read a chain of one logical operator along its left spine without recursion."""
        is_and = node.op == "&&"
        holds: isl.Set | None = None
        reached = domain
        for operand in chain(node, node.op):
            here = self._condition(operand, reached)
            if holds is None:
                holds = here
            else:
                holds = holds.intersect(here) if is_and else holds.union(here)
            if holds.n_basic_set() > 8:
                holds = coalesced(holds)
            if holds.n_basic_set() > 200:
                raise TooManyPiecesError
            reached = reached.intersect(here) if is_and else reached.subtract(here)
        assert holds is not None
        return holds

    def _comparison(self, node: Node, domain: isl.Set) -> isl.Set:
        left, right = self.operands(node, domain)
        if node.op in ("==", "!="):
            compared = self.algebra.equal if node.op == "==" else self.algebra.unequal
            return compared(left, right)
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
# What reading a region yields before it becomes a ``Scop``, statements over C; who reads it.


class RegionReader:
    """Reads a part of one region: its variables, what is affine, and what is wrong."""

    def __init__(self, symbols: SymbolTable, affine: AffineReader, reporter: Reporter) -> None:
        self._symbols, self._affine, self._reporter = symbols, affine, reporter
        self._algebra, self._ranges = affine.algebra, affine.ranges
        self._of = symbols.of
        self._error, self._refuse, self._quoted = reporter.error, reporter.refuse, reporter.quoted

    def _free(self, name: str) -> str:
        """Return a name for a counter inside the loops around."""
        return self._symbols.names.free(name, self._affine.active.values())


@frozen
class LoopLevel:
    """A loop around a statement; ``sign`` is -1 where the counter runs down."""

    name: str
    sign: int


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


@frozen
class RawStatement:
    """An assignment with its domain as a set of counter and parameter values.

    ``positions`` are the textual positions around and between the loops. ``value`` holds its affine
    parts as functions of counters and parameters, all as isl parameters.
    """

    loops: tuple[LoopLevel, ...]
    positions: tuple[int, ...]
    domain: isl.Set
    accesses: tuple[RawAccess, ...]
    value: Expression
    node: Node
    ppcg_name: str = ""
