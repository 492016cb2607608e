"""Every way in which generated code can be wrong is reported as what it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import pytest

from eatss.base.diagnostics import InputError
from eatss.program import (
    Apply,
    Assumption,
    Constant,
    Name,
    Operator,
    Program,
)
from eatss.verify import Verification, verify
from tests.verify.conftest import MATMUL_C

SIZES: tuple[Mapping[str, int], ...] = ({"M": 20, "N": 37, "K": 33},)

Folder: TypeAlias = Callable[..., Path]


def run(folder: Path, *, timeout_s: float = 30.0) -> Verification:
    return verify(folder, device="cpu", sizes=SIZES, timeout_s=timeout_s)


def test_a_wrong_value_is_a_wrong_result_with_its_place(matmul: Program, folder: Folder) -> None:
    place = folder(matmul, MATMUL_C, ("C[i * N + j] = sum;", "C[i * N + j] = i == 3 ? 1 : sum;"))
    found = run(place)
    assert found.status == "wrong result"
    difference = found.results[0].difference
    assert difference is not None
    assert (difference.array, difference.indices, difference.actual) == ("C", (3, 0), "1.0")
    assert found.results[0].worst_error > 1


def test_a_difference_in_the_last_bit_is_a_wrong_result(matmul: Program, folder: Folder) -> None:
    place = folder(matmul, MATMUL_C, ("= sum;", "= nextafter(sum, 1e9);"))
    assert run(place).status == "wrong result"


def test_an_input_that_is_written_is_a_wrong_result(matmul: Program, folder: Folder) -> None:
    place = folder(
        matmul,
        MATMUL_C,
        ("const double *__restrict__ A", "double *A"),
        ("= sum;", "= sum, A[5] = 0;"),
    )
    found = verify(place, device="cpu", sizes=({"M": 5, "N": 6, "K": 7},))
    assert found.status == "wrong result"
    assert found.results[0].difference is not None
    assert found.results[0].difference.array == "A"


def test_a_barrier_in_a_branch_is_a_barrier_error(matmul: Program, folder: Folder) -> None:
    place = folder(
        matmul,
        MATMUL_C,
        (
            "        __syncthreads();\n        if (i",
            "        if (j < N) __syncthreads();\n        if (i",
        ),
    )
    found = run(place)
    assert found.status == "barrier"
    assert "matmul_k0, block (2, 0, 0)" in found.message
    assert "80 of 256 threads" in found.message


def test_a_thread_that_leaves_before_a_barrier_is_a_barrier_error(
    matmul: Program, folder: Folder
) -> None:
    place = folder(matmul, MATMUL_C, ("    double sum", "    if (i >= M) return;\n    double sum"))
    found = run(place)
    assert found.status == "barrier"
    assert "64 of 256 threads" in found.message
    assert "192 have finished" in found.message


def test_unwritten_shared_memory_that_is_read_is_a_shared_memory_error(
    matmul: Program, folder: Folder
) -> None:
    place = folder(matmul, MATMUL_C, ("p < 16 && k + p < K", "p < 16"))
    found = run(place)
    # the last tile of k is partial: what its rest holds stems from the tile before, not from this
    # block's copy at all only where there was none
    assert found.status == "wrong result"
    short = verify(place, device="cpu", sizes=({"M": 20, "N": 37, "K": 7},))
    assert short.status == "shared memory"
    assert "that no thread of the block wrote" in short.message


def test_a_missing_barrier_is_a_shared_memory_error(matmul: Program, folder: Folder) -> None:
    parts = matmul.text.split("        __syncthreads();\n")
    text = "        __syncthreads();\n".join(
        (parts[0] + parts[1], parts[2]) if 0 == 0 else (parts[0], parts[1] + parts[2])
    )
    found = run(folder(replace(matmul, text=text), MATMUL_C))
    assert found.status == "shared memory"
    assert "no thread of the block wrote" in found.message


def test_a_write_beside_an_array_is_out_of_bounds(matmul: Program, folder: Folder) -> None:
    place = folder(matmul, MATMUL_C, ("    if (i < M && j < N) C[", "    if (i <= M && j < N) C["))
    found = run(place)
    assert found.status == "out of bounds"
    assert "'C'" in found.message


def test_a_null_pointer_is_a_crash(matmul: Program, folder: Folder) -> None:
    found = run(folder(matmul, MATMUL_C, ("= sum;", "= sum, *(volatile int *)0 = 1;")))
    assert found.status == "crash"
    assert "SIGSEGV" in found.message


def test_a_hang_is_a_timeout(matmul: Program, folder: Folder) -> None:
    place = folder(matmul, MATMUL_C, ("k += 16)", "k += 0 * *(volatile int *)&k)"))
    found = run(place, timeout_s=1.0)
    assert found.status == "timeout"
    assert "1 s" in found.message


def test_too_many_threads_are_a_launch_error(matmul: Program, folder: Folder) -> None:
    found = run(folder(matmul, MATMUL_C, ("dim3(16, 16)", "dim3(64, 32)")))
    assert found.status == "launch error"
    assert "1024" in found.message


def test_an_empty_grid_is_a_launch_error(matmul: Program, folder: Folder) -> None:
    found = verify(
        folder(matmul, MATMUL_C, ("if (M > 0 && N > 0)", "")),
        device="cpu",
        sizes=({"M": 0, "N": 5, "K": 5},),
    )
    assert found.status == "launch error"
    assert "grid" in found.message


def test_too_much_shared_memory_is_a_compile_error(matmul: Program, folder: Folder) -> None:
    found = run(folder(matmul, MATMUL_C, ("A[16][17];", "A[160][170];")))
    assert found.status == "compile error"


def test_dynamic_shared_memory_that_the_launch_does_not_give_is_an_error(
    matmul: Program, folder: Folder
) -> None:
    place = folder(matmul, MATMUL_C, ("EATSS_SHARED(matmul", "EATSS_DYNAMIC_SHARED(matmul"))
    assert run(place).status == "shared memory"


def test_text_that_is_no_cpp_is_a_compile_error(matmul: Program, folder: Folder) -> None:
    found = run(folder(matmul, MATMUL_C, ("double sum =", "double sum : =")))
    assert found.status == "compile error"
    assert "matmul.cu" in found.message


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
    found = verify(folder(with_assumption(matmul), MATMUL_C), device="cpu")
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


def test_an_original_that_does_not_compile_is_the_users_mistake(
    matmul: Program, folder: Folder
) -> None:
    with pytest.raises(InputError) as caught:
        run(folder(matmul, "void matmul(double x) { nonsense }"))
    assert caught.value.code == "EATSS-V011"


def test_an_original_that_hangs_or_crashes_is_the_users_mistake(
    matmul: Program, folder: Folder
) -> None:
    with pytest.raises(InputError) as caught:
        run(folder(matmul, MATMUL_C.replace("C[i][j] +=", "*(volatile double *)0 =")))
    assert caught.value.code == "EATSS-V011"
    with pytest.raises(InputError) as caught:
        run(folder(matmul, MATMUL_C.replace("i++", "i += 0 * *(volatile int *)&i")), timeout_s=0.5)
    assert caught.value.code == "EATSS-V011"


def test_a_part_of_a_function_that_is_never_reached_cannot_be_verified(
    matmul: Program, folder: Folder
) -> None:
    entry = replace(matmul.entries[0], whole_function=False)
    with pytest.raises(InputError) as caught:
        run(folder(replace(matmul, entries=(entry,)), MATMUL_C))
    assert caught.value.code == "EATSS-V005"


def test_a_size_that_the_program_does_not_have_is_the_users_mistake(
    matmul: Program, folder: Folder
) -> None:
    with pytest.raises(InputError) as caught:
        verify(folder(matmul, MATMUL_C), device="cpu", sizes=({"L": 3},))
    assert caught.value.code == "EATSS-V008"
