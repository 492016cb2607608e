"""Quotients as fused steps: those of the generated text against a division, bit for bit.

Of floats every significand is divided, of doubles those whose quotients are nearest to midpoints.
"""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eatss.base.quotients import FORMATS, is_rounded_quotient
from eatss.cuda.preamble import preamble
from eatss.verify.build import SHIM

ARRAYS: dict[str, Any] = {"float": np.float32, "double": np.float64}
DIVISORS = (3.0, 5.0, 9.0, 118.0, 159.0, 273.0, 5.1, 1.7, 0.7, 0.013, 1e6 + 1, 2.0**31 + 2.0**9)

_TEXT = """
#define EATSS_CPU
#include "eatss_cpu.hpp"
{preamble}
template <typename Number>
static Number by_reciprocal(Number x, Number c)
{{
    bool exact = true;
    const Number reciprocal = eatss_reciprocal<Number>(c, exact);
    const Number quotient = eatss_quotient<Number>(x, c, reciprocal, exact);
    return exact ? quotient : x / c;
}}
template <typename Number>
static Number alone(Number x, Number c)
{{
    return eatss_quotient<Number>(x, c, eatss_reciprocal<Number>(c));
}}
template <typename Number>
static Number together(Number x, Number c)
{{
    const Number reciprocal = eatss_reciprocal<Number>(c);
    bool exact = true;
    const Number quotient = eatss_quotient<Number>(x, c, reciprocal, exact);
    return exact ? quotient : x / c;
}}
template <typename Number, typename Bits>
static long wrong(const Number *x, long count, Number c, Bits *first, bool is_literal = true)
{{
    long found = 0;
    for (long at = 0; at < count; at++) {{
        bool exact = true;
        const Number here = eatss_quotient<Number>(x[at], c, exact);
        const Number all[] = {{exact ? here : x[at] / c, eatss_quotient<Number>(x[at], c)}};
        const Number others[] = {{
            by_reciprocal(x[at], c), alone(x[at], c), together(x[at], c)
        }};
        for (int way = is_literal ? 0 : 2; way < 5; way++) {{
            const Number one = way < 2 ? all[way] : others[way - 2];
            const Number division = x[at] / c;
            Bits bits, wanted;
            memcpy(&bits, &one, sizeof bits);
            memcpy(&wanted, &division, sizeof bits);
            if (bits != wanted && (one == one || division == division) && !found++)
                memcpy(first, &x[at], sizeof *first);
        }}
    }}
    return found;
}}
extern "C" long wrong_float(const float *x, long count, float c, uint32_t *first)
{{
    return wrong(x, count, c, first);
}}
extern "C" long wrong_double(const double *x, long count, double c, uint64_t *first)
{{
    return wrong(x, count, c, first);
}}
extern "C" long wrong_any_float(const float *x, long count, float c, uint32_t *first)
{{
    return wrong(x, count, c, first, false);
}}
extern "C" long wrong_any_double(const double *x, long count, double c, uint64_t *first)
{{
    return wrong(x, count, c, first, false);
}}
"""

Wrong = Callable[[str, npt.NDArray[Any], float], int]


def compiled(folder: Path, change: Callable[[str], str] = str) -> Wrong:
    """Return how many of some numbers the text of quotients divides otherwise than C does."""
    text = change(
        _TEXT.format(preamble=preamble("eatss_quotient<float>(x, eatss_reciprocal<float>(c));"))
    )
    source, library = folder / "quotients.cpp", folder / "quotients.so"
    source.write_text(text)
    command = ["g++", "-std=c++17", "-O2", "-ffp-contract=off", "-march=native", f"-I{SHIM}"]
    subprocess.run([*command, "-shared", "-fPIC", source, "-o", library], check=True)
    loaded = ctypes.CDLL(str(library))

    def wrong(kind: str, numbers: npt.NDArray[Any], divisor: float) -> int:
        real = ctypes.c_float if kind.endswith("float") else ctypes.c_double
        function, first = loaded[f"wrong_{kind}"], ctypes.c_uint64()
        function.restype = ctypes.c_long
        pointer = numbers.ctypes.data_as(ctypes.POINTER(real))
        return int(
            function(pointer, ctypes.c_long(numbers.size), real(divisor), ctypes.byref(first))
        )

    return wrong


@pytest.fixture(scope="module")
def wrong(tmp_path_factory: pytest.TempPathFactory) -> Wrong:
    return compiled(tmp_path_factory.mktemp("quotients"))


def significands() -> npt.NDArray[np.float32]:
    """Every float of [1, 2)."""
    return np.arange(0x3F800000, 0x40000000, dtype=np.uint32).view(np.float32)


