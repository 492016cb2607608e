"""What kernels demand of a card's compute capability."""

from __future__ import annotations

from collections.abc import Sequence

from eatss.diagnostics import InputError, input_error
from eatss.gpu import GpuProfile
from eatss.kernel.nodes import Kernel
from eatss.kernel.uses import Needs, needs_of
from eatss.scop import ElementType

_ATOMIC_DOUBLE = (6, 0)
_SHUFFLE = (3, 0)


def check_capability(kernels: Sequence[Kernel], profile: GpuProfile) -> None:
    """Refuse a card that lacks what kernels use.

    Raises:
        InputError: ``EATSS-K012``.
    """
    needs = Needs()
    for kernel in kernels:
        needs = needs.joined(needs_of(kernel))
    has = profile.compute_capability
    if ElementType.DOUBLE in needs.atomics and has < _ATOMIC_DOUBLE:
        raise _error("atomicAdd on double", _ATOMIC_DOUBLE, profile)
    if needs.shuffles and has < _SHUFFLE:
        raise _error("shuffles between threads", _SHUFFLE, profile)


def _error(what: str, needed: tuple[int, int], profile: GpuProfile) -> InputError:
    return input_error(
        "EATSS-K012",
        f"the code needs compute capability {needed[0]}.{needed[1]} for {what}, and "
        f"{profile.title} has {profile.compute_capability[0]}.{profile.compute_capability[1]}",
        hint="--strict-fp keeps sums whole and needs neither atomics nor shuffles; "
        "or choose another card with --gpu",
    )
