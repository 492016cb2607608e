"""``KernelFacts`` × ``GpuProfile`` × options in; proven-optimal ``Selection`` out.

Next folders: ``eatss/report`` shows a selection, ``eatss/lower`` turns it into code.

Importing this package is cheap: solver and NumPy are loaded when they are needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from eatss.base.lazy_names import loading_names

if TYPE_CHECKING:
    from eatss.base.targets import TargetName
    from eatss.choose.build import build_problem, build_uniform_problem
    from eatss.choose.enumerate import enumerate_best
    from eatss.choose.objectives import OBJECTIVES, Objective
    from eatss.choose.options import (
        PUBLISHED,
        SPLITS,
        WARP_FRACTIONS,
        Cell,
        ModelName,
        ModelOptions,
        ObjectiveName,
    )
    from eatss.choose.problem import Conflict, Constraint, Direction, Problem, Solution, Variable
    from eatss.choose.select import select_kernel, select_program
    from eatss.choose.selection import (
        SCHEMA_VERSION,
        CellResult,
        DroppedCell,
        KernelSelection,
        PpcgOptions,
        ReferenceSelection,
        Selection,
        Usage,
        sizes_alone,
    )
    from eatss.choose.smt2 import program_to_smt2, to_smt2
    from eatss.choose.solver import solve

__all__ = [
    "OBJECTIVES",
    "PUBLISHED",
    "SCHEMA_VERSION",
    "SPLITS",
    "WARP_FRACTIONS",
    "Cell",
    "CellResult",
    "Conflict",
    "Constraint",
    "Direction",
    "DroppedCell",
    "KernelSelection",
    "ModelName",
    "ModelOptions",
    "Objective",
    "ObjectiveName",
    "PpcgOptions",
    "Problem",
    "ReferenceSelection",
    "Selection",
    "Solution",
    "TargetName",
    "Usage",
    "Variable",
    "build_problem",
    "build_uniform_problem",
    "enumerate_best",
    "program_to_smt2",
    "select_kernel",
    "select_program",
    "sizes_alone",
    "solve",
    "to_smt2",
]

_HOME = {
    "OBJECTIVES": "objectives",
    "PUBLISHED": "options",
    "SCHEMA_VERSION": "selection",
    "SPLITS": "options",
    "WARP_FRACTIONS": "options",
    "Cell": "options",
    "CellResult": "selection",
    "Conflict": "problem",
    "Constraint": "problem",
    "Direction": "problem",
    "DroppedCell": "selection",
    "KernelSelection": "selection",
    "ModelName": "options",
    "ModelOptions": "options",
    "Objective": "objectives",
    "ObjectiveName": "options",
    "PpcgOptions": "selection",
    "Problem": "problem",
    "ReferenceSelection": "selection",
    "Selection": "selection",
    "Solution": "problem",
    "TargetName": "options",
    "Usage": "selection",
    "Variable": "problem",
    "build_problem": "build",
    "build_uniform_problem": "build",
    "enumerate_best": "enumerate",
    "program_to_smt2": "smt2",
    "select_kernel": "select",
    "select_program": "select",
    "sizes_alone": "selection",
    "solve": "solver",
    "to_smt2": "smt2",
}


__getattr__ = loading_names(__name__, _HOME)
