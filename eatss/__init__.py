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
    from eatss.building import PpcgBuild, ppcg
    from eatss.calls.api import jit
    from eatss.calls.callable import JitFunction
    from eatss.diagnostics import Diagnostic, EatssError, InputError, InternalError, NoSolutionError
    from eatss.explore.generation import Generation
    from eatss.explore.options import SweepOptions
    from eatss.explore.sweeping import prepare_sweep, sweep
    from eatss.gpu import GpuProfile, list_profiles, load_profile
    from eatss.measurement.energy.measurement import EnergyMeasurement
    from eatss.measurement.energy.meter import energy_meter
    from eatss.measurement.measured import Interrupted
    from eatss.measurement.measurement import Comparison, Measurement
    from eatss.measurement.options import MeasureOptions
    from eatss.measuring import compare, measure
    from eatss.model.selection import KernelSelection, Selection
    from eatss.notices import EatssWarning
    from eatss.program import Program
    from eatss.python_source.annotations import (
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
    from eatss.python_source.python_scop import PythonScop, scop
    from eatss.reporting import sweep_report
    from eatss.schemas import schema
    from eatss.session.variants import SourceOptions
    from eatss.space.document import read_space
    from eatss.space.nouns import Space
    from eatss.store.nouns import Sweep
    from eatss.store.store import read_sweep
    from eatss.strategies.budget import Budget
    from eatss.version import __version__

_HOME = {
    "Budget": "eatss.strategies.budget",
    "Comparison": "eatss.measurement.measurement",
    "Diagnostic": "eatss.diagnostics",
    "EatssError": "eatss.diagnostics",
    "EatssWarning": "eatss.notices",
    "EnergyMeasurement": "eatss.measurement.energy.measurement",
    "Generation": "eatss.explore.generation",
    "GpuProfile": "eatss.gpu",
    "InputError": "eatss.diagnostics",
    "InternalError": "eatss.diagnostics",
    "Interrupted": "eatss.measurement.measured",
    "JitFunction": "eatss.calls.callable",
    "KernelSelection": "eatss.model.selection",
    "MeasureOptions": "eatss.measurement.options",
    "Measurement": "eatss.measurement.measurement",
    "NoSolutionError": "eatss.diagnostics",
    "Param": "eatss.python_source.annotations",
    "PpcgBuild": "eatss.building",
    "Program": "eatss.program",
    "PythonScop": "eatss.python_source.python_scop",
    "Selection": "eatss.model.selection",
    "SourceOptions": "eatss.session.variants",
    "Space": "eatss.space.nouns",
    "Sweep": "eatss.store.nouns",
    "SweepOptions": "eatss.explore.options",
    "__version__": "eatss.version",
    "codegen": "eatss.api",
    "compare": "eatss.measuring",
    "energy_meter": "eatss.measurement.energy.meter",
    "f16": "eatss.python_source.annotations",
    "f32": "eatss.python_source.annotations",
    "f64": "eatss.python_source.annotations",
    "i16": "eatss.python_source.annotations",
    "i32": "eatss.python_source.annotations",
    "i64": "eatss.python_source.annotations",
    "i8": "eatss.python_source.annotations",
    "inspect": "eatss.api",
    "jit": "eatss.calls.api",
    "list_profiles": "eatss.gpu",
    "load_profile": "eatss.gpu",
    "measure": "eatss.measuring",
    "ppcg": "eatss.building",
    "predict": "eatss.api",
    "prepare_sweep": "eatss.explore.sweeping",
    "read_space": "eatss.space.document",
    "read_sweep": "eatss.store.store",
    "schema": "eatss.schemas",
    "scop": "eatss.python_source.python_scop",
    "select": "eatss.api",
    "sweep": "eatss.explore.sweeping",
    "sweep_report": "eatss.reporting",
    "u16": "eatss.python_source.annotations",
    "u32": "eatss.python_source.annotations",
    "u64": "eatss.python_source.annotations",
    "u8": "eatss.python_source.annotations",
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
    "prepare_sweep",
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
