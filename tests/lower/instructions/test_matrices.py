"""What a warp computes together on a CPU is what the table says of products of matrices.

Loads of matrices: what a CPU does is what the table says, and what PTX says.
"""

from __future__ import annotations

import random
import re
import subprocess
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest

from eatss.analysis.variant import MATRIX_ROWS
from eatss.base.targets import CUDA
from eatss.cuda.preamble import CPU_HALVES
from eatss.cuda.text import type_text
from eatss.lower.instructions import of_warps
from eatss.lower.instructions.products import (
    LOADS,
    MMAS_OF_BYTES,
    TRANSPOSED_BYTES,
)
from eatss.lower.kernel.instruction import Instruction, Operand
from eatss.polyhedral.expression import ElementType
from eatss.verify.build import SHIM
from tests.instruction_meaning import Values, run


def held_by(instruction: Instruction, operand: Operand) -> list[list[tuple[int, ...]]]:
    """Return for each lane the elements that it holds, in the order of its slots."""
    slots = operand.slots(instruction.lanes)
    found = []
    for lane in product(*(range(one.extent) for one in instruction.lanes)):
        place = dict(zip((one.name for one in instruction.lanes), lane, strict=True))
        own = []
        for values in product(*(range(one.extent) for one in slots)):
            slot = dict(zip((one.name for one in slots), values, strict=True))
            own.append(operand.held.at({**place, **slot}))
        found.append(own)
    return found


FLOATS = TF32, _ = (of_warps("mma_tf32_16x8x8"), of_warps("mma_3xtf32_16x8x8"))
TYPES: dict[ElementType, Any] = {
    ElementType.INT8: np.int8,
    ElementType.UINT8: np.uint8,
    ElementType.INT32: np.int32,
}
DTYPES = {"double": np.float64, "float": np.float32, "int": np.int32}


def on_cpu(instruction: Instruction, declared: str, body: str, folder: Path) -> bytes:
    """Return what ``d`` is after the lanes of a warp ran."""
    (folder / "all.cpp").write_text(
        f'#include "{SHIM}/eatss_cpu.hpp"\n{CPU_HALVES}{instruction.cpu_definitions}\n'
        f"#define inf INFINITY\n#define nan NAN\n{declared}\n"
        f"void body(void *) {{ int lane = threadIdx.x; {body} }}\n"
        'int main() { eatss::launch("k", (void *)&body, 1, 32, 0, body, nullptr);\n'
        "fwrite(d, sizeof d, 1, stdout); return eatss_cpu_error() != nullptr; }\n"
    )
    command = ["g++", "-std=c++17", "-DEATSS_CPU", "-w", "all.cpp", "-o", "all", "-lm"]
    subprocess.run(command, check=True, cwd=folder)
    return subprocess.run([folder / "all"], check=True, capture_output=True).stdout


def run_on_cpu(
    instruction: Instruction, before: dict[str, Values], folder: Path
) -> dict[tuple[int, ...], float]:
    """Return what the lanes of a warp have of the target after the text for a CPU ran."""
    held = {one.name: held_by(instruction, one) for one in instruction.operands}
    kind = instruction.element_types[0]
    types = {name: type_text(one) for name, one in instruction.factor_types.items()}

    def table(name: str) -> str:
        element = types.get(name, kind.value)
        rows = (
            ", ".join(f"({element})({before[name][place]!r})" for place in own)
            for own in held[name]
        )
        sizes = f"[{CUDA.lanes}][{len(held[name][0])}]"
        return f"{element} {name}{sizes} = {{{{{'}, {'.join(rows)}}}}};"

    words = {
        name: ", ".join(f"{name}[lane][{slot}]" for slot in range(len(lanes[0])))
        for name, lanes in held.items()
    }
    body = instruction.cuda.format(**words)
    found = on_cpu(instruction, "\n".join(map(table, before)), body, folder)
    values = np.frombuffer(found, DTYPES[kind.value])
    places = [place for own in held["d"] for place in own]
    return dict(zip(places, values.tolist(), strict=True))


