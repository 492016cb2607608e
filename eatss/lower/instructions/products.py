"""Products of small matrices on tensor cores.

The lanes of a warp are eight rows of four: lane ``4 * row + quad``. Which of them has which element
is as in PTX ISA, "Matrix Fragments for mma", but for the names of the steps of a sum: where a lane
has some that follow each other, it can load them at a time.

Loads of whole matrices from shared memory, into the lanes of a warp.

A matrix is 8 rows of 16 bytes. Each lane names one row, that with its own number, and gets a word
of each matrix: of row ``lane / 4`` or, where matrices of halves are transposed, of that column.
That is how tensor cores want them [PTX ISA, "ldmatrix"].

Bytes are transposed by twos, so a lane gets those of two columns, and parts them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product

from eatss.analysis.variant import MATRIX_ROWS, VECTOR_BYTES, WORD_BYTES
from eatss.lower.instructions.product_texts import (
    BYTES,
    DOUBLES,
    FEW_DOUBLES,
    HALVES,
    SPLIT_TF32,
    TF32,
    Shape,
    Texts,
)
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

_EXACT, _ALONE = Rounding(), Multiplying()


def _mma(
    name: str,
    shape: Shape,
    of: Texts,
    element_types: Sequence[ElementType],
    *,
    what: str = "tensor cores",
    factors: Sequence[ElementType | None] = (None, None),
    least: tuple[int, int] = (8, 0),
    rounding: Rounding = _EXACT,
    multiplying: Multiplying = _ALONE,
) -> Instruction:
    """Return ``d += a b``; ``factors`` are their types where these are not those of sums."""
    texts = shape.texts(of)
    half = {"half": 8} if shape.m > 8 else {}
    slots = [Coordinate(*one) for one in shape.slots.items()]
    sums = [Coordinate(one, 2) for one in (*half, "pair")]
    held = {
        "d": held_by_lanes({"row": 1, **half}, {"quad": 2, "pair": 1}, slots=sums),
        "a": held_by_lanes({"row": 1, **half}, shape.steps, slots=slots),
        "b": held_by_lanes(
            shape.steps, {"row": 1}, slots=[one for one in slots if one.name != "half"]
        ),
    }
    return Instruction(
        name=f"mma_{name}",
        what=what,
        operands=(
            Operand(name="d", role="inout", held=held["d"]),
            *(
                Operand(name=one, held=held[one], element_type=kind)
                for one, kind in zip("ab", factors, strict=True)
            ),
        ),
        instances=(("i", shape.m), ("j", 8), ("k", shape.k)),
        lanes=LANES_OF_A_BOX,
        target="d[i, j]",
        value="a[i, k] * b[k, j]",
        adds=True,
        element_types=tuple(element_types),
        exact=not any(one.is_floating for one in element_types),
        rounding=rounding,
        multiplying=multiplying,
        together=True,
        cuda=f"{texts.function}({{d}}, {{a}}, {{b}});",
        helpers=texts.helpers,
        definitions=texts.definitions,
        cpu_definitions=texts.for_cpu,
        capabilities=(Capability(least=least),),
    )


def _doubles(k: int, steps: Sizes, slots: Sizes, m: int = 16) -> Instruction:
    shape = Shape(
        m=m, k=k, ptx="f64.f64.f64", steps=steps, slots=slots, c_types=("double", "double")
    )
    least, of = ((9, 0), DOUBLES) if m > 8 else ((8, 0), FEW_DOUBLES)
    return _mma(f"f64_{m}x8x{k}", shape, of, (ElementType.DOUBLE,), least=least)


MMA_F64_16X8X16 = _doubles(16, {"quad": 1, "step": 4}, {"step": 4, "half": 2})
"""``d += a b`` of doubles on sm_90 and later."""

MMA_F64_16X8X4 = _doubles(4, {"quad": 1}, {"half": 2})
"""The same in four steps, whose elements take few registers: those of the next fit beside them."""

MMA_F64_8X8X4 = _doubles(4, {"quad": 1}, {}, m=8)
"""``d += a b`` of doubles on sm_80 and later."""

_TF32 = Shape(
    k=8,
    ptx="f32.tf32.tf32",
    steps={"quad": 2, "step": 1},  # in PTX ISA quad and quad + 4
    slots={"step": 2, "half": 2},
    c_types=("float", "float"),
)
"""TF32 has the exponents of a float, and 10 bits behind the leading one. Products are exact."""

MMA_TF32_16X8X8 = _mma(
    "tf32_16x8x8",
    _TF32,
    TF32,
    (ElementType.FLOAT,),
    what="tensor cores with TF32",
    # (1 + e) (1 + f) - 1, where both are up to half a unit
    rounding=Rounding(
        product_error=2 * _HALF_ULP + _HALF_ULP**2, sum_roundings=_SUM_ROUNDINGS, least=_LEAST
    ),
    multiplying=Multiplying(format="tf32", conversions=2),
)
"""``d += a b`` of floats on sm_80 and later, factors rounded to TF32."""

MMA_3XTF32_16X8X8 = _mma(
    "3xtf32_16x8x8",
    _TF32,
    SPLIT_TF32,
    (ElementType.FLOAT,),
    what="tensor cores with split TF32",
    # a is a_hi + a_lo but for 2^-23 of itself: what is left has 13 bits, of which 11 stay. What is
    # not added, a_lo b_lo, is up to 2^-11 times 2^-11.
    rounding=Rounding(
        product_error=2 * _SPLIT + _SPLIT**2 + _HALF_ULP**2,
        sum_roundings=3 * _SUM_ROUNDINGS,
        least=_LEAST,
    ),
    multiplying=Multiplying(format="tf32", products=3, parts=2, conversions=4),
)
"""The same where each factor is two numbers in TF32, the rounded one and what is left: nearly as
exact as floats. It adds ``a_lo * b_hi``, ``a_hi * b_lo`` and ``a_hi * b_hi`` [CUTLASS, "3xTF32";
Ootomo and Yokota, "Recovering single precision accuracy from Tensor Cores", 2022].
"""

_HALVES = Shape(
    k=16,
    ptx="f32.f16.f16",
    steps={"quad": 2, "step": 1, "later": 8},
    slots={"later": 2, "half": 2, "step": 2},
    c_types=("float", "eatss_half"),
    share=2,
)
MMA_F16_16X8X16 = _mma(
    "f16_16x8x16",
    _HALVES,
    HALVES,
    (ElementType.FLOAT,),
    what="tensor cores with halves",
    factors=(ElementType.HALF, ElementType.HALF),
    rounding=Rounding(sum_roundings=_SUM_ROUNDINGS),
    multiplying=Multiplying(format="fp16"),
)
"""``d += a b`` on sm_80 and later: factors are halves, sums are floats.

