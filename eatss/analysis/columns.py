"""Nouns whose numbers are columns: all of them changed at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

Noun = TypeVar("Noun")

FIXED = {"fixed": True}
"""Metadata of a field that has no columns."""


def mapped(change: Callable[..., Any], noun: Noun, *others: Noun) -> Noun:
    """Return a noun with ``change`` made of each column: ``mapped(lambda one: one[rows], demand)``.

    With ``others``, which are alike but for their numbers, ``change`` gets those of all.
    """
    return _mapped(change, noun, *others)  # type: ignore[no-any-return]


def _mapped(change: Callable[..., Any], value: Any, *others: Any) -> Any:
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, tuple):
        return tuple(_mapped(change, *parts) for parts in zip(value, *others, strict=True))
    if isinstance(value, Mapping):
        return {key: _mapped(change, value[key], *(one[key] for one in others)) for key in value}
    if is_dataclass(value) and not isinstance(value, type):
        names = [one.name for one in fields(value) if not one.metadata.get("fixed")]
        parts = {
            name: _mapped(change, *(getattr(one, name) for one in (value, *others)))
            for name in names
        }
        return replace(value, **parts)
    return change(value, *others)
