"""Frozen dataclasses as plain JSON types, and back."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import lru_cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")


def encode(value: Any) -> Any:
    """Return a noun as plain JSON types."""
    if isinstance(value, tuple | list):
        return [encode(item) for item in value]
    if isinstance(value, Mapping):
        return {key: encode(item) for key, item in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: encode(getattr(value, field.name)) for field in fields(value)}
    return value


def decode(kind: type[T], value: Any) -> T:
    """Return plain JSON types as the noun ``kind``; a field with a default may be absent.

    Raises:
        KeyError: a field is missing.
        TypeError: a value has the wrong type.
        ValueError: a value is none of the choices, or a tuple has the wrong length.
    """
    found: T = _decode(kind, value)
    return found


def _decode(kind: Any, value: Any) -> Any:
    reader = _READERS.get(get_origin(kind))
    if reader is not None:
        return reader(get_args(kind), value)
    return _decode_noun(kind, value) if is_dataclass(kind) else _decode_plain(kind, value)


def _decode_tuple(parts: tuple[Any, ...], value: Any) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise TypeError(f"{value!r} is no list")
    if len(parts) == 2 and parts[1] is Ellipsis:
        return tuple(_decode(parts[0], item) for item in value)
    return tuple(_decode(part, item) for part, item in zip(parts, value, strict=True))


def _decode_mapping(parts: tuple[Any, ...], value: Any) -> dict[Any, Any]:
    if not isinstance(value, Mapping):
        raise TypeError(f"{value!r} is no object")
    return {_decode(parts[0], key): _decode(parts[1], item) for key, item in value.items()}


def _decode_choice(choices: tuple[Any, ...], value: Any) -> Any:
    if not any(value == choice and type(value) is type(choice) for choice in choices):
        raise ValueError(f"{value!r} is none of {', '.join(map(repr, choices))}")
    return value


def _decode_union(kinds: tuple[Any, ...], value: Any) -> Any:
    """Return ``None``, or a value of the type, or of the first of several that it has."""
    present = [kind for kind in kinds if kind is not types.NoneType]
    if value is None and len(present) < len(kinds):
        return None
    for kind in present[:-1]:
        with suppress(KeyError, TypeError, ValueError):
            return _decode(kind, value)
    return _decode(present[-1], value)


_READERS: Mapping[Any, Callable[[tuple[Any, ...], Any], Any]] = {
    tuple: _decode_tuple,
    Mapping: _decode_mapping,
    Literal: _decode_choice,
    Union: _decode_union,
    types.UnionType: _decode_union,
}


def _decode_plain(kind: Any, value: Any) -> Any:
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, kind) or (kind in (int, float) and isinstance(value, bool)):
        raise TypeError(f"{value!r} is no {kind.__name__}")
    return value


@lru_cache
def _hints(kind: type) -> Mapping[str, Any]:
    return get_type_hints(kind)


def _decode_noun(kind: Any, value: Any) -> Any:
    if not isinstance(value, Mapping):
        raise TypeError(f"{value!r} is no object")
    hints = _hints(kind)
    given = {field.name: value[field.name] for field in fields(kind) if _is_given(field, value)}
    return kind(**{name: _decode(hints[name], item) for name, item in given.items()})


def _is_given(field: Field[Any], value: Mapping[str, Any]) -> bool:
    """Return whether a field has a value; one with a default may be absent."""
    required = field.default is MISSING and field.default_factory is MISSING
    return required or field.name in value
