"""Which sums of products warps compute: what is offered is what the generator then does."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from random import Random

import pytest

import eatss
from eatss.analysis.structure import Structure
from eatss.base.shipped import data_directory
from eatss.cards import load_profile
from eatss.choose.cuda import structure_of
from eatss.lower.structures import structures_for
from eatss.program import Program

pytestmark = pytest.mark.usefixtures("analysed_once")

H200 = load_profile("h200")
MMA = "mma_f64_16x8x4"
KERNELS = sorted(data_directory("kernels").glob("*.c"))
PROGRAMS = sorted((Path(__file__).parents[2] / "benchmarks" / "programs").glob("*.c"))


def computed(program: Program, instruction: str) -> set[str]:
    """Return the statements that an instruction computes, read from the notes."""
    notes = [note for kernel in program.kernels for note in kernel.notes]
    found = [re.fullmatch(f"{instruction}: computes (.*)", note) for note in notes]
    return {name for one in found if one is not None for name in one[1].split(", ")}


@pytest.mark.parametrize(
    "source", [data_directory("kernels") / f"{name}.c" for name in ("gemm", "mvt")]
)
def test_what_is_selected_uses_its_instruction(source: Path) -> None:
    selection = eatss.select(source, gpu="h200", target="cuda")
    structures = structures_for(eatss.inspect(source, cut="eatss"), H200)
    wanted: set[str] = set()
    for kernel in selection.kernels:
        if kernel.warps is not None:
            assert kernel.warps.instruction == MMA
            own = structure_of(structures[kernel.name], kernel)
            assert own is not None
            wanted |= {product.statement for product in own.products}
    program = eatss.codegen(source, gpu="h200")
    assert computed(program, MMA) == wanted
    assert bool(wanted) == ("eatss_mma_16x8x4(" in program.text.partition("extern")[2])
    assert bool(wanted) == (source.stem == "gemm")


def contraction(dice: Random) -> str:
    """A sum of products over ``k`` at random; warps can compute about half of them."""
    free = ["b", "i", "j"][dice.randrange(2) :]

    def array(loops: list[str]) -> tuple[str, str]:
        own = [loop for loop in free[:-2] if dice.random() < 0.5] + loops
        dice.shuffle(own)
        return "[N]" * len(own), "".join(f"[{name}]" for name in own)

    more = [["k"], ["i"], ["j"], ["i", "j"], ["j", "k"], []]
    factors = [["i", "k"], ["k", "j"], *dice.sample(more, dice.choice([0, 0, 1, 2]))]
    arrays = [array(own) for own in factors]
    names = [f"A{at}" for at in range(len(arrays))]
    dice.shuffle(names)
    value = " * ".join(f"{name}{text}" for name, (_, text) in zip(names, arrays, strict=True))
    value = dice.choice(["{}", "{}", "alpha * {}", "alpha + {}"]).format(value)
    order = free[:]
    dice.shuffle(order)
    target = "C" + "".join(f"[{name}]" for name in order)
    declared = ", ".join(
        f"double {name}{size}" for name, (size, _) in zip(names, arrays, strict=True)
    )
    loops = "".join(f"for (int {name} = 0; {name} < N; {name}++) " for name in [*free, "k"])
    return f"""
#define N 512
void f(double C{"[N]" * len(free)}, {declared}, double alpha) {{
#pragma scop
  {loops}
    {target} {dice.choice(("+=", "+=", "-="))} {value};
#pragma endscop
}}
"""


def used(source: str, rows: str, columns: str, loops: list[str]) -> bool:
    """Tell whether warps compute a source's product at sizes that fit, everything staged."""
    names = set(re.findall(r"double (A\d)\[", source))
    program = eatss.codegen(
        source,
        gpu="h200",
        tiles={**dict.fromkeys(loops, 1), rows: 32, columns: 32, "k": 16},
        block={rows: 16, columns: 8},
        placements=dict.fromkeys(names, "shared"),
        instructions=[MMA],
    )
    return bool(computed(program, MMA))


def products_offered(structures: Sequence[Structure]) -> list[Structure]:
    """Return the structures with an instruction; where blocks share sums, it computes as much."""
    found = [one for one in structures if one.instruction is not None]
    alone = [one for one in found if one.shared_loop is None]
    for one in found:
        assert one.instruction in [own.instruction for own in alone]
        assert one.products in [own.products for own in alone]
    return alone


@pytest.mark.parametrize("seed", [2, 9])
def test_contractions_are_offered_just_where_the_generator_finds_products(seed: int) -> None:
    source = contraction(Random(seed))
    inspected = eatss.inspect(source, cut="eatss")
    (facts,) = inspected.facts
    loops = [loop.name for loop in facts.parallel_loops]
    offered = products_offered(structures_for(inspected, H200)[facts.name])
    pairs = list(combinations(loops, 2))
    possible = [pair for pair in pairs if used(source, *pair, loops)]
    assert [(one.rows, one.columns) for own in offered for one in own.products] == possible[-1:]


def offered(source: str, gpu: str, *, strict_fp: bool = False) -> list[Structure]:
    program = eatss.inspect(source, cut="eatss")
    found = structures_for(program, load_profile(gpu), strict_fp=strict_fp)
    return [one for own in found.values() for one in products_offered(own)]


def test_products_are_offered_for_doubles_on_cards_with_tensor_cores_for_them() -> None:
    source = contraction(Random(0)).replace("alpha + ", "")
    for gpu, name in (("h200", MMA), ("a100", "mma_f64_8x8x4")):
        (one,) = offered(source, gpu)
        assert one.instruction is not None
        assert one.instruction.name == name
    assert not offered(source, "v100")
    assert not offered(source, "t4")
    assert not offered(source, "h200", strict_fp=True)
    assert not offered(source.replace("double", "float"), "h200")


ELSEWHERE = """
#define N 512
void f(double C[N][N], double A[N][N], double B[N][N], double d[N]) {{
#pragma scop
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++)
      for (int k = 0; k < N; k++)
        {statement}
#pragma endscop
}}
"""


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("C[i][j] += A[i][k] * B[k][j];", True),
        ("C[i][j] = A[i][k] * B[k][j] + C[i][j];", True),
        ("C[i][j] += d[k] * A[i][k] * B[k][j];", True),
        ("C[i][j] -= A[i][k] * B[k][j];", True),  # the sum of negated products
        ("C[i][j] = A[i][k] * B[k][j] - C[i][j];", False),  # the sign changes from step to step
        ("C[i][j] += A[i][k] + B[k][j];", False),  # a sum
        ("C[i][j] += A[i][k] * B[i][j];", False),  # a factor moves along both
        ("C[i][j] += A[i][k] * A[i][k];", False),  # nothing moves along j
        ("C[i][j] = C[i][j] * A[i][k] * B[k][j];", False),  # no sum
    ],
)
def test_only_sums_of_products_are_offered(statement: str, found: bool) -> None:
    assert bool(offered(ELSEWHERE.format(statement=statement), "h200")) == found
