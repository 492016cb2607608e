"""The declared commands as an application of Click: command line, settings, help, completion.

A command is loaded when it is asked for, and all of them for the help of the whole.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import click
from click.core import ParameterSource

from eatss.base.diagnostics import InputError, input_error
from eatss.base.streams import echo, page_width
from eatss.cli.declared import COMMANDS, REQUIRED, Command, Given, Parameter
from eatss.cli.settings import defaults

EXAMPLES = """
Examples:

    eatss select @gemm --gpu a100

    eatss codegen @gemm --gpu a100 -o build/gemm

    eatss verify build/gemm

    eatss measure build/gemm

    eatss doctor
"""

_PANELS = (None, "Source", "Model", "Code", "PPCG", "Measuring", "Output")
"""Groups of options in the order of the help."""


_MANY = 5
"""So many commands have an option that it is no hint."""


def run(words: Sequence[str]) -> None:
    """Run the command of some words.

    Raises:
        InputError: ``EATSS-C004``, no such command, option or value.
    """
    eatss = Commands(())
    if "_EATSS_COMPLETE" in os.environ:
        eatss.main(prog_name="eatss")
    context: Any = {"max_content_width": page_width()}
    try:
        with eatss.make_context("eatss", list(words), **context) as made:
            eatss.invoke(made)
    except click.exceptions.Exit as end:
        sys.exit(end.exit_code)
    except click.exceptions.NoArgsIsHelpError as error:
        echo(error.ctx.get_help() if error.ctx else "", err=True)
        sys.exit(InputError.exit_code)
    except click.UsageError as error:
        path = "eatss" if error.ctx is None else error.ctx.command_path
        also = _others_with(error.option_name) if isinstance(error, click.NoSuchOption) else ""
        raise input_error(
            "EATSS-C004", error.format_message().rstrip("."), hint=f"{also}{path} --help"
        ) from None


def _others_with(word: str) -> str:
    """Return which commands have an option that another one lacks."""
    found = [
        " ".join(("eatss", *one.path))
        for one in COMMANDS.values()
        if any(word in parameter.spellings for parameter in one.parameters())
    ]
    return f"{' and '.join(found)} take {word}; " if 0 < len(found) < _MANY else ""


class _WithExamples(click.Command):
    """What ends its help with examples as they are typed."""

    def get_help_option(self, ctx: click.Context) -> click.Option:
        """Return what shows the help."""
        return click.Option(
            ["--help", "-h"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_show_help,
            help="Show this message and exit.",
        )

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples, whose lines are not to be broken."""
        formatter.write(self.epilog or "")


