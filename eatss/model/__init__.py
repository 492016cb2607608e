"""``KernelFacts`` × ``GpuProfile`` × options in; proven-optimal ``Selection`` out.

Next folders: ``eatss/report`` shows a selection, ``eatss/lower`` turns it into code.
"""

from eatss.model.build import build_problem
from eatss.model.enumerate import enumerate_best
from eatss.model.objectives import OBJECTIVES, Objective
from eatss.model.options import (
    PUBLISHED,
    SPLITS,
    WARP_FRACTIONS,
    Cell,
    ModelName,
    ModelOptions,
    ObjectiveName,
    TargetName,
)
from eatss.model.ppcg import sizes_alone
from eatss.model.problem import Constraint, Direction, Problem, Variable
from eatss.model.select import select_kernel, select_program
from eatss.model.selection import (
    SCHEMA_VERSION,
    CellResult,
    DroppedCell,
    KernelSelection,
    PpcgOptions,
    ReferenceSelection,
    Selection,
    Usage,
)
from eatss.model.smt2 import program_to_smt2, to_smt2
from eatss.model.solution import Conflict, Solution
from eatss.model.solver import solve
from eatss.model.uniform import build_uniform_problem

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
