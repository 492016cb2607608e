"""A source as it comes in at the door: a C file, C text or loops in Python, read once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING

from eatss.diagnostics import input_error
from eatss.files import is_c_text
from eatss.frontend.options import Reading
from eatss.session.read_files import read_files
from eatss.shipped_kernels import located

if TYPE_CHECKING:
    from eatss.python_source.python_scop import PythonScop

_PYTHON_FILE = re.compile(r"(?P<path>.*\.py)(?::(?P<name>[^:/\\]+))?", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What is read as C, and the loops in Python that it is the C of, if it is.

    Attributes:
        c: Path of a C file, or C source text (:func:`~eatss.files.is_c_text`).
        python: The loops in Python.
        called: What the user calls it.
    """

    c: str | PathLike[str]
    python: PythonScop | None = None
    called: str = "<source>"

    @classmethod
    def of(cls, given: str | PathLike[str] | PythonScop | Source) -> Source:
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
            from eatss.python_source.python_scop import read_python  # noqa: PLC0415 - C needs none

            loops = read_python(match["path"], match["name"])
            return cls(c=loops.c_source, python=loops, called=called)
        from eatss.python_source.python_scop import PythonScop  # noqa: PLC0415

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
            InputError: ``EATSS-Y031``.
        """
        if self.python is not None and (reading.defines or reading.include_dirs):
            raise input_error(
                "EATSS-Y031",
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
        place = f"{self.python.file}:{self.python.lines[0].span.line}"
        return (
            (place, "".join(self.python.text.lines).encode("utf-8", "surrogatepass")),
            (f"{self.python.name}.c", self.python.c_source.encode("ascii")),
        )
