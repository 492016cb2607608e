"""What the user chooses of measuring."""

from __future__ import annotations

from dataclasses import field
from pathlib import Path
from typing import Literal, TypeAlias

from eatss.frozen import frozen
from eatss.program.expression import Sizes

CompilerChoice: TypeAlias = Literal["auto", "nvrtc", "nvcc"]


@frozen
class MeasureOptions:
    """How to measure.

    A window is a stretch of repeated runs. Windows are repeated until time and energy are known as
    well as ``target`` says, or until ``budget_s`` has been spent.

    Attributes:
        sizes: Values of parameters in the place of the program's defaults.
        seed: Of the random data.
        meter: What energy rests on, a name in :data:`eatss.measurement.meters.METERS`.
        compiler: ``"auto"``, ``"nvrtc"`` or ``"nvcc"``.
        device: The card's number as CUDA counts those it sees, which ``CUDA_VISIBLE_DEVICES``
            changes, or its UUID.
        least_window_s: Seconds that a window lasts at least.
        spare: Share by which windows are planned longer.
        least_updates: Values of the sensor that a window holds at least.
        least_windows: How many windows are taken at least.
        target: Half the interval of time and of energy over the mean, at which windows end.
        confidence: Of that interval, 0.95 for 95 %.
        budget_s: Seconds that a variant may take.
        warm_up_s: Seconds of load in which power may settle before the first window; with 0 nobody
            waits for that beyond ``settle_s``.
        settle_s: Seconds of load before every window.
        restoring: ``"auto"``, or ``"between windows"`` to leave out the trial whether repeated runs
            drift; drift seen in a window is noted all the same.
        timeout_s: Seconds that a single run may take.
        check: Whether results are compared with the original and among variants.
        counters: Whether hardware counters are read too, by Nsight Compute.
        nvcc: Path of an nvcc, by default that of this machine.
    """

    sizes: Sizes = field(default_factory=dict)
    seed: int = 0
    meter: str = "auto"
    compiler: CompilerChoice = "auto"
    nvcc: str | None = None
    device: int | str = 0
    least_window_s: float = 2.0
    spare: float = 0.0
    least_updates: int = 20
    least_windows: int = 3
    target: float = 0.01
    confidence: float = 0.95
    budget_s: float = 60.0
    warm_up_s: float = 1.0
    settle_s: float = 0.5
    restoring: Literal["auto", "between windows"] = "auto"
    timeout_s: float = 60.0
    check: bool = True
    counters: bool = False


@frozen
class Variant:
    """A generated program to measure: the folder it is in and the label it has in tables.

    A variant that could not be generated has no folder but a ``rejection``, the sentence why;
    it is reported as rejected by the model.
    """

    label: str
    directory: Path | None
    rejection: str = ""
