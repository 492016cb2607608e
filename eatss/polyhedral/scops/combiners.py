"""Operators by which parts of a reduction, worked out in any order, become one value.

    s = s + e        parts begin at 0, and are added up
    m = fmax(m, e)   parts begin at NaN, which ``fmax`` passes over

Each has a neutral value: what a part begins with that may turn out to have no term at all.
"""

from __future__ import annotations

import math

from eatss.base.frozen import frozen
from eatss.polyhedral.scops.array import ElementType

INTEGERS = (ElementType.INT32, ElementType.UINT32, ElementType.UINT64, ElementType.INT64)
FLOATING = (ElementType.FLOAT, ElementType.DOUBLE)


@frozen
class Combiner:
    """An associative, commutative operator on values of some types.

    ``operators`` are how reductions call it (:class:`eatss.polyhedral.kernel.Reduction`), ``what``
    is what comes of it. Of two values, ``value`` is what they make, ``target`` the one that was
    there before, in the language of :class:`eatss.lower.kernel.instruction.Instruction`. ``single``
    are the types for which cards have an atomic operation; others compare and exchange.
    """

    name: str
    operators: tuple[str, ...]
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
    name="add",
    operators=("+",),
    what="sum",
    value="target + value",
    single=(*FLOATING, *INTEGERS),
)
COMBINERS = (
    ADD,
    Combiner(name="multiply", operators=("*",), what="product", value="target * value", single=()),
    Combiner(
        name="max",
        operators=("max",),
        what="maximum",
        value="value if value > target else target",
    ),
    Combiner(
        name="min",
        operators=("min",),
        what="minimum",
        value="value if value < target else target",
    ),
    Combiner(
        name="fmax",
        operators=("fmax", "fmaxf"),
        what="maximum",
        value="value if value > target else target if target == target else value",
        element_types=FLOATING,
        single=(),
    ),
    Combiner(
        name="fmin",
        operators=("fmin", "fminf"),
        what="minimum",
        value="value if value < target else target if target == target else value",
        element_types=FLOATING,
        single=(),
    ),
    Combiner(
        name="and",
        operators=("&",),
        what="bitwise and",
        value="target & value",
        element_types=INTEGERS,
    ),
    Combiner(
        name="or",
        operators=("|",),
        what="bitwise or",
        value="target | value",
        element_types=INTEGERS,
    ),
    Combiner(
        name="xor",
        operators=("^",),
        what="bitwise xor",
        value="target ^ value",
        element_types=INTEGERS,
    ),
)

_BY_OPERATOR = {operator: one for one in COMBINERS for operator in one.operators}


def combiner_of(operator: str, element_type: ElementType) -> Combiner | None:
    """Return what combines parts of a reduction, ``None`` where nothing does for a type."""
    found = _BY_OPERATOR.get(operator)
    return found if found is not None and element_type in found.element_types else None
