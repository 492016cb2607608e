"""The command line, made of functions by Click.

A parameter of a command's function is an option or an argument
(:class:`~eatss.base.options.Option` in its annotation), or a noun whose fields are options
(:class:`~eatss.base.options.Asked`). A command is loaded when it is asked for, and all of them for
the help of the whole.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Sequence
from dataclasses import MISSING, fields, replace
from importlib import import_module
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import click
from click.core import ParameterSource

from eatss.base.diagnostics import InputError, did_you_mean, input_error
from eatss.base.options import OF_FIELD, Asked, Option, option
from eatss.base.streams import echo, page_width
from eatss.cli.talk import Talk, current

EXAMPLES = """
Examples:

    eatss select @gemm --gpu a100

    eatss codegen @gemm --gpu a100 -o build/gemm

    eatss verify build/gemm

    eatss measure build/gemm

    eatss doctor
"""

COMMANDS = {
    name: panel
    for panel, commands in (
        ("Sizes and code", "select codegen predict inspect ppcg kernels"),
        ("Programs on a card", "verify measure compare meter"),
        ("Many variants", "space sweep report"),
        ("Cards", "profiles characterize roofline"),
        ("This installation", "doctor schema"),
    )
    for name in commands.split()
}
"""All commands, with the part of the help they are in, in its order."""

_MODULES = {
    "compare": "measure",
    "inspect": "predict",
    "kernels": "installation",
    "doctor": "installation",
    "schema": "installation",
    "profiles": "cards",
    "roofline": "cards",
}
"""Modules that are not called as their commands."""

_PANELS = ("Arguments", "Options", "Source", "Model", "Code", "PPCG", "Measuring", "Output")
"""Groups of options in the order of the help."""


def run(words: Sequence[str]) -> None:
    """Run the command of some words.

    Raises:
        InputError: ``EATSS-C004``, no such command, option or value.
    """
    eatss = Commands()
    if "_EATSS_COMPLETE" in os.environ:
        eatss.main(prog_name="eatss")
    how: Any = {"max_content_width": page_width(), "help_option_names": ["--help", "-h"]}
    try:
        with eatss.make_context("eatss", list(words), **how) as made:
            eatss.invoke(made)
    except click.exceptions.Exit as end:
        sys.exit(end.exit_code)
    except click.exceptions.NoArgsIsHelpError as error:
        echo(error.ctx.get_help() if error.ctx else "", err=True)
        sys.exit(InputError.exit_code)
    except click.UsageError as error:
        path = "eatss" if error.ctx is None else error.ctx.command_path
        said = error.format_message().rstrip(".")
        raise input_error("EATSS-C004", said, hint=f"{path} --help") from None


def typed(*names: str) -> list[str]:
    """Return how those options are spelled that stand on the command line, of some."""
    context = click.get_current_context()
    return [
        one.opts[0]
        for one in context.command.params
        if one.name in names
        and context.get_parameter_source(one.name) is ParameterSource.COMMANDLINE
    ]


class _Typed(click.Parameter):
    """What is typed, as it is declared."""

    declared: Option

    def value(self, context: click.Context) -> Any:
        """Return what was typed, several as a list, ``None`` for none."""
        found = context.params[self.name or ""]
        return (list(found) or None) if isinstance(found, tuple) else found


class _Option(_Typed, click.Option):
    pass


class _Argument(_Typed, click.Argument):
    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        """Return how it is written, and what is said of it."""
        return self.make_metavar(ctx), self.declared.help + "  [required]" * self.required


def parameter_of(name: str, annotation: Any, default: Any) -> _Option | _Argument:
    """Return what is typed for a parameter of a function, or a field of a noun."""
    kind, *marks = get_args(annotation) if get_origin(annotation) is Annotated else (annotation,)
    declared = next((one for one in marks if isinstance(one, Option)), Option())
    kind, default = declared.kind or kind, None if default in ((), MISSING) else default
    if get_origin(kind) in (UnionType, Union):
        kind = next(one for one in get_args(kind) if one is not NoneType)
    several = get_origin(kind) is list
    kind = get_args(kind)[0] if several else kind
    how = {"type": _type(declared, kind), "metavar": declared.metavar}
    if default is inspect.Parameter.empty:
        how["required"] = True
    else:
        how["default"] = default if declared.default is OF_FIELD else declared.default
    made: _Option | _Argument
    if declared.is_argument:
        how.setdefault("required", False)
        made = _Argument([name], nargs=-1 if several else 1, **how)
    else:
        words = declared.words.split() or [f"--{name.replace('_', '-')}"]
        how |= {"multiple": several, "help": declared.help, "hidden": declared.hidden}
        if kind is bool:
            how |= {"is_flag": True, "type": None}
        made = _Option([*words, name], show_default=declared.show_default, **how)
    made.declared = declared
    return made


def _type(declared: Option, kind: Any) -> Any:
    if declared.parser is not None:
        return click.types.FuncParamType(declared.parser)
    if get_origin(kind) is Literal:
        return click.Choice(get_args(kind))
    if kind in (int, float) and (declared.min, declared.max) != (None, None):
        bounded: Any = click.IntRange if kind is int else click.FloatRange
        return bounded(min=declared.min, max=declared.max)
    return click.Path(path_type=Path, readable=False) if kind is Path else kind


def fields_of(noun: type) -> tuple[_Option | _Argument, ...]:
    """Return the fields of a noun that are options."""
    hints = get_type_hints(noun, include_extras=True)
    return tuple(
        parameter_of(one.name, hints[one.name], one.default)
        for one in fields(noun)
        if any(isinstance(mark, Option) for mark in getattr(hints[one.name], "__metadata__", ()))
    )


_TALK = (
    ("debug", "--debug", "Show a traceback for our own faults."),
    ("quiet", "--quiet -q", "Say nothing on stderr but errors."),
    ("verbose", "--verbose -v", "Say each step and its time on stderr."),
)
"""How commands talk: options of all."""


class _WithExamples(click.Command):
    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        """Return what shows the help, also where standard output cannot be written."""
        found = super().get_help_option(ctx)
        if found is not None:
            found.callback = _show_help
        return found

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples, whose lines are not to be broken."""
        formatter.write(self.epilog or "")


