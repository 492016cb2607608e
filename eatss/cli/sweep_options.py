"""Options of ``eatss sweep``: what variants are made of, and how they are searched and measured."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from eatss.cli import completion
from eatss.cli.cards import given_card
from eatss.cli.measure_options import DEVICE_HELP, parse_device
from eatss.cli.option_groups import takes
from eatss.cli.options import (
    CARD_HELP,
    CompilerChoice,
    Nvcc,
    card_option,
    compiler_option,
    meter_option,
    named_nvcc,
    of_output,
    of_source,
    reading_options,
)

if TYPE_CHECKING:
    from eatss.explore.generation import Generation
    from eatss.explore.options import SweepOptions
    from eatss.frontend.options import ReadingKeywords
    from eatss.replay.nouns import Objective


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What variants are made of; ``given`` are the options that were not left as they are."""

    generation: Generation
    given: tuple[str, ...]

    def for_card(self, device: int | str) -> Generation:
        """Return how variants are made, for a card that is known; which ``auto`` is, is said.

        Raises:
            InputError: there is no such profile, or no card in this machine.
        """
        gpu = self.generation.gpu
        if not isinstance(gpu, str):
            return self.generation
        return replace(self.generation, gpu=given_card(gpu, device=device))


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """How variants are searched and measured; ``budget`` as it was written."""

    options: SweepOptions
    strategy: str
    objective: Objective | Literal["pareto"]
    budget: str | None


@takes(reading=reading_options)
def generation_options(
    *,
    gpu: Annotated[
        str,
        card_option(help=f"What variants are for. {CARD_HELP}", rich_help_panel="Source"),
    ] = "auto",
    space: Annotated[
        Path | None,
        of_source(
            metavar="FILE.toml",
            help="The search space (eatss space FILE.toml counts one); default: derived.",
        ),
    ] = None,
    target: Annotated[
        Literal["cuda", "ppcg"], of_source(help="Who generates code: eatss itself, or PPCG.")
    ] = "cuda",
    ppcg: Annotated[
        str | None, of_source("--ppcg", metavar="PATH", help="PPCG; default: ppcg on the path.")
    ] = None,
    ppcg_options: Annotated[
        list[str] | None,
        of_source("--ppcg-option", metavar="OPTION", help="A further option of PPCG."),
    ] = None,
    keep: Annotated[
        Path | None, of_output(metavar="DIR", help="Keep the programs in this folder.")
    ] = None,
    reading: ReadingKeywords,
) -> Made:
    """Return what variants are made of."""
    from eatss.explore.generation import Generation  # noqa: PLC0415 - keeps --help fast
    from eatss.frontend.options import Reading  # noqa: PLC0415
    from eatss.gpu.this_machine import is_auto  # noqa: PLC0415

    given = {
        "--gpu": not is_auto(gpu),
        "--space": space is not None,
        "--target": target != "cuda",
        "--ppcg": ppcg is not None,
        "--ppcg-option": bool(ppcg_options),
        "--keep": keep is not None,
    }
    generation = Generation(
        gpu=gpu,
        target=target,
        space=space,
        reading=Reading(**reading),
        ppcg=ppcg,
        ppcg_arguments=tuple(ppcg_options or ()),
        keep=keep,
    )
    return Made(
        generation=generation, given=tuple(name for name, is_given in given.items() if is_given)
    )


def search_options(
    *,
    strategy: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            autocompletion=completion.registered("eatss.strategies"),
            help="Who proposes variants: model (the model's best first), random, exhaustive, "
            "local, optuna:NAME, kernel-tuner:NAME; several with commas for --replay.",
        ),
    ] = "model",
    objective: Annotated[
        Literal["energy", "time", "edp", "pareto"], typer.Option(help="What is looked for.")
    ] = "energy",
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="N|TIME|ENERGY",
            help="What all sessions may take: 300 (variants), 30m, 20kJ, or several: 300,30m. "
            "Default: 300 variants.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Of strategies and data.")] = 0,
    contenders: Annotated[
        int,
        typer.Option(metavar="N", min=0, help="Best variants to measure again with care."),
    ] = 8,
    counters: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=0,
            help="Variants, from fast to slow, to read hardware counters of (Nsight Compute).",
        ),
    ] = 0,
    devices: Annotated[
        str,
        typer.Option(
            metavar="N,N|UUID", help=f"{DEVICE_HELP} Several with commas: needs eatss[dask]."
        ),
    ] = "0",
    makers: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Processes that generate; default: by the cores."),
    ] = None,
    meter: Annotated[str, meter_option()] = "auto",
    compiler: Annotated[CompilerChoice, compiler_option()] = "auto",
    nvcc: Nvcc = None,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.01, help="Limit of one run.")
    ] = 20.0,
    no_check: Annotated[
        bool, typer.Option("--no-check", help="Do not compare results with the reference's.")
    ] = False,
) -> Searched:
    """Return how variants are searched and measured.

    Raises:
        InputError: the budget, a device or the CUDA compiler is none.
    """
    from eatss.explore.options import SweepOptions  # noqa: PLC0415 - keeps --help fast
    from eatss.strategies.budget import Budget  # noqa: PLC0415

    options = SweepOptions(
        strategy=strategy,
        objective=objective,
        budget=Budget() if budget is None else Budget.parse(budget),
        seed=seed,
        contenders=contenders,
        counters=counters,
        makers=makers,
        devices=tuple(parse_device(one) for one in devices.split(",")),
        meter=meter,
        compiler=compiler,
        nvcc=named_nvcc(nvcc),
        timeout_s=timeout,
        compares=not no_check,
    )
    return Searched(options=options, strategy=strategy, objective=objective, budget=budget)
