"""The table of instructions: what they compute, their texts, and what a card needs for them.

``eatss/lower`` places some of them; others take the place of statements whose value they compute,
where a recipe names them (``eatss/lower/transform/use_instruction.py``).
"""

from eatss.base.extensions import Registry
from eatss.lower.instructions.products import PRODUCTS
from eatss.lower.instructions.reductions import ATOMICS, COMBINES, SHUFFLES
from eatss.lower.kernel.instruction import Instruction

INSTRUCTIONS: Registry[Instruction] = Registry(
    "eatss.instructions",
    "instruction",
    {
        one.name: one
        for one in (*SHUFFLES.values(), *COMBINES.values(), *ATOMICS.values(), *PRODUCTS)
    },
    of=Instruction,
)

__all__ = ["ATOMICS", "COMBINES", "INSTRUCTIONS", "SHUFFLES"]
