"""Energy-aware, polyhedral tile-size selection for GPUs.

C with affine loops in; tile sizes that save energy at full speed out::

    import eatss

    selection = eatss.select("gemm.c", gpu="a100")
    selection.kernels[0].tile_sizes  # (("i", 16), ("j", 384), ("k", 16))

Importing ``eatss`` is cheap: solver and compiler libraries load on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eatss.api import codegen, inspect, predict, select
    from eatss.base.diagnostics import (
        Diagnostic,
        EatssError,
        EatssWarning,
        InputError,
        InternalError,
        NoSolutionError,
    )
    from eatss.base.schemas import schema
    from eatss.building import PpcgBuild, ppcg
    from eatss.cards import GpuProfile, list_profiles, load_profile
    from eatss.choose.selection import KernelSelection, Selection
    from eatss.frontend.python import PythonScop, scop
    from eatss.frontend.python_types import (
        Param,
        f16,
        f32,
        f64,
        i8,
        i16,
        i32,
        i64,
        u8,
        u16,
        u32,
        u64,
    )
    from eatss.measurement.api import Interrupted
    from eatss.measurement.energy_meter import EnergyMeasurement, energy_meter
    from eatss.measurement.measurement import Comparison, Measurement
    from eatss.measurement.options import MeasureOptions
    from eatss.measuring import compare, measure
    from eatss.program import Program
    from eatss.reporting import sweep_report
    from eatss.session.jit.api import jit
    from eatss.session.jit.callable import JitFunction
    from eatss.session.variants import SourceOptions
    from eatss.tune.document import read_space
    from eatss.tune.generation import Generation
    from eatss.tune.jobs import SweepOptions
    from eatss.tune.points import Space
    from eatss.tune.rows import Sweep
    from eatss.tune.store import read_sweep
    from eatss.tune.strategies import Budget
    from eatss.tune.sweeping import sweep
    from eatss.version import __version__

_HOME = {
    "Budget": "eatss.tune.strategies",
    "Comparison": "eatss.measurement.measurement",
    "Diagnostic": "eatss.base.diagnostics",
    "EatssError": "eatss.base.diagnostics",
    "EatssWarning": "eatss.base.diagnostics",
    "EnergyMeasurement": "eatss.measurement.energy_meter",
    "Generation": "eatss.tune.generation",
    "GpuProfile": "eatss.cards",
    "InputError": "eatss.base.diagnostics",
    "InternalError": "eatss.base.diagnostics",
    "Interrupted": "eatss.measurement.api",
    "JitFunction": "eatss.session.jit.callable",
    "KernelSelection": "eatss.choose.selection",
    "MeasureOptions": "eatss.measurement.options",
    "Measurement": "eatss.measurement.measurement",
    "NoSolutionError": "eatss.base.diagnostics",
    "Param": "eatss.frontend.python_types",
    "PpcgBuild": "eatss.building",
    "Program": "eatss.program",
    "PythonScop": "eatss.frontend.python",
    "Selection": "eatss.choose.selection",
    "SourceOptions": "eatss.session.variants",
    "Space": "eatss.tune.points",
    "Sweep": "eatss.tune.rows",
    "SweepOptions": "eatss.tune.jobs",
    "__version__": "eatss.version",
    "codegen": "eatss.api",
    "compare": "eatss.measuring",
    "energy_meter": "eatss.measurement.energy_meter",
    "f16": "eatss.frontend.python_types",
    "f32": "eatss.frontend.python_types",
    "f64": "eatss.frontend.python_types",
    "i16": "eatss.frontend.python_types",
    "i32": "eatss.frontend.python_types",
    "i64": "eatss.frontend.python_types",
    "i8": "eatss.frontend.python_types",
    "inspect": "eatss.api",
    "jit": "eatss.session.jit.api",
    "list_profiles": "eatss.cards",
    "load_profile": "eatss.cards",
    "measure": "eatss.measuring",
    "ppcg": "eatss.building",
    "predict": "eatss.api",
    "read_space": "eatss.tune.document",
    "read_sweep": "eatss.tune.store",
    "schema": "eatss.base.schemas",
    "scop": "eatss.frontend.python",
    "select": "eatss.api",
    "sweep": "eatss.tune.sweeping",
    "sweep_report": "eatss.reporting",
    "u16": "eatss.frontend.python_types",
    "u32": "eatss.frontend.python_types",
    "u64": "eatss.frontend.python_types",
    "u8": "eatss.frontend.python_types",
}

__all__ = [
    "Budget",
    "Comparison",
    "Diagnostic",
    "EatssError",
    "EatssWarning",
    "EnergyMeasurement",
    "Generation",
    "GpuProfile",
    "InputError",
    "InternalError",
    "Interrupted",
    "JitFunction",
    "KernelSelection",
    "MeasureOptions",
    "Measurement",
    "NoSolutionError",
    "Param",
    "PpcgBuild",
    "Program",
    "PythonScop",
    "Selection",
    "SourceOptions",
    "Space",
    "Sweep",
    "SweepOptions",
    "__version__",
    "codegen",
    "compare",
    "energy_meter",
    "f16",
    "f32",
    "f64",
    "i8",
    "i16",
    "i32",
    "i64",
    "inspect",
    "jit",
    "list_profiles",
    "load_profile",
    "measure",
    "ppcg",
    "predict",
    "read_space",
    "read_sweep",
    "schema",
    "scop",
    "select",
    "sweep",
    "sweep_report",
    "u8",
    "u16",
    "u32",
    "u64",
]


def __getattr__(name: str) -> object:
    """Load a public name from its home on first use (PEP 562).

    It is written out here: nothing else is loaded before a command heeds Ctrl-C.
    """
    if name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'eatss' has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted(__all__)
