"""Files beside PPCG's own: a README, what make reads, and those that options name.

Files that options name are checked before PPCG runs, and written with its output or not at all.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from eatss.base.files import write_whole
from eatss.ppcg_build.findings import cannot_write_file
from eatss.program import Program


def ppcg_readme(program: Program) -> str:
    """Return the README in Markdown."""
    kernels = "\n".join(
        f"| `{kernel.name}` | {' × '.join(map(str, kernel.block))} | "
        f"{', '.join(f'{loop} = {size}' for loop, size in kernel.tile_sizes) or 'none'} | "
        f"{kernel.shared_bytes} |"
        for kernel in program.kernels
    )
    return (
        f"# {program.name}, by PPCG\n\n"
        f"What PPCG generated from `{program.original.file}`, made ready to be checked and "
        "measured: its kernels as they are, launched as its host code launches them. Copies "
        "between host and card are not part of it. In this folder:\n\n"
        "```\neatss verify .\neatss measure .\n```\n\n"
        "| file | what it is |\n| --- | --- |\n"
        f"| `{program.file}` | PPCG's kernels, and launchers |\n"
        "| `plan.json` | the launch plan: arguments, grids, blocks, host loops |\n"
        f"| `{program.original.file}` | the C source |\n\n"
        "| kernel | block (x, y, z) | tile | shared memory, bytes |\n"
        f"| --- | --- | --- | --- |\n{kernels}\n"
    )


def dependency_text(targets: Sequence[str], needed: Sequence[str]) -> str:
    """Return rules that say which files targets are made from, as ``gcc -MD -MP`` writes them.

    A file that is needed and is no more is no error to make: it has a rule without a recipe.

    Args:
        targets: what is made.
        needed: what it is made from; the first is the source.
    """
    rule = f"{' '.join(map(_escaped, targets))}: {' '.join(map(_escaped, needed))}\n"
    return rule + "".join(f"\n{_escaped(name)}:\n" for name in needed[1:])


def _escaped(name: str) -> str:
    return re.sub(r"([ #])", r"\\\1", name).replace("$", "$$")


def check_place(option: str, path: Path, folder: Path) -> None:
    """Refuse a file that cannot be written before anything is done.

    Raises:
        InputError: ``EATSS-R005``: it is a folder, or in none, but for the one of the output.
    """
    above = Path(os.path.realpath(path)).parent
    output = Path(os.path.realpath(folder))
    number = 0
    if path.is_dir():
        number = errno.EISDIR
    elif not above.is_dir() and above not in (output, *output.parents):
        number = errno.ENOTDIR if above.exists() else errno.ENOENT
    elif above.is_dir() and not path.exists() and not os.access(above, os.W_OK):
        number = errno.EACCES
    if number:
        raise cannot_write_file(option, path, OSError(number, os.strerror(number)))


def replaced(path: Path, data: bytes | None, undo: ExitStack) -> None:
    """Write a file, or remove it where there is no data; ``undo`` gets what brings it back."""
    old = path.read_bytes() if path.is_file() else None
    if data is not None:
        write_whole(path, data)
    else:
        path.unlink(missing_ok=True)
    if old is not None:
        undo.callback(write_whole, path, old)
    elif path.is_file():
        undo.callback(path.unlink, missing_ok=True)
