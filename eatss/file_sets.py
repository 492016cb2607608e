"""Several files put into a folder together: all of them, or where one cannot be placed, none.

A new folder is filled beside its place and renamed. In a folder that is there, new files are filled
in beside the old ones and then take their places; where that fails the old files come back.
"""

from __future__ import annotations

import errno
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path, PurePosixPath


def place_files(
    target: Path, contents: Mapping[str, bytes], *, folders: Sequence[str] = (), last: str = ""
) -> None:
    """Put files into a folder, which is made if need be; nothing else in it is touched.

    Several processes may do so at once: one after the other has its turn.

    Args:
        target: the folder, a real path.
        contents: what the files hold, by their paths in the folder, with ``/``.
        folders: folders in it to make besides. Links in the folder are not followed.
        last: the file that takes its place after all others.

    Raises:
        OSError: they cannot be placed; then nothing has changed.
    """
    if not target.exists():
        try:
            _create(target, contents, folders)
            return
        except OSError:
            if not target.is_dir():  # nobody else has made it meanwhile
                raise
    with _alone_in(target):
        check_places(target, [*contents, *(f"{folder}/" for folder in folders)])
        _update(target, contents, folders, last)


@contextmanager
def _alone_in(target: Path) -> Iterator[None]:
    """Keep others that put files into a folder out of it for as long as the block runs."""
    if sys.platform == "win32":
        yield
        return
    import fcntl  # noqa: PLC0415 - only some systems have it

    folder = os.open(target, os.O_RDONLY)
    try:
        with suppress(OSError):  # some file systems have no locks
            fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def check_places(target: Path, names: Sequence[str]) -> None:
    """Refuse links and files in the place of folders, and folders in the place of files.

    Folders are named with a ``/`` at the end.

    Raises:
        OSError: what is in the way.
    """
    for name in names:
        path = PurePosixPath(name)
        inner = [*path.parents][-2::-1] + ([path] if name.endswith("/") else [])
        for place in (target / folder for folder in inner):
            if place.is_symlink():
                raise OSError(errno.ELOOP, f"'{place.name}' in it is a symbolic link")
            if place.exists() and not place.is_dir():
                raise NotADirectoryError(errno.ENOTDIR, f"'{place.name}' in it is no folder")
        place = target / name
        if path not in inner and place.is_dir() and not place.is_symlink():
            raise IsADirectoryError(errno.EISDIR, f"'{name}' in it is a folder")


def _create(target: Path, contents: Mapping[str, bytes], folders: Sequence[str]) -> None:
    """Fill a new folder beside its place and rename it."""
    with ExitStack() as undo:
        for folder in reversed([f for f in target.parents if not f.exists()]):
            folder.mkdir(exist_ok=True)
            undo.callback(_remove_if_empty, folder)
        with _stage(target.parent) as stage:
            _fill(Path(stage) / "new", contents, folders)
            (Path(stage) / "new").rename(target)
        undo.pop_all()


def _stage(parent: Path) -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix=".eatss-", dir=parent, ignore_cleanup_errors=True)


def _fill(new: Path, contents: Mapping[str, bytes], folders: Sequence[str]) -> None:
    new.mkdir()
    for folder in folders:
        (new / folder).mkdir(parents=True, exist_ok=True)
    for name, data in contents.items():
        (new / name).parent.mkdir(parents=True, exist_ok=True)
        (new / name).write_bytes(data)


def _remove_if_empty(folder: Path) -> None:
    with suppress(OSError):
        folder.rmdir()


def _update(target: Path, changed: Mapping[str, bytes], folders: Sequence[str], last: str) -> None:
    """Put new files in the places of old ones."""
    names = sorted(changed, key=last.__eq__)
    with _stage(target) as stage, ExitStack() as undo:
        new, old = Path(stage) / "new", Path(stage) / "old"
        _fill(new, changed, folders)
        for folder in sorted(path.relative_to(new) for path in new.rglob("*") if path.is_dir()):
            (old / folder).mkdir(parents=True)
            if not (target / folder).exists():
                undo.callback(_remove_if_empty, target / folder)
                (target / folder).mkdir()
        old.mkdir(exist_ok=True)
        for name in reversed(names):
            if os.path.lexists(target / name):
                undo.callback(_move, old / name, target / name)
                (target / name).rename(old / name)
        for name in names:
            undo.callback(_move, target / name, new / name)
            (new / name).rename(target / name)
        undo.pop_all()


def _move(source: Path, place: Path) -> None:
    """Move a file back; one that was not moved stays."""
    with suppress(FileNotFoundError):
        source.rename(place)
