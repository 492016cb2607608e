"""Arrays, element types and expressions of statements, and the operators that combine values."""

from __future__ import annotations

import math
import struct
import typing
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from eatss.base.frozen import Names, distinct, fixed, frozen
from eatss.base.quotients import FORMATS, is_rounded_quotient
from eatss.base.trees import Parts

if TYPE_CHECKING:
    import islpy as isl


# -- array -------------------------------------------------------------------------------------
# Arrays and their element types.


Origin: TypeAlias = typing.Literal["parameter", "global", "static", "local"]
"""Where an array or scalar lives: a parameter of the function, a global that other files can reach,
a ``static`` one that they cannot, or the function's own storage."""


class ElementType(Enum):
    """Element types of arrays and scalars, by their C spelling.

    Halves are stored, and converted; no operation is done in them. What C does in ``_Float16`` is
    done in ``float`` and converted, operation by operation: for sums, differences, products and
    quotients that is the same, because a float has more than twice the bits.
    """

    HALF = "_Float16"
    FLOAT = "float"
    DOUBLE = "double"
    BOOL = "_Bool"
    INT8 = "signed char"
    UINT8 = "unsigned char"
    INT16 = "short"
    UINT16 = "unsigned short"
    INT32 = "int"
    UINT32 = "unsigned int"
    INT64 = "long"
    UINT64 = "unsigned long"

    @property
    def size_bytes(self) -> int:
        """Size of one element in bytes (LP64)."""
        return _SIZE_BYTES[self.value.split()[-1]]

    @property
    def is_unsigned(self) -> bool:
        """Whether no value of the type is negative."""
        return self.name.startswith("U") or self is ElementType.BOOL

    @property
    def bounds(self) -> tuple[int, int]:
        """The least and the greatest value of an integer type."""
        bits = 1 if self is ElementType.BOOL else 8 * self.size_bytes
        if self.is_unsigned:
            return 0, 2**bits - 1
        return -(2 ** (bits - 1)), 2 ** (bits - 1) - 1

    @property
    def is_floating(self) -> bool:
        """Whether the type is a floating-point type."""
        return self in (ElementType.HALF, ElementType.FLOAT, ElementType.DOUBLE)


_SIZE_BYTES = {
    "_Float16": 2, "float": 4, "double": 8, "_Bool": 1, "char": 1, "short": 2, "int": 4, "long": 8,
}  # fmt: skip


@frozen
class Array:
    """An array or, with no dimensions, a scalar.

    ``extent`` is the set of its elements, a set in the space ``name[d0, d1, …]``
    over the parameters of the scop; a dimension whose size the source does not
    give (``double A[][N]``) has no upper bound there. ``is_local`` says that it
    is declared inside the region, so its values are dead when the region ends.
    ``origin`` says where it lives; ``source_name`` is its name in C, from which ``name``
    differs where another variable or isl has that name (empty: no C source gave one).
    ``ppcg_kills`` says that PPCG knows its values to be dead after the region: declared in a block
    of the region, or in the block around it with no mention after it. ``copy_of`` names the array
    of which it has the values from before the region (empty: it is no copy). ``declared`` is the
    set of its elements as the source names them, where ``extent`` counts several dimensions as one
    (``None``: it does not).
    """

    name: str
    element_type: ElementType
    extent: isl.Set
    n_dims: int
    is_local: bool = False
    origin: Origin = "parameter"
    source_name: str = ""
    ppcg_kills: bool = False
    copy_of: str = ""
    declared: isl.Set | None = None

    def __str__(self) -> str:
        return f"{self.element_type.value} {self.extent}"


# -- expression --------------------------------------------------------------------------------
# The expression tree of a statement's right-hand side.
#
# Trees are what code generation prints and what operation counts are taken from.
# A read names its access by index into ``Statement.accesses``, so that tree and
# access relations cannot disagree.


@fixed
class Literal:
    """A constant, kept in its C spelling (macros expanded) with its type."""

    text: str
    element_type: ElementType


