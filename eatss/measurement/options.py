"""What the user chooses of measuring."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

CompilerChoice: TypeAlias = Literal["auto", "nvrtc", "nvcc"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureOptions:
    """How to measure.

    Windows last ``least_window_s`` seconds at least and hold ``least_updates`` updates of the
    sensor; they are planned longer by the share ``spare``. They are repeated, ``least_windows`` at
    least, until the half-width of the ``confidence`` interval of time and energy is under
    ``target`` of the mean, or until ``budget_s`` seconds have been spent for a variant.
    ``timeout_s`` bounds a single run. ``meter`` is a name in
    :data:`eatss.measurement.meters.METERS`. ``sizes`` replace the defaults of the program's
    parameters. ``check`` compares results with the original and among variants. ``device`` is the
    card's number as CUDA counts those it sees, which ``CUDA_VISIBLE_DEVICES`` changes, or its UUID.
    With ``warm_up_s`` 0 nobody waits for power to settle beyond the ``settle_s`` of load before
    every window. ``restoring`` is ``auto``, or ``between windows`` to leave out the trial whether
    repeated runs drift; drift seen in a window is noted all the same. ``nvcc`` is the path of an
    nvcc, by default that of this machine.
    """

    sizes: Mapping[str, int] = field(default_factory=dict)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A generated program to measure: the folder it is in and the label it has in tables.

    A variant that could not be generated has no folder but a ``rejection``, the sentence why;
    it is reported as rejected by the model.
    """

    label: str
    directory: Path | None
    rejection: str = ""
