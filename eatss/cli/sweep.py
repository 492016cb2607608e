"""``eatss sweep``: many variants of a program measured, kept, and gone on with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eatss.cli import completion
from eatss.cli.messages import say, warn_while_working
from eatss.cli.option_groups import takes
from eatss.cli.options import Debug, TableOrJson, of_output, source_argument
from eatss.cli.progress import working
from eatss.cli.replay_options import replay_command
from eatss.cli.sweep_options import Made, Searched, generation_options, search_options
from eatss.cli.sweep_progress import sweep_progress
from eatss.cli.talk import typed_options
from eatss.diagnostics import InputError, input_error
from eatss.shipped_kernels import MARK
from eatss.shipped_sweeps import store_of_ones_own

if TYPE_CHECKING:
    from eatss.explore.generation import Generation
    from eatss.explore.options import SweepOptions

EXAMPLES = """
Examples:

    eatss sweep @gemm --gpu auto --budget 300 -o gemm.db

    eatss sweep @2mm --space tiles.toml --budget 30m -o 2mm.db

    eatss sweep @gemm --target ppcg --ppcg ~/ppcg/bin/ppcg -o ppcg.db

    eatss sweep @gemm --devices 0,1 --budget 1000 -o gemm.db

    eatss sweep @gemm --gpu h200 --budget 300 --prepare variants

    eatss sweep variants -o gemm.db

    eatss sweep --replay @gemm --strategy random,local,model --seeds 20
