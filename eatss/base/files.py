"""Files read without waiting for ever and written whole or not at all; several, all or none."""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path, PurePosixPath

from eatss.base.diagnostics import input_error


def read_regular(path: str | os.PathLike[str], most_bytes: int) -> bytes:
    """Return the bytes of a regular file.

    Raises:
        OSError: it cannot be read, is a folder, a pipe or a device, or has more bytes.
        ValueError: the path is none.
    """
    mode = os.stat(path).st_mode  # noqa: PTH116 - opening a pipe waits for who writes
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "it is a directory", os.fspath(path))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "it is no regular file", os.fspath(path))
    with Path(path).open("rb") as file:
        data = file.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise OSError(errno.EFBIG, f"it has more than {most_bytes >> 20} MiB", os.fspath(path))
    return data


_BODY = re.compile(r"\)\s*\{.*[;}]\s*\Z", re.DOTALL)


def is_c_text(source: object) -> bool:
    """Tell C text from the path of a file: it has several lines, or the body of a function."""
    return isinstance(source, str) and ("\n" in source or _BODY.search(source) is not None)


def folder_named(name: str | os.PathLike[str]) -> Path:
    """Return the folder of a name; of an empty one ``Path`` would make the current folder.

    Raises:
        InputError: ``EATSS-C011``.
    """
    if not os.fspath(name):
        raise input_error(
            "EATSS-C011",
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
    beside = target.with_name(f".eatss-{os.urandom(6).hex()}")
    try:
        with beside.open("xb") as file:
            file.write(data)
        if target.exists():
            shutil.copymode(target, beside)
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)


_STAGE = ".eatss-stage-"
_STALE_S = 3600.0
"""Where there are no locks, a stage of this age is of a process that is no more."""


def place_files(
    target: Path, contents: Mapping[str, bytes], *, folders: Sequence[str] = (), last: str = ""
) -> None:
    """Put files into a folder, which is made if need be; nothing else in it is touched.

    Several processes may do so at once: one after the other has its turn.

    Args:
        target: the folder, a real path.
        contents: what the files hold, by their paths in the folder, with ``/``.
        folders: folders in it to make besides. Links in the folder are not followed.
        last: the file that is taken away before all others, and takes its place after them.

    Raises:
        OSError: they cannot be placed; then nothing has changed.
    """
    with placed_files(target, contents, folders=folders, last=last):
        pass


@contextmanager
def placed_files(
    target: Path, contents: Mapping[str, bytes], *, folders: Sequence[str] = (), last: str = ""
) -> Iterator[None]:
    """Put files into a folder as :func:`place_files`; where the block fails, take them back."""
    with ExitStack() as held, ExitStack() as undo:
        if target.exists() or not _created(target, contents, folders, held, undo):
            held.enter_context(_alone_in(target))
            check_places(target, [*contents, *(f"{folder}/" for folder in folders)])
            _update(target, contents, folders, last, held, undo)
        yield
        undo.pop_all()


@contextmanager
def _alone_in(target: Path) -> Iterator[None]:
    """Keep others that put files into a folder out of it for as long as the block runs."""
    with _opened(target) as folder:
        with suppress(OSError):  # some file systems have no locks
            _lock(folder)
        yield


@contextmanager
def _opened(folder: Path) -> Iterator[int | None]:
    """Open a folder to lock it; ``None`` where it cannot be opened, or the system opens none."""
    try:
        number = os.open(folder, os.O_RDONLY)
    except OSError:
        yield None
        return
    try:
        yield number
    finally:
        os.close(number)


def _lock(folder: int | None, *, waits: bool = True) -> None:
    """Lock an open folder.

    Raises:
        BlockingIOError: another holds it, and this does not wait.
        OSError: there are no locks here.
    """
    if folder is None or sys.platform == "win32":
        raise OSError(errno.ENOTSUP, "the folder cannot be locked")
    import fcntl  # noqa: PLC0415 - only some systems have it

    fcntl.flock(folder, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))


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


