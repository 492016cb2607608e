"""The prediction says where operands are loaded a step ahead, and boxes turned in registers.

Generated code has it there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice, product

import pytest

from eatss.analysis.facts import KernelFacts
from eatss.analysis.mapping import mapped_loops
from eatss.base.shipped import data_directory
from eatss.cards import GpuProfile, load_profile
from eatss.choose import KernelSelection, ModelOptions, Selection
from eatss.choose.predicted_kernel import candidate_of, structure_of
from eatss.cost.card import card_of
from eatss.cost.cuda_model import CudaModel
from eatss.frontend.options import Reading
from eatss.lower.recipe.options import CodegenOptions
from eatss.lower.recipe.recipe import recipe_of
from eatss.lower.structures import structures_for
from eatss.plan.launch import Compute, plan
from eatss.program import Original
from eatss.session.analysis import SymbolicProgram
from eatss.session.session import Session
from eatss.session.steps import generate_for, select_for
from tests.examples import with_long


@dataclass(frozen=True)
class Chosen:
    """A layout: points and threads along the mapped loops, tiles of the others, stages."""

    points: tuple[int, int]
    threads: tuple[int, int]
    steps: tuple[int, ...]
    stages: int


POINTS = [(16, 8), (8, 16), (8, 12), (12, 8), (8, 8), (4, 4), (5, 4)]
THREADS = [(16, 16), (8, 16), (4, 8)]
STEPS = [(8,), (16,), (4,), (32,), (6,), (5,)]


def layouts(loops: int = 1) -> Iterator[Chosen]:
    """Yield all layouts, neighbours of them unlike each other."""
    steps = [*STEPS] if loops == 1 else [(1, 8), (4, 1), (8, 4), (1, 4), (6, 1), (2, 2), (1, 1)]
    every = list(product(POINTS, THREADS, steps, (2, 3, 1)))
    return (Chosen(*every[at * 101 % len(every)]) for at in range(len(every)))


@cache
def analysed(kernel: str, gpu: str) -> tuple[SymbolicProgram, GpuProfile, Selection]:
    card = load_profile(gpu)
    source = data_directory("kernels") / f"{kernel}.c"
    symbolic = Session(source, Reading(defines={"DATA_TYPE": "float"})).symbolic
    chosen = select_for(symbolic.program, card, ModelOptions(target="cuda"))
    return symbolic, card, chosen


def laid_out(kernel: KernelSelection, facts: KernelFacts, chosen: Chosen) -> KernelSelection:
    """Return a kernel as a layout says, everything that can be in boxes, no tensor cores."""
    mapped = [loop.name for loop in mapped_loops(facts)]
    others = [name for name, _ in kernel.tile_sizes if name not in mapped]
    sizes = zip(mapped, chosen.points, chosen.threads, strict=True)
    tiles = {name: points * threads for name, points, threads in sizes}
    tiles |= dict(zip(others, chosen.steps, strict=False))  # an elementwise kernel has none
    return replace(
        kernel,
        warps=None,
        spread=None,
        shared_sum=None,
        host_loop=None,
        sum_loops=(),
        tile_sizes=tuple((name, tiles[name]) for name, _ in kernel.tile_sizes),
        block=tuple(zip(mapped, chosen.threads, strict=True)),
        stages=chosen.stages,
        references=tuple(replace(one, placement="shared") for one in kernel.references),
    )


Expected = Mapping[str, tuple[bool, bool]]


def predicted(name: str, gpu: str, chosen: Chosen) -> tuple[Selection, Expected] | None:
    """Return a selection, and of which statements operands are loaded ahead, and boxes turned so.

    There is none of boxes that do not fit the card.
    """
    symbolic, card, selection = analysed(name, gpu)
    structures = structures_for(symbolic.program, card)
    kernels, found = list(selection.kernels), dict[str, tuple[bool, bool]]()
    for at, facts in enumerate(symbolic.program.facts):
        kernels[at] = laid_out(kernels[at], facts, chosen)
        structure = structure_of(structures[facts.name], kernels[at])
        assert structure is not None
        for of in plan(facts, candidate_of(facts, structure, kernels[at]), card_of(card)):
            if of.shared_bytes > card.shared_per_block_optin_bytes:
                return None
            lines = bool(of.turned_in_registers)
            found |= {one.facts.name: (bool(one.ahead), lines) for one in of.computes}
    return replace(selection, kernels=tuple(kernels)), found


def compared(
    name: str, gpu: str, loops: int, count: int | None
) -> tuple[set[bool], set[bool], list[str]]:
    """Return what is predicted for layouts, and where generated code is otherwise."""
    symbolic, card, _ = analysed(name, gpu)
    original = Original(file=f"{name}.c", defines=(), include_dirs=())
    every_ahead, every_line, wrong = set(), set(), []
    for chosen in islice(layouts(loops), count):
        own = predicted(name, gpu, chosen)
        if own is None:
            continue
        selection, expected = own
        recipe = recipe_of(selection, CodegenOptions())
        program = generate_for(symbolic, recipe, card, name=name, original=original)
        for kernel in program.kernels:
            text = program.text.partition(f"{kernel.name}(")[2].partition("\n}\n")[0]
            there = tuple(re.search(rf"\b\w+_{what}(_\d+)?\[", text) for what in ("step", "line"))
            ahead, lines = zip(*(expected[one] for one in kernel.statements), strict=True)
            every_ahead.add(any(ahead))
            every_line.add(any(lines))
            if tuple(map(bool, there)) != (any(ahead), any(lines)):
                wrong.append(f"{kernel.name} {chosen}: predicted {any(ahead)}, {any(lines)}")
    return every_ahead, every_line, wrong


KERNELS = {"gemm": 1, "syrk": 1, "syr2k": 1, "trmm": 1, "symm": 1, "mttkrp": 2}


@pytest.mark.samples(1)
@pytest.mark.parametrize("kernel", with_long(["gemm", "syrk", "syr2k"], ["syrk"]))
def test_code_loads_operands_ahead_where_it_is_predicted(kernel: str) -> None:
    ahead, lines, wrong = compared(kernel, "h200", KERNELS[kernel], 14)
    assert not wrong
    assert ahead == {True, False}
    assert lines == ({False} if kernel == "gemm" else {True, False})


@pytest.mark.long
@pytest.mark.parametrize("gpu", ["h200", "rtx4090"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_code_loads_operands_ahead_in_all_layouts(kernel: str, gpu: str) -> None:
    ahead, lines, wrong = compared(kernel, gpu, KERNELS[kernel], 150)
    assert not wrong
    assert ahead == {True, False}
    assert (True in lines) == (kernel in ("syrk", "syr2k"))


def test_operands_ahead_take_the_registers_of_two_steps_and_hide_their_loads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    symbolic, card, selection = analysed("gemm", "h200")
    (facts,), (kernel,) = symbolic.program.facts, selection.kernels
    own = laid_out(kernel, facts, Chosen((16, 8), (16, 16), (8,), 2))
    structure = structure_of(structures_for(symbolic.program, card)[facts.name], own)
    assert structure is not None

    def registers_and_cycles() -> tuple[float, float]:
        ((demand, _),) = (
            CudaModel.of(facts, card).columns(candidate_of(facts, structure, own)).launches
        )
        return demand.registers[0], demand.chain_cycles[0]

    registers, cycles = registers_and_cycles()
    monkeypatch.setattr(Compute, "loads_ahead", lambda *_: False)
    fewer, longer = registers_and_cycles()
    assert fewer < registers
    assert cycles < longer
