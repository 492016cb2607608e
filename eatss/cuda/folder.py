"""``Program`` in, a folder of files out: text, launch plan, README and the original.

A new folder is filled beside its place and renamed, so that it is there whole or not at all. In a
folder that is there, new files are filled in beside the old ones and then take their places, the
plan last: until then the folder holds no program, and where that fails the old files come back.
"""

from __future__ import annotations

import errno
import json
import os
import stat
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any

from eatss.cuda.original import OriginalFiles
from eatss.cuda.readme import readme_text
from eatss.diagnostics import InputError, input_error
from eatss.files import read_regular
from eatss.program import Program, program_to_dict

_PLAN = "plan.json"
_README = "README.md"
_CHECKSUMS = "checksums"
"""Key of the plan: SHA-256 of every file as written, of the plan itself without this key."""
_SHOWN = 5
_MOST_BYTES = 64 * 2**20


def write_program(
    program: Program, originals: OriginalFiles, directory: Path, *, force: bool = False
) -> tuple[str, ...]:
    """Write a program and the C it was made from into a folder, made if need be.

    A file is replaced if eatss wrote it and nobody changed it since, or if ``force`` holds;
    nothing else in the folder is touched. Links in the folder are not followed.

    Returns:
        The files of the program, relative to the folder; the ``.cu`` file is the first.

    Raises:
        InputError: ``EATSS-C008``: the folder cannot be written, or holds other files than
            eatss's under the names needed; then nothing was written.
    """
    contents = _contents(program, originals)
    target = Path(os.path.realpath(directory))
    try:
        if not target.exists():
            _create(target, contents, originals.folders)
        else:
            _check_places(target, [*contents, *(f"{folder}/" for folder in originals.folders)])
            changed = {n: data for n, data in contents.items() if _digest(target / n) != _sha(data)}
            if not force:
                _refuse_foreign(directory, target, changed)
            if changed or not all((target / folder).is_dir() for folder in originals.folders):
                _update(target, changed, originals.folders)
    except OSError as error:
        raise _cannot_write(directory, error) from None
    return tuple(contents)


def _contents(program: Program, originals: OriginalFiles) -> dict[str, bytes]:
    plan = program_to_dict(program)
    contents = {
        program.file: program.text.encode(),
        _PLAN: _json(plan),
        _README: readme_text(program).encode(),
        **dict(originals.files),
    }
    checksums = {name: _sha(data) for name, data in sorted(contents.items())}
    return {**contents, _PLAN: _json({**plan, _CHECKSUMS: checksums})}


def _json(document: Mapping[str, Any]) -> bytes:
    return (json.dumps(document, indent=2) + "\n").encode()


def _sha(data: bytes) -> str:
    return sha256(data).hexdigest()


# -- a folder that is not there ---------------------------------------------------------------


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


# -- a folder that is there -------------------------------------------------------------------


def _check_places(target: Path, names: Sequence[str]) -> None:
    """Refuse links and files in the place of folders, and folders in the place of files."""
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


def _digest(path: Path) -> str | None:
    """Return the checksum of a file; ``None`` where there is no regular file, or a link."""
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return None
        return _sha(read_regular(path, _MOST_BYTES))
    except OSError:
        return None


def _refuse_foreign(directory: Path, target: Path, changed: Mapping[str, bytes]) -> None:
    """Refuse to replace files that are not as eatss wrote them."""
    taken = [name for name in changed if os.path.lexists(target / name)]
    if not taken:
        return
    written = dict(_written(target))
    foreign = [name for name in taken if name not in written]
    edited = [name for name in taken if name in written and not written[name]]
    for names, what in ((foreign, "files that eatss did not write"), (edited, "edited files")):
        if names:
            raise input_error(
                "EATSS-C008",
                f"'{directory}' holds {what}, which would be replaced: {_listed(names)}",
                hint="name another folder with -o, or replace them with --force",
            )


def _written(target: Path) -> Iterator[tuple[str, bool]]:
    """Yield the files that eatss wrote into a folder, and whether each is still the same."""
    try:
        plan = json.loads(read_regular(target / _PLAN, _MOST_BYTES))
        checksums = dict(plan.pop(_CHECKSUMS))
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return
    for name, checksum in checksums.items():
        of_plan = name == _PLAN and not (target / _PLAN).is_symlink()
        found = _sha(_json(plan)) if of_plan else _digest(target / name)
        yield name, found == checksum


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(f"'{name}'" for name in names[:_SHOWN]) + more


def _update(target: Path, changed: Mapping[str, bytes], folders: Sequence[str]) -> None:
    """Put new files in the places of old ones; all or, where one cannot be placed, none."""
    names = sorted(changed, key=_PLAN.__eq__)  # the plan last
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


def _cannot_write(directory: Path, error: OSError) -> InputError:
    return input_error(
        "EATSS-C008",
        f"cannot write '{directory}': {error.strerror or error}",
        hint="name a folder that can be written with -o",
    )
