"""What the user chooses of a sweep, and what goes between it and its processes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, fields, replace
from typing import Annotated, Literal, TypeAlias, get_args

from eatss.base.diagnostics import Diagnostics, input_error
from eatss.base.frozen import frozen
from eatss.base.options import option, shows_types
from eatss.base.targets import MEASURES, ObjectiveName, SweepTarget
from eatss.base.text import Texts
from eatss.cards.profile import GpuProfile
from eatss.frontend.options import Reading
from eatss.measurement.measurement import Status
from eatss.measurement.options import BenchKeywords, CompilerChoice, MeasureOptions, Windows
from eatss.tune.points import Configuration, Values
from eatss.tune.rows import Role, Row, Stage
from eatss.tune.strategies import Budget, SearchSpace


@frozen
class MakerJob:
    """What variants are made of.

    Attributes:
        source: The program: a C file, or its text, or ``FILE.py:NAME``.
        reading: How it is read.
        target: Who generates it.
        profile: The card.
        objective: What is least where sizes are selected.
        capability: Of the card, as in 90 for 9.0; 0 compiles nothing ahead.
        compiler: What compiles.
        nvcc: Path of an nvcc, by default that of this machine.
        folder: Where the folders of programs go.
        ppcg: PPCG, a command or a path.
        ppcg_arguments: Further arguments of it.
    """

    source: str
    reading: Reading
    target: SweepTarget
    profile: GpuProfile
    objective: str
    capability: int
    folder: str
    compiler: CompilerChoice = "auto"
    nvcc: str | None = None
    ppcg: str | None = None
    ppcg_arguments: Texts = ()


RolePoint: TypeAlias = tuple[Role, Configuration | None]
"""A choice that variants are set beside, with its point where that is one of the space."""


Ranked: TypeAlias = tuple[Configuration, ...]
"""Points, the best first."""


@frozen
class Outline:
    """What a sweep is of.

    Attributes:
        space: The space, given or derived; it may name figures of the card and parameters of the
            program.
        space_text: The space, as a store keeps it.
        ranked: Points in the model's order, the best first; ``None`` where it has none.
        roles: Points of the choices that variants are set beside; a choice that is no point of the
            space has none.
        warnings: What is to be said of the source.
    """

    space: SearchSpace
    space_text: str
    ranked: Ranked | None
    roles: tuple[RolePoint, ...]
    warnings: Diagnostics = ()


@frozen
class VariantJob:
    """A variant to make and measure.

    ``values`` is its point in the space, ``decisions`` what that decides by name. With a ``role``,
    the role decides what the decisions do not.
    """

    variant: str
    values: Values
    decisions: Values
    role: Role = ""
    strategy: str = ""

    def row(self, status: Status = "ok", reason: str = "") -> Row:
        """Return its row, before anything is known of it."""
        return Row(
            variant=self.variant,
            values=self.values,
            role=self.role,
            strategy=self.strategy,
            status=status,
            reason=reason,
        )


@frozen
class BuiltVariant:
    """A variant that was made, or why not.

    ``folder`` holds the program, ``None`` where status and reason of ``row`` say why there is none.
    """

    row: Row
    folder: str | None = None


@frozen
class Policy(Windows):
    """How carefully a variant is measured.

    ``checks`` says that it is compared with the original C, at reduced sizes, ``counters`` that
    hardware counters are read, too.
    """

    stage: Stage
    checks: bool = False
    counters: bool = False

    def options(self, usual: MeasureOptions) -> MeasureOptions:
        """Return how a card measures with this care."""
        windows = {one.name: getattr(self, one.name) for one in fields(Windows)}
        return replace(usual, **windows)


StageName: TypeAlias = Literal["setting up", "first pass", "second pass", "counters"]


@frozen
class Progress:
    """How far a sweep is.

    ``spent_s`` is that of all its sessions. ``best`` is the least cost of the objective so far and
    ``default`` that of the target's own choice, ``None`` before there is one.
    """

    stage: StageName
    measured: int
    failed: int
    wanted: int | None
    spent_s: float
    budget_s: float | None
    best: float | None = None
    default: float | None = None


OnProgress: TypeAlias = Callable[[Progress], None] | None
"""Is called with it, if anything is."""


DEFAULT_VARIANTS = 300

FIRST = Policy(
    stage="first",
    least_window_s=0.4,
    warm_up_s=0.0,
    settle_s=0.15,
    spare=0.25,
    least_updates=2,
    least_windows=1,
    target=1.0,
    budget_s=0.1,
)
"""The quick pass: one window, which holds some values of a counter that moves every 100 ms."""

FIRST_TIME = replace(FIRST, least_window_s=0.05, settle_s=0.02, spare=0.3, least_updates=1)
"""The quick pass where time alone is looked for."""

CAREFUL = Policy(
    stage="careful",
    least_window_s=1.0,
    warm_up_s=0.0,
    settle_s=0.3,
    spare=0.05,
    least_updates=8,
    least_windows=3,
    target=0.01,
    budget_s=12.0,
)
"""The second pass: windows until the interval is within 1 %, three at least."""


@shows_types
@frozen
class SweepOptions(BenchKeywords):
    """How a sweep goes.

    Attributes:
        strategy: Who proposes the next variant, a name of ``eatss.tune.strategies.STRATEGIES``.
        objective: What is looked for: ``"energy"``, ``"time"`` or ``"edp"``.
        budget: What all sessions together may take. Without one, 300 variants.
        seed: Of strategies and of the data.
        contenders: Variants that are measured again with care; 0 for none.
        counters: Variants whose hardware counters are read at the end, spread over all of them.
        makers: Processes that generate and compile; by default one a processor but one.
        timeout_s: Seconds that a single run may take.
        compares: Whether results are compared with those of the reference, and its own with the
            original C.
        second_share: Share of the budget that is kept for the second pass at most.
    """

    strategy: Annotated[
        str,
        option(
            metavar="NAME",
            help="Who proposes variants: model (the model's best first), random, exhaustive, "
            "local; several with commas for --replay.",
        ),
    ] = "model"
    objective: Annotated[ObjectiveName, option(help="What is looked for.")] = "energy"
    budget: Annotated[
        Budget,
        option(
            kind=str | None,
            made=Budget.parse,
            metavar="N|TIME",
            help="What all sessions may take: 300 (variants), 30m, or both: 300,30m. "
            "Default: 300 variants.",
        ),
    ] = field(default_factory=Budget)
    seed: Annotated[int, option(metavar="N", min=0, help="Of strategies and data.")] = 0
    contenders: Annotated[
        int, option(metavar="N", min=0, help="Best variants to measure again with care.")
    ] = 8
    counters: Annotated[
        int,
        option(
            metavar="N",
            min=0,
            help="Variants, from fast to slow, to read hardware counters of (Nsight Compute).",
        ),
    ] = 0
    makers: Annotated[
        int | None,
        option(metavar="N", min=1, help="Processes that generate; default: by the cores."),
    ] = None
    timeout_s: Annotated[
        float, option("--timeout", metavar="SECONDS", min=0.01, help="Limit of one run.")
    ] = 20.0
    compares: Annotated[
        bool,
        option(
            "--no-check",
            default=False,
            made=lambda off: not off,
            help="Do not compare results with the reference's.",
        ),
    ] = True
    second_share: float = 0.25

    def __post_init__(self) -> None:
        if self.objective not in get_args(ObjectiveName):
            known = ", ".join(get_args(ObjectiveName))
            raise input_error(
                "EATSS-W001", f"there is no objective '{self.objective}'", hint=f"one of: {known}"
            )
        for name, least in (("contenders", 0), ("counters", 0), ("makers", 1)):
            given = getattr(self, name)
            if given is not None and given < least:
                raise input_error("EATSS-W001", f"{name} is {given}", hint=f"give {least} or more")

    @property
    def measuring(self) -> MeasureOptions:
        """How the card measures, but for the windows."""
        return MeasureOptions(
            seed=self.seed,
            timeout_s=self.timeout_s,
            check=self.compares,
            restoring="between windows",
            **{one.name: getattr(self, one.name) for one in fields(BenchKeywords)},
        )

    @property
    def limited(self) -> Budget:
        """The budget, with a number of variants where nothing is limited."""
        return Budget(variants=DEFAULT_VARIANTS) if self.budget == Budget() else self.budget

    @property
    def first(self) -> Policy:
        """How the first pass measures."""
        reads = MEASURES[self.objective].reads
        return FIRST_TIME if reads == ("time",) and self.meter == "none" else FIRST
