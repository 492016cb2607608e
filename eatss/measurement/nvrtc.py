"""NVRTC through CuPy; as a program, in a process of its own that may be ended when it hangs.

``python -m eatss.measurement.nvrtc`` reads a list as JSON from standard input: a text, its name in
messages, options, and a file. It writes a cubin there and prints the compiler's log; exit code 1 is
a text that does not compile.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
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
    major, minor = nvrtc.getVersion()
    ptx, _ = _compiled(nvrtc, "", "empty.cu", (), ptx=True)
    found = _RELEASE.search(ptx.decode(errors="replace"))
    return found[1] if found else f"{major}.{minor}"


def compile_text(text: str, name: str, options: Texts) -> tuple[bytes | None, str]:
    """Compile; return the cubin, ``None`` if the text does not compile, and the log.

    Args:
        text: CUDA.
        name: What messages call it.
        options: Of NVRTC.
    """
    try:
        return _compiled(_nvrtc(), text, name, options)
    except _RefusedError as error:
        return None, str(error)


def main() -> int:
    """Do what standard input asks for."""
    text, name, options, target = json.load(sys.stdin)
    cubin, log = compile_text(text, name, tuple(options))
    sys.stdout.write(log)
    if cubin is None:
        return 1
    Path(target).write_bytes(cubin)
    return 0


class _RefusedError(Exception):
    """The text does not compile."""


def _nvrtc() -> Any:
    import cupy  # noqa: F401, PLC0415  # it knows where the toolkit's libraries are
    from cupy.cuda import nvrtc  # noqa: PLC0415

    return nvrtc


def _compiled(
    nvrtc: Any, text: str, name: str, options: Texts, *, ptx: bool = False
) -> tuple[bytes, str]:
    program = nvrtc.createProgram(text, name, (), ())
    try:
        try:
            nvrtc.compileProgram(program, options)
        except nvrtc.NVRTCError as error:
            log = nvrtc.getProgramLog(program).strip("\0\n ")
            raise _RefusedError(log or str(error)) from None
        binary = bytes(nvrtc.getPTX(program) if ptx else nvrtc.getCUBIN(program))
        return binary if ptx else _whole(binary), nvrtc.getProgramLog(program).strip("\0\n ")
    finally:
        nvrtc.destroyProgram(program)


def _whole(cubin: bytes) -> bytes:
    """Return a cubin with the last byte, a zero, that CuPy takes for the end of a text.

    The driver loads it without; nvdisasm and cuobjdump do not take it for an ELF file.
    """
    return cubin + bytes(-len(cubin) % _ELF_ALIGNMENT)


if __name__ == "__main__":
    sys.exit(main())
