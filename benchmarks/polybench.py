"""Takes whole folders of C programs through select, codegen and verify, as a user calls them.

    python benchmarks/polybench.py DIR... [--gpu h200] [-I DIR] [-D NAME=VALUE] [--only NAME]
    python benchmarks/polybench.py --jobs 16 pet/tests

Every C file with a region below the folders is one row: the seconds of each command as a fresh
process, and the outcome, or the first sentence of the command that ended it; the outcomes are
counted below. The files are taken as they are; folders that hold headers are given with ``-I``.
``polybench.txt`` in ``results`` is PolyBench/C 3.2 and the three programs of
github.com/mkongiv/eatss, and PolyBench/C 4.2.1 as
github.com/MatthiasJReisinger/PolyBenchC-4.2.1 has it; ``suites.txt`` has only the counts, those of
an earlier revision beside (``PYTHONPATH`` names the checkout to run).
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
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

COMMANDS = ("select", "codegen", "verify")
LIMIT_S = 600.0

_REGION = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+scop\b", re.MULTILINE)
_CODE = re.compile(r"\[(EATSS-\w+)\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A program: the seconds of the commands that ran, and what the last one of them said."""

    name: str
    seconds: tuple[float, ...]
    ok: bool
    outcome: str


def programs(folders: Sequence[Path]) -> Iterator[tuple[Path, Path]]:
    """Yield folders and the programs below them: C files with a region."""
    for folder in folders:
        for path in sorted(folder.rglob("*.c")):
            if path.parent.name == "utilities" or path.stem.endswith(".orig"):
                continue
            text = path.read_text(encoding="utf-8", errors="replace")
            if _REGION.search(text):
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


def counted(rows: Sequence[Row]) -> Iterator[str]:
    """Yield how many programs have each outcome, by the code of the error that ended it."""
    kinds = Counter(
        ", ".join([found.outcome.partition(":")[0], *_CODE.findall(found.outcome)[:1]])
        for found in rows
    )
    for kind, count in kinds.most_common():
        yield f"{count:>5} {kind}"


def main() -> None:
    """Take all programs and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folders", nargs="+", type=Path, metavar="DIR")
    parser.add_argument("--gpu", default="h200")
    parser.add_argument("-I", dest="includes", action="append", default=[], metavar="DIR")
    parser.add_argument("-D", dest="defines", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--only", action="append", help="only files of this name, without .c")
    parser.add_argument("--jobs", type=int, default=1, help="programs at a time")
    arguments = parser.parse_args()
    options = [f"-I{folder}" for folder in arguments.includes]
    options += [f"-D{define}" for define in arguments.defines]
    print(f"{arguments.gpu}; Python {platform.python_version()}, {os.cpu_count()} cores")
    print(f"{'program':<32}" + "".join(f"{c:>9}" for c in COMMANDS) + " [s]  outcome")

    def taken(one: tuple[Path, Path]) -> Row:
        folder, path = one
        found = row(f"{folder.name}/{path.stem}", path, arguments.gpu, options)
        times = "".join(f"{s:>9.1f}" for s in found.seconds).ljust(9 * len(COMMANDS))
        print(f"{found.name:<32}{times}      {found.outcome}", flush=True)
        return found

    with ThreadPoolExecutor(arguments.jobs) as pool:
        asked = [
            (folder, path)
            for folder, path in programs(arguments.folders)
            if not arguments.only or path.stem in arguments.only
        ]
        rows = list(pool.map(taken, asked))
    print(f"\n{sum(found.ok for found in rows)} of {len(rows)} verify", *counted(rows), sep="\n")


if __name__ == "__main__":
    main()
