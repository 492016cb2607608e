"""Kernels, their order and their bands are those of PPCG 0.09 on PolyBench 3.2.

``ppcg_kernels.csv`` lists, for each kernel PPCG makes of a program, the depth of its tile
band and the number of its block dimensions.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eatss.frontend import FrontendOptions, parse_file
from eatss.polyhedral import Kernel, schedule_scop
from eatss.polyhedral.schedule import generalise

KERNELS = Path(__file__).parents[2] / "kernels"

Cut = tuple[int, int]

# Programs whose kernels differ.
OTHER_ORDER = {"covariance"}
"""Kernels that do not depend on each other stand in another order than PPCG's."""
OTHER_CUT = {"adi": [(2, 1), (2, 1)]}
"""isl fuses the sweeps of each direction, where PPCG 0.09 with its isl kept all eight apart."""


def _expected() -> dict[str, list[Cut]]:
    table: dict[str, list[Cut]] = {}
    with (Path(__file__).parent / "ppcg_kernels.csv").open() as lines:
        for row in csv.DictReader(lines):
            table.setdefault(row["program"], []).append(
                (int(row["tile_dims"]), int(row["block_dims"]))
            )
    return table


EXPECTED = _expected()


def _cut(kernels: tuple[Kernel, ...]) -> list[Cut]:
    return [(len(kernel.loops), min(3, _leading_parallel(kernel))) for kernel in kernels]


def _leading_parallel(kernel: Kernel) -> int:
    count = 0
    for loop in kernel.loops:
        if not loop.parallel:
            break
        count += 1
    return count


def _scheduled(program: str) -> tuple[Kernel, ...]:
    (scop,) = parse_file(str(KERNELS / f"{program}.c"), FrontendOptions()).scops
    return schedule_scop(scop).kernels


@pytest.mark.samples(10)
@pytest.mark.parametrize("program", sorted(EXPECTED.keys() - OTHER_CUT.keys()))
def test_a_program_is_cut_into_the_kernels_ppcg_makes(program: str) -> None:
    found, expected = _cut(_scheduled(program)), EXPECTED[program]
    if program in OTHER_ORDER:
        assert sorted(found) == sorted(expected)
    else:
        assert found == expected


@pytest.mark.parametrize("program", sorted(OTHER_CUT))
def test_a_program_known_to_be_cut_otherwise_is_cut_as_recorded(program: str) -> None:
    assert _cut(_scheduled(program)) == OTHER_CUT[program]


def test_bounds_spelled_by_one_macro_are_one_size() -> None:
    (scop,) = parse_file(str(KERNELS / "gesummv.c"), FrontendOptions()).scops
    assert [name for name, _ in generalise(scop).values] == ["N"]


def test_equal_numbers_of_two_macros_stay_two_sizes() -> None:
    (scop,) = parse_file(str(KERNELS / "atax.c"), FrontendOptions()).scops
    assert len(generalise(scop).values) == 2


def test_numbers_and_parameters_give_the_same_cut(scop_of: Callable[..., Any]) -> None:
    source = (
        "for t in range(0, {T}):\n"
        "    for i in range(1, {N}-1):\n        for j in range(1, {N}-1):\n"
        "            B[i,j] = A[i,j] + A[i,j-1] + A[i,1+j] + A[1+i,j] + A[i-1,j]\n"
        "    for i in range(1, {N}-1):\n        for j in range(1, {N}-1):\n"
        "            A[i,j] = B[i,j]\n"
    )
    named = scop_of(source.format(T="T", N="N"), parameters=["T", "N"])
    fixed = scop_of(source.format(T=20, N=4000))
    assert _cut(schedule_scop(named).kernels) == _cut(schedule_scop(fixed).kernels)
    assert schedule_scop(fixed).kernels[0].loops[0].trip_count == 3998
