"""Random programs through code generation, compared with the original by a runtime of their own.

    python benchmarks/random_programs.py --count 5000 --budget 3600      # prints a table

Each program is generated for a random card with random options, compiled for the CPU with
``random_runtime.hpp`` (which shares nothing with ``eatss verify``), and run at sizes of its own,
threads and blocks in ascending and in descending order. Its numbers are integers that wrap around,
so results must be equal. Failures are printed with their seed; ``--seed S --count 1 --show``
prints a program. Seconds are those of the processor. It needs gcc and g++, and no card.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from eatss.api import codegen
from eatss.diagnostics import InputError, NoSolutionError
from eatss.resources import data_directory

RUNTIME = Path(__file__).resolve().with_name("random_runtime.hpp")
SIZES = ((1, 1), (2, 3), (7, 5), (19, 8), (33, 16), (0, 4))
EXTENT = 120
"""Elements of an array in each dimension; no subscript leaves them for ``SIZES``."""

SLOW_S = 10.0
CARDS = tuple(sorted(path.stem for path in data_directory("gpu_profiles").glob("*.toml")))
COUNTERS = ("i", "j", "k", "l")


@dataclass
class Writer:
    """Writes the loops of a program from a stream of random numbers."""

    rng: random.Random
    lines: list[str] = field(default_factory=list)
    scalars: int = 0

    def add(self, depth: int, text: str) -> None:
        """Add a line."""
        self.lines.append("    " * (depth + 1) + text)

    def subscript(self, counters: list[str]) -> str:
        """Return a subscript that stays inside."""
        one, two = self.rng.choice(counters), self.rng.choice(counters)
        usual = [one] * 8
        rare = [f"{one} + {self.rng.randint(1, 9)}", f"{one} + {two}", f"2 * {one}", f"{one} / 3",
                f"{one} % 5", f"N - {one} + 40", str(self.rng.randint(0, 3))]  # fmt: skip
        return self.rng.choice(usual + rare)

    def element(self, counters: list[str]) -> str:
        """Return an element of an array."""
        name = self.rng.choice("ABBxy")
        first = f"{name}[{self.subscript(counters)}]"
        return first if name in "xy" else f"{first}[{self.subscript(counters)}]"

    def value(self, counters: list[str]) -> str:
        """Return a right-hand side."""
        terms = [self.element(counters) for _ in range(self.rng.randint(1, 3))]
        if self.rng.random() < 0.3:
            terms.append(self.rng.choice(["3", "N", self.rng.choice(counters)]))
        return f" {self.rng.choice('+-*')} ".join(terms)

    def head(self, counters: list[str]) -> str:
        """Return a loop."""
        c, size = COUNTERS[len(counters)], self.rng.choice("NNM")
        outer = self.rng.choice([*counters, "1"])
        return self.rng.choice(
            [f"for (int {c} = 0; {c} < {size}; {c}++)"] * 6
            + [
                f"for (int {c} = {outer}; {c} < {size}; {c}++)",
                f"for (int {c} = 0; {c} < {outer}; {c}++)",
                f"for (int {c} = {size} / {self.rng.randint(2, 90)}; {c} < {size}; {c}++)",
                f"for (int {c} = 0; {c} < {size}; {c} += {self.rng.randint(2, 40)})",
                f"for (int {c} = {size} - 1; {c} >= 0; {c}--)",
                f"for (int {c} = 2; {c} < {self.rng.randint(3, 20)}; {c}++)",
            ]
        )

    def condition(self, counters: list[str]) -> str:
        """Return a condition."""
        one, two = self.rng.choice(counters), self.rng.choice([*counters, "N", "M"])
        return self.rng.choice(
            [f"{one} < {two}", f"{one} % 3 == 1", f"{one} != {two}", f"{one} + 2 <= {two}"]
        )

    def statement(self, counters: list[str], element: str) -> None:
        """Add a statement, a sum in a scalar or a scalar of the iteration."""
        depth, kind = len(counters), self.rng.randrange(10)
        if kind < 2 and depth < len(COUNTERS):
            name = f"s{self.scalars}"
            self.scalars += 1
            self.add(depth, f"{element} {name} = {self.element(counters)};")
            self.add(depth, self.head(counters))
            inner = [*counters, COUNTERS[depth]]
            self.add(depth + 1, f"{name} {self.rng.choice('+-*')}= {self.value(inner)};")
            self.add(depth, f"{self.element(counters)} = {name};")
        elif kind == 2:
            name = f"s{self.scalars}"
            self.scalars += 1
            self.add(depth, f"{element} {name} = {self.value(counters)};")
            self.add(depth, f"{self.element(counters)} += {name} * 3;")
        else:
            if kind == 3:
                self.add(depth, f"if ({self.condition(counters)})")
            sign = self.rng.choice(["=", "=", "+=", "+=", "-=", "*="])
            self.add(
                depth + (kind == 3), f"{self.element(counters)} {sign} {self.value(counters)};"
            )

    def nest(self, counters: list[str], element: str) -> None:
        """Add a loop with what is in it."""
        self.add(len(counters), self.head(counters) + " {")
        inner = [*counters, COUNTERS[len(counters)]]
        for _ in range(self.rng.choice((1, 1, 1, 2))):
            if len(inner) < 3 and self.rng.random() < 0.6:
                self.nest(inner, element)
            else:
                self.statement(inner, element)
        self.add(len(counters), "}")


def program(seed: int) -> str:
    """Return the C text of a seed."""
    rng = random.Random(f"program {seed}")  # noqa: S311
    element = rng.choice(("int", "long", "unsigned int"))
    writer = Writer(rng)
    for _ in range(rng.choice((1, 1, 2))):
        writer.nest([], element)
    shape = f"[{EXTENT}]"
    return (
        f"void f(int N, int M, {element} A{shape}{shape}, {element} B{shape}{shape},\n"
        f"       {element} x{shape}, {element} y{shape})\n{{\n#pragma scop\n"
        + "\n".join(writer.lines)
        + "\n#pragma endscop\n}\n"
    )


def driver(text: str) -> str:
    """Return a C++ program that runs original and generated code and compares them."""
    element = re.findall(r"int M, (.*?) A\[", text)[0]
    square, line = f"(*)[{EXTENT}]", "*"
    casts = [f"({element} {shape})" for shape in (square, square, line, line)]
    own = ", ".join(f"{cast}own[{at}]" for at, cast in enumerate(casts))
    device = ", ".join(f"other[{at}]" for at in range(4))
    sizes = ", ".join(f"{{{n}, {m}}}" for n, m in SIZES)
    return f"""
