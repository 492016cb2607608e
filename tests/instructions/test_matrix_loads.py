"""Loads of matrices of halves: what a CPU does is what the table says, and what PTX says."""

from __future__ import annotations

import subprocess
from itertools import product
from pathlib import Path

import pytest

from eatss.cuda.halves import CPU_DEFINITION
from eatss.instructions.matrix_loads import MATRIX_LOADS, ROW
from eatss.kernel.distribution import LANES
from eatss.kernel.instruction import Instruction, Operand, Values, run
from eatss.verify.build import SHIM

EVERY = [pytest.param(*key, id=one.name) for key, one in MATRIX_LOADS.items()]


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
        f'#include "{SHIM}/eatss_cpu.hpp"\n{CPU_DEFINITION}{instruction.cpu_definitions}\n'
        f"unsigned d[4 * {LANES}];\nstruct box {{ EATSS_TRACKED({box}; }};\n"
        f"void body(void *) {{ EATSS_SHARED(box, sh); int lane = threadIdx.x;\n{body} }}\n"
        'int main() { eatss::launch("k", (void *)&body, 1, 32, 0, body, nullptr);\n'
        'for (unsigned word : d) printf("%u ", word);\n'
        "if (eatss_cpu_error()) puts(eatss_cpu_error()); }\n"
    )
    command = ["g++", "-std=c++17", "-DEATSS_CPU", "-w", "all.cpp", "-o", "all", "-lm"]
    subprocess.run(command, check=True, cwd=folder)
    return subprocess.run([folder / "all"], check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize(("count", "turned"), EVERY)
def test_lanes_get_what_the_table_says(count: int, turned: bool, tmp_path: Path) -> None:
    instruction = MATRIX_LOADS[count, turned]
    words = ", ".join(f"d[32 * {word} + lane]" for word in range(count))
    # rows lie in another order than lanes name them, one of padding behind each
    body = (
        "for (int at = 0; at < 8; at++) { eatss_half value;\n"
        "value.bits = 256 * lane + at + 1; sh.rows[2 * ((lane + 5) % 32)][at] = value; }\n"
        "__syncthreads();\n"
        f"{instruction.cuda.format(d=words, rows='sh.rows[2 * ((lane + 5) % 32)][0]')}"
    )
    printed = printed_by(instruction, "eatss_half) rows[64][8]", body, tmp_path)
    found = list(map(int, printed.split()))[: LANES * count]
    target, rows = instruction.operands
    values: Values = {
        (row, at): float(256 * row + at + 1)
        for own in held_by(instruction, rows)
        for row, at in own
    }
    after = run(instruction, {"rows": values, "d": dict.fromkeys(values, 0.0)})["d"]
    wanted = [
        int(after[own[2 * word]]) | int(after[own[2 * word + 1]]) << 16
        for word in range(count)
        for own in held_by(instruction, target)
    ]
    assert found == wanted


@pytest.mark.parametrize(("count", "turned"), EVERY)
def test_lanes_hold_what_ptx_says(count: int, turned: bool) -> None:
    """PTX ISA, "ldmatrix": rows of matrix m are named by lanes from 8 m on."""
    target, rows = MATRIX_LOADS[count, turned].operands
    for lane, own in enumerate(held_by(MATRIX_LOADS[count, turned], rows)):
        assert own == [(lane, column) for column in range(ROW)]
    for lane, own in enumerate(held_by(MATRIX_LOADS[count, turned], target)):
        far, near = lane // 4, 2 * (lane % 4)
        pairs = [(matrix, near + at) for matrix in range(count) for at in (0, 1)]
        assert own == [
            (ROW * matrix + at, far) if turned else (ROW * matrix + far, at) for matrix, at in pairs
        ]


@pytest.mark.parametrize(("count", "turned"), EVERY)
def test_rows_begin_where_vectors_do(count: int, turned: bool, tmp_path: Path) -> None:
    instruction = MATRIX_LOADS[count, turned]
    words = ", ".join(f"d[{word}]" for word in range(count))
    body = (
        "if (threadIdx.x == 0) for (auto &one : sh.rows[0]) one = eatss_half(1);\n"
        f"__syncthreads(); {instruction.cuda.format(d=words, rows='sh.rows[0][4]')}"
    )
    assert "16 bytes" in printed_by(instruction, "eatss_half) rows[1][12]", body, tmp_path)
