"""Compiled launchers called from Python, on a CPU in the place of a card."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import numpy.typing as npt

from eatss.measurement.compile import HostCode
from eatss.program import load_program

PROGRAMS = Path(__file__).parent / "programs"
SHIM = Path(__file__).resolve().parents[2] / "eatss" / "verify" / "shim"
SIZES = {"NI": 37, "NJ": 21, "NK": 11}


@dataclass(frozen=True, slots=True)
class DeviceArray:
    """An array whose address is found where CuPy has it."""

    values: npt.NDArray[np.float64]

    @property
    def data(self) -> SimpleNamespace:
        return SimpleNamespace(ptr=self.values.ctypes.data)


def compiled(tmp_path: Path, sizes: dict[str, int]) -> HostCode:
    program = load_program(PROGRAMS / "gemm")
    library = tmp_path / "host.so"
    command = ["g++", "-std=c++17", "-O1", "-shared", "-fPIC", "-w", "-DEATSS_CPU", f"-I{SHIM}"]
    command += ["-include", "eatss_cpu.hpp", "-x", "c++"]
    command += [f"-D{one.macro}={sizes[one.name]}" for one in program.parameters]
    subprocess.run(
        [*command, str(PROGRAMS / "gemm" / program.file), "-o", str(library)], check=True
    )
    return HostCode(program, library)


def test_a_run_passes_every_argument_in_its_place(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    a, b, c = rng.random((37, 11)), rng.random((11, 21)), rng.random((37, 21))
    expected = 0.5 * c + 1.5 * a @ b
    bound = {
        "A": DeviceArray(a),
        "B": DeviceArray(b),
        "C": DeviceArray(c),
        "alpha": np.float64(1.5),
        "beta": np.float64(0.5),
    }
    compiled(tmp_path, SIZES).run([bound], SIZES, 0)
    np.testing.assert_allclose(c, expected, rtol=1e-13)
