"""The commands as one Typer application."""

from __future__ import annotations

import typer

from eatss.cli import (
    cache,
    characterize,
    codegen,
    compare,
    doctor,
    inspect,
    kernels,
    measure,
    meter,
    ppcg,
    predict,
    profiles,
    report,
    results,
    roofline,
    schema,
    select,
    space,
    sweep,
    verify,
)

app = typer.Typer(
    name="eatss",
    help="Energy-aware tile sizes for affine loops on GPUs, proven optimal.",
    epilog="Start with: eatss select @gemm --gpu a100",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(epilog=select.EXAMPLES)(select.select)
app.command(epilog=space.EXAMPLES)(space.space)
app.command(epilog=predict.EXAMPLES)(predict.predict)
app.command(epilog=codegen.EXAMPLES)(codegen.codegen)
app.command(epilog=verify.EXAMPLES)(verify.verify)
app.command(epilog=measure.EXAMPLES)(measure.measure)
app.command(epilog=compare.EXAMPLES)(compare.compare)
app.command(epilog=characterize.EXAMPLES)(characterize.characterize)
app.command(epilog=roofline.EXAMPLES)(roofline.roofline)
app.command(epilog=meter.EXAMPLES)(meter.meter)
app.command(epilog=ppcg.EXAMPLES)(ppcg.ppcg)
app.command(epilog=sweep.EXAMPLES)(sweep.sweep)
app.command(epilog=report.EXAMPLES)(report.report)
app.add_typer(results.app, name="results")
app.command(epilog=inspect.EXAMPLES)(inspect.inspect)
app.command(epilog=profiles.EXAMPLES)(profiles.profiles)
app.command(epilog=kernels.EXAMPLES)(kernels.kernels)
app.command(epilog=schema.EXAMPLES)(schema.schema)
app.add_typer(cache.app, name="cache")
app.command(epilog=doctor.EXAMPLES)(doctor.doctor)


@app.callback(invoke_without_command=True)
def root(
    version: bool = typer.Option(False, "--version", help="Print the version and exit."),
) -> None:
    """Energy-aware tile sizes for affine C loops on GPUs."""
    if version:
        from eatss import __version__  # noqa: PLC0415

        typer.echo(f"eatss {__version__}")
        raise typer.Exit
