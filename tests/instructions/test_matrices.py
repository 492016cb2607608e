"""What a warp computes together on a CPU is what the table says of products of matrices."""

from __future__ import annotations

import random
import subprocess
from itertools import product
from pathlib import Path

import pytest

from eatss.instructions import MMA_F64_8X8X4, MMA_F64_16X8X4, MMA_F64_16X8X16
from eatss.kernel.distribution import LANES
from eatss.kernel.instruction import Instruction, Operand, Values, run
from eatss.verify.build import SHIM


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


@pytest.mark.parametrize(
    "instruction", [MMA_F64_8X8X4, MMA_F64_16X8X4, MMA_F64_16X8X16], ids=lambda one: one.name
)
def test_a_warp_computes_the_product(instruction: Instruction, tmp_path: Path) -> None:
    draw = random.Random(instruction.name)
    held = {one.name: held_by(instruction, one) for one in instruction.operands}
    before: dict[str, Values] = {}
    for name, lanes in held.items():
        places = [place for own in lanes for place in own]
        assert len(lanes) == LANES
        assert len(set(places)) == len(places), "an element is of one lane"
        before[name] = {place: draw.randint(-64, 64) / 8 for place in places}
    after = run(instruction, before)

    def table(name: str, values: Values) -> str:
        rows = (", ".join(repr(values[place]) for place in own) for own in held[name])
        return f"double {name}[{LANES}][{len(held[name][0])}] = {{{{{'}, {'.join(rows)}}}}};"

    words = {
        name: ", ".join(f"{name}[lane][{slot}]" for slot in range(len(lanes[0])))
        for name, lanes in held.items()
    }
    tables = "\n".join(table(name, values) for name, values in before.items())
    (tmp_path / "all.cpp").write_text(
        f'#include "{SHIM}/eatss_cpu.hpp"\n{instruction.cpu_definitions}\n{tables}\n'
        f"{table('d', after['d']).replace(' d[', ' wanted[')}\n"
        "void body(void *) { int lane = threadIdx.x; "
        f"{instruction.cuda.format(**words)} }}\n"
        'int main() { eatss::launch("k", (void *)&body, 1, 32, 0, body, nullptr);\n'
        "return eatss_cpu_error() || memcmp(d, wanted, sizeof d); }\n"
    )
    command = ["g++", "-std=c++17", "-DEATSS_CPU", "-w", "all.cpp", "-o", "all", "-lm"]
    subprocess.run(command, check=True, cwd=tmp_path)
    assert subprocess.run([tmp_path / "all"], check=False).returncode == 0
    assert after["d"] != before["d"]
