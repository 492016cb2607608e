"""The file that defaults of options stand in: which one is in force, and what it holds.

The working folder and then its parents are looked through, up to the root of a repository (a
folder with ``.git`` or ``.hg``) or the home folder, both included. The first folder with an
``eatss.toml``, or with a ``pyproject.toml`` that has a table ``[tool.eatss]``, has the file; of
both, ``eatss.toml`` counts. One file is read, none is merged with another. So do ruff and mypy.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

from eatss.base.diagnostics import Diagnostic, InputError, input_error
from eatss.base.files import read_regular
from eatss.base.frozen import frozen
from eatss.cards.document import Place, find_place, place_at

Value: TypeAlias = bool | str | tuple[str, ...]
"""A default as Click takes it: what is no flag as one types it."""

NAME = "eatss.toml"
PROJECT = "pyproject.toml"

_IN_PROJECT = ("tool", "eatss")
_ROOTS = (".git", ".hg")
_MAX_BYTES = 1 << 20


@frozen
class SettingsFile:
    """A file and its settings; ``prefix`` is the table that they stand in."""

    path: Path
    text: str
    prefix: tuple[str, ...]
    table: dict[str, Any]

    def place(self, *keys: str) -> Place | None:
        """Return where a key stands, or the first table that begins with it."""
        path = (*self.prefix, *keys)
        found = find_place(self.text, path, str(self.path))
        if found is not None:
            return found
        for number, line in enumerate(self.text.splitlines(), 1):
            begin = line.find(".".join(path))
            if begin >= 0 and line.lstrip().startswith("["):
                return place_at(self.text, number, begin + 1, str(self.path))
        return None


@frozen
class Default:
    """A setting in force: ``command`` has ``value`` for ``option``; ``key`` is how it is written.

    ``command`` has the words of the command line, ``("results", "ls")``, ``option`` the name of
    the parameter.
    """

    command: tuple[str, ...]
    option: str
    key: tuple[str, ...]
    value: Value


@frozen
class InForce:
    """The file of settings in force, and what it sets."""

    file: SettingsFile
    defaults: tuple[Default, ...]


def find_settings(folder: Path) -> SettingsFile | None:
    """Return the file that is in force in a folder, ``None`` if there is none.

    Raises:
        InputError: ``EATSS-C031``, it cannot be read or is not TOML.
    """
    for place in _folders(folder):
        own = place / NAME
        if own.is_file():
            return read_settings(own)
        project = place / PROJECT
        if project.is_file():
            found = _of_project(project)
            if found is not None:
                return found
    return None


def read_settings(path: Path) -> SettingsFile:
    """Read a file by its name: settings, or a ``pyproject.toml``.

    Raises:
        InputError: ``EATSS-C031``, it cannot be read or is not TOML.
    """
    if path.name == PROJECT:
        return _of_project(path) or SettingsFile(path=path, text="", prefix=_IN_PROJECT, table={})
    text = _text(path)
    return SettingsFile(path=path, text=text, prefix=(), table=_parsed(path, text))


def _of_project(path: Path) -> SettingsFile | None:
    """Return the settings of a project, ``None`` if it has none."""
    text = _text(path)
    if "eatss" not in text:  # what else is wrong in it is told by others
        return None
    tools = _parsed(path, text).get("tool")
    table = tools.get("eatss") if isinstance(tools, dict) else None
    if table is None:
        return None
    if not isinstance(table, dict):
        raise _at(find_place(text, _IN_PROJECT, str(path)), path, "tool.eatss is not a table")
    return SettingsFile(path=path, text=text, prefix=_IN_PROJECT, table=table)


def _folders(folder: Path) -> Iterator[Path]:
    home = Path.home()
    for place in (folder, *folder.parents):
        yield place
        if place == home or any((place / root).exists() for root in _ROOTS):
            return


def _text(path: Path) -> str:
    try:
        return read_regular(path, _MAX_BYTES).decode()
    except FileNotFoundError:
        reason = "there is no such file"
    except OSError as error:
        reason = error.strerror or str(error)
    except UnicodeDecodeError:
        reason = "it is not UTF-8 text"
    raise input_error(
        "EATSS-C031",
        f"cannot read the settings in '{path}': {reason}",
        hint="name another file with --config, or leave settings out with --no-config",
    )


def _parsed(path: Path, text: str) -> dict[str, Any]:
    import tomllib  # noqa: PLC0415 - most folders have no settings

    from eatss.cards.load import LONG_KEY, SYNTAX_PLACE  # noqa: PLC0415

    if LONG_KEY.search(text) is not None:  # tomllib takes minutes for one
        raise _at(None, path, "a key of very many parts is none of eatss")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise _at(None, path, "it is nested too deeply") from None
    except ValueError as error:  # also a number of 5000 digits
        message = str(error)
    found = SYNTAX_PLACE.search(message)
    message = message[: found.start()] if found else message
    line, column = len(text.splitlines()), 1
    if found is not None and found[1] is not None:
        line, column = int(found[1]), int(found[2])
    raise _at(place_at(text, line, column, str(path)), path, f"not valid TOML: {message}")


def _at(place: Place | None, path: Path, message: str) -> InputError:
    if place is None:
        return input_error("EATSS-C031", f"settings in '{path}': {message}")
    return InputError(
        Diagnostic(
            code="EATSS-C031", message=message, span=place.span, source_line=place.source_line
        )
    )
