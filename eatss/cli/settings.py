"""Defaults of options from ``eatss.toml``: checked against the commands; ``eatss settings``."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from eatss.cli.declared import COMMANDS, Given, Parameter, UnclearError
from eatss.cli.options import Debug, Diagnostics, Format, show
from eatss.cli.settings_file import (
    Default,
    InForce,
    SettingsFile,
    Value,
    find_settings,
    read_settings,
)
from eatss.diagnostics import Diagnostic, EatssError, InputError

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
    diagnostics: Diagnostics = "text",
    debug: Debug = False,
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


def defaults_of(file: SettingsFile) -> tuple[Default, ...]:
    """Return what a file sets for each command.

    Raises:
        InputError: with a finding for each mistake: ``EATSS-C032`` there is no such command or
            option, ``EATSS-C033`` a value that the option does not take.
    """
    reader = _Reader(file)
    for key, value in file.table.items():
        reader.read((), key, value)
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

    def read(self, path: tuple[str, ...], key: str, value: Any) -> None:
        """Read one entry of the table of a command, of a group of commands or of all."""
        inner = (*path, key)
        if isinstance(value, dict) and inner in COMMANDS:
            for name, one in value.items():
                self._of_one(inner, name, one)
        elif isinstance(value, dict) and inner in self._groups:
            for name, one in value.items():
                self.read(inner, name, one)
        elif inner == ("tool",):
            hint = "that is for pyproject.toml; here write [select] for [tool.eatss.select]"
            self._find(inner, "EATSS-C032", "settings do not stand below 'tool' here", hint)
        elif isinstance(value, dict):
            self._unknown(inner, "command", [*self._names(path)])
        elif path:
            tables = [f"[{'.'.join((*path, name))}]" for name in self._names(path)]
            hint = f"write it into the table of one of its commands: {', '.join(tables)}"
            message = f"eatss {' '.join(path)} has commands, and '{key}' is none of them"
            self._find(inner, "EATSS-C032", message, hint)
        else:
            self._of_all(key, value)

    def check_talk(self) -> None:
        """Find tables that ask for ``quiet`` and ``verbose`` at once."""
        on = dict.fromkeys(one.key for one in (*self.of_all, *self.of_one) if one.value is True)
        for key in on:
            *table, name = key
            if name == "verbose" and (*table, "quiet") in on:
                for one in ("quiet", "verbose"):
                    self._find(
                        (*table, one),
                        "EATSS-C033",
                        f"'{one}' and '{_OPPOSITE[one]}' exclude each other",
                        "leave one of them out",
                    )

    def _names(self, path: tuple[str, ...]) -> Iterator[str]:
        known = {one[: len(path) + 1] for one in COMMANDS if one[: len(path)] == path}
        yield from sorted(one[-1] for one in known)

    def _option(self, path: tuple[str, ...], key: str) -> Parameter | None:
        word = key.replace("_", "-")
        return next((one for one in self._options[path] if word in one.plain_words), None)

    def _of_one(self, path: tuple[str, ...], key: str, value: Any) -> None:
        option, name = self._option(path, key), (*path, key)
        if option is None:
            self._unknown(name, "option", _words(self._options[path]), " ".join(path))
            return
        try:
            made = self._value(option, value)
        except _RefusedError as refused:
            self._refuse(name, refused)
            return
        self.of_one.append(Default(command=path, option=option.name, key=name, value=made))

    def _of_all(self, key: str, value: Any) -> None:
        """Take a setting for each command that has the option and takes the value."""
        having = [(path, one) for path in COMMANDS if (one := self._option(path, key))]
        if not having:
            options = [one for several in self._options.values() for one in several]
            self._unknown((key,), "option", _words(options), also=[*self._names(())])
            return
        if key.replace("_", "-") in OF_ONE_COMMAND:
            tables = ", ".join(f"[{'.'.join(path)}]" for path, _ in having)
            self._find(
                (key,),
                "EATSS-C033",
                f"'{key}' is not the same in every command",
                f"write it into the table of one: {tables}",
            )
            return
        refused: _RefusedError | None = None
        taken = []
        for path, option in having:
            try:
                made = self._value(option, value)
            except _RefusedError as error:
                refused = error
                continue
            taken.append(Default(command=path, option=option.name, key=(key,), value=made))
        if refused is not None and not taken:
            also = _TABLE.format(key) if key in self._names(()) else None
            self._refuse((key,), refused, also)
        self.of_all += taken

    def _value(self, option: Parameter, value: Any) -> Value:
        """Return a value as it is typed, for flags whether it is.

        Raises:
            _RefusedError: it is none of the option.
        """
        _check_kind(option, value)
        if option.type is bool:
            return bool(value)
        several = value if isinstance(value, list) else [value]
        texts = [self._text(option, one) for one in several]
        try:
            made = [option.value(text) for text in texts]
        except UnclearError as error:
            raise _RefusedError(f"{option.shown}: {error}", _wanted(option)) from None
        except EatssError as error:
            first = error.diagnostics[0]
            raise _RefusedError(first.message, first.hint) from None
        if any(isinstance(one, Path) for one in made):
            texts = [os.path.normpath(self._file.path.parent / text) for text in texts]
        return tuple(texts) if option.several else texts[0]

    def _text(self, option: Parameter, value: str | float) -> str:
        """Return a value as one types it; paths are relative to the file they stand in."""
        text = str(value)
        if option.plain_words & _FILES and (os.sep in text or text.endswith(".toml")):
            return os.path.normpath(self._file.path.parent / Path(text).expanduser())
        return text

    def _refuse(self, key: tuple[str, ...], why: _RefusedError, also: str | None = None) -> None:
        hint = "; ".join(one for one in (why.hint, also) if one) or None
        self._find(key, "EATSS-C033", why.message, hint)

    def _unknown(
        self,
        key: tuple[str, ...],
        what: str,
        known: Sequence[str],
        of: str = "",
        also: Sequence[str] = (),
    ) -> None:
        name = key[-1]
        close = get_close_matches(name.replace("_", "-"), [*known, *also], n=1)
        whose = f"eatss {of}" if of else "eatss"
        if name in also:  # a command's name, with a value
            hint = _TABLE.format(name)
        elif close:
            hint = f"did you mean {close[0]}?"
        else:
            hint = f"eatss {of} --help lists them".replace("  ", " ")
        self._find(key, "EATSS-C032", f"{whose} has no {what} '{name}'", hint)

    def _find(self, key: tuple[str, ...], code: str, message: str, hint: str | None) -> None:
        place = self._file.place(*key)
        self.findings.append(
            Diagnostic(
                code=code,
                message=message,
                span=None if place is None else place.span,
                source_line=None if place is None else place.source_line,
                hint=hint,
            )
        )


class _RefusedError(Exception):
    """A value is none of an option: why, and what to do."""

    def __init__(self, message: str, hint: str | None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


def _check_kind(option: Parameter, value: Any) -> None:
    """Check that TOML's kind of value is one of an option.

    Raises:
        _RefusedError: it is not.
    """
    if option.type is bool:
        if isinstance(value, bool):
            return
        raise _RefusedError(f"{option.shown} is on or off", "write true or false")
    if isinstance(value, list) and not option.several:
        raise _RefusedError(f"{option.shown} takes one value", "write one value without brackets")
    words = _TEXT.match(option.option.metavar or "") is not None
    for one in value if isinstance(value, list) else [value]:
        known = isinstance(one, str) or (isinstance(one, int | float) and not words)
        if not known or isinstance(one, bool):
            raise _RefusedError(f"{option.shown} takes no {_kind(one)}", _wanted(option))


def _words(options: Sequence[Parameter]) -> list[str]:
    return sorted({word for one in options for word in one.plain_words})


def _wanted(option: Parameter) -> str | None:
    written = option.option.metavar
    return f"it is written {written} there" if written else None


def _kind(value: object) -> str:
    """Return what TOML calls a value that an option does not take."""
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, list):
        return "list"
    return "table" if isinstance(value, dict) else "date"
