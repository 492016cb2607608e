"""Prints what `eatss select` does with inputs of just under 4 MiB that are hard to read.

    python benchmarks/large_inputs.py [--command select] [NAME ...]

One row each: exit code, seconds of the processor, the most memory, and the first sentence it said.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

LARGEST = 4 * 1024 * 1024
HEAD = "void f(int n, double A[n], double B[n]) {\n#pragma scop\n"
TAIL = "#pragma endscop\n}\n"
LOOP = "for (int i = 0; i < n; i++) "
PLAIN = HEAD + LOOP + "A[i] = B[i];\n" + TAIL
SMALL_REGION = "#pragma scop\n" + LOOP + "A[i] = B[i];\n#pragma endscop\n"


def repeated(before: str, unit: str, after: str) -> str:
    """Return a text of nearly the largest size."""
    return before + unit * ((LARGEST - len(before) - len(after)) // len(unit)) + after


def inputs() -> Iterator[tuple[str, str]]:
    """Yield names and texts."""
    doubling = "".join(f"#define A{k + 1} (A{k} + A{k})\n" for k in range(24))
    conditions = "".join(f" && i != {k}" for k in range(280_000))
    arrays = "".join(f", double A{k}[n]" for k in range(100_000))
    yield "one long comment", repeated("/*", "x", "*/\n" + PLAIN)
    yield "180 000 macros", "".join(f"#define M{k} {k}\n" for k in range(180_000)) + PLAIN
    yield "a macro that doubles", "#define A0 B[i]\n" + doubling + PLAIN.replace("B[i]", "A24")
    yield "a long sum", repeated(HEAD + LOOP + "A[i] = B[i]", " + B[i]", ";\n" + TAIL)
    yield "a long condition", HEAD + LOOP + f"if (i > 0{conditions}) A[i] = 1;\n" + TAIL
    yield "many statements", repeated(HEAD + LOOP + "{\n", "A[i] = 2 * B[i];\n", "}\n" + TAIL)
    yield "many regions", repeated(HEAD.split("#", maxsplit=1)[0], SMALL_REGION, "}\n")
    yield "many functions", repeated("", "static void g(void) { return; }\n", PLAIN)
    yield "many arrays", PLAIN.replace(", double A[n]", ", double A[n]" + arrays)
    yield "deep brackets", PLAIN.replace("B[i]", "(" * 2_000_000 + "B[i]" + ")" * 2_000_000)
    yield (
        "deep conditions",
        PLAIN.replace("A[i] = B[i];", "if (i > 1) { " * 250_000 + "A[i] = B[i];" + "}" * 250_000),
    )
    yield "zeros", "\0" * LARGEST


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="only these")
    parser.add_argument("--command", choices=("select", "codegen", "inspect"), default="select")
    options = parser.parse_args()
    print("input                  MiB  exit  CPU [s]  memory [MiB]  first sentence")
    for name, text in inputs():
        if options.names and name not in options.names:
            continue
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "input.c"
            path.write_text(text, encoding="utf-8")
            command = [sys.executable, "-m", "eatss", options.command, "input.c"]
            if options.command != "inspect":
                command += ["--gpu", "a100", "--no-cache"]
            if options.command == "codegen":
                command += ["-o", "out"]
            child = subprocess.Popen(
                command, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
            )
            said = child.stdout.read() if child.stdout else ""
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
        first = (said.strip().splitlines() or [""])[0]
        print(
            f"{name:21} {len(text) / 2**20:4.1f} {child.returncode:5} "
            f"{usage.ru_utime + usage.ru_stime:8.1f} {usage.ru_maxrss / 1024:13.0f}  {first[:70]}",
            flush=True,
        )


if __name__ == "__main__":
    main()
