"""Which numbers ``x`` may be divided by as ``x * r`` and two fused steps, ``r = 1 / c`` rounded.

    q = x * r;
    q = fma(fma(-q, c, x), r, q);

is ``x / c`` as IEEE 754 rounds it to nearest, for every ``x`` for which nothing overflows or gets
subnormal on the way. Let numbers have ``p`` bits, let ``c`` and ``r`` be integers ``C`` and ``R``
of ``p`` bits times powers of two, ``d = |r c - 1| = N / 2**(2p - 1)`` with
``N = |R C - 2**(2p - 1)|``, and let distances be in units in the last place of ``x / c``.

- The first ``q`` is less than 3/2 from ``x / c``: 1/2 for its rounding, and less than 1 for ``r``.
- But for rounding, the last step would be ``(x / c - q) (r c - 1)`` from ``x / c``. What it
  corrects is rounded before if it has more than ``p`` bits, and then the first ``q`` is more than 1
  away. So it is less than ``3 / 2**p`` away, and is rounded as ``x / c`` unless this is as near to
  a midpoint of two numbers. No quotient is a midpoint, unless ``c`` is a power of two; from the
  nearest each is ``e >= 1 / (2 C)``.
- Where it is so near and the first ``q`` is one of the two numbers beside the midpoint, that is at
  most ``1/2 + e`` away, and what is left to correct is exact. The last step is ``(1/2 + e) d`` away
  then, which is less than ``e`` because ``d <= C / 2**(2p)`` and ``C < 2**p``.
- It is one of the two unless ``x * r`` is ``1 - e`` or more from ``x / c``. It is less than
  ``2**p d``, so that ``N > 2**(p - 1) - 3/2``.

The last is what is tested: of a constant here, of other numbers when they are there, as
``fabs(fma(-c, r, 1)) <= (2**p - 4) / 2**(2 p)``, which has no rounding. Markstein gave the steps
for a ``q`` that is at most 1 away (IBM Journal of Research and Development 34, 1990); Brisebarre,
Muller and Raina the bounds for constants (IEEE Transactions on Computers 53, 2004).
"""

from __future__ import annotations

from math import frexp, isfinite

from eatss.base.frozen import frozen

INSTRUCTIONS = 4
"""Instructions of such a quotient: a product, two fused steps, and a comparison with ``least``."""

STEPS = 3
"""Those of them that wait for each other."""

_LEAST_DIVISOR, _MOST_DIVISOR = 2.0**-8, 2.0**32


@frozen
class Format:
    """A binary format: the bits of its numbers, and the least result of the steps that is taken.

    Of divisors that are no constants it is ``least_quotient``, and they are ``least_divisor`` to
    its reciprocal.

    ``x * r`` and what the steps give are normal from ``least`` on, and ``x`` has ``bits`` more bits
    than the least normal number, so that what is left to correct is no fraction of a subnormal one.
    What is infinite or no number, or would overflow, is no number behind the steps.
    """

    bits: int
    least: float
    least_quotient: float
    least_divisor: float

    @property
    def most_apart(self) -> float:
        """How far ``r c`` may be from 1: then every quotient by ``c`` is what the steps give."""
        return float((2.0**self.bits - 4.0) / 4.0**self.bits)


FORMATS = {
    "float": Format(bits=24, least=1e-27, least_quotient=2.0**-60, least_divisor=2.0**-40),
    "double": Format(bits=53, least=1e-270, least_quotient=2.0**-860, least_divisor=2.0**-100),
}
"""Formats by their names in C. The least results are more than 2**-90 and 2**-900: divisors are at
least 2**-8, so ``x`` is more than 2**-99 and 2**-909, where 2**-101 and 2**-968 would do; of others
it is more than 2**-101 and 2**-961."""


def is_rounded_quotient(divisor: float, bits: int) -> bool:
    """Tell whether the steps give the rounded quotient of all numbers of so many bits by a divisor.

    It is of as many bits. Powers of two are left out: compilers multiply by their reciprocals.
    """
    if not isfinite(divisor) or not _LEAST_DIVISOR <= divisor <= _MOST_DIVISOR:
        return False
    whole = int(frexp(divisor)[0] * 2.0**bits)
    one = 1 << (2 * bits - 1)
    reciprocal = (2 * one + whole) // (2 * whole)  # nearest; no odd multiple of 1/2 if no power
    return whole != 1 << (bits - 1) and 2 * abs(reciprocal * whole - one) < (1 << bits) - 3
