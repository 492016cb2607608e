"""What a compiler made of a microbenchmark: its machine code, disassembled and checked.

Code: B010 the machine code does not hold the instruction that is to be timed.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from eatss.base.frozen import frozen
from eatss.measurement.characterize.benchmark import Benchmark

_LIMIT_S = 120.0
_INSTRUCTION = re.compile(
    r"^\s*/\*(?P<at>[0-9a-f]{4,})\*/\s+(?:@!?U?P\w+\s+)?(?P<opcode>[A-Z][\w.]*)"
)
_LABEL = re.compile(r"^(?P<label>\.L_x_\d+):")
_BRANCH = re.compile(r"\bBRA(?:\.\w+)*\s+(?:!?U?P\w+,\s*)?`\((?P<label>\.L_x_\d+)\)")


@frozen
class MachineCode:
    """The longest innermost loop of a kernel: how often each opcode stands in it, and all."""

    opcodes: tuple[tuple[str, int], ...]
    instructions: int

    def count(self, pattern: str) -> int:
        """Return how many instructions have an opcode that matches as a whole."""
        form = re.compile(pattern)
        return sum(n for opcode, n in self.opcodes if form.fullmatch(opcode))


def find_disassembler() -> Path | None:
    """Return nvdisasm: of PATH, of the CUDA toolkit, or of the package nvidia-cuda-nvdisasm."""
    on_path = shutil.which("nvdisasm")
    if on_path:
        return Path(on_path)
    homes = [os.environ.get(name) for name in ("CUDA_HOME", "CUDA_PATH")]
    places = [Path(home) / "bin" for home in (*homes, "/usr/local/cuda") if home]
    package = importlib.util.find_spec("nvidia")
    for root in (package.submodule_search_locations or ()) if package is not None else ():
        places += sorted(Path(root).glob("*/bin"))
    for place in places:
        if os.access(place / "nvdisasm", os.X_OK):
            return place / "nvdisasm"
    return None


def disassembled(disassembler: Path, cubin: Path) -> str:
    """Return the text of nvdisasm for a cubin.

    Raises:
        OSError: it does not start.
        subprocess.SubprocessError: it refuses the cubin, or takes too long.
    """
    return subprocess.run(  # noqa: S603 - a tool of the CUDA toolkit
        [str(disassembler), "-c", str(cubin)],
        capture_output=True,
        text=True,
        timeout=_LIMIT_S,
        check=True,
    ).stdout


def machine_code(text: str, kernel: str) -> MachineCode:
    """Return the longest loop that holds no other, of a kernel in a text of nvdisasm.

    A kernel without a loop counts as one.
    """
    opcodes: list[str] = []
    labels: dict[str, int] = {}
    jumps: list[tuple[int, str]] = []
    for line in _section(text, kernel):
        if label := _LABEL.match(line):
            labels[label["label"]] = len(opcodes)
        elif found := _INSTRUCTION.match(line):
            if branch := _BRANCH.search(line):
                jumps.append((len(opcodes), branch["label"]))
            opcodes.append(found["opcode"])
    loops = [(labels[label], at) for at, label in jumps if labels.get(label, at + 1) <= at]
    inner = [
        (first, last)
        for first, last in loops
        if not any(
            first <= begin and end <= last and (begin, end) != (first, last) for begin, end in loops
        )
    ]
    first, last = max(inner, key=lambda loop: loop[1] - loop[0], default=(0, len(opcodes) - 1))
    inside = Counter(opcodes[first : last + 1])
    return MachineCode(
        opcodes=tuple(sorted(inside.items(), key=lambda item: (-item[1], item[0]))),
        instructions=last + 1 - first,
    )


def missing(benchmark: Benchmark, code: MachineCode) -> tuple[str, ...]:
    """Return in words what of a benchmark's instructions its machine code does not hold."""
    return tuple(
        f"{code.count(opcode)} instead of {count} instructions {opcode}"
        for opcode, count in benchmark.expected.items()
        if code.count(opcode) != count
    )


def _section(text: str, kernel: str) -> Iterator[str]:
    """Yield the lines of one function."""
    inside = False
    for line in text.splitlines():
        if line.startswith(".text."):
            inside = line.rstrip(":") == f".text.{kernel}"
        elif inside:
            yield line
