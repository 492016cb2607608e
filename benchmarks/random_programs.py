"""Random programs through code generation, compared with the original: nothing wrong, dear, dead.

    python benchmarks/random_programs.py --count 1500 --jobs 4 --log programs.jsonl

Seeds take turns through the families of ``program_families.toml``, each generated for an H200 and
compared by ``eatss verify``, and ``mixed``: loops of ``tests/lower/test_property_programs.py`` for
a random card with random options, compared by ``random_runtime.hpp``, which shares nothing with
``eatss verify``, at sizes of its own, threads and blocks in ascending and in descending order;
integers wrap around, and others have ``strict_fp``, so results must be equal. Failures are printed
with their seed; ``--family NAME --seed S --count 1 --show`` prints a program. A run that is cut
short goes on from its ``--log``. Seconds are those of the processor, for generating. It needs gcc
and g++, and no card.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import Literal

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.program_families import FAMILIES, sample
from eatss.api import codegen
from eatss.base.diagnostics import InputError, NoSolutionError
from eatss.base.shipped import data_directory
from eatss.verify.run import verify
from tests.lower.test_property_programs import program

RUNTIME = Path(__file__).resolve().with_name("random_runtime.hpp")
SIZES = ((1, 1), (2, 3), (7, 5), (19, 8), (33, 16), (0, 4))
SLOW_S = 10.0
MIXED = "mixed"
CARDS = tuple(sorted(path.stem for path in data_directory("gpu_profiles").glob("*.toml")))


def mixed_program(seed: int) -> tuple[str, bool]:
    """Return the C text of a seed, its sizes arguments, and whether its numbers are integers."""
    found = map(program, count(1000 * seed))
    return next(one for one in found if "void f(int N, int M, " in one[0])


def driver(text: str) -> str:
    """Return a C++ program that runs original and generated code and compares them."""
    (element,) = re.findall(r"int M, (\w+) ", text)
    own, other = (", ".join(f"{name}[{at}]" for at in range(4)) for name in ("own", "other"))
    sizes = ", ".join(f"{{{n}, {m}}}" for n, m in SIZES)
    return f"""
typedef {element} number;
extern "C" void f(int, int, number *, number *, number *, number *);
int main() {{
    const int sizes[][2] = {{{sizes}}};
    for (auto &size : sizes)
        for (int order = 0; order < 2; order++) {{
            const size_t extent = 2 * size[0] + 2 * size[1] + 16;
            const size_t counts[4] = {{extent * extent, extent * extent, extent, extent}};
            number *own[4], *other[4];
            unsigned long state = 12345 + size[0];
            for (int a = 0; a < 4; a++) {{
                own[a] = new number[counts[a]], other[a] = new number[counts[a]];
                for (size_t k = 0; k < counts[a]; k++) {{
                    state = state * 6364136223846793005UL + 1442695040888963407UL;
                    own[a][k] = other[a][k] = (number)((long)(state >> 60) - 8);
                }}
            }}
            f(size[0], size[1], {own});
            descending = order;
            const int status = f_cuda(size[0], size[1], {other}, nullptr);
            if (status) {{ printf("refused %d %d %d\\n", size[0], size[1], status); continue; }}
            for (int a = 0; a < 4; a++)
                if (memcmp(own[a], other[a], counts[a] * sizeof(number)))
                    return printf("WRONG N=%d M=%d order %d\\n", size[0], size[1], order), 1;
        }}
    return 0;
}}
"""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a program; ``kind`` is ``ok``, a code, or what went wrong."""

    seed: int
    family: str
    kind: str
    seconds: float
    what: str = ""
    refused: int = 0


def _processor_s() -> float:
    """Return the seconds of the processor of this process and of those it waited for."""
    return sum(os.times()[:4])


def outcome(family: str, seed: int) -> Outcome:
    """Generate, compile, run and compare the program of a seed."""
    with tempfile.TemporaryDirectory() as folder:
        started = _processor_s()
        try:
            made = _mixed(seed) if family == MIXED else _of_family(family, seed, Path(folder))
        except (InputError, NoSolutionError) as error:
            code = error.diagnostics[0].code if isinstance(error, InputError) else "EATSS-M020"
            told = str(error).splitlines()[0]
            return Outcome(seed, family, code, _processor_s() - started, told)
        except Exception as error:
            return Outcome(seed, family, "CRASH", _processor_s() - started, repr(error)[:300])
        seconds = _processor_s() - started
        try:
            found = made(Path(folder))
        except Exception as error:
            return Outcome(seed, family, "CRASH", seconds, f"verify: {error!r}"[:300])
    kind = "WRONG" if "WRONG" in found or "failed" in found else "ok"
    if kind == "ok" and "UNFINISHED" in found:
        kind = "unfinished"
    if kind == "ok" and seconds > SLOW_S:
        kind = "slow"
    what = found.strip()[:300] if kind in ("WRONG", "unfinished") else ""
    return Outcome(seed, family, kind, seconds, what, found.count("refused"))


def _of_family(family: str, seed: int, folder: Path) -> Callable[[Path], str]:
    """Generate a program; return what compares it and says what is wrong."""
    made = sample(family, seed)
    codegen(made.text, gpu="h200", cache=False, output=folder / "out")

    def compared(folder: Path) -> str:
        found = verify(folder / "out", sizes=made.sizes, device="cpu")
        what = "UNFINISHED" if found.status == "timeout" else "WRONG"
        return "" if found.ok else f"{what} {found.status}: {found.message}"

    return compared


