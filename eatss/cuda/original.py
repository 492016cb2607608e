"""The C a program is made from, gathered so that a folder of its own can hold it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from eatss.files import is_c_text
from eatss.frontend.files import read_bytes
from eatss.program import Original

_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include(?:_next)?[ \t]*["<]([^">\n]+)[">]', re.MULTILINE)
_UNUSUAL = re.compile(r"[^\w.+-]", re.ASCII)
_MAX_HEADERS = 2_000
_HEADERS = "include"


@dataclass(frozen=True, slots=True, kw_only=True)
class OriginalFiles:
    """The original with every file it needs.

    ``files`` are paths relative to the folder, with ``/``, and contents; the C file is the first.
    ``folders`` are those that ``original.include_dirs`` name: they may hold no file.
    """

    original: Original
    files: tuple[tuple[str, bytes], ...]
    folders: tuple[str, ...]


def program_name(source: str | os.PathLike[str], function: str) -> str:
    """Return the name of the program made from a path, or from text that has ``function``."""
    if is_c_text(source):
        return function
    return _UNUSUAL.sub("_", re.sub("^-", "_", Path(source).stem)) or function


def original_files(
    source: str | os.PathLike[str],
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
    if is_c_text(source):
        assert isinstance(source, str)
        home, own_name = Path.cwd(), f"{name}.c"
        data = source.encode("utf-8", "surrogateescape")
    else:
        path = Path(source)
        home, own_name = path.absolute().parent, _UNUSUAL.sub("_", path.name)
        data = read_bytes(os.fspath(source))
    home = Path(os.path.normpath(home))
    if own_name in (f"{name}.cu", "plan.json", "README.md"):
        own_name = f"{name}.c"
    searched = [Path(os.path.normpath(Path(folder).absolute())) for folder in include_dirs]
    headers = dict(_headers(data, home, searched))
    places = [*(header.parent for header in headers), *(d for d in searched if d.is_dir())]
    if all(place.is_relative_to(home) for place in places):
        base, prefix, folders = home, PurePosixPath(), searched
    else:
        base = Path(os.path.commonpath([home, *places]))
        prefix, folders = PurePosixPath(_HEADERS), [home, *searched]
    copied = {str(prefix / p.relative_to(base).as_posix()): text for p, text in headers.items()}
    copied.pop(own_name, None)
    wanted = [
        str(prefix / folder.relative_to(base).as_posix())
        for folder in dict.fromkeys(folders)
        if folder.is_dir() and folder.is_relative_to(base)
    ]
    original = Original(file=own_name, defines=tuple(defines), include_dirs=tuple(wanted))
    return OriginalFiles(
        original=original,
        files=((own_name, data), *sorted(copied.items())),
        folders=tuple(wanted),
    )


def headers_of(source: Path, include_dirs: Sequence[Path]) -> tuple[Path, ...]:
    """Return the headers of the user's that a C file includes, directly or not, sorted.

    Raises:
        InputError: the file cannot be read.
    """
    home = Path(os.path.normpath(source.absolute().parent))
    searched = [Path(os.path.normpath(folder.absolute())) for folder in include_dirs]
    return tuple(sorted({path for path, _ in _headers(read_bytes(str(source)), home, searched)}))


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
        try:
            if candidate.is_file() and os.access(candidate, os.R_OK):
                return candidate
        except (OSError, ValueError):
            continue
    return None
