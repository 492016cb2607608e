"""``@frozen`` and ``@fixed``, which declare nouns that never change.

They are dataclasses that share how they are compared and shown: what :mod:`dataclasses` writes and
compiles for each class takes a twentieth of a short command.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any, Protocol, TypeAlias, TypeVar, dataclass_transform

_Noun = TypeVar("_Noun")


@dataclass_transform(frozen_default=True, kw_only_default=True)
def frozen(noun: type[_Noun]) -> type[_Noun]:
    """Return a class as a frozen dataclass with slots whose fields are keywords."""
    return _declared(noun, kw_only=True)


@dataclass_transform(frozen_default=True)
def fixed(noun: type[_Noun]) -> type[_Noun]:
    """Return a class as a frozen dataclass with slots whose few fields are given in order."""
    return _declared(noun, kw_only=False)


@dataclass_transform(frozen_default=True, kw_only_default=True)
def frozen_part(noun: type[_Noun]) -> type[_Noun]:
    """Return a class as :func:`frozen` does, without slots: nouns have fields of several such."""
    return _declared(noun, kw_only=True, slots=False)


def _declared(noun: type[_Noun], *, kw_only: bool, slots: bool = True) -> type[_Noun]:
    own = {*vars(noun)}
    made: Any = dataclass(frozen=True, repr=False, eq=False, slots=slots, kw_only=kw_only)(noun)
    every = fields(made)
    compared = _values([one.name for one in every if one.compare])
    hashed = _values([one.name for one in every if (one.compare if one.hash is None else one.hash)])

    def equal(self: Any, other: Any) -> Any:
        same = other.__class__ is self.__class__
        return compared(self) == compared(other) if same else NotImplemented

    methods = {
        "__eq__": equal,
        "__hash__": lambda self: hash(hashed(self)),
        "__repr__": _shown,
    }
    for name in methods.keys() - own:
        setattr(made, name, methods[name])
    return made  # type: ignore[no-any-return]


def _values(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    if len(names) > 1:
        return attrgetter(*names)
    return lambda own: tuple(getattr(own, name) for name in names)


def _shown(self: Any) -> str:
    parts = (f"{own.name}={getattr(self, own.name)!r}" for own in fields(self) if own.repr)
    return f"{type(self).__qualname__}({', '.join(parts)})"


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
