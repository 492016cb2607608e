"""Data of arguments: seeded, shared, poisoned, looked at; NumPy stands in for CuPy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from eatss.measurement.arguments import (
    ArrayKey,
    MemoryUse,
    SharedArguments,
    fill,
    health,
    memory_of,
    poison,
)
from eatss.program import load_program
from eatss.verify.data import Flavour

PROGRAMS = Path(__file__).parent / "programs"


def key(
    shape: tuple[int, ...] = (40, 50),
    dtype: str = "f8",
    seed: int = 0,
    name: str = "A",
) -> ArrayKey:
    return ArrayKey(name=name, shape=shape, dtype=np.dtype(dtype), seed=seed)


def filled(given: ArrayKey, flavour: Flavour = "uniform") -> np.ndarray:
    array = np.full(given.shape, -1, given.dtype)
    fill(np, array, given, flavour)
    return array


def test_data_are_the_same_for_the_same_seed_and_others_for_another() -> None:
    assert np.array_equal(filled(key()), filled(key()))
    for other in (key(seed=1), key(name="B"), key(shape=(50, 40))):
        assert not np.array_equal(filled(key()).reshape(-1), filled(other).reshape(-1))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_floating_point_data_lie_in_the_range_of_their_flavour(dtype: str) -> None:
    uniform = filled(key(dtype=dtype))
    assert uniform.min() >= 0
    assert uniform.max() < 1
    assert 0.4 < uniform.mean() < 0.6
    offset = filled(key(dtype=dtype), "offset")
    assert offset.min() >= 1
    small = filled(key(dtype=dtype), "small")
    assert small.max() < 1 / 50 + 1e-6
    dominant = filled(key(dtype=dtype), "dominant")
    assert np.diagonal(dominant).min() >= 100
    assert (dominant > 2).sum() == 40


def test_poison_is_neither_broken_nor_faint_but_other_nan_are() -> None:
    for dtype in ("f4", "f8"):
        array = np.empty(1000, dtype)
        poison(np, array)
        assert np.isnan(array).all()
        found = health(np, array)
        assert (found.elements, found.broken, found.faint) == (1000, 0, 0)
        array[:3] = np.inf, -np.inf, np.float64(1) * np.nan
        array[3:8] = 0, -0.0, np.finfo(dtype).tiny / 2, np.finfo(dtype).tiny, 1
        found = health(np, array)
        assert (found.broken, found.faint) == (3, 3)


def test_a_run_begins_with_its_data_or_with_poison() -> None:
    store = SharedArguments(np)
    both = MemoryUse(key=key(name="C"), reads=True, writes=True)
    out = MemoryUse(key=key(name="D"), reads=False, writes=True)
    only_read = MemoryUse(key=key(), reads=True, writes=False)
    arrays = [store.array(use.key) for use in (both, out, only_read)]
    for use in (both, out, only_read):
        store.begin(use)
    assert np.array_equal(arrays[0], filled(both.key))
    assert np.isnan(arrays[1]).all()
    assert np.array_equal(arrays[2], filled(only_read.key))
    arrays[0][:] = arrays[1][:] = 7
    store.begin(both)
    store.begin(out)
    assert np.array_equal(arrays[0], filled(both.key))
    assert np.isnan(arrays[1]).all()


def test_entries_share_arrays_of_equal_name_shape_and_type() -> None:
    program = load_program(PROGRAMS / "gemm")
    entry = program.entries[0]
    sizes = {"NI": 4, "NJ": 5, "NK": 6}
    once = memory_of(program, sizes, 0)
    assert {use.key.name: use.key.shape for use in once} == {"C": (4, 5), "A": (4, 6), "B": (6, 5)}
    assert {use.key.name for use in once if use.overwritten} == {"C"}
    twice = memory_of(replace(program, entries=(entry, entry)), sizes, 0)
    assert twice == once
    writing = tuple(replace(a, writes=True) if a.role == "array" else a for a in entry.arguments)
    joined = memory_of(
        replace(program, entries=(entry, replace(entry, arguments=writing))), sizes, 0
    )
    assert all(use.overwritten for use in joined)
