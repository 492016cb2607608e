"""Products of small matrices of bytes on tensor cores, added up in integers of 32 bits.

Sums wrap around, so they are the same in any order. A register has four bytes that follow each
other along the steps of a sum: a lane has the steps ``4 * quad`` and the next three, and all 16
later, as in PTX ISA. So a warp can load whole matrices of 8 x 16
[:mod:`eatss.instructions.matrix_loads`].
"""

from itertools import product

from eatss.instructions.matrices import HALF, LANES_OF_A_BOX, SUMS_OF_16X8, held_by_lanes
from eatss.kernel.distribution import Coordinate
from eatss.kernel.instruction import Capability, Instruction, Multiplying, Operand
from eatss.scops import ElementType

_NAMES = {ElementType.INT8: "s8", ElementType.UINT8: "u8"}

_BYTE, _LATER = Coordinate("byte", 4), Coordinate("later", 2)
_STEPS = {"quad": 4, "byte": 1, "later": 16}

_WORDS = """\

// Four bytes in a register, the first one in its lowest bits.
__device__ __forceinline__ unsigned int eatss_word(int first, int second, int third, int fourth)
{
    return (first & 255) | (second & 255) << 8 | (third & 255) << 16 | (unsigned int)fourth << 24;
}
"""

_TEXT = """\

// d += a b for 16 x 32 and 32 x 8 matrices of bytes that a warp holds. Sums wrap around.
template <typename Sum>
__device__ __forceinline__ void NAME(
    Sum &d0, Sum &d1, Sum &d2, Sum &d3, unsigned int a0, unsigned int a1, unsigned int a2,
    unsigned int a3, unsigned int b0, unsigned int b1)
{
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.FIRST.SECOND.s32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+r"(d0), "+r"(d1), "+r"(d2), "+r"(d3)
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
"""

_CPU_TEXT = """\

// The same, the lanes' values passed on as by shuffles.
template <typename First, typename Second, typename Sum>
EATSS_UNSEEN inline void eatss_multiply_bytes_at(
    int line, Sum &d0, Sum &d1, Sum &d2, Sum &d3, unsigned int a0, unsigned int a1,
    unsigned int a2, unsigned int a3, unsigned int b0, unsigned int b1)
{
    const unsigned int own[6] = {a0, a1, a2, a3, b0, b1};
    const eatss::Passed<unsigned int, 6> all(own, line);
    eatss::changes(d0, d1, d2, d3);
    const int row = all.lane / 4, quad = all.lane % 4;
    Sum *d[4] = {&d0, &d1, &d2, &d3};
    for (int k = 0; k < 32; k++)
        for (int slot = 0; slot < 4; slot++) {
            const int lane = k % 16 / 4, later = k / 16, bit = 8 * (k % 4);
            const First a = (First)(all.of(4 * row + lane)[2 * later + slot / 2] >> bit);
            const Second b =
                (Second)(all.of(4 * (2 * quad + slot % 2) + lane)[4 + later] >> bit);
            *d[slot] = (Sum)((unsigned int)*d[slot] + (unsigned int)(a * b));
        }
}
"""

_BYTES = """\
template <OTHERStypename Sum>
SPECIFIERS void NAME(
    LINESum &d0, Sum &d1, Sum &d2, Sum &d3, int a0, int a1, int a2, int a3, int a4, int a5, int a6,
    int a7, int a8, int a9, int a10, int a11, int a12, int a13, int a14, int a15, int b0, int b1,
    int b2, int b3, int b4, int b5, int b6, int b7)
{
    CALL(PASSEDd0, d1, d2, d3, eatss_word(a0, a1, a2, a3), eatss_word(a4, a5, a6, a7),
         eatss_word(a8, a9, a10, a11), eatss_word(a12, a13, a14, a15),
         eatss_word(b0, b1, b2, b3), eatss_word(b4, b5, b6, b7));
}
"""
"""The same of bytes that lanes have one by one."""


def _filled(text: str, **words: str) -> str:
    for word, own in words.items():
        text = text.replace(word, own)
    return text


_CPU_DEFINITIONS = (
    _WORDS.replace("__device__ __forceinline__", "inline")
    + _CPU_TEXT
    + _filled(
        _BYTES,
        OTHERS="typename First, typename Second, ",
        SPECIFIERS="inline",
        NAME="eatss_multiply_bytes_at",
        LINE="int line, ",
        CALL="eatss_multiply_bytes_at<First, Second>",
        PASSED="line, ",
    )
    + "".join(
        f"#define eatss_mma_{_NAMES[a]}_{_NAMES[b]}_16x8x32(...) \\\n"
        f"    eatss_multiply_bytes_at<{a.value}, {b.value}>(__LINE__, __VA_ARGS__)\n"
        for a, b in product(_NAMES, repeat=2)
    )
)


def _row(first: ElementType, second: ElementType) -> Instruction:
    name = f"mma_{_NAMES[first]}_{_NAMES[second]}_16x8x32"
    plain = {"OTHERS": "", "SPECIFIERS": "__device__ __forceinline__", "LINE": "", "PASSED": ""}
    text = _TEXT + _filled(_BYTES, **plain, CALL="NAME")
    return Instruction(
        name=name,
        what="tensor cores with bytes",
        operands=(
            SUMS_OF_16X8,
            Operand(
                name="a",
                held=held_by_lanes({"row": 1, "half": 8}, _STEPS, slots=(_LATER, HALF, _BYTE)),
                element_type=first,
            ),
            Operand(
                name="b",
                held=held_by_lanes(_STEPS, {"row": 1}, slots=(_LATER, _BYTE)),
                element_type=second,
            ),
        ),
        instances=(("i", 16), ("j", 8), ("k", 32)),
        lanes=LANES_OF_A_BOX,
        target="d[i, j]",
        value="a[i, k] * b[k, j]",
        adds=True,
        element_types=(ElementType.INT32, ElementType.UINT32),
        exact=True,
        multiplying=Multiplying(format="int8"),
        together=True,
        cuda=f"eatss_{name}({{d}}, {{a}}, {{b}});",
        helpers=(_WORDS,),
        definitions=_filled(text, FIRST=_NAMES[first], SECOND=_NAMES[second], NAME=f"eatss_{name}"),
        cpu_definitions=_CPU_DEFINITIONS,
        capabilities=(Capability(least=(8, 0)),),
    )


MMAS_OF_BYTES = tuple(_row(first, second) for first, second in product(_NAMES, repeat=2))
"""``d += a b`` on sm_80 and later: factors are signed or unsigned bytes, sums are integers."""
