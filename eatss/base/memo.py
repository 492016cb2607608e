"""What is made of nouns, each once."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

_Made = TypeVar("_Made")
_Given = ParamSpec("_Given")


class Memo:
    """What was made of nouns. They never change, and are told by identity."""

    def __init__(self) -> None:
        """Begin with nothing made."""
        self._made: dict[Hashable, tuple[object, Any]] = {}

    def __call__(self, make: Callable[[], _Made], *how: Hashable, of: object = None) -> _Made:
        """Return what is made of a noun in some way, made now if it was not before."""
        key = id(of), *how
        if key not in self._made:
            self._made[key] = of, make()  # a noun that is kept keeps its identity
        made: _Made = self._made[key][1]
        return made


class _Keeping(Protocol):
    @property
    def once(self) -> Memo:
        """What was made of the noun."""


_Noun = TypeVar("_Noun", bound=_Keeping)


def remembered(
    function: Callable[Concatenate[_Noun, _Given], _Made],
) -> Callable[Concatenate[_Noun, _Given], _Made]:
    """Return a function of a noun that keeps the result for each of its arguments."""

    @wraps(function)
    def found(noun: _Noun, /, *given: _Given.args, **named: _Given.kwargs) -> _Made:
        return noun.once(lambda: function(noun, *given, **named), function, *given, *named.items())

    return found


def once_by(
    key: Callable[..., Hashable],
) -> Callable[[Callable[_Given, _Made]], Callable[_Given, _Made]]:
    """Return what lets a method compute results once for equal keys; its object keeps them.

    Args:
        key: takes what the method does, and returns all that its result depends on.
    """

    def with_results(method: Callable[_Given, _Made]) -> Callable[_Given, _Made]:
        @wraps(method)
        def found(*given: _Given.args, **named: _Given.kwargs) -> _Made:
            known: dict[Hashable, _Made] = vars(given[0]).setdefault(method.__qualname__, {})
            own = key(*given, **named)
            if own not in known:
                known[own] = method(*given, **named)
            return known[own]

        return found

    return with_results
