"""Build a kernel of this repository at small sizes, run it, compare it with NumPy.

Every array lies between NaN guards, and every array that a test does not give starts as NaN: an
access out of bounds or of workspace nobody has written ends as NaN in the result.
"""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

KERNELS = Path(__file__).resolve().parents[2] / "kernels"
GUARD = 64  # elements of NaN before and after every array

Array = NDArray[np.float64]
Draw = Callable[..., Array]


@pytest.fixture(scope="session")
def kernels_folder() -> Path:
    return KERNELS


@pytest.fixture(scope="session")
def cc() -> str:
    return _tool("cc")


@pytest.fixture(scope="session")
def cxx() -> str:
    return _tool("c++")


@pytest.fixture(params=["double", "float"])
def dtype(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def draw() -> Draw:
    """Random arrays whose values single precision holds exactly, uniform in [low, high)."""
    generator = np.random.default_rng(20240704)

    def drawn(*shape: int, low: float = -1.0, high: float = 1.0) -> Array:
        values = generator.uniform(low, high, shape)
        return values.astype(np.float32).astype(np.float64)

    return drawn


@pytest.fixture
def close(dtype: str) -> Callable[[Array, Array], None]:
    """Equal up to 1000 roundings of the largest expected value; NaN only where NaN is expected."""
    epsilon = float(np.finfo(_numpy_type(dtype)).eps)

    def compare(actual: Array, expected: Array) -> None:
        scale = float(np.nanmax(np.abs(expected)))
        np.testing.assert_allclose(
            actual, expected, rtol=0, atol=1000 * epsilon * scale, equal_nan=True
        )

    return compare


@pytest.fixture
def computes(
    cc: str, dtype: str, close: Callable[[Array, Array], None], tmp_path: Path
) -> Callable[..., dict[str, Array]]:
    """Run a kernel and compare `outputs`; what is neither output nor `changed` must stay as given.

    Arrays of the signature that `inputs` does not name are outputs or workspace, start as NaN, and
    are compared only where `outputs` names them. All arrays after the run are returned.
    """

    def run(
        name: str,
        sizes: Mapping[str, int],
        inputs: Mapping[str, Any],
        outputs: Mapping[str, Array],
        changed: tuple[str, ...] = (),
    ) -> dict[str, Array]:
        library = _build(cc, name, sizes, dtype, tmp_path)
        buffers, after = _call(library, name, sizes, inputs, dtype)
        for array, buffer in buffers.items():
            guards = np.concatenate([buffer[:GUARD], buffer[-GUARD:]])
            assert np.isnan(guards).all(), f"{name} writes outside {array}"
        for array, expected in outputs.items():
            close(after[array], expected)
        for array in set(after) & set(inputs) - set(outputs) - set(changed):
            np.testing.assert_array_equal(after[array], inputs[array], f"{name} changes {array}")
        return after

    return run


def _tool(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"needs a compiler: no {name} on the search path")
    return path


def _numpy_type(dtype: str) -> type[np.float32 | np.float64]:
    return np.float32 if dtype == "float" else np.float64


def _build(cc: str, name: str, sizes: Mapping[str, int], dtype: str, folder: Path) -> ctypes.CDLL:
    library = folder / f"{name}.so"
    definitions = [f"-D{macro}={value}" for macro, value in sizes.items()]
    flags = ["-std=c99", "-O0", "-w", "-shared", "-fPIC", f"-DDATA_TYPE={dtype}"]
    source = KERNELS / f"{name}.c"
    subprocess.run([cc, *flags, *definitions, str(source), "-o", str(library), "-lm"], check=True)
    return ctypes.CDLL(str(library))


def _parameters(name: str, sizes: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
    """Name and extents of every parameter, in order; no extents for a scalar."""
    source = (KERNELS / f"{name}.c").read_text(encoding="utf-8")
    match = re.search(r"void kernel_\w+\((.*?)\)\n\{", source, re.DOTALL)
    assert match is not None, f"{name}.c has no kernel function"
    found = re.findall(r"DATA_TYPE (\w+)((?:\[[^\]]*\])*)", match[1])
    return {
        parameter: tuple(
            int(eval(extent, {}, dict(sizes)))  # the repository's own `NI + 1`
            for extent in re.findall(r"\[([^\]]*)\]", extents)
        )
        for parameter, extents in found
    }


def _call(
    library: ctypes.CDLL,
    name: str,
    sizes: Mapping[str, int],
    inputs: Mapping[str, Any],
    dtype: str,
) -> tuple[dict[str, NDArray[Any]], dict[str, Array]]:
    """The guarded buffers and the arrays after the call."""
    element = _numpy_type(dtype)
    scalar = ctypes.c_float if dtype == "float" else ctypes.c_double
    parameters = _parameters(name, sizes)
    assert set(inputs) <= set(parameters), f"{name} takes {list(parameters)}"
    buffers: dict[str, NDArray[Any]] = {}
    arguments: list[Any] = []
    for parameter, shape in parameters.items():
        if not shape:
            arguments.append(scalar(inputs[parameter]))
            continue
        count = int(np.prod(shape))
        buffer = np.full(count + 2 * GUARD, np.nan, dtype=element)
        if parameter in inputs:
            assert inputs[parameter].shape == shape, f"{name} wants {parameter} as {shape}"
            buffer[GUARD:-GUARD] = inputs[parameter].reshape(-1)
        buffers[parameter] = buffer
        start = buffer.ctypes.data + GUARD * buffer.itemsize
        arguments.append(ctypes.c_void_p(start))
    function = library[f"kernel_{name.replace('-', '_')}"]
    function.restype = None
    function(*arguments)
    after = {
        array: buffer[GUARD:-GUARD].reshape(parameters[array]).astype(np.float64)
        for array, buffer in buffers.items()
    }
    return buffers, after
