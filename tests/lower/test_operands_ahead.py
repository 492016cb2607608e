"""Threads that multiply alone load operands of a step ahead, and programs stay right."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import groupby

import pytest

from eatss.lower.recipe import CodegenOptions
from eatss.program import Program
from eatss.verify import Verification

pytestmark = pytest.mark.usefixtures("analysed_once")

Generate = Callable[..., Program]
Check = Callable[..., Verification]

TILES = {"i": 256, "j": 128, "k": 8}
BLOCK = (16, 16)


def options(
    stages: int = 2,
    block: tuple[int, int] = BLOCK,
    kernel: str = "",
    strict_fp: bool = False,
    **tiles: int,
) -> CodegenOptions:
    sizes = (TILES if not kernel else {}) | tiles
    return CodegenOptions(
        tile_sizes=((kernel, tuple(sizes.items())),),
        block=((kernel, block),),
        stages=stages,
        strict_fp=strict_fp,
    )


def register_prefetch_on(program: Program) -> bool:
    return re.search(r"\b\w+_step(_\d+)?\[", program.text) is not None


def plain_branch(program: Program) -> str:
    """Return what a turn does where nothing needs tests."""
    kernel = program.text.partition("__global__")[2]
    turn = kernel.partition("stage = 0; ")[2].partition("if (plain")[2]
    return turn.partition("{\n")[2].partition("} else {")[0]


EVENTS = {
    "copy": r"eatss_copy_\w*ahead\w*\(",
    "fetch": r"eatss_load_wide\w*\(",
    "store": r"= \w+_line\w*\[",
    "commit": r"eatss_commit_copies",
    "wait": r"eatss_wait_for_copies",
    "barrier": r"__syncthreads",
    "part": r"for \(int k_step_part",
    "step": r"for \(int k_step =",
    "last": r"const int k_step",
    "load": r"_step(?:\[[^]]*\])*\[r\w+\] = sh\.",
    "add": r"\] \+= ",
}


def events(text: str) -> list[str]:
    """Return what lines of code do, the same in a row once."""
    lines = text.splitlines()
    found = [name for line in lines for name, own in EVENTS.items() if re.search(own, line)]
    return [name for name, _ in groupby(found)]


@pytest.mark.parametrize("stages", [2, 3])
def test_operands_of_the_next_step_are_loaded_in_front_of_products(
    stages: int, generate: Generate
) -> None:
    turn = plain_branch(generate("gemm", dtype="float", options=options(stages)))
    front = ["copy", "commit", "step", "load", "add"]
    assert events(turn) == [*front, "last", "wait", "barrier", "load", "add"]
    assert "if (" not in turn
    steps, _, last = turn.partition("const int k_step = 7;")
    next_turn = f"(stage == {stages - 1} ? 0 : stage + 1)"
    for box, there in (("A", "[stage][k_step + 1][i - i0]"), ("B", "[stage][k_step + 1][j - j0]")):
        point = "ri" if box == "A" else "rj"
        assert f"{box}_step[(k_step + 1) % 2][{point}] = sh.{box}{there};" in steps
    assert f"A_step[0][ri] = sh.A[{next_turn}][0][i - i0];" in last
    assert f"B_step[0][rj] = sh.B[{next_turn}][0][j - j0];" in last
    added = "sum_C_r[ri][rj] += A_step[k_step % 2][ri] * B_step[k_step % 2][rj];"
    assert turn.count(added) == turn.count("+= A_step") == 4  # two rows, of steps and of the last
    assert f"eatss_wait_for_copies<{stages - 2}>" in last


def test_products_of_a_step_load_for_each_other(generate: Generate) -> None:
    turn = plain_branch(generate("syr2k", dtype="float", options=options()))
    both = ["load", "add", "load", "add"]
    last = ["last", "load", "add", "store", "wait", "barrier", "load", "add"]
    assert events(turn) == ["fetch", "commit", "part", "step", *both, "last", *both, *last]
    assert "if (" not in turn
    operands = re.findall(r"\b\w+_step(?:_\d+)?((?:\[[^]]*\])+)", turn)
    assert operands
    assert not any("% 2" in one for one in operands)  # they have one set each


SIZES = [
    {"NI": 256, "NJ": 256, "NK": 24},
    {"NI": 270, "NJ": 145, "NK": 21},
    {"NI": 133, "NJ": 97, "NK": 13},
    {"NI": 256, "NJ": 128, "NK": 8},
    {"NI": 5, "NJ": 3, "NK": 1},
    {"NI": 34, "NJ": 50, "NK": 0},
]


def sizes_of(program: Program) -> list[dict[str, int]]:
    """Return sizes for the parameters of a program."""
    names = {one.name for one in program.parameters}
    return [{name: size for name, size in own.items() if name in names} for own in SIZES]


def test_products_are_right_at_sizes_that_fit_and_at_others(
    generate: Generate, verify_kernel: Check
) -> None:
    program = generate("gemm", dtype="float", options=options())
    assert register_prefetch_on(program)
    found = verify_kernel(program, sizes_of(program))
    assert (found.status, found.message) == ("ok", "")
