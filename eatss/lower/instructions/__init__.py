"""The table of instructions: what they compute, their texts, and what a card needs for them.

``eatss/lower`` places those of sums; those that a warp runs together take the place of products
(``eatss/lower/transform/use_instruction.py``), where they are selected or named by a recipe.
"""

from collections.abc import Mapping

from eatss.base.diagnostics import did_you_mean, input_error
from eatss.lower.instructions.products import PRODUCTS
from eatss.lower.instructions.reductions import (
    ATOMICS,
    COMBINES,
    FROM_BELOW,
    FROM_LANE,
    IMPROVEMENTS,
    OF_LANE,
    PEEK,
    SCAN_STEPS,
    SHUFFLES,
    combined,
)
from eatss.lower.kernel.instruction import Instruction

INSTRUCTIONS: Mapping[str, Instruction] = {
    one.name: one
    for one in (
        *SHUFFLES.values(),
        OF_LANE,
        FROM_BELOW,
        FROM_LANE,
        *COMBINES.values(),
        *ATOMICS.values(),
        PEEK,
        *IMPROVEMENTS.values(),
        *SCAN_STEPS.values(),
        *PRODUCTS,
    )
}
"""All by name, in the order in which files define what they use."""


def of_warps(name: str) -> Instruction:
    """Return the instruction of this name that multiplies matrices.

    Raises:
        InputError: ``EATSS-X005``, there is none.
    """
    if name in _OF_WARPS:
        return _OF_WARPS[name]
    raise input_error(
        "EATSS-X005",
        f"there is no instruction '{name}' of tensor cores",
        hint=did_you_mean(name, _OF_WARPS, "choose one of"),
    )


_OF_WARPS = {one.name: one for one in PRODUCTS}

__all__ = [
    "ATOMICS",
    "COMBINES",
    "FROM_BELOW",
    "FROM_LANE",
    "IMPROVEMENTS",
    "INSTRUCTIONS",
    "OF_LANE",
    "PEEK",
    "SCAN_STEPS",
    "SHUFFLES",
    "combined",
    "of_warps",
]
