"""Defaults of options from ``eatss.toml`` in the working folder, or the nearest above it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from eatss.base.diagnostics import did_you_mean, input_error
from eatss.cli.declared import COMMANDS, Parameter


def defaults(path: tuple[str, ...]) -> dict[str, Any]:
    """Return the values that a file gives the options of a command, as Click's defaults.

    A key is the long name of an option without dashes, or its letter. Keys at the top are for all
    commands that have them; those in the table of a command, ``[results.show]``, win. Paths that
    begin with a dot are relative to the file.

    Raises:
        InputError: ``EATSS-C031``, the file cannot be read, or nothing has such an option.
    """
    folder = Path.cwd()
    files = (one / "eatss.toml" for one in (folder, *folder.parents))
    file = next((one for one in files if one.is_file()), None)
    if file is None:
        return {}
    import tomllib  # noqa: PLC0415 - most folders have no settings

    try:
        table = tomllib.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise input_error("EATSS-C031", f"cannot read the settings in '{file}': {error}") from None
    names = _names(COMMANDS[path].parameters())
    common = {key: value for key, value in table.items() if not isinstance(value, dict)}
    own: Any = table
    for word in path:
        own = own.get(word, {})
    words = {word for each in COMMANDS for word in each}
    wrong = [*(own.keys() - names), *(table.keys() - common.keys() - words)]
    if unread := common.keys() - names:
        known = {key for one in COMMANDS.values() for key in _names(one.parameters())}
        wrong += unread - known
    if wrong:
        raise input_error(
            "EATSS-C031",
            f"{file}: nothing is called '{wrong[0]}' there",
            hint=did_you_mean(wrong[0], sorted({*names, *words}), "choose one of"),
        )
    given = {key: value for key, value in {**common, **own}.items() if key in names}
    return {names[key]: _placed(value, file.parent) for key, value in given.items()}


def _names(parameters: Sequence[Parameter]) -> Mapping[str, str]:
    """Return what options are called, by how a file has them."""
    return {word.lstrip("-"): one.name for one in parameters for word in one.spellings}


def _placed(value: Any, folder: Path) -> Any:
    is_path = isinstance(value, str) and value.startswith(("./", "../"))
    return str(folder / value) if is_path else value
