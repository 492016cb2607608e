"""Families of random programs: what people write, at random; a text and the sizes to verify at.

Each family is a function from random numbers to a :class:`Sample`. Subscripts stay inside arrays
for the sizes that a sample names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from random import Random

Sizes = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Sample:
    """A program: its C text, and the sizes at which it is compared with the original."""

    text: str
    sizes: tuple[Sizes, ...]


def _region(body: str) -> str:
    return f"#pragma scop\n{body}\n#pragma endscop\n"


def _function(parameters: str, *bodies: str, before: str = "", local: str = "") -> str:
    regions = "".join(map(_region, bodies))
    return f"{before}void f({parameters})\n{{\n{local}{regions}}}\n"


def _loop(counter: str, upper: str, lower: str = "0") -> str:
    return f"for (int {counter} = {lower}; {counter} < {upper}; {counter}++)"


def _loops(counters: str, upper: str = "n", lower: str = "0") -> str:
    return " ".join(_loop(counter, upper, lower) for counter in counters)


def _kind(rng: Random) -> str:
    return rng.choice(("float", "double"))


def _sizes(rng: Random, *names: str, low: int = 3, high: int = 40) -> tuple[Sizes, ...]:
    """Return two choices of sizes: small ones, and larger ones."""
    small = {name: rng.randint(low, low + 4) for name in names}
    return small, {name: rng.randint((low + high) // 2, high) for name in names}


def _offsets(rng: Random, dims: int, radius: int, count: int) -> list[tuple[int, ...]]:
    every = list(product(range(-radius, radius + 1), repeat=dims))
    return every if count >= len(every) else sorted(rng.sample(every, count))


def _around(array: str, counters: str, offset: tuple[int, ...]) -> str:
    return array + "".join(f"[{c} + {o}]" for c, o in zip(counters, offset, strict=True)).replace(
        "+ -", "- "
    ).replace(" + 0]", "]")


def _weighted(rng: Random, array: str, counters: str, radius: int, count: int) -> str:
    offsets = _offsets(rng, len(counters), radius, count)
    return " + ".join(
        f"0.{rng.randint(1, 99):02d}f * {_around(array, counters, offset)}" for offset in offsets
    )


def halves(rng: Random) -> Sample:
    """Return a product of halves."""
    left, right = rng.choice(("a[i][k]", "a[k][i]")), rng.choice(("b[k][j]", "b[j][k]"))
    start = rng.choice(("0", "c[i][j]", "bias[j]"))
    body = f"{_loops('ij')} {{ c[i][j] = {start}; {_loop('k', 'n')} "
    body += f"c[i][j] += (float){left} * (float){right}; }}"
    text = _function(
        "int n, _Float16 a[n][n], _Float16 b[n][n], float c[n][n], float bias[n]", body
    )
    return Sample(text, ({"n": rng.randint(5, 40)}, {"n": 8 * rng.randint(5, 10)}))


def pipelines(rng: Random) -> Sample:
    """Return a product whose sum is long enough for the steady state of a pipeline."""
    kind = rng.choice(("float", "double", "_Float16"))
    cast = "(float)" if kind == "_Float16" else ""
    out = "float" if kind == "_Float16" else kind
    sign = rng.choice(("+=", "-="))
    body = f"{_loops('ij')} {_loop('k', 'K')} c[i][j] {sign} {cast}a[i][k] * {cast}b[k][j];"
    text = _function(f"int n, int K, {kind} a[n][K], {kind} b[K][n], {out} c[n][n]", body)
    long = rng.choice((160, 200, 256, 264))
    return Sample(text, ({"n": rng.randint(17, 40), "K": long}, {"n": 64, "K": 5}))


def products(rng: Random) -> Sample:
    """Return products with factors, of one or two pairs of matrices, full or triangular."""
    kind = _kind(rng)
    upper = rng.choice(("n", "n", "i + 1"))
    term = rng.choice((
        "alpha * a[i][k] * b[k][j]", "a[i][k] * b[j][k]",
        "a[i][k] * b[j][k] + b[i][k] * a[j][k]", "a[k][i] * (b[k][j] - a[k][j])",
    ))  # fmt: skip
    scale = rng.choice(("", "c[i][j] *= beta;", "c[i][j] = 0;"))
    body = (
        f"{_loop('i', 'n')} {_loop('j', upper)} {{ {scale} {_loop('k', 'n')} c[i][j] += {term}; }}"
    )
    arrays = f"{kind} a[n][n], {kind} b[n][n], {kind} c[n][n]"
    return Sample(_function(f"int n, {kind} alpha, {kind} beta, {arrays}", body), _sizes(rng, "n"))


def several_regions(rng: Random) -> Sample:
    """Return a function with regions one after the other."""
    kind, bodies = _kind(rng), []
    for _ in range(rng.randint(2, 3)):
        to, of = rng.sample("abc", 2)
        bodies.append(rng.choice((
            f"{_loops('ij')} {to}[i][j] = {of}[j][i] * 2 + {to}[i][j];",
            f"{_loops('ij', 'n - 1', '1')} {to}[i][j] = {_weighted(rng, of, 'ij', 1, 5)};",
            f"{_loops('ijk')} {to}[i][j] += {of}[i][k] * {of}[k][j];",
        )))  # fmt: skip
    arrays = f"{kind} a[n][n], {kind} b[n][n], {kind} c[n][n]"
    return Sample(_function(f"int n, {arrays}", *bodies), _sizes(rng, "n"))


def row_scalars(rng: Random) -> Sample:
    """Return rows with scalars of their own: softmax, means and variances, norms."""
    kind = _kind(rng)
    parts = [f"{kind} m = x[i][0], s = 0;", f"{_loop('j', 'n')} m = x[i][j] > m ? x[i][j] : m;"]
    if rng.random() < 0.5:
        parts += [f"{_loop('j', 'n')} s += {rng.choice(('x[i][j] - m', '(x[i][j] - m) * w[j]'))};"]
    else:
        parts = [f"{kind} m = 0, s = 1;", f"{_loop('j', 'n')} m += x[i][j];"]
        parts += [f"{_loop('j', 'n')} {{ {kind} d = x[i][j] - m / n; s += d * d; }}"]
    parts += [f"{_loop('j', 'n')} y[i][j] = (x[i][j] - m) {rng.choice(('*', '/'))} (s * s + 1);"]
    body = f"{_loop('i', 'r')} {{ {' '.join(parts)} }}"
    text = _function(f"int r, int n, {kind} x[r][n], {kind} y[r][n], {kind} w[n]", body)
    return Sample(text, _sizes(rng, "r", "n"))


def reductions(rng: Random) -> Sample:
    """Return sums, products and extremes of all elements, rows or columns."""
    kind = _kind(rng)
    target = rng.choice(("s[0]", "s[i]", "s[j]"))
    value = rng.choice(("x[i][j]", "x[i][j] * y[j]", "x[i][j] * x[i][j]", "x[i][j] * x[j][i]"))
    update = rng.choice((f"{target} += {value};", f"{target} -= {value};",
                         f"{target} = {target} > {value} ? {target} : {value};"))  # fmt: skip
    text = _function(f"int n, {kind} x[n][n], {kind} y[n], {kind} s[n]", f"{_loops('ij')} {update}")
    return Sample(text, _sizes(rng, "n", high=90))


def taps(rng: Random) -> Sample:
    """Return a stencil of many points, out of place."""
    dims = rng.choice((2, 2, 3))
    radius = rng.randint(1, 4 if dims == 2 else 2)
    counters, extent = "ijk"[:dims], "[n]" * dims
    here = "".join(f"[{c}]" for c in counters)
    body = f"{_loops(counters, f'n - {radius}', str(radius))} b{here} = "
    body += _weighted(rng, "a", counters, radius, rng.choice((9, 25, 49, 125))) + ";"
    text = _function(f"int n, float a{extent}, float b{extent}", body)
    return Sample(text, _sizes(rng, "n", low=2 * radius + 1, high=40 if dims == 2 else 16))


def time_buffers(rng: Random) -> Sample:
    """Return a stencil on two buffers in turns."""
    dims, radius = rng.choice((1, 2, 2, 3)), rng.choice((1, 1, 2))
    counters, kind = "ijk"[:dims], _kind(rng)
    here = "".join(f"[{c}]" for c in counters)
    last, then = "t % 2", "(t + 1) % 2"
    body = f"{_loop('t', 'T')} {_loops(counters, f'n - {radius}', str(radius))} "
    body += f"a[{then}]{here} = "
    body += _weighted(rng, f"a[{last}]", counters, radius, rng.choice((5, 9, 49, 125))) + ";"
    text = _function(f"int n, int T, {kind} a[2]{'[n]' * dims}", body)
    return Sample(text, tuple({"n": n, "T": 3} for n in (2 * radius + 2, 14)))


def time_steps(rng: Random) -> Sample:
    """Return time steps that take one array to another and back, or sweep in place."""
    kind, radius = _kind(rng), 1
    inner = _loops("ij", "n - 1", "1")
    first = f"{inner} b[i][j] = {_weighted(rng, 'a', 'ij', radius, rng.choice((5, 9)))};"
    copied = f"{inner} a[i][j] = b[i][j];"
    back = f"{inner} a[i][j] = {_weighted(rng, 'b', 'ij', radius, 5)};"
    rows = f"{_loop('i', 'n', '1')} {_loop('j', 'n')} a[i][j] = a[i - 1][j] * 0.5f + b[i][j];"
    steps = first + rng.choice((copied, back, rows))
    text = _function(
        f"int n, int T, {kind} a[n][n], {kind} b[n][n]", f"{_loop('t', 'T')} {{ {steps} }}"
    )
    return Sample(text, ({"n": 4, "T": 2}, {"n": 23, "T": 3}))


def flags(rng: Random) -> Sample:
    """Return a program with a scalar that is true or false."""
    test = rng.choice(("x[i] > 0", "x[i] < y[i]", "i % 2 == 0"))
    other = rng.choice(("y[i]", "0"))
    body = f"{_loop('i', 'n')} {{ bool on = {test}; y[i] = on ? x[i] * 2 : {other}; }}"
    kind = _kind(rng)
    text = _function(f"int n, {kind} x[n], {kind} y[n]", body, before="#include <stdbool.h>\n")
    return Sample(text, _sizes(rng, "n", high=300))


def narrow_scalars(rng: Random) -> Sample:
    """Return sums and copies through scalars of narrow types."""
    narrow = rng.choice(("char", "short", "int16_t", "uint8_t", "int8_t"))
    value = rng.choice(("a[i]", "a[i] + 3", "a[i] * 2"))
    body = f"{_loop('i', 'n')} {{ {narrow} v = ({narrow})({value}); b[i] = v + b[i]; }}"
    text = _function("int n, int a[n], int b[n]", body, before="#include <stdint.h>\n")
    return Sample(text, _sizes(rng, "n", high=300))


def unsigned_counters(rng: Random) -> Sample:
    """Return loops whose counters and bounds are unsigned."""
    kind, word = _kind(rng), rng.choice(("unsigned", "unsigned int", "size_t"))
    update = rng.choice((
        "b[i][j] = a[i][j + 1] - a[i][j - 1];", "b[i][j] = a[j][i] + b[i][j];",
        "b[i][j] = 0.25f * (a[i - 1][j] + a[i + 1][j] + a[i][j - 1] + a[i][j + 1]);",
    ))  # fmt: skip
    heads = " ".join(f"for ({word} {c} = 1; {c} + 1 < n; {c}++)" for c in "ij")
    text = _function(f"{word} n, {kind} a[n][n], {kind} b[n][n]", f"{heads} {update}",
                     before="#include <stddef.h>\n")  # fmt: skip
    return Sample(text, _sizes(rng, "n"))


def leading_dimensions(rng: Random) -> Sample:
    """Return matrices in vectors, with leading dimensions of their own."""
    kind = _kind(rng)
    update = rng.choice((
        f"{_loop('k', 'n')} c[i + j * ldc] += a[i + k * lda] * b[k + j * ldb];",
        "c[i + j * ldc] = a[j + i * lda] + b[i + j * ldb];",
        f"{_loop('k', 'n')} c[j + i * ldc] -= a[k + i * lda] * b[k + j * ldb];",
    ))  # fmt: skip
    arrays = ", ".join(f"{kind} {x}[n * ld{x}]" for x in "abc")
    text = _function(f"int n, int lda, int ldb, int ldc, {arrays}", f"{_loops('ij')} {update}")
    n = rng.randint(5, 30)
    return Sample(text, ({"n": n, "lda": n + 3, "ldb": n, "ldc": n + 1},))


def conditional_extremes(rng: Random) -> Sample:
    """Return extremes that are found by conditions of data."""
    kind, than = _kind(rng), rng.choice("<>")
    if rng.random() < 0.5:
        body = f"{_loops('ij')} if (a[i][j] {than} m[i]) m[i] = a[i][j];"
    else:
        body = f"{_loop('i', 'n')} {{ {kind} v = a[i][0]; {_loop('j', 'n')} "
        body += f"if (a[i][j] {than} v) v = a[i][j]; m[i] = v; }}"
    return Sample(_function(f"int n, {kind} a[n][n], {kind} m[n]", body), _sizes(rng, "n"))


def visible_functions(rng: Random) -> Sample:
    """Return calls of functions that the file has."""
    kind = _kind(rng)
    one = rng.choice(("x * x + 1", "x > 0 ? x : 0", "x - 2 * x * x"))
    two = rng.choice(("g(x) + y", "x * g(y)", "g(x - y) * y"))
    before = f"static {kind} g({kind} x) {{ return {one}; }}\n"
    before += f"static {kind} h({kind} x, {kind} y) {{ return {two}; }}\n"
    update = rng.choice(("b[i][j] = h(a[i][j], b[i][j]);", "b[i][j] += g(a[j][i]);"))
    text = _function(
        f"int n, {kind} a[n][n], {kind} b[n][n]", f"{_loops('ij')} {update}", before=before
    )
    return Sample(text, _sizes(rng, "n"))


def strided(rng: Random) -> Sample:
    """Return loops with steps, and subscripts that skip elements."""
    kind, step = _kind(rng), rng.randint(2, 3)
    body = rng.choice((
        f"{_loops('ij')} b[i][j] = a[{step} * i][{step} * j] + a[{step} * i + 1][{step} * j];",
        f"for (int i = 0; i < n; i += {step}) {_loop('j', 'n')} b[i][j] = a[i][j] * 2;",
        f"{_loops('ij')} {_loops('kl', str(step))} b[i][j] += a[{step} * i + k][{step} * j + l];",
    ))  # fmt: skip
    text = _function(f"int n, {kind} a[{step} * n][{step} * n], {kind} b[n][n]", body)
    return Sample(text, _sizes(rng, "n"))


def triangular(rng: Random) -> Sample:
    """Return nests whose inner loops begin or end at outer ones."""
    kind = _kind(rng)
    body = rng.choice((
        f"{_loop('i', 'n')} {_loop('j', 'i + 1')} {_loop('k', 'n')} c[i][j] += a[i][k] * a[j][k];",
        f"{_loop('i', 'n')} {_loop('j', 'n', 'i')} b[i][j] = a[j][i] - b[i][j];",
        f"{_loop('i', 'n')} {_loop('j', 'n')} {_loop('k', 'i')} b[i][j] -= a[i][k] * b[k][j];",
        f"{_loops('ij')} {_loop('k', 'n', 'i + 1')} b[i][j] += a[k][i] * b[k][j];",
        f"{_loop('k', 'n')} {_loop('i', 'n', 'k + 1')} {_loop('j', 'n', 'k + 1')} "
        "c[i][j] -= a[i][k] * b[k][j];",
    ))  # fmt: skip
    arrays = ", ".join(f"{kind} {x}[n][n]" for x in "abc")
    return Sample(_function(f"int n, {arrays}", body), _sizes(rng, "n", high=26))


def hand_tiled(rng: Random) -> Sample:
    """Return loops that were tiled by hand, with the lesser of two bounds."""
    kind, tile = _kind(rng), rng.choice((4, 8, 16))
    before = "#define min(a, b) ((a) < (b) ? (a) : (b))\n"
    heads = f"for (int ii = 0; ii < n; ii += {tile}) for (int jj = 0; jj < n; jj += {tile}) "
    heads += " ".join(f"for (int {c} = {c}{c}; {c} < min({c}{c} + {tile}, n); {c}++)" for c in "ij")
    update = rng.choice(("b[i][j] = a[j][i];", f"{_loop('k', 'n')} b[i][j] += a[i][k] * a[k][j];"))
    text = _function(f"int n, {kind} a[n][n], {kind} b[n][n]", f"{heads} {update}", before=before)
    return Sample(text, _sizes(rng, "n"))


def contractions(rng: Random) -> Sample:
    """Return products of tensors over one or two indices."""
    kind = _kind(rng)
    free, summed = "abcd"[: rng.randint(2, 4)], "ef"[: rng.randint(1, 2)]
    left = [*free[: len(free) // 2], *summed]
    right = [*free[len(free) // 2 :], *summed]
    rng.shuffle(left)
    rng.shuffle(right)
    heads = " ".join(_loop(c, f"n{c}") for c in free + summed)

    def at(name: str, indices: Iterable[str]) -> str:
        return name + "".join(f"[{c}]" for c in indices)

    def of(name: str, indices: Iterable[str]) -> str:
        return f"{kind} {name}" + "".join(f"[n{c}]" for c in indices)

    names = [f"n{c}" for c in free + summed]
    arrays = ", ".join((of("o", free), of("l", left), of("r", right)))
    body = f"{heads} {at('o', free)} += {at('l', left)} * {at('r', right)};"
    text = _function(f"{', '.join(f'int {n}' for n in names)}, {arrays}", body)
    return Sample(text, ({n: rng.randint(2, 9) for n in names},))


def convolutions(rng: Random) -> Sample:
    """Return a layer of a network with all sizes as arguments."""
    kind, stride = rng.choice(("float", "_Float16")), rng.choice((1, 1, 2))
    cast = "(float)" if kind != "float" else ""
    places = [f"{stride} * {c} + {w}" for c, w in ("yr", "xs")]
    if rng.random() < 0.3:
        places = [f"{stride} * {c} + {size} - 1 - {w}" for c, size, w in ("yRr", "xSs")]
    image = "".join(f"[{place}]" for place in places)
    start = rng.choice(("0", "bias[k]"))
    heads = " ".join(_loop(c, size) for c, size in (("b", "B"), ("k", "K"), ("y", "H"), ("x", "W")))
    inner = " ".join(_loop(c, size) for c, size in (("c", "C"), ("r", "R"), ("s", "S")))
    body = f"{heads} {{ out[b][k][y][x] = {start}; {inner} "
    body += f"out[b][k][y][x] += {cast}in[b][c]{image} * {cast}w[k][c][r][s]; }}"
    names = "BKCHWRS"
    arrays = f"float out[B][K][H][W], {kind} in[B][C][{stride} * H + R][{stride} * W + S], "
    arrays += f"{kind} w[K][C][R][S], float bias[K]"
    text = _function(f"{', '.join(f'int {n}' for n in names)}, {arrays}", body)
    return Sample(text, ({n: rng.randint(1, 3) for n in names}, dict.fromkeys(names, 2)))


def chains(rng: Random) -> Sample:
    """Return many statements of an element, one after the other."""
    kind, lines = _kind(rng), []
    for _ in range(rng.randint(3, 24)):
        to, of = rng.choice("abc"), rng.choice("abc")
        lines.append(f"{to}[i] = {of}[i] {rng.choice('+-')} {rng.choice('abc')}[i] * 0.5f;")
    arrays = ", ".join(f"{kind} {x}[n]" for x in "abc")
    text = _function(f"int n, {arrays}", f"{_loop('i', 'n')} {{ {' '.join(lines)} }}")
    return Sample(text, _sizes(rng, "n", high=300))


def many_arrays(rng: Random) -> Sample:
    """Return a loop nest after another, each over arrays of its own."""
    kind, count = _kind(rng), rng.randint(3, 9)
    nests = [
        f"{_loops('ij', 'n - 1', '1')} x{k + 1}[i][j] = "
        f"{_weighted(rng, f'x{rng.randint(0, k)}', 'ij', 1, rng.randint(1, 5))};"
        for k in range(count)
    ]
    arrays = ", ".join(f"{kind} x{k}[n][n]" for k in range(count + 1))
    return Sample(_function(f"int n, {arrays}", "\n".join(nests)), _sizes(rng, "n"))


def guards(rng: Random) -> Sample:
    """Return statements under affine conditions, and rounds that are left."""
    kind = _kind(rng)
    test = rng.choice(("i < j", "i + j < n", "i % 3 == 1", "i != j", "j >= 2 && i < n - 1"))
    leave = rng.choice(
        ("if (i == j) continue; ", "if (j > i) break; ", "if (i == 0) continue; ", "")
    )
    body = (
        f"{_loops('ij')} {{ {leave}if ({test}) b[i][j] = a[i][j] * 2; else b[i][j] += a[j][i]; }}"
    )
    return Sample(_function(f"int n, {kind} a[n][n], {kind} b[n][n]", body), _sizes(rng, "n"))


def uniform_conditions(rng: Random) -> Sample:
    """Return what is done only where a scalar says so."""
    kind = _kind(rng)
    body = f"if (beta == 0) {_loops('ij')} c[i][j] = 0; else {_loops('ij')} c[i][j] *= beta; "
    if rng.random() < 0.6:
        body += f"if (alpha != 0) {_loops('ijk')} c[i][j] += alpha * a[i][k] * a[k][j];"
    text = _function(f"int n, {kind} alpha, {kind} beta, {kind} a[n][n], {kind} c[n][n]", body)
    return Sample(text, _sizes(rng, "n", high=26))


def local_indices(rng: Random) -> Sample:
    """Return subscripts that scalars hold: clamped neighbours, linear indices, remainders."""
    kind = _kind(rng)
    set_up = rng.choice((
        "int w = j == 0 ? j : j - 1;", "int w = j + 1 < n ? j + 1 : n - 1;",
        "int w = n - 1 - j;", "int w = j / 2;", "int w = 2 * (j / 2);",
    ))  # fmt: skip
    body = (
        f"{_loops('ij')} {{ {set_up} b[i][j] = a[i][w] + {rng.choice(('a[i][j]', 'b[i][j]'))}; }}"
    )
    return Sample(_function(f"int n, {kind} a[n][n], {kind} b[n][n]", body), _sizes(rng, "n"))


def sweeps(rng: Random) -> Sample:
    """Return recurrences along one dimension, in parallel along another."""
    kind, back = _kind(rng), rng.random() < 0.4
    head = "for (int j = n - 2; j >= 0; j--)" if back else _loop("j", "n", "1")
    before = "j + 1" if back else "j - 1"
    cell = rng.choice(("[i][{}]", "[{}][i]"))
    here, last = cell.format("j"), cell.format(before)
    body = f"{_loop('i', 'n')} {head} a{here} = a{last} * b{here} + {rng.choice(('b', 'a'))}{here};"
    return Sample(_function(f"int n, {kind} a[n][n], {kind} b[n][n]", body), _sizes(rng, "n"))


def transposes(rng: Random) -> Sample:
    """Return elements of a tensor in another order."""
    dims = rng.randint(2, 5)
    counters = "abcde"[:dims]
    other = list(counters)
    rng.shuffle(other)
    kind = rng.choice(("float", "double", "int"))
    names = [f"n{c}" for c in counters]
    heads = " ".join(_loop(c, f"n{c}") for c in counters)
    into = "".join(f"[{c}]" for c in other)
    of = "".join(f"[{c}]" for c in counters)
    extents = ["".join(f"[n{c}]" for c in own) for own in (counters, other)]
    arrays = f"{kind} x{extents[0]}, {kind} y{extents[1]}"
    text = _function(
        f"{', '.join(f'int {n}' for n in names)}, {arrays}", f"{heads} y{into} = x{of} + 1;"
    )
    return Sample(text, ({n: rng.randint(2, 9) for n in names},))


_OTHER_LOOPS = (
    "for (int {c} = {up} - 1; {c} >= {low}; {c} -= 1) {{ {body} }}",
    "for (unsigned {c} = {low}; {c} < {up}; {c}++) {{ {body} }}",
)


def other_loops(rng: Random) -> Sample:
    """Return nests of loops that do not all count up by ``<``."""
    kind, depth = _kind(rng), rng.randint(1, 3)
    body = rng.choice((
        "b[{i}][{j}] += a[{j}][{i}];", "b[{i}][{j}] = 2 * a[{i}][{j}] + b[{i}][{j}];",
        "b[{i}][{j}] += a[{i}][{k}] * a[{k}][{j}];",
    )).format(i="i", j="ijk"[min(1, depth - 1)], k="ijk"[depth - 1])  # fmt: skip
    for counter in reversed("ijk"[:depth]):
        loop = rng.choice((*_OTHER_LOOPS, "for (int {c} = {low}; {c} < {up}; {c}++) {{ {body} }}"))
        up = rng.choice(("n", "n", "n - 1"))
        body = "{ " + loop.format(c=counter, low=rng.choice("0011"), up=up, body=body) + " }"
    return Sample(_function(f"int n, {kind} a[n][n], {kind} b[n][n]", body), _sizes(rng, "n"))


def local_terms(rng: Random) -> Sample:
    """Return sums, waves and maps whose terms are in scalars that are set once or again."""
    kind = _kind(rng)
    root = "fabsf" if kind == "float" else "fabs"
    first = rng.choice(("x[i][j] - y[i][j]", "x[i][j] * y[j][i]", f"{root}(x[i][j])"))
    then = rng.choice(("", "e = e * 0.5;", "e = e < 1 ? e : 1;", f"{kind} h = e * e; e = h + 1;"))
    term = rng.choice(("e", "e * e", "e < 1 ? e * e : e"))
    where = rng.choice(("s[0]", "s[i]", "s[j]"))
    loops = rng.choice((_loops("ij"), _loops("ji"), f"{_loop('i', 'n')} {_loop('j', 'i')}"))
    update = rng.choice(("{} += {};", "{} -= {};", "{0} = {1} > {0} ? {1} : {0};"))
    body = f"{loops} {{ {kind} e = {first}; {then} {update.format(where, f'({term})')} }}"
    if rng.random() < 0.3:
        body = f"for (int i = 1; i < n; i++) for (int j = 1; j < n; j++) {{ {kind} e = x[i - 1][j];"
        body += f" {then} e = e > x[i][j - 1] ? e : x[i][j - 1]; x[i][j] = (e + y[i][j]) * 0.5; }}"
    if rng.random() < 0.3:
        body = f"{_loops('ij')} {{ {kind} e = {first}; {kind} g = x[i][j] + 1; {then}"
        body += f" z[2 * i + {rng.randint(0, 1)}][j] = e * g; s[3 * n + i + j] = e - g; }}"
        body = body if rng.random() < 0.5 else body.replace("s[3 * n + i + j]", "w[j][i]")
    if rng.random() < 0.4:
        body += f" {_loop('i', 'n')} s[i] = s[i] / (n + 1);"
    text = _function(
        f"int n, {kind} x[n][n], {kind} y[n][n], {kind} z[2 * n][n], {kind} w[n][n], "
        f"{kind} s[5 * n]",
        body,
        before="#include <math.h>\n",
    )
    return Sample(text, _sizes(rng, "n"))


def set_scalars(rng: Random) -> Sample:
    """Return subscripts that are set from one another, or narrow."""
    kind = _kind(rng)
    body = rng.choice((
        "for (int i = 0; i < n; i++) { int k = n - i, j = k - 1; k += 1; b[j] -= a[k]; }",
        "for (int i = 0; i < n; i++) { unsigned char k = 5 * i % 256; b[i] = a[i]; c[k] += a[i]; }",
        "for (int i = 0; i < n; i++) { short k = 2 * i; b[i] = a[k] - a[k + 1]; }",
    ))  # fmt: skip
    text = _function(f"int n, {kind} a[3 * n], {kind} b[n], {kind} c[256]", body)
    return Sample(text, _sizes(rng, "n", high=200))


def short_circuits(rng: Random) -> Sample:
    """Return conditions that read memory only where others say so."""
    kind = _kind(rng)
    near = [("i > 0", "a[i - 1][j]"), ("i < n - 1", "a[i + 1][j]"), ("j > 1", "a[i][j - 2]"),
            ("j + 1 < n", "a[i][j + 1]")]  # fmt: skip
    tests = []
    for guard, element in rng.sample(near, rng.randint(1, 3)):
        compared = f"{element} {rng.choice('<>')} {rng.choice(('a[i][j]', '0.1'))}"
        tests.append(rng.choice((f"({guard} && {compared})", f"(!({guard}) || {compared})")))
    test = rng.choice((" && ", " || ", " + ")).join(tests)
    body = rng.choice((
        "if ({}) b[i][j] = a[i][j]; else b[i][j] -= 1;", "b[i][j] += ({}) ? a[i][j] : 2;",
        "if ({}) {{ b[i][j] = 1; c[i][j] += a[i][j]; }}", "c[i][j] = {};",
    )).format(test)  # fmt: skip
    arrays = f"{kind} a[n][n], {kind} b[n][n], {kind} c[n][n]"
    return Sample(_function(f"int n, {arrays}", f"{_loops('ij')} {body}"), _sizes(rng, "n"))


FAMILIES: tuple[Callable[[Random], Sample], ...] = (
    halves, pipelines, products, several_regions, row_scalars, reductions, taps, time_buffers,
    time_steps, flags, narrow_scalars, unsigned_counters, leading_dimensions, conditional_extremes,
    visible_functions, strided, triangular, hand_tiled, contractions, convolutions, chains,
    many_arrays, guards, uniform_conditions, local_indices, sweeps, transposes,
    other_loops, local_terms, set_scalars, short_circuits,
)  # fmt: skip


def sample(family: str, seed: int) -> Sample:
    """Return the program of a seed in a family."""
    make = next(one for one in FAMILIES if one.__name__ == family)
    return make(Random(f"{family} {seed}"))  # noqa: S311
