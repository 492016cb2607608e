"""Takes whole folders of C programs through select, codegen and verify, as a user calls them.

    python benchmarks/polybench.py DIR... [--gpu h200] [-I DIR] [-D NAME=VALUE] [--only NAME]

Every C file with a region below the folders is one row: the seconds of each command as a fresh
process, and the outcome, or the first sentence of the command that ended it. The files are taken
as they are; folders that hold headers are given with ``-I``. ``polybench.txt`` in ``results`` is
PolyBench/C 3.2 and the three programs of github.com/mkongiv/eatss, and PolyBench/C 4.2.1 as
github.com/MatthiasJReisinger/PolyBenchC-4.2.1 has it.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

COMMANDS = ("select", "codegen", "verify")
LIMIT_S = 600.0

_REGION = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+scop\b", re.MULTILINE)
_MAIN = re.compile(r"\bmain\s*\(")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A program: the seconds of the commands that ran, and what the last one of them said."""

    name: str
    seconds: tuple[float, ...]
    ok: bool
    outcome: str


def programs(folders: Sequence[Path]) -> Iterator[tuple[Path, Path]]:
    """Yield folders and the programs below them: C files with a region and a ``main``."""
    for folder in folders:
        for path in sorted(folder.rglob("*.c")):
            if path.parent.name == "utilities" or path.stem.endswith(".orig"):
                continue
            text = path.read_text(encoding="utf-8", errors="replace")
            if _REGION.search(text) and _MAIN.search(text):
                yield folder, path


def run(command: Sequence[str]) -> tuple[int, str, float]:
    """Run a command; return its exit code, all it said, and the seconds it took."""
    start = time.perf_counter()
    try:
        done = subprocess.run(
            [sys.executable, "-m", "eatss", *command],
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return 124, f"did not finish within {LIMIT_S:.0f} s", LIMIT_S
    return done.returncode, done.stderr + done.stdout, time.perf_counter() - start


def row(name: str, path: Path, gpu: str, options: Sequence[str]) -> Row:
    """Take one program as far as it goes."""
    seconds: list[float] = []
    said = ""
    with tempfile.TemporaryDirectory() as work:
        folder = str(Path(work) / "generated")
        anew = [*options, "--no-cache"]
        commands = {
            "select": ["select", str(path), "--gpu", gpu, "--target", "cuda", *anew],
            "codegen": ["codegen", str(path), "--gpu", gpu, *anew, "-o", folder],
            "verify": ["verify", folder, "--device", "cpu"],
        }
        for command in COMMANDS:
            code, said, elapsed = run(commands[command])
            seconds.append(elapsed)
            if code != 0:
                outcome = f"{command} ends with {code}: {first_sentence(said)}"
                return Row(name=name, seconds=tuple(seconds), ok=False, outcome=outcome)
    return Row(name=name, seconds=tuple(seconds), ok=True, outcome="ok")


def first_sentence(said: str) -> str:
    """Return the first error of a command, else its first line."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if "error:" in line]
    return (errors or lines[:1] or ["it said nothing"])[0]


def main() -> None:
    """Take all programs and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folders", nargs="+", type=Path, metavar="DIR")
    parser.add_argument("--gpu", default="h200")
    parser.add_argument("-I", dest="includes", action="append", default=[], metavar="DIR")
    parser.add_argument("-D", dest="defines", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--only", action="append", help="only files of this name, without .c")
    arguments = parser.parse_args()
    options = [f"-I{folder}" for folder in arguments.includes]
    options += [f"-D{define}" for define in arguments.defines]
    print(f"{arguments.gpu}; Python {platform.python_version()}, {os.cpu_count()} cores")
    print(f"{'program':<32}" + "".join(f"{c:>9}" for c in COMMANDS) + " [s]  outcome")
    rows = []
    for folder, path in programs(arguments.folders):
        if arguments.only and path.stem not in arguments.only:
            continue
        found = row(f"{folder.name}/{path.stem}", path, arguments.gpu, options)
        times = "".join(f"{s:>9.1f}" for s in found.seconds).ljust(9 * len(COMMANDS))
        print(f"{found.name:<32}{times}      {found.outcome}", flush=True)
        rows.append(found)
    print(f"\n{sum(found.ok for found in rows)} of {len(rows)} verify")


if __name__ == "__main__":
    main()
