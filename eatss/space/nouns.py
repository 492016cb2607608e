"""The nouns of a search space: iterators, filters, and what its variants decide.

The manner is that of BEAST [Sec. 2.3]: an iterator ranges over values that may depend on earlier
iterators and on constants of the card; a filter is a named condition that a point must meet.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from eatss.point import Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """From ``start`` to ``stop``, which is included, in steps of ``step``: expressions."""

    start: str
    stop: str
    step: str = "1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """The values themselves."""

    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Generated:
    """What a generator yields: ``powers(2, 1, 1024)``, ``divisors(N)``; its arguments are
    expressions.
    """  # noqa: D205

    generator: str
    arguments: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Iterator:
    """A dimension of the space."""

    name: str
    over: Range | Listed | Generated


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """A condition that a point must meet; ``name`` says in words what it removes."""

    name: str
    condition: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """A search space.

    Attributes:
        name: What it is called.
        constants: Expressions by name, of the card (``card.max_threads_per_block``) and of each
            other.
        iterators: In the order in which their values may depend on each other.
        filters: Each is tried as soon as all that it names is known.
        variant: What a variant decides, by name, as expressions; iterators whose names are those
            of decisions (``tile_i``) need none.
        source: Where it was read from, for messages.
        text: The text it was read from, so that messages point into it.
    """

    name: str
    iterators: tuple[Iterator, ...]
    constants: tuple[tuple[str, str], ...] = ()
    filters: tuple[Filter, ...] = ()
    variant: tuple[tuple[str, str], ...] = ()
    source: str = field(default="", compare=False)
    text: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterCount:
    """How many points a filter removed: those that came to it and did not meet it."""

    name: str
    condition: str
    removed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceCount:
    """How large a space is.

    ``raw`` points are those of the iterators alone, whatever filters say. ``kept`` are left by all
    filters. A filter on the first iterators removes a prefix once; ``removed`` counts the raw
    points that begin with it, so that ``raw`` is ``kept`` and all that was removed.
    """

    name: str
    raw: int
    kept: int
    filters: tuple[FilterCount, ...]
    seconds: float
    schema_version: int = 1
