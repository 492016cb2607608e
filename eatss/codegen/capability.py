"""What a text demands of a card's compute capability."""

from __future__ import annotations

import re

from eatss.diagnostics import input_error
from eatss.gpu import GpuProfile
from eatss.program import Program

_ATOMIC = re.compile(r"\beatss_atomic_add\(&[(*]*(\w+)")
_ATOMIC_DOUBLE = (6, 0)
_SHUFFLE = (3, 0)


def check_capability(program: Program, profile: GpuProfile) -> None:
    """Refuse a card that lacks what the kernels use.

    Raises:
        InputError: ``EATSS-K012``.
    """
    has = profile.compute_capability
    types = {a.name: a.element_type for entry in program.entries for a in entry.arguments}
    types |= {t.name: t.element_type for entry in program.entries for t in entry.temporaries}
    added = {types.get(match[1]) for match in _ATOMIC.finditer(program.text)}
    if "double" in added and has < _ATOMIC_DOUBLE:
        raise _error("atomicAdd on double", _ATOMIC_DOUBLE, profile)
    if "= eatss_shuffle_down(" in program.text and has < _SHUFFLE:
        raise _error("shuffles between threads", _SHUFFLE, profile)


def _error(what: str, needed: tuple[int, int], profile: GpuProfile) -> Exception:
    return input_error(
        "EATSS-K012",
        f"the code needs compute capability {needed[0]}.{needed[1]} for {what}, and "
        f"{profile.title} has {profile.compute_capability[0]}.{profile.compute_capability[1]}",
        hint="--strict-fp keeps sums whole and needs neither atomics nor shuffles; "
        "or choose another card with --gpu",
    )
