"""What kernels demand of a card's compute capability."""

from __future__ import annotations

from collections.abc import Sequence

from eatss.diagnostics import input_error
from eatss.gpu import GpuProfile
from eatss.instructions import ATOMICS, SHUFFLES
from eatss.kernel.nodes import Kernel
from eatss.kernel.uses import Needs, needs_of

_OF_SUMS = (*ATOMICS.values(), *SHUFFLES.values())


def check_capability(kernels: Sequence[Kernel], profile: GpuProfile) -> None:
    """Refuse a card that lacks what kernels use.

    Raises:
        InputError: ``EATSS-K012``.
    """
    needs = Needs()
    for kernel in kernels:
        needs = needs.joined(needs_of(kernel))
    has = profile.compute_capability
    for instruction, element_type in sorted(needs.instructions, key=lambda one: one[0].name):
        needed = instruction.least(element_type)
        if has < needed.least:
            what = instruction.what
            if needed.element_type is not None:
                what += f" on {element_type.value}"
            major, minor = needed.least
            raise input_error(
                "EATSS-K012",
                f"the code needs compute capability {major}.{minor} for {what}, and "
                f"{profile.title} has {has[0]}.{has[1]}",
                hint="--strict-fp keeps sums of floating-point numbers whole and needs neither "
                "atomics nor shuffles for them; or choose another card with --gpu"
                if instruction in _OF_SUMS
                else "leave the instruction out, or choose another card with --gpu",
            )
