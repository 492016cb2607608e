"""Tile sizes as the user writes them: ``selected``, ``32,64,16``, ``i=32,j=64``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field

from eatss.diagnostics import InputError, input_error
from eatss.frozen import frozen
from eatss.measurement.labels import SELECTED, check_labels

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
                raise _too_few(self.label, kernel, loops)
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
            raise _malformed(text)
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


def _malformed(text: str) -> InputError:
    return input_error(
        "EATSS-E040",
        f"--tiles is '{text}'",
        hint="write selected, sizes in the order of the loops (32,64,16; 32 alone for all), or "
        "sizes by loop (i=32,j=64; k0:i=32,k1:i=64)",
    )


def _too_few(label: str, kernel: str, loops: Sequence[str]) -> InputError:
    return input_error(
        "EATSS-E041",
        f"{kernel} has the loops {', '.join(loops)}, and --tiles {label} has fewer sizes",
        hint=f"give {len(loops)} sizes, one alone for all loops, or sizes by loop like "
        f"{loops[0]}=32",
    )
