"""A source at the door: a C file, C text or loops in Python, read once, and its files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING

from eatss.base.diagnostics import input_error
from eatss.base.files import StrPath, is_c_text, read_regular
from eatss.base.frozen import frozen
from eatss.base.shipped import located
from eatss.frontend.options import Reading

if TYPE_CHECKING:
    from eatss.frontend.python import PythonScop, SourceLike


MAX_BYTES = 4 << 20
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


def read_files(source: StrPath, include_dirs: Sequence[str]) -> tuple[tuple[str, bytes], ...]:
    """Return every file that a compiler may read of a C file or a C text, with its contents.

    A header is looked for in all folders where it may be, and what there is counts, so that it
    does not matter which of them a compiler takes. Headers of eatss and of nobody do not count.

    Args:
        source: path of a C file, or C source text, which is named ``""``.
        include_dirs: folders searched for headers.

    Raises:
        UnknownFilesError: a file is included by a macro, or in another way that only a compiler
            understands.
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
    todo = [(home, data)]
    while todo:
        folder, text = todo.pop()
        for candidate in _candidates(text, (folder, *searched)):
            if str(candidate) in found or not candidate.exists():
                continue
            header = read_regular(candidate, MAX_BYTES)
            found[str(candidate)] = header
            todo.append((candidate.parent, header))
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


_PYTHON_FILE = re.compile(r"(?P<path>.*\.py)(?::(?P<name>[^:/\\]+))?", re.DOTALL)


@frozen
class Source:
    """What is read as C, and the loops in Python that it is the C of, if it is.

    Attributes:
        c: Path of a C file, or C source text (:func:`~eatss.base.files.is_c_text`).
        python: The loops in Python.
        called: What the user calls it.
    """

    c: StrPath
    python: PythonScop | None = None
    called: str = "<source>"

    @classmethod
    def of(cls, given: SourceLike | Source) -> Source:
        """Return what a user gives.

        Args:
            given: path of a C file, a kernel of eatss (``"@gemm"``), C source text, or loops in
                Python: what ``eatss.scop`` made, ``FILE.py`` or ``FILE.py:NAME``.

        Raises:
            InputError: ``EATSS-C004``, it is no source; ``EATSS-C017``, no such kernel;
                ``EATSS-Y0xx``, Python that cannot be read.
        """
        if isinstance(given, Source):
            return given
        if isinstance(given, str | PathLike):
            called = fspath(given)
            match = None if "\n" in called else _PYTHON_FILE.fullmatch(called)
            if match is None:
                text = is_c_text(given)
                return cls(c=located(given), called="<source>" if text else called)
            from eatss.frontend.python import read_python  # noqa: PLC0415

            loops = read_python(match["path"], match["name"])
            return cls(c=loops.c_source, python=loops, called=called)
        from eatss.frontend.python import PythonScop  # noqa: PLC0415

        if isinstance(given, PythonScop):
            return cls(c=given.c_source, python=given, called=given.file)
        raise input_error(
            "EATSS-C004",
            f"source is {type(given).__name__}, which is no source",
            hint="put @eatss.scop before the function"
            if callable(given)
            else "give the path of a C file, C text, or what eatss.scop made",
        )

    @property
    def is_text(self) -> bool:
        """Whether the C is a text and no file."""
        return is_c_text(self.c)

    @property
    def file(self) -> str:
        """What it is called in messages."""
        if self.python is not None:
            return self.python.file
        return "<source>" if self.is_text else str(Path(fspath(self.c)))

    def check(self, reading: Reading) -> None:
        """Refuse options that are for C, where it is Python.

        Raises:
            InputError: ``EATSS-F010``.
        """
        if self.python is not None and (reading.defines or reading.include_dirs):
            raise input_error(
                "EATSS-F010",
                f"'{self.python.name}' is Python, which has no macros and no headers",
                hint="give parameters values: --param n=4000, or parameters={'n': 4000}",
            )

    def files(self, include_dirs: Sequence[str]) -> tuple[tuple[str, bytes], ...]:
        """Return what is read of it; of Python also the C it is read as, and where it stands.

        Raises:
            UnknownFilesError: it cannot be told which files are read.
            OSError: one of them cannot be read.
        """
        if self.python is None:
            return read_files(self.c, include_dirs)
        return (
            (f"{self.python.file}:{self.python.line}", self.python.text.data),
            (f"{self.python.name}.c", self.python.c_source.encode("ascii")),
        )
