"""Programs of PPCG made into libraries that one process loads and runs again and again."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from benchmarks.ppcg_records import KernelResources, PpcgProgram, PpcgVariant
from benchmarks.ppcg_variants import Generation, written

HERE = Path(__file__).resolve().parent
COMPILE_TIMEOUT_S = 45.0
_FUNCTION = re.compile(r"Function properties for (\w+)")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")
_KERNEL = re.compile(r"(?:_Z\d+)?(kernel\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A library, or why there is none; ``host_statements`` tells whether the host computes.

    ``text`` stands for what PPCG wrote, if that was written on the way.
    """

    library: Path | None
    reason: str = ""
    text: str = ""
    host_statements: bool = False
    resources: tuple[KernelResources, ...] = ()


def build_runtime(folder: Path, capability: int, nvcc: str) -> Path:
    """Compile the library that all variants' libraries need.

    Raises:
        RuntimeError: it does not compile.
    """
    library = folder / "runtime.so"
    toolkit = Path(nvcc).resolve().parent.parent / "lib64"
    source = str(HERE / "ppcg_runtime.cu")
    path = ["-Xlinker", f"-rpath={toolkit}"]
    done = subprocess.run(
        [nvcc, *_shared_options(capability), *path, source, "-o", str(library)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    return library


def _shared_options(capability: int) -> list[str]:
    options = [f"-arch=sm_{capability}", "-O3", "-Xcompiler", "-fPIC"]
    return [*options, "-shared", "-cudart", "shared"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What :func:`build` needs for every variant.

    Libraries are written into ``folder``; variants that were generated are in ``directory``, others
    are to be generated now.
    """

    folder: Path
    directory: Path
    generation: Generation | None
    capability: int
    nvcc: str


def build(wanted: Wanted, program: PpcgProgram, variant: PpcgVariant) -> Built:
    """Compile a variant, generated on the way if it was not yet."""
    directory, digest = wanted.directory, ""
    if variant.status == "wanted":
        assert wanted.generation is not None
        directory = wanted.folder / "generated"  # other processes have their own
        variant, digest = written(directory, wanted.generation, variant)
        if variant.reason:
            return Built(library=None, reason=variant.reason)
    name = variant.folder.replace("/", "-")
    wrapper, library = wanted.folder / f"{name}.cu", wanted.folder / f"{name}.so"
    wrapper.write_text(wrapper_text(program), encoding="utf-8")
    command = ["nice", "-n", "10", wanted.nvcc, *_shared_options(wanted.capability)]
    command += ["-Xptxas", "-v", f"-DDATA_TYPE={program.dtype}"]
    command += ["-I", str(directory / variant.folder)]
    command += ["-I", str(HERE), str(wrapper), "-o", str(library)]
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, process_group=0
    )
    try:
        _, errors = process.communicate(timeout=COMPILE_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return Built(library=None, reason=f"nvcc took over {COMPILE_TIMEOUT_S:.0f} s")
    if process.returncode:
        wrong = [line for line in errors.splitlines() if "error" in line.lower()]
        return Built(library=None, reason=f"nvcc: {(wrong or [errors])[0].strip()[:300]}")
    return Built(
        library=library,
        host_statements=variant.host_statements,
        resources=resources_in(errors),
        text=digest,
    )


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
