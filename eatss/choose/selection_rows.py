"""Selections and expectations as rows of a table: a row a kernel, units in the names."""

from __future__ import annotations

from typing import TypeAlias

from eatss.base.expected_run import sizes_text
from eatss.choose.expectation import KernelExpectation, ProgramExpectation
from eatss.choose.selection import KernelSelection, Selection
from eatss.cost.expected import Prediction

Cell: TypeAlias = str | int | float | None


def selection_rows(selection: Selection) -> list[dict[str, Cell]]:
    """Return a row a kernel; sizes of tiles and threads are columns by the names of loops."""
    common: dict[str, Cell] = {
        "file": selection.file,
        "gpu": selection.gpu,
        "dtype": selection.dtype,
        "target": selection.target,
        "sizes": sizes_text(selection.sizes),
        "objective": selection.objective,
    }
    return _even(
        [
            {
                **common,
                "kernel": kernel.name,
                "statements": " ".join(kernel.statements),
                **_sizes(kernel),
                "threads_per_block": kernel.threads_per_block,
                "split_factor": kernel.split_factor,
                "warp_fraction": kernel.warp_fraction,
                "objective_value": kernel.objective,
                "optimal": kernel.optimal,
                **_predicted("predicted", kernel.predicted),
                **_predicted("default", kernel.default),
                "keeps_default": kernel.keeps_default,
                "solve_time_s": kernel.solve_time_s,
                "note": kernel.note,
            }
            for kernel in selection.kernels
        ]
    )


def expectation_rows(expectation: ProgramExpectation) -> list[dict[str, Cell]]:
    """Return a row a kernel, as :func:`selection_rows` does."""
    common: dict[str, Cell] = {
        "file": expectation.file,
        "gpu": expectation.gpu,
        "dtype": expectation.dtype,
        "target": expectation.target,
        "sizes": sizes_text(expectation.sizes),
    }
    return _even(
        [
            {
                **common,
                "kernel": kernel.name,
                "statements": " ".join(kernel.statements),
                **_sizes(kernel),
                **_predicted("predicted", kernel.predicted),
                **_predicted("default", kernel.default),
                "note": kernel.note,
            }
            for kernel in expectation.kernels
        ]
    )


def _sizes(kernel: KernelSelection | KernelExpectation) -> dict[str, Cell]:
    tiles: dict[str, Cell] = {f"tile_{loop}": size for loop, size in kernel.tile_sizes}
    return tiles | {f"threads_{loop}": size for loop, size in kernel.block}


def _predicted(name: str, found: Prediction | None) -> dict[str, Cell]:
    return {
        f"{name}_time_s": None if found is None else found.time_s,
        f"{name}_energy_j": None if found is None else found.energy_j,
        f"{name}_power_w": None if found is None else found.power_w,
        f"{name}_bound": None if found is None else found.bound,
    }


def _even(rows: list[dict[str, Cell]]) -> list[dict[str, Cell]]:
    """Return rows of the same columns: kernels have loops of different names."""
    before, after = ("tile_", "threads_"), "threads_per_block"
    sizes = dict.fromkeys(
        name for row in rows for name in row if name.startswith(before) and name != after
    )
    found = []
    for row in rows:
        even: dict[str, Cell] = {}
        for name, value in row.items():
            if name not in sizes:
                even[name] = value
            if name == "statements":
                even |= {size: row.get(size) for size in sizes}
        found.append(even)
    return found
