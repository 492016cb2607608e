"""The words of a command line read as its parameters say, without what draws help and mistakes.

What is plainly right is read here. All else, help, mistakes, completion and settings from a file,
is left to Typer (:mod:`eatss.cli.typer_app`), which has the same parameters.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from eatss.cli.declared import COMMANDS, REQUIRED, Command, Given, Parameter
from eatss.diagnostics import EatssError, InputError

_WHOLE = re.compile(r"[+-]?\d{1,18}")


class _UnclearError(Exception):
    """The words are not plainly right."""


def understood(words: Sequence[str]) -> tuple[Command, Given] | None:
    """Return the command of some words and what they say, ``None`` where that is not plain."""
    for count in (1, 2):
        command = COMMANDS.get(tuple(words[:count]))
        if command is not None:
            try:
                return command, _given(command, words[count:])
            except (_UnclearError, ValueError, EatssError):
                return None
    return None


def has_settings() -> bool:
    """Tell whether a file is in force in the working folder, or is one and cannot be read."""
    try:
        if not may_have_settings(Path.cwd()):
            return False
        from eatss.cli.settings_file import find_settings  # noqa: PLC0415 - rarely needed

        return find_settings(Path.cwd()) is not None
    except (InputError, OSError):
        return True


def may_have_settings(folder: Path) -> bool:
    """Tell whether it is worth looking closer, which takes time to load: most folders have none."""
    places = (folder, *folder.parents)
    if any((place / "eatss.toml").is_file() for place in places):
        return True
    return any(_names_eatss(place / "pyproject.toml") for place in places)


def _names_eatss(file: Path) -> bool:
    try:
        return b"eatss" in file.read_bytes() if file.is_file() else False
    except OSError:  # where it matters, that is told
        return True


def _given(command: Command, words: Sequence[str]) -> Given:
    parameters = command.parameters()
    found, plain = _options(parameters, list(words))
    for one in parameters:
        if one.option.is_argument:
            taken, plain = (plain, []) if one.several else (plain[:1], plain[1:])
            if taken:
                found[one.name] = [_value(one, word) for word in taken]
    if plain:
        raise _UnclearError
    return Given(
        parameters=parameters,
        values={one.name: _chosen(one, found.get(one.name)) for one in parameters},
        sources=dict.fromkeys(found, "typed"),
        command=command.path,
    )


def _options(
    parameters: Sequence[Parameter], rest: list[str]
) -> tuple[dict[str, list[Any]], list[str]]:
    """Return the values of options by name, and the words that are none of an option."""
    options = {
        word: (one, number == 0)
        for one in parameters
        if not one.option.is_argument
        for spelled in one.words
        for number, word in enumerate(spelled.split("/"))
    }
    found: dict[str, list[Any]] = {}
    plain: list[str] = []
    while rest:
        word = rest.pop(0)
        if word == "--":
            return found, plain + rest
        if not word.startswith("-") or word == "-":
            plain.append(word)
            continue
        name, sign, value = word.partition("=") if word.startswith("--") else (word, "", "")
        if name not in options and not word.startswith("--"):
            name, sign, value = word[:2], "=", word[2:]  # -DNAME
        if name not in options:
            raise _UnclearError
        parameter, is_on = options[name]
        made = is_on if parameter.type is bool else _value(parameter, value or _next(sign, rest))
        if parameter.type is bool and sign:
            raise _UnclearError
        found.setdefault(parameter.name, []).append(made)
    return found, plain


def _next(sign: str, rest: list[str]) -> str:
    """Return the word that is the value of the option before it, or nothing after a sign."""
    if sign:
        return ""
    if not rest or (rest[0].startswith("-") and rest[0] != "-"):
        raise _UnclearError
    return rest.pop(0)


def _chosen(parameter: Parameter, given: list[Any] | None) -> Any:
    if given is not None:
        return given if parameter.several else given[-1]
    if parameter.default is REQUIRED:
        raise _UnclearError
    return parameter.default


def _value(parameter: Parameter, word: str) -> Any:
    """Return the value that a word stands for."""
    option, kind = parameter.option, parameter.type
    if option.parser is not None:
        return option.parser(word)
    if parameter.several:
        (kind,) = get_args(kind)
    if kind is str:
        return word
    if kind is Path:
        return Path(word)
    if get_origin(kind) is Literal and word in get_args(kind):
        return word
    if kind is float or (kind is int and _WHOLE.fullmatch(word)):
        number = kind(word)
        at_least, at_most = option.min, option.max
        if (at_least is None or number >= at_least) and (at_most is None or number <= at_most):
            return number
    raise _UnclearError
