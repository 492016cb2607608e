"""Runs every generated program on a GPU: verified, checked for bad accesses and races, timed.

    python benchmarks/gpu_verification.py prepare DIR [--gpu h200]      # where eatss is installed
    python benchmarks/gpu_verification.py run DIR [--jobs 8]        # where the card is

``prepare`` generates all kernels in float and double into DIR. ``run`` needs NumPy, nvcc and
compute-sanitizer only. For each program it prints the result of ``eatss verify`` on the card
(sizes run, whether equal to the last bit, the largest error as a share of its bound), what
memcheck and racecheck find at a small size, and the time of one run at the sizes of the source,
data resident, after one to warm up, which is an indication and no measurement.
"""

from __future__ import annotations

import argparse
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from eatss.program import Program, load_program
from eatss.verify.result import Verification
from eatss.verify.run import verify
from eatss.verify.sizes import choose_sizes

_TOOLS = ("memcheck", "racecheck")
_TIMEOUT_S = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What was found of one program."""

    name: str
    kernels: int
    verified: str
    sizes: int
    equal: str
    memcheck: str
    racecheck: str
    time_ms: str


def prepare(directory: Path, gpu: str) -> None:
    """Generate every kernel in both types."""
    from eatss.api import codegen  # noqa: PLC0415 - not on the machine with the card
    from eatss.base.shipped import data_directory  # noqa: PLC0415

    for source in sorted(data_directory("kernels").glob("*.c")):
        for dtype in ("double", "float"):
            folder = directory / f"{source.stem}-{dtype}"
            codegen(source, gpu=gpu, output=folder, dtype=dtype, force=True)
            print(folder.name)


def check(folder: Path) -> Row:
    """Compile and run one program in every way."""
    program = load_program(folder)
    verification = verify(folder, device="gpu", timeout_s=_TIMEOUT_S)
    small = _small(program)
    memcheck, racecheck = (_sanitize(folder, program, tool, small) for tool in _TOOLS)
    return Row(
        name=folder.name,
        kernels=len(program.kernels),
        verified=verification.status
        if verification.ok
        else f"{verification.status}: {verification.message[:60]}",
        sizes=len(verification.results),
        equal=_equality(verification),
        memcheck=memcheck,
        racecheck=racecheck,
        time_ms="",
    )


def _equality(verification: Verification) -> str:
    worst = max((r.worst_error / r.bound for r in verification.results if r.bound > 0), default=0.0)
    exact = all(r.worst_error == 0 for r in verification.results)
    return "bits" if exact else f"{worst:.2f} of bound"


def _small(program: Program) -> dict[str, int]:
    """Return the largest sizes that verification runs."""
    return dict(choose_sizes(program)[-1])


def _build(folder: Path, program: Program, sizes: dict[str, int], name: str) -> Path | str:
    """Compile the program's own main; return it or what the compiler says."""
    binary = folder / name
    macros = {p.name: p.macro for p in program.parameters if p.kind == "macro"}
    defines = [f"-D{macros[key]}={value}" for key, value in sizes.items() if key in macros]
    command = [
        _tool("nvcc"), "-O3", f"-arch=sm_{program.compute_capability}", "-DEATSS_MAIN",
        *program.flags, *defines, program.file, "-o", str(binary.resolve()),
    ]  # fmt: skip
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return binary if done.returncode == 0 else (done.stderr or "nvcc failed").strip()[:80]


def _sanitize(folder: Path, program: Program, tool: str, sizes: dict[str, int]) -> str:
    binary = _build(folder, program, sizes, "small")
    if isinstance(binary, str):
        return binary
    command = [_tool("compute-sanitizer"), "--tool", tool, str(binary.resolve()), "1"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        return "timeout"
    text = done.stdout + done.stderr
    summary = re.search(r"(?:ERROR|RACECHECK) SUMMARY: (.*)", text)
    if summary is None:
        return f"no summary (exit {done.returncode})"
    return "clean" if summary.group(1).startswith("0 ") else summary.group(1)[:60]


def _time(folder: Path) -> str:
    """Return the time of one run at the sizes of the source, alone on the card."""
    binary = _build(folder, load_program(folder), {}, "usual")
    if isinstance(binary, str):
        return binary
    try:
        done = subprocess.run(
            [str(binary.resolve()), "1"],
            capture_output=True,
            text=True,
            check=False,
            timeout=_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired:
        return "timeout"
    times = re.findall(r"min ([0-9.]+) ms", done.stdout)
    if done.returncode or not times:
        return f"exit {done.returncode}: {(done.stderr or done.stdout).strip()[:40]}"
    return f"{sum(map(float, times)):.3f}"


def _tool(name: str) -> str:
    return shutil.which(name) or f"/usr/local/cuda/bin/{name}"


def run(directory: Path, jobs: int) -> int:
    """Check every program of a folder and print the table."""
    folders = sorted(path.parent for path in directory.glob("*/plan.json"))
    print(_machine(), flush=True)
    columns = (
        "program", "kernels", "verify", "sizes", "equal", "memcheck", "racecheck", "usual ms"
    )  # fmt: skip
    rows: list[Row] = []
    with ThreadPoolExecutor(jobs) as pool:
        for row in pool.map(check, folders):
            rows.append(row)
            print(f"... {row.name}: {row.verified}", file=sys.stderr, flush=True)
    rows = [replace(row, time_ms=_time(directory / row.name)) for row in rows]  # one at a time
    _print_table([columns, *(tuple(map(str, astuple(row))) for row in rows)])
    bad = [r for r in rows if (r.verified, r.memcheck, r.racecheck) != ("ok", "clean", "clean")]
    print(f"{len(rows)} programs, {sum(r.kernels for r in rows)} kernels, {len(bad)} not clean")
    return 1 if bad else 0


def _print_table(rows: Sequence[Sequence[str]]) -> None:
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    for row in rows:
        print(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        )


def _machine() -> str:
    query = "--query-gpu=name,driver_version"
    found = subprocess.run(
        ["nvidia-smi", query, "--format=csv,noheader"], capture_output=True, text=True, check=False
    )
    version = subprocess.run(
        [_tool("nvcc"), "--version"], capture_output=True, text=True, check=False
    )
    release = re.search(r"release ([0-9.]+)", version.stdout)
    toolkit = release.group(1) if release else "unknown"
    return f"{found.stdout.strip()}; CUDA {toolkit}; Python {platform.python_version()}"


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("action", choices=("prepare", "run"))
    parser.add_argument("directory", type=Path)
    parser.add_argument("--gpu", default="h200", help="profile to generate for")
    parser.add_argument("--jobs", type=int, default=8, help="programs at once; they share the card")
    given = parser.parse_args()
    if given.action == "prepare":
        prepare(given.directory, given.gpu)
        return 0
    return run(given.directory, given.jobs)


if __name__ == "__main__":
    sys.exit(main())
