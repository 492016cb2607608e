"""Files read without waiting for ever and written whole or not at all."""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TypeAlias

from eatss.base.diagnostics import input_error

StrPath: TypeAlias = str | os.PathLike[str]
"""What names a file or a folder."""


def read_regular(path: StrPath, most_bytes: int) -> bytes:
    """Return the bytes of a regular file.

    Raises:
        OSError: it cannot be read, is a folder, a pipe or a device, or has more bytes.
        ValueError: the path is none.
    """
    status = os.stat(path)  # noqa: PTH116 - opening a pipe waits for who writes
    why = "" if stat.S_ISREG(status.st_mode) else "it is a directory or no regular file"
    if status.st_size > most_bytes:
        why = why or f"it has more than {most_bytes >> 20} MiB"
    if why:
        raise OSError(errno.EINVAL, why, os.fspath(path))
    return Path(path).read_bytes()


_BODY = re.compile(r"\)\s*\{.*[;}]\s*\Z", re.DOTALL)


def is_c_text(source: object) -> bool:
    """Tell C text from the path of a file: it has several lines, or the body of a function."""
    return isinstance(source, str) and ("\n" in source or _BODY.search(source) is not None)


def folder_named(name: StrPath) -> Path:
    """Return the folder of a name; of an empty one ``Path`` would make the current folder.

    Raises:
        InputError: ``EATSS-C008``.
    """
    if not os.fspath(name):
        raise input_error(
            "EATSS-C008",
            "the folder to write to has no name",
            hint="name one with -o; the current folder is -o .",
        )
    return Path(name)


def write_whole(path: Path, data: bytes) -> None:
    """Write a file in one step: who reads it finds what was there before, or all of ``data``.

    A link is followed, as the user named it. What is no regular file, such as ``/dev/stdout`` or
    a pipe, cannot be replaced and is written to.

    Raises:
        OSError: it cannot be written; then it is as it was.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        target.write_bytes(data)
        return
    if target.exists() and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), os.fspath(path))
    _replace(target, data)


def _replace(target: Path, data: bytes) -> None:
    beside = target.with_name(f".eatss-{os.urandom(6).hex()}")
    try:
        with beside.open("xb") as file:
            file.write(data)
        if target.is_file():
            shutil.copymode(target, beside)
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)


def place_files(
    target: Path, contents: Mapping[str, bytes], *, folders: Sequence[str] = (), last: str = ""
) -> None:
    """Put files into a folder, which is made if need be; nothing else in it is touched.

    Args:
        target: the folder, a real path.
        contents: what the files hold, by their paths in the folder, with ``/``.
        folders: folders in it to make besides. Links in the folder are not followed.
        last: the file that is taken away before all others, and takes its place after them: where
            it is, the set is whole.

    Raises:
        OSError: something is in the way, or cannot be written.
    """
    target.mkdir(parents=True, exist_ok=True)
    for place in {target / one for name in contents for one in PurePosixPath(name).parents}:
        if place != target and place.is_symlink():
            raise OSError(errno.ELOOP, f"'{place.name}' in it is a symbolic link")
    if last in contents:
        (target / last).unlink(missing_ok=True)
    for folder in folders:
        (target / folder).mkdir(parents=True, exist_ok=True)
    for name in sorted(contents, key=last.__eq__):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        _replace(target / name, contents[name])
