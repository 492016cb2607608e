"""Run loops as Python on NumPy, and as the C that eatss makes of them."""

from __future__ import annotations

import ctypes
import importlib.util
import itertools
import subprocess
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eatss.frontend.python import PythonScop
from eatss.frontend.python_types import SHORT_NAMES

HEAD = "import math\n\nimport numpy as np\n\nimport eatss\n\n\n"
DTYPES = {
    "f16": np.float16, "f32": np.float32, "f64": np.float64, "i8": np.int8, "i16": np.int16,
    "i32": np.int32, "i64": np.int64, "u8": np.uint8, "u16": np.uint16, "u32": np.uint32,
    "u64": np.uint64,
}  # fmt: skip
_C_TYPES = {
    "f32": ctypes.c_float, "f64": ctypes.c_double, "i8": ctypes.c_int8, "i16": ctypes.c_int16,
    "i32": ctypes.c_int32, "i64": ctypes.c_int64, "u8": ctypes.c_uint8, "u16": ctypes.c_uint16,
    "u32": ctypes.c_uint32, "u64": ctypes.c_uint64,
}  # fmt: skip
_numbers = itertools.count()


def loaded(text: str, folder: Path, name: str = "loops") -> PythonScop:
    """Return the function ``name`` of a module with this text, decorated there."""
    module_name = f"loops{next(_numbers)}"
    path = folder / f"{module_name}.py"
    path.write_text(HEAD + text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(module_name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = getattr(module, name)
    assert isinstance(found, PythonScop)
    return found


def compiled(scop: PythonScop, folder: Path) -> Any:
    """Return the C function, compiled without liberties for floating-point numbers."""
    source = folder / f"c{next(_numbers)}.c"
    source.write_text(scop.c_source, encoding="utf-8")
    library = source.with_suffix(".so")
    subprocess.run(
        ["gcc", "-std=c99", "-O1", "-ffp-contract=off", "-fexcess-precision=16", "-fPIC", "-shared",
         "-Werror=implicit", str(source), "-o", str(library), "-lm"],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return getattr(ctypes.CDLL(str(library)), scop.name)


def run_c(function: Any, scop: PythonScop, values: Sequence[Any]) -> None:
    """Call the C function; arrays are changed in place."""
    arguments: list[Any] = []
    for argument, value in zip(scop.arguments, values, strict=True):
        if argument.kind == "array":
            arguments.append(value.ctypes.data_as(ctypes.c_void_p))
        elif argument.kind == "param":
            arguments.append(ctypes.c_int(value))
        else:
            arguments.append(_C_TYPES[SHORT_NAMES[argument.element_type]](value))
    function.restype = None
    function(*arguments)


def run_python(scop: PythonScop, values: Sequence[Any]) -> None:
    """Call the function as Python; arrays are changed in place."""
    assert scop.function is not None
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)  # integers of NumPy that wrap around
        scop.function(*values)


def same_bits(one: NDArray[Any], other: NDArray[Any]) -> bool:
    """Compare all elements bit for bit; what is no number is like any other."""
    nan = (one != one) & (other != other)
    return bool(np.all(nan | ((one == other) & (np.signbit(one) == np.signbit(other)))))


def copied(values: Sequence[Any]) -> list[Any]:
    """Return arguments with arrays of their own."""
    return [value.copy() if isinstance(value, np.ndarray) else value for value in values]


def check_equal(scop: PythonScop, values: Sequence[Any], folder: Path) -> None:
    """Check that C leaves in every array what Python leaves there."""
    here, there = copied(values), copied(values)
    run_python(scop, here)
    run_c(compiled(scop, folder), scop, there)
    for argument, one, other in zip(scop.arguments, here, there, strict=True):
        if isinstance(one, np.ndarray):
            assert same_bits(one, other), f"{argument.name}\n{scop.c_source}\n{one}\n{other}"
