"""Find and read profiles: known cards by name or alias, others by the path of their file.

A card of a program or of a package is known by the path of its TOML file::

    from eatss.cards import CARDS

    CARDS.register("mycard", Path("mycard.toml"))

A package offers one by an entry point of the group ``eatss.cards``, which names such a path.

Codes: G001 unknown name, G002 no such file or unreadable, G003 a directory, G004
not UTF-8, G005 TOML syntax, G022 two cards of one name; those of ``eatss.cards.document`` for
the content.
"""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from eatss.base.cache import default_cache, key_of, versions
from eatss.base.codec import MisfitError, decode, encode
from eatss.base.diagnostics import EatssError, InputError, InternalError, input_error
from eatss.base.extensions import Registry
from eatss.base.files import read_regular
from eatss.base.shipped import data_directory
from eatss.cards.card_names import ENTRY_POINTS, shipped_names
from eatss.cards.profile import GpuProfile

_KIND = "profile"

MAX_FILE_BYTES = 1 << 20
"""A profile has about 3 kB; a larger file is a mistake."""


def named_profile(name_or_path: str | os.PathLike[str]) -> GpuProfile:
    """Return a known card's profile by name or alias, or the profile in a TOML file.

    A text with a path separator or ending in ``.toml`` is a path; any other text is
    a name, and case does not matter.

    Args:
        name_or_path: ``"h200"``, or the path of a TOML profile.

    Raises:
        InputError: there is no such profile, or its file is wrong. All findings
            about a file are in it, each with its place.
    """
    file = profile_file(name_or_path)
    if file is None:
        shipped = shipped_names(profile_directory())
        raise _unknown_name(str(name_or_path), [*shipped, *_added_cards(shipped)])
    return _read(file)


def profile_file(gpu: object) -> Path | None:
    """Return the file that the profile a user gives stands in, ``None`` where it is in none."""
    if isinstance(gpu, os.PathLike):
        return Path(gpu)
    if not isinstance(gpu, str):
        return None
    separators = [sep for sep in (os.sep, os.altsep) if sep]
    if gpu.lower().endswith(".toml") or any(sep in gpu for sep in separators):
        return Path(gpu)
    shipped, name = shipped_names(profile_directory()), gpu.strip().lower()
    card = shipped.get(name) or _added_cards(shipped).get(name)
    return None if card is None else CARDS.get(card)


def list_profiles() -> tuple[GpuProfile, ...]:
    """Return the profiles of all known cards, in order of their names."""
    shipped = shipped_names(profile_directory())
    cards = {*shipped.values(), *_added_cards(shipped).values()}
    found = (_read(CARDS.get(card)) for card in cards)
    return tuple(sorted(found, key=lambda profile: profile.name))


def profile_provider(profile: GpuProfile) -> str:
    """Return who offers a known card: ``eatss``, a package with its version, or this program."""
    shipped = shipped_names(profile_directory())
    return CARDS.provider(shipped.get(profile.name) or _added_cards(shipped)[profile.name])


def profile_directory() -> Path:
    """Return the folder of the shipped profiles: of the checkout, else of the installed package.

    Raises:
        InternalError: neither is there, so the installation is broken.
    """
    return data_directory("gpu_profiles")


def _shipped_files() -> dict[str, Path]:
    """Return the files of eatss, none where they are lost, which ``profile_directory`` tells."""
    try:
        folder = data_directory("gpu_profiles")
    except InternalError:
        return {}
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


CARDS: Registry[Path] = Registry(ENTRY_POINTS, "card", _shipped_files(), of=Path)
"""The TOML files of all known cards by name."""


def _added_cards(shipped: Mapping[str, str]) -> dict[str, str]:
    """Map each name and alias of the cards of packages and programs to the name in ``CARDS``."""
    cards: dict[str, str] = {}
    for card in CARDS.names():
        if card in shipped.values():
            continue
        profile = _read(CARDS.get(card))
        for name in (card.lower(), profile.name, *profile.aliases):
            if name in shipped or cards.setdefault(name, card) != card:
                raise input_error(
                    "EATSS-G022",
                    f"the card '{card}' of {CARDS.provider(card)} is called {name}, "
                    "like another card",
                    hint=f"change its name or aliases in {CARDS.get(card)}",
                )
    return cards


def _unknown_name(name: str, names: Sequence[str]) -> InputError:
    close = difflib.get_close_matches(name.strip().lower(), names, n=3, cutoff=0.5)
    known = ", ".join(sorted(names))
    hint = f"did you mean {' or '.join(close)}? " if close else ""
    return input_error(
        "EATSS-G001",
        f'no GPU profile is called "{name}"',
        hint=f"{hint}known: {known}; auto is the card in this machine; a profile of your own goes "
        "by the path of its TOML file",
    )


def _read(path: Path) -> GpuProfile:
    """Read a file, through a cache that notices when the file has changed."""
    try:
        status = path.stat()
    except (OSError, ValueError) as error:  # ValueError: a NUL byte in the path
        raise _unreadable(path, error) from None
    if path.is_dir():
        raise input_error(
            "EATSS-G003", f"{path} is a directory, not a profile", hint="name a TOML file in it"
        )
    return _read_version(path, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=128)
def _read_version(path: Path, mtime_ns: int, size: int) -> GpuProfile:
    del mtime_ns, size  # part of the cache's key only
    text = _text(path)
    try:
        cache = default_cache()
    except EatssError:  # who asks for the cache is told what is wrong with it
        return _parsed(path, text)
    key = key_of(_KIND, text, versions())
    kept = cache.get(_KIND, key)
    if kept is not None:
        try:
            return decode(GpuProfile, json.loads(kept))
        except (MisfitError, ValueError, RecursionError, EatssError):
            pass
    profile = _parsed(path, text)
    data = json.dumps(encode(profile)).encode()
    if decode(GpuProfile, json.loads(data)) == profile:
        cache.put(_KIND, key, data)
    return profile


def _parsed(path: Path, text: str) -> GpuProfile:
    """Read the text of a profile, which takes as long as the rest of a command that knows all."""
    from eatss.cards.document import Origin, parsed_toml, profile_from_document  # noqa: PLC0415

    document = parsed_toml(text, str(path), "EATSS-G005")
    return profile_from_document(document, Origin(label=str(path), text=text))


def _text(path: Path) -> str:
    try:
        content = read_regular(path, MAX_FILE_BYTES)
    except OSError as error:
        raise _unreadable(path, error) from None
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise input_error(
            "EATSS-G004",
            f"{path}: byte {error.start} (line {line}) is not UTF-8",
            hint="save the file as UTF-8, as TOML demands",
        ) from None


def _unreadable(path: Path, error: Exception) -> InputError:
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return input_error("EATSS-G002", f"cannot read the profile {path}: {reason}")
