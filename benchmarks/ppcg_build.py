"""Programs of PPCG made into libraries that one process loads and runs again and again."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from benchmarks.ppcg_records import KernelResources, PpcgProgram, PpcgVariant

HERE = Path(__file__).resolve().parent
COMPILE_TIMEOUT_S = 45.0
_running: set[subprocess.Popen[str]] = set()
_FUNCTION = re.compile(r"Function properties for (\w+)")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")
_KERNEL = re.compile(r"(?:_Z\d+)?(kernel\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A library, or why there is none; ``host_statements`` tells whether the host computes."""

    library: Path | None
    reason: str = ""
    host_statements: bool = False
    resources: tuple[KernelResources, ...] = ()


def build_runtime(folder: Path, capability: int, nvcc: str) -> Path:
    """Compile what all libraries share, and a library of nothing else for the warm-up.

    Raises:
        RuntimeError: it does not compile.
    """
    common = folder / "runtime.o"
    options = [f"-arch=sm_{capability}", "-O3", "-Xcompiler", "-fPIC"]
    _must([nvcc, *options, "-c", str(HERE / "ppcg_runtime.cu"), "-o", str(common)])
    empty = folder / "empty.cu"
    empty.write_text('extern "C" void eatss_call(void **) {}\n', encoding="utf-8")
    _must([nvcc, *options, "-shared", str(empty), str(common), "-o", str(folder / "warm.so")])
    return common


def build(
    folder: Path,
    variant_folder: Path,
    program: PpcgProgram,
    variant: PpcgVariant,
    common: Path,
    capability: int,
    nvcc: str,
) -> Built:
    """Compile a variant."""
    name = variant.folder.replace("/", "-")
    wrapper, library = folder / f"{name}.cu", folder / f"{name}.so"
    wrapper.write_text(wrapper_text(program), encoding="utf-8")
    command = [
        "nice",
        "-n",
        "10",
        nvcc,
        f"-arch=sm_{capability}",
        "-O3",
        "-Xcompiler",
        "-fPIC",
        "-shared",
    ]
    command += ["-Xptxas", "-v", f"-DDATA_TYPE={program.dtype}", "-I", str(variant_folder)]
    command += ["-I", str(HERE), str(wrapper), str(common), "-o", str(library)]
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, process_group=0
    )
    _running.add(process)
    try:
        _, errors = process.communicate(timeout=COMPILE_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        _end(process)
        return Built(library=None, reason=f"nvcc took over {COMPILE_TIMEOUT_S:.0f} s")
    finally:
        _running.discard(process)
    if process.returncode:
        wrong = [line for line in errors.splitlines() if "error" in line.lower()]
        return Built(library=None, reason=f"nvcc: {(wrong or [errors])[0].strip()[:300]}")
    return Built(
        library=library,
        host_statements=variant.host_statements,
        resources=resources_in(errors),
    )


def stop_builds() -> None:
    """End the compilations under way, for nobody needs them."""
    for process in tuple(_running):
        _end(process)


def _end(process: subprocess.Popen[str]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def wrapper_text(program: PpcgProgram) -> str:
    """Return the text that is compiled: hooks, what PPCG wrote, and a call of it."""
    arguments = ", ".join(
        f"EatssArgument{{arguments[{place}]}}" for place in range(len(program.parameters))
    )
    return (
        '#include "ppcg_hooks.h"\n'
        f'#include "{program.kernel}_kernel.cu"\n'
        f'#include "{program.kernel}_host.cu"\n'
        'extern "C" void eatss_call(void **arguments)\n'
        f"{{ {program.function}({arguments}); }}\n"
    )


def resources_in(text: str) -> tuple[KernelResources, ...]:
    """Read the output of ``ptxas -v``."""
    found: list[KernelResources] = []
    name, stack, spill = "", 0, 0
    for line in text.splitlines():
        if match := _FUNCTION.search(line):
            name = match[1]
        elif match := _STACK.search(line):
            stack, spill = int(match[1]), int(match[2]) + int(match[3])
        elif match := _USED.search(line):
            shared = _SHARED.search(line)
            if known := _KERNEL.match(name):
                found.append(
                    KernelResources(
                        kernel=known[1],
                        registers=int(match[1]),
                        spill_bytes=spill,
                        stack_bytes=stack,
                        shared_bytes=int(shared[1]) if shared else 0,
                    )
                )
    return tuple(sorted(found, key=lambda one: int(one.kernel[6:])))


def _must(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
