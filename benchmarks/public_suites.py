"""Programs of public suites: which give code, which of it verify finds right, why not the others.

    python benchmarks/public_suites.py TSVC_2=loops pet=pet/tests nn=PolyBench-NN:nn/utilities

A suite is a name and the folder with its C files (of TSVC_2 a file a loop), after colons the
folders of its headers. Files without ``#pragma scop`` are left out. Each program is generated for
an H200 and compared by ``eatss verify --device cpu``; the table of counts is followed by the
reasons, each program under the first error that it ends in. With ``--revision`` the same is done
with another checkout of this project, whose counts stand beside. Nothing of a suite is kept here.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIMIT_S = 120
VERDICTS = {0: "ok", 3: "incomplete"}
_ERROR = re.compile(r"error: (?P<message>.*) \[(?P<code>EATSS-\w+)\]")


@dataclass(frozen=True)
class Outcome:
    """What became of a program: ``code`` and what verify says, or the error."""

    code: bool
    verdict: str = ""
    reason: str = ""


@dataclass(frozen=True)
class Suite:
    """C files that belong together."""

    name: str
    folder: Path
    headers: tuple[Path, ...]

    @classmethod
    def parsed(cls, text: str) -> Suite:
        """Read ``NAME=FOLDER:HEADERS:...``."""
        name, _, places = text.partition("=")
        folder, *headers = (Path(place).resolve() for place in places.split(":"))
        return cls(name, folder, tuple(headers))

    def programs(self) -> list[Path]:
        """Return the files with a region."""
        files = sorted(self.folder.rglob("*.c"))
        return [f for f in files if "#pragma scop" in f.read_text(errors="replace")]


def ran(root: Path, *arguments: str) -> tuple[int, str]:
    """Run a command of the project at ``root``; return its exit code and what it says."""
    search = os.pathsep.join([str(root), *filter(None, [os.environ.get("PYTHONPATH")])])
    try:
        done = subprocess.run(
            [sys.executable, "-m", "eatss", *arguments],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=LIMIT_S,
            env={**os.environ, "PYTHONPATH": search, "COLUMNS": "1000"},
            check=False,
        )
    except subprocess.TimeoutExpired:
        return -1, f"error: over {LIMIT_S} s [EATSS-TIME]"
    return done.returncode, done.stdout + done.stderr


def outcome(root: Path, program: Path, headers: Sequence[Path]) -> Outcome:
    """Generate a program and compare it."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = str(Path(scratch) / "code")
        include = [f"-I{place}" for place in (program.parent, *headers)]
        options = ["--gpu", "h200", "--no-cache", "-o", folder]
        status, said = ran(root, "codegen", str(program), *options, *include)
        found = _ERROR.search(said)
        reason = f"{found['code']} {found['message']}" if found else f"exit code {status}"
        if status:
            return Outcome(code=False, reason=reason)
        status, said = ran(root, "verify", folder, "--device", "cpu")
        found = _ERROR.search(said)
        return Outcome(code=True, verdict=VERDICTS.get(status, found["code"] if found else "wrong"))


def outcomes(root: Path, suite: Suite, jobs: int) -> dict[str, Outcome]:
    """Return what becomes of each program of a suite."""
    programs = suite.programs()
    with ThreadPoolExecutor(jobs) as pool:
        made = pool.map(lambda program: outcome(root, program, suite.headers), programs)
        return {str(p.relative_to(suite.folder)): o for p, o in zip(programs, made, strict=True)}


def printed(suite: Suite, now: dict[str, Outcome], before: dict[str, Outcome] | None) -> None:
    """Print a suite's line of the table, then its reasons."""
    code = sum(o.code for o in now.values())
    verdicts = Counter(o.verdict for o in now.values() if o.code)
    was = f", {sum(o.code for o in before.values())} before" if before is not None else ""
    print(f"{suite.name}: {len(now)} programs, {code} give code{was}; verify: ", end="")
    print(", ".join(f"{n} {verdict}" for verdict, n in verdicts.most_common()) or "-")
    reasons = defaultdict(list)
    for name, found in now.items():
        if not found.code or found.verdict not in VERDICTS.values():
            reasons[found.reason or f"verify: {found.verdict}"].append(name)
    for reason, names in sorted(reasons.items(), key=lambda item: (-len(item[1]), item[0])):
        print(f"    {reason}: {', '.join(names)}")
    for name, found in (before or {}).items():
        if found.code and not now[name].code:
            print(f"    gave code before: {name}")
    print(flush=True)


def main() -> None:
    """Print what the suites that were named give."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suites", nargs="+", type=Suite.parsed, metavar="NAME=FOLDER[:HEADERS]")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--revision", type=Path, help="another checkout, to compare with")
    arguments = parser.parse_args()
    for suite in arguments.suites:
        now = outcomes(ROOT, suite, arguments.jobs)
        other = arguments.revision
        before = outcomes(other.resolve(), suite, arguments.jobs) if other else None
        printed(suite, now, before)


if __name__ == "__main__":
    main()
