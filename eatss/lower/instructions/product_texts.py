"""The texts of products of matrices that a warp holds: PTX for a GPU, and what a CPU does instead.

They are templates. Their words follow from the shape, and from how lanes hold the operands: lane
``4 * row + quad`` has rows of sums, and the digits of a step's number say which lane has its
factors, in which slot.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from math import prod
from string import Template
from textwrap import wrap
from typing import NamedTuple

from eatss.base.frozen import Names, frozen
from eatss.program.expression import Sizes

_INDENT = " " * len("    asm volatile(")
_KEPT = "\0"
"""A space at which no line ends."""

_LETTERS = {"f64": "d", "f32": "f"}
"""Registers of PTX by the numbers in them; others are words."""


class Texts(NamedTuple):
    """What products of a kind need; ``helpers`` others use as well.

    ``function`` adds to sums. It gives a factor, here ``$``, to the instruction as ``given``, and
    takes ``lines`` first on a CPU.
    """

    function: str
    definitions: str
    for_cpu: str
    helpers: Names = ()
    given: str = "$"
    lines: str = "int line"


@frozen
class Shape:
    """``d[m, 8] += a[m, k] b[k, 8]``; ``ptx`` names the types of d, a and b.

    ``steps`` are the strides of the digits of a step, ``quad`` among them. The others are ``slots``
    of a lane, with their extents, the last one fastest; so is ``half``, which counts the second
    eight of 16 rows. ``c_types`` are those of a sum and of a factor; a register has ``share``.
    """

    m: int = 16
    k: int
    ptx: str
    steps: Sizes
    slots: Sizes
    c_types: tuple[str, str]
    share: int = 1

    @property
    def slots_of_b(self) -> dict[str, int]:
        """The slots of the second factor, which has eight columns."""
        return {name: extent for name, extent in self.slots.items() if name != "half"}

    def texts(self, of: Texts) -> Texts:
        """Return the texts of a kind for this shape."""
        sums, *ones = self._names(1)
        _, *several = self._names(self.share)
        factors, registers = ([x for own in both for x in own] for both in (ones, several))
        words = {
            "form": f"{self.m}x8x{self.k}",
            "types": "_".join(self.ptx.split(".")[1:]),
            "shape": f"{self.m} x {self.k} and {self.k} x 8 matrices",
            "k": self.k,
            "sum": self.c_types[0],
            "sums": ", ".join(sums),
            "n_sums": len(sums),
            "places": ", ".join(f"&{one}" for one in sums),
            "instruction": self._instruction(sums, several, of.given),
            **self._passed(),
        }
        if self.share == 2:
            pairs = [f"eatss_pair({x}, {y})" for x, y in zip(*[iter(factors)] * 2, strict=True)]
            parts = [f"eatss_of_pair({x}, {n})" for x in registers for n in (0, 1)]
            words["pairs"] = _filled(" " * 26, [*sums, *pairs]).lstrip()
            words["parts"] = _filled(" " * 8, ["line", *sums, *parts])
        for name, c_type, own in (
            ("", self.c_types[1], factors),
            ("word_", "unsigned int", registers),
        ):
            parameters = [
                *(f"{self.c_types[0]} &{d}" for d in sums),
                *(f"{c_type} {x}" for x in own),
            ]
            words[f"{name}parameters"] = _parameters(parameters)
            words[f"line_{name}parameters"] = _parameters([*of.lines.split(", "), *parameters])
            words[f"passed_{name}factors"] = (
                f"    const {c_type} own[{len(own)}] = {{{', '.join(own)}}};\n"
                f"    const eatss::Passed<{c_type}, {len(own)}> all(own, line);\n"
            )
        texts = (of.function, of.definitions, of.for_cpu, *of.helpers)
        function, definitions, for_cpu, *helpers = (
            Template(one).substitute(words) for one in texts
        )
        return Texts(function, definitions, for_cpu, tuple(helpers))

    def _names(self, share: int) -> list[list[str]]:
        """Return what a lane has of sums and of either kind of factors, so many of them in one."""
        counts = (self.m // 4, *(prod(s.values()) // share for s in (self.slots, self.slots_of_b)))
        return [
            [f"{operand}{n if own > 1 else ''}" for n in range(own)]
            for operand, own in zip("dab", counts, strict=True)
        ]

    def _instruction(
        self, sums: Sequence[str], factors: Sequence[Sequence[str]], given: str
    ) -> str:
        places, (kind, factor, _) = count(), self.ptx.split(".")
        head = f"mma.sync.aligned.m{self.m}n8k{self.k}.row.col.{self.ptx}.{kind} "
        sets = ["{" + ", ".join(f"%{next(places)}" for _ in own) + "}" for own in (sums, *factors)]
        lines = [f"{head}{', '.join((*sets, sets[0]))}"]
        if len(lines[0]) > 80:
            lines = [head, *_filled("", (*sets, sets[0]), 80).replace(",\n", ", \n").split("\n")]
        text = f'"\n{_INDENT}"'.join(lines)
        own, one = (_LETTERS.get(name, "r") for name in (kind, factor))
        outputs = [f'"+{own}"({name})' for name in sums]
        inputs = [f'"{one}"({given.replace("$", name)})' for names in factors for name in names]
        operands = _filled(f"{_INDENT}: ", outputs), _filled(f"{_INDENT}: ", inputs, 98)
        return f'    asm volatile("{text};"\n{operands[0]}\n{operands[1]});'

    def _passed(self) -> dict[str, str]:
        """Return the factors of step ``k`` and ``slot`` of a lane, as lanes pass them on."""
        digits = {"half": "slot / 2"}
        for name, stride in self.steps.items():
            end = stride * self.slots.get(name, 4)
            digits[name] = "k" + f" % {end}" * (end < self.k) + f" / {stride}" * (stride > 1)
        found, before = {}, 0
        for which, row, slots in (
            ("first", "row", self.slots),
            ("second", "(2 * quad + slot % 2)", self.slots_of_b),
        ):
            terms, each = [str(before)] * (before > 0 or not slots), prod(slots.values())
            before = each
            for name, extent in slots.items():
                each //= extent
                terms.append(digits[name] if each == 1 else f"{each} * ({digits[name]})")
            found[which] = f"all.of(4 * {row} + {digits['quad']})[{' + '.join(terms)}]"
        return found


def _filled(head: str, atoms: Sequence[str], width: int = 100) -> str:
    """Return a list that goes on below its first one where a line is full."""
    text = " ".join(f"{one},".replace(" ", _KEPT) for one in atoms)[:-1]
    lines = wrap(text, width - len(head), break_long_words=False, break_on_hyphens=False)
    return head + f"\n{' ' * len(head)}".join(lines).replace(_KEPT, " ")


def _parameters(each: Sequence[str]) -> str:
    """Return parameters below the name of a function, but for a few."""
    return ", ".join(each) if len(each) < 6 else "\n" + _filled("    ", each, 99)


_SAME = "\n// The same, the lanes' values passed on as by shuffles.\n"
_SUMS = """\
    eatss::changes($sums);
    const int row = all.lane / 4, quad = all.lane % 4;
    $sum *d[$n_sums] = {$places};
