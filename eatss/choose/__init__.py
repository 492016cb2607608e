"""``KernelFacts`` × ``GpuProfile`` × options in; proven-optimal ``Selection`` out.

Next folders: ``eatss/report`` shows a selection, ``eatss/lower`` turns it into code.

Importing this package is cheap: solver and NumPy are loaded when they are needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from eatss.base.lazy_names import loading_names

if TYPE_CHECKING:
    from eatss.choose.objectives import OBJECTIVES, Objective
    from eatss.choose.options import PUBLISHED, SPLITS, WARP_FRACTIONS, Cell, ModelOptions
    from eatss.choose.problem import (
        Conflict,
        Constraint,
        Direction,
        Problem,
        Solution,
        Variable,
        build_problem,
    )
    from eatss.choose.select import select_kernel, select_program
    from eatss.choose.selection import KernelSelection, PpcgOptions, Selection
    from eatss.choose.solver import solve

__all__ = [
    "OBJECTIVES",
    "PUBLISHED",
    "SPLITS",
    "WARP_FRACTIONS",
    "Cell",
    "Conflict",
    "Constraint",
    "Direction",
    "KernelSelection",
    "ModelOptions",
    "Objective",
    "PpcgOptions",
    "Problem",
    "Selection",
    "Solution",
    "Variable",
    "build_problem",
    "select_kernel",
    "select_program",
    "solve",
]

_NAMES = {
    "objectives": ("OBJECTIVES", "Objective"),
    "options": ("PUBLISHED", "SPLITS", "WARP_FRACTIONS", "Cell", "ModelOptions"),
    "problem": (
        "Conflict",
        "Constraint",
        "Direction",
        "Problem",
        "Solution",
        "Variable",
        "build_problem",
    ),
    "select": ("select_kernel", "select_program"),
    "selection": ("KernelSelection", "PpcgOptions", "Selection"),
    "solver": ("solve",),
}

__getattr__ = loading_names(__name__, {name: at for at, names in _NAMES.items() for name in names})
