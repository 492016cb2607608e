"""Loops on the host that blocks run: all of a loop as phases of one, or tiles of its wavefronts."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from eatss.analysis.layout import LoopBlock, SplitK
from eatss.base.shipped import data_directory
from eatss.cards import load_profile
from eatss.choose.options import SelectOptions
from eatss.choose.selection import Selection
from eatss.frontend.options import Reading
from eatss.lower.kernel.barriers import barrier_faults, passed_on
from eatss.lower.kernel.nodes import Barrier, Buffer, Copy, Scope, counted
from eatss.lower.recipe import CodeRequest
from eatss.polyhedral.expression import ElementType
from eatss.program import Name, Program
from eatss.session.session import Session
from eatss.verify.run import verify
from tests.lower.checking import (
    broken,
    every_barrier_is_missed,
    is_kept_by_its_recipe,
    right,
)

pytestmark = pytest.mark.usefixtures("analysed_once")

H200 = load_profile("h200")
TARGET = SelectOptions(target="cuda")
STEPS = """
#ifndef N
#define N 300
#endif
void steps(double a[N], double s[N], double A[N][N])
{
#pragma scop
    for (int k = 1; k < N; k++) {
        s[k] = 0;
        for (int i = 0; i < k; i++)
            s[k] += A[k - 1][k - 1 - i] * a[i];
        a[k] = a[k - 1] + s[k] / 8;
        for (int i = 0; i < k; i++)
            A[k][i] = A[k - 1][i] - a[k];
    }
#pragma endscop
}
"""
WAVES = """
#ifndef N
#define N 500
#endif
#ifndef T
#define T 2
#endif
void waves(double A[N][N])
{
#pragma scop
    for (int t = 0; t < T; t++)
        for (int i = 1; i < N - 1; i++)
            for (int j = 1; j < N - 1; j++)
                A[i][j] = (A[i - 1][j] + A[i - 1][j + 1] + A[i][j - 1] + A[i][j] + A[i + 1][j]) / 5;
#pragma endscop
}
"""


@cache
def apart(text: str) -> tuple[Session, Selection]:
    session = Session(text, code=True)
    return session, session.select(H200, TARGET, fuse_rows=False)


def made(text: str, threads: int, tiles: tuple[int, ...], folder: Path) -> Program:
    """Generate a program whose loop on the host blocks run, into a folder."""
    session, found = apart(text)
    names = tuple(one.name for one in found.kernels if one.host_loops)
    kernels = []
    for one in found.kernels:
        changed = one
        if one.spread is not None and one.host_loops:
            changed = replace(changed, spread=SplitK(lanes=threads, tile=threads, chunks=1))
        if tiles:
            sizes = tuple(zip((loop for loop, _ in one.block), tiles[1:], strict=True))
            changed = replace(changed, tile_sizes=sizes, block=sizes)
        if one.name == names[0]:
            block = LoopBlock(kernels=names, threads=threads, tiles=tiles)
            changed = replace(changed, loop_block=block)
        kernels.append(changed)
    recipe = session.recipe(replace(found, kernels=tuple(kernels)), H200, CodeRequest())
    program = session.generate(recipe, H200)
    session.write(program, folder)
    return program


OVERWRITTEN = """
#define N 131
void overwritten(double a[N], double s[N], double x[N])
{
#pragma scop
    for (int k = 1; k < N; k++) {
        s[k] = 0;
        for (int i = 0; i < k; i++)
            s[k] += a[i] * x[k - i];
        a[k - 1] = a[k - 1] / 2 + s[k];
        for (int i = 0; i < k; i++)
            x[i] = x[i] + a[k - 1];
    }
#pragma endscop
}
"""
MADE = [
    (STEPS, 64, ()), (WAVES, 32, (8, 2, 16)), (WAVES, 20, (5, 1, 20)),
    (OVERWRITTEN, 32, ()),
]  # fmt: skip
SIZES: dict[str, list[dict[str, int]]] = {
    STEPS: [{"N": n} for n in (0, 1, 2, 65, 131)],
    OVERWRITTEN: [{}],
    WAVES: [{"N": n, "T": 3} for n in (0, 3, 41)],
}


@pytest.mark.parametrize(("text", "threads", "tiles"), MADE)
def test_blocks_do_what_launches_do(
    text: str, threads: int, tiles: tuple[int, ...], tmp_path: Path
) -> None:
    program = made(text, threads, tiles, tmp_path / "made")
    (kernel,) = (one for one in program.kernels if any("the loop" in note for note in one.notes))
    assert kernel.block == (threads, 1, 1)
    right(verify(tmp_path / "made", device="cpu", sizes=SIZES[text]))


@pytest.mark.parametrize(("text", "threads", "tiles"), MADE[:2])
def test_every_barrier_is_missed(
    text: str, threads: int, tiles: tuple[int, ...], tmp_path: Path
) -> None:
    folder = tmp_path / "made"
    every_barrier_is_missed(made(text, threads, tiles, folder), folder, SIZES[text][-1:])


@pytest.mark.parametrize(
    ("right_text", "wrong"),
    [
        ("c0 = wave - c1 - c2", "c0 = wave - c1"),  # tiles of a wavefront that need each other
        ("c1 = (int)blockIdx.x", "c1 = (int)blockIdx.x + 1"),  # a tile lost
    ],
)
def test_wrong_tiles_are_found(right_text: str, wrong: str, tmp_path: Path) -> None:
    folder = tmp_path / "made"
    program = made(WAVES, 32, (8, 2, 16), folder)
    assert broken(program, folder, right_text, wrong, SIZES[WAVES][-1:]) != "ok"


def test_a_phase_meets_itself_in_the_next_iteration() -> None:
    array = Buffer.of("global", "a", ElementType.DOUBLE, 100)
    copy = Copy(target=array.at(Name("k") + 1), source=array.at(Name("k")))
    phase = Scope(body=(copy,), phase="one")
    assert not barrier_faults((phase,))
    assert barrier_faults((counted("k", 9, (phase,), None),))
    assert not barrier_faults((counted("k", 9, (phase, Barrier()), None),))
    assert passed_on((counted("k", 9, (phase,), None),)) == {array}


@pytest.mark.parametrize(
    ("kernel", "size", "tiles"),
    [("durbin", 4000, 0), ("trisolv", 400, None), ("floyd-warshall", 100, None),
     ("seidel-2d", 1000, 3)],
)  # fmt: skip
def test_small_loops_get_a_block_and_wavefronts_tiles(
    kernel: str, size: int, tiles: int | None
) -> None:
    source = data_directory("kernels") / f"{kernel}.c"
    session = Session(source, Reading(defines=(f"N={size}",)), code=True)
    one, alone = (session.select(H200, TARGET, fuse_rows=fuse) for fuse in (True, False))
    blocks = [own.loop_block for own in one.kernels if own.loop_block is not None]
    assert [len(block.tiles) for block in blocks] == ([] if tiles is None else [tiles])
    assert all(own.loop_block is None for own in alone.kernels)


def test_a_recipe_keeps_a_block_and_is_refused_where_none_can_carry_it_out(tmp_path: Path) -> None:
    nothing: list[str] = []
    wrong = (("threads", 0), ("threads", 2048), ("kernels", nothing), ("tiles", [0, 1]))
    program = made(STEPS, 64, (), tmp_path)
    is_kept_by_its_recipe(program, STEPS, "loop_block", *wrong)
