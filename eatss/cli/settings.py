"""Defaults of options from ``eatss.toml``, or the table ``[tool.eatss]`` of ``pyproject.toml``.

The working folder and then its parents are looked through, up to the root of a repository (a
folder with ``.git`` or ``.hg``) or the home folder, both included. The first such file counts
alone. So do ruff and mypy.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from eatss.base.diagnostics import InputError, did_you_mean, input_error
from eatss.base.files import read_regular
from eatss.base.frozen import frozen
from eatss.cli.declared import COMMANDS, Parameter

NAME = "eatss.toml"
PROJECT = "pyproject.toml"

_ROOTS = (".git", ".hg")
_MAX_BYTES = 1 << 20

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


@frozen
class Settings:
    """A file and what it sets: a value by option, and a table by command."""

    file: Path
    table: Mapping[str, Any]

    def default_map(self) -> dict[str, Any]:
        """Return defaults of options as Click takes them, by the words of the command.

        Raises:
            InputError: ``EATSS-C031``, there is no such command or option, or a value is of
                another kind than the option takes.
        """
        found: dict[str, Any] = {}
        used: set[tuple[str, ...]] = set()
        words = {word for path in COMMANDS for word in path}
        for path, command in COMMANDS.items():
            options = _by_word(command.parameters())
            words |= options.keys()
            own, table = found, self.table
            for word in path:
                own = own.setdefault(word, {})
                table = table[word] if isinstance(table.get(word), dict) else {}
            for place, values in (((), self.table), (path, table)):
                for key, value in values.items():
                    option = options.get(key.replace("_", "-"))
                    if option is not None and not isinstance(value, dict):
                        used.add((*place, key))
                        if not place and key.replace("_", "-") in OF_ONE_COMMAND:
                            message = f"'{key}' is not the same in every command"
                            hint = "write it into the table of one"
                            raise self._mistake("EATSS-C031", message, hint)
                        own[option.name] = self._value(key, option, value)
        for keys in _leaves(self.table):
            if keys not in used:
                name = keys[0] if keys[0] not in words else keys[-1]
                hint = did_you_mean(name.replace("_", "-"), sorted(words), "choose one of")
                message = f"nothing of eatss is called '{'.'.join(keys)}'"
                raise self._mistake("EATSS-C031", message, hint)
        return found

    def _value(self, key: str, option: Parameter, value: Any) -> Any:
        """Return a value as one types it; paths are relative to the file they stand in."""
        if (option.type is bool) is not isinstance(value, bool):
            wanted = "true or false" if option.type is bool else "text or a number"
            raise self._mistake("EATSS-C031", f"{key} is {value!r}", f"write {wanted}")
        if isinstance(value, bool):
            return value
        texts = [str(one) for one in (value if isinstance(value, list) else [value])]
        if isinstance(value, list) and not option.several:
            raise self._mistake("EATSS-C031", f"{key} takes one value", "write it without brackets")
        texts = [
            os.path.normpath(self.file.parent / Path(text).expanduser())
            if option.type is Path or text.startswith(("./", "../", "~/"))
            else text
            for text in texts
        ]
        return texts if option.several else texts[0]

    def _mistake(self, code: str, message: str, hint: str | None) -> InputError:
        return input_error(code, f"{self.file}: {message}", hint=hint)


def _leaves(table: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """Yield the keys that lead to each value."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from ((key, *inner) for inner in _leaves(value))
        else:
            yield (key,)


def _by_word(parameters: Iterable[Parameter]) -> dict[str, Parameter]:
    """Return options by how a file has them: without dashes."""
    return {
        word.lstrip("-"): one
        for one in parameters
        if not one.option.is_argument and not one.option.hidden
        for word in one.spellings
        if word.startswith("--") or len(one.spellings) == 1
    }


def in_force(config: Path | None = None) -> Settings | None:
    """Return the settings of the file that is named, or that is found.

    Raises:
        InputError: ``EATSS-C031``, it cannot be read or is not TOML.
    """
    if config is not None:
        return _read(config) or Settings(file=config, table={})
    for folder in (Path.cwd(), *Path.cwd().parents):
        for name in (NAME, PROJECT):
            found = _read(folder / name) if (folder / name).is_file() else None
            if found is not None:
                return found
        if folder == Path.home() or any((folder / root).exists() for root in _ROOTS):
            return None
    return None


def _read(path: Path) -> Settings | None:
    """Return what a file sets; ``None`` where a project says nothing of eatss.

    Raises:
        InputError: ``EATSS-C031``.
    """
    in_project = path.name == PROJECT
    try:
        text = read_regular(path, _MAX_BYTES).decode()
        if in_project and "eatss" not in text:  # what else is wrong in it is told by others
            return None
        import tomllib  # noqa: PLC0415 - most folders have no settings

        table: Any = tomllib.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise input_error(
            "EATSS-C031",
            f"cannot read the settings in '{path}': {why}",
            hint="name another file with --config, or leave settings out with --no-config",
        ) from None
    if in_project:
        table = table.get("tool", {}).get("eatss")
    return None if table is None else Settings(file=path.absolute(), table=table)
