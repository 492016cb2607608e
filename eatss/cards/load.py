"""Find and read profiles: cards of eatss by name or alias, others by the path of their file.

Codes: G001 unknown name, G002 a file that cannot be read; those of
``eatss.cards.document`` for the content.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from eatss.base.diagnostics import did_you_mean, input_error
from eatss.base.files import StrPath, read_regular
from eatss.base.shipped import data_directory
from eatss.cards.profile import GpuProfile

MAX_FILE_BYTES = 1 << 20
"""A profile has about 3 kB; a larger file is a mistake."""


@lru_cache(maxsize=4)
def shipped_names(folder: Path) -> Mapping[str, str]:
    """Map each name and alias of a card of eatss to its name, reading only the head of its file."""
    cards: dict[str, str] = {}
    for path in sorted(folder.glob("*.toml")):
        table = tomllib.loads(path.read_text(encoding="utf-8").partition("\n[")[0])
        cards |= dict.fromkeys((table["name"], *table.get("aliases", ())), path.stem)
    return cards


def named_profile(name_or_path: StrPath) -> GpuProfile:
    """Return a known card's profile by name or alias, or the profile in a TOML file.

    A text with a path separator or ending in ``.toml`` is a path; any other text is
    a name, and case does not matter.

    Args:
        name_or_path: ``"h200"``, or the path of a TOML profile.

    Raises:
        InputError: there is no such profile, or its file is wrong.
    """
    file = profile_file(name_or_path)
    if file is not None:
        return _read(file)
    names = shipped_names(profile_directory())
    raise input_error(
        "EATSS-G001",
        f'no GPU profile is called "{name_or_path}"',
        hint=f"{did_you_mean(str(name_or_path).lower(), names)} eatss profiles lists all; auto is "
        "the card in this machine; a profile of your own goes by the path of its file".strip(),
    )


def profile_file(gpu: object) -> Path | None:
    """Return the file that the profile a user gives stands in, ``None`` where it is in none."""
    if isinstance(gpu, os.PathLike):
        return Path(gpu)
    if not isinstance(gpu, str):
        return None
    if gpu.lower().endswith(".toml") or os.sep in gpu:
        return Path(gpu)
    folder = profile_directory()
    card = shipped_names(folder).get(gpu.strip().lower())
    return None if card is None else folder / f"{card}.toml"


def list_profiles() -> tuple[GpuProfile, ...]:
    """Return the profiles of all known cards, in order of their names."""
    return tuple(_read(path) for path in sorted(profile_directory().glob("*.toml")))


def profile_directory() -> Path:
    """Return the folder of the shipped profiles: of the checkout, else of the installed package.

    Raises:
        InternalError: neither is there, so the installation is broken.
    """
    return data_directory("gpu_profiles")


def _read(path: Path) -> GpuProfile:
    try:
        text = read_regular(path, MAX_FILE_BYTES).decode("utf-8")
    except (OSError, ValueError) as error:  # a NUL byte in the path, or no UTF-8
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise input_error("EATSS-G002", f"cannot read the profile {path}: {reason}") from None
    return _parsed(text, str(path))


@lru_cache(maxsize=128)
def _parsed(text: str, label: str) -> GpuProfile:
    from eatss.cards.document import Origin, parsed_toml, profile_from_document  # noqa: PLC0415

    document = parsed_toml(text, label, "EATSS-G005")
    return profile_from_document(document, Origin(label=label, text=text))