def single_text(value: float) -> str:
    """Return the shortest decimal text of a number of 32 bits, with a point or an exponent."""
    texts = (f"{value:.{digits}g}" for digits in range(1, 10))
    text = next((t for t in texts if as_single(float(t)) == value), str(value))
    return text if any(sign in text for sign in ".en") else f"{text}.0"


def as_single(value: float) -> float:
    """Return a number rounded to 32 bits, infinity where it is too large."""
    (rounded,) = struct.unpack("f", struct.pack("f", value))
    return float(rounded)


def as_half(value: float) -> float:
    """Return a number rounded to 16 bits; ``OverflowError`` where it is too large."""
    (rounded,) = struct.unpack("e", struct.pack("e", value))
    return float(rounded)


@fixed
class Read:
    """A read of ``Statement.accesses[access]``."""

    access: int


@fixed
class AffineValue:
    """An affine integer expression of counters and parameters used as a value (``i + 1``).

    ``value`` maps the statement's domain space to an integer.
    """

    value: isl.PwAff
    element_type: ElementType


@fixed
class Unary:
    """``operator operand``; operator one of ``+ - ! ~``."""

    operator: str
    operand: Expression


@fixed
class Binary:
    """``left operator right`` with a C binary operator that has no side effect."""

    operator: str
    left: Expression
    right: Expression


@fixed
class Select:
    """``condition ? if_true : if_false``; both arms count as read."""

    condition: Expression
    if_true: Expression
    if_false: Expression


@fixed
class Cast:
    """A conversion to ``element_type``, written or implied by C."""

    element_type: ElementType
    operand: Expression


@fixed
class Call:
    """A call of a pure function (``sqrt``, ``fmax``, …)."""

    function: str
    arguments: tuple[Expression, ...]


def math_type(function: str) -> ElementType:
    """Return the type of what a function of ``math.h`` returns."""
    is_float = function.endswith("f") and function != "erf"
    return ElementType.FLOAT if is_float else ElementType.DOUBLE


Expression: TypeAlias = Literal | Read | AffineValue | Unary | Binary | Select | Cast | Call


_OPERANDS: Parts[Expression] = Parts(("Expression",), Expression)

operands = _OPERANDS.of
"""The operands of a node from left to right, none of a leaf."""

rebuilt = _OPERANDS.rebuilt
"""A node with a change made of each operand, a leaf as it is."""

preorder = _OPERANDS.below
"""A node and all below it from left to right, without recursion."""

_NOTHING = Literal("", ElementType.INT32)


def label(node: Expression) -> Expression:
    """Return what a node is besides its operands: the node with nothing in their place."""
    return rebuilt(node, lambda _: _NOTHING)


