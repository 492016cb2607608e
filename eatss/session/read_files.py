"""The bytes of a C file and of every header that reading it may open, without a compiler."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from eatss.files import is_c_text, read_regular

MAX_BYTES = 4 << 20
_MAX_HEADERS = 2_000
_MAX_TOTAL_BYTES = 64 << 20
_OWN_HEADERS = Path(__file__).resolve().parents[1] / "frontend" / "include"
_SPLICE = re.compile(rb"\\[ \t]*\r?\n")
_DIRECTIVE = re.compile(
    rb'^[ \t]*#[ \t]*include(?:_next)?[ \t]*(?:"([^"\n]+)"|<([^>\n]+)>)', re.MULTILINE
)
_OPENS = re.compile(
    rb"(?<!\w)(?:include|include_next|__include_macros|import|embed|"
    rb"__has_include|__has_include_next|__has_embed)(?!\w)|\?\?/"
)


_SEARCHED = ("CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "OBJC_INCLUDE_PATH")
"""Variables by which a user lets compilers, libclang among them, search further folders."""


class UnknownFilesError(Exception):
    """It cannot be told which files a text includes."""


def read_files(
    source: str | os.PathLike[str], include_dirs: Sequence[str]
) -> tuple[tuple[str, bytes], ...]:
    """Return every file that a compiler may read of a C file or a C text, with its contents.

    A header is looked for in all folders where it may be, and what there is counts, so that it
    does not matter which of them a compiler takes. Headers of eatss and of nobody do not count.

    Args:
        source: path of a C file, or C source text, which is named ``""``.
        include_dirs: folders searched for headers.

    Raises:
        UnknownFilesError: a file is included by a macro, or in another way that only a compiler
            understands, or too many are.
        OSError: a file cannot be read.
        ValueError: a path is none.
    """
    if any(os.environ.get(name) for name in _SEARCHED):
        raise UnknownFilesError("the environment names folders of headers")
    if isinstance(source, str) and is_c_text(source):
        name, data = "", source.encode("utf-8", "surrogateescape")
        home = Path.cwd()
    else:
        name, data = os.fspath(source), read_regular(source, MAX_BYTES)
        home = Path(name).absolute().parent
    searched = [*(Path(folder).absolute() for folder in include_dirs), _OWN_HEADERS]
    found = {name: data}
    todo, total = [(home, data)], len(data)
    while todo:
        folder, text = todo.pop()
        for candidate in _candidates(text, (folder, *searched)):
            if str(candidate) in found or not candidate.exists():
                continue
            header = read_regular(candidate, MAX_BYTES)
            found[str(candidate)] = header
            todo.append((candidate.parent, header))
            total += len(header)
            if len(found) > _MAX_HEADERS or total > _MAX_TOTAL_BYTES:
                raise UnknownFilesError("there is too much")
    own = str(_OWN_HEADERS)
    return tuple((path, text) for path, text in found.items() if not path.startswith(own))


def _candidates(text: bytes, folders: Sequence[Path]) -> Iterator[Path]:
    """Yield where the headers that a text includes may be."""
    text = _SPLICE.sub(b"", text)
    if _OPENS.search(_DIRECTIVE.sub(b"", text)):
        raise UnknownFilesError("something but a plain #include names a file")
    for match in _DIRECTIVE.finditer(text):
        name = os.fsdecode(match[1] or match[2])
        yield from (folder / name for folder in folders)
