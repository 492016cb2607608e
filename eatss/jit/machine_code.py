"""``Program`` and sizes in, machine code for a card out: by NVRTC in this process, kept on disk."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from eatss.cache import Cache, key_of
from eatss.diagnostics import input_error
from eatss.measurement import nvrtc
from eatss.program import Program

_KIND = "cubin-jit"
_STANDARD = "--std=c++17"
_PACKAGES = ("cupy", "nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12", "cuda-toolkit")


def size_constant(name: str) -> str:
    """Return what the machine code for all sizes calls the memory of a size."""
    return f"eatss_size_{name}"


def cubin_of(
    program: Program,
    sizes: Mapping[str, int],
    capability: int,
    cupy: Any,
    cache: Cache | None,
    *,
    specialize: bool,
) -> bytes:
    """Return the machine code of a program.

    Args:
        program: what to compile.
        sizes: those of the problem.
        capability: of the card, as in 90 for 9.0.
        cupy: the module, which knows where NVRTC is.
        cache: what was compiled before.
        specialize: whether sizes that macros name are compiled in; else they are read from
            constants of the module, and the code is for all sizes.

    Raises:
        InputError: ``EATSS-J018``, NVRTC refuses the text or is not there.
    """
    macros = [one.name for one in program.parameters if one.kind == "macro"]
    text = program.text
    if specialize:
        defines = [f"-D{name}={_number(sizes[name])}" for name in macros]
    else:
        defines = [f"-D{name}={size_constant(name)}" for name in macros]
        declared = (f'extern "C" __constant__ int {size_constant(name)};\n' for name in macros)
        text = f'{"".join(declared)}#line 1 "{program.file}"\n{text}'
    options = (f"-arch=sm_{capability}", _STANDARD, *program.flags, *defines)
    key = key_of("cubin", text, options, toolkit(cupy))
    kept = None if cache is None else cache.get(_KIND, key)
    if kept is not None:
        return kept
    try:
        made, log = nvrtc.compile_text(
            nvrtc.Request(text=text, name=program.file, options=options, target="")
        )
    except Exception as error:  # CuPy and its libraries raise classes of their own
        made, log = None, " ".join(str(error).split())
    if made is None:
        raise input_error(
            "EATSS-J018",
            f"NVRTC does not compile '{program.name}': {log[:400]}",
            hint="'eatss doctor' says what this machine has",
        )
    if cache is not None:
        cache.put(_KIND, key, made, about=f"{program.name} for sm_{capability}")
    return made


def toolkit(cupy: Any) -> tuple[str, ...]:
    """Return what tells versions of the compiler apart without loading it."""
    found = [f"runtime {cupy.cuda.runtime.runtimeGetVersion()}", f"cupy {cupy.__version__}"]
    for package in _PACKAGES[1:]:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return (*found, sys.platform)


def _number(value: int) -> str:
    return str(value) if value >= 0 else f"({value})"
