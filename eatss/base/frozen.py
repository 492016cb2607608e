"""``@frozen`` and ``@fixed``, which declare nouns that never change."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar, dataclass_transform

_Noun = TypeVar("_Noun")


@dataclass_transform(frozen_default=True, kw_only_default=True)
def frozen(noun: type[_Noun]) -> type[_Noun]:
    """Return a class as a frozen dataclass with slots whose fields are keywords."""
    return dataclass(frozen=True, slots=True, kw_only=True)(noun)


@dataclass_transform(frozen_default=True)
def fixed(noun: type[_Noun]) -> type[_Noun]:
    """Return a class as a frozen dataclass with slots whose few fields are given in order."""
    return dataclass(frozen=True, slots=True)(noun)


Names: TypeAlias = tuple[str, ...]
"""What several nouns are called, in order."""

Numbers: TypeAlias = tuple[int, ...]
"""Integers in order: extents, positions, coordinates."""


class _Named(Protocol):
    @property
    def name(self) -> str:
        """What it is called."""


_Called = TypeVar("_Called", bound=_Named)
_Part = TypeVar("_Part")


def called(name: str, nouns: Iterable[_Called]) -> _Called:
    """Return the noun of a name; ``KeyError`` if there is none."""
    for noun in nouns:
        if noun.name == name:
            return noun
    raise KeyError(name)


def their_names(nouns: Iterable[_Named]) -> Names:
    """Return what nouns are called, in their order."""
    return tuple(noun.name for noun in nouns)


def distinct(values: Iterable[_Part]) -> tuple[_Part, ...]:
    """Return values in their order, each once."""
    return tuple(dict.fromkeys(values))


def complete(parts: Iterable[_Part | None]) -> tuple[_Part, ...] | None:
    """Return all parts, ``None`` where one of them is missing."""
    found = []
    for part in parts:
        if part is None:
            return None
        found.append(part)
    return tuple(found)
