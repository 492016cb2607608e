"""What a shell offers on TAB: cards, kernels, names of registries. Loads nothing that is slow."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import get_args

from eatss.base.targets import ObjectiveName

Offer = Callable[[str], list[str]]
"""From what is typed of a word to the words it may become."""

_COMBINERS = ("add", "multiply", "max", "min", "fmax", "fmin", "and", "or", "xor")

BUILT_IN: Mapping[str, tuple[str, ...]] = {
    "eatss.objectives": (*get_args(ObjectiveName), "paper"),
    "eatss.formats": ("table", "json", "ppcg", "ppcg-args"),
    "eatss.meters": ("auto", "counter", "power", "nvidia-smi", "jetson", "none"),
    "eatss.strategies": ("model", "random", "exhaustive", "local", "optuna", "kernel-tuner"),
    "eatss.transformations": ("swizzle",),
    "eatss.instructions": (
        "fma",
        "mma_f64_8x8x4",
        "mma_f64_16x8x16",
        "mma_f64_16x8x4",
        "mma_tf32_16x8x8",
        "mma_3xtf32_16x8x8",
        "mma_f16_16x8x16",
        *(f"mma_{a}_{b}_16x8x32" for a in ("s8", "u8") for b in ("s8", "u8")),
        *(
            f"{does}_{combiner}"
            for does in ("shuffle_down", "combine", "atomic")
            for combiner in _COMBINERS
        ),
    ),
}
"""The names of eatss in each registry, by its group of entry points: the registries load slowly."""


def cards(incomplete: str) -> list[str]:
    """Offer ``auto``, the names and aliases of cards, and TOML files."""
    from eatss.base.shipped import data_directory  # noqa: PLC0415
    from eatss.cards.card_names import ENTRY_POINTS, shipped_names  # noqa: PLC0415

    try:
        known = shipped_names(data_directory("gpu_profiles"))
    except FileNotFoundError:
        known = {}
    names = ["auto", *known, *_installed(ENTRY_POINTS)]
    found = _beginning(names, incomplete)
    return found + _files(incomplete, ".toml")


def sources(incomplete: str) -> list[str]:
    """Offer the kernels of eatss as ``@gemm``; files are the shell's business."""
    from eatss.base.shipped import MARK  # noqa: PLC0415

    if not incomplete.startswith(MARK):
        return []
    return [MARK + name for name in kernels(incomplete.removeprefix(MARK))]


def recorded_sweeps(incomplete: str) -> list[str]:
    """Offer the recorded sweeps of eatss as ``@gemm``; files are the shell's business."""
    from eatss.base.diagnostics import EatssError  # noqa: PLC0415
    from eatss.base.shipped import MARK, sweep_names  # noqa: PLC0415

    if not incomplete.startswith(MARK):
        return []
    try:
        return _beginning([MARK + name for name in sweep_names()], incomplete)
    except EatssError:
        return []


def kernels(incomplete: str) -> list[str]:
    """Offer the names of the kernels of eatss."""
    from eatss.base.diagnostics import EatssError  # noqa: PLC0415
    from eatss.base.shipped import kernel_names  # noqa: PLC0415

    try:
        return _beginning(kernel_names(), incomplete)
    except EatssError:
        return []


def words(*offered: str) -> Offer:
    """Return what offers these words."""
    return lambda incomplete: _beginning(offered, incomplete)


def registered(group: str) -> Offer:
    """Return what offers the names of a registry: those of eatss and those of packages."""
    return lambda incomplete: _beginning((*BUILT_IN[group], *_installed(group)), incomplete)


def rejoin(environment: MutableMapping[str, str]) -> None:
    """Undo how bash cuts words where they hold ``@`` or ``=``, before they are completed."""
    if environment.get("_EATSS_COMPLETE") != "complete_bash":
        return
    try:
        found = shlex.split(environment["COMP_WORDS"])
        place = int(environment["COMP_CWORD"])
    except (KeyError, ValueError):
        return  # the shell has its say
    words_again, place = rejoined(found, place)
    environment["COMP_WORDS"] = shlex.join(words_again)
    environment["COMP_CWORD"] = str(place)


def rejoined(found: Sequence[str], place: int) -> tuple[list[str], int]:
    """Return words with ``@`` joined to what follows it, and without ``=`` of its own.

    Args:
        found: the words of a command line as bash cuts it.
        place: which of them is completed; one more than there are where none is begun.

    Returns:
        The words up to the one that is completed, and its place.
    """
    kept: list[str] = []
    at = place
    for number, word in enumerate(found[: place + 1]):
        if word == "=":
            at -= number < place
        elif number and found[number - 1] == "@":
            kept[-1] += word
            at -= 1
        else:
            kept.append(word)
    return kept, at


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in dict.fromkeys(names) if name.startswith(incomplete)]


def _installed(group: str) -> list[str]:
    from importlib.metadata import entry_points  # noqa: PLC0415 - few shells get here

    return sorted(one.name for one in entry_points(group=group))


def _files(incomplete: str, suffix: str) -> list[str]:
    """Return the files of a suffix, spelled as the user began to."""
    folder, _, begun = incomplete.rpartition("/")
    place = Path(f"{folder}/") if "/" in incomplete else Path()
    if not begun and "/" not in incomplete:
        return []
    try:
        names = sorted(one.name for one in place.iterdir() if one.suffix == suffix)
    except OSError:
        return []
    prefix = f"{folder}/" if "/" in incomplete else ""
    return [prefix + name for name in names if name.startswith(begun)]
