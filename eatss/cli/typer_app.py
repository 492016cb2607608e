"""The declared commands as an application of Typer: help, mistakes, completion, settings.

A command is built when it is asked for, and all of them for the help of the whole.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from eatss.base.diagnostics import EatssError, input_error
from eatss.cli import completion, settings
from eatss.cli.declared import COMMANDS, Command, Given, Parameter, Source
from eatss.cli.talk import QUIET_HELP, VERBOSE_HELP, Talk, chosen, current

EXAMPLES = """
Examples:

    eatss select @gemm --gpu a100

    eatss codegen @gemm --gpu a100 -o build/gemm

    eatss verify build/gemm

    eatss measure build/gemm

    eatss doctor
"""

_PANELS = ("Source", "Model", "Code", "PPCG", "Measuring", "Output")
"""Panels of options after those that have none; every command has ``Output``, so it comes last."""


class TyperOfCommand(TyperCommand):
    """A command with its options in the order of their panels."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters as they are shown."""
        return sorted(_shown(super().get_params(ctx)), key=_place)


class TyperOfGroup(TyperGroup):
    """A group of commands."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters as they are shown."""
        return _shown(super().get_params(ctx))


class Root(TyperOfGroup):
    """``eatss`` itself, whose commands are built when they are asked for."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        # in the order of the help, groups last in their panel
        self.commands: Any = dict.fromkeys(path[0] for path in sorted(COMMANDS, key=len))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command, if there is one of this name."""
        if cmd_name in self.commands and self.commands[cmd_name] is None:
            self.commands[cmd_name] = _built(cmd_name)
        return self.commands.get(cmd_name)


def _built(name: str) -> Any:
    """Return what Typer makes of a command, or of a group of them."""
    inner = [one for path, one in COMMANDS.items() if path[0] == name]
    alone = (name,) in COMMANDS
    more = {} if alone else {"help": inner[0].module.HELP[name], "epilog": inner[0].examples}
    made = typer.Typer(
        name=name,
        cls=TyperOfGroup,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode="markdown",
        **more,
    )
    for one in inner:
        made.command(
            one.path[-1],
            cls=TyperOfCommand,
            epilog=one.examples,
        )(_callback(one))
    built = typer.main.get_command(made)
    built.name, built.rich_help_panel = name, inner[0].panel  # type: ignore[attr-defined]
    return built


def _callback(command: Command) -> Callable[..., None]:
    """Return the function of a command as Typer takes one."""
    function, parameters = command.load(), command.parameters()

    def run(context: typer.Context, **values: Any) -> None:
        sources = {one.name: _source(context, one.name) for one in parameters}
        command.run(
            Given(
                parameters=parameters,
                values=values,
                sources=sources,
                settings=context.obj,
                command=command.path,
            )
        )

    kind = inspect.Parameter.KEYWORD_ONLY
    shown = [
        inspect.Parameter("context", kind, annotation=typer.Context),
        *(
            inspect.Parameter(one.name, kind, default=one.default, annotation=_typed(one))
            for one in parameters
        ),
    ]
    run.__name__, run.__doc__ = function.__name__, function.__doc__
    run.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in shown}
    return run


def _source(context: typer.Context, name: str) -> Source:
    """Return where an option has its value from."""
    source = context.get_parameter_source(name)
    known: dict[str, Source] = {"COMMANDLINE": "typed", "DEFAULT_MAP": "settings"}
    return known.get("" if source is None else source.name, "default")


def _typed(parameter: Parameter) -> Any:
    """Return the annotation of a parameter as Typer takes it."""
    one = parameter.option
    how: dict[str, Any] = {"metavar": one.metavar, "help": one.help or None, "hidden": one.hidden}
    how |= {"rich_help_panel": one.panel, "min": one.min, "max": one.max, "parser": one.parser}
    how |= {"show_default": one.show_default, "autocompletion": _offer(one.complete)}
    if one.is_argument:
        return Annotated[parameter.kind, typer.Argument(**how)]
    return Annotated[parameter.kind, typer.Option(*one.words.split(), **how)]


def _offer(complete: str | tuple[str, ...]) -> completion.Offer | None:
    if isinstance(complete, tuple):
        return completion.words(*complete) if complete else None
    own: completion.Offer | None = getattr(completion, complete, None)
    return own or completion.registered(complete)


def _shown(parameters: list[Any]) -> list[Any]:
    for one in parameters:
        if getattr(one, "is_flag", False) and one.metavar is None:
            one.metavar = ""  # else it reads as if a word had to follow
        if one.param_type_name == "argument" and hasattr(one, "display_type_rich"):
            one.display_type_rich = _no_type  # <list[Path]> tells nobody anything
        for holder in (
            getattr(one, "type", None),
            getattr(getattr(one, "type_descriptor", None), "parameter_info", None),  # Typer 0.29
        ):
            if holder is not None and getattr(holder, "readable", False):
                holder.readable = False  # who reads it says why it cannot be, with a code
    return parameters


def _no_type(ctx: Any) -> str:
    del ctx
    return ""


def _place(parameter: Any) -> int:
    panel = getattr(parameter, "rich_help_panel", None)
    return _PANELS.index(panel) + 1 if panel in _PANELS else 0


app = typer.Typer(
    name="eatss",
    cls=Root,
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
    sources = {name: _source(context, name) for name in ("quiet", "verbose")}
    quiet, verbose = chosen(sources, quiet=quiet, verbose=verbose)
    if version:
        from eatss.cli.installation import print_version  # noqa: PLC0415 - keeps --help fast

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
        in_force = None if no_config else settings.in_force(config)
    except EatssError:
        if not _asks_for_help(sys.argv[1:]):
            raise
        in_force = None
    context.obj = in_force
    context.default_map = settings.default_map(
        () if in_force is None else in_force.defaults, quiet=quiet, verbose=verbose
    )


def _asks_for_help(words: list[str]) -> bool:
    own = words[: words.index("--")] if "--" in words else words
    return "--help" in own or "-h" in own