"""
_LOOPS = """\
    for (int k = 0; k < $k; k++)
        for (int slot = 0; slot < $n_sums; slot++)
"""

DOUBLES = Texts(
    "eatss_mma_$form",
    """\

// d += a b for $shape that a warp holds; products are added in the order of k.
__device__ __forceinline__ void eatss_mma_$form($parameters)
{
$instruction
}
""",
    f"""\
{_SAME}\
#define eatss_mma_$form(...) eatss_mma_${{form}}_at(__LINE__, __VA_ARGS__)
EATSS_UNSEEN inline void eatss_mma_${{form}}_at($line_parameters)
{{
${{passed_factors}}{_SUMS}{_LOOPS}\
            *d[slot] = fma($first,
                           $second, *d[slot]);
}}
""",
)
FEW_DOUBLES = DOUBLES._replace(
    for_cpu=f"""\
{_SAME}\
#define eatss_mma_$form(...) eatss_mma_${{form}}_at(__LINE__, __VA_ARGS__)
EATSS_UNSEEN inline void eatss_mma_${{form}}_at($line_parameters)
{{
${{passed_factors}}\
    eatss::changes($sums);
    const int row = all.lane / 4, quad = all.lane % 4;
    for (int k = 0; k < $k; k++) {{
        d0 = fma(all.of(4 * row + k)[0], all.of(8 * quad + k)[1], d0);
        d1 = fma(all.of(4 * row + k)[0], all.of(8 * quad + 4 + k)[1], d1);
    }}
}}
"""
)
"""Those of which a lane has a few: no loop goes over its sums."""

HALVES = Texts(
    "eatss_mma_f16_$form",
    """\

