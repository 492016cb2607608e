"""Threads that multiply alone load operands of a step ahead, and programs stay right."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import groupby

import pytest

import eatss
from eatss.base.shipped import data_directory
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


def loads_ahead(program: Program) -> bool:
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


def test_steps_with_many_products_run_in_parts(generate: Generate) -> None:
    chosen = options(block=(8, 32), i=128, j=256, k=16)
    turn = plain_branch(generate("gemm", dtype="float", options=chosen))
    front = ["copy", "commit", "part", "step", "load", "add", "step", "load", "add"]
    assert events(turn) == [*front, "last", "wait", "barrier", "load", "add"]
    assert "for (int k_step_part = 0; k_step_part < 12; k_step_part += 6) {" in turn
    assert "B_step[(k_step + 1) % 2][rj] = sh.B[stage][k_step_part + k_step + 1][j - j0];" in turn
    assert "for (int k_step = 12; k_step < 15; ++k_step) {" in turn


ODD = {"NI": 131, "NJ": 141, "NK": 101}
"""Rows begin anywhere, so that copies are of one element each."""


@pytest.mark.long
def test_many_copies_stand_among_the_first_products(verify_kernel: Check) -> None:
    source = data_directory("kernels") / "gemm.c"
    defines: dict[str, str | int] = {"DATA_TYPE": "float", **ODD}
    tiles, places = {"i": 96, "j": 128, "k": 32}, {"A": "shared", "B": "shared"}
    program = eatss.codegen(
        source, gpu="h200", defines=defines, tiles=tiles, block=(8, 32), stages=2, placements=places
    )
    kernel = program.text.partition("stage = 0; ")[2]
    turn = kernel.partition("if (")[2].partition("} else {\n                if")[0]
    copying = ["step", "load", "copy", "add", "commit"]
    parts = ["part", "step", "load", "add", "step", "load", "add"]
    assert events(turn) == [*copying, *parts, "last", "wait", "barrier", "load", "add"]
    assert "k_step_part = 8; k_step_part < 28; k_step_part += 10" in turn
    share = "for (int e = 2 * k_step; e < 2 * k_step + 2; ++e) {"
    assert turn.count(share) == 2  # 12 and 16 over 8 steps
    found = verify_kernel(program, [{}])
    assert (found.status, found.message) == ("ok", "")


def test_products_of_a_step_load_for_each_other(generate: Generate) -> None:
    turn = plain_branch(generate("syr2k", dtype="float", options=options()))
    both = ["load", "add", "load", "add"]
    last = ["last", "load", "add", "store", "wait", "barrier", "load", "add"]
    assert events(turn) == ["fetch", "commit", "part", "step", *both, "last", *both, *last]
    assert "if (" not in turn
    operands = re.findall(r"\b\w+_step(?:_\d+)?((?:\[[^]]*\])+)", turn)
    assert operands
    assert not any("% 2" in one for one in operands)  # they have one set each


def test_turns_without_tests_ask_for_this_turn_and_the_next(generate: Generate) -> None:
    text = generate("gemm", dtype="float", options=options(3)).text
    (test,) = re.findall(r"if \((plain && .*)\) \{", text)
    parts = test.split(" && ")
    assert {"k0 + 16 < NK", "k0 + 8 <= NK", "k0 + 8 + 8 <= NK"} < set(parts)
    assert len(parts) == len(set(parts))


FAR = """
void sums(int NI, int NJ, int NK, float C[NI][NJ], float A[NI][NK], float B[NK][NJ], float y[NK])
{
#pragma scop
    for (int i = 0; i < NI; i++)
        for (int j = 0; j < NJ; j++)
            for (int k = 0; k < NK; k++)
                C[i][j] += A[i][k] * B[k][j] + y[k];
#pragma endscop
}
"""


def test_tests_that_no_turn_changes_stand_in_front() -> None:
    """What is not in boxes is read in whole tiles only, so turns ask for those along all loops."""
    program = eatss.codegen(
        FAR, gpu="h200", tiles=TILES, block=BLOCK, stages=2, placements={"y": "l1"}
    )
    (front,) = re.findall(r"plain = (.*);", program.text)
    (test,) = re.findall(r"if \((plain && .*)\) \{", program.text)
    assert {"i0 + 256 <= NI", "j0 + 128 <= NJ"} <= set(front.split(" && "))
    parts = test.split(" && ")
    assert all("k0" in one for one in parts[1:])
    assert len(parts) == len(set(parts))


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


@pytest.mark.parametrize(
    ("kernel", "chosen"),
    [
        ("gemm", options()),
        pytest.param("gemm", options(3, strict_fp=True), marks=pytest.mark.long),
        pytest.param("gemm", options(4, k=16), marks=pytest.mark.long),
        pytest.param("syr2k", options(), marks=pytest.mark.long),
        pytest.param("syr2k", options(3, strict_fp=True), marks=pytest.mark.long),
        pytest.param("syrk", options(3), marks=pytest.mark.long),
        pytest.param("syrk", options(2, block=(32, 8)), marks=pytest.mark.long),
        pytest.param("trmm", options(2), marks=pytest.mark.long),
        pytest.param("2mm", options(3), marks=pytest.mark.long),
    ],
)
def test_products_are_right_at_sizes_that_fit_and_at_others(
    kernel: str, chosen: CodegenOptions, generate: Generate, verify_kernel: Check
) -> None:
    program = generate(kernel, dtype="float", options=chosen)
    assert loads_ahead(program)
    found = verify_kernel(program, sizes_of(program))
    assert (found.status, found.message) == ("ok", "")


@pytest.mark.long
@pytest.mark.parametrize("stages", [2, 3])
def test_a_triangle_of_products_is_right(
    stages: int, generate: Generate, verify_kernel: Check
) -> None:
    own = options(stages, (8, 8), kernel="kernel4", j1=32, j2=32, i=4)
    program = generate("covariance", dtype="float", options=own)
    assert loads_ahead(program)
    names = [one.name for one in program.parameters]
    sizes = [dict(zip(names, two, strict=True)) for two in ((96, 64), (70, 45), (33, 97), (5, 3))]
    found = verify_kernel(program, sizes)
    assert (found.status, found.message) == ("ok", "")


@pytest.mark.long
def test_doubles_load_ahead_where_threads_multiply_them(
    generate: Generate, verify_kernel: Check
) -> None:
    own = options(3, (8, 8), kernel="kernel4", j1=32, j2=32, i=4)
    program = generate("covariance", gpu="rtx4090", options=own)
    assert loads_ahead(program)
    names = [one.name for one in program.parameters]
    sizes = [dict(zip(names, two, strict=True)) for two in ((96, 64), (33, 97), (5, 3))]
    found = verify_kernel(program, sizes)
    assert (found.status, found.message) == ("ok", "")


def refused() -> dict[str, tuple[str, CodegenOptions]]:
    return {
        "one box": ("h200", options(1)),
        "an odd number of steps": ("h200", options(k=3)),
        "too little reuse": ("h200", options(i=32, j=32)),
        "rows along the steps": ("h200", options(k=4)),
        "too many products": ("h200", options(k=32)),
        "tensor cores": ("h200", options(i=128, j=64, k=16)),
        "a card without copies ahead": ("t4", options()),
    }


@pytest.mark.samples(3)
@pytest.mark.parametrize("case", refused())
def test_where_nothing_is_loaded_ahead(case: str, generate: Generate) -> None:
    gpu, chosen = refused()[case]
    dtype = "double" if case == "tensor cores" else "float"
    assert not loads_ahead(generate("gemm", dtype=dtype, gpu=gpu, options=chosen))


STEP = "A_step[(k_step + 1) % 2][ri] = sh.A[stage][k_step + 1][i - i0]"
NEXT = "= sh.A[(stage == 1 ? 0 : stage + 1)][0][i - i0]"
PHASE = "B_1_step[ri] = sh.B_1[stage][k_step][i - i0]"
BROKEN = {
    "the same step again": ("gemm", STEP, STEP.replace("[k_step + 1]", "[k_step]")),
    "the set that is in use": ("gemm", STEP, STEP.replace("(k_step + 1)", "k_step")),
    "the other set": ("gemm", "+= A_step[k_step % 2]", "+= A_step[(k_step + 1) % 2]"),
    "the turn before": ("gemm", NEXT, "= sh.A[stage][0][i - i0]"),
    "the second step of a turn": ("gemm", NEXT, NEXT.replace("[0][i", "[1][i")),
    "nothing was waited for": ("gemm", "eatss_wait_for_copies<0>();", ""),
    "a step too far": ("syr2k", PHASE, PHASE.replace("[k_step]", "[k_step + 1]")),
    "operands of the other product": ("syr2k", "+= A_step[ri]", "+= B_1_step[ri]"),
}


@pytest.mark.long
@pytest.mark.parametrize("case", BROKEN)
def test_what_is_loaded_wrongly_is_seen(case: str, generate: Generate, broken: Check) -> None:
    kernel, old, new = BROKEN[case]
    program = generate(kernel, dtype="float", options=options())
    found = broken(program, old, new, sizes_of(program)[:2])
    assert found.status in ("wrong result", "shared memory")
