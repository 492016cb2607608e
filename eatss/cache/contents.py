"""What is in a cache, for people and as JSON."""

from __future__ import annotations

from dataclasses import dataclass

from eatss.cache.store import Cache, Entry


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """A cache with its entries, what was used last first.

    ``size_bytes`` are those of all entries. ``problem`` says why nothing is kept, ``None`` where
    all is well.
    """

    folder: str
    limit_bytes: int
    size_bytes: int
    problem: str | None
    entries: tuple[Entry, ...]

    @classmethod
    def of(cls, cache: Cache) -> Contents:
        """Look at a cache."""
        entries = cache.entries()
        return cls(
            folder=str(cache.folder),
            limit_bytes=cache.limit_bytes,
            size_bytes=sum(one.size_bytes for one in entries),
            problem=cache.problem(),
            entries=entries,
        )