_OF_OPTIONS = ("EATSS-C004", "EATSS-C012")
"""A value is out of its range, or options do not go together."""


def _show_help(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        echo(ctx.get_help())
        ctx.exit()


class Command(_WithExamples):
    """A command; its help has the options by panels."""

    def __init__(self, name: str) -> None:
        module = import_module(f"eatss.cli.{_MODULES.get(name, name)}")
        self._function = getattr(module, name)
        self._members: dict[str, tuple[type | None, Sequence[_Option | _Argument]]] = {}
        hints = get_type_hints(self._function, include_extras=True)
        for own, one in inspect.signature(self._function).parameters.items():
            if get_origin(hints[own]) is Asked:
                (noun,) = get_args(hints[own])
                self._members[own] = noun, fields_of(noun)
            else:
                self._members[own] = None, [parameter_of(own, hints[own], one.default)]
        params: list[click.Parameter] = [one for _, some in self._members.values() for one in some]
        for way, words, said in _TALK:
            talking = Annotated[bool, option(words, panel="Output", help=said)]
            params.append(parameter_of(way, talking, False))
        documented, examples = inspect.getdoc(self._function), module.EXAMPLES[name]
        super().__init__(name, params=params, help=documented, epilog=examples)

    def invoke(self, ctx: click.Context) -> None:
        """Run it; it talks as its options say."""
        current.set(Talk(**{name: ctx.params[name] for name, _, _ in _TALK}))
        found = {}
        for name, (noun, own) in self._members.items():
            if noun is None:
                found[name] = own[0].value(ctx)
                continue
            given = {one: one.value(ctx) for one in own}
            found[name] = Asked(
                noun,
                {
                    one.name or "": (one.declared.made or (lambda value: value))(value)
                    for one, value in given.items()
                    if value is not None
                },
            )
        try:
            self._function(**found)
        except InputError as error:
            raise self._as_typed(error) from error

    def _as_typed(self, error: InputError) -> InputError:
        """Return a finding about a keyword, which begins with its name, as one about the option."""
        first, *others = error.diagnostics
        name, _, said = first.message.partition(" ")
        words = {one.name: one.opts[0] for one in self.params if isinstance(one, click.Option)}
        if first.code not in _OF_OPTIONS or name not in words:
            return error
        return InputError(replace(first, message=f"{words[name]} {said}"), *others)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the arguments, and the options by panels."""
        panels: dict[str, list[tuple[str, str]]] = {title: [] for title in _PANELS}
        for one in self.get_params(ctx):
            record, panel = one.get_help_record(ctx), "Output"
            if isinstance(one, _Typed):
                usual = "Arguments" if one.declared.is_argument else "Options"
                panel = one.declared.panel or usual
            if record is not None:
                panels[panel].append(record)
        for title, rows in panels.items():
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


class Commands(_WithExamples, click.Group):
    """``eatss`` itself; its commands are loaded when they are asked for."""

    def __init__(self) -> None:
        super().__init__(
            "eatss",
            help="Energy-aware tile sizes and code for affine loops on GPUs.",
            epilog=EXAMPLES,
            params=[click.Option(["--version"], is_flag=True, help=_VERSION)],
            callback=_print_version,
            invoke_without_command=True,
            no_args_is_help=True,
        )

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of its commands in the order of the help."""
        return [*COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, if there is one of this name."""
        return Command(cmd_name) if cmd_name in COMMANDS else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command of some words, or say which one may be meant."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            said = did_you_mean(args[0], self.list_commands(ctx)) or f"{ctx.command_path} --help"
            raise input_error("EATSS-C004", error.message.rstrip("."), hint=said) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands by panels."""
        panels: dict[str, dict[str, str]] = {}
        for name, panel in COMMANDS.items():
            panels.setdefault(panel, {})[name] = Command(name).get_short_help_str(_WHOLE)
        for panel, rows in panels.items():
            with formatter.section(panel):
                formatter.write_dl([*rows.items()])


_WHOLE = 1000
"""Letters of a first sentence that are shown: all of them."""

_VERSION = "Print the version and exit; eatss doctor says all that it runs with."


def _print_version(*, version: bool) -> None:
    if version:
        from eatss.version import __version__  # noqa: PLC0415 - keeps --help fast

        echo(f"eatss {__version__}")
        raise click.exceptions.Exit
