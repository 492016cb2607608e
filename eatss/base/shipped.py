"""What comes with eatss: ``@gemm`` is a kernel where C goes, a recorded sweep where a store does.

    eatss.select("@gemm", gpu="a100")

A file whose name begins with ``@`` is reached as ``./@name`` or as a ``Path``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Annotated, TypeVar

from eatss.base.codec import BY_NAME
from eatss.base.diagnostics import (
    Diagnostic,
    InputError,
    InternalError,
    did_you_mean,
    input_error,
)
from eatss.base.files import StrPath
from eatss.base.frozen import Names, frozen
from eatss.base.shown import Shown

_CHECKOUT = Path(__file__).resolve().parents[2]

IN_A_CHECKOUT = {
    "gpu_profiles": Path("gpu_profiles"),
    "kernels": Path("kernels"),
    "sweeps": Path("benchmarks", "results", "h200", "sweeps"),
}
"""Where a checkout has each folder of data; a wheel has it in ``eatss/base/data``."""


@lru_cache
def data_directory(name: str) -> Path:
    """Return the folder ``name`` of ``IN_A_CHECKOUT``, shipped with eatss.

    Raises:
        InternalError: ``EATSS-C018``, neither exists, so the installation is broken.
    """
    checkout = _CHECKOUT / IN_A_CHECKOUT[name]
    if (_CHECKOUT / "pyproject.toml").is_file() and checkout.is_dir():
        return checkout
    installed = Path(__file__).with_name("data") / name
    if installed.is_dir():
        return installed
    message = f"eatss is installed without its folder {name}"
    raise InternalError(Diagnostic(code="EATSS-C018", message=message, hint="install eatss again"))


MARK = "@"
"""What the name of a kernel begins with where a file may stand."""

_TITLE = re.compile(r"/\*\n \* [\w-]+: (.+)\n")
_SIZE = re.compile(r"^#ifndef (\w+)\n#define \1 SIZE\((?:\d+, )*(\d+)\)$", re.MULTILINE)

Source = TypeVar("Source")


@frozen
class ShippedKernel:
    """A kernel that comes with eatss.

    ``sizes`` are the macros that ``-D`` sets, each with its default. ``file`` is where it stands.
    """

    name: str
    title: str
    sizes: Annotated[tuple[tuple[str, int], ...], BY_NAME]
    file: str


@frozen
class ShippedKernels(Shown):
    """The kernels that come with eatss, in order of their names."""

    shown_by = "kernels"

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


def kernel_names() -> Names:
    """Return the names of all kernels, without reading them."""
    return tuple(_files())


def located(source: Source) -> Source | Path:
    """Return the file of a kernel that a text such as ``@gemm`` names; anything else as it is.

    Raises:
        InputError: ``EATSS-C017``, there is no kernel of this name.
    """
    return _file(str(source).removeprefix(MARK)) if _is_marked(source) else source


def source_path(text: str) -> Path:
    """Return the file that a word of a command names: a path, or a kernel (``@gemm``).

    Raises:
        InputError: ``EATSS-C017``, there is no kernel of this name.
    """
    return Path(located(text))


def _files() -> dict[str, Path]:
    return {path.stem: path for path in sorted(data_directory("kernels").glob("*.c"))}


def _file(name: str) -> Path:
    files = _files()
    if name not in files:
        raise _unknown("EATSS-C017", "kernel", name, files)
    return files[name]


def _unknown(code: str, kind: str, name: str, names: Iterable[str]) -> InputError:
    marked = [MARK + one for one in names]
    hint = did_you_mean(MARK + name.lower().partition(".")[0], marked, "there are")
    return input_error(
        code,
        f"no {kind} of eatss is called '{name}'",
        hint=f"{hint} (a file of that name is ./{MARK}{name})",
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


def sweep_names() -> Names:
    """Return the names of all recorded sweeps, without reading them.

    A checkout has more stores in their folder. Those that come with eatss are named for a kernel.
    """
    folder = data_directory("sweeps")
    return tuple(name for name in kernel_names() if (folder / f"{name}.db").is_file())


def located_sweep(store: StrPath) -> StrPath:
    """Return the file of a recorded sweep that a text such as ``@gemm`` names; else what is given.

    Raises:
        InputError: ``EATSS-D001``, no sweep of this name comes with eatss.
    """
    if not _is_marked(store):
        return store
    name, names = str(store).removeprefix(MARK), sweep_names()
    if name in names:
        return data_directory("sweeps") / f"{name}.db"
    raise _unknown("EATSS-D001", "sweep", name, names)


def store_of_ones_own(store: StrPath) -> Path:
    """Return the path of a store that is to be written or changed.

    Raises:
        InputError: ``EATSS-C008``, the name begins with ``@``, as those of eatss's sweeps, which
            are only read.
    """
    if not _is_marked(store):
        return Path(store)
    raise input_error(
        "EATSS-C008",
        f"'{store}' cannot be written: {MARK} stands before sweeps that come with eatss",
        hint=f"name a file; a file of that name is ./{store}",
    )


def _is_marked(store: object) -> bool:
    return isinstance(store, str) and store.startswith(MARK) and "\n" not in store
