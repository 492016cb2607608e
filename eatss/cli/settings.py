"""Defaults of options from ``eatss.toml``: checked against the commands; ``eatss settings``."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from eatss.base.diagnostics import Diagnostic, EatssError, InputError
from eatss.cli.declared import COMMANDS, Given, Parameter, UnclearError
from eatss.cli.options import Format, show
from eatss.cli.settings_file import (
    Default,
    InForce,
    SettingsFile,
    Value,
    find_settings,
    read_settings,
)

EXAMPLES = {
    "settings": """
Examples:

    eatss settings

    eatss settings --format json

    eatss --config other.toml settings
"""
}


def settings(
    given: Given,
    output: Format = "table",
) -> None:
    """Show which eatss.toml or pyproject.toml is in force here, and what it sets.

    The first folder from here upwards counts that has an eatss.toml, or a pyproject.toml with a
    table [tool.eatss]; the search ends at the root of the repository or at the home folder.
    """
    from eatss.report.listings import Setting, Settings  # noqa: PLC0415

    found = given.settings
    shown = Settings(
        file=None if found is None else str(found.file.path),
        settings=tuple(
            Setting(
                command=" ".join(one.command),
                option=COMMANDS[one.command].parameter(one.option).shown,
                value=one.value,
                key=".".join(one.key),
            )
            for one in (() if found is None else found.defaults)
        ),
    )
    show(shown, output)


def in_force(config: Path | None = None) -> InForce | None:
    """Return the settings of the file that is named, or that is found.

    Raises:
        InputError: ``EATSS-C031`` to ``C033``, the file is wrong.
    """
    file = find_settings(Path.cwd()) if config is None else read_settings(config)
    return None if file is None else InForce(file=file, defaults=defaults_of(file))


def default_map(defaults: Sequence[Default], *, quiet: bool, verbose: bool) -> dict[str, Any]:
    """Return defaults of options, and what ``eatss`` itself was told, as Click takes them."""
    told = {"quiet": quiet, "verbose": verbose} if quiet or verbose else {}
    found: dict[str, Any] = {}
    for path, option, value in (
        *((one.command, one.option, one.value) for one in defaults),
        *((path, option, value) for path in COMMANDS for option, value in told.items()),
    ):
        table = found
        for word in path:
            table = table.setdefault(word, {})
        table[option] = value
    return found


OF_ONE_COMMAND = frozenset(
    (
        "budget",
        "counters",
        "device",
        "force",
        "output",
        "plot",
        "record",
        "replay",
        "selection",
        "target",
        "timeout",
    )
)
"""Options that mean one thing in one command and another in the next: not for all commands."""

_OPPOSITE = {"quiet": "verbose", "verbose": "quiet"}

_TABLE = "[{0}] is a table with the options of eatss {0}"

_TEXT = re.compile(r"(NAME|CARD|FORMAT|PATH|FILE|DIR|STORE)\b")
"""How the metavar of an option begins that takes no number."""

_FILES = frozenset(("gpu", "ppcg", "nvcc", "cc", "cxx"))
"""Options that take a path or a name; whatever is written like a path is one."""


class _MistakeError(Exception):
    """What is wrong with a setting, and what to do."""

    def __init__(self, code: str, message: str, hint: str | None) -> None:
        super().__init__(message)
        self.code, self.message, self.hint = code, message, hint

    @classmethod
    def of_value(cls, message: str, hint: str | None) -> _MistakeError:
        """Return the mistake that a value is none of its option."""
        return cls("EATSS-C033", message, hint)


def defaults_of(file: SettingsFile) -> tuple[Default, ...]:
    """Return what a file sets for each command.

    Raises:
        InputError: with a finding for each mistake: ``EATSS-C032`` there is no such command or
            option, ``EATSS-C033`` a value that the option does not take.
    """
    reader = _Reader(file)
    reader.read((), file.table)
    reader.check_talk()
    if reader.findings:
        raise InputError(*reader.findings)
    outdone = {(one.command, _OPPOSITE.get(one.option)) for one in reader.of_one if one.value}
    of_all = (one for one in reader.of_all if (one.command, one.option) not in outdone)
    found = {(one.command, one.option): one for one in (*of_all, *reader.of_one)}
    return tuple(found.values())


class _Reader:
    """Goes through a file, and gathers settings and findings."""

    def __init__(self, file: SettingsFile) -> None:
        self._file = file
        self._options = {
            path: [one for one in command.parameters() if one.is_settable]
            for path, command in COMMANDS.items()
        }
        self._groups = {path[:1] for path in COMMANDS if len(path) > 1}
        self.of_all: list[Default] = []
        self.of_one: list[Default] = []
        self.findings: list[Diagnostic] = []

    def read(self, path: tuple[str, ...], table: dict[str, Any]) -> None:
        """Read the table of a command, of a group of commands or of all."""
        for key, value in table.items():
            inner = (*path, key)
            if isinstance(value, dict) and (inner in COMMANDS or inner in self._groups):
                self.read(inner, value)
                continue
            try:
                self._take(path, key, value)
            except _MistakeError as mistake:
                self._find(inner, mistake)

    def check_talk(self) -> None:
        """Find tables that ask for ``quiet`` and ``verbose`` at once."""
        on = dict.fromkeys(one.key for one in (*self.of_all, *self.of_one) if one.value is True)
        for *table, name in on:
            if name == "verbose" and (*table, "quiet") in on:
                for one, other in (("quiet", "verbose"), ("verbose", "quiet")):
                    message = f"'{one}' and '{other}' exclude each other"
                    mistake = _MistakeError.of_value(message, "leave one of them out")
                    self._find((*table, one), mistake)

    def _take(self, path: tuple[str, ...], key: str, value: Any) -> None:
        """Take a setting, of a command or of all.

        Raises:
            _MistakeError: it is none.
        """
        if path in COMMANDS:
            option = self._option(path, key)
            if option is None:
                raise _unknown(key, "option", _words(self._options[path]), " ".join(path))
            made = self._value(option, value)
            default = Default(command=path, option=option.name, key=(*path, key), value=made)
            self.of_one.append(default)
        elif (*path, key) == ("tool",):
            raise _MistakeError(
                "EATSS-C032",
                "settings do not stand below 'tool' here",
                "that is for pyproject.toml; here write [select] for [tool.eatss.select]",
            )
        elif isinstance(value, dict):
            raise _unknown(key, "command", _names(path))
        elif path:
            tables = ", ".join(f"[{'.'.join((*path, name))}]" for name in _names(path))
            raise _MistakeError(
                "EATSS-C032",
                f"eatss {' '.join(path)} has commands, and '{key}' is none of them",
                f"write it into the table of one of its commands: {tables}",
            )
        else:
            self._of_all(key, value)

    def _option(self, path: tuple[str, ...], key: str) -> Parameter | None:
        word = key.replace("_", "-")
        return next((one for one in self._options[path] if word in one.plain_words), None)

    def _of_all(self, key: str, value: Any) -> None:
        """Take a setting for each command that has the option and takes the value.

        Raises:
            _MistakeError: none does.
        """
        having = [(path, one) for path in COMMANDS if (one := self._option(path, key))]
        if not having:
            options = [one for several in self._options.values() for one in several]
            raise _unknown(key, "option", _words(options), also=_names(()))
        if key.replace("_", "-") in OF_ONE_COMMAND:
            tables = ", ".join(f"[{'.'.join(path)}]" for path, _ in having)
            raise _MistakeError.of_value(
                f"'{key}' is not the same in every command",
                f"write it into the table of one: {tables}",
            )
        taken, refused = [], None
        for path, option in having:
            try:
                made = self._value(option, value)
            except _MistakeError as mistake:
                refused = mistake
            else:
                taken.append(Default(command=path, option=option.name, key=(key,), value=made))
        if refused is not None and not taken:
            also = _TABLE.format(key) if key in _names(()) else None
            refused.hint = "; ".join(one for one in (refused.hint, also) if one) or None
            raise refused
        self.of_all += taken

    def _value(self, option: Parameter, value: Any) -> Value:
        """Return a value as it is typed, for flags whether it is.

        Raises:
            _MistakeError: it is none of the option.
        """
        _check_kind(option, value)
        if option.type is bool:
            return bool(value)
        texts = [self._text(option, one) for one in (value if isinstance(value, list) else [value])]
        try:
            made = [option.value(text) for text in texts]
        except UnclearError as error:
            raise _MistakeError.of_value(f"{option.shown}: {error}", _wanted(option)) from None
        except EatssError as error:
            raise _MistakeError.of_value(error.message, error.hint) from None
        if any(isinstance(one, Path) for one in made):
            texts = [os.path.normpath(self._file.path.parent / text) for text in texts]
        return tuple(texts) if option.several else texts[0]

    def _text(self, option: Parameter, value: str | float) -> str:
        """Return a value as one types it; paths are relative to the file they stand in."""
        text = str(value)
        if option.plain_words & _FILES and (os.sep in text or text.endswith(".toml")):
            return os.path.normpath(self._file.path.parent / Path(text).expanduser())
        return text

    def _find(self, key: tuple[str, ...], mistake: _MistakeError) -> None:
        place = self._file.place(*key)
        self.findings.append(
            Diagnostic(
                code=mistake.code,
                message=mistake.message,
                span=None if place is None else place.span,
                source_line=None if place is None else place.source_line,
                hint=mistake.hint,
            )
        )


def _names(path: tuple[str, ...]) -> list[str]:
    """Return the commands, and groups of them, that may stand in a table."""
    known = {one[: len(path) + 1] for one in COMMANDS if one[: len(path)] == path}
    return sorted(one[-1] for one in known)


def _unknown(
    name: str, what: str, known: Sequence[str], of: str = "", also: Sequence[str] = ()
) -> _MistakeError:
    close = get_close_matches(name.replace("_", "-"), [*known, *also], n=1)
    whose = f"eatss {of}".strip()
    if name in also:  # a command's name, with a value
        hint = _TABLE.format(name)
    else:
        hint = f"did you mean {close[0]}?" if close else f"{whose} --help lists them"
    return _MistakeError("EATSS-C032", f"{whose} has no {what} '{name}'", hint)


def _check_kind(option: Parameter, value: Any) -> None:
    """Check that TOML's kind of value is one of an option.

    Raises:
        _MistakeError: it is not.
    """
    if option.type is bool:
        if isinstance(value, bool):
            return
        raise _MistakeError.of_value(f"{option.shown} is on or off", "write true or false")
    if isinstance(value, list) and not option.several:
        message, hint = f"{option.shown} takes one value", "write one value without brackets"
        raise _MistakeError.of_value(message, hint)
    words = _TEXT.match(option.option.metavar or "") is not None
    for one in value if isinstance(value, list) else [value]:
        if isinstance(one, str) or (type(one) in (int, float) and not words):
            continue
        kinds = {bool: "true or false", int: "number", float: "number", list: "list", dict: "table"}
        kind = kinds.get(type(one), "date")
        raise _MistakeError.of_value(f"{option.shown} takes no {kind}", _wanted(option))


def _words(options: Sequence[Parameter]) -> list[str]:
    return sorted({word for one in options for word in one.plain_words})


def _wanted(option: Parameter) -> str | None:
    written = option.option.metavar
    return f"it is written {written} there" if written else None