def _mixed(seed: int) -> Callable[[Path], str]:
    """Generate a program of any loops, for any card and options; return what compares it."""
    rng = random.Random(f"options {seed}")  # noqa: S311
    text, exact = mixed_program(seed)
    gpu = rng.choice(CARDS)
    strict = rng.random() < 0.3 or not exact
    index: Literal[64] | None = rng.choice((None, None, None, 64))
    generated = codegen(
        text,
        gpu=gpu,
        strict_fp=strict,
        index_bits=index,
        cache=False,
    )

    def compared(folder: Path) -> str:
        return _compared(folder, text, generated.text)

    return compared


def _compared(folder: Path, text: str, cuda: str) -> str:
    """Return what the comparison prints; ``failed`` in it where it does not end well."""
    (folder / "original.c").write_text(text, encoding="utf-8")
    main = f'#define EATSS_CPU\n#include "{RUNTIME}"\n{cuda}\n{driver(text)}'
    (folder / "main.cpp").write_text(main, encoding="utf-8")
    flags = ["-O1", "-fno-ivopts", "-w", "-fwrapv"]  # GCC 12 loses stores with -fivopts
    for command in (
        ["gcc", *flags, "-c", "original.c", "-o", "original.o"],
        ["g++", *flags, "-std=c++17", "main.cpp", "original.o", "-o", "main", "-lm"],
        ["./main"],
    ):
        try:
            done = subprocess.run(
                command, cwd=folder, capture_output=True, text=True, timeout=120, check=False
            )
        except subprocess.TimeoutExpired:
            return f"failed: {command[0]} takes over two minutes"
        if done.returncode:
            return f"failed: {command[0]} {done.returncode}: {done.stdout}{done.stderr}"
    return done.stdout


def outcomes(tasks: Sequence[tuple[str, int]], budget_s: float, jobs: int) -> Iterator[Outcome]:
    """Yield the outcomes of families and seeds until the budget is spent."""
    end = time.monotonic() + budget_s
    for start in range(0, len(tasks), 4 * jobs):
        if time.monotonic() > end:
            return
        some = tasks[start : start + 4 * jobs]
        try:
            with ProcessPoolExecutor(jobs) as pool:
                found = list(pool.map(outcome, *zip(*some, strict=True)))
        except BrokenProcessPool:
            found = [_alone(*task) for task in some]
        yield from found


def _alone(family: str, seed: int) -> Outcome:
    """Return the outcome of a seed in a process of its own, which may die."""
    try:
        with ProcessPoolExecutor(1) as pool:
            return pool.submit(outcome, family, seed).result()
    except BrokenProcessPool:
        return Outcome(seed, family, "CRASH", 0.0, "the process died")


def table(found: Sequence[Outcome]) -> Iterator[str]:
    """Yield the lines of a table: a family each, then all, then what was refused."""
    yield f"{'family':22}{'programs':>9}{'right':>7}{'refused':>9}{'P001':>6}{'wrong':>7}" + (
        f"{'crash':>7}{'slow':>6}{'no end':>8}{'mean s':>8}{'most s':>8}"
    )
    for family in (*dict.fromkeys(one.family for one in found), "all"):
        own = [one for one in found if family in (one.family, "all")]
        kinds = Counter(one.kind for one in own)
        refused = sum(number for kind, number in kinds.items() if kind.startswith("EATSS-"))
        seconds = [one.seconds for one in own]
        yield (
            f"{family:22}{len(own):9}{kinds['ok']:7}{refused:9}{kinds['EATSS-P001']:6}"
            f"{kinds['WRONG']:7}{kinds['CRASH']:7}{kinds['slow']:6}{kinds['unfinished']:8}"
            f"{sum(seconds) / len(own):8.1f}{max(seconds):8.1f}"
        )
    codes = Counter(one.kind for one in found if one.kind.startswith("EATSS-"))
    yield f"refused: {', '.join(f'{code} {n}' for code, n in codes.most_common()) or 'none'}"
    yield f"{sum(one.refused for one in found)} runs refused by launchers"


def main() -> None:
    """Try programs and print what became of them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = (MIXED, *FAMILIES)
    parser.add_argument("--seed", type=int, default=0, help="the first one")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--family", action="append", choices=names, help="only these")
    parser.add_argument("--budget", type=float, default=600.0, help="seconds in all")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--log", type=Path, help="outcomes, a line each; those there are kept")
    parser.add_argument("--show", action="store_true", help="print the programs")
    options = parser.parse_args()
    families = options.family or names
    seeds = range(options.seed, options.seed + options.count)
    tasks = [(families[seed % len(families)], seed) for seed in seeds]
    known = [] if options.log is None or not options.log.exists() else _logged(options.log)
    found = [one for one in known if (one.family, one.seed) in set(tasks)]
    done = {(one.family, one.seed) for one in found}
    for one in outcomes([t for t in tasks if t not in done], options.budget, options.jobs):
        found.append(one)
        if options.log is not None:
            with options.log.open("a", encoding="utf-8") as log:
                log.write(json.dumps(asdict(one)) + "\n")
        if one.kind != "ok":
            told = f"seed {one.seed} of {one.family}: {one.kind} after {one.seconds:.1f} s"
            print(told, one.what, flush=True)
        if options.show:
            mixed = one.family == MIXED
            print(mixed_program(one.seed)[0] if mixed else sample(one.family, one.seed).text)
    print("\n".join(table(found)))


def _logged(log: Path) -> list[Outcome]:
    return [Outcome(**json.loads(line)) for line in log.read_text(encoding="utf-8").splitlines()]


if __name__ == "__main__":
    main()
