"""Commands as they are declared: a function, whose parameters say what is typed.

A parameter is an option or an argument (:class:`~eatss.base.options.Option` in its annotation), a
noun whose fields are options (:class:`~eatss.base.options.Asked`), what another function makes of
options (:class:`Group`), or what was typed itself (:class:`Given`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from functools import cache
from importlib import import_module
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from eatss.base.frozen import frozen
from eatss.base.options import OF_FIELD, Asked, Option, option
from eatss.cli.talk import Talk, current

REQUIRED = inspect.Parameter.empty

_UNIONS = (UnionType, Union)

Function = Callable[..., Any]


@frozen
class Group:
    """What makes a parameter: a function whose parameters are options."""

    make: Function


@frozen
class Parameter:
    """What is typed: an option or an argument; ``kind`` is its type, ``default`` may be none."""

    name: str
    kind: Any
    option: Option
    default: Any

    @property
    def words(self) -> tuple[str, ...]:
        """How it is spelled, the opposites of flags after a slash."""
        return tuple(self.option.words.split()) or (f"--{self.name.replace('_', '-')}",)

    @property
    def spellings(self) -> tuple[str, ...]:
        """How it is spelled, each alone; opposites of flags are left out."""
        return tuple(one.partition("/")[0] for one in self.words)

    @property
    def several(self) -> bool:
        """Whether it may be given several times."""
        return get_origin(_without_none(self.kind)) is list

    @property
    def type(self) -> Any:
        """The type of each value where there is one."""
        kind = _without_none(self.kind)
        return get_args(kind)[0] if self.several else kind


def _without_none(kind: Any) -> Any:
    inner = [one for one in get_args(kind) if one is not type(None)]
    return inner[0] if get_origin(kind) in _UNIONS and len(inner) == 1 else kind


@frozen
class Given:
    """What was given: values by parameter, and the names of those on the command line."""

    parameters: tuple[Parameter, ...]
    values: Mapping[str, Any]
    typed: frozenset[str]

    def spelled(self, name: str) -> str:
        """Return how an option is spelled."""
        return next(one for one in self.parameters if one.name == name).spellings[0]


_TALK = tuple(
    Parameter(
        name=name,
        kind=kind,
        option=option(words, panel="Output", help=said),
        default=default,
    )
    for name, words, kind, default, said in (
        ("debug", "--debug", bool, False, "Show a traceback for our own faults."),
        ("quiet", "--quiet -q", bool, False, "Say nothing on stderr but errors."),
        ("verbose", "--verbose -v", bool, False, "Say each step and its time on stderr."),
    )
)
"""How commands talk: options of all."""


@frozen
class Command:
    """A command: its words, where its function stands, and the part of the help it is in."""

    path: tuple[str, ...]
    home: str
    function: str = ""
    panel: str = ""

    @property
    def module(self) -> Any:
        """The module of its function."""
        return import_module(f"eatss.cli.{self.home}")

    def load(self) -> Function:
        """Return its function."""
        found: Function = getattr(self.module, self.function or self.path[-1])
        return found

    @property
    def examples(self) -> str:
        """Its examples, as its help has them."""
        examples: Mapping[str, str] = self.module.EXAMPLES
        return examples[self.path[0]]

    def parameters(self) -> tuple[Parameter, ...]:
        """Return what may be typed, with how the command talks."""
        own = parameters_of(self.load())
        without = {one.name for one in own}
        return (*own, *(one for one in _TALK if one.name not in without))

    def run(self, given: Given) -> None:
        """Run it; it talks as its options say."""
        values = given.values
        current.set(
            Talk(
                quiet=values["quiet"],
                verbose=values["verbose"],
                debug=bool(values.get("debug")),
            )
        )
        self.load()(**_filled(self.load(), given))


def _parameter(name: str, annotation: Any, default: Any) -> Parameter:
    kind, *marks = get_args(annotation) if get_origin(annotation) is Annotated else (annotation,)
    found = next((one for one in marks if isinstance(one, Option)), None) or Option()
    kind = found.kind or kind
    if found.default is not OF_FIELD:
        default = found.default
    elif get_origin(kind) in _UNIONS and default in ((), None):
        default = None  # as typed, nothing is None
    return Parameter(name=name, kind=kind, option=found, default=default)


@cache
def _members(function: Function) -> tuple[tuple[str, Any], ...]:
    """Return the parameters of a function: options, groups of them, or ``Given``."""
    hints = get_type_hints(function, include_extras=True)
    found: list[tuple[str, Any]] = []
    for one in inspect.signature(function).parameters.values():
        hint = hints[one.name]
        kind, *marks = get_args(hint) if get_origin(hint) is Annotated else (hint,)
        group = next((mark for mark in marks if isinstance(mark, Group)), None)
        if get_origin(kind) is Asked:
            found.append((one.name, get_args(kind)[0]))
        elif group is not None:
            found.append((one.name, group))
        elif kind is Given:
            found.append((one.name, Given))
        else:
            found.append((one.name, _parameter(one.name, hint, one.default)))
    return tuple(found)


@cache
def fields_of(noun: type) -> tuple[Parameter, ...]:
    """Return the fields of a noun that are options."""
    hints = get_type_hints(noun, include_extras=True)
    return tuple(
        _parameter(one.name, hints[one.name], None if one.default is MISSING else one.default)
        for one in fields(noun)
        if any(isinstance(mark, Option) for mark in getattr(hints[one.name], "__metadata__", ()))
    )


@cache
def parameters_of(function: Function) -> tuple[Parameter, ...]:
    """Return all options and arguments of a function, those of groups in their place."""
    found: list[Parameter] = []
    for _, member in _members(function):
        if isinstance(member, Parameter):
            found.append(member)
        elif isinstance(member, Group):
            found += parameters_of(member.make)
        elif member is not Given:
            found += fields_of(member)
    return tuple(found)


def _filled(function: Function, given: Given) -> dict[str, Any]:
    """Return the arguments of a function for what was typed."""
    found: dict[str, Any] = {}
    for name, member in _members(function):
        if isinstance(member, Parameter):
            found[name] = given.values[name]
        elif isinstance(member, Group):
            found[name] = member.make(**_filled(member.make, given))
        elif member is Given:
            found[name] = given
        else:
            found[name] = Asked(member, dict(_asked(member, given.values)))
    return found


def _asked(noun: type, values: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return the fields of a noun that are given, made of what was typed."""
    made = [(one, values[one.name]) for one in fields_of(noun) if values[one.name] is not None]
    return [
        (one.name, value if one.option.made is None else one.option.made(value))
        for one, value in made
    ]