@pytest.mark.parametrize(
    "instruction",
    [of_warps("mma_f64_16x8x4"), TF32, of_warps("mma_f16_16x8x16"), MMAS_OF_BYTES[0]],
    ids=lambda one: one.name,
)
def test_a_warp_computes_the_product(instruction: Instruction, tmp_path: Path) -> None:
    draw = random.Random(instruction.name)
    before: dict[str, Values] = {}
    for operand in instruction.operands:
        lanes = held_by(instruction, operand)
        places = [place for own in lanes for place in own]
        assert len(lanes) == CUDA.lanes
        assert len(set(places)) == len(places), "an element is of one lane"
        if instruction in MMAS_OF_BYTES:  # sums wrap around
            limits = np.iinfo(TYPES[(operand.element_type or ElementType.INT32)])
            some = (int(limits.min), int(limits.max), 3, draw.randint(0, 100))
            before[operand.name] = {place: draw.choice(some) for place in places}
        else:
            before[operand.name] = {place: draw.randint(-64, 64) / 8 for place in places}
    after = run(instruction, before)
    if instruction in MMAS_OF_BYTES:
        wrapped = {place: (int(one) + 2**31) % 2**32 - 2**31 for place, one in after["d"].items()}
        assert wrapped != after["d"]
        after = {"d": {place: float(one) for place, one in wrapped.items()}}
    assert run_on_cpu(instruction, before, tmp_path) == after["d"]
    assert after["d"] != before["d"]


Places: TypeAlias = Callable[[int, int], list[tuple[int, int]]]
"""What a lane holds of a factor, by its group and its thread there."""

