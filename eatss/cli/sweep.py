"""``eatss sweep``: many variants of a program measured, kept, and gone on with."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from eatss.base.diagnostics import InputError, input_error
from eatss.base.options import Asked, Words
from eatss.base.shipped import store_of_ones_own
from eatss.base.streams import echo
from eatss.base.targets import SweepTarget
from eatss.cli.app import typed
from eatss.cli.options import (
    CARD_HELP,
    HiddenCard,
    PpcgPath,
    TableOrJson,
    card_option,
    of_output,
    of_source,
    show,
    source_argument,
)
from eatss.cli.talk import Step, given_card, say, warn_while_working, working
from eatss.frontend.options import Reading, ReadingKeywords
from eatss.tune.jobs import SweepOptions

if TYPE_CHECKING:
    from eatss.tune.generation import Generation
    from eatss.tune.jobs import Progress

EXAMPLES = {
    "sweep": """
Examples:

    eatss sweep @gemm --gpu auto --budget 300 -o gemm.db

    eatss sweep @2mm --space tiles.toml --budget 30m -o 2mm.db

    eatss sweep @gemm --target ppcg --ppcg ~/ppcg/bin/ppcg -o ppcg.db

    eatss sweep --replay @gemm --strategy random,local,model --seeds 20
"""
}

INTERRUPTED = 130


_MAKING = ("gpu", "space", "target", "ppcg", "ppcg_options", "keep")
"""Options of how variants are made."""


def sweep(
    *,
    source: Annotated[
        Path | None,
        source_argument(
            metavar="FILE|@KERNEL",
            help="C or Python as for select.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        of_output(
            "--output -o",
            metavar="STORE",
            parser=store_of_ones_own,
            help="The store; gone on with if it is there.",
        ),
    ] = None,
    gpu: Annotated[
        Any,
        card_option(kind=str, help=f"What variants are for. {CARD_HELP}", panel="Source"),
    ] = "auto",
    space: Annotated[
        Path | None,
        of_source(
            metavar="FILE.toml",
            help="The search space (eatss space FILE.toml counts one); default: derived.",
        ),
    ] = None,
    target: Annotated[
        SweepTarget, of_source(help="Who generates code: eatss itself, or PPCG.")
    ] = "cuda",
    ppcg: PpcgPath = None,
    ppcg_options: Annotated[
        Words,
        of_source("--ppcg-option", metavar="OPTION", help="A further option of PPCG."),
    ] = None,
    keep: Annotated[
        Path | None, of_output(metavar="DIR", help="Keep the programs in this folder.")
    ] = None,
    reading: Asked[ReadingKeywords],
    searched: Asked[SweepOptions],
    replay: Annotated[
        str | None,
        of_output(
            metavar="STORE|@KERNEL",
            help="Try strategies on what a store has, without a card, and print what each finds.",
        ),
    ] = None,
    seeds: Annotated[
        int, of_output(metavar="N", min=1, help="Of --replay: how often each strategy is tried.")
    ] = 10,
    format_: Annotated[
        TableOrJson, of_output("--format -f", help="What to print at the end.")
    ] = "table",
    card: HiddenCard = None,
) -> None:
    """Measure many variants of a program, each kept in a store as soon as it is measured.

    Run it again to go on where it stopped. Exits with 130 after Ctrl-C, which keeps what was
    measured.
    """
    options = searched.made()
    if replay is not None:
        idle = [*["a source"] * (source is not None), *typed(*_MAKING, "output", "counters")]
        if idle:
            raise _refused(f"--replay has no use for {idle[0]}", "leave it out")
        from eatss.tune.replay import replayed  # noqa: PLC0415 - keeps --help fast
        from eatss.tune.store import read_sweep  # noqa: PLC0415

        budget = searched.fields.get("budget")
        with working(f"replaying {replay}"):
            recorded = read_sweep(replay, measurements=False)
            names = [name.strip() for name in options.strategy.split(",") if name.strip()]
            found = replayed(recorded, names, seeds, budget, options.objective)
        show(found, format_)
        return
    if source is None or output is None:
        example = "write: eatss sweep FILE.c -o STORE"
        raise _refused("a C file and its store, -o STORE, are needed", example)
    from eatss.tune.generation import Generation  # noqa: PLC0415 - replaying needs no isl

    generation = Generation(
        gpu=given_card(gpu, options.device),
        target=target,
        space=space,
        reading=Reading(**reading.fields),
        ppcg=ppcg,
        ppcg_arguments=tuple(ppcg_options or ()),
        keep=keep,
    )
    _sweep(source, output, options, generation, card, format_)


def _sweep(
    source: Path,
    output: Path,
    options: SweepOptions,
    generation: Generation,
    card: str | None,
    format_: TableOrJson,
) -> None:
    from eatss.reporting import evaluated, rendered  # noqa: PLC0415
    from eatss.tune.sweeping import sweep as run  # noqa: PLC0415 - keeps --help fast

    interrupted = False
    with working("setting up") as step:
        try:
            run(
                source,
                output=output,
                options=options,
                generation=generation,
                progress=partial(_tell, step),
                card=card,
                warned=warn_while_working,
            )
        except KeyboardInterrupt:
            interrupted = True
    if interrupted and not output.exists():
        say("interrupted before anything was measured")
        raise SystemExit(INTERRUPTED)
    if interrupted:
        say(f"interrupted: go on with the same command; {output} has all so far")
    with working(f"evaluating {output}"):
        text = rendered(evaluated([output]), "text" if format_ == "table" else "json")
    echo(text, nl=False)
    if interrupted:
        raise SystemExit(INTERRUPTED)


def _refused(message: str, hint: str) -> InputError:
    return input_error("EATSS-W005", message, hint=hint)


def _tell(step: Step, progress: Progress) -> None:
    """Say what was measured, and how good the best is: ``120 measured, 3 failed; best 0.81``."""
    done, total = progress.spent_s, progress.budget_s
    if progress.wanted is not None:
        done, total = progress.measured + progress.failed, float(progress.wanted)
    found = f"{progress.measured} measured, {progress.failed} failed"
    if progress.best is not None and progress.default:
        found += f"; best {progress.best / progress.default:.2f} of default"
    step.at(progress.stage, done, total, note=found)