def everywhere(kind: str) -> npt.NDArray[Any]:
    """Numbers of all exponents and both signs, zeros, subnormals, infinities and NaN."""
    real = ARRAYS[kind]
    known = np.finfo(real)
    least, tiny, most = map(float, (known.smallest_subnormal, known.tiny, known.max))
    sizes = np.array([0.0, least, tiny, most, np.inf, np.nan], dtype=real)
    ends = np.concatenate([sizes, -sizes])
    if kind == "float":
        some = np.arange(0, 2**32, 1021, dtype=np.uint64).astype(np.uint32).view(real)
        return np.concatenate([ends, some])
    edges = np.arange(0, 2**64, 2**52, dtype=np.uint64)
    near = (edges[:, None] + np.arange(-40, 40).astype(np.uint64)).reshape(-1)
    some = np.random.default_rng(1).integers(0, 2**64, 1_000_000, dtype=np.uint64)
    return np.concatenate([ends, near.view(real), some.view(real)])


def hard(divisor: float, bits: int, most: int = 60) -> Iterator[Fraction]:
    """Yield numbers of so many bits whose quotients are very near to midpoints.

    With integers of ``bits`` bits ``X / C`` is ``k / (C 2**s)`` from an odd multiple of
    ``2**-s`` where ``X 2**s = k`` modulo ``C``.
    """
    whole = int(Fraction(divisor) * Fraction(2) ** (bits - 1 - int(np.floor(np.log2(divisor)))))
    power = (whole & -whole).bit_length() - 1
    odd = whole >> power
    for shift in (bits, bits + 1):  # quotients from 1 on, and below
        inverse = pow(pow(2, shift, odd), -1, odd) if odd > 1 else 0
        for rest in (k << power for k in range(-most, most + 1) if k):
            # X 2**shift = rest + C m, so X 2**(shift - power) = rest / 2**power modulo odd
            start = (rest * inverse) % odd
            low, high = 1 << (bits - 1), (1 << bits) - 1
            first = start + -(-(low - start) // odd) * odd
            for number in range(first, high + 1, max(odd, (high - low) // 50 // odd * odd or odd)):
                yield Fraction(number)


def test_the_test_is_not_passed_by_powers_of_two_and_ones_alone() -> None:
    for bits in (24, 53):
        assert all(is_rounded_quotient(float(np.float32(one)), bits) for one in DIVISORS)
        assert not any(is_rounded_quotient(2.0**one, bits) for one in range(-40, 70))
        assert not is_rounded_quotient(2.0 - 2.0 ** (1 - bits), bits)
        assert not any(
            map(is_rounded_quotient, (0.0, -3.0, 3e-3, 1e10, np.inf, np.nan), [bits] * 6)
        )


def nearest(value: Fraction, bits: int) -> Fraction:
    """Return the number of so many bits that is nearest to one that is positive, ties to even."""
    power = value.numerator.bit_length() - value.denominator.bit_length() - bits
    power += value >= Fraction(2) ** (power + bits)
    unit = Fraction(2) ** power
    return round(value / unit) * unit


@pytest.mark.parametrize("bits", [2, 3, 4, 5, 6, 7, 8])
def test_the_steps_round_all_quotients_of_small_formats(bits: int) -> None:
    whole = range(2 ** (bits - 1), 2**bits)
    passing = [one for one in whole if is_rounded_quotient(float(one), bits)]
    assert len(passing) >= len(whole) - 3
    for divisor in map(Fraction, passing):
        reciprocal = nearest(1 / divisor, bits)
        for number in map(Fraction, whole):
            first = nearest(number * reciprocal, bits)
            rest = number - first * divisor
            rounded = nearest(abs(rest), bits) * (1 if rest > 0 else -1) if rest else rest
            assert nearest(first + rounded * reciprocal, bits) == nearest(number / divisor, bits)


@pytest.mark.parametrize("divisor", DIVISORS)
def test_every_float_is_divided_as_by_a_division(divisor: float, wrong: Wrong) -> None:
    own = float(np.float32(divisor))
    assert is_rounded_quotient(own, FORMATS["float"].bits)
    assert wrong("float", significands(), own) == 0
    assert wrong("float", everywhere("float"), own) == 0


@pytest.mark.parametrize("divisor", DIVISORS)
def test_doubles_near_midpoints_are_divided_as_by_a_division(divisor: float, wrong: Wrong) -> None:
    numbers = np.array([float(one) for one in hard(divisor, 53)])
    assert numbers.size > 100
    assert np.all((numbers >= 2.0**52) & (numbers < 2.0**53))
    for scale in (0, -52, 600, -800):
        assert wrong("double", np.ldexp(numbers, scale), divisor) == 0
    assert wrong("double", everywhere("double"), divisor) == 0


@given(significand=st.integers(2**23 + 1, 2**24 - 2), power=st.integers(-31, 8))
def test_floats_are_divided_by_any_number_that_passes(
    significand: int, power: int, wrong: Wrong
) -> None:
    divisor = float(np.ldexp(float(significand), power))
    if is_rounded_quotient(divisor, 24):
        own = np.array([float(one) for one in hard(divisor, 24)], dtype=np.float32)
        assert wrong("float", own, divisor) == 0
        assert wrong("float", everywhere("float")[::50], divisor) == 0


@given(significand=st.integers(2**52 + 1, 2**53 - 2), power=st.integers(-60, -21))
def test_doubles_are_divided_by_any_number_that_passes(
    significand: int, power: int, wrong: Wrong
) -> None:
    divisor = float(np.ldexp(float(significand), power))
    if is_rounded_quotient(divisor, 53):
        own = np.array([float(one) for one in hard(divisor, 53)])
        assert wrong("double", own, divisor) == 0


ENDS = (0.0, 1.0, 2.0**-41, 2.0**-40, 2.0**40, 2.0**41, 1e-37, 1e-44, 3e38, np.inf, np.nan)


@pytest.mark.parametrize("kind", ["float", "double"])
def test_divisors_of_all_kinds_are_tested_where_they_are_known_at_run_time(
    kind: str, wrong: Wrong
) -> None:
    bits = FORMATS[kind].bits
    ones = [float(2**bits - number) for number in range(1, 5)]
    ends = [*ENDS, 2.0**-100, 2.0**-101, 2.0**100, 2.0**101, *ones]
    near = np.array([*ones, *(2.0 * one + 2.0 for one in ones)], dtype=ARRAYS[kind])
    numbers = np.concatenate([everywhere(kind)[:: 1 if kind == "double" else 20], near])
    for divisor in (*DIVISORS, *ends):
        for own in (divisor, -divisor):
            with np.errstate(over="ignore", under="ignore"):
                own_kind = float(ARRAYS[kind](own))
            assert wrong(f"any_{kind}", numbers, own_kind) == 0


@given(significand=st.integers(2**23, 2**24 - 1), power=st.integers(-64, 17))
def test_floats_are_divided_by_what_is_known_at_run_time(
    significand: int, power: int, wrong: Wrong
) -> None:
    divisor = float(np.ldexp(float(significand), power))
    own = np.array([float(one) for one in hard(divisor, 24)], dtype=np.float32)
    assert wrong("any_float", own, -divisor) == 0
    assert wrong("any_float", everywhere("float")[::50], divisor) == 0


MUTANTS = {
    "no test": ("exact &= fabs(quotient) >= least || x == 0;", ""),
    "a test that lets NaN pass": ("fabs(quotient) >= least", "!(fabs(quotient) < least)"),
    "a least number that is too small": ("(Number)(sizeof", "(Number)1e-20 * (Number)(sizeof"),
    "another reciprocal": ("1 / c, q", "(1 / c) * (Number)1.001, q"),
    "no second step": ("fma(fma(q, c, -x), -reciprocal, q)", "q"),
    "a remainder that is rounded twice": ("fma(q, c, -x)", "(q * c - x)"),
}
MUTANTS_BY_RECIPROCALS = {
    "another reciprocal": ("inverse = eatss_inverse(c)", "inverse = eatss_inverse(c + c * apart)"),
    "zeros of the other sign": ("(x == 0 && reciprocal > 0)", "x == 0"),
    "divisors that are too small": ("exact &= fabs(c) >= least;", ""),
    "divisors that are too large": ("exact &= fabs(c) <= 1 / least;", ""),
}


@pytest.mark.parametrize("what", MUTANTS)
def test_broken_steps_are_found(what: str, tmp_path: Path) -> None:
    old, new = MUTANTS[what]

    def change(text: str) -> str:
        assert old in text
        return text.replace(old, new)

    broken = compiled(tmp_path, change)
    numbers = [significands(), everywhere("float")]
    found = sum(broken("float", one, 118.0) for one in numbers)
    assert found > 0


@pytest.mark.parametrize("what", MUTANTS_BY_RECIPROCALS)
def test_broken_steps_with_reciprocals_are_found(what: str, tmp_path: Path) -> None:
    old, new = MUTANTS_BY_RECIPROCALS[what]
    untested = ("fabs(fma(-c, inverse, (Number)1)) <= apart", "true")
    broken = compiled(tmp_path, lambda text: text.replace(old, new).replace(*untested))
    numbers = np.concatenate([significands(), everywhere("float")])
    divisors = (2.0 - 2.0**-23, -3.0, 1.7 * 2.0**-130, 1.7 * 2.0**127)
    assert sum(broken("any_float", numbers, one) for one in divisors) > 0
