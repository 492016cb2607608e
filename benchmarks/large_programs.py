"""Prints how long code for large ordinary programs takes, and that it is right.

    python benchmarks/large_programs.py [NAME …]

They are dense stencils, layers of networks, contractions, many statements: a row each, with
seconds of the processor and what verification on the CPU says. Needs no GPU.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
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


_SEVEN = "int NB, int K, int C, int H, int W, int R, int S"


def convolution(
    image: str,
    *,
    stride: int = 1,
    kind: str = "float",
    first: str = "0",
    guard: str = "",
    extents: str = "",
) -> str:
    """Return a layer with all sizes as arguments; ``image`` has the subscripts of what is read."""
    extents = extents or f"[{stride} * H + R][{stride} * W + S]"
    cast = "(float)" if kind != "float" else ""
    body = (
        loops("n NB", "k K", "y H", "x W")
        + f" {{\nout[n][k][y][x] = {first};\n"
        + loops("c C", "r R", "s S")
        + f"\n{guard}out[n][k][y][x] += {cast}in[n][c]{image} * {cast}w[k][c][r][s];\n}}"
    )
    arrays = f"float out[NB][K][H][W], {kind} in[NB][C]{extents}, {kind} w[K][C][R][S]"
    return function(f"{_SEVEN}, {arrays}, float bias[K]", body)


def chain(length: int) -> str:
    """Return many statements of one element, each of the one before."""
    lines = [f"b[i] = a[i] * 0.{k + 11}f + b[i];" if k % 2 else f"a[i] = b[i] - 0.{k + 11}f * a[i];"
             for k in range(length)]  # fmt: skip
    return function("int n, float a[n], float b[n]", loops("i n") + " {\n" + "\n".join(lines) + "}")


def separate_loops(count: int) -> str:
    """Return many loops, each over an array that the one before has written."""
    body = "\n".join(
        f"{loops('i n', 'j n')} x{k + 1}[i][j] = x{k}[i][j] * 0.5f + x{max(k - 1, 0)}[i][j];"
        for k in range(count)
    )
    arrays = ", ".join(f"float x{k}[n][n]" for k in range(count + 1))
    return function(f"int n, {arrays}", body)


def fields() -> str:
    """Return electromagnetic fields in three dimensions, six arrays and as many coefficients."""
    heads = loops("i 1 n-1", "j 1 n-1", "k 1 n-1")
    curls = {
        "ex": "hz[i][j][k] - hz[i][j-1][k] - hy[i][j][k] + hy[i][j][k-1]",
        "ey": "hx[i][j][k] - hx[i][j][k-1] - hz[i][j][k] + hz[i-1][j][k]",
        "ez": "hy[i][j][k] - hy[i-1][j][k] - hx[i][j][k] + hx[i][j-1][k]",
        "hx": "ey[i][j][k+1] - ey[i][j][k] - ez[i][j+1][k] + ez[i][j][k]",
        "hy": "ez[i+1][j][k] - ez[i][j][k] - ex[i][j][k+1] + ex[i][j][k]",
        "hz": "ex[i][j+1][k] - ex[i][j][k] - ey[i+1][j][k] + ey[i][j][k]",
    }
    updates = "\n".join(
        f"{heads} {name}[i][j][k] = c{name}[i][j][k] * {name}[i][j][k] + d{name}[i][j][k] * ({of});"
        for name, of in curls.items()
    )
    names = [f"{p}{name}" for name in curls for p in ("", "c", "d")]
    arrays = ", ".join(f"float {name}[n][n][n]" for name in names)
    return function(f"int n, int T, {arrays}", f"{loops('t T')} {{\n{updates}\n}}")


def contraction(free: str, summed: str, left: str, right: str) -> str:
    """Return a product of tensors over several indices, all sizes as arguments."""
    sizes = {index: f"N{index}" for index in free + summed}

    def element(name: str, indices: str) -> str:
        return name + "".join(f"[{index}]" for index in indices)

    def declared(name: str, indices: str) -> str:
        return f"double {name}" + "".join(f"[{sizes[index]}]" for index in indices)

    nest = loops(*(f"{index} {sizes[index]}" for index in free + summed))
    update = f"{element('O', free)} += {element('L', left)} * {element('M', right)};"
    arrays = ", ".join((declared("O", free), declared("L", left), declared("M", right)))
    return function(
        f"{', '.join(f'int {n}' for n in sizes.values())}, {arrays}", f"{nest}\n{update}"
    )


def four_index(size: int) -> str:
    """Return four contractions in turn, each over one index of a tensor."""
    names = ("g", "a", "b", "c", "out")
    old, new = "pqrs", "wxyz"
    parts = []
    for step in range(4):
        left = new[: step + 1] + old[step + 1 :]
        right = new[:step] + old[step:]
        nest = loops(*(f"{index} {size}" for index in (*left, old[step])))
        at = "".join(f"[{index}]" for index in left)
        of = "".join(f"[{index}]" for index in right)
        factor = f"u[{new[step]}][{old[step]}]"
        parts.append(f"{nest}\n{names[step + 1]}{at} += {factor} * {names[step]}{of};")
    extent = f"[{size}]" * 4
    arrays = ", ".join(f"double {name}{extent}" for name in names)
    return function(f"{arrays}, double u[{size}][{size}]", "\n".join(parts))


def _convolutions() -> Iterator[tuple[str, str]]:
    flipped = "[y + R - 1 - r][x + S - 1 - s]"
    yield "conv", convolution("[y + r][x + s]")
    yield "conv strided", convolution("[2 * y + r][2 * x + s]", stride=2)
    yield "conv strided once", convolution("[y + r][2 * x + s]", stride=2, first="bias[k]")
    yield "conv flipped", convolution(flipped)
    yield "conv halves", convolution(flipped, kind="_Float16", first="bias[k]", stride=2)
    yield "conv dilated", convolution("[y + 2 * r][x + 3 * s]", extents="[H + 2 * R][W + 3 * S]")
    guard = "if (y + r >= 1 && y + r <= H && x + s >= 1 && x + s <= W)\n"
    yield "conv padded", convolution("[y + r - 1][x + s - 1]", guard=guard, extents="[H][W]")
    body = loops("n NB", "k K", "c C", "y H", "x W", "r R", "s S")
    image = "in[n][c][y + r][x + s]"
    of = "float out[NB][K][H][W], float in[NB][C][H + R][W + S], float w[K][C][R][S]"
    weights = f"{body}\nw[k][c][r][s] += out[n][k][y][x] * {image};"
    yield "conv gradient of weights", function(f"{_SEVEN}, {of}", weights)
    data = f"{body}\n{image} += out[n][k][y][x] * w[k][c][r][s];"
    yield "conv gradient of data", function(f"{_SEVEN}, {of}", data)
    last = "float out[NB][H][W][K], float in[NB][H + R][W + S][C], float w[R][S][C][K]"
    nest = loops("n NB", "y H", "x W", "k K", "r R", "s S", "c C")
    update = "out[n][y][x][k] += in[n][y + r][x + s][c] * w[r][s][c][k];"
    yield "conv channels last", function(f"{_SEVEN}, {last}", f"{nest}\n{update}")
    depth = "float out[NB][C][H][W], float in[NB][C][H + R][W + S], float w[C][R][S]"
    nest = loops("n NB", "c C", "y H", "x W", "r R", "s S")
    update = "out[n][c][y][x] += in[n][c][y + r][x + s] * w[c][r][s];"
    sizes = _SEVEN.replace("int K, ", "")
    yield "conv depthwise", function(f"{sizes}, {depth}", f"{nest}\n{update}")
    grouped = "float out[NB][G][K][H][W], float in[NB][G][C][H + R][W + S], float w[G][K][C][R][S]"
    nest = loops("n NB", "g G", "k K", "y H", "x W", "c C", "r R", "s S")
    update = "out[n][g][k][y][x] += in[n][g][c][y + r][x + s] * w[g][k][c][r][s];"
    yield "conv groups", function(f"int G, {_SEVEN}, {grouped}", f"{nest}\n{update}")
    up = "float out[NB][K][2 * H + R][2 * W + S], float in[NB][C][H][W], float w[C][K][R][S]"
    nest = loops("n NB", "c C", "k K", "y H", "x W", "r R", "s S")
    update = "out[n][k][2 * y + r][2 * x + s] += in[n][c][y][x] * w[c][k][r][s];"
    yield "conv transposed", function(f"{_SEVEN}, {up}", f"{nest}\n{update}")


def _nests() -> Iterator[tuple[str, str]]:
    yield "contraction of 6", contraction("abcd", "ef", "aecf", "ebfd")
    yield "contraction of 7", contraction("abcd", "efg", "aebfg", "cgdef")
    yield "contraction of 8", contraction("abcdef", "gh", "agbhc", "dgehf")
    yield "four index", four_index(100)
    triangle = loops("i n", "j i n", "k j n", "l k n", "m l n")
    yield (
        "triangles in triangles",
        function("int n, float a[n][n], float b[n][n][n]", f"{triangle}\na[i][j] += b[k][l][m];"),
    )
    six = loops(*(f"{c} N{c}" for c in "abcdef"))
    extents = "".join(f"[N{c}]" for c in "abcdef")
    at = "".join(f"[{c}]" for c in "abcdef")
    transposed = "".join(f"[{c}]" for c in "fbdcea")
    other = "".join(f"[N{c}]" for c in "fbdcea")
    sizes = ", ".join(f"int N{c}" for c in "abcdef")
    yield (
        "transposed 6",
        function(f"{sizes}, float x{extents}, float y{other}", f"{six}\ny{transposed} = x{at};"),
    )


PROGRAMS: dict[str, str] = {
    "box 81": stencil(2, 4, buffered=False),
    "box 49 in turns": stencil(2, 3, buffered=True),
    "box 81 in turns": stencil(2, 4, buffered=True),
    "box 125 in turns": stencil(3, 2, buffered=True),
    "box 125": stencil(3, 2, buffered=False),
    "box 343": stencil(3, 3, buffered=False),
    "box 343 in turns": stencil(3, 3, buffered=True),
    "scattered 40 in turns": stencil(3, 3, buffered=True, kept=range(0, 343, 8)),
    "chain 30": chain(30),
    "loops 24": separate_loops(24),
    "fields": fields(),
    **dict(_convolutions()),
    **dict(_nests()),
}
"""Texts by name."""


def main() -> None:
    """Generate and verify the programs that are named, or all of them."""
    for name in sys.argv[1:] or PROGRAMS:
        with tempfile.TemporaryDirectory() as folder:
            before = os.times()
            eatss.codegen(PROGRAMS[name], gpu="h200", cache=False, output=Path(folder) / "out")
            seconds = sum(os.times()[:4]) - sum(before[:4])
            print(f"{name:26} {seconds:7.1f} s  {verify(Path(folder) / 'out').status}", flush=True)


if __name__ == "__main__":
    main()
