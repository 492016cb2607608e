"""Where an instruction takes the place of a statement, and where it must not.

Blocks that take shares have each step of each tile once, and agree on who has which.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import eatss
from eatss.base.diagnostics import InputError
from eatss.lower.instructions import INSTRUCTIONS
from eatss.lower.kernel.instruction import Instruction, Operand
from eatss.lower.kernel.nodes import Let
from eatss.program import Constant, evaluate
from tests.examples import examples
from tests.streamed_blocks import (
    COLUMNS,
    ROWS,
    STEP,
    Turn,
    grid_of,
    sizes_with,
    streamed_product,
    turns_of,
)

C = """
#define N 64
void f(float D[N], float A[N], float B[N], float C[N])
{{
#pragma scop
    for (int i = 0; i < N; i++)
        {statement}
#pragma endscop
}}
"""

Offer = Callable[..., str]


@pytest.fixture
def offer() -> Iterator[Offer]:
    """Return what registers an instruction of single values and tells its name."""
    names = []

    def put(operands: str, value: str, **more: Any) -> str:
        written = Operand(name="d", role=more.pop("role", "inout"))
        own = Instruction(
            name="own",
            what="own",
            operands=(written, *(Operand(name=name) for name in operands)),
            target="d",
            value=value,
            cuda=f"own({{d}}, {', '.join(f'{{{name}}}' for name in operands)});",
            **more,
        )
        INSTRUCTIONS.register("own", own)
        names.append("own")
        return "own"

    yield put
    for name in names:
        INSTRUCTIONS.remove(name)


def text(statement: str, *instructions: str, **more: Any) -> str:
    program = eatss.codegen(
        C.format(statement=statement), gpu="h200", instructions=instructions, **more
    )
    return program.text.partition("__global__")[2].partition("#ifndef")[0]


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("D[i] = A[i] * B[i] + C[i];", "own(D[i], A[i], B[i], C[i]);"),
        ("D[i] = C[i] + A[i] * (B[i] - 1.0f);", "own(D[i], A[i], (B[i] - 1.0f), C[i]);"),
        ("D[i] = A[i] - B[i];", None),
        ("D[i] = A[i] * B[i] + (float) (int) C[i];", "own(D[i], A[i], B[i], ((float)(int)C[i]));"),
        ("D[i] = A[i] * B[i] + D[i];", None),  # what is written may not be an operand too
    ],
)
def test_the_value_decides(statement: str, said: str | None, offer: Offer) -> None:
    found = text(statement, offer("abc", "a * b + c", role="out"))
    assert ("own(" in found) == (said is not None)
    assert said is None or said in found


@pytest.mark.parametrize(
    ("statement", "fits"),
    [("D[i] = A[i] * B[i] + D[i];", True), ("D[i] = A[i] * B[i] + C[i];", False)],
)
def test_a_target_in_the_value_is_what_is_written(statement: str, fits: bool, offer: Offer) -> None:
    found = text(statement, offer("ab", "a * b + d"))
    assert ("own(D[i], A[i], B[i]);" in found) == fits


def test_what_reads_the_target_is_left_alone(offer: Offer) -> None:
    assert "own(" not in text("D[i] += D[i] * B[i];", offer("ab", "a * b", adds=True))


def test_rounding_is_kept_where_it_is_asked_for(offer: Offer) -> None:
    with pytest.raises(InputError, match="fma may round otherwise") as raised:
        text("D[i] += A[i] * B[i];", "fma", strict_fp=True)
    assert raised.value.code == "EATSS-K019"
    assert "fma" not in text("D[i] = A[i];", "fma", strict_fp=True)  # it fits nowhere
    name = offer("ab", "a * b", adds=True, exact=True)
    assert "own(" in text("D[i] += A[i] * B[i];", name, strict_fp=True)


def test_a_text_with_an_unknown_operand_is_refused() -> None:
    with pytest.raises(ValueError, match="its text has 'x'"):
        Instruction(
            name="own", what="own", operands=(Operand(name="d", role="out"), Operand(name="a")),
            target="d", value="a", cuda="{d} = {x};",
        )  # fmt: skip


COUNTS = (2, 3, 7, 16)


@settings(max_examples=examples(25), deadline=None)
@given(st.integers(1, 20), st.integers(1, 4), st.integers(0, 9), st.sampled_from(COUNTS))
@example(1, 1, 1, 16)  # one step
@example(1, 1, 0, 16)  # none
@example(1, 1, 9, 7)  # many blocks of a tile, the last of which has nothing
@example(7, 1, 5, 7)  # as many tiles as blocks
@example(7, 2, 5, 7)  # twice as many: a wave of whole ones
@example(9, 3, 1, 7)  # steps that nothing cuts
def test_every_step_of_every_tile_is_done_once(
    rows: int, columns: int, steps: int, blocks: int
) -> None:
    sizes = sizes_with(rows, columns, steps)
    tiles, grid, every = rows * columns, grid_of(blocks, sizes), max(1, steps)
    assert grid == min(blocks, tiles * every)
    turns = list(turns_of(blocks, sizes))
    done = [(turn.tile, step) for turn in turns for step in turn.steps]
    assert sorted(done) == [(tile, step) for tile in range(tiles) for step in range(steps)]
    places = {turn.tile: turn.place for turn in turns}
    assert sorted(places) == list(range(tiles))
    assert all(turn.place == places[turn.tile] for turn in turns)
    assert sorted(places.values()) == [
        (i, j) for i in range(0, sizes["NI"], ROWS) for j in range(0, sizes["NJ"], COLUMNS)
    ]
    check_waves(turns, tiles, grid, steps)
    check_parts(turns, grid, blocks)


def check_waves(turns: list[Turn], tiles: int, grid: int, steps: int) -> None:
    """Whole tiles come first, as many for each block, then shares that differ little."""
    of_block: dict[int, list[Turn]] = defaultdict(list)
    for turn in turns:
        of_block[turn.block].append(turn)
    waves = max(0, tiles // grid - 1)
    for own in of_block.values():
        assert [turn.whole for turn in own] == [at < waves for at in range(len(own))]
        assert all(turn.steps == range(steps) for turn in own if turn.whole)
        assert sum(len(turn.steps) < steps for turn in own) <= 2
        assert all(turn.steps == range(steps) for turn in own[waves + 1 : -1])
    left = (tiles - waves * grid) * max(1, steps)
    most = max(sum(len(turn.steps) for turn in own[waves:]) for own in of_block.values())
    assert most <= -(-left // grid)


def check_parts(turns: list[Turn], grid: int, blocks: int) -> None:
    """Blocks of a tile know how many they are, and have places of their own."""
    of_tile: dict[int, list[Turn]] = defaultdict(list)
    for turn in turns:
        of_tile[turn.tile].append(turn)
    for several in of_tile.values():
        assert [turn.block for turn in several] == sorted({turn.block for turn in several})
        for at, turn in enumerate(several):
            assert turn.number == len(several)
            if len(several) > 1:
                assert turn.own == at
                assert turn.arrived == several[0].arrived
    parts = [turn for turn in turns if turn.number > 1]
    slots = [turn.left for turn in parts]
    assert len(set(slots)) == len(slots)
    assert all(0 <= slot < 2 * grid <= 2 * blocks for slot in slots)
    counters = {turn.tile: turn.arrived for turn in parts}
    assert len(set(counters.values())) == len(counters)
    _, kernel = streamed_product(blocks)
    assert kernel.streamed is not None
    (extent,) = kernel.streamed.arrived.layout.extents
    assert isinstance(extent, Constant)
    assert all(at % 2 == 0 and at >= 0 and at + 1 < extent.value for at in counters.values())
    slots_there, registers, threads = kernel.streamed.parts.layout.extents
    assert slots_there == Constant(2 * blocks)
    assert registers == Constant(ROWS * COLUMNS // kernel.threads)
    assert threads == Constant(kernel.threads)


def test_the_steps_of_all_tiles_are_those_of_the_launch() -> None:
    _, kernel = streamed_product(7)
    assert kernel.streamed is not None
    assert kernel.streamed.blocks == 7

    def counts(rows: int, columns: int, steps: int) -> list[int]:
        assert kernel.streamed is not None
        return [evaluate(one, sizes_with(rows, columns, steps)) for one in kernel.streamed.counts]

    assert counts(5, 3, 4) == [3, 5, 1, 4]
    assert counts(5, 3, 0) == [3, 5, 1, 1]
    (steps,) = (one for one in kernel.body if isinstance(one, Let) and one.name == "steps")
    assert evaluate(steps.value, {"NK": 5 * STEP + 1}) == 6
