"""Halves that are copied one by one: two boxes at most, and registers for what is on its way.

Loads of vectors from shared memory take what the order of lanes makes of them.

Registers of a thread, and the blocks of an SM that a compiler is bound to.

Shared memory is predicted as generated code has it: boxes of parts lie in the same place.

Which loops blocks of an SM are in at different times, and how much code of them there is.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random

import numpy as np
import pytest

import eatss
from eatss.analysis import structure as banks
from eatss.analysis.layout import Candidates, mapped_loops
from eatss.base.shipped import data_directory
from eatss.cards import load_profile
from eatss.choose import ModelOptions
from eatss.choose.cuda_candidates import candidates_of, every_candidate
from eatss.cost.card import card_of
from eatss.cost.computes import loops_apart
from eatss.cost.cuda_model import CudaModel
from eatss.cost.demand import Demand
from eatss.frontend.options import Reading
from eatss.lower.structures import structures_for
from eatss.plan import contract
from eatss.plan.launch import launch_plan
from eatss.session.analysis import SymbolicProgram
from eatss.session.session import Session
from eatss.session.steps import select_for
from tests.choose.cuda_kernels import analysed, generated, laid_out, selected, structures

SOURCE = """\
#define N {0}
void product(float C[N][N], _Float16 A[N][N], _Float16 B[N][N])
{{
#pragma scop
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++)
      for (int k = 0; k < N; k++)
        C[i][j] += (float) A[i][k] * (float) B[k][j];
#pragma endscop
}}
"""
LANES = 32
VECTORS, ODD = 1152, 1151
"""A size of which rows are whole vectors, and one of which they begin anywhere."""


def predicted(size: int) -> tuple[Candidates, Demand]:
    """Return layouts of tensor cores, and what they ask for."""
    card = load_profile("h200")
    program = Session(SOURCE.format(size), Reading(), code=True).analysed
    (facts,) = program.facts
    (layouts,) = (
        one
        for one in candidates_of(facts, structures_for(program, card)[facts.name], card)
        if one.structure.instruction is not None and one.structure.shared_loop is None
    )
    found = CudaModel.of(facts, card).columns(layouts)
    ((demand, _),) = found.launches
    return layouts, demand


def row(layouts: Candidates, stages: int) -> int:
    """Return the layout of 128 x 128 x 32 products by 256 threads with so many boxes."""
    sizes = {"i": 128, "j": 128, "k": 32}
    own = np.logical_and.reduce([layouts.tiles[name] == one for name, one in sizes.items()])
    own &= (layouts.threads["i"] == 16) & (layouts.threads["j"] == 16)
    (at,) = np.flatnonzero(own & (layouts.boxes == stages))
    return int(at)


def test_odd_rows_have_two_boxes_at_most() -> None:
    assert set(predicted(VECTORS)[0].boxes.tolist()) == {1, 2, 3, 4}
    assert set(predicted(ODD)[0].boxes.tolist()) == {1, 2}


def test_what_is_on_its_way_has_registers() -> None:
    """Of 128 x 32 elements of each factor a thread of 256 copies 16, each in a register."""
    (whole, vectors), (odd, narrow) = predicted(VECTORS), predicted(ODD)
    assert narrow.registers[row(odd, 1)] == vectors.registers[row(whole, 1)]
    more = narrow.registers[row(odd, 2)] - vectors.registers[row(whole, 2)]
    assert more == 2 * 16


def test_two_boxes_of_odd_rows_save_waiting() -> None:
    layouts, demand = predicted(ODD)
    one, two = row(layouts, 1), row(layouts, 2)
    assert demand.shared_bytes[two] == 2 * demand.shared_bytes[one]
    assert demand.chain_cycles[two] < demand.chain_cycles[one] / 2
    assert demand.instructions[two] <= demand.instructions[one]


def test_eight_elements_of_a_lane_are_one_load(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A warp has 4 x 4 matrices of 16 x 8 sums: 4 of A, of 8 elements a lane, 4 of B, of 4."""
    layouts, demand = predicted(VECTORS)
    at = row(layouts, 2)
    assert demand.tensor16[at] * LANES == VECTORS**3
    elements = (VECTORS / 128) ** 2 * 8 * VECTORS / 16 * (4 * 8 + 4 * 4)
    monkeypatch.setattr(contract, "VECTOR_BYTES", 2)  # one half
    _, one_by_one = predicted(VECTORS)
    saved = one_by_one.instructions[at] - demand.instructions[at]
    assert saved == pytest.approx(elements * 7 / 8)
    assert demand.operand_bytes[at] == elements * LANES * 2


