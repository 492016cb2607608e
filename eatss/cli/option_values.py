"""The values of options, from text to what the API takes."""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from eatss.diagnostics import InputError, input_error
from eatss.files import read_regular, write_whole

if TYPE_CHECKING:
    from eatss.model import Selection

_KERNEL = re.compile(r"\s*(k\w*)\s*:(.*)", re.DOTALL)
_SIZE = re.compile(r"\s*([A-Za-z_]\w*)\s*=\s*(-?\d{1,18})\s*")
_THREADS = re.compile(r"\s*(-?\d{1,18})\s*")
_MAX_BYTES = 64 * 1024 * 1024


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


def read_selection(file: Path) -> Selection:
    """Read what ``eatss select --format json`` printed.

    Raises:
        InputError: ``EATSS-C009`` the file cannot be read, ``EATSS-M010`` or ``EATSS-M011`` it
            is no selection.
    """
    from eatss.model import Selection  # noqa: PLC0415 - keeps --help fast

    text = read_text("--selection", file)
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise input_error(
            "EATSS-C009",
            f"'{file}' is not JSON",
            hint="write it with: eatss select FILE.c --gpu NAME --format json",
        ) from None
    return Selection.from_dict(document)


def read_text(option: str, file: Path) -> str:
    """Read the file an option names.

    Raises:
        InputError: ``EATSS-C009``.
    """
    try:
        return read_regular(file, _MAX_BYTES).decode()
    except FileNotFoundError:
        reason = "there is no such file"
    except OSError as error:
        reason = error.strerror or str(error)
    except ValueError:
        reason = "it is not UTF-8 text"
    raise _unreadable(option, file, reason)


def write_text(option: str, file: Path, text: str) -> None:
    """Write the file an option names.

    Raises:
        InputError: ``EATSS-C010``.
    """
    write_bytes(option, file, text.encode())


def write_bytes(option: str, file: Path, data: bytes) -> None:
    """Write the file an option names.

    Raises:
        InputError: ``EATSS-C010``.
    """
    try:
        write_whole(file, data)
    except OSError as error:
        raise _unwritable(option, file, error.strerror or str(error)) from None


def check_writable(option: str, file: Path) -> None:
    """Refuse a file that cannot be written, before what is to stand in it is made.

    Raises:
        InputError: ``EATSS-C010``.
    """
    target = Path(os.path.realpath(file))
    number = 0
    if target.is_dir():
        number = errno.EISDIR
    elif not target.parent.is_dir():
        number = errno.ENOTDIR if target.parent.exists() else errno.ENOENT
    elif not os.access(target if target.exists() else target.parent, os.W_OK):
        number = errno.EACCES
    if number:
        raise _unwritable(option, file, os.strerror(number))


def _unwritable(option: str, file: Path, reason: str) -> InputError:
    return input_error(
        "EATSS-C010",
        f"{option}: cannot write '{file}': {reason}",
        hint="name a file in an existing folder",
    )


def _unreadable(option: str, file: Path, reason: str) -> InputError:
    return input_error(
        "EATSS-C009", f"{option}: cannot read '{file}': {reason}", hint="check the path"
    )


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
