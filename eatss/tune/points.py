"""Points, what one variant decides by name, and the spaces that they are from.

The manner is that of BEAST [Sec. 2.3]: an iterator ranges over values that may depend on earlier
iterators and on constants of the card; a filter is a named condition that a point must meet.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from hashlib import sha256
from typing import Annotated, TypeAlias

from eatss.base.codec import BY_NAME
from eatss.base.frozen import frozen
from eatss.base.shown import Shown
from eatss.cards.profile import FIGURES, GpuProfile

Value: TypeAlias = bool | int | float | str

Point: TypeAlias = Mapping[str, Value]
"""Values by the names of a space, such as ``{"tile_i": 64, "threads_i": 16}``."""

Configuration: TypeAlias = dict[str, Value]
"""A point that stands by itself, and may be changed."""

Values = Annotated[tuple[tuple[str, Value], ...], BY_NAME]
"""A point in a noun: pairs, in the order of the space."""


def variant_key(point: Point) -> str:
    """Return what tells a point from all others of its space, whatever the order of its names."""
    text = json.dumps(dict(point), sort_keys=True, separators=(",", ":"))
    return sha256(text.encode()).hexdigest()[:16]


def place_in(values: Sequence[Value], value: Value) -> int | None:
    """Return the place of a value; 1, 1.0 and true are three values."""
    if isinstance(values, range):
        return values.index(value) if type(value) is int and value in values else None
    same = (at for at, own in enumerate(values) if type(own) is type(value) and own == value)
    return next(same, None)


def nearest(
    own: Configuration,
    along: Iterable[Sequence[Value]],
    allows: Callable[[Configuration], str | None],
) -> list[Configuration]:
    """Return the points that differ from one in one value, the nearest values first.

    How near is counted in values; equally near ones come in the order of the names.

    Args:
        own: the point.
        along: the values of each of its names below those before it.
        allows: says why another is no point, ``None`` if it is one.
    """
    found = []
    for step, (name, values) in enumerate(zip(own, along, strict=True)):
        here = place_in(values, own[name])
        assert here is not None
        found += [
            (abs(at - here), step, at, {**own, name: value})
            for at, value in enumerate(values)
            if at != here
        ]
    found.sort(key=lambda one: one[:3])
    return [other for *_, other in found if allows(other) is None]


CUTS = ("warps", "stages", "share", "stream", "lanes", "steps", "chunks", "outer")
"""Decisions about a kernel as a whole."""

_OF_KERNEL = re.compile(rf"(tile|threads|points|staged)_\w+|{'|'.join(CUTS)}", re.ASCII)

SELECTING = ("objective", "model", "split", "warp_fraction", "uniform", "shared_per_block")
"""Decisions about the model: sizes are selected under them."""

OF_PPCG = ("max_shared_memory", "unroll_gpu_tile")
"""Decisions about PPCG's options."""


def is_of_kernel(name: str) -> bool:
    """Tell whether a name is that of a decision about a kernel: ``tile_i``, ``lanes``."""
    return bool(_OF_KERNEL.fullmatch(name))


def is_decision(name: str) -> bool:
    """Tell whether a name is that of a decision: ``tile_i``, ``k0.threads_j``, ``split``."""
    return name in (*SELECTING, *OF_PPCG) or is_of_kernel(name.partition(".")[2] or name)


Iterates: TypeAlias = tuple[Value, ...] | Mapping[str, Value | tuple[Value, ...]]
"""Values themselves, or what computes them: a range, powers or divisors."""


@frozen
class Space:
    """A search space, as a document has it; expressions are texts, or plain values.

    Attributes:
        name: What it is called.
        iterators: In the order in which their values may depend on each other: ``(8, 16)``,
            ``{"start": 1, "stop": "dim_m", "step": 1}``, ``{"powers": (2, 1, 64)}``,
            ``{"divisors": "dim_m"}``.
        constants: Expressions by name, of the card (``card.max_threads_per_block``) and of each
            other.
        filters: Conditions that points must meet, by what they remove in words; each is tried as
            soon as all that it names is known.
        variant: What a variant decides, by name, as expressions; iterators whose names are those
            of decisions (``tile_i``) need none.
        source: Where it was read from, for messages.
        text: The text it was read from, so that messages point into it.
    """

    name: str
    iterators: Mapping[str, Iterates]
    constants: Mapping[str, Value] = field(default_factory=dict)
    filters: Mapping[str, Value] = field(default_factory=dict)
    variant: Mapping[str, Value] = field(default_factory=dict)
    source: str = field(default="", compare=False)
    text: str = field(default="", compare=False, repr=False)


@frozen
class FilterCount:
    """How many points a filter removed: those that came to it and did not meet it."""

    name: str
    condition: str
    removed: int


@frozen
class SpaceCount(Shown):
    """How large a space is.

    ``raw`` points are those of the iterators alone, whatever filters say. ``kept`` are left by all
    filters. A filter on the first iterators removes a prefix once; ``removed`` counts the raw
    points that begin with it, so that ``raw`` is ``kept`` and all that was removed.
    """

    shown_by = "space"

    name: str
    raw: int
    kept: int
    filters: tuple[FilterCount, ...]
    schema_version: int = 1


ALSO_CALLED = {"max_threads_per_block": "threads_per_block", "warp_size": "threads_per_warp"}
"""Other names of figures, those of CUDA."""


def card_constants(profile: GpuProfile) -> dict[str, Value]:
    """Return the figures of a card by name: ``card.sm_count``.

    Besides them ``card.compute_capability`` (90 for 9.0), ``card.name``, and some figures by the
    names of CUDA. A figure that no source gives is left out.
    """
    figures = {name: getattr(profile, name) for name in FIGURES}
    figures |= {other: figures[name] for other, name in ALSO_CALLED.items()}
    known: dict[str, Value] = {
        f"card.{name}": value for name, value in figures.items() if value is not None
    }
    return {**known, "card.compute_capability": profile.sm, "card.name": profile.name}