PRODUCT = """
#ifndef N
#define N 512
#endif
void f(float C[N][N], float A[N][N], float B[N][N])
{
#pragma scop
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++)
      for (int k = 0; k < N; k++)
        C[i][j] += A[i][k] * B[k][j];
#pragma endscop
}
"""


def test_loads_take_what_lanes_make_of_them(tmp_path: Path) -> None:
    """Two wavefronts where lanes are interleaved, along one axis or the other."""
    (tmp_path / "f.c").write_text(PRODUCT)
    program = Session(tmp_path / "f.c", Reading(), code=True).analysed
    (facts,) = program.facts
    card = load_profile("h200")
    plain = next(
        one
        for one in candidates_of(facts, structures_for(program, card)[facts.name], card)
        if not one.structure.spreads and one.structure.shared_loop is None
    )
    (cut,) = plain.structure.launches
    of = launch_plan(facts, cut, plain, card_of(card))
    ((pair, on),) = of.interleaved.items()
    assert pair == ("j", "i")
    rows = of.neighbours("i") & of.neighbours("j")
    assert not np.any(on & ~rows)
    threads = [count for _, count in of.axes]
    for use in of.uses:
        if not use.held:
            each = of.vector_wavefronts(use.access)
            assert np.all(each[on] == 2)
            assert np.all(np.isin(each, (2, 4)))
            moves = [name in use.access.moving for name, _ in of.axes]
            assert np.any(banks.vector_wavefronts(threads, moves)[on] > 2) == moves[0]


pytestmark = pytest.mark.usefixtures("analysed_once")

CARD = load_profile("h200")
SYMM = data_directory("kernels") / "symm.c"
SIZES = {"DATA_TYPE": "float", "NI": "1900", "NJ": "2600"}


def test_compilers_are_bound_to_as_many_blocks_as_sums_leave_registers_for() -> None:
    program = Session(SYMM, Reading(defines=SIZES)).symbolic.program
    (kernel,) = select_for(program, CARD, ModelOptions(target="cuda")).kernels
    assert kernel.predicted is not None
    threads = np.prod([count for _, count in kernel.block])
    points = np.prod([dict(kernel.tile_sizes)[name] for name, _ in kernel.block]) / threads
    blocks = kernel.predicted.resident_blocks
    assert kernel.resident == blocks > 1
    assert kernel.predicted.registers == points + 72
    assert CARD.registers_per_sm // (threads * blocks) >= points + 72
    text = eatss.codegen(SYMM, gpu="h200", defines=SIZES).text
    assert f"__launch_bounds__({threads}, {blocks})" in text


def test_sizes_of_the_user_leave_registers_to_compilers() -> None:
    made = eatss.codegen(
        SYMM,
        gpu="h200",
        defines=SIZES,
        tiles={"k": 64, "j": 128, "i": 8},
        block={"k": 8, "j": 16},
        stages=2,
    )
    assert "__launch_bounds__(128)" in made.text


FEW = 2
LESS = {"threads alone": 1.0, "warps": 0.96}
"""What code may have of the predicted bytes: of some rows that lanes load it pads less."""


