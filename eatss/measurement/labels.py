"""Variants as users write them: their names, tile sizes, and which others are compared with."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from itertools import count
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING

from eatss.base.diagnostics import EatssError, input_error
from eatss.base.files import is_c_text
from eatss.base.frozen import frozen
from eatss.base.shipped import located
from eatss.measurement.options import Variant
from eatss.program import load_program, program_folder

if TYPE_CHECKING:
    from eatss.frontend.python import PythonScop

SELECTED = "selected"
"""The word for the sizes that the model selects."""

_SUFFIXES = (".c", ".h", ".i", ".py")


def is_program(source: str | PathLike[str] | PythonScop) -> bool:
    """Tell a folder with a generated program from C or Python: a file, text, or loops.

    Raises:
        InputError: ``EATSS-E051`` there is neither, ``EATSS-V0xx`` the folder holds no program.
    """
    if not isinstance(source, str | PathLike) or is_c_text(source):
        return False
    path = Path(fspath(located(source)))
    try:
        is_folder, is_file = path.is_dir(), path.is_file()
    except OSError:  # such as a name that is too long
        is_folder = is_file = False
    if is_folder:
        load_program(program_folder(path))
        return True
    if path.suffix.partition(":")[0] in _SUFFIXES or is_file:
        return False
    raise input_error(
        "EATSS-E051",
        f"there is no '{path}'",
        hint="give a C file, or a folder made with: eatss codegen FILE.c --gpu NAME -o DIR",
    )


def folder_variants(folders: Sequence[Path]) -> tuple[Variant, ...]:
    """Return folders with generated programs as variants named after them.

    Raises:
        InputError: ``EATSS-E043`` two have one name, ``EATSS-E045`` one is no folder,
            ``EATSS-V0xx`` one holds no program.
    """
    for folder in folders:
        if not is_program(folder):
            raise input_error(
                "EATSS-E045",
                f"'{folder}' is no folder with a generated program",
                hint="compare one C file under several --tiles, or folders of eatss codegen",
            )
    labels = [folder_label(folder) for folder in folders]
    check_labels(labels)
    return tuple(program_variant(folder) for folder in folders)


def program_variant(folder: Path) -> Variant:
    """Return a folder with a generated program as a variant named after it."""
    return Variant(label=folder_label(folder), directory=program_folder(folder))


def rejected_variant(label: str, error: EatssError) -> Variant:
    """Return a variant that could not be generated, with the reason."""
    reason = "; ".join(found.message for found in error.diagnostics)
    return Variant(label=label, directory=None, rejection=reason)


def numbered(names: Sequence[str]) -> tuple[str, ...]:
    """Return names of which no two are equal: ``gemm`` and ``gemm-2`` for twice ``gemm``."""
    found: list[str] = []
    for name in names:
        ways = (name if turn == 1 else f"{name}-{turn}" for turn in count(1))
        found.append(
            next(way for way in ways if way not in found and (way == name or way not in names))
        )
    return tuple(found)


def source_labels(sources: Sequence[Path]) -> tuple[str, ...]:
    """Return what several sources, and what is generated from them, are called."""
    return numbered(
        [folder_label(source) if source.is_dir() else source.stem for source in sources]
    )


def folder_label(folder: Path) -> str:
    """Return what a folder is called in tables."""
    return folder.resolve().name or str(folder)


def check_labels(labels: Sequence[str]) -> None:
    """Refuse two variants of one name.

    Raises:
        InputError: ``EATSS-E043``.
    """
    for label in labels:
        if labels.count(label) > 1:
            raise input_error(
                "EATSS-E043",
                f"two variants are called '{label}'",
                hint="leave one of them out, or give folders of different names",
            )


def baseline_label(baseline: str | None, labels: Sequence[str]) -> str:
    """Return the label of the baseline, spelled as in ``labels``.

    Raises:
        InputError: ``EATSS-E042``: there is no such variant.
    """
    if baseline is None:
        others = [label for label in labels if label != SELECTED]
        if SELECTED in labels:
            return others[0] if others else SELECTED
        return labels[-1]
    wanted = "".join(baseline.split())
    for label in (baseline, wanted, folder_label(Path(wanted)) if wanted else ""):
        if label in labels:
            return label
    raise input_error(
        "EATSS-E042",
        f"the baseline '{baseline}' is none of the variants",
        hint=f"the variants: {', '.join(labels)}",
    )


_NUMBER = re.compile(r"\d{1,18}")
_NAMED = re.compile(r"(?:(k\w*)\s*:\s*)?([A-Za-z_]\w*)\s*=\s*(\d{1,18})")


@frozen
class TileChoice:
    """One choice of tile sizes; with neither ``positions`` nor ``names`` the selected ones.

    ``positions`` are sizes of each kernel's loops in their order, as for ``ppcg --sizes``: a
    kernel with fewer loops takes the first ones, and one size alone is for every loop.
    ``names`` are sizes by loop, or by kernel and loop.
    """

    label: str
    positions: tuple[int, ...] = ()
    names: Mapping[str, int | Mapping[str, int]] = field(default_factory=dict)

    def tiles(self, kernels: Sequence[tuple[str, Sequence[str]]]) -> Tiles:
        """Return the sizes of kernels, given as pairs of a name and the loops in order.

        Raises:
            InputError: ``EATSS-E041``: a kernel has more loops than there are sizes.
        """
        if not self.positions:
            return dict(self.names)
        found: dict[str, int | Mapping[str, int]] = {}
        for kernel, loops in kernels:
            given = self.positions * len(loops) if len(self.positions) == 1 else self.positions
            if len(given) < len(loops):
                raise input_error(
                    "EATSS-E041",
                    f"{kernel} has the loops {', '.join(loops)}, and --tiles {self.label} has "
                    "fewer sizes",
                    hint=f"give {len(loops)} sizes, one alone for all loops, or sizes by loop like "
                    f"{loops[0]}=32",
                )
            if loops:
                found[kernel] = dict(zip(loops, given, strict=False))
        return found


Tiles = dict[str, int | Mapping[str, int]]


def parse_tile_choice(text: str) -> TileChoice:
    """Read a value of ``--tiles``.

    Raises:
        InputError: ``EATSS-E040``.
    """
    label = "".join(text.split())
    if label == SELECTED:
        return TileChoice(label=label)
    parts = label.split(",")
    if all(_NUMBER.fullmatch(part) for part in parts):
        return TileChoice(label=label, positions=tuple(map(int, parts)))
    names: dict[str, int | Mapping[str, int]] = {}
    kernel: str | None = None
    for part in parts:
        match = _NAMED.fullmatch(part)
        if match is None:
            raise input_error(
                "EATSS-E040",
                f"--tiles is '{text}'",
                hint="write selected, sizes in the order of the loops (32,64,16; 32 alone for all)"
                ", or sizes by loop (i=32,j=64; k0:i=32,k1:i=64)",
            )
        kernel = match[1] or kernel
        loop, size = match[2], int(match[3])
        if kernel is None:
            names[loop] = size
            continue
        own = names.get(kernel)
        names[kernel] = {**(own if isinstance(own, Mapping) else {}), loop: size}
    return TileChoice(label=label, names=names)


def parse_tile_choices(texts: Sequence[str]) -> tuple[TileChoice, ...]:
    """Read all values of ``--tiles``.

    Raises:
        InputError: ``EATSS-E040`` one is malformed, ``EATSS-E043`` one is there twice.
    """
    choices = tuple(parse_tile_choice(text) for text in texts)
    check_labels([choice.label for choice in choices])
    return choices
