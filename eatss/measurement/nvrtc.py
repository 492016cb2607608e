"""NVRTC through CuPy, which is told the same as nvcc."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from eatss.base.text import Texts

_ELF_ALIGNMENT = 8
_RELEASE = re.compile(r"Cuda compilation tools, release [\d.]+, V([\d.]+)")


def version() -> str:
    """Return the full version of NVRTC, like ``13.0.88``.

    Raises:
        Exception: CuPy or NVRTC is not there or does not load; classes are theirs.
    """
    nvrtc = _nvrtc()
    ptx, _ = _compiled(nvrtc, nvrtc.getPTX, "", "empty.cu", ())
    found = _RELEASE.search((ptx or b"").decode(errors="replace"))
    return found[1] if found else ".".join(map(str, nvrtc.getVersion()))


def compile_text(text: str, name: str, options: Texts) -> tuple[bytes | None, str]:
    """Compile; return the cubin, ``None`` if the text does not compile, and the log.

    Args:
        text: CUDA.
        name: What messages call it.
        options: Of NVRTC.
    """
    nvrtc = _nvrtc()
    cubin, log = _compiled(nvrtc, nvrtc.getCUBIN, text, name, options)
    return cubin and _whole(cubin), log


def _nvrtc() -> Any:
    import cupy  # noqa: F401, PLC0415  # it knows where the toolkit's libraries are
    from cupy.cuda import nvrtc  # noqa: PLC0415

    return nvrtc


def _compiled(
    nvrtc: Any, made: Callable[[Any], bytes], text: str, name: str, options: Texts
) -> tuple[bytes | None, str]:
    program = nvrtc.createProgram(text, name, (), ())
    try:
        nvrtc.compileProgram(program, options)
        return bytes(made(program)), nvrtc.getProgramLog(program).strip("\0\n ")
    except nvrtc.NVRTCError as error:
        return None, nvrtc.getProgramLog(program).strip("\0\n ") or str(error)
    finally:
        nvrtc.destroyProgram(program)


def _whole(cubin: bytes) -> bytes:
    """Return a cubin with the last byte, a zero, that CuPy takes for the end of a text.

    The driver loads it without; nvdisasm and cuobjdump do not take it for an ELF file.
    """
    return cubin + bytes(-len(cubin) % _ELF_ALIGNMENT)
