"""What goes between a sweep and the processes that make and measure its variants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, TypeAlias

from eatss.base.codec import BY_NAME
from eatss.base.extensions import Origin
from eatss.base.frozen import frozen
from eatss.base.targets import SweepTarget
from eatss.frontend.options import DtypeName, Reading, Recompute
from eatss.measurement.measurement import Measurement, Status
from eatss.measurement.options import CompilerChoice, MeasureOptions
from eatss.tune.point import Configuration, Values
from eatss.tune.store.nouns import CardSeen, Metrics, Role, Sizes, Stage


@frozen
class SourceText:
    """A C file, or its text, or ``FILE.py:NAME``, and how it is read; as plain types."""

    source: str
    dtype: DtypeName | None = None
    defines: tuple[str, ...] = ()
    include_dirs: tuple[str, ...] = ()
    parameters: Sizes = ()
    function: str | None = None
    scop: int | None = None
    max_operations: int | None = None
    recompute: Recompute = "auto"

    @classmethod
    def of(cls, source: str, reading: Reading) -> SourceText:
        """Return a source and its reading."""
        options = reading.frontend()
        return cls(
            source=source,
            dtype=reading.type_name,
            defines=options.defines,
            include_dirs=options.include_dirs,
            parameters=options.parameter_values,
            function=options.function,
            scop=options.scop,
            max_operations=reading.max_operations,
            recompute=reading.recompute,
        )

    def reading(self) -> Reading:
        """Return how it is read."""
        return Reading(
            dtype=self.dtype,
            defines=self.defines,
            include_dirs=self.include_dirs,
            parameters=dict(self.parameters),
            function=self.function,
            scop=self.scop,
            max_operations=self.max_operations,
            recompute=self.recompute,
        )


@frozen
class MakerJob:
    """What variants are made of.

    Attributes:
        source: The program.
        target: Who generates it.
        profile: The card, as the text of its JSON document.
        objective: What is least where sizes are selected.
        capability: Of the card, as in 90 for 9.0; 0 compiles nothing ahead.
        compiler: What compiles.
        nvcc: Path of an nvcc, by default that of this machine.
        folder: Where the folders of programs go.
        ppcg: PPCG, a command or a path.
        ppcg_arguments: Further arguments of it.
        choices: Selections by the role of variants, each as the text of its JSON document.
    """

    source: SourceText
    target: SweepTarget
    profile: str
    objective: str
    capability: int
    folder: str
    compiler: CompilerChoice = "auto"
    nvcc: str | None = None
    ppcg: str | None = None
    ppcg_arguments: tuple[str, ...] = ()
    choices: tuple[tuple[Role, str], ...] = ()


RolePoint: TypeAlias = tuple[Role, Configuration | None]
"""A choice that variants are set beside, with its point where that is one of the space."""


@frozen
class Wanted:
    """A variant to make and measure.

    ``values`` is its point in the space, ``decisions`` what that decides by name. With a ``role``,
    the role decides what the decisions do not.
    """

    variant: str
    values: Values
    decisions: Values
    role: Role = ""
    strategy: str = ""


@frozen
class Made:
    """A variant that was made, or why not.

    ``folder`` holds the program, ``None`` where ``status`` and ``reason`` say why there is none.
    """

    variant: str
    folder: str | None
    status: Status = "ok"
    reason: str = ""
    sizes: Sizes = ()
    metrics: Metrics = ()
    decided: str = ""
    made_s: float = 0.0


@frozen
class BenchJob:
    """A card to hold: the import path of what makes it, and how it measures."""

    card: str
    device: int | str = 0
    compiler: CompilerChoice = "auto"
    nvcc: str | None = None
    meter: str = "auto"
    meter_origin: Origin | None = None
    keeps_meter: str | None = None
    reads_idle: bool = True
    seed: int = 0
    timeout_s: float = 60.0
    compares: bool = True


@frozen
class Care:
    """How carefully a variant is measured; fields as of ``MeasureOptions``.

    ``checks`` says that it is compared with the original C, at reduced sizes, ``counters`` that
    hardware counters are read, too.
    """

    stage: Stage
    least_window_s: float
    settle_s: float
    spare: float
    least_updates: int
    least_windows: int
    target: float
    budget_s: float
    warm_up_s: float = 0.0
    checks: bool = False
    counters: bool = False

    def options(self, bench: BenchJob, sizes: Sequence[tuple[str, int]]) -> MeasureOptions:
        """Return how a card measures with this care."""
        return MeasureOptions(
            sizes=dict(sizes),
            seed=bench.seed,
            meter=bench.meter,
            compiler=bench.compiler,
            nvcc=bench.nvcc,
            device=bench.device,
            least_window_s=self.least_window_s,
            settle_s=self.settle_s,
            spare=self.spare,
            least_updates=self.least_updates,
            least_windows=self.least_windows,
            target=self.target,
            budget_s=self.budget_s,
            warm_up_s=self.warm_up_s,
            restoring="between windows",
            timeout_s=bench.timeout_s,
            check=bench.compares,
        )


@frozen
class Order:
    """A program to measure on a card that is held.

    ``reference`` is the program whose results others are compared with; a fresh process runs it
    first.
    """

    label: str
    folder: str
    sizes: Annotated[tuple[tuple[str, int], ...], BY_NAME]
    care: Care
    reference: str | None = None


@frozen
class Tried:
    """What a card found out about a variant."""

    measurement: Measurement
    card: CardSeen
    card_s: float
    card_j: float | None


@frozen
class Progress:
    """How far a sweep is.

    ``spent_s`` and ``spent_j`` are those of all its sessions. ``best`` is the least cost of the
    objective so far and ``default`` that of the target's own choice, ``None`` before there is one.
    """

    stage: Literal["setting up", "first pass", "second pass", "counters"]
    measured: int
    failed: int
    wanted: int | None
    spent_s: float
    budget_s: float | None
    spent_j: float
    best: float | None = None
    default: float | None = None
    unit: str = ""
