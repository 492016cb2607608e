"""Files that options name beside the output: checked before PPCG runs, written with it or not."""

from __future__ import annotations

import errno
import os
from contextlib import ExitStack
from pathlib import Path

from eatss.files import write_whole
from eatss.ppcg_build.findings import cannot_write_file


def check_place(option: str, path: Path, folder: Path) -> None:
    """Refuse a file that cannot be written before anything is done.

    Raises:
        InputError: ``EATSS-R005``: it is a folder, or in none, but for the one of the output.
    """
    above = Path(os.path.realpath(path)).parent
    output = Path(os.path.realpath(folder))
    number = 0
    if path.is_dir():
        number = errno.EISDIR
    elif not above.is_dir() and above not in (output, *output.parents):
        number = errno.ENOTDIR if above.exists() else errno.ENOENT
    elif above.is_dir() and not path.exists() and not os.access(above, os.W_OK):
        number = errno.EACCES
    if number:
        raise cannot_write_file(option, path, OSError(number, os.strerror(number)))


def replaced(path: Path, data: bytes | None, undo: ExitStack) -> None:
    """Write a file, or remove it where there is no data; ``undo`` gets what brings it back."""
    old = path.read_bytes() if path.is_file() else None
    if data is not None:
        write_whole(path, data)
    else:
        path.unlink(missing_ok=True)
    if old is not None:
        undo.callback(write_whole, path, old)
    elif path.is_file():
        undo.callback(path.unlink, missing_ok=True)