def _show_help(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        echo(ctx.get_help())
        ctx.exit()


class _Command(_WithExamples):
    """A command; its help has the options by panels."""

    def __init__(self, declared: Command) -> None:
        self.declared = declared
        self.parameters = declared.parameters()
        super().__init__(
            declared.path[-1],
            params=[_parameter(one) for one in self.parameters],
            help=inspect.getdoc(declared.load()),
            epilog=declared.examples,
        )

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Read the options, those of the settings where none are typed."""
        extra["default_map"] = defaults(self.declared.path)
        return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> None:
        """Run it."""
        sources = {one.name: ctx.get_parameter_source(one.name) for one in self.parameters}
        self.declared.run(
            Given(
                parameters=self.parameters,
                values={one.name: _value(one, ctx.params[one.name]) for one in self.parameters},
                typed=frozenset(
                    name for name, found in sources.items() if found is ParameterSource.COMMANDLINE
                ),
            )
        )

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the arguments, and the options by panels."""
        shown = [one for one in self.parameters if not one.option.hidden]
        arguments = [one for one in shown if one.option.is_argument]
        panels = [("Arguments", arguments)]
        for panel in _PANELS:
            own = [one for one in shown if one.option.panel == panel and one not in arguments]
            panels.append((panel or "Options", own))
        for title, members in panels:
            rows = [(written(one), said(one)) for one in members]
            if title == "Output":
                rows.append(("--help, -h", "Show this message and exit."))
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


_WHOLE = 1000
"""Letters of a first sentence that are shown: all of them."""


class Commands(_WithExamples, click.Group):
    """``eatss`` itself, or a group of its commands, which are loaded when they are asked for."""

    def __init__(self, path: tuple[str, ...]) -> None:
        self.path = path
        inner = [one for words, one in COMMANDS.items() if words[: len(path)] == path]
        if path:
            super().__init__(
                path[-1],
                help=inner[0].module.HELP[path[-1]],
                epilog=inner[0].examples,
                no_args_is_help=True,
            )
            return
        super().__init__(
            "eatss",
            params=_ROOT,
            callback=_root,
            invoke_without_command=True,
            help="Energy-aware tile sizes for affine loops on GPUs, proven optimal.",
            epilog=EXAMPLES,
            no_args_is_help=True,
        )

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of its commands in the order of the help."""
        at = len(self.path)
        paths = sorted(COMMANDS, key=len)  # groups come last
        return [*dict.fromkeys(path[at] for path in paths if path[:at] == self.path)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, if there is one of this name."""
        path = (*self.path, cmd_name)
        if path in COMMANDS:
            return _Command(COMMANDS[path])
        return Commands(path) if cmd_name in self.list_commands(ctx) else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command of some words, or say which one they may be meant for."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            near = get_close_matches(args[0], self.list_commands(ctx), 1)
            also = f" Did you mean '{near[0]}'?" if near else ""
            raise click.UsageError(f"{error.message}{also}", ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands by panels."""
        panels: dict[str, list[tuple[str, str]]] = {}
        names = self.list_commands(ctx)
        for name in names:
            path = (*self.path, name)
            panel = next(one.panel for words, one in COMMANDS.items() if words[: len(path)] == path)
            found = self.get_command(ctx, name)
            assert found is not None
            panels.setdefault(panel, []).append((name, found.get_short_help_str(_WHOLE)))
        for panel, rows in panels.items():
            with formatter.section(panel):
                formatter.write_dl(rows)


def _parameter(one: Parameter) -> click.Parameter:
    """Return a parameter as Click takes one."""
    how: dict[str, Any] = {"type": _type(one)}
    if one.default is REQUIRED:
        how["required"] = True
    elif one.type is not bool or one.default is not None:
        how["default"] = one.default
    if one.option.is_argument:
        how["required"] = one.default is REQUIRED
        metavar = one.option.metavar or one.name.upper()
        return click.Argument([one.name], nargs=-1 if one.several else 1, metavar=metavar, **how)
    if one.type is bool:
        how["is_flag"] = True
        del how["type"]
    return click.Option([*one.words, one.name], multiple=one.several, **how)


def _type(one: Parameter) -> Any:
    """Return the type of a parameter as Click takes one."""
    option, kind = one.option, one.type
    if option.parser is not None:
        return click.types.FuncParamType(option.parser)
    if get_origin(kind) is Literal:
        return click.Choice(get_args(kind))
    if kind in (int, float):
        bounded: Any = click.IntRange if kind is int else click.FloatRange
        return bounded(min=option.min, max=option.max)
    return click.Path(path_type=Path, readable=False) if kind is Path else kind


def _value(one: Parameter, value: Any) -> Any:
    """Return a value as commands take it: several as a list, none of them as the default."""
    if not one.several:
        return value
    return list(value) if value else one.default


def written(one: Parameter) -> str:
    """Return how a parameter is written, ``--gpu, -g CARD|auto``."""
    option, kind = one.option, one.type
    value = option.metavar or ""
    if not value and kind is not bool:
        choices = get_args(kind) if get_origin(kind) is Literal else ()
        value = "|".join(choices) or one.name.upper()
    return value if option.is_argument else f"{', '.join(one.words)} {value}".rstrip()


def said(one: Parameter) -> str:
    """Return what the help says of a parameter, with its default."""
    default = one.default
    if default is REQUIRED:
        return f"{one.option.help}  [required]"
    if not one.option.show_default or default in (None, False, (), []) or default is True:
        return one.option.help
    return f"{one.option.help}  [default: {default}]"


_ROOT = [
    click.Option(
        ["--version"],
        is_flag=True,
        help="Print the version and exit; with --verbose what a bug report needs.",
    ),
    click.Option(["--verbose", "-v"], is_flag=True, hidden=True),
]


@click.pass_context
def _root(context: click.Context, *, version: bool, verbose: bool) -> None:
    if version:
        from eatss.cli.installation import print_version  # noqa: PLC0415 - keeps --help fast

        print_version(in_full=verbose)
        context.exit()
