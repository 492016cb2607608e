"""The words of a command line read as its parameters say, without what draws help and mistakes.

What is plainly right is read here, with the settings of a file. All else, help, mistakes and
completion, is left to Typer (:mod:`eatss.cli.typer_app`), which has the same parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from eatss.base.diagnostics import EatssError
from eatss.cli.declared import (
    COMMANDS,
    REQUIRED,
    Command,
    Given,
    Parameter,
    Source,
    UnclearError,
)


def understood(words: Sequence[str]) -> tuple[Command, Given] | None:
    """Return the command of some words and what they say, ``None`` where that is not plain.

    Raises:
        InputError: ``EATSS-C031`` to ``C033``, a file of settings is wrong.
    """
    for count in (1, 2):
        command = COMMANDS.get(tuple(words[:count]))
        if command is not None:
            try:
                return command, _given(command, words[count:])
            except (UnclearError, ValueError):
                return None
    return None


def _with_settings(given: Given) -> Given:
    """Return what was typed, and what a file sets where nothing was."""
    if not may_have_settings(Path.cwd()):
        return given
    from eatss.cli.settings import in_force  # noqa: PLC0415 - most folders have none

    settings = in_force()
    if settings is None:
        return given
    set_here = {
        one.option: one.value
        for one in settings.defaults
        if one.command == given.command and not given.is_typed(one.option)
    }
    values = {
        one.name: _of_settings(one, set_here[one.name])
        for one in given.parameters
        if one.name in set_here
    }
    sources: dict[str, Source] = dict.fromkeys(values, "settings")
    return replace(
        given,
        values={**given.values, **values},
        sources={**given.sources, **sources},
        settings=settings,
    )


def _of_settings(parameter: Parameter, value: bool | str | tuple[str, ...]) -> Any:
    if isinstance(value, tuple):
        return [parameter.value(one) for one in value]
    return value if isinstance(value, bool) else parameter.value(value)


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
                found[one.name] = [_worded(one, word) for word in taken]
    if plain:
        raise UnclearError
    given = Given(
        parameters=parameters,
        values={one.name: _chosen(one, found.get(one.name)) for one in parameters},
        sources=dict.fromkeys(found, "typed"),
        command=command.path,
    )
    given = _with_settings(given)
    if REQUIRED in given.values.values():
        raise UnclearError
    return given


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
            raise UnclearError
        parameter, is_on = options[name]
        made = is_on if parameter.type is bool else _worded(parameter, value or _next(sign, rest))
        if parameter.type is bool and sign:
            raise UnclearError
        found.setdefault(parameter.name, []).append(made)
    return found, plain


def _next(sign: str, rest: list[str]) -> str:
    """Return the word that is the value of the option before it, or nothing after a sign."""
    if sign:
        return ""
    if not rest or (rest[0].startswith("-") and rest[0] != "-"):
        raise UnclearError
    return rest.pop(0)


def _chosen(parameter: Parameter, given: list[Any] | None) -> Any:
    if given is None:
        return parameter.default
    return given if parameter.several else given[-1]


def _worded(parameter: Parameter, word: str) -> Any:
    """Return the value of a word; a mistake is told by Typer, after those before it."""
    try:
        return parameter.value(word)
    except EatssError as error:
        raise UnclearError(word) from error
