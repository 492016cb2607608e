"""Threads that have their points in a row instead of by turns: the mapping is data."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from eatss.lower import mapping
from eatss.lower.mapping import MappedLoop
from eatss.lower.recipe import CodegenOptions
from eatss.program import Program
from eatss.verify import Verification


@pytest.fixture
def blocked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let threads have their points in a row."""
    monkeypatch.setattr(mapping, "MappedLoop", partial(MappedLoop, cyclic=False))


def mapped(tile: int, threads: int, *, cyclic: bool) -> MappedLoop:
    return MappedLoop(
        name="i", source_name="i", tile=tile, threads=threads, axis="x", grid="x", order=0,
        origin="i0", thread="ti", point="ri", cyclic=cyclic,
    )  # fmt: skip


@pytest.mark.parametrize("cyclic", [True, False])
@pytest.mark.parametrize(("tile", "threads"), [(32, 8), (7, 7), (12, 1), (1, 1), (64, 32)])
def test_each_point_of_a_tile_is_one_thread_s(tile: int, threads: int, *, cyclic: bool) -> None:
    loop = mapped(tile, threads, cyclic=cyclic)
    points = list(loop.distribution.everywhere({"i0": 5}))
    assert sorted(points) == [(5 + point,) for point in range(tile)]
    assert loop.step == (threads if cyclic and tile > threads else 1)


@pytest.mark.samples(1)
@pytest.mark.usefixtures("blocked")
@pytest.mark.parametrize(
    ("kernel", "sizes"),
    [
        ("gemm", {"NI": 37, "NJ": 70, "NK": 9}),
        ("jacobi-2d", {"N": 41, "TSTEPS": 3}),
        ("atax", {"NX": 45, "NY": 38}),
    ],
)
def test_points_in_a_row_are_right(
    kernel: str,
    sizes: dict[str, int],
    generate: Callable[..., Program],
    verify_kernel: Callable[..., Verification],
) -> None:
    options = CodegenOptions(shared_limit_bytes=40_000)  # of no other test: nothing is cached
    program = generate(kernel, options=options)
    found = verify_kernel(program, [sizes])
    assert found.ok, found.message


@pytest.mark.usefixtures("blocked")
def test_the_text_says_which_points(generate: Callable[..., Program]) -> None:
    text = generate("jacobi-2d", options=CodegenOptions(shared_limit_bytes=40_001)).text
    assert " * ti + ri;" in text
