"""``eatss sweep``: many variants of a program measured, kept, and gone on with."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from eatss.cli.measure_options import DEVICE_HELP, parse_device
from eatss.cli.messages import working
from eatss.cli.option_groups import takes
from eatss.cli.options import Debug, of_output, of_source, reading_options
from eatss.cli.replay_options import replay_command
from eatss.cli.sweep_progress import sweep_progress
from eatss.diagnostics import InputError, input_error

if TYPE_CHECKING:
    from eatss.explore.generation import Generation
    from eatss.explore.options import SweepOptions
    from eatss.frontend.options import ReadingKeywords

EXAMPLES = """
Examples:

    eatss sweep kernels/gemm.c --gpu auto --budget 300 -o gemm.db

    eatss sweep kernels/2mm.c --space tiles.toml --strategy random --budget 30m -o 2mm.db

    eatss sweep kernels/gemm.c --target ppcg --ppcg ~/ppcg/bin/ppcg -o ppcg.db

    eatss sweep kernels/gemm.c --devices 0,1 --budget 1000 -o gemm.db

    eatss sweep kernels/gemm.c --gpu h200 --budget 300 --prepare variants

    eatss sweep variants -o gemm.db

    eatss sweep --replay gemm.db --strategy random,local,model --seeds 20
"""

INTERRUPTED = 130


@takes(reading=reading_options)
def sweep(
    *,
    source: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE|DIR",
            help="C or Python as for select, or a folder of --prepare.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        of_output(
            "--output", "-o", metavar="STORE", help="The store; gone on with if it is there."
        ),
    ] = None,
    gpu: Annotated[
        str,
        of_source("--gpu", "-g", metavar="auto|CARD", help="Card that variants are generated for."),
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
    strategy: Annotated[
        str,
        typer.Option(
            metavar="NAME",
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
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="tcp://HOST:PORT",
            help="A Dask scheduler whose workers make and measure the variants.",
        ),
    ] = None,
    makers: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Processes that generate; default: by the cores."),
    ] = None,
    meter: Annotated[
        str, typer.Option(metavar="NAME", help="What energy is read from, as for measure.")
    ] = "auto",
    compiler: Annotated[
        Literal["auto", "nvrtc", "nvcc"], typer.Option(help="What compiles the CUDA text.")
    ] = "auto",
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.01, help="Limit of one run.")
    ] = 20.0,
    no_check: Annotated[
        bool, typer.Option("--no-check", help="Do not compare results with the reference's.")
    ] = False,
    keep: Annotated[
        Path | None, of_output(metavar="DIR", help="Keep the programs in this folder.")
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
        Path | None,
        of_output(
            metavar="STORE",
            help="Try strategies on what a store has, without a card, and print what each finds.",
        ),
    ] = None,
    seeds: Annotated[
        int, of_output(metavar="N", min=1, help="Of --replay: how often each strategy is tried.")
    ] = 10,
    reading: ReadingKeywords,
    format_: Annotated[
        Literal["table", "json"], of_output("--format", "-f", help="What to print at the end.")
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
    from eatss.explore.generation import Generation  # noqa: PLC0415
    from eatss.explore.options import SweepOptions  # noqa: PLC0415 - keeps --help fast
    from eatss.explore.prepared import is_prepared  # noqa: PLC0415
    from eatss.frontend.options import Reading  # noqa: PLC0415
    from eatss.store.sweep_json import read_sweep  # noqa: PLC0415
    from eatss.strategies.budget import Budget  # noqa: PLC0415

    limit = Budget() if budget is None else Budget.parse(budget)
    generating = {
        "--gpu": gpu != "auto",
        "--space": space is not None,
        "--target": target != "cuda",
        "--ppcg": ppcg is not None,
        "--ppcg-option": bool(ppcg_options),
        "--keep": keep is not None,
    }
    measured = {
        "-o": output is not None,
        "--counters": counters > 0,
        "--scheduler": scheduler is not None,
    }
    if replay is not None:
        others = {
            "a source": source is not None,
            "--prepare": prepare is not None,
        }
        _refuse("--replay", generating | measured | others)
        if objective == "pareto":
            message = "--replay needs one number a variant, and --objective pareto has two"
            raise input_error("EATSS-W007", message, hint="take energy, time or edp")
        recorded = read_sweep(replay, measurements=False)
        typer.echo(replay_command(recorded, strategy, seeds, budget, objective, format_), nl=False)
        return
    options = SweepOptions(
        strategy=strategy,
        objective=objective,
        budget=limit,
        seed=seed,
        contenders=contenders,
        counters=counters,
        makers=makers,
        devices=tuple(parse_device(one) for one in devices.split(",")),
        meter=meter,
        compiler=compiler,
        timeout_s=timeout,
        compares=not no_check,
    )
    generation = Generation(
        gpu=gpu,
        target=target,
        space=space,
        reading=Reading(**reading),
        ppcg=ppcg,
        ppcg_arguments=tuple(ppcg_options or ()),
        keep=keep,
    )
    if source is None:
        raise _missing("a C file, or a folder of --prepare", "eatss sweep FILE.c -o STORE")
    if is_prepared(source):
        _refuse("a folder of --prepare", generating | {"--prepare": prepare is not None})
    if prepare is not None:
        _refuse("--prepare", measured)
        _prepare(source, prepare, options, generation)
        return
    if output is None:
        raise _missing("the store, -o STORE", f"eatss sweep {source} -o {source.stem}.db")
    _sweep(source, output, options, generation, scheduler, card, format_)


def _sweep(
    source: Path,
    output: Path,
    options: SweepOptions,
    generation: Generation,
    scheduler: str | None,
    card: str | None,
    format_: Literal["table", "json"],
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
            )
        except KeyboardInterrupt:
            interrupted = True
    if interrupted and not output.exists():
        typer.echo("interrupted before anything was measured", err=True)
        raise typer.Exit(INTERRUPTED)
    if interrupted:
        typer.echo(f"interrupted: go on with the same command; {output} has all so far", err=True)
    _show(output, format_)
    if interrupted:
        raise typer.Exit(INTERRUPTED)


def _show(output: Path, format_: Literal["table", "json"]) -> None:
    from eatss.reporting import evaluated, rendered  # noqa: PLC0415 - keeps --help fast

    typer.echo(rendered(evaluated([output]), "text" if format_ == "table" else "json"), nl=False)


def _prepare(source: Path, folder: Path, options: SweepOptions, generation: Generation) -> None:
    from eatss.explore.preparing import prepare_sweep  # noqa: PLC0415 - keeps --help fast

    with working(f"generating variants of {source}"):
        made = prepare_sweep(source, output=folder, options=options, generation=generation)
    good = sum(one.made.folder is not None for one in made.variants)
    typer.echo(f"{good} of {len(made.variants)} variants in {folder}")
    typer.echo(f"measure them where the card is: eatss sweep {folder} -o STORE", err=True)


def _refuse(what: str, given: dict[str, bool]) -> None:
    """Refuse options that something has no use for.

    Raises:
        InputError: ``EATSS-W007``.
    """
    for option, is_given in given.items():
        if is_given:
            raise input_error("EATSS-W007", f"{what} has no use for {option}", hint="leave it out")


def _missing(what: str, example: str) -> InputError:
    return input_error("EATSS-W008", f"{what} is not given", hint=f"write: {example}")
