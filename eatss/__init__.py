"""Energy-aware, polyhedral tile-size selection for GPUs.

C with affine loops in; tile sizes that save energy at full speed out::

    import eatss

    selection = eatss.select("gemm.c", gpu="a100")
    selection.kernels[0].tile_sizes  # (("i", 16), ("j", 384), ("k", 16))

Importing ``eatss`` is cheap: solver and compiler libraries load on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from eatss.lazy_names import loading_names

if TYPE_CHECKING:
    from eatss.api import codegen, inspect, predict, select
    from eatss.building import PpcgBuild, ppcg
    from eatss.calls.api import jit
    from eatss.calls.callable import JitFunction
    from eatss.diagnostics import Diagnostic, EatssError, InputError, InternalError, NoSolutionError
    from eatss.gpu import GpuProfile, list_profiles, load_profile
    from eatss.measurement.comparison import Comparison
    from eatss.measurement.energy_measurement import EnergyMeasurement
    from eatss.measurement.energy_meter import energy_meter
    from eatss.measurement.measured import Interrupted
    from eatss.measurement.measurement import Measurement
    from eatss.measurement.options import MeasureOptions
    from eatss.measuring import compare, measure
    from eatss.model.selection import KernelSelection, Selection
    from eatss.program import Program
    from eatss.python_source.annotations import (
        Param,
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
    from eatss.schemas import schema
    from eatss.session.variants import SourceOptions
    from eatss.version import __version__

_HOME = {
    "Comparison": "measurement.comparison",
    "Diagnostic": "diagnostics",
    "EatssError": "diagnostics",
    "EnergyMeasurement": "measurement.energy_measurement",
    "GpuProfile": "gpu",
    "InputError": "diagnostics",
    "InternalError": "diagnostics",
    "Interrupted": "measurement.measured",
    "JitFunction": "calls.callable",
    "KernelSelection": "model.selection",
    "MeasureOptions": "measurement.options",
    "Measurement": "measurement.measurement",
    "NoSolutionError": "diagnostics",
    "Param": "python_source.annotations",
    "PpcgBuild": "building",
    "Program": "program",
    "PythonScop": "python_source.python_scop",
    "Selection": "model.selection",
    "SourceOptions": "session.variants",
    "__version__": "version",
    "codegen": "api",
    "compare": "measuring",
    "energy_meter": "measurement.energy_meter",
    "f32": "python_source.annotations",
    "f64": "python_source.annotations",
    "i8": "python_source.annotations",
    "i16": "python_source.annotations",
    "i32": "python_source.annotations",
    "i64": "python_source.annotations",
    "inspect": "api",
    "jit": "calls.api",
    "list_profiles": "gpu",
    "load_profile": "gpu",
    "measure": "measuring",
    "ppcg": "building",
    "predict": "api",
    "schema": "schemas",
    "scop": "python_source.python_scop",
    "select": "api",
    "u8": "python_source.annotations",
    "u16": "python_source.annotations",
    "u32": "python_source.annotations",
    "u64": "python_source.annotations",
}

__all__ = [
    "Comparison",
    "Diagnostic",
    "EatssError",
    "EnergyMeasurement",
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
    "__version__",
    "codegen",
    "compare",
    "energy_meter",
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
    "schema",
    "scop",
    "select",
    "u8",
    "u16",
    "u32",
    "u64",
]


__getattr__ = loading_names(__name__, _HOME)


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted(__all__)
