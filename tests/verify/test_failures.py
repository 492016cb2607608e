"""Every way in which generated code can be wrong is reported as what it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import pytest

from eatss.program import (
    Apply,
    Assumption,
    Constant,
    Name,
    Operator,
    Program,
)
from eatss.verify.result import Verification
from eatss.verify.run import verify
from tests.refusals import refusing
from tests.verify.conftest import MATMUL_C

SIZES: tuple[Mapping[str, int], ...] = ({"M": 20, "N": 37, "K": 33},)

Folder: TypeAlias = Callable[..., Path]


def run(folder: Path, *, timeout_s: float = 30.0) -> Verification:
    return verify(folder, device="cpu", sizes=SIZES, timeout_s=timeout_s)


ONCE = {"M": 20, "N": 37, "K": 33}
NO_C = ("const double *__restrict__ A", "double *A")
IN_BRANCH = "        __syncthreads();\n        if (i"


@pytest.mark.parametrize(
    ("replaced", "sizes", "status", "said"),
    [
        ([("C[i * N + j] = sum;", "C[i * N + j] = i == 3 ? 1 : sum;")], ONCE,
         "wrong result", "C[3][0] is 1.0"),
        ([("= sum;", "= nextafter(sum, 1e9);")], ONCE, "wrong result", ""),
        ([NO_C, ("= sum;", "= sum, A[5] = 0;")], {"M": 5, "N": 6, "K": 7},
         "wrong result", "A[0][5] is 0.0"),
        ([(IN_BRANCH, IN_BRANCH.replace("__sync", "if (j < N) __sync"))], ONCE,
         "barrier", "matmul_k0, block (2, 0, 0).*80 of 256 threads"),
        ([("    double sum", "    if (i >= M) return;\n    double sum")], ONCE,
         "barrier", "64 of 256 threads.*192 have finished"),
        # the last tile of k is partial: what its rest holds stems from the tile before, not from
        # this block's copy at all only where there was none
        ([("p < 16 && k + p < K", "p < 16")], ONCE, "wrong result", ""),
        ([("p < 16 && k + p < K", "p < 16")], {"M": 20, "N": 37, "K": 7},
         "shared memory", "that no thread of the block wrote"),
        ([(IN_BRANCH, "        if (i")], ONCE, "shared memory", "no thread of the block wrote"),
        ([("    if (i < M && j < N) C[", "    if (i <= M && j < N) C[")], ONCE,
         "out of bounds", "'C'"),
        ([("= sum;", "= sum, *(volatile int *)0 = 1;")], ONCE, "crash", "SIGSEGV"),
        ([("k += 16)", "k += 0 * *(volatile int *)&k)")], ONCE, "timeout", "1 s"),
        ([("dim3(16, 16)", "dim3(64, 32)")], ONCE, "launch error", "1024"),
        ([("if (M > 0 && N > 0)", "")], {"M": 0, "N": 5, "K": 5}, "launch error", "grid"),
        ([("A[16][17];", "A[160][170];")], ONCE, "compile error", ""),
        ([("EATSS_SHARED(matmul", "EATSS_DYNAMIC_SHARED(matmul")], ONCE, "shared memory", ""),
        ([("double sum =", "double sum : =")], ONCE, "compile error", "matmul.cu"),
    ],
    ids=[
        "a wrong value", "a difference in the last bit", "an input that is written",
        "a barrier in a branch", "a thread that leaves before a barrier", "what another tile left",
        "unwritten shared memory that is read", "a missing barrier", "a write beside an array",
        "a null pointer", "a hang", "too many threads", "an empty grid", "too much shared memory",
        "dynamic shared memory that the launch does not give", "text that is no C++",
    ],
)  # fmt: skip
def test_a_fault_is_told_as_what_it_is(
    replaced: Sequence[tuple[str, str]],
    sizes: Mapping[str, int],
    status: str,
    said: str,
    matmul: Program,
    folder: Folder,
) -> None:
    limit_s = 1.0 if status == "timeout" else 30.0
    place = folder(matmul, MATMUL_C, *replaced)
    found = verify(place, device="cpu", sizes=(sizes,), timeout_s=limit_s)
    assert found.status == status
    assert all(words in found.message for words in said.split(".*"))
    if said.startswith("C[3]"):
        assert found.results[0].difference is not None
        assert found.results[0].worst_error > 1


def with_assumption(program: Program) -> Program:
    entry = program.entries[0]
    condition = Apply(Operator.GE, (Name("K"), Constant(2)))
    assumptions = (Assumption(condition=condition, message="K is at least 2"),)
    return replace(program, entries=(replace(entry, assumptions=assumptions),))


CHECK = ("    if (M > 0", "    if (K < 2) return -1;\n    if (M > 0")


def test_sizes_that_an_assumption_excludes_have_to_be_refused(
    matmul: Program, folder: Folder
) -> None:
    program = with_assumption(matmul)
    found = verify(folder(program, MATMUL_C, CHECK), device="cpu")
    assert found.status == "ok"
    assert all(dict(r.sizes)["K"] >= 2 for r in found.results if r.compared)
    assert any(dict(r.sizes)["K"] < 2 for r in found.results)


def test_an_entry_that_runs_although_an_assumption_fails_is_reported(
    matmul: Program, folder: Folder
) -> None:
    found = verify(folder(with_assumption(matmul), MATMUL_C), device="cpu", first_failure=True)
    assert found.status == "not refused"
    assert "K is at least 2" in found.message


def test_an_entry_that_refuses_what_it_should_run_is_reported(
    matmul: Program, folder: Folder
) -> None:
    program = with_assumption(matmul)
    place = folder(program, MATMUL_C, ("    if (M > 0", "    if (K < 9) return -1;\n    if (M > 0"))
    found = verify(place, device="cpu", sizes=({"M": 4, "N": 4, "K": 5},))
    assert found.status == "launch error"
    assert "refused" in found.message


def test_generated_code_that_does_not_compile_is_told_once(matmul: Program, folder: Folder) -> None:
    place = folder(matmul, MATMUL_C, ("double sum =", "double sum : ="))
    (result,) = verify(place, device="cpu").results
    assert result.status == "compile error"


@pytest.mark.parametrize(
    "original",
    [
        "void matmul(double x) { nonsense }",
        MATMUL_C.replace("C[i][j] +=", "*(volatile double *)0 ="),
        MATMUL_C.replace("i++", "i += 0 * *(volatile int *)&i"),
    ],
    ids=["does not compile", "crashes", "hangs"],
)
def test_an_original_that_cannot_run_is_the_users_mistake(
    original: str, matmul: Program, folder: Folder
) -> None:
    with refusing("EATSS-V005"):
        run(folder(matmul, original), timeout_s=0.5 if "+= 0 *" in original else 30.0)


def test_a_part_of_a_function_that_is_never_reached_cannot_be_verified(
    matmul: Program, folder: Folder
) -> None:
    entry = replace(matmul.entries[0], whole_function=False)
    with refusing("EATSS-V005"):
        run(folder(replace(matmul, entries=(entry,)), MATMUL_C))


def test_a_size_that_the_program_does_not_have_is_the_users_mistake(
    matmul: Program, folder: Folder
) -> None:
    with refusing("EATSS-V008"):
        verify(folder(matmul, MATMUL_C), device="cpu", sizes=({"L": 3},))
