"""The table of instructions: what they compute, their texts, and what a card needs for them.

``eatss/lower`` places some of them; others take the place of statements whose value they compute,
where a recipe names them (``eatss/transform/use_instruction.py``).
"""

from eatss.extensions import Registry
from eatss.instructions.arithmetic import FMA
from eatss.instructions.atomics import ATOMIC_ADD, ATOMICS
from eatss.instructions.byte_matrices import MMAS_OF_BYTES
from eatss.instructions.combining import COMBINES
from eatss.instructions.half_matrices import MMA_F16_16X8X16
from eatss.instructions.matrices import MMA_F64_8X8X4, MMA_F64_16X8X4, MMA_F64_16X8X16
from eatss.instructions.narrow_matrices import MMA_3XTF32_16X8X8, MMA_TF32_16X8X8
from eatss.instructions.shuffles import SHUFFLE_DOWN_ADD, SHUFFLES
from eatss.kernel.instruction import Instruction

_ROWS = (
    *SHUFFLES.values(),
    *COMBINES.values(),
    *ATOMICS.values(),
    FMA,
    MMA_F64_8X8X4,
    MMA_F64_16X8X4,
    MMA_F64_16X8X16,
    MMA_TF32_16X8X8,
    MMA_3XTF32_16X8X8,
    MMA_F16_16X8X16,
    *MMAS_OF_BYTES,
)

INSTRUCTIONS: Registry[Instruction] = Registry(
    "eatss.instructions",
    "instruction",
    {one.name: one for one in _ROWS},
    of=Instruction,
)

__all__ = [
    "ATOMICS",
    "ATOMIC_ADD",
    "COMBINES",
    "FMA",
    "INSTRUCTIONS",
    "MMAS_OF_BYTES",
    "MMA_3XTF32_16X8X8",
    "MMA_F16_16X8X16",
    "MMA_F64_8X8X4",
    "MMA_F64_16X8X4",
    "MMA_F64_16X8X16",
    "MMA_TF32_16X8X8",
    "SHUFFLES",
    "SHUFFLE_DOWN_ADD",
]
