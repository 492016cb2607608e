"""How much a command says on stderr, and in which form: ``--quiet``, ``--verbose`` and their like.

Every command has these options, and so has ``eatss`` itself: ``eatss --quiet select …`` is
``eatss select … --quiet``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eatss.cli.option_groups import parameters_of
from eatss.diagnostics import input_error

if TYPE_CHECKING:
    from eatss.cli.settings_file import SettingsFile


@dataclass(frozen=True, slots=True, kw_only=True)
class FromSettings:
    """An option as it is typed that a file of settings gave, and the key that stands there."""

    file: SettingsFile
    option: str
    key: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """What is said on stderr besides errors.

    ``quiet``: nothing. ``verbose``: each step with its time. ``as_json``: findings are JSON.
    ``debug``: our own faults have a traceback. ``from_settings`` are the options that a file
    of settings gave.
    """

    quiet: bool = False
    verbose: bool = False
    as_json: bool = False
    debug: bool = False
    from_settings: tuple[FromSettings, ...] = ()


current: ContextVar[Talk] = ContextVar("talk", default=Talk())  # noqa: B039 - it is frozen
"""How the command of this process talks; set once its options are known."""

QUIET_HELP = "Say nothing on stderr but errors."
VERBOSE_HELP = "Say each step and its time on stderr."

_PANEL = "Output"
_ADDED = {
    "quiet": Annotated[
        bool, typer.Option("--quiet", "-q", help=QUIET_HELP, rich_help_panel=_PANEL)
    ],
    "verbose": Annotated[
        bool, typer.Option("--verbose", "-v", help=VERBOSE_HELP, rich_help_panel=_PANEL)
    ],
}


def talking(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command ``--quiet`` and ``--verbose``, and let it talk as its options say."""
    own = parameters_of(function)
    context = next((one.name for one in own if one.annotation is typer.Context), None)
    asked = {**_ADDED} if context else {"context": typer.Context, **_ADDED}

    @wraps(function)
    def run(**options: Any) -> Any:
        found: typer.Context = options[context or "context"]
        quiet, verbose = chosen(found, quiet=options["quiet"], verbose=options["verbose"])
        current.set(
            Talk(
                quiet=quiet,
                verbose=verbose,
                as_json=options.get("diagnostics") == "json",
                debug=bool(options.get("debug")),
                from_settings=() if found.obj is None else found.obj.of(found),
            )
        )
        return function(**{name: one for name, one in options.items() if name not in asked})

    added = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=False if name in _ADDED else inspect.Parameter.empty,
            annotation=kind,
        )
        for name, kind in asked.items()
    ]
    run.__signature__ = inspect.Signature([*own, *added])  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in (*own, *added)}
    return run


def chosen(context: typer.Context, *, quiet: bool, verbose: bool) -> tuple[bool, bool]:
    """Return what holds of ``--quiet`` and ``--verbose``: what is typed outdoes settings.

    Raises:
        InputError: ``EATSS-C040``, both are asked for.
    """
    if quiet and verbose:
        quiet = not is_from_settings(context, "quiet")
        verbose = not is_from_settings(context, "verbose")
        if quiet == verbose:
            raise input_error(
                "EATSS-C040",
                "--quiet and --verbose exclude each other",
                hint="leave one of them out",
            )
    return quiet, verbose


def talk_of_words(words: Sequence[str]) -> Talk:
    """Return what the words of a command line say, before anything has parsed them."""
    joined = " ".join(words)
    return Talk(
        as_json="--diagnostics json" in joined or "--diagnostics=json" in joined,
        debug="--debug" in words,
    )


def is_typed(context: typer.Context, name: str) -> bool:
    """Return whether an option is on the command line; settings are no reason to refuse."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def typed_options(context: typer.Context) -> tuple[str, ...]:
    """Return the options that are on the command line, in each of their spellings."""
    typed = (one for one in context.command.params if one.name and is_typed(context, one.name))
    return tuple(word for one in typed for word in one.opts)


def is_from_settings(context: typer.Context, name: str) -> bool:
    """Return whether an option has its value from settings."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "DEFAULT_MAP"