typedef {element} number;
extern "C" void f(int, int, number (*)[{EXTENT}], number (*)[{EXTENT}], number *, number *);
int main() {{
    const int sizes[][2] = {{{sizes}}};
    const size_t counts[4] = {{{EXTENT} * {EXTENT}, {EXTENT} * {EXTENT}, {EXTENT}, {EXTENT}}};
    for (auto &size : sizes)
        for (int order = 0; order < 2; order++) {{
            number *own[4], *other[4];
            unsigned long state = 12345 + size[0];
            for (int a = 0; a < 4; a++) {{
                own[a] = new number[counts[a]], other[a] = new number[counts[a]];
                for (size_t k = 0; k < counts[a]; k++) {{
                    state = state * 6364136223846793005UL + 1442695040888963407UL;
                    own[a][k] = other[a][k] = (number)(state >> 60) - 8;
                }}
            }}
            f(size[0], size[1], {own});
            descending = order;
            const int status = f_cuda(size[0], size[1], {device}, nullptr);
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
    kind: str
    seconds: float
    what: str = ""
    refused: int = 0


def _processor_s() -> float:
    """Return the seconds of the processor of this process and of those it waited for."""
    return sum(os.times()[:4])


def outcome(seed: int) -> Outcome:
    """Generate, compile, run and compare the program of a seed."""
    rng = random.Random(f"options {seed}")  # noqa: S311
    text = program(seed)
    gpu = rng.choice(CARDS)
    strict = rng.random() < 0.3
    index: Literal[64] | None = rng.choice((None, None, None, 64))
    changes = ("swizzle",) if rng.random() < 0.5 else ()
    started = _processor_s()
    try:
        generated = codegen(
            text,
            gpu=gpu,
            strict_fp=strict,
            index_bits=index,
            transformations=changes,
            cache=False,
        )
    except (InputError, NoSolutionError) as error:
        code = error.diagnostics[0].code if isinstance(error, InputError) else "EATSS-M020"
        return Outcome(seed, code, _processor_s() - started, str(error).splitlines()[0])
    except Exception as error:
        return Outcome(seed, "CRASH", _processor_s() - started, f"{gpu}: {error!r}"[:300])
    seconds = _processor_s() - started
    kind, what, refused = "ok", "", 0
    with tempfile.TemporaryDirectory() as folder:
        made = _compared(Path(folder), text, generated.text)
    refused = made.count("refused")
    if "WRONG" in made or "failed" in made:
        kind, what = "WRONG", f"{gpu}, strict {strict}, index {index}: {made.strip()[:300]}"
    elif seconds > SLOW_S:
        kind = "slow"
    return Outcome(seed, kind, seconds, what, refused)


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


def outcomes(first: int, count: int, budget_s: float, jobs: int) -> Iterator[Outcome]:
    """Yield the outcomes of seeds from ``first`` on until the budget is spent."""
    end = time.monotonic() + budget_s
    for start in range(first, first + count, 8 * jobs):
        if time.monotonic() > end:
            return
        seeds = range(start, min(start + 8 * jobs, first + count))
        try:
            with ProcessPoolExecutor(jobs) as pool:
                found = list(pool.map(outcome, seeds))
        except BrokenProcessPool:
            found = [_alone(seed) for seed in seeds]
        yield from found


def _alone(seed: int) -> Outcome:
    """Return the outcome of a seed in a process of its own, which may die."""
    try:
        with ProcessPoolExecutor(1) as pool:
            return pool.submit(outcome, seed).result()
    except BrokenProcessPool:
        return Outcome(seed, "CRASH", 0.0, "the process died")


def main() -> None:
    """Try programs and print what became of them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=0, help="the first one")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--budget", type=float, default=600.0, help="seconds in all")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--show", action="store_true", help="print the programs")
    options = parser.parse_args()
    kinds: Counter[str] = Counter()
    slowest, refused = 0.0, 0
    for one in outcomes(options.seed, options.count, options.budget, options.jobs):
        kinds[one.kind] += 1
        slowest, refused = max(slowest, one.seconds), refused + one.refused
        if one.kind in ("WRONG", "CRASH", "slow"):
            print(f"seed {one.seed}: {one.kind} after {one.seconds:.1f} s {one.what}", flush=True)
        if options.show:
            print(program(one.seed))
    total = sum(kinds.values())
    print(f"{total} programs from seed {options.seed}")
    for kind, number in kinds.most_common():
        print(f"  {kind:12} {number:6} {number / total:7.2%}")
    print(f"longest generation {slowest:.1f} s; {refused} runs refused by launchers")


if __name__ == "__main__":
    main()
