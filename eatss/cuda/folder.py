"""``Program`` in, a folder of files out: text, launch plan and the C that it was made from.

The plan is placed last: until then the folder holds no program.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any

from eatss.base.diagnostics import input_error
from eatss.base.files import StrPath, is_c_text, place_files, read_regular
from eatss.base.frozen import Names, frozen
from eatss.frontend.source import read_source
from eatss.program import Original, Program, program_to_dict

_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include(?:_next)?[ \t]*["<]([^">\n]+)[">]', re.MULTILINE)
_UNUSUAL = re.compile(r"[^\w.+-]", re.ASCII)
_MAX_HEADERS = 2_000
_HEADERS = "include"
_PLAN = "plan.json"


@frozen
class OriginalFiles:
    """The original with every file it needs.

    ``files`` are paths relative to the folder, with ``/``, and contents; the C file is the first.
    Folders that ``original.include_dirs`` names may hold no file.
    """

    original: Original
    files: tuple[tuple[str, bytes], ...]


def program_name(source: StrPath, function: str) -> str:
    """Return the name of the program made from a path, or from text that has ``function``."""
    if is_c_text(source):
        return function
    return _UNUSUAL.sub("_", re.sub("^-", "_", Path(source).stem)) or function


def original_files(
    source: StrPath,
    name: str,
    *,
    defines: Sequence[str],
    include_dirs: Sequence[str],
) -> OriginalFiles:
    """Gather the C file and the headers of the user's that it includes.

    Headers are found as a compiler finds them, in the folder of the file that includes them and
    in ``include_dirs``; the system's are not among them. Where all lie in the folder of the C
    file or below, they are placed as they are; else all of them go below ``include/``, at the same
    places relative to one another.

    Args:
        source: path of the C file, or C source text.
        name: name of the program.
        defines: macros as for a C compiler.
        include_dirs: folders searched for headers.

    Raises:
        InputError: the file cannot be read.
    """
    data = read_source(source).data
    home, own_name = Path.cwd(), f"{name}.c"
    if not is_c_text(source):
        path = Path(source)
        home, own_name = path.absolute().parent, _UNUSUAL.sub("_", path.name)
    home = Path(os.path.normpath(home))
    if own_name in (f"{name}.cu", _PLAN):
        own_name = f"{name}.c"
    searched = [Path(os.path.normpath(Path(folder).absolute())) for folder in include_dirs]
    headers = dict(_headers(data, home, searched))
    places = [*(header.parent for header in headers), *(d for d in searched if d.is_dir())]
    base = Path(os.path.commonpath([home, *places]))
    prefix, folders = ("", searched) if base == home else (_HEADERS, [home, *searched])

    def placed(path: Path) -> str:
        return str(PurePosixPath(prefix, path.relative_to(base).as_posix()))

    copied = {placed(path): text for path, text in headers.items()}
    copied.pop(own_name, None)
    wanted = [
        placed(folder)
        for folder in dict.fromkeys(folders)
        if folder.is_dir() and folder.is_relative_to(base)
    ]
    return OriginalFiles(
        original=Original(file=own_name, defines=tuple(defines), include_dirs=tuple(wanted)),
        files=((own_name, data), *sorted(copied.items())),
    )


def _headers(data: bytes, home: Path, searched: Sequence[Path]) -> Iterator[tuple[Path, bytes]]:
    """Yield the headers a file includes, directly or not, with their contents."""
    todo = [(home, data)]
    seen: set[Path] = set()
    while todo and len(seen) < _MAX_HEADERS:
        folder, text = todo.pop()
        for match in _INCLUDE.finditer(text):
            header = _find(match[1].decode("utf-8", "surrogateescape"), (folder, *searched))
            if header is None or header in seen:
                continue
            seen.add(header)
            found = header.read_bytes()
            todo.append((header.parent, found))
            yield header, found


def _find(name: str, folders: Sequence[Path]) -> Path | None:
    """Return a header as an absolute path without ``..``; one named absolutely stays there."""
    if Path(name).is_absolute():
        return None
    for folder in folders:
        candidate = Path(os.path.normpath(folder / name))
        if candidate.is_file() and os.access(candidate, os.R_OK):
            return candidate
    return None


_CHECKSUMS = "checksums"
"""Key of the plan: SHA-256 of every file as written, of the plan itself without this key."""
_MOST_BYTES = 64 * 2**20


def write_program(
    program: Program, originals: OriginalFiles, directory: Path, *, force: bool = False
) -> Names:
    """Write a program and the C it was made from into a folder, made if need be.

    A file is replaced if eatss wrote it and nobody changed it since, or if ``force`` holds;
    nothing else in the folder is touched. Links in the folder are not followed.

    Returns:
        The files of the program, relative to the folder; the ``.cu`` file is the first.

    Raises:
        InputError: ``EATSS-C008``: the folder cannot be written, or holds other files than
            eatss's under the names needed.
    """
    contents = program_files(program, originals)
    target = Path(os.path.realpath(directory))
    try:
        there = {name: _sum_of(target / name) for name in contents}
        changed = {name: data for name, data in contents.items() if there[name] != _sha(data)}
        sums = _written(target, program.name)
        foreign = [
            f"'{name}'"
            for name in changed
            if os.path.lexists(target / name) and sums.get(name, "") != there[name]
        ]
        if foreign and not force:
            raise input_error(
                "EATSS-C008",
                f"'{directory}' holds files that are of no program '{program.name}', or were "
                f"edited, which would be replaced: {', '.join(foreign)}",
                hint="name another folder with -o, or replace them with --force",
            )
        place_files(target, changed, folders=originals.original.include_dirs, last=_PLAN)
    except OSError as error:
        raise input_error(
            "EATSS-C008",
            f"cannot write '{directory}': {error.strerror or error}",
            hint="name a folder that can be written with -o",
        ) from None
    return tuple(contents)


def program_files(program: Program, originals: OriginalFiles) -> dict[str, bytes]:
    """Return what the files of a program hold, by name; the ``.cu`` file is the first."""
    plan = program_to_dict(program)
    contents = {
        program.file: program.text.encode(),
        _PLAN: _json(plan),
        **dict(originals.files),
    }
    checksums = {name: _sha(data) for name, data in sorted(contents.items())}
    return {**contents, _PLAN: _json({**plan, _CHECKSUMS: checksums})}


def _json(document: Mapping[str, Any]) -> bytes:
    return (json.dumps(document, indent=2) + "\n").encode()


def _sha(data: bytes) -> str:
    return sha256(data).hexdigest()


def _sum_of(path: Path) -> str | None:
    """Return the checksum of a file; ``None`` where there is no regular file, or a link."""
    try:
        regular = stat.S_ISREG(path.lstat().st_mode)
        return _sha(read_regular(path, _MOST_BYTES)) if regular else None
    except OSError:
        return None


def _written(target: Path, program: str) -> dict[str, str | None]:
    """Return the checksums that files of a program had when they were written, by name."""
    try:
        plan = json.loads(read_regular(target / _PLAN, _MOST_BYTES))
        sums = dict(plan.pop(_CHECKSUMS))
    except (OSError, LookupError, TypeError, ValueError, AttributeError, RecursionError):
        return {}
    if plan.get("name") != program:
        return {}
    if _sha(_json(plan)) == sums.get(_PLAN) and not (target / _PLAN).is_symlink():
        sums[_PLAN] = _sum_of(target / _PLAN)
    return sums