Products of two halves are exact in floats. A register has two halves that follow each other along
the steps of a sum, so lanes can load whole matrices of 8 x 8 together
[:mod:`eatss.lower.instructions.products`], into words that hold two halves each.
"""

_BYTES = {ElementType.INT8: "s8", ElementType.UINT8: "u8"}


def _of_bytes(first: ElementType, second: ElementType) -> Instruction:
    ptx = f"{_BYTES[first]}.{_BYTES[second]}"
    name = f"{ptx.replace('.', '_')}_16x8x32"
    shape = Shape(
        k=32,
        ptx=f"s32.{ptx}",
        steps={"quad": 4, "byte": 1, "later": 16},
        slots={"later": 2, "half": 2, "byte": 4},
        c_types=("Sum", "int"),
        share=4,
    )
    return _mma(
        name,
        shape,
        BYTES,
        (ElementType.INT32, ElementType.UINT32),
        what="tensor cores with bytes",
        factors=(first, second),
        multiplying=Multiplying(format="int8"),
    )


MMAS_OF_BYTES = tuple(_of_bytes(*factors) for factors in product(_BYTES, repeat=2))
"""``d += a b`` on sm_80 and later: factors are signed or unsigned bytes, sums are integers.

Sums wrap around, so they are the same in any order. A register has four bytes that follow each
other along the steps of a sum.
"""

PRODUCTS = (
    MMA_F64_8X8X4,
    MMA_F64_16X8X4,
    MMA_F64_16X8X16,
    MMA_TF32_16X8X8,
    MMA_3XTF32_16X8X8,
    MMA_F16_16X8X16,
    *MMAS_OF_BYTES,
)
"""All of them, in the order in which they are tried."""


ROW = MATRIX_ROWS
"""Rows of a matrix."""

_LOAD = """\
template <typename Element>
__device__ __forceinline__ void eatss_load_WAYmatrices(
    unsigned int &d0, unsigned int &d1, const Element *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.TRANSshared.b16 {%0, %1}, [%2];"
                 : "=r"(d0), "=r"(d1)
                 : "r"((unsigned int)__cvta_generic_to_shared(row))
                 : "memory");
}
template <typename Element>
__device__ __forceinline__ void eatss_load_WAYmatrices(
    unsigned int &d0, unsigned int &d1, unsigned int &d2, unsigned int &d3, const Element *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.TRANSshared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(d0), "=r"(d1), "=r"(d2), "=r"(d3)
                 : "r"((unsigned int)__cvta_generic_to_shared(row))
                 : "memory");
}
"""

_DEFINITIONS = f"""\

