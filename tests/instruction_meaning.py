"""What rows of the table of instructions mean, computed without a card."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any, TypeAlias

from eatss.lower.kernel.instruction import Instruction

Values: TypeAlias = dict[tuple[int, ...], float]
"""What an operand holds, by the index of the element; that of a single value is ``()``."""


class _Held(Values):
    def __missing__(self, index: Any) -> float:
        return self[(index,)]


def run(
    instruction: Instruction,
    operands: Mapping[str, Values],
    immediates: Mapping[str, int] | None = None,
) -> dict[str, Values]:
    """Return what the operands hold after an instruction."""
    after = {name: dict(values) for name, values in operands.items()}
    held = {n: values[()] if () in values else _Held(values) for n, values in operands.items()}
    target, _, index = instruction.target.rstrip("]").partition("[")
    counters = [name for name, _ in instruction.instances]
    for numbers in product(*(range(extent) for _, extent in instruction.instances)):
        names = {**held, **(immediates or {}), **dict(zip(counters, numbers, strict=True))}
        place = eval(f"({index},)", {}, names) if index else ()
        value = eval(instruction.value, {}, names)
        after[target][place] = after[target][place] + value if instruction.adds else value
    return after
