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

_NAMES = {
    "eatss.api": "codegen inspect predict select",
    "eatss.base.diagnostics": (
        "Diagnostic EatssError EatssWarning InputError InternalError NoSolutionError"
    ),
    "eatss.base.schemas": "schema",
    "eatss.building": "PpcgBuild ppcg",
    "eatss.cards": "GpuProfile list_profiles load_profile",
    "eatss.choose.selection": "KernelSelection Selection",
    "eatss.frontend.python": "PythonScop scop",
    "eatss.frontend.python_types": "Param f16 f32 f64 i16 i32 i64 i8 u16 u32 u64 u8",
    "eatss.measurement.api": "Interrupted",
    "eatss.measurement.energy_meter": "EnergyMeasurement energy_meter",
    "eatss.measurement.measurement": "Comparison Measurement",
    "eatss.measurement.options": "MeasureOptions",
    "eatss.measuring": "compare measure",
    "eatss.program": "Program",
    "eatss.reporting": "sweep_report",
    "eatss.session.jit.api": "jit",
    "eatss.session.jit.callable": "JitFunction",
    "eatss.session.variants": "SourceOptions",
    "eatss.tune.document": "read_space",
    "eatss.tune.generation": "Generation",
    "eatss.tune.jobs": "SweepOptions",
    "eatss.tune.points": "Space",
    "eatss.tune.rows": "Sweep",
    "eatss.tune.store": "read_sweep",
    "eatss.tune.strategies": "Budget",
    "eatss.tune.sweeping": "sweep",
    "eatss.version": "__version__",
}
_HOME = {name: home for home, names in _NAMES.items() for name in names.split()}

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
