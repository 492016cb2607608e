"""The recorded sweeps that come with eatss, by name: ``@gemm`` wherever a store is read.

    sweep = eatss.read_sweep("@gemm")

Each is named for the kernel that it is of. They are only read. A file whose name begins with ``@``
is reached as ``./@name`` or as a ``Path``.
"""

from __future__ import annotations

import os
from pathlib import Path

from eatss.diagnostics import Diagnostic, InternalError, input_error
from eatss.resources import data_directory
from eatss.shipped_kernels import MARK, kernel_names, likely


def sweep_names() -> tuple[str, ...]:
    """Return the names of all recorded sweeps, without reading them.

    A checkout has more stores in their folder. Those that come with eatss are named for a kernel.
    """
    try:
        folder = data_directory("sweeps")
    except FileNotFoundError as error:
        raise InternalError(
            Diagnostic(
                code="EATSS-C018",
                message=str(error),
                hint="install eatss again, or give the path of a store",
            )
        ) from None
    return tuple(name for name in kernel_names() if (folder / f"{name}.db").is_file())


def located_sweep(store: str | os.PathLike[str]) -> str | os.PathLike[str]:
    """Return the file of a recorded sweep that a text such as ``@gemm`` names; else what is given.

    Raises:
        InputError: ``EATSS-D017``, no sweep of this name comes with eatss.
    """
    if not _is_marked(store):
        return store
    name, names = str(store).removeprefix(MARK), sweep_names()
    if name in names:
        return data_directory("sweeps") / f"{name}.db"
    meant = likely(name.lower().removesuffix(".db"), names)
    raise input_error(
        "EATSS-D017",
        f"no sweep of eatss is called '{name}'",
        hint=f"{meant}there are {', '.join(MARK + one for one in names)}; "
        f"a file of that name is ./{MARK}{name}",
    )


def store_of_ones_own(store: str | os.PathLike[str]) -> Path:
    """Return the path of a store that is to be written or changed.

    Raises:
        InputError: ``EATSS-D018``, the name begins with ``@``, as those of eatss's sweeps, which
            are only read.
    """
    if not _is_marked(store):
        return Path(store)
    is_one = str(store).removeprefix(MARK) in sweep_names()
    copy = f"a copy to change: eatss results merge {store} -o copy.db; " if is_one else ""
    raise input_error(
        "EATSS-D018",
        f"'{store}' cannot be written: {MARK} stands before sweeps that come with eatss",
        hint=f"name a file; {copy}a file of that name is ./{store}",
    )


def _is_marked(store: str | os.PathLike[str]) -> bool:
    return isinstance(store, str) and store.startswith(MARK)