def mapped(value: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """Return a value with a change made of each of its nodes, parts first, without recursion."""
    made: dict[int, Expression] = {}
    for one in reversed([*preorder(value)]):  # parts come before what they are parts of
        made[id(one)] = change(rebuilt(one, lambda own: made[id(own)]))
    return made[id(value)]


def pulled_back(
    value: Expression, function: isl.MultiAff, reads: Mapping[int, int] = MappingProxyType({})
) -> Expression:
    """Return a value of the instances that a function names, in the counters of its domain.

    ``reads`` are other numbers of accesses, by those that are read.
    """

    def part(node: Expression) -> Expression:
        if isinstance(node, Read):
            return Read(reads.get(node.access, node.access))
        if isinstance(node, AffineValue):
            return replace(node, value=node.value.pullback_multi_aff(function))
        return node

    return mapped(value, part)


def fused_quotient(node: Expression) -> ElementType | None:
    """Return the type of a quotient that is a product and two fused steps, ``None`` if it is none.

    It is by a literal for which these round as a division does: :mod:`eatss.base.quotients`.
    Generated code has the steps, and the model counts them.
    """
    if not isinstance(node, Binary) or node.operator != "/":
        return None
    right = node.right
    literal = right.operand if isinstance(right, Cast) else right
    if not isinstance(literal, Literal) or not isinstance(right, Cast | Literal):
        return None
    kind = right.element_type
    known = FORMATS.get(kind.value)
    exact = known is not None and is_rounded_quotient(_value_of(literal, kind), known.bits)
    return kind if exact else None


def divisors(node: Expression) -> tuple[int, ...]:
    """Return the accesses, by number, by which something is divided as they are."""
    quotients = (one for one in preorder(node) if isinstance(one, Binary) and one.operator == "/")
    return distinct(one.right.access for one in quotients if isinstance(one.right, Read))


def always(node: Expression, ends: Callable[[Expression], bool]) -> Iterator[Expression]:
    """Yield the parts that are computed whatever the conditions are; no recursion.

    Those that are of one for which ``ends`` holds are left out.
    """
    left = [node]
    while left:
        part = left.pop()
        yield part
        if ends(part):
            continue
        match part:
            case Select(condition=condition):
                left.append(condition)
            case Binary(operator="&&" | "||", left=first):
                left.append(first)
            case other:
                left += operands(other)


def read_always(node: Expression) -> Iterator[int]:
    """Yield the accesses that a value reads whatever its conditions are."""
    return (one.access for one in always(node, lambda _: False) if isinstance(one, Read))


_STRAIGHT = frozenset({"fabs", "fmin", "fmax", "fma", "exp2", "floor", "ceil", "copysign"})
"""Functions without branches; so is ``expf``."""


def branches(node: Expression) -> bool:
    """Tell whether what computes a node of its operands has a branch, as far as that is known."""
    if isinstance(node, Call):
        return node.function != "expf" and node.function.removesuffix("f") not in _STRAIGHT
    is_quotient = isinstance(node, Binary) and node.operator == "/"
    return is_quotient and fused_quotient(node) is None


_KEEP_TYPES = frozenset("+-*/")
"""Operators whose results are of the type of their operands; those of others are integers."""


def floating_type(
    value: Expression, type_of: Callable[[int], ElementType | None]
) -> ElementType | None:
    """Return the floating-point type of a value, ``None`` where it has none or it is not sure.

    Args:
        value: has all conversions, so that operands are of the type of the result.
        type_of: the type of what an access reads, by its number.
    """
    while isinstance(value, Unary | Binary | Select):
        if not isinstance(value, Select) and value.operator not in _KEEP_TYPES:
            return None
        same = operands(value)[-1:] if isinstance(value, Select) else operands(value)
        value = next((one for one in same if not isinstance(one, Literal)), same[0])
    match value:
        case Literal(element_type=kind) | Cast(element_type=kind):
            found: ElementType | None = kind
        case Read(access=access):
            found = type_of(access)
        case Call(function=function):
            found = math_type(function)
        case _:
            found = None
    return found if found is not None and found.is_floating else None


def with_reciprocals(node: Expression) -> Expression:
    """Return a value whose quotients of floats by literals are products, without recursion."""
    return mapped(node, _with_reciprocal)


def _with_reciprocal(node: Expression) -> Expression:
    if not isinstance(node, Binary) or fused_quotient(node) is not ElementType.FLOAT:
        return node
    literal = node.right.operand if isinstance(node.right, Cast) else node.right
    assert isinstance(literal, Literal)
    inverse = as_single(1.0 / _value_of(literal, ElementType.FLOAT))
    factor = Literal(f"{single_text(inverse)}f", ElementType.FLOAT)
    return replace(node, operator="*", right=factor)


def is_in_doubles(value: Expression) -> bool:
    """Tell whether C computes with literals in doubles, whatever type the arrays have.

    The last operation compilers do in floats where its literal is one: ``0.5 * sum``.
    """
    last = value
    while isinstance(last, Cast):
        last = last.operand
    for node in preorder(value):
        if isinstance(node, Binary) and node.operator in "+-*/":
            for part in (node.left, node.right):
                if isinstance(part, Literal) and part.element_type is ElementType.DOUBLE:
                    number = _value_of(part, ElementType.DOUBLE)
                    if node is not last or as_single(number) != number:
                        return True
    return False


def _value_of(literal: Literal, kind: ElementType) -> float:
    """Return the value of a literal that is converted to a type, NaN where it is not known."""
    try:
        value = float(literal.text.rstrip("fFuUlL"))
        return as_single(value) if ElementType.FLOAT in (kind, literal.element_type) else value
    except (ValueError, OverflowError):
        return math.nan


SUMS = ("+", "-")
"""Operators of sums: what is subtracted is added with the other sign."""


def reads_in(value: Expression) -> list[int]:
    """Return the numbers of the accesses that a value reads, from left to right."""
    return [one.access for one in preorder(value) if isinstance(one, Read)]


def added_to(
    value: Expression,
    is_target: Callable[[Expression], bool],
    type_of: Callable[[int], ElementType],
) -> Expression | None:
    """Return what a value adds to a target, ``None`` if it is no sum of it and something else.

    ``t - a * b`` adds ``a * -b``, which is the same in every bit, where ``b`` is a floating-point
    number: of others conversions on the way may depend on the sign. ``t + a - b`` adds ``a - b``:
    that is another order.

    Args:
        value: of a statement.
        is_target: tells whether a part of it reads what the statement writes.
        type_of: the type of what an access reads, by its number.
    """
    chain: list[Binary] = []  # sums of thousands of terms nest to the left
    while isinstance(value, Binary) and value.operator in SUMS:
        if is_target(value.left):
            first = value.right if value.operator == "+" else _negated(value.right, type_of)
            return None if first is None else _with_left(chain, first)
        if value.operator == "+" and is_target(value.right):
            return _with_left(chain, value.left)
        chain.append(value)
        value = value.left
    return None


def terms(value: Expression, type_of: Callable[[int], ElementType]) -> list[Expression]:
    """Return what a value is the sum of; what is subtracted is negated, where that is exact."""
    found, todo = [], [value]
    while todo:
        one = todo.pop()
        if not isinstance(one, Binary) or one.operator not in SUMS:
            found.append(one)
            continue
        other = one.right if one.operator == "+" else _negated(one.right, type_of)
        if other is None:
            found.append(one)
        else:
            todo += [other, one.left]
    return found


def _negated(value: Expression, type_of: Callable[[int], ElementType]) -> Expression | None:
    """Return a floating-point value with its sign changed, ``None`` of any other."""
    chain = []
    while isinstance(value, Binary) and value.operator in SUMS:
        right = _negated(value.right, type_of)
        if right is None:
            return None
        chain.append(replace(value, right=right))
        value = value.left
    if isinstance(value, Binary) and value.operator == "*":
        right = _negated(value.right, type_of)
        return None if right is None else _with_left(chain, replace(value, right=right))
    if isinstance(value, Read):
        floating = type_of(value.access).is_floating
    else:
        floating = isinstance(value, Cast | Literal) and value.element_type.is_floating
    return _with_left(chain, Unary("-", value)) if floating else None


def _with_left(chain: Sequence[Binary], value: Expression) -> Expression:
    """Return sums, outermost first, with a value at their left end."""
    for one in reversed(chain):
        value = replace(one, left=value)
    return value


def factors(value: Expression) -> Iterator[Expression]:
    """Yield the factors of a product, a value that is none alone.

    A product of ``int`` that becomes ``unsigned int`` is that of its factors: both wrap around.
    """
    if isinstance(value, Binary) and value.operator == "*":
        yield from factors(value.left)
        yield from factors(value.right)
        return
    if isinstance(value, Cast) and value.element_type is ElementType.UINT32:
        inner = list(factors(value.operand))
        signed = (isinstance(one, Cast) and one.element_type is ElementType.INT32 for one in inner)
        if all(signed):
            yield from inner
            return
    yield value


def addends(value: Expression) -> Iterator[Expression]:
    """Yield what a sum adds up, a value that is none alone."""
    if isinstance(value, Binary) and value.operator == "+":
        yield from addends(value.left)
        yield from addends(value.right)
    else:
        yield value


def narrow_factor(
    factor: Expression, element_type: ElementType, types: Mapping[int, ElementType]
) -> Expression | None:
    """Return the value of a type that a factor is the conversion of, ``None`` if it is none.

    Args:
        factor: of a product in a wider type.
        element_type: the narrower type.
        types: of what accesses read, by their numbers.
    """
    if not isinstance(factor, Cast):
        return None
    inner = factor.operand
    if isinstance(inner, Read):
        return inner if types.get(inner.access) is element_type else None
    return inner if isinstance(inner, Cast) and inner.element_type is element_type else None


def product_of(parts: Sequence[Expression]) -> Expression:
    """Return the product of parts, from left to right."""
    first, *others = parts
    for other in others:
        first = Binary("*", first, other)
    return first


def regrouped(parts: Sequence[Expression], key: Callable[[Expression], Hashable]) -> Expression:
    """Return the product of parts, those of one key multiplied with each other first.

    Keys and parts stay in the order in which they come.
    """
    groups: dict[Hashable, list[Expression]] = {}
    for part in parts:
        groups.setdefault(key(part), []).append(part)
    return product_of([product_of(group) for group in groups.values()])


# -- combiners ---------------------------------------------------------------------------------
# Operators by which parts of a reduction, worked out in any order, become one value.
#
#     s = s + e        parts begin at 0, and are added up
#     m = fmax(m, e)   parts begin at NaN, which ``fmax`` passes over
#
# Each has a neutral value: what a part begins with that may turn out to have no term at all.


INTEGERS = (ElementType.INT32, ElementType.UINT32, ElementType.UINT64, ElementType.INT64)
FLOATING = (ElementType.FLOAT, ElementType.DOUBLE)


@fixed
class Combiner:
    """An associative, commutative operator on values of some types.

    ``operators`` are how reductions call it (:class:`eatss.polyhedral.kernel.Reduction`), ``what``
    is what comes of it. Of two values, ``value`` is what they make, ``target`` the one that was
    there before, in the language of :class:`eatss.lower.kernel.instruction.Instruction`. ``single``
    are the types for which cards have an atomic operation; others compare and exchange.
    """

    name: str
    operators: Names
    what: str
    value: str
    element_types: tuple[ElementType, ...] = (*FLOATING, *INTEGERS)
    single: tuple[ElementType, ...] = INTEGERS

    def neutral(self, element_type: ElementType) -> float:
        """Return the value that changes no other one of a type.

        That of ``fmax`` and ``fmin`` is NaN. ``x > m ? x : m`` keeps a NaN in ``m``, and passes
        over one in ``x``: from the least value on, parts hold none, and the target keeps its own.
        """
        if self.name in ("fmax", "fmin"):
            return math.nan
        least, greatest = (-math.inf, math.inf) if element_type.is_floating else element_type.bounds
        if self.name in ("max", "min"):
            return least if self.name == "max" else greatest
        if self.name == "and":  # all bits are set
            return -1 if least else greatest
        return 1 if self.name == "multiply" else 0


ADD = Combiner(
    "add",
    ("+",),
    "sum",
    "target + value",
    single=(*FLOATING, *INTEGERS),
)
COMBINERS = (
    ADD,
    Combiner("multiply", ("*",), "product", "target * value", single=()),
    Combiner(
        "max",
        ("max",),
        "maximum",
        "value if value > target else target",
    ),
    Combiner(
        "min",
        ("min",),
        "minimum",
        "value if value < target else target",
    ),
    Combiner(
        "fmax",
        ("fmax", "fmaxf"),
        "maximum",
        "value if value > target else target if target == target else value",
        FLOATING,
        (),
    ),
    Combiner(
        "fmin",
        ("fmin", "fminf"),
        "minimum",
        "value if value < target else target if target == target else value",
        FLOATING,
        (),
    ),
    Combiner(
        "and",
        ("&",),
        "bitwise and",
        "target & value",
        INTEGERS,
    ),
    Combiner(
        "or",
        ("|",),
        "bitwise or",
        "target | value",
        INTEGERS,
    ),
    Combiner(
        "xor",
        ("^",),
        "bitwise xor",
        "target ^ value",
        INTEGERS,
    ),
)

_BY_OPERATOR = {operator: one for one in COMBINERS for operator in one.operators}


def combiner_of(operator: str, element_type: ElementType) -> Combiner | None:
    """Return what combines parts of a reduction, ``None`` where nothing does for a type."""
    found = _BY_OPERATOR.get(operator)
    return found if found is not None and element_type in found.element_types else None
