"""What workloads of one card share, and what is kept of one for another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, TypeAlias

from eatss.measurement.arguments import ArgumentStore, Array, ArrayKey, Health
from eatss.verify.data import Flavour


@dataclass(frozen=True, slots=True, kw_only=True)
class DataChoice:
    """The data of programs with the same arguments, and what one run makes of them."""

    flavour: Flavour
    after_one_run: Mapping[ArrayKey, Health]

    @property
    def broken(self) -> int:
        """Infinities and NaN."""
        return sum(found.broken for found in self.after_one_run.values())

    @property
    def faint_share(self) -> float:
        """Share of denormal numbers and zeros."""
        elements = sum(found.elements for found in self.after_one_run.values())
        return sum(found.faint for found in self.after_one_run.values()) / max(1, elements)


Group: TypeAlias = tuple[str | ArrayKey, ...]
"""The name of a program and its arrays: variants of it have the same, and get the same data."""


@dataclass(slots=True, kw_only=True)
class CardMemory:
    """What workloads of one card share: CuPy, the stream, arguments, and the choice of data."""

    cupy: Any
    stream: Any
    store: ArgumentStore
    choices: dict[Group, DataChoice]
    current: Callable[[], AbstractContextManager[Any]]
    """Makes the card and its stream the current ones in a block."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Copies of what a program wrote, and how rounding errors of it grow, in units of ε."""

    arrays: tuple[tuple[ArrayKey, Array], ...]
    growths: tuple[tuple[ArrayKey, float], ...]
