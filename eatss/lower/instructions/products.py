"""Products of small matrices on tensor cores, and loads of matrices; their texts are beside it.

The lanes of a warp are eight rows of four: lane ``4 * row + quad``. Rows of the table
``products.toml`` say which of them has which element.

Loads of whole matrices from shared memory, into the lanes of a warp.

A matrix is 8 rows of 16 bytes. Each lane names one row, that with its own number, and gets a word
of each matrix: of row ``lane / 4`` or, where matrices of halves are transposed, of that column.
That is how tensor cores want them [PTX ISA, "ldmatrix"].

Bytes are transposed by twos, so a lane gets those of two columns, and parts them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from eatss.analysis.variant import VECTOR_BYTES
from eatss.lower.kernel.instruction import (
    WORD,
    Capability,
    Coordinate,
    Distribution,
    Instruction,
    Multiplying,
    Operand,
    Rounding,
)
from eatss.polyhedral.expression import ElementType
from eatss.program.expression import Sizes
from eatss.program.linear import Linear

_ROWS = tomllib.loads(Path(__file__).with_name("products.toml").read_text(encoding="utf-8"))
_HELPERS, _LOADS, _OF_LOADS = map(_ROWS.pop, ("helpers", "loads", "of_loads"))

ROWS, QUADS = Coordinate("row", 8), Coordinate("quad", 4)
LANES_OF_A_BOX = (ROWS, QUADS)


def held_by_lanes(*points: Sizes, slots: Sequence[Coordinate]) -> Distribution:
    """Return which lane has which element of a matrix, in which slot: an index a dimension."""
    return Distribution(
        coordinates=(*LANES_OF_A_BOX, *slots), points=tuple(Linear(terms, 0) for terms in points)
    )


_HALF_ULP = 2.0**-11
"""Of itself, how far a number is from the nearest one with 11 significant bits, at most."""

_SPLIT = 2.0**-23
"""Of itself, how far a float is from the sum of its two numbers in TF32: the rest is a whole number
of units of its last bit, up to 4096, of which an odd one above 2048 loses one."""

_LEAST = 2.0**-136
"""The same of subnormal numbers, which are cut off: the distance of two of them in TF32."""

_CUTS = 3
_SUM_ROUNDINGS = 2.0 * _CUTS
"""Roundings of a sum for each of its products.

Tensor cores add a few exact products and the sum before at once: all are shifted to the exponent of
the largest, cut off behind the last bit that a float has there, or later, and added; what comes out
is cut off once more [Fasi, Higham, Mikaitis and Pranesh, "Numerical behavior of NVIDIA tensor
cores", 2021; Khattak and Mikaitis, "Accurate models of NVIDIA tensor cores", 2025]. So m products
that are not zero take m + 2 cuts, at most three for each, and a cut is as wrong as two roundings.
How many products are added at once, which depends on the card, changes nothing of that.
"""

_ROUNDINGS = {
    # (1 + e) (1 + f) - 1, where both are up to half a unit
    "mma_tf32_16x8x8": Rounding(
        product_error=2 * _HALF_ULP + _HALF_ULP**2, sum_roundings=_SUM_ROUNDINGS, least=_LEAST
    ),
    # a is a_hi + a_lo but for 2^-23 of itself: what is left has 13 bits, of which 11 stay. What is
    # not added, a_lo b_lo, is up to 2^-11 times 2^-11.
    "mma_3xtf32_16x8x8": Rounding(
        product_error=2 * _SPLIT + _SPLIT**2 + _HALF_ULP**2,
        sum_roundings=3 * _SUM_ROUNDINGS,
        least=_LEAST,
    ),
    "mma_f16_16x8x16": Rounding(sum_roundings=_SUM_ROUNDINGS),
}


def _mma(name: str, row: Mapping[str, Any]) -> Instruction:
    """Return ``d += a b`` as a row of the table says."""
    extents, sums = row["extents"], [ElementType[one] for one in row["sums"]]
    half = {"half": 8} if extents[0] > 8 else {}
    slots = [Coordinate(*one) for one in row["slots"].items()]
    held = {
        "d": held_by_lanes(
            {"row": 1, **half},
            {"quad": 2, "pair": 1},
            slots=[Coordinate(one, 2) for one in (*half, "pair")],
        ),
        "a": held_by_lanes({"row": 1, **half}, row["steps"], slots=slots),
        "b": held_by_lanes(
            row["steps"], {"row": 1}, slots=[one for one in slots if one.name != "half"]
        ),
    }
    factors = [ElementType[one] for one in row.get("factors", ())] or (None, None)
    return Instruction(
        name=name,
        what=row["what"],
        operands=(
            Operand(name="d", role="inout", held=held["d"]),
            *(
                Operand(name=one, held=held[one], element_type=kind)
                for one, kind in zip("ab", factors, strict=True)
            ),
        ),
        instances=tuple(zip("ijk", extents, strict=True)),
        lanes=LANES_OF_A_BOX,
        target="d[i, j]",
        value="a[i, k] * b[k, j]",
        adds=True,
        element_types=tuple(sums),
        exact=not any(one.is_floating for one in sums),
        rounding=_ROUNDINGS.get(name, Rounding()),
        multiplying=Multiplying(**row.get("multiplying", {})),
        together=True,
        cuda=row["cuda"],
        helpers=tuple(_HELPERS[one] for one in row.get("helpers", ())),
        definitions=row["definitions"],
        cpu_definitions=row.get("cpu_definitions") or _ROWS[row["same_on_cpu"]]["cpu_definitions"],
        capabilities=(Capability(least=tuple(row["least"])),),
    )


PRODUCTS = tuple(_mma(*row) for row in _ROWS.items())
"""All of them, in the order in which they are tried."""

MMAS_OF_BYTES = tuple(one for one in PRODUCTS if one.multiplying.format == "int8")


def _load(name: str, row: Mapping[str, Any]) -> Instruction:
    """Return a load as a row of the table says."""
    element_type = ElementType[row["element_type"]]
    width = VECTOR_BYTES // element_type.size_bytes
    held = held_by_lanes(*row["points"], slots=[Coordinate(*one) for one in row["slots"].items()])
    named = held_by_lanes(
        {"row": 4, "quad": 1}, {"column": 1}, slots=(Coordinate("column", width),)
    )
    if "flips" in row:
        held = replace(held, flips=(row["flips"], QUADS))
    return Instruction(
        name=name,
        what="loads of matrices",
        operands=(
            Operand(name="d", role="out", held=held, element_type=element_type),
            Operand(name="rows", held=named, beside=width, element_type=element_type),
        ),
        instances=tuple(zip("rc", row["extents"], strict=True)),
        lanes=LANES_OF_A_BOX,
        target="d[r, c]",
        value="rows[r, c]",
        element_types=(WORD,),
        exact=True,
        together=True,
        cuda=row["cuda"],
        helpers=(_OF_LOADS["definitions"],),
        definitions=row.get("definitions", ""),
        cpu_definitions=_OF_LOADS["cpu_definitions"],
        capabilities=(Capability(least=(7, 5)),),
    )


LOADS: Mapping[int, Sequence[Instruction]] = {
    size: [_load(name, row) for name, row in _LOADS.items() if row["bytes"] == size]
    for size in (2, 1)
}
"""Loads of elements of so many bytes, signed or not; those of the most matrices first."""

TRANSPOSED_BYTES = next(one for one in LOADS[1] if one.name.endswith("_trans_bytes"))