// Of each matrix of 8 rows of 16 bytes, of which lanes name one each, lane / 4 is the row of which
// a lane gets a word. Of turned ones of 8 x 8 halves it is the column.
{_LOAD.replace("WAY", "").replace("TRANS", "")}\
{_LOAD.replace("WAY", "turned_").replace("TRANS", "trans.")}"""

_TURNED_BYTES = """\
// Of 32 rows of 16 bytes a lane gets words of two columns: each of the rows 2 * (lane % 4), the
// next one, and both 8 later, these first if lane % 4 is 2 or 3; and of those 16 later. So the rows
// of a matrix may be such that they are in different banks.
template <typename Element>
__device__ __forceinline__ void eatss_load_turned_bytes(
    unsigned int &d0, unsigned int &d1, unsigned int &d2, unsigned int &d3, const Element *row)
{
    unsigned int own[4], lane;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    const unsigned int even = lane & 2 ? 0x2064 : 0x6420, odd = even + 0x1111;
    eatss_load_turned_matrices(own[0], own[1], own[2], own[3], row);
    d0 = __byte_perm(own[0], own[1], even);
    d1 = __byte_perm(own[2], own[3], even);
    d2 = __byte_perm(own[0], own[1], odd);
    d3 = __byte_perm(own[2], own[3], odd);
}
"""

_CPU_DEFINITIONS = """\

