"""The commands as one Typer application."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

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
    settings,
    settings_in_force,
    space,
    sweep,
    verify,
)
from eatss.cli.help_order import Command, Group
from eatss.cli.talk import QUIET_HELP, VERBOSE_HELP, Talk, chosen, current, talking
from eatss.diagnostics import EatssError, input_error

EXAMPLES = """
Examples:

    eatss select @gemm --gpu a100

    eatss codegen @gemm --gpu a100 -o build/gemm

    eatss verify build/gemm

    eatss measure build/gemm

    eatss doctor
"""

app = typer.Typer(
    name="eatss",
    cls=Group,
    help="Energy-aware tile sizes for affine loops on GPUs, proven optimal.\n\n"
    "Options may have defaults in eatss.toml or [tool.eatss] of pyproject.toml: eatss settings "
    "shows them.",
    epilog=EXAMPLES,
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


_COMMANDS: tuple[tuple[str, Callable[..., Any], str], ...] = (
    ("Sizes and code", select.select, select.EXAMPLES),
    ("Sizes and code", codegen.codegen, codegen.EXAMPLES),
    ("Sizes and code", predict.predict, predict.EXAMPLES),
    ("Sizes and code", inspect.inspect, inspect.EXAMPLES),
    ("Sizes and code", ppcg.ppcg, ppcg.EXAMPLES),
    ("Sizes and code", kernels.kernels, kernels.EXAMPLES),
    ("Programs on a card", verify.verify, verify.EXAMPLES),
    ("Programs on a card", measure.measure, measure.EXAMPLES),
    ("Programs on a card", compare.compare, compare.EXAMPLES),
    ("Programs on a card", meter.meter, meter.EXAMPLES),
    ("Many variants", space.space, space.EXAMPLES),
    ("Many variants", sweep.sweep, sweep.EXAMPLES),
    ("Many variants", report.report, report.EXAMPLES),
    ("Cards", profiles.profiles, profiles.EXAMPLES),
    ("Cards", characterize.characterize, characterize.EXAMPLES),
    ("Cards", roofline.roofline, roofline.EXAMPLES),
    ("This installation", doctor.doctor, doctor.EXAMPLES),
    ("This installation", settings.settings, settings.EXAMPLES),
    ("This installation", schema.schema, schema.EXAMPLES),
)
"""The commands in the order of the help: panel, function, examples. Groups are added below."""


def _add_group(panel: str, group: typer.Typer, name: str) -> None:
    for one in group.registered_commands:
        assert one.callback is not None
        one.callback, one.cls = talking(one.callback), Command
    app.add_typer(group, cls=Group, name=name, rich_help_panel=panel)


for _panel, _function, _examples in _COMMANDS:
    app.command(cls=Command, epilog=_examples, rich_help_panel=_panel)(talking(_function))
_add_group("Many variants", results.app, "results")
_add_group("This installation", cache.app, "cache")


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Print the version and exit; with --verbose what a bug report needs.",
        ),
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help=QUIET_HELP)] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help=VERBOSE_HELP)] = False,
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Take defaults of options from FILE instead of eatss.toml."
        ),
    ] = None,
    no_config: Annotated[
        bool, typer.Option("--no-config", help="Take no defaults from eatss.toml.")
    ] = False,
) -> None:
    """Energy-aware tile sizes for affine C loops on GPUs."""
    quiet, verbose = chosen(context, quiet=quiet, verbose=verbose)
    if version:
        from eatss.cli.version import print_version  # noqa: PLC0415 - keeps --help fast

        current.set(Talk(quiet=quiet))
        print_version(in_full=verbose)
        raise typer.Exit
    if no_config and config is not None:
        raise input_error(
            "EATSS-C040",
            "--config and --no-config exclude each other",
            hint="leave one of them out",
        )
    try:
        in_force = None if no_config else settings_in_force.in_force(context, config)
    except EatssError:
        if not _asks_for_help(sys.argv[1:]):
            raise
        in_force = None
    context.obj = in_force
    context.default_map = settings_in_force.default_map(
        context, () if in_force is None else in_force.defaults, quiet=quiet, verbose=verbose
    )


def _asks_for_help(words: list[str]) -> bool:
    own = words[: words.index("--")] if "--" in words else words
    return "--help" in own or "-h" in own