def _commands() -> tuple[Command, ...]:
    of_code, on_card, many = "Sizes and code", "Programs on a card", "Many variants"
    cards, here = "Cards", "This installation"
    single = [
        (of_code, "select", "select"),
        (of_code, "codegen", "codegen"),
        (of_code, "predict", "predict"),
        (of_code, "inspect", "predict"),
        (of_code, "ppcg", "ppcg"),
        (of_code, "kernels", "installation"),
        (on_card, "verify", "verify"),
        (on_card, "measure", "measure"),
        (on_card, "compare", "compare"),
        (on_card, "meter", "meter"),
        (many, "space", "space"),
        (many, "sweep", "sweep"),
        (many, "report", "report"),
        (cards, "profiles", "cards"),
        (cards, "characterize", "characterize"),
        (cards, "roofline", "cards"),
        (here, "doctor", "installation"),
        (here, "schema", "installation"),
    ]
    groups = [
        (many, "results", "results", ("ls", "show", "merge", "export")),
    ]
    return (
        *(Command(path=(name,), home=home, panel=panel) for panel, name, home in single),
        *(
            Command(path=(group, name), home=home, function=f"{group}_{name}", panel=panel)
            for panel, group, home, names in groups
            for name in names
        ),
    )


COMMANDS: Mapping[tuple[str, ...], Command] = {one.path: one for one in _commands()}
"""All commands by their words, in the order of the help."""