// Two halves in a register, the first one in its lower half.
__device__ __forceinline__ unsigned int eatss_pair(eatss_half first, eatss_half second)
{
    return first.bits | (unsigned int)second.bits << 16;
}
// d += a b for $shape that a warp holds, of halves whose products are floats.
__device__ __forceinline__ void eatss_mma_f16_$form($word_parameters)
{
$instruction
}
__device__ __forceinline__ void eatss_mma_f16_$form($parameters)
{
    eatss_mma_f16_$form($pairs);
}
""",
    f"""\
{_SAME}\
#define eatss_mma_f16_$form(...) eatss_mma_f16_${{form}}_at(__LINE__, __VA_ARGS__)
EATSS_UNSEEN inline void eatss_mma_f16_${{form}}_at($line_parameters)
{{
${{passed_factors}}{_SUMS}{_LOOPS}\
            *d[slot] = fmaf(
                (float)$first,
                (float)$second,
                *d[slot]);
}}
inline eatss_half eatss_of_pair(unsigned int pair, int which)
{{
    eatss_half half;
    half.bits = (unsigned short)(pair >> 16 * which);
    return half;
}}
EATSS_UNSEEN inline void eatss_mma_f16_${{form}}_at($line_word_parameters)
{{
    eatss_mma_f16_${{form}}_at(
$parts);
}}
""",
)

_TF32 = """\

// Tensor cores cut a float off behind 11 significant bits. With half a unit of the last of them
// added that is the nearest such number, of two the one further from zero, as cvt.rna.tf32 makes
// it. Infinities and NaN stay what they are.
__device__ __forceinline__ float eatss_tf32(float value)
{
    const float sign_and_power = __uint_as_float(__float_as_uint(value) & 0xff800000u);
    return __fmaf_rn(sign_and_power, 0.00048828125f, value);
}
__device__ __forceinline__ void eatss_mma_tf32($parameters)
{
$instruction
}
"""
_TF32_REST = """\
// The same cut off, and what is left of a value: at most 12 bits, of which tensor cores have 11.
__device__ __forceinline__ float eatss_tf32_cut(float value)
{
    return __uint_as_float(__float_as_uint(eatss_tf32(value)) & 0xffffe000u);
}
__device__ __forceinline__ float eatss_tf32_rest(float value)
{
    return value - eatss_tf32_cut(value);
}
"""
TF32 = Texts(
    "eatss_mma_tf32_$form",
    """\

// d += a b for $shape that a warp holds, of factors that are rounded to TF32.
__device__ __forceinline__ void eatss_mma_tf32_$form($parameters)
{
    eatss_mma_tf32(d0, d1, d2, d3, eatss_tf32(a0), eatss_tf32(a1), eatss_tf32(a2), eatss_tf32(a3),
                   eatss_tf32(b0), eatss_tf32(b1));
}
""",
    f"""\
{_SAME}\
inline float eatss_tf32_bits(float value, unsigned bits)
{{
    unsigned all;
    memcpy(&all, &value, sizeof all);
    all &= bits;
    memcpy(&value, &all, sizeof all);
    return value;
}}
inline float eatss_tf32(float value)
{{
    const float sign_and_power = eatss_tf32_bits(value, 0xff800000u);
    return eatss_tf32_bits(fmaf(sign_and_power, 0.00048828125f, value), 0xffffe000u);
}}
inline float eatss_tf32_rest(float value)
{{
    return eatss_tf32_bits(value - eatss_tf32(value), 0xffffe000u);
}}
#define eatss_mma_tf32_$form(...) eatss_mma_tf32_at(__LINE__, false, __VA_ARGS__)
#define eatss_mma_3xtf32_$form(...) eatss_mma_tf32_at(__LINE__, true, __VA_ARGS__)
EATSS_UNSEEN inline void eatss_mma_tf32_at($line_parameters)
{{
${{passed_factors}}{_SUMS}\
    for (int part = rests ? 0 : 2; part < 3; part++)
        for (int k = 0; k < $k; k++)
            for (int slot = 0; slot < 4; slot++) {{
                const float a = $first;
                const float b = $second;
                *d[slot] = fmaf(part == 0 ? eatss_tf32_rest(a) : eatss_tf32(a),
                                part == 1 ? eatss_tf32_rest(b) : eatss_tf32(b), *d[slot]);
            }}
}}
""",
    (_TF32,),
    "__float_as_uint($)",
    "int line, bool rests",
)
SPLIT_TF32 = TF32._replace(
    function="eatss_mma_3xtf32_$form",
    definitions="""\

