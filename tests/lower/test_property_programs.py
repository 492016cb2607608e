"""Random affine programs, and any tile sizes, blocks and placements, compute the same as the C."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import count, takewhile
from math import prod
from typing import Literal

import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from eatss.api import codegen
from eatss.base.diagnostics import InputError
from eatss.lower.recipe import CodegenOptions
from eatss.program import Program
from eatss.session.analysis import SymbolicProgram
from eatss.verify.result import Verification
from eatss.verify.run import verify
from tests.examples import examples
from tests.lower.checking import right

SIZE = "[2 * N + 2 * M + 16]"
MACROS = "#ifndef N\n#define N 20\n#endif\n#ifndef M\n#define M 16\n#endif\n"
NAMES = (("i", "j", "k", "l"), ("i0", "ti", "x0", "ri"), ("tj", "block", "thread", "j0"))
ARRAYS = (("A", "B", "x", "y"), ("C_r", "load_0", "dim", "c0"))
"""Two matrices and two vectors."""


def subscript(rng: random.Random, loops: list[str], *, written: bool) -> str:
    one, other = rng.choice(loops), rng.choice(loops)
    shapes = [f"{one} + 1", f"2 * {one}", f"{one} + {other}", f"N + M + 11 - {one}", "2"]
    if not written:  # isl's dataflow crashes on some programs that divide where they write
        shapes += [f"{one} % 3", f"{one} / 2"]
    return f"[{rng.choice([*[one] * 6, *shapes])}]"


def head(rng: random.Random, loops: list[str], c: str) -> str:
    size, outer = rng.choice("NNM"), rng.choice([*loops, "2"])
    bounds = [
        *[f"{c} = 0; {c} < {size}; {c}++"] * 4,
        f"{c} = 1; {c} < {size} - 1; {c}++",
        f"{c} = {outer}; {c} < {size}; {c}++",
        f"{c} = 0; {c} <= {outer}; {c}++",
        f"{c} = {rng.randint(0, 2)}; {c} < {size}; {c} += 2",
        f"{c} = {size} - 1; {c} >= 1; {c}--",
    ]
    return f"for (int {rng.choice(bounds)})"


def program(seed: int) -> tuple[str, bool]:
    """Return the C text of a seed, and whether its numbers are integers.

    It is a function of two matrices, two vectors and two sizes; subscripts stay inside.
    """
    rng, numbers = random.Random(seed), count()
    element = rng.choice(["int", "long", "float", "double"])
    counters, arrays = rng.choice(NAMES), rng.choice(ARRAYS)

    def reference(loops: list[str], *, written: bool = False) -> str:
        dims = rng.choice([1, 2])
        subscripts = [subscript(rng, loops, written=written) for _ in range(dims)]
        return rng.choice(arrays[dims % 2 * 2 :][:2]) + "".join(subscripts)

    def value(loops: list[str]) -> str:
        one, *others = (reference(loops) for _ in range(rng.randint(1, 3)))
        first = rng.choice([one, f"({element})({loops[-1]} + 1)", f"({one})"])
        return f" {rng.choice('+-*')} ".join([first, *others])

    def statement(loops: list[str]) -> str:
        target, name = reference(loops, written=True), f"t{next(numbers)}"
        one, other = rng.choice(loops), rng.choice(loops)
        match rng.randrange(7):
            case 0:
                return (
                    f"{element} {name} = {value(loops)};\n{target} = {name} + {reference(loops)};"
                )
            case 1 if len(loops) < 3:
                counter = counters[len(loops)]
                begin = f"{element} {name} = {reference(loops)};\n{head(rng, loops, counter)}\n"
                return f"{begin}{name} += {value([*loops, counter])};\n{target} = {name};"
            case 2:
                tests = [f"{one} > 2", f"{one} % 2 == 0", f"{one} < {other}", f"{one} != 3"]
                return f"if ({rng.choice(tests)}) {{\n{statement(loops)}\n}}"
        return f"{target} {rng.choice(['=', '=', '+=', '-=', '*='])} {value(loops)};"

    def nest(loops: list[str]) -> str:
        counter = counters[len(loops)]
        inner = [*loops, counter]
        body = [
            nest(inner) if len(inner) < 3 and rng.random() < 0.55 else statement(inner)
            for _ in range(rng.choice([1, 1, 2]))
        ]
        return "\n".join([f"{head(rng, loops, counter)} {{", *body, "}"])

    body = "\n".join(nest([]) for _ in range(rng.choice([1, 1, 2])))
    sizes = (f"{element} {name}{SIZE * (1 + (at < 2))}" for at, name in enumerate(arrays))
    front, passed = rng.choice([(MACROS, ""), ("", "int N, int M, ")])
    front += f"void f({passed}{', '.join(sizes)})"
    text = f"{front}\n{{\n#pragma scop\n{body}\n#pragma endscop\n}}\n"
    return text, element in ("int", "long")


def equals_the_original(
    tmp_path_factory: pytest.TempPathFactory, seed: int, strict: bool, m: int, n: int
) -> None:
    (text, exact), folder = program(seed), tmp_path_factory.mktemp("random")
    try:
        codegen(text, gpu="h200", strict_fp=strict, output=folder)
    except InputError as error:
        if error.diagnostics[0].code not in ("EATSS-P001", "EATSS-P006"):
            raise
        reject()  # too hard for isl, or nothing to do
    found = right(verify(folder, device="cpu", sizes=[{"N": n, "M": m}]))
    if strict or exact:
        assert all(result.worst_error == 0.0 for result in found.results), text


drawn = given(
    seed=st.integers(0, 2**32),
    strict=st.booleans(),
    m=st.sampled_from([0, 1, 5, 18, 23]),
    n=st.sampled_from([1, 7, 19, 34]),
)
unhurried = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
test_a_random_program_equals_the_original = settings(unhurried, max_examples=examples(2))(
    drawn(equals_the_original)
)


KINDS = (
    "gemm",
    "trmm",
    "lu",
    "jacobi-2d",
    "seidel-2d",
    "atax",
    "correlation",
    "durbin",
)
MOST_THREADS = 1024
MOST_POINTS = 60_000

tile_sizes = st.one_of(
    st.integers(1, 9), st.sampled_from([16, 31, 32, 37, 64]), st.integers(1, 200)
)
thread_counts = st.sampled_from([1, 2, 3, 7, 8, 16, 17, 32, 33, 64, 100])
extents = st.one_of(st.sampled_from([0, 1, 2, 31, 37]), st.integers(0, 45))


@st.composite
def options(draw: st.DrawFn, program: SymbolicProgram) -> CodegenOptions:
    """Draw sizes that a card can launch, for every kernel of a program."""
    tiles: list[tuple[str, tuple[tuple[str, int], ...]]] = []
    blocks: list[tuple[str, tuple[int, ...]]] = []
    for facts in program.program.facts:
        tiles.append((facts.name, tuple((loop.name, draw(tile_sizes)) for loop in facts.loops)))
        count = len([*takewhile(lambda loop: loop.parallel, facts.loops[:3])])
        if count and draw(st.booleans()):
            block = draw(
                st.tuples(*[thread_counts] * count).filter(
                    lambda sizes: prod(sizes) <= MOST_THREADS and (len(sizes) < 3 or sizes[0] <= 64)
                )
            )
            blocks.append((facts.name, block))
    arrays = [a.name for r in program.regions for a in r.scheduled.scop.arrays if a.n_dims]
    memory: Literal["l1", "shared"] | None = draw(st.sampled_from([None, "l1", "shared"]))
    return CodegenOptions(
        tile_sizes=tuple(tiles),
        block=tuple(blocks),
        placements=() if memory is None else tuple((name, memory) for name in arrays),
        strict_fp=draw(st.booleans()),
        index_bits=draw(st.sampled_from([None, 32, 64])),
    )


def sizes_equal_the_original(
    generate: Callable[..., Program],
    facts_of: Callable[[str], SymbolicProgram],
    verify_kernel: Callable[..., Verification],
    data: st.DataObject,
    kernel: str,
    dtype: str,
) -> None:
    program = generate(kernel, dtype=dtype, options=data.draw(options(facts_of(kernel))))
    names = [parameter.name for parameter in program.parameters]
    sizes = data.draw(
        st.fixed_dictionaries(dict.fromkeys(names, extents)).filter(
            lambda chosen: prod(max(1, size) for size in chosen.values()) <= MOST_POINTS
        )
    )
    found = verify_kernel(program, [sizes])
    assert all((result.status, result.message) == ("ok", "") for result in found.results)
    assert found.status == ("ok" if any(r.compared for r in found.results) else "nothing compared")
    if program.strict_fp:
        assert found.bit_equal


drawn_sizes = given(
    data=st.data(), kernel=st.sampled_from(KINDS), dtype=st.sampled_from(["float", "double"])
)
test_every_legal_choice_of_sizes_equals_the_original = settings(
    unhurried, max_examples=examples(2)
)(drawn_sizes(sizes_equal_the_original))
