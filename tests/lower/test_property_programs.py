"""Random affine programs, and any tile sizes, blocks and placements, compute the same as the C."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod
from typing import Literal

from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from eatss.analysis.facts import KernelFacts
from eatss.base.diagnostics import InputError
from eatss.lower.recipe import CodegenOptions
from eatss.program import Program
from eatss.session.analysis import SymbolicProgram
from eatss.verify.result import Verification
from tests.examples import examples

SIZE = "[2 * N + 2 * M + 16]"
NAMES = (("i", "j", "k", "l"), ("i0", "ti", "x0", "ri"), ("tj", "block", "thread", "j0"))
ARRAYS = (("A", "B", "x", "y"), ("C_r", "load_0", "dim", "c0"))


@dataclass
class Writer:
    """Writes a function of two matrices, two vectors and two sizes; subscripts stay inside."""

    rng: random.Random
    element: str
    counters: tuple[str, ...]
    arrays: tuple[str, ...]
    lines: list[str] = field(default_factory=list)
    statements: int = 0

    def chance(self, percent: int) -> bool:
        return self.rng.randrange(100) < percent

    def subscript(self, loops: list[str], *, written: bool) -> str:
        one, other = self.rng.choice(loops), self.rng.choice(loops)
        shapes = [one] * 6 + [f"{one} + 1", f"2 * {one}", f"{one} + {other}", f"N + M + 11 - {one}"]
        if written:  # isl's dataflow crashes on some programs that divide where they write
            return self.rng.choice([*shapes, "2"])
        return self.rng.choice([*shapes, f"{one} % 3", f"{one} / 2", "2"])

    def reference(self, loops: list[str], *, written: bool = False) -> str:
        one, two = (self.subscript(loops, written=written) for _ in range(2))
        if self.chance(55):
            return f"{self.rng.choice(self.arrays[:2])}[{one}][{two}]"
        return f"{self.rng.choice(self.arrays[2:])}[{one}]"

    def value(self, loops: list[str]) -> str:
        terms = [self.reference(loops) for _ in range(self.rng.randint(1, 3))]
        terms[0] = self.rng.choice(
            [terms[0], f"({self.element})({loops[-1]} + 1)", f"({terms[0]})"]
        )
        return f" {self.rng.choice('+-*')} ".join(terms)

    def statement(self, loops: list[str], indent: str) -> None:
        self.statements += 1
        target, kind = self.reference(loops, written=True), self.rng.randrange(6)
        if kind == 0:
            name = f"t{self.statements}"
            self.lines.append(f"{indent}{self.element} {name} = {self.value(loops)};")
            self.lines.append(f"{indent}{target} = {name} + {self.reference(loops)};")
        else:
            sign = self.rng.choice(["=", "=", "+=", "-=", "*="])
            self.lines.append(f"{indent}{target} {sign} {self.value(loops)};")

    def head(self, loops: list[str]) -> str:
        c = self.counters[len(loops)]
        size, outer = self.rng.choice(["N", "N", "M"]), self.rng.choice([*loops, "2"])
        return self.rng.choice(
            [f"for (int {c} = 0; {c} < {size}; {c}++)"] * 4
            + [
                f"for (int {c} = 1; {c} < {size} - 1; {c}++)",
                f"for (int {c} = {outer}; {c} < {size}; {c}++)",
                f"for (int {c} = 0; {c} <= {outer}; {c}++)",
                f"for (int {c} = {self.rng.randint(0, 2)}; {c} < {size}; {c} += 2)",
                f"for (int {c} = {size} - 1; {c} >= 1; {c}--)",
            ]
        )

    def condition(self, loops: list[str]) -> str:
        one, other = self.rng.choice(loops), self.rng.choice(loops)
        return self.rng.choice([f"{one} > 2", f"{one} % 2 == 0", f"{one} < {other}", f"{one} != 3"])

    def sum(self, loops: list[str], indent: str) -> None:
        self.statements += 1
        name, inner = f"s{self.statements}", [*loops, self.counters[len(loops)]]
        self.lines.append(f"{indent}{self.element} {name} = {self.reference(loops)};")
        self.lines.append(f"{indent}{self.head(loops)}")
        self.lines.append(f"{indent}    {name} += {self.value(inner)};")
        self.lines.append(f"{indent}{self.reference(loops, written=True)} = {name};")

    def nest(self, loops: list[str]) -> None:
        indent = "    " * (len(loops) + 1)
        self.lines.append(f"{indent}{self.head(loops)} {{")
        inner = [*loops, self.counters[len(loops)]]
        for _ in range(self.rng.choice([1, 1, 2])):
            deep = len(inner) < 3
            if deep and self.chance(55):
                self.nest(inner)
            elif deep and self.chance(25):
                self.sum(inner, indent + "    ")
            else:
                if self.chance(20):
                    self.lines.append(f"{indent}    if ({self.condition(inner)})")
                    self.lines.append(f"{indent}    {{")
                    self.statement(inner, indent + "        ")
                    self.lines.append(f"{indent}    }}")
                else:
                    self.statement(inner, indent + "    ")
        self.lines.append(f"{indent}}}")


def program(seed: int) -> tuple[str, bool]:
    """Return the C text of a seed, and whether its numbers are integers."""
    rng = random.Random(seed)
    element = rng.choice(["int", "long", "float", "double"])
    writer = Writer(rng, element, rng.choice(NAMES), rng.choice(ARRAYS))
    for _ in range(rng.choice([1, 1, 2])):
        writer.nest([])
    one, two, three, four = writer.arrays
    macros = rng.random() < 0.5
    sizes = "" if macros else "int N, int M, "
    text = "#ifndef N\n#define N 20\n#endif\n#ifndef M\n#define M 16\n#endif\n" if macros else ""
    text += (
        f"void f({sizes}{element} {one}{SIZE}{SIZE}, {element} {two}{SIZE}{SIZE},\n"
        f"       {element} {three}{SIZE}, {element} {four}{SIZE})\n{{\n#pragma scop\n"
    )
    return text + "\n".join(writer.lines) + "\n#pragma endscop\n}\n", element in ("int", "long")


def equals_the_original(
    verify_text: Callable[..., Verification], seed: int, strict: bool, m: int, n: int
) -> None:
    text, exact = program(seed)
    try:
        found = verify_text(text, CodegenOptions(strict_fp=strict), [{"N": n, "M": m}])
    except InputError as error:
        if error.diagnostics[0].code not in ("EATSS-P001", "EATSS-P006"):
            raise
        reject()  # too hard for isl, or nothing to do
    assert (found.status, found.message) == ("ok", ""), text
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


def threaded_loops(facts: KernelFacts) -> int:
    """Return how many of the leading loops go to threads."""
    count = 0
    while count < min(3, len(facts.loops)) and facts.loops[count].parallel:
        count += 1
    return count


@st.composite
def options(draw: st.DrawFn, program: SymbolicProgram) -> CodegenOptions:
    """Draw sizes that a card can launch, for every kernel of a program."""
    tiles: list[tuple[str, tuple[tuple[str, int], ...]]] = []
    blocks: list[tuple[str, tuple[int, ...]]] = []
    for facts in program.program.facts:
        tiles.append((facts.name, tuple((loop.name, draw(tile_sizes)) for loop in facts.loops)))
        count = threaded_loops(facts)
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