// The same: lanes read their rows, which are passed on as by shuffles.
#define eatss_load_matrices(...) eatss_load_matrices_at(__LINE__, false, __VA_ARGS__)
#define eatss_load_turned_matrices(...) eatss_load_matrices_at(__LINE__, true, __VA_ARGS__)
#define eatss_load_turned_bytes(...) eatss_load_turned_bytes_at(__LINE__, __VA_ARGS__)
template <typename Element, int16_t group>
EATSS_UNSEEN inline eatss::Passed<Element, 16 / sizeof(Element)> eatss_rows_named(
    const eatss::Tracked<Element, group> *row, int line)
{
    eatss::whole_vector(row);
    Element own[16 / sizeof(Element)];
    for (size_t at = 0; at < 16 / sizeof(Element); at++)
        own[at] = row[at].read();
    return eatss::Passed<Element, 16 / sizeof(Element)>(own, line);
}
template <typename Element>
EATSS_UNSEEN_INLINE inline unsigned int eatss_bits(const Element &element)
{
    unsigned int bits = 0;
    memcpy(&bits, &element, sizeof element);
    return bits;
}
template <int count, typename Element, int16_t group>
EATSS_UNSEEN inline void eatss_load_matrices_at(
    int line, bool turned, unsigned int *const (&d)[count],
    const eatss::Tracked<Element, group> *row)
{
    const auto all = eatss_rows_named(row, line);
    const int of_a_word = 4 / sizeof(Element), far = all.lane / 4;
    for (int matrix = 0; matrix < count; matrix++) {
        eatss::changes(*d[matrix]);
        *d[matrix] = 0;
        for (int at = 0; at < of_a_word; at++) {
            const int near = of_a_word * (all.lane % 4) + at;
            const Element *from = all.of(8 * matrix + (turned ? near : far));
            *d[matrix] |= eatss_bits(from[turned ? far : near]) << 32 / of_a_word * at;
        }
    }
}
template <typename Element, int16_t group>
EATSS_UNSEEN inline void eatss_load_matrices_at(
    int line, bool turned, unsigned int &d0, unsigned int &d1,
    const eatss::Tracked<Element, group> *row)
{
    unsigned int *const d[2] = {&d0, &d1};
    eatss_load_matrices_at(line, turned, d, row);
}
template <typename Element, int16_t group>
EATSS_UNSEEN inline void eatss_load_matrices_at(
    int line, bool turned, unsigned int &d0, unsigned int &d1, unsigned int &d2, unsigned int &d3,
    const eatss::Tracked<Element, group> *row)
{
    unsigned int *const d[4] = {&d0, &d1, &d2, &d3};
    eatss_load_matrices_at(line, turned, d, row);
}
template <typename Element, int16_t group>
EATSS_UNSEEN inline void eatss_load_turned_bytes_at(
    int line, unsigned int &d0, unsigned int &d1, unsigned int &d2, unsigned int &d3,
    const eatss::Tracked<Element, group> *row)
{
    const auto all = eatss_rows_named(row, line);
    unsigned int *const d[4] = {&d0, &d1, &d2, &d3};
    const int row_of_bytes = all.lane / 4, quad = all.lane % 4;
    for (int word = 0; word < 4; word++) {
        eatss::changes(*d[word]);
        *d[word] = 0;
        for (int at = 0; at < 4; at++) {
            const int from = 16 * (word % 2) + 8 * (at / 2 ^ quad / 2) + 2 * quad + at % 2;
            *d[word] |= eatss_bits(all.of(from)[2 * row_of_bytes + word / 2]) << 8 * at;
        }
    }
}
"""


def _loads(
    name: str,
    element_type: ElementType,
    held: Distribution,
    extents: tuple[int, int],
    function: str,
) -> Instruction:
    row = VECTOR_BYTES // element_type.size_bytes
    own_row = held_by_lanes(
        {"row": 4, "quad": 1}, {"column": 1}, slots=(Coordinate("column", row),)
    )
    return Instruction(
        name=name,
        what="loads of matrices",
        operands=(
            Operand(name="d", role="out", held=held, element_type=element_type),
            Operand(name="rows", held=own_row, beside=row, element_type=element_type),
        ),
        instances=(("r", extents[0]), ("c", extents[1])),
        lanes=LANES_OF_A_BOX,
        target="d[r, c]",
        value="rows[r, c]",
        element_types=(WORD,),
        exact=True,
        together=True,
        cuda=f"eatss_load_{function}({{d}}, &{{rows}});",
        helpers=(_DEFINITIONS,),
        definitions=_TURNED_BYTES * (function == "turned_bytes"),
        cpu_definitions=_CPU_DEFINITIONS,
        capabilities=(Capability(least=(7, 5)),),
    )


def _matrices(count: int, element_type: ElementType, *, transposed: bool) -> Instruction:
    each = WORD_BYTES // element_type.size_bytes
    slots = (Coordinate("matrix", count), Coordinate("element", each))
    near, far = {"quad": each, "element": 1}, {"row": 1}
    points = ({**near, "matrix": ROW}, far) if transposed else ({**far, "matrix": ROW}, near)
    name = f"ldmatrix_x{count}{'_trans' * transposed}{'_bytes' * (each > 2)}"
    extents = (ROW * count, ROW if transposed else VECTOR_BYTES // element_type.size_bytes)
    held = held_by_lanes(*points, slots=slots)
    return _loads(name, element_type, held, extents, f"{'turned_' * transposed}matrices")


TRANSPOSED_BYTES = _loads(
    "ldmatrix_x4_trans_bytes",
    ElementType.UINT8,
    replace(
        held_by_lanes(
            {"later": 16, "far": 8, "quad": 2, "next": 1},
            {"row": 2, "column": 1},
            slots=tuple(Coordinate(name, 2) for name in ("column", "later", "far", "next")),
        ),
        flips=("far", QUADS),
    ),
    (4 * ROW, VECTOR_BYTES),
    "turned_bytes",
)
"""A load of 32 rows of bytes, of whose 16 columns a lane gets two that follow each other.

A lane wants four steps of a sum that follow each other. So steps are named in the order 0, 1, 4, 5,
10, 11, 14, 15; 2, 3, 6, 7, 8, 9, 12, 13; …, and eight of them are in different banks where rows are
an odd number of vectors.
"""

LOADS: Mapping[int, tuple[Instruction, ...]] = {
    2: tuple(
        _matrices(count, ElementType.HALF, transposed=transposed)
        for count in (4, 2)
        for transposed in (False, True)
    ),
    1: (
        _matrices(4, ElementType.UINT8, transposed=False),
        TRANSPOSED_BYTES,
        _matrices(2, ElementType.UINT8, transposed=False),
    ),
}
"""Loads of elements of so many bytes, signed or not; those of the most matrices first."""
