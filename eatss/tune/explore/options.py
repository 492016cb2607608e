"""What the user chooses of a sweep."""

from __future__ import annotations

from dataclasses import field
from typing import Annotated, get_args

from eatss.base.diagnostics import input_error
from eatss.base.frozen import frozen
from eatss.base.objectives import Goal, measure_of
from eatss.base.options import option, shows_types
from eatss.measurement.options import (
    DEVICE_HELP,
    CompilerChoice,
    compiler_option,
    meter_option,
    named_nvcc,
    nvcc_option,
    parse_device,
)
from eatss.tune.explore.nouns import Care
from eatss.tune.strategies.budget import Budget

DEFAULT_VARIANTS = 300

FIRST = Care(
    stage="first",
    least_window_s=0.4,
    settle_s=0.15,
    spare=0.25,
    least_updates=2,
    least_windows=1,
    target=1.0,
    budget_s=0.1,
)
"""The quick pass: one window, which holds some values of a counter that moves every 100 ms."""

FIRST_TIME = Care(
    stage="first",
    least_window_s=0.05,
    settle_s=0.02,
    spare=0.3,
    least_updates=1,
    least_windows=1,
    target=1.0,
    budget_s=0.1,
)
"""The quick pass where time alone is looked for."""

CAREFUL = Care(
    stage="careful",
    least_window_s=1.0,
    settle_s=0.3,
    spare=0.05,
    least_updates=8,
    least_windows=3,
    target=0.01,
    budget_s=12.0,
)
"""The second pass: windows until the interval is within 1 %, three at least."""

REFERENCE = Care(
    stage="reference",
    least_window_s=0.8,
    settle_s=0.3,
    spare=0.05,
    least_updates=6,
    least_windows=1,
    target=1.0,
    budget_s=0.1,
)
"""How the reference is measured, now and then."""


def _devices(text: str) -> tuple[int | str, ...]:
    """Read numbers or UUIDs of cards, with commas between them."""
    return tuple(map(parse_device, text.split(",")))


@shows_types
@frozen
class SweepOptions:
    """How a sweep goes.

    Attributes:
        strategy: Who proposes the next variant, a name of ``eatss.tune.strategies.STRATEGIES``.
        objective: What is looked for: ``"energy"``, ``"time"``, ``"edp"`` or ``"pareto"``.
        budget: What all sessions together may take. Without one, 300 variants.
        seed: Of strategies and of the data.
        contenders: Variants that are measured again with care; 0 for none.
        counters: Variants whose hardware counters are read at the end, spread over all of them.
        devices: Cards, each by its number or UUID.
        makers: Processes that generate and compile; by default one a processor but one.
        meter: What energy rests on.
        compiler: What compiles.
        nvcc: Path of an nvcc, by default that of this machine.
        timeout_s: Seconds that a single run may take.
        compares: Whether results are compared with those of the reference, and its own with the
            original C.
        second_share: Share of the budget that is kept for the second pass at most.
    """

    strategy: Annotated[
        str,
        option(
            metavar="NAME",
            complete="eatss.strategies",
            help="Who proposes variants: model (the model's best first), random, exhaustive, "
            "local, optuna:NAME, kernel-tuner:NAME; several with commas for --replay.",
        ),
    ] = "model"
    objective: Annotated[Goal, option(help="What is looked for.")] = "energy"
    budget: Annotated[
        Budget,
        option(
            kind=str | None,
            made=Budget.parse,
            metavar="N|TIME|ENERGY",
            help="What all sessions may take: 300 (variants), 30m, 20kJ, or several: 300,30m. "
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
    devices: Annotated[
        tuple[int | str, ...],
        option(
            kind=str,
            default="0",
            made=_devices,
            metavar="N,N|UUID",
            help=f"{DEVICE_HELP} Several with commas: needs eatss[dask].",
        ),
    ] = (0,)
    makers: Annotated[
        int | None,
        option(metavar="N", min=1, help="Processes that generate; default: by the cores."),
    ] = None
    meter: Annotated[str, meter_option()] = "auto"
    compiler: Annotated[CompilerChoice, compiler_option()] = "auto"
    nvcc: Annotated[str | None, nvcc_option(made=named_nvcc)] = None
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
        if self.objective not in get_args(Goal):
            known = ", ".join(get_args(Goal))
            raise input_error(
                "EATSS-W001", f"there is no objective '{self.objective}'", hint=f"one of: {known}"
            )
        for name in ("contenders", "counters"):
            if getattr(self, name) < 0:
                raise input_error(
                    "EATSS-W002", f"{name} is {getattr(self, name)}", hint="give 0 or more"
                )
        if self.makers is not None and self.makers < 1:
            raise input_error("EATSS-W002", f"makers is {self.makers}", hint="give 1 or more")

    @property
    def limited(self) -> Budget:
        """The budget, with a number of variants where nothing is limited."""
        budget = self.budget
        if (budget.variants, budget.seconds, budget.joules) == (None, None, None):
            return Budget(variants=DEFAULT_VARIANTS)
        return budget

    @property
    def first(self) -> Care:
        """How the first pass measures."""
        reads = measure_of(self.objective).reads
        return FIRST_TIME if reads == ("time",) and self.meter == "none" else FIRST