def _created(
    target: Path,
    contents: Mapping[str, bytes],
    folders: Sequence[str],
    held: ExitStack,
    undo: ExitStack,
) -> bool:
    """Fill a new folder beside its place and rename it; tell whether nobody else was first.

    It is locked before others see it. What is to be closed at last comes to ``held``, what takes
    the files away again to ``undo``.
    """
    with ExitStack() as closing, ExitStack() as back:
        try:
            for folder in reversed([f for f in target.parents if not f.exists()]):
                folder.mkdir(exist_ok=True)
                back.callback(_remove_if_empty, folder)
            staging = back.enter_context(ExitStack())
            with _alone_in(target.parent):
                new = staging.enter_context(_stage(target.parent)) / "new"
            _fill(new, contents, folders)
            closing.enter_context(_alone_in(new))
            names = [path.relative_to(new) for path in sorted(new.rglob("*"))]
            files = [name for name in names if (new / name).is_file()]
            new.rename(target)
            staging.close()
        except OSError:
            if not target.is_dir():
                raise
            return False
        for name in (Path(), *(name for name in names if name not in files)):
            back.callback(_remove_if_empty, target / name)
        for name in files:
            back.callback(_remove, target / name)
        held.push(closing.pop_all())
        undo.push(back.pop_all())
        return True


@contextmanager
def _stage(parent: Path) -> Iterator[Path]:
    """Make a folder to fill, locked for as long as the block runs; those of the dead go."""
    for path in parent.glob(f"{_STAGE}*"):
        if _is_stale(path):
            shutil.rmtree(path, ignore_errors=True)
    import tempfile  # noqa: PLC0415 - most files are alone

    with (
        tempfile.TemporaryDirectory(prefix=_STAGE, dir=parent, ignore_cleanup_errors=True) as made,
        _alone_in(Path(made)),
    ):
        yield Path(made)


def _is_stale(stage: Path) -> bool:
    """Tell whether nobody fills a stage any more."""
    try:
        if stage.is_symlink() or not stage.is_dir():
            return False
        with _opened(stage) as folder:
            try:
                _lock(folder, waits=False)
            except BlockingIOError:
                return False
            except OSError:
                return time.time() - stage.stat().st_mtime > _STALE_S
            return True
    except OSError:  # it is gone
        return False


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


def _remove(file: Path) -> None:
    with suppress(OSError):
        file.unlink()


def _update(
    target: Path,
    changed: Mapping[str, bytes],
    folders: Sequence[str],
    last: str,
    held: ExitStack,
    undo: ExitStack,
) -> None:
    """Put new files in the places of old ones, of which the stage keeps a second name.

    The last one is taken away first: who is killed in between leaves no set that passes for whole.
    """
    stage = held.enter_context(_stage(target))
    new, old = stage / "new", stage / "old"
    _fill(new, changed, folders)
    for folder in sorted(path.relative_to(new) for path in new.rglob("*") if path.is_dir()):
        (old / folder).mkdir(parents=True)
        if not (target / folder).exists():
            undo.callback(_remove_if_empty, target / folder)
            (target / folder).mkdir()
    old.mkdir(exist_ok=True)
    for name in changed:
        if os.path.lexists(target / name) and name != last:
            _keep(target / name, old / name)
    if last in changed and os.path.lexists(target / last):
        undo.callback(_move, old / last, target / last)
        (target / last).rename(old / last)
    for name in sorted(changed, key=last.__eq__):
        if os.path.lexists(old / name):
            undo.callback(_move, old / name, target / name)
        else:
            undo.callback(_remove, target / name)
        (new / name).replace(target / name)


def _keep(file: Path, beside: Path) -> None:
    """Give a file a second name; where there are none, copy it."""
    try:
        os.link(file, beside, follow_symlinks=False)
    except OSError:
        shutil.copy2(file, beside, follow_symlinks=False)


def _move(source: Path, place: Path) -> None:
    """Move a file back; where it still has both names nothing happens."""
    with suppress(FileNotFoundError):
        source.replace(place)
