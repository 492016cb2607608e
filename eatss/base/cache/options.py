"""The cache that is used: the keyword ``cache``, and where nobody gives it a folder of the user's.

``EATSS_CACHE_DIR`` names another folder, ``EATSS_CACHE_LIMIT`` another limit (``500M``, ``2G``, a
number of bytes; 0 turns the cache off). They are read here and nowhere else.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from eatss.base.cache.store import DEFAULT_LIMIT_BYTES, Cache
from eatss.base.diagnostics import input_error
from eatss.base.options import option

if TYPE_CHECKING:
    import tempfile


_LIMIT = re.compile(r"(\d{1,15})\s*([KMGT]?)(?:i?B)?", re.IGNORECASE | re.ASCII)
_UNITS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}


def default_cache() -> Cache:
    """Return the user's cache.

    Raises:
        InputError: ``EATSS-C016``, ``EATSS_CACHE_LIMIT`` is no size.
    """
    named = os.environ.get("EATSS_CACHE_DIR", "")
    folder = Path(named).absolute() if named else _users_folder()
    return Cache(folder, _limit_bytes(os.environ.get("EATSS_CACHE_LIMIT", "")))


def _users_folder() -> Path:
    try:
        from platformdirs import user_cache_path  # noqa: PLC0415 - measuring does without
    except ModuleNotFoundError:
        return Path(_for_this_process().name)
    return user_cache_path("eatss", appauthor=False)


@cache
def _for_this_process() -> tempfile.TemporaryDirectory[str]:
    import tempfile  # noqa: PLC0415 - where there is no folder of the user's

    return tempfile.TemporaryDirectory(prefix="eatss-cache-")


def _limit_bytes(text: str) -> int:
    if not text.strip():
        return DEFAULT_LIMIT_BYTES
    found = _LIMIT.fullmatch(text.strip())
    if found is None:
        raise input_error(
            "EATSS-C016",
            f"EATSS_CACHE_LIMIT is '{text}', which is no size",
            hint="write a number of bytes, or 500M, or 2G; 0 turns the cache off",
        )
    return int(found[1]) << _UNITS[found[2].upper()]


@dataclass(frozen=True, kw_only=True)
class Caching:
    """Where results are kept, in the words of the user.

    Attributes:
        cache: Whether what was found before for the same input is taken, and what is found is
            kept: by default in the user's cache, in an ``eatss.base.cache.Cache``, or with
            ``False`` not at all.

    Raises:
        InputError: ``EATSS-C004``, it is none of these.
    """

    cache: Annotated[
        Cache | bool | None,
        option(
            "--no-cache",
            kind=bool,
            default=False,
            made=lambda off: False if off else None,
            panel="Output",
            help="Compute anew: neither take nor keep results of before.",
        ),
    ] = None

    def __post_init__(self) -> None:
        if not isinstance(self.cache, Cache | bool | None):
            raise input_error(
                "EATSS-C004", f"cache is {self.cache!r}", hint="give True, False or a Cache"
            )

    def chosen(self) -> Cache | None:
        """Return the cache to use.

        Raises:
            InputError: ``EATSS-C016``, ``EATSS_CACHE_LIMIT`` is no size.
        """
        if isinstance(self.cache, Cache):
            return self.cache
        return None if self.cache is False else default_cache()
