"""The comparison with the original at reduced sizes: what is asked for, and what is made of it."""

from __future__ import annotations

import ctypes
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from eatss.measurement.compile import CompileTarget, Toolchain
from eatss.measurement.correctness import (
    CupyMachine,
    reduced_sizes,
)
from eatss.program import Program, load_program
from eatss.verify.build import CompileError as VerifyCompileError
from eatss.verify.data import make_buffers
from eatss.verify.result import SizeResult, Status, Verification
from eatss.verify.run import verify
from tests.measurement.fake_cupy import FakeCupy

PROGRAMS = Path(__file__).parent / "programs"
LU = PROGRAMS / "lu"


def target(cache: Path) -> CompileTarget:
    toolchain = Toolchain(name="nvcc", version="13.0", command=("nvcc", "-v"))
    return CompileTarget(device=1, capability=90, toolchain=toolchain, cache=str(cache))


def verification(*results: tuple[Status, str]) -> Verification:
    return Verification(
        program="lu",
        device="gpu",
        status="ok",
        message="",
        bit_equal=False,
        results=tuple(
            SizeResult(launcher="lu", sizes=(("N", 10 + k),), status=status, message=message)
            for k, (status, message) in enumerate(results)
        ),
    )


@pytest.mark.parametrize("name", ["gemm", "jacobi-2d", "lu", "trisolv"])
def test_sizes_are_few_and_give_whole_and_partial_tiles(name: str) -> None:
    program = load_program(PROGRAMS / name)
    chosen = reduced_sizes(program)
    assert 2 <= len(chosen) <= 4
    for parameter in program.parameters:
        if parameter.tile > 1:
            assert max(sizes[parameter.name] for sizes in chosen) > parameter.tile
            assert any(sizes[parameter.name] % parameter.tile for sizes in chosen)


def divide_row(n: int) -> Callable[..., None]:
    def kernel(k: np.int32, address: np.uint64) -> None:
        a = host_array(address, n)
        a[k, k + 1 :] /= a[k, k]

    return kernel


def update(n: int) -> Callable[..., None]:
    def kernel(k: np.int32, address: np.uint64) -> None:
        a = host_array(address, n)
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])

    return kernel


def host_array(address: np.uint64, n: int) -> Any:
    memory = (ctypes.c_double * (n * n)).from_address(int(address))
    return np.ctypeslib.as_array(memory).reshape(n, n)


class HostMemory:
    """What CuPy's array of bytes is to the machine: a copy with an address."""

    def __init__(self, raw: Any) -> None:
        self._raw = raw.copy()
        self.data = SimpleNamespace(ptr=self._raw.ctypes.data)

    def get(self) -> Any:
        return self._raw


def machine_at(n: int) -> CupyMachine:
    cupy = FakeCupy({"kernel_lu_k0": divide_row(n), "kernel_lu_k1": update(n)})
    setattr(cupy, "asarray", HostMemory)  # noqa: B010 - the type has no such attribute
    cupy.cuda.runtime.deviceSynchronize = lambda: None
    return CupyMachine(cupy, load_program(LU), {"N": n}, Path("lu.cubin"))


def test_the_machine_runs_an_entry_on_copies_of_the_arguments() -> None:
    entry = load_program(LU).entries[0]
    buffers = make_buffers(entry, {"N": 8}, "dominant", 0)
    before = buffers[0].array.copy()
    launched = machine_at(8).launch(entry, buffers, backward=False)
    assert (launched.code, launched.status) == (0, "ok")
    after = buffers[0].array
    assert np.allclose(np.tril(after) @ (np.triu(after, 1) + np.eye(8)), before)
    assert buffers[0].first_stray_write() is None


def lu_machine(program: Program, sizes: Mapping[str, int], *words: str) -> CupyMachine:
    """Return a machine that divides by the diagonal once too often if told to be wrong."""
    if words == ("refuses",):
        raise VerifyCompileError("lu.cu(1): error: no")
    machine = machine_at(sizes["N"])
    if words == ("wrong",):
        machine.cupy.bodies["kernel_lu_k1"] = machine.cupy.bodies["kernel_lu_k0"]
    return machine


def verified(*words: str) -> Verification:
    machine: Sequence[str] = ("tests.measurement.test_correctness:lu_machine", *words)
    return verify(LU, device="gpu", sizes=[{"N": 9}], machine=machine)


@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not on the path")
def test_verification_compares_what_another_machine_computes() -> None:
    assert verified("right").status == "ok"
    wrong = verified("wrong")
    assert wrong.status == "wrong result"
    assert "the original gives" in wrong.message
    assert verified("refuses").status == "compile error"
