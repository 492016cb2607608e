"""NVRTC through CuPy; as a program, in a process of its own that may be ended when it hangs.

``python -m eatss.measurement.nvrtc -cubin OPTIONS… FILE -o CUBIN`` is like nvcc with these options.
It prints the compiler's log; exit code 1 is a text that does not compile.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
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


def main() -> int:
    """Do what the command line asks for."""
    _, _, *options, file, _, target = sys.argv
    text = Path(file).read_text(encoding="utf-8")
    cubin, log = compile_text(text, file, tuple(options))
    sys.stdout.write(log)
    if cubin is None:
        return 1
    Path(target).write_bytes(cubin)
    return 0


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


if __name__ == "__main__":
    sys.exit(main())