"""

INTERRUPTED = 130

MOST_REASONS = 8
"""So many reasons are told for which variants could not be prepared."""


@takes(made=generation_options, searched=search_options)
def sweep(
    context: typer.Context,
    *,
    source: Annotated[
        Path | None,
        source_argument(
            metavar="FILE|@KERNEL|DIR",
            help="C or Python as for select, or a folder of --prepare.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        of_output(
            "--output",
            "-o",
            metavar="STORE",
            parser=store_of_ones_own,
            help="The store; gone on with if it is there.",
        ),
    ] = None,
    made: Made,
    searched: Searched,
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="tcp://HOST:PORT",
            help="A Dask scheduler whose workers make and measure the variants.",
        ),
    ] = None,
    prepare: Annotated[
        Path | None,
        of_output(
            metavar="DIR",
            help="Generate the variants into a new folder and measure nothing: for a machine "
            "with a card, where eatss sweep DIR measures them.",
        ),
    ] = None,
    replay: Annotated[
        str | None,
        of_output(
            metavar="STORE|@KERNEL",
            autocompletion=completion.recorded_sweeps,
            help="Try strategies on what a store has, without a card, and print what each finds.",
        ),
    ] = None,
    seeds: Annotated[
        int, of_output(metavar="N", min=1, help="Of --replay: how often each strategy is tried.")
    ] = 10,
    format_: Annotated[
        TableOrJson, of_output("--format", "-f", help="What to print at the end.")
    ] = "table",
    card: Annotated[
        str | None,
        typer.Option("--card", metavar="MODULE:CLASS", hidden=True, help="Stands in for the card."),
    ] = None,
    debug: Debug = False,
) -> None:
    """Measure many variants of a program, each kept in a store as soon as it is measured.

    Run it again to go on where it stopped. Exits with 130 after Ctrl-C, which keeps what was
    measured.
    """
    from eatss.explore.prepared import is_prepared  # noqa: PLC0415 - keeps --help fast

    measured = _given(
        ("-o", output),
        ("--counters", searched.options.counters or None),
        ("--scheduler", scheduler),
    )
    prepares = _given(("--prepare", prepare))
    typed = typed_options(context)  # settings are no reason to refuse
    if replay is not None:
        if source is not None:
            raise _useless("--replay", "a source")
        _refuse("--replay", (*made.given, *measured, *prepares), typed)
        with working(f"replaying {replay}"):
            text = _replayed(replay, searched, seeds, format_)
        typer.echo(text, nl=False)
        return
    if source is None:
        raise _missing("a C file, or a folder of --prepare", "eatss sweep FILE.c -o STORE")
    if is_prepared(source):
        _refuse("a folder of --prepare", (*made.given, *prepares), typed)
    if prepare is not None:
        _refuse("--prepare", measured, typed)
        _prepare(source, prepare, searched.options, made.for_card(searched.options.devices[0]))
        return
    if output is None:
        raise _missing("the store, -o STORE", f"eatss sweep {source} -o {source.stem}.db")
    generation = made.generation
    if not is_prepared(source):
        generation = made.for_card(searched.options.devices[0])
    _sweep(source, output, searched.options, generation, scheduler, card, format_)


def _replayed(store: str, searched: Searched, seeds: int, format_: TableOrJson) -> str:
    from eatss.store.sweep_json import read_sweep  # noqa: PLC0415 - keeps --help fast

    if searched.objective == "pareto":
        message = "--replay needs one number a variant, and --objective pareto has two"
        raise input_error("EATSS-W007", message, hint="take energy, time or edp")
    recorded = read_sweep(store, measurements=False, warned=warn_while_working)
    return replay_command(
        recorded, searched.strategy, seeds, searched.budget, searched.objective, format_
    )


def _sweep(
    source: Path,
    output: Path,
    options: SweepOptions,
    generation: Generation,
    scheduler: str | None,
    card: str | None,
    format_: TableOrJson,
) -> None:
    from eatss.explore.sweeping import sweep as run  # noqa: PLC0415 - keeps --help fast

    interrupted = False
    with sweep_progress() as progress:
        try:
            run(
                source,
                output=output,
                options=options,
                generation=generation,
                progress=progress,
                card=card,
                scheduler=scheduler or ("local" if len(options.devices) > 1 else None),
                warned=warn_while_working,
            )
        except KeyboardInterrupt:
            interrupted = True
    if interrupted and not output.exists():
        say("interrupted before anything was measured")
        raise typer.Exit(INTERRUPTED)
    if interrupted:
        say(f"interrupted: go on with the same command; {output} has all so far")
    _show(output, format_)
    if interrupted:
        raise typer.Exit(INTERRUPTED)


def _show(output: Path, format_: TableOrJson) -> None:
    from eatss.reporting import evaluated, rendered  # noqa: PLC0415 - keeps --help fast

    with working(f"evaluating {output}"):
        text = rendered(evaluated([output]), "text" if format_ == "table" else "json")
    typer.echo(text, nl=False)


def _prepare(source: Path, folder: Path, options: SweepOptions, generation: Generation) -> None:
    from eatss.explore.preparing import prepare_sweep  # noqa: PLC0415 - keeps --help fast

    with working(f"generating variants of {source}") as step:
        made = prepare_sweep(
            source,
            output=folder,
            options=options,
            generation=generation,
            told=step.part,
            warned=warn_while_working,
        )
    good = sum(one.made.folder is not None for one in made.variants)
    typer.echo(f"{good} of {len(made.variants)} variants in {folder}")
    for reason, count in made.left_out[:MOST_REASONS]:
        say(f"{count} could not be made: {reason or 'no reason is known'}")
    others = sum(count for _, count in made.left_out[MOST_REASONS:])
    if others:
        say(f"{others} could not be made for other reasons")
    place = f"./{folder}" if str(folder).startswith(MARK) else str(folder)  # else it is a kernel
    say(f"measure them where the card is: eatss sweep {place} -o STORE")


def _given(*options: tuple[str, object]) -> tuple[str, ...]:
    """Return the names of options that have a value."""
    return tuple(name for name, value in options if value is not None)


def _refuse(what: str, given: Sequence[str], typed: Sequence[str]) -> None:
    """Refuse options that were typed and that something has no use for.

    Raises:
        InputError: ``EATSS-W007``.
    """
    for option in (one for one in given if one in typed):
        raise _useless(what, option)


def _useless(what: str, given: str) -> InputError:
    return input_error("EATSS-W007", f"{what} has no use for {given}", hint="leave it out")


def _missing(what: str, example: str) -> InputError:
    return input_error("EATSS-W008", f"{what} is not given", hint=f"write: {example}")
