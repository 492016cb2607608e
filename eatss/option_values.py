"""The values of options, from text to what the API takes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from eatss.diagnostics import input_error

_KERNEL = re.compile(r"\s*(k\w*)\s*:(.*)", re.DOTALL)
_SIZE = re.compile(r"\s*([A-Za-z_]\w*)\s*=\s*(-?\d{1,18})\s*")
_THREADS = re.compile(r"\s*(-?\d{1,18})\s*")


def parse_tiles(texts: Sequence[str]) -> dict[str, int | dict[str, int]]:
    """Turn values of ``--tile`` (``i=32,j=64``, ``k0:i=32``) into what the API takes.

    Raises:
        InputError: ``EATSS-C005``.
    """
    tiles: dict[str, int | dict[str, int]] = {}
    for text in texts:
        kernel, rest = _split(text)
        for part in rest.split(","):
            match = _SIZE.fullmatch(part)
            if match is None:
                raise input_error(
                    "EATSS-C005",
                    f"--tile is '{text}'",
                    hint="write loops with sizes, like --tile i=32,j=64, or for one kernel "
                    "--tile k0:i=32,j=64",
                )
            loop, size = match[1], int(match[2])
            if kernel is None:
                tiles[loop] = size
                continue
            own = tiles.setdefault(kernel, {})
            if isinstance(own, dict):
                own[loop] = size
    return tiles


def parse_blocks(
    texts: Sequence[str],
) -> dict[str, int | tuple[int, ...] | dict[str, int]]:
    """Turn values of ``--block`` (``8,32``, ``k0:8,32``, ``i=8,j=32``) into what the API takes.

    Raises:
        InputError: ``EATSS-C006``.
    """
    blocks: dict[str, int | tuple[int, ...] | dict[str, int]] = {}
    for text in texts:
        kernel, rest = _split(text)
        parts = rest.split(",")
        named = [match for part in parts if (match := _SIZE.fullmatch(part))]
        sizes = [match for part in parts if (match := _THREADS.fullmatch(part))]
        if len(sizes) == len(parts):
            blocks[kernel or ""] = tuple(int(match[1]) for match in sizes)
        elif len(named) < len(parts):
            raise input_error(
                "EATSS-C006",
                f"--block is '{text}'",
                hint="write threads in the order of the loops, like --block 8,32, or by loop, like "
                "--block i=8,j=32, or for one kernel --block k0:8,32",
            )
        elif kernel is None:
            blocks.update({match[1]: int(match[2]) for match in named})
        else:
            known = blocks.get(kernel)
            own = known if isinstance(known, dict) else {}
            blocks[kernel] = {**own, **{match[1]: int(match[2]) for match in named}}
    return blocks


def parse_placements(texts: Sequence[str]) -> dict[str, str]:
    """Turn values of ``--place`` (``A=shared``, ``A[i][k]=l1``) into what the API takes.

    Raises:
        InputError: ``EATSS-C007``.
    """
    placements: dict[str, str] = {}
    for text in texts:
        name, _, memory = text.rpartition("=")
        if not name.strip() or memory.strip() not in ("l1", "shared"):
            raise input_error(
                "EATSS-C007",
                f"--place is '{text}'",
                hint="write an array or a reference and shared or l1, like --place A=shared or "
                "--place 'A[i][k]=l1'",
            )
        placements[name.strip()] = memory.strip()
    return placements


def parse_shares(option: str, texts: Sequence[str]) -> dict[str, int]:
    """Turn values of ``--share`` or ``--stream`` (``k=32``) into what the API takes.

    Raises:
        InputError: ``EATSS-C004``, a part is not a loop with a number.
    """
    shares: dict[str, int] = {}
    for text in texts:
        for part in text.split(","):
            match = _SIZE.fullmatch(part)
            if match is None:
                raise input_error(
                    "EATSS-C004",
                    f"{option} is '{text}'",
                    hint=f"write a loop of a sum with a number of blocks, like {option} k=32",
                )
            shares[match[1]] = int(match[2])
    return shares


def parse_parameters(pairs: Sequence[str]) -> dict[str, int]:
    """Turn values of ``--param`` (``NAME=VALUE``) into a mapping.

    Raises:
        InputError: ``EATSS-C001``, a pair has no name or no integer value.
    """
    values: dict[str, int] = {}
    for pair in pairs:
        name, separator, value = pair.partition("=")
        if not separator or not name.isidentifier() or not _is_integer(value):
            raise input_error(
                "EATSS-C001",
                f"'{pair}' does not fix a parameter",
                hint="write a name and an integer, like --param n=4000",
            )
        values[name] = int(value)
    return values


def parse_fraction(option: str, text: str) -> float | Literal["auto"]:
    """Turn the value of ``--split`` or ``--warp-fraction`` into what the API takes.

    Raises:
        InputError: ``EATSS-C002``.
    """
    if text == "auto":
        return "auto"
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 <= value <= 1.0:
        raise input_error(
            "EATSS-C002",
            f"{option} is '{text}'",
            hint=f"write {option} auto, or a number from 0 to 1 such as 0.5",
        )
    return value


def parse_shared_limit(text: str | None) -> int | Literal["default", "opt-in"] | None:
    """Turn the value of ``--shared-per-block`` into what the API takes.

    Raises:
        InputError: ``EATSS-C003``.
    """
    if text is None:
        return None
    if text == "default":
        return "default"
    if text == "opt-in":
        return "opt-in"
    if not text.isdecimal():
        raise input_error(
            "EATSS-C003",
            f"--shared-per-block is '{text}'",
            hint="write default, opt-in, or a number of bytes such as 49152",
        )
    return int(text)


def _split(text: str) -> tuple[str | None, str]:
    """Return the kernel before a colon, and the rest."""
    match = _KERNEL.fullmatch(text)
    return (None, text) if match is None else (match[1], match[2])


def _is_integer(text: str) -> bool:
    try:
        int(text)
    except ValueError:
        return False
    return True
