"""Prints how long code for large ordinary programs takes, and that it is right.

    python benchmarks/large_programs.py [NAME …]

They are dense stencils, layers of networks, contractions, many statements: a row each, with
seconds of the processor and what verification on the CPU says. Needs no GPU.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Sequence
from itertools import product
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import eatss
from eatss.verify.run import verify

_REGION = "#pragma scop\n{}\n#pragma endscop\n"


def function(parameters: str, body: str) -> str:
    """Return a function whose body is one region."""
    return f"void f({parameters}) {{\n{_REGION.format(body)}}}\n"


def loops(*heads: str) -> str:
    """Return loops around each other: ``i N`` from 0, ``i 1 N`` from 1."""
    texts = []
    for head in heads:
        counter, *lower, upper = head.split(" ")
        low = lower[0] if lower else "0"
        texts.append(f"for (int {counter} = {low}; {counter} < {upper}; {counter}++)")
    return "\n".join(texts)


def taps(counters: str, radius: int, element: str, kept: Sequence[int] | None = None) -> str:
    """Return the weighted sum of all elements around one; ``element`` has its subscripts as {}."""
    offsets = list(product(range(-radius, radius + 1), repeat=len(counters)))
    if kept is not None:
        offsets = [offsets[k] for k in kept if k < len(offsets)]
    terms = []
    for number, offset in enumerate(offsets):
        own = [f"[{c} {o:+d}]" if o else f"[{c}]" for c, o in zip(counters, offset, strict=True)]
        terms.append(f"0.{number + 11:03d}f * {element.format(''.join(own))}")
    return "\n        + ".join(terms)


def stencil(dims: int, radius: int, *, buffered: bool, kept: Sequence[int] | None = None) -> str:
    """Return a box stencil, out of place or on two buffers in turns."""
    counters = "ijk"[:dims]
    heads = [f"{c} {radius} n-{radius}" for c in counters]
    extent = "[n]" * dims
    here = "".join(f"[{c}]" for c in counters)
    if buffered:
        body = loops("t T", *heads) + f"\nA[(t + 1) % 2]{here} = "
        body += taps(counters, radius, "A[t % 2]{}", kept) + ";"
        return function(f"int n, int T, float A[2]{extent}", body)
    body = loops(*heads) + f"\nB{here} = " + taps(counters, radius, "A{}", kept) + ";"
    return function(f"int n, float A{extent}, float B{extent}", body)


PROGRAMS: dict[str, str] = {
    "box 81": stencil(2, 4, buffered=False),
    "box 49 in turns": stencil(2, 3, buffered=True),
    "box 81 in turns": stencil(2, 4, buffered=True),
    "box 125 in turns": stencil(3, 2, buffered=True),
    "box 125": stencil(3, 2, buffered=False),
    "box 343": stencil(3, 3, buffered=False),
    "box 343 in turns": stencil(3, 3, buffered=True),
    "scattered 40 in turns": stencil(3, 3, buffered=True, kept=range(0, 343, 8)),
    **{
        path.stem.replace("-", " "): path.read_text(encoding="utf-8")
        for path in sorted((Path(__file__).parent / "large").glob("*.c"))
    },
}
"""Texts by name: stencils, and what is in ``large``."""


def main() -> None:
    """Generate and verify the programs that are named, or all of them."""
    if not PROGRAMS.keys() >= {*sys.argv[1:]}:
        sys.exit(f"programs are {', '.join(PROGRAMS)}")
    for name in sys.argv[1:] or PROGRAMS:
        with tempfile.TemporaryDirectory() as folder:
            before = os.times()
            eatss.codegen(PROGRAMS[name], gpu="h200", cache=False, output=Path(folder) / "out")
            seconds = sum(os.times()[:4]) - sum(before[:4])
            print(f"{name:26} {seconds:7.1f} s  {verify(Path(folder) / 'out').status}", flush=True)


if __name__ == "__main__":
    main()
