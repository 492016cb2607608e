"""The keyword ``cache`` of functions that keep what they find."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from eatss.cache.default import default_cache
from eatss.cache.store import Cache
from eatss.diagnostics import input_error
from eatss.options import option


@dataclass(frozen=True, kw_only=True)
class Caching:
    """Where results are kept, in the words of the user.

    Attributes:
        cache: Whether what was found before for the same input is taken, and what is found is
            kept: by default in the user's cache, in an ``eatss.cache.Cache``, or with ``False``
            not at all.

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
