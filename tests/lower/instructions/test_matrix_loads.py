"""Loads of matrices: what a CPU does is what the table says, and what PTX says."""

from __future__ import annotations

import subprocess
from itertools import product
from pathlib import Path

import pytest

from eatss.base.targets import CUDA
from eatss.cuda.preamble import CPU_HALVES
from eatss.lower.instructions.matrix_loads import LOADS, ROW, TURNED_BYTES
from eatss.lower.kernel.instruction import Instruction, Operand, Values, run
from eatss.verify.build import SHIM

EVERY = [pytest.param(size, one, id=one.name) for size, own in LOADS.items() for one in own]
TYPES = {1: "signed char", 2: "eatss_half"}


def held_by(instruction: Instruction, operand: Operand) -> list[list[tuple[int, ...]]]:
    """Return for each lane the elements that it holds, in the order of its slots."""
    slots = operand.slots(instruction.lanes)
    found = []
    for lane in product(*(range(one.extent) for one in instruction.lanes)):
        place = dict(zip((one.name for one in instruction.lanes), lane, strict=True))
        found.append(
            [
                operand.held.at(
                    {**place, **dict(zip((s.name for s in slots), values, strict=True))}
                )
                for values in product(*(range(one.extent) for one in slots))
            ]
        )
    return found


def printed_by(instruction: Instruction, box: str, body: str, folder: Path) -> str:
    """Return what the lanes of a warp have in words, and what is wrong, after they ran."""
    (folder / "all.cpp").write_text(
        f'#include "{SHIM}/eatss_cpu.hpp"\n{CPU_HALVES}{instruction.cpu_definitions}\n'
        f"unsigned d[4 * {CUDA.lanes}];\nstruct box {{ EATSS_TRACKED({box}; }};\n"
        f"void body(void *) {{ EATSS_SHARED(box, sh); int lane = threadIdx.x;\n{body} }}\n"
        'int main() { eatss::launch("k", (void *)&body, 1, 32, 0, body, nullptr);\n'
        'for (unsigned word : d) printf("%u ", word);\n'
        "if (eatss_cpu_error()) puts(eatss_cpu_error()); }\n"
    )
    command = ["g++", "-std=c++17", "-DEATSS_CPU", "-w", "all.cpp", "-o", "all", "-lm"]
    subprocess.run(command, check=True, cwd=folder)
    return subprocess.run([folder / "all"], check=True, capture_output=True, text=True).stdout


@pytest.mark.samples(2)
@pytest.mark.parametrize(("size", "instruction"), EVERY)
def test_lanes_get_what_the_table_says(size: int, instruction: Instruction, tmp_path: Path) -> None:
    target, rows = instruction.operands
    long, of_a_word = 16 // size, 4 // size
    count = len(held_by(instruction, target)[0]) // of_a_word
    words = ", ".join(f"d[32 * {word} + lane]" for word in range(count))
    # rows lie in another order than lanes name them, one of padding behind each
    body = (
        f"for (int at = 0; at < {long}; at++) {{ {TYPES[size]} value;\n"
        f"const int own = 256 * lane + 37 * at + 1; memcpy(&value, &own, {size});\n"
        "sh.rows[2 * ((lane + 5) % 32)][at] = value; }\n"
        "__syncthreads();\n"
        f"{instruction.cuda.format(d=words, rows='sh.rows[2 * ((lane + 5) % 32)][0]')}"
    )
    printed = printed_by(instruction, f"{TYPES[size]}) rows[64][{long}]", body, tmp_path)
    found = list(map(int, printed.split()))[: CUDA.lanes * count]
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


@pytest.mark.parametrize(("size", "instruction"), EVERY)
def test_lanes_hold_what_ptx_says(size: int, instruction: Instruction) -> None:
    """PTX ISA, "ldmatrix": rows of matrix m are named by lanes from 8 m on."""
    target, rows = instruction.operands
    long, of_a_word = 16 // size, 4 // size
    for lane, own in enumerate(held_by(instruction, rows)):
        assert own == [(lane, column) for column in range(long)]
    for lane, own in enumerate(held_by(instruction, target)):
        far, near = lane // 4, of_a_word * (lane % 4)
        if instruction is TURNED_BYTES:  # a matrix has pairs of bytes
            words = [own[at : at + 4] for at in range(0, len(own), 4)]
            assert {column for word in words[:2] for _, column in word} == {2 * far}
            assert {column for word in words[2:] for _, column in word} == {2 * far + 1}
            pairs = [[row for row, _ in word] for word in words]
            both = [[2 * (lane % 4) + 8 * matrix + at for at in (0, 1)] for matrix in range(4)]
            turned = lane % 4 > 1
            order = [1, 0, 3, 2] if turned else [0, 1, 2, 3]
            parts = [both[at] for at in order]
            assert pairs == [parts[0] + parts[1], parts[2] + parts[3]] * 2
            continue
        of_all = [
            (matrix, near + at)
            for matrix in range(len(own) // of_a_word)
            for at in range(of_a_word)
        ]
        turned = "trans" in instruction.name
        assert own == [
            (ROW * matrix + at, far) if turned else (ROW * matrix + far, at)
            for matrix, at in of_all
        ]


@pytest.mark.samples(1)
@pytest.mark.parametrize(("size", "instruction"), EVERY)
def test_rows_begin_where_vectors_do(size: int, instruction: Instruction, tmp_path: Path) -> None:
    long = 16 // size
    count = len(held_by(instruction, instruction.operands[0])[0]) * size // 4
    words = ", ".join(f"d[{word}]" for word in range(count))
    body = (
        f"if (threadIdx.x == 0) for (auto &one : sh.rows[0]) one = {TYPES[size].split()[-1]}(1);\n"
        f"__syncthreads(); {instruction.cuda.format(d=words, rows=f'sh.rows[0][{long // 2}]')}"
    )
    box = f"{TYPES[size]}) rows[1][{2 * long}]"
    assert "16 bytes" in printed_by(instruction, box, body, tmp_path)
