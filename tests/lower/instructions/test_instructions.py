"""What rows of the table say they compute is what their texts compute.

Parts of a reduction come to the same value however it is cut, and whoever combines them.
"""

from __future__ import annotations

import math
import random
import subprocess
from functools import reduce
from itertools import product
from pathlib import Path

import pytest

from eatss.cuda.text import constant_text
from eatss.lower.instructions import ATOMICS, COMBINES, INSTRUCTIONS, SHUFFLES
from eatss.lower.kernel.instruction import (
    Instruction,
)
from eatss.polyhedral.expression import COMBINERS, Combiner, ElementType
from eatss.verify.build import SHIM
from tests.instruction_meaning import Values, run

ROWS = tuple(INSTRUCTIONS.values())


@pytest.mark.parametrize("instruction", ROWS, ids=lambda one: one.name)
def test_a_text_names_every_operand_and_immediate(instruction: Instruction) -> None:
    words = {one.name: "x" for one in instruction.operands}
    words |= dict.fromkeys(instruction.immediates, "1")
    assert instruction.cuda.format(**words)
    for name in words:
        assert f"{{{name}}}" in instruction.cuda


CASES = [(one, kind) for one in COMBINERS for kind in one.element_types]
UNSIGNED = {ElementType.UINT32: 32, ElementType.UINT64: 64}
SPECIAL = (math.nan, math.inf, -math.inf, 0.0, -1.5, 2.0, 2.0)


def values_of(kind: ElementType) -> list[float]:
    """Return values of a type at its ends and between; products of a few of them are exact."""
    if kind.is_floating:
        return list(SPECIAL)
    if kind in UNSIGNED:
        return [0, 1, 6, 2 ** UNSIGNED[kind] - 1]
    most = 2 ** (8 * kind.size_bytes - 1)
    return [0, 1, -7, most - 1, -most]


def wrapped(value: float, kind: ElementType) -> float:
    """Return a value as its type has it after an overflow that C leaves open or wraps."""
    if kind.is_floating:
        return value
    bits = 8 * kind.size_bytes
    low: int = int(value) % 2**bits
    return low if kind in UNSIGNED or low < 2 ** (bits - 1) else low - 2**bits


def combined(combiner: Combiner, kind: ElementType, target: float, value: float) -> float:
    before: dict[str, Values] = {"target": {(): target}, "value": {(): value}}
    after = run(COMBINES[combiner.name], before)
    return wrapped(after["target"][()], kind)


def same(one: float, other: float) -> bool:
    return one == other or (math.isnan(one) and math.isnan(other))


@pytest.mark.parametrize(("combiner", "kind"), CASES, ids=str)
def test_parts_come_to_what_all_terms_come_to(combiner: Combiner, kind: ElementType) -> None:
    neutral = wrapped(combiner.neutral(kind), kind)
    exact = not (kind.is_floating and combiner.name in ("add", "multiply"))
    values = values_of(kind) if exact else [0.5, -2.0, 4.0, 1.0]  # all sums of these are exact

    def over(start: float, terms: list[float]) -> float:
        return reduce(lambda one, other: combined(combiner, kind, one, other), terms, start)

    draw = random.Random(combiner.name)
    for target, cut in product(values, range(4)):
        terms = draw.choices(values, k=6)
        parts = [over(neutral, terms[:cut]), over(neutral, terms[cut:])]
        assert same(over(target, terms), over(target, parts))
        assert same(over(target, terms), over(target, parts[::-1]))


@pytest.mark.parametrize("width", [1, 4, 32])
@pytest.mark.parametrize("combiner", COMBINERS, ids=lambda one: one.name)
def test_shuffles_that_halve_combine_a_group(combiner: Combiner, width: int) -> None:
    kind = combiner.element_types[-1]
    draw = random.Random(width)
    values = [draw.choice([1.0, 2.0, 3.0] if kind.is_floating else [1, 2, 6]) for _ in range(32)]
    held: dict[str, Values] = {"sum": {(lane,): value for lane, value in enumerate(values)}}
    delta = width // 2
    while delta:
        held = run(SHUFFLES[combiner.name], held, {"delta": delta, "width": width})
        delta //= 2
    for first in range(0, 32, width):
        group = values[first : first + width]
        expected = reduce(lambda one, other: combined(combiner, kind, one, other), group)
        assert wrapped(held["sum"][first,], kind) == expected


def assigned(name: str, value: float, kind: ElementType) -> str:
    """Return the declaration of a value."""
    return f"{kind.value} {name} = {constant_text(value, kind)};"


def test_texts_for_a_cpu_combine_as_is_said(tmp_path: Path) -> None:
    checks: list[str] = []
    for combiner, kind in CASES:
        atomic = [ATOMICS["add"].cuda] if combiner.name == "add" and kind.is_floating else []
        texts = [COMBINES[combiner.name].cuda, *atomic]
        for target, value in product(values_of(kind), repeat=2):
            expected = combined(combiner, kind, target, value)
            if kind in (ElementType.INT32, ElementType.INT64) and combiner.name in (
                "add",
                "multiply",
            ):
                continue  # may overflow
            given = [assigned("target", target, kind), assigned("value", value, kind)]
            given.append(assigned("expected", expected, kind))
            wrong = "target != expected && (target == target || expected == expected)"
            for text in texts:
                done = " ".join((*given, text.format(target="target", value="value")))
                checks.append(f"{{ {done} if ({wrong}) return {len(checks) % 255 + 1}; }}")
    add = ATOMICS["add"].cpu_definitions
    text = f'#include "{SHIM}/eatss_cpu.hpp"\n{add}\nint main() {{\n'
    text += "\n".join(checks)
    (tmp_path / "all.cpp").write_text(f"{text}\nreturn 0; }}\n", encoding="utf-8")
    command = ["g++", "-std=c++17", "-DEATSS_CPU", "-w", "all.cpp", "-o", "all", "-lm"]
    subprocess.run(command, check=True, cwd=tmp_path)
    assert subprocess.run([tmp_path / "all"], check=False).returncode == 0