// d += a b for $shape that a warp holds. A factor is the sum of two numbers in
// TF32; the product of what is left of both is not added.
__device__ __forceinline__ void eatss_mma_3xtf32_$form($parameters)
{
    const float a[4] = {eatss_tf32_cut(a0), eatss_tf32_cut(a1), eatss_tf32_cut(a2),
                        eatss_tf32_cut(a3)};
    const float b[2] = {eatss_tf32_cut(b0), eatss_tf32_cut(b1)};
    eatss_mma_tf32(d0, d1, d2, d3, eatss_tf32_rest(a0), eatss_tf32_rest(a1), eatss_tf32_rest(a2),
                   eatss_tf32_rest(a3), b[0], b[1]);
    eatss_mma_tf32(d0, d1, d2, d3, a[0], a[1], a[2], a[3], eatss_tf32_rest(b0),
                   eatss_tf32_rest(b1));
    eatss_mma_tf32(d0, d1, d2, d3, a[0], a[1], a[2], a[3], b[0], b[1]);
}
""",
    helpers=(_TF32, _TF32_REST),
)

_WORDS = """\

// Four bytes in a register, the first one in its lowest bits.
__device__ __forceinline__ unsigned int eatss_word(int first, int second, int third, int fourth)
{
    return (first & 255) | (second & 255) << 8 | (third & 255) << 16 | (unsigned int)fourth << 24;
}
"""
BYTES = Texts(
    "eatss_mma_${types}_$form",
    """\

// d += a b for $shape of bytes that a warp holds. Sums wrap around.
template <typename Sum>
__device__ __forceinline__ void eatss_mma_${types}_$form($word_parameters)
{
$instruction
}
template <typename Sum>
__device__ __forceinline__ void eatss_mma_${types}_$form(
    Sum &d0, Sum &d1, Sum &d2, Sum &d3, int a0, int a1, int a2, int a3, int a4, int a5, int a6,
    int a7, int a8, int a9, int a10, int a11, int a12, int a13, int a14, int a15, int b0, int b1,
    int b2, int b3, int b4, int b5, int b6, int b7)
{
    eatss_mma_${types}_$form(d0, d1, d2, d3, eatss_word(a0, a1, a2, a3), eatss_word(a4, a5, a6, a7),
         eatss_word(a8, a9, a10, a11), eatss_word(a12, a13, a14, a15),
         eatss_word(b0, b1, b2, b3), eatss_word(b4, b5, b6, b7));
}
""",
    f"""\
{_WORDS.replace("__device__ __forceinline__", "inline")}{_SAME}\
template <typename First, typename Second, typename Sum>
EATSS_UNSEEN inline void eatss_multiply_bytes_at($line_word_parameters)
{{
${{passed_word_factors}}{_SUMS}\
    for (int k = 0; k < 32; k++)
        for (int slot = 0; slot < 4; slot++) {{
            const int lane = k % 16 / 4, later = k / 16, bit = 8 * (k % 4);
            const First a = (First)(all.of(4 * row + lane)[2 * later + slot / 2] >> bit);
            const Second b =
                (Second)(all.of(4 * (2 * quad + slot % 2) + lane)[4 + later] >> bit);
            *d[slot] = (Sum)((unsigned int)*d[slot] + (unsigned int)(a * b));
        }}
}}
template <typename First, typename Second, typename Sum>
inline void eatss_multiply_bytes_at(
    int line, Sum &d0, Sum &d1, Sum &d2, Sum &d3, int a0, int a1, int a2, int a3, int a4, int a5, \
int a6,
    int a7, int a8, int a9, int a10, int a11, int a12, int a13, int a14, int a15, int b0, int b1,
    int b2, int b3, int b4, int b5, int b6, int b7)
{{
    eatss_multiply_bytes_at<First, Second>(line, d0, d1, d2, d3, eatss_word(a0, a1, a2, a3), \
eatss_word(a4, a5, a6, a7),
         eatss_word(a8, a9, a10, a11), eatss_word(a12, a13, a14, a15),
         eatss_word(b0, b1, b2, b3), eatss_word(b4, b5, b6, b7));
}}
#define eatss_mma_s8_s8_$form(...) \\
    eatss_multiply_bytes_at<signed char, signed char>(__LINE__, __VA_ARGS__)
#define eatss_mma_s8_u8_$form(...) \\
    eatss_multiply_bytes_at<signed char, unsigned char>(__LINE__, __VA_ARGS__)
#define eatss_mma_u8_s8_$form(...) \\
    eatss_multiply_bytes_at<unsigned char, signed char>(__LINE__, __VA_ARGS__)
#define eatss_mma_u8_u8_$form(...) \\
    eatss_multiply_bytes_at<unsigned char, unsigned char>(__LINE__, __VA_ARGS__)
""",
    (_WORDS,),
)