OF_FLOATS: tuple[Places, Places] = (
    lambda row, at: [(row + 8 * (i % 2), at + 4 * (i // 2)) for i in range(4)],
    lambda row, at: [(at + 4 * i, row) for i in range(2)],
)
OF_BYTES: tuple[Places, Places] = (
    lambda row, at: [(row + 8 * (i // 4 % 2), 4 * at + i % 4 + 16 * (i // 8)) for i in range(16)],
    lambda row, at: [(4 * at + i % 4 + 16 * (i // 4), row) for i in range(8)],
)
FRAGMENTS = [*((one, *OF_FLOATS) for one in FLOATS), (MMAS_OF_BYTES[0], *OF_BYTES)]


@pytest.mark.parametrize(("instruction", "first", "second"), FRAGMENTS)
def test_lanes_hold_fragments_as_ptx_says(
    instruction: Instruction, first: Places, second: Places
) -> None:
    """PTX ISA, "Matrix Fragments for mma.m16n8k8" and "…k32 with integer type".

    Floats come in any order of steps: those of both factors are the same.
    """
    held = {one.name: held_by(instruction, one) for one in instruction.operands}
    pairs = [(second(0, at), held["b"][at]) for at in range(4)]
    steps = {told: k for own in pairs for (told, _), (k, _) in zip(*own, strict=True)}
    assert sorted(steps.values()) == sorted(steps)
    assert instruction in FLOATS or all(told == k for told, k in steps.items())
    for lane in range(CUDA.lanes):
        group, thread = divmod(lane, 4)
        assert held["a"][lane] == [(row, steps[k]) for row, k in first(group, thread)]
        assert held["b"][lane] == [(steps[k], column) for k, column in second(group, thread)]
        assert held["d"][lane] == [(group + 8 * (i // 2), 2 * thread + i % 2) for i in range(4)]


def test_texts_multiply_the_types_of_their_factors() -> None:
    names = {ElementType.INT8: "s8", ElementType.UINT8: "u8"}
    for one in MMAS_OF_BYTES:
        types = re.findall(r"m16n8k32\.row\.col\.s32\.(\w+)\.(\w+)\.s32", one.definitions)
        assert types == [tuple(names[own] for own in one.factor_types.values())]


def to_bits(value: float, bits: int) -> float:
    """Return the nearest number with so many significant bits, of two the one further from zero."""
    mantissa, exponent = np.frexp(value)
    scaled = abs(mantissa) * 2.0**bits
    return float(np.copysign(np.ldexp(np.floor(scaled + 0.5), exponent - bits), value))


@pytest.mark.parametrize("instruction", FLOATS, ids=lambda one: one.name)
def test_sums_are_within_the_bound_of_the_table(instruction: Instruction, tmp_path: Path) -> None:
    draw = np.random.default_rng(1)
    before: dict[str, Values] = {
        one.name: {
            place: float(np.float32(draw.normal()))
            for own in held_by(instruction, one)
            for place in own
        }
        for one in instruction.operands
    }
    before["d"] = dict.fromkeys(before["d"], 0.0)
    exact = run(instruction, before)["d"]
    of_sizes = {n: {p: abs(v) for p, v in values.items()} for n, values in before.items()}
    sizes = run(instruction, of_sizes)["d"]
    found = run_on_cpu(instruction, before, tmp_path)
    worst = max(abs(found[place] - exact[place]) / sizes[place] for place in exact)
    bound = instruction.rounding
    assert worst <= bound.product_error + bound.sum_roundings * 8 * 2.0**-24
    short = {n: {p: to_bits(v, 11) for p, v in values.items()} for n, values in before.items()}
    rounded = run(instruction, short)["d"]
    by_rounding = max(abs(found[place] - rounded[place]) / sizes[place] for place in exact)
    if instruction is TF32:
        assert by_rounding <= 8 * 2.0**-24 < 2.0**-14 < worst
    else:
        assert worst <= 2.0**-21 < 2.0**-14 < by_rounding


EVERY_LOAD = [pytest.param(size, one, id=one.name) for size, own in LOADS.items() for one in own]
LOAD_TYPES = {1: "signed char", 2: "eatss_half"}


@pytest.mark.parametrize(("size", "instruction"), EVERY_LOAD[::4])
def test_lanes_get_what_the_table_says(size: int, instruction: Instruction, tmp_path: Path) -> None:
    target, rows = instruction.operands
    long, of_a_word = 16 // size, 4 // size
    count = len(held_by(instruction, target)[0]) // of_a_word
    words = ", ".join(f"d[32 * {word} + lane]" for word in range(count))
    # rows lie in another order than lanes name them, one of padding behind each
    body = (
        f"EATSS_SHARED(box, sh); for (int at = 0; at < {long}; at++) {{ {LOAD_TYPES[size]} value;\n"
        f"const int own = 256 * lane + 37 * at + 1; memcpy(&value, &own, {size});\n"
        "sh.rows[2 * ((lane + 5) % 32)][at] = value; }\n"
        "__syncthreads();\n"
        f"{instruction.cuda.format(d=words, rows='sh.rows[2 * ((lane + 5) % 32)][0]')}"
    )
    box = f"struct box {{ EATSS_TRACKED({LOAD_TYPES[size]}) rows[64][{long}]; }};"
    declared = f"unsigned d[{CUDA.lanes * count}];\n{box}"
    found = np.frombuffer(on_cpu(instruction, declared, body, tmp_path), np.uint32).tolist()
    values: Values = {
        (row, at): float((256 * row + 37 * at + 1) % 256**size)
        for own in held_by(instruction, rows)
        for row, at in own
    }
    after = run(instruction, {"rows": values, "d": dict.fromkeys(values, 0.0)})["d"]
    wanted = [
        sum(int(after[own[of_a_word * word + at]]) << 8 * size * at for at in range(of_a_word))
        for word in range(count)
        for own in held_by(instruction, target)
    ]
    assert found == wanted


@pytest.mark.parametrize(("size", "instruction"), EVERY_LOAD)
def test_lanes_hold_what_ptx_says(size: int, instruction: Instruction) -> None:
    """PTX ISA, "ldmatrix": rows of matrix m are named by lanes from 8 m on."""
    target, rows = instruction.operands
    long, of_a_word = 16 // size, 4 // size
    for lane, own in enumerate(held_by(instruction, rows)):
        assert own == [(lane, column) for column in range(long)]
    for lane, own in enumerate(held_by(instruction, target)):
        far, quad = divmod(lane, 4)
        if instruction is TRANSPOSED_BYTES:  # a matrix has pairs of bytes
            assert own == [
                (2 * quad + 8 * (2 * (word % 2) + (half ^ (quad > 1))) + at, 2 * far + word // 2)
                for word, half, at in product(range(4), range(2), range(2))
            ]
            continue
        matrices = len(own) // of_a_word
        places = [
            (MATRIX_ROWS * matrix, of_a_word * quad + at)
            for matrix, at in product(range(matrices), range(of_a_word))
        ]
        transposed = "trans" in instruction.name
        assert own == [(m + at, far) if transposed else (m + far, at) for m, at in places]