@pytest.mark.long
@pytest.mark.parametrize(
    ("kernel", "layouts"),
    [
        ("symm", FEW),
        *(pytest.param(one, 16, marks=pytest.mark.long) for one in ("symm", "syr2k", "trmm")),
    ],
)
def test_shared_memory_is_that_of_generated_code(kernel: str, layouts: int) -> None:
    card, selection = load_profile("h200"), selected(kernel)
    facts = analysed(kernel).program.facts[-1]
    model, dice = CudaModel.of(facts, card), Random(3)
    offered = [
        own
        for own in every_candidate(facts, structures(kernel)[facts.name], card)
        if not own.structure.spreads and own.structure.shared_loop is None
    ]
    assert len(offered) == FEW  # threads alone, and warps
    overlaid = 0
    for number in range(layouts):
        own = offered[number % len(offered)]
        found = model.columns(own)
        staged = sum(own.staged.values()) >= FEW
        limit = card.shared_per_block_optin_bytes
        rows = np.flatnonzero(staged & found.fits & (found.shared_bytes <= limit))
        row = dice.choice(rows.tolist())
        kernels = list(selection.kernels)
        kernels[-1] = laid_out(kernels[-1], own, row)
        program = generated(kernel, replace(selection, kernels=tuple(kernels)))
        share = program.kernels[-1].shared_bytes / found.shared_bytes[row]
        assert LESS["warps" if own.structure.instruction else "threads alone"] <= share <= 1.0
        overlaid += "EATSS_OVERLAID" in program.text
    assert (overlaid > 0) == (kernel == "symm")


def test_a_launch_knows_in_which_parts_a_box_is_filled() -> None:
    (structure,) = (
        one
        for one in structures("symm")["kernel0"]
        if one.instruction is None and not one.spreads and one.shared_loop is None
    )
    (launch,) = structure.launches
    assert sorted({at for own in launch.copied_in for at in own}) == [1, 2, 3]
    assert launch.copies == tuple(map(len, launch.copied_in))


FETCH_CARD = load_profile("h200")


@cache
def with_type(kernel: str, dtype: str) -> SymbolicProgram:
    source = data_directory("kernels") / f"{kernel}.c"
    return Session(source, Reading(defines={"DATA_TYPE": dtype})).symbolic


def apart(
    kernel: str, steps: int, *, threads: tuple[int, int], dtype: str = "float", warps: bool = False
) -> tuple[float, float]:
    """Return the loops of the last launch of a kernel, for tiles of 128 × 128 points."""
    program = with_type(kernel, dtype).program
    facts = program.facts[-1]
    structure = next(
        one
        for one in structures_for(program, FETCH_CARD)[facts.name]
        if not one.spreads and one.host_loop is None and (one.instruction is not None) == warps
    )
    mapped = [loop.name for loop in mapped_loops(facts)]

    candidate = Candidates(
        structure=structure,
        tile_sizes=tuple((one.name, 128 if one.name in mapped else steps) for one in facts.loops),
        block=tuple(zip(mapped, threads, strict=True)),
        staged={one: 1 for cut in structure.launches for one in cut.stageable},
        stages=2,
    ).map(lambda one: np.array([float(one)]))
    launch = launch_plan(facts, structure.launches[-1], candidate, card_of(FETCH_CARD))
    code, again = (np.ravel(one) for one in loops_apart(launch))
    return code[0], again[0]


@pytest.mark.parametrize(
    ("steps", "threads", "unrolled", "again"),
    [
        (8, (8, 16), 1024, 1.0),  # all 8 steps of 128 products
        (4, (8, 16), 512, 1.0),
        (16, (8, 16), 1024, 0.5),  # in parts, as far as blocks of 128 threads allow
        (16, (16, 16), 1024, 1.0),
        (8, (8, 8), 512, 1.0),  # too long: compilers unroll it
    ],
)
def test_rows_of_a_symmetric_matrix_have_two_loops(
    steps: int, threads: tuple[int, int], unrolled: int, again: float
) -> None:
    found = apart("symm", steps, threads=threads)
    assert found == (2 * 1.25 * unrolled, again)


@pytest.mark.parametrize("kernel", ["gemm", "syrk", "trmm", "covariance"])
def test_one_loop_is_not_apart(kernel: str) -> None:
    assert apart(kernel, 8, threads=(8, 16))[0] == 0


def test_products_of_warps_have_little_code() -> None:
    assert apart("symm", 8, threads=(8, 32), dtype="double", warps=True)[0] == 0
    assert apart("symm", 8, threads=(8, 32), dtype="double")[0] > 0
