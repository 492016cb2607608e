"""The worked example of EATSS, met to the digit."""

from __future__ import annotations

import json
from typing import Any

import pytest
import z3 as z3_module

import eatss
from eatss.base.shipped import data_directory
from tests.end_to_end.in_process import eatss as in_process

z3: Any = z3_module  # carries no types

KERNELS = data_directory("kernels")


@pytest.fixture(scope="module")
def matmul() -> eatss.KernelSelection:
    selection = eatss.select(
        KERNELS / "matmul.c",
        gpu="ga100",
        dtype="double",
        model="paper",
        split=0.5,
        warp_fraction=0.5,
    )
    (kernel,) = selection.kernels
    return kernel


def test_matmul_on_ga100_matches_section_iv_a(matmul: eatss.KernelSelection) -> None:
    assert matmul.tile_sizes == (("i", 16), ("j", 384), ("k", 16))
    assert matmul.objective == 18432
    assert matmul.optimal == "proven"
    assert matmul.cma_loop == "j"


def test_matmul_references_are_those_of_table_ii(matmul: eatss.KernelSelection) -> None:
    table = {r.access: (r.memory, r.cma, r.temporal, r.spatial) for r in matmul.references}
    assert table == {
        "Out[i][j]": ("l1", True, ("k",), ("j",)),
        "In[i][k]": ("shared", False, ("j",), ("k",)),
        "Ker[k][j]": ("l1", True, (), ("j",)),
    }


def test_matmul_weights_are_those_of_section_iv_k(matmul: eatss.KernelSelection) -> None:
    assert matmul.weights == (("i", 0), ("j", 2 * 16), ("k", 0))
    assert matmul.distinct_references == 3


def test_fdtd_2d_has_four_references_as_in_section_iv_g() -> None:
    program = eatss.inspect(KERNELS / "fdtd-2d.c")
    assert max(facts.distinct_references for facts in program.facts) == 4


def test_the_command_line_gives_the_same_as_the_paper() -> None:
    options = ("--gpu", "ga100", "--dtype", "double", "--model", "paper", "--split", "0.5")
    matmul = KERNELS / "matmul.c"
    done = in_process("select", matmul, *options, "--warp-fraction", "0.5", "--format", "json")
    (kernel,) = json.loads(done.stdout)["kernels"]
    assert kernel["tile_sizes"] == {"i": 16, "j": 384, "k": 16}
    assert kernel["objective"] == 18432
    assert kernel["optimal"] == "proven"
    assert done.stderr == ""


@pytest.mark.parametrize("uniform", [(), ("--uniform",)])
def test_the_printed_question_for_better_sizes_is_refuted(uniform: tuple[str, ...]) -> None:
    options = ("--gpu", "ga100", "--model", "paper", *uniform)
    done = in_process("select", KERNELS / "gemver.c", *options, "--format", "smt2")
    questions = done.stdout.split("(reset)\n")
    assert len(questions) == (1 if uniform else 3)
    for question in questions:
        solver = z3.Solver(ctx=z3.Context())
        solver.from_string(question)
        assert solver.check() == z3.unsat
        assert "found: T_" in question


def test_no_question_is_printed_for_generated_code() -> None:
    words = ("select", KERNELS / "gemm.c", "--gpu", "ga100", "--format", "smt2")
    done = in_process(*words, "--target", "cuda", code=2)
    assert "EATSS-C012" in done.stderr
