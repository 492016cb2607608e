"""Who generates the variants of a sweep, and of what."""

from __future__ import annotations

import subprocess
from itertools import count
from os import PathLike, fspath
from pathlib import Path

from eatss.base.diagnostics import input_error
from eatss.base.files import folder_named, is_c_text
from eatss.base.frozen import frozen
from eatss.base.shipped import located
from eatss.base.targets import TARGETS, SweepTarget
from eatss.cards import GpuProfile
from eatss.cards.this_machine import AUTO
from eatss.frontend.options import Reading
from eatss.frontend.python import PythonScop
from eatss.ppcg_build.run import find_ppcg
from eatss.session.source import Source
from eatss.tune.explore.nouns import SourceText
from eatss.tune.explore.rows import generator_version
from eatss.tune.space.nouns import Space


@frozen
class Generation:
    """Who generates variants, and of what.

    Attributes:
        gpu: ``"auto"`` for the card in this machine, the name of a profile, the path of one, or a
            profile.
        target: ``"cuda"`` for code of eatss, ``"ppcg"`` for PPCG's.
        space: Path of a space in TOML, or a space; ``None`` derives one from the program.
        reading: How the source is read.
        ppcg: PPCG, a command or a path.
        ppcg_arguments: Further arguments of it.
        keep: A folder that keeps the programs.
    """

    gpu: str | PathLike[str] | GpuProfile = AUTO
    target: SweepTarget = "cuda"
    space: str | PathLike[str] | Space | None = None
    reading: Reading = Reading()
    ppcg: str | PathLike[str] | None = None
    ppcg_arguments: tuple[str, ...] = ()
    keep: str | PathLike[str] | None = None


def source_text(source: str | PathLike[str] | PythonScop, reading: Reading) -> SourceText:
    """Return a source as other processes can read it; loops in Python that are no file's are C."""
    if isinstance(source, str | PathLike):
        text = fspath(located(source))
        known = text if is_c_text(text) else str(Path(text).absolute())
    else:
        known = fspath(Source.of(source).c)
    return SourceText.of(known, reading)


def ppcg_program(generation: Generation) -> str | None:
    """Return the path of PPCG where it generates.

    Raises:
        InputError: ``EATSS-R003``, there is none.
    """
    return find_ppcg(generation.ppcg) if not TARGETS[generation.target].own else None


def generator_of(generation: Generation) -> str:
    """Return the version of who generates."""
    program = ppcg_program(generation)
    if program is None:
        return generator_version()
    said = subprocess.run(  # noqa: S603
        [program, "--version"], capture_output=True, text=True, timeout=60, check=False
    ).stdout
    lines = [line.strip() for line in said.splitlines()]
    version = next((line for line in lines if line.startswith("ppcg")), "PPCG")
    return " ".join((version, *generation.ppcg_arguments))


def made_folder(path: str | PathLike[str]) -> Path:
    """Make a folder for programs.

    Raises:
        InputError: ``EATSS-W022``, it cannot be made.
    """
    folder = folder_named(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise input_error(
            "EATSS-W022",
            f"the folder '{folder}' cannot be made: {error.strerror}",
            hint="name another folder",
        ) from None
    return folder


def own_folder(parent: str, variant: str) -> Path:
    """Make and return a folder that nobody else has: ``VARIANT``, else ``VARIANT-2`` and so on."""
    for turn in count(1):
        folder = Path(parent) / (variant if turn == 1 else f"{variant}-{turn}")
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            continue
        return folder
    raise AssertionError
