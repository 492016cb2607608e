"""The C kernels that come with eatss, by name: ``@gemm`` wherever a C file goes.

    eatss.select("@gemm", gpu="a100")

A file whose name begins with ``@`` is reached as ``./@name`` or as a ``Path``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeVar

from eatss.codec import BY_NAME
from eatss.diagnostics import Diagnostic, InternalError, input_error
from eatss.resources import data_directory

MARK = "@"
"""What the name of a kernel begins with where a file may stand."""

_TITLE = re.compile(r"/\*\n \* [\w-]+: (.+)\n")
_SIZE = re.compile(r"^#ifndef (\w+)\n#define \1 SIZE\((?:\d+, )*(\d+)\)$", re.MULTILINE)

Source = TypeVar("Source")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShippedKernel:
    """A kernel that comes with eatss.

    ``sizes`` are the macros that ``-D`` sets, each with its default. ``file`` is where it stands.
    """

    name: str
    title: str
    sizes: Annotated[tuple[tuple[str, int], ...], BY_NAME]
    file: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShippedKernels:
    """The kernels that come with eatss, in order of their names."""

    kernels: tuple[ShippedKernel, ...]


def shipped_kernels() -> ShippedKernels:
    """Return all kernels that come with eatss."""
    return ShippedKernels(kernels=tuple(_read(path) for path in _files().values()))


def shipped_kernel(name: str) -> ShippedKernel:
    """Return a kernel by its name, with or without ``@``.

    Raises:
        InputError: ``EATSS-C017``, there is none of this name.
    """
    return _read(_file(name.removeprefix(MARK)))


def kernel_names() -> tuple[str, ...]:
    """Return the names of all kernels, without reading them."""
    return tuple(_files())


def located(source: Source) -> Source | Path:
    """Return the file of a kernel that a text such as ``@gemm`` names; anything else as it is.

    Raises:
        InputError: ``EATSS-C017``, there is no kernel of this name.
    """
    if isinstance(source, str) and source.startswith(MARK) and "\n" not in source:
        return _file(source.removeprefix(MARK))
    return source


def source_path(text: str) -> Path:
    """Return the file that a word of a command names: a path, or a kernel (``@gemm``).

    Raises:
        InputError: ``EATSS-C017``, there is no kernel of this name.
    """
    return Path(located(text))


def likely(name: str, names: Iterable[str]) -> str:
    """Return the question which of some names with ``@`` was meant, or nothing."""
    import difflib  # noqa: PLC0415 - for mistakes only

    close = difflib.get_close_matches(name, list(names), n=3, cutoff=0.5)
    return f"did you mean {' or '.join(MARK + one for one in close)}? " if close else ""


def _files() -> dict[str, Path]:
    try:
        folder = data_directory("kernels")
    except FileNotFoundError as error:
        raise InternalError(
            Diagnostic(
                code="EATSS-C018",
                message=str(error),
                hint="install eatss again, or give the path of a C file",
            )
        ) from None
    return {path.stem: path for path in sorted(folder.glob("*.c"))}


def _file(name: str) -> Path:
    files = _files()
    if name in files:
        return files[name]
    meant = likely(name.lower().removesuffix(".c"), files)
    raise input_error(
        "EATSS-C017",
        f"no kernel of eatss is called '{name}'",
        hint=f"{meant}eatss kernels lists all; a file of that name is ./{MARK}{name}",
    )


def _read(path: Path) -> ShippedKernel:
    text = path.read_text(encoding="utf-8")
    title = _TITLE.match(text)
    return ShippedKernel(
        name=path.stem,
        title="" if title is None else title[1],
        sizes=tuple((match[1], int(match[2])) for match in _SIZE.finditer(text)),
        file=str(path),
    )
