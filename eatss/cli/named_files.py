"""Files that options name: read, written, or refused with the option."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from eatss.diagnostics import InputError, input_error
from eatss.files import read_regular, write_whole

if TYPE_CHECKING:
    from eatss.model import Selection

_MAX_BYTES = 64 * 1024 * 1024


def read_selection(file: Path) -> Selection:
    """Read what ``eatss select --format json`` printed.

    Raises:
        InputError: ``EATSS-C009`` the file cannot be read, ``EATSS-M010`` or ``EATSS-M011`` it
            is no selection.
    """
    from eatss.model import Selection  # noqa: PLC0415 - keeps --help fast

    text = read_text("--selection", file)
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise input_error(
            "EATSS-C009",
            f"'{file}' is not JSON",
            hint="write it with: eatss select FILE.c --gpu NAME --format json",
        ) from None
    return Selection.from_dict(document)


def read_text(option: str, file: Path) -> str:
    """Read the file an option names.

    Raises:
        InputError: ``EATSS-C009``.
    """
    try:
        return read_regular(file, _MAX_BYTES).decode()
    except FileNotFoundError:
        reason = "there is no such file"
    except OSError as error:
        reason = error.strerror or str(error)
    except ValueError:
        reason = "it is not UTF-8 text"
    raise _unreadable(option, file, reason)


def write_text(option: str, file: Path, text: str) -> None:
    """Write the file an option names.

    Raises:
        InputError: ``EATSS-C010``.
    """
    write_bytes(option, file, text.encode())


def write_bytes(option: str, file: Path, data: bytes) -> None:
    """Write the file an option names.

    Raises:
        InputError: ``EATSS-C010``.
    """
    try:
        write_whole(file, data)
    except OSError as error:
        raise _unwritable(option, file, error.strerror or str(error)) from None


def check_writable(option: str, file: Path) -> None:
    """Refuse a file that cannot be written, before what is to stand in it is made.

    Raises:
        InputError: ``EATSS-C010``.
    """
    target = Path(os.path.realpath(file))
    number = 0
    if target.is_dir():
        number = errno.EISDIR
    elif not target.parent.is_dir():
        number = errno.ENOTDIR if target.parent.exists() else errno.ENOENT
    elif not os.access(target if target.exists() else target.parent, os.W_OK):
        number = errno.EACCES
    if number:
        raise _unwritable(option, file, os.strerror(number))


def _unwritable(option: str, file: Path, reason: str) -> InputError:
    return input_error(
        "EATSS-C010",
        f"{option}: cannot write '{file}': {reason}",
        hint="name a file in an existing folder",
    )


def _unreadable(option: str, file: Path, reason: str) -> InputError:
    return input_error(
        "EATSS-C009", f"{option}: cannot read '{file}': {reason}", hint="check the path"
    )
