"""Nouns as plain JSON types, and back: one codec, led by the types of their fields.

A noun is an object of its fields, a tuple a list, a member of an enumeration its value. What is
otherwise says so itself: a field by :data:`BY_NAME`, a noun by a :class:`JsonForm`. The JSON
Schemas (:mod:`eatss.base.schemas`) come from the same types. The standard library is enough, so
that programs are read and measurements written on machines that have little else.
"""

from __future__ import annotations

import json
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from functools import cache
from reprlib import repr as brief
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from eatss.base.diagnostics import InputError, input_error
from eatss.base.frozen import frozen

T = TypeVar("T")

JsonObject: TypeAlias = dict[str, Any]
"""An object of JSON, of plain types."""

VERSION = "schema_version"
"""The field that stands first in its object."""


class MisfitError(ValueError):
    """A value that does not fit its type; ``where`` is its place, such as ``.kernels[0].name``."""

    def __init__(self, why: str, where: str = "") -> None:
        super().__init__(f"{where.lstrip('.')}: {why}" if where else why)
        self.why = why
        self.where = where


@frozen
class JsonForm:
    """How a noun stands in JSON, as its ``json_layout``, where it is no object of all its fields.

    ``shape`` is ``value`` for a noun that is its only field, ``list`` for a list of the fields
    that goes on with what the last of them, a tuple, holds. ``tag``, a name and a word, tells a
    noun from the others of a union. ``also`` are properties, or functions of the noun, that are
    written with the fields and not read; ``apart`` are fields that are kept elsewhere. In a
    ``closed`` noun, and all that it holds, other names are refused.
    """

    shape: Literal["object", "value", "list"] = "object"
    tag: tuple[str, str] | None = None
    also: tuple[str | Callable[[Any], Any], ...] = ()
    apart: tuple[str, ...] = ()
    closed: bool = False


class ByName:
    """The mark :data:`BY_NAME`."""

    def encode(self, value: tuple[Any, ...]) -> JsonObject:
        """Return pairs, or nouns, as an object."""
        return dict(map(_named, encode(value)))

    def decode(self, kind: Any, value: Any) -> tuple[Any, ...]:
        """Return an object as the tuple it was made of."""
        item = get_args(kind)[0]
        named = _object(value).items()
        if not is_dataclass(item):
            return tuple((name, _part(f".{name}", get_args(item)[1], one)) for name, one in named)
        first = fields(item)[0].name
        return tuple(_part(f".{name}", item, {first: name, **_object(one)}) for name, one in named)

    def __get_pydantic_json_schema__(self, core: Any, handler: Any) -> JsonObject:
        """Return the JSON Schema of the object."""
        item = handler.resolve_ref_schema(handler(core)["items"])
        if "prefixItems" in item:
            return {"type": "object", "additionalProperties": item["prefixItems"][1]}
        first, *rest = item["properties"]
        noun = item | {
            "properties": {name: item["properties"][name] for name in rest},
            "required": [name for name in item["required"] if name != first],
        }
        return {"type": "object", "additionalProperties": noun}


BY_NAME = ByName()
"""Marks a field whose tuple of pairs, or of nouns, is an object: by the first of each, in order."""


def encode(value: Any) -> Any:
    """Return a noun as plain JSON types."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple | list):
        return [encode(item) for item in value]
    if isinstance(value, Mapping):
        return {key: encode(item) for key, item in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return _encode_noun(value)
    return value


def decode(kind: type[T], value: Any) -> T:
    """Return plain JSON types as the noun ``kind``; a field with a default may be absent.

    Raises:
        MisfitError: a field is missing, or a value has the wrong type, or is none of the choices.
    """
    found: T = _decode(kind, value)
    return found


def layout_of(kind: type) -> JsonForm:
    """Return how a noun stands in JSON."""
    found: JsonForm = getattr(kind, "json_layout", _PLAIN)
    return found


def getters(kind: type) -> Mapping[str, Callable[[Any], Any]]:
    """Return what is written of a noun besides its fields, by name."""
    return {
        one: getattr(kind, one).fget for one in layout_of(kind).also if isinstance(one, str)
    } | {one.__name__: one for one in layout_of(kind).also if not isinstance(one, str)}


def unknown(given: Any, known: Any, where: str = "") -> Iterator[str]:
    """Yield the places of the names in ``given`` that ``known``, both plain, does not have.

    What decides nothing may have been a choice once.
    """
    if isinstance(given, Mapping) and isinstance(known, Mapping):
        for name, value in given.items():
            if name in known:
                yield from unknown(value, known[name], f"{where}.{name}")
            elif value is not None:
                yield f"{where}.{name}".lstrip(".")
    elif isinstance(given, list | tuple) and isinstance(known, list | tuple):
        for at, (value, own) in enumerate(zip(given, known, strict=False)):
            yield from unknown(value, own, f"{where}[{at}]")


_PLAIN = JsonForm()


@frozen
class _Entry:
    """A field: its name, its type without the mark, the mark, and whether it has to be there."""

    name: str
    kind: Any
    mark: ByName | None
    required: bool


@cache
def _entries(kind: type) -> tuple[_Entry, ...]:
    """Return the fields of a noun in the order of JSON: its version, its own, those of others."""
    hints, found = get_type_hints(kind, include_extras=True), []
    for field in in_order(kind):
        hint, mark = hints[field.name], None
        if get_origin(hint) is Annotated:
            hint, *marks = get_args(hint)
            mark = BY_NAME if BY_NAME in marks else None
        required = field.default is MISSING and field.default_factory is MISSING
        found.append(_Entry(name=field.name, kind=hint, mark=mark, required=required))
    return tuple(found)


def in_order(kind: Any) -> list[Field[Any]]:
    """Return the fields of a noun in the order of JSON."""
    own = kind.__annotations__
    return sorted(fields(kind), key=lambda one: (one.name != VERSION, one.name not in own))


def _encode_noun(noun: Any) -> Any:
    kind: type = type(noun)
    layout = layout_of(kind)
    plain = {
        name: encode(value) if mark is None else mark.encode(value)
        for name, mark, value in (
            (entry.name, entry.mark, getattr(noun, entry.name)) for entry in _entries(kind)
        )
        if name not in layout.apart
    }
    if layout.shape == "value":
        return next(iter(plain.values()))
    if layout.shape == "list":
        *leading, rest = plain.values()
        return [*leading, *rest]
    tag = {} if layout.tag is None else dict([layout.tag])
    derived = {name: encode(of(noun)) for name, of in getters(kind).items()}
    return {**tag, **plain, **derived}


def _named(plain: Any) -> tuple[str, Any]:
    """Return a pair, or an object by its first entry."""
    if isinstance(plain, list):
        name, value = plain
        return name, value
    (_, name), *rest = plain.items()
    return name, dict(rest)


def _part(step: str, kind: Any, value: Any, mark: ByName | None = None) -> Any:
    """Return a part of a value as ``kind``; ``step`` leads to it."""
    try:
        return _decode(kind, value) if mark is None else mark.decode(kind, value)
    except MisfitError as error:
        raise MisfitError(error.why, step + error.where) from None


def _decode(kind: Any, value: Any) -> Any:
    reader = _READERS.get(get_origin(kind))
    if reader is not None:
        return reader(get_args(kind), value)
    return _decode_noun(kind, value) if is_dataclass(kind) else _decode_plain(kind, value)


def _decode_tuple(parts: Sequence[Any], value: Any) -> tuple[Any, ...]:
    items = _list(value)
    if parts[1:] == (Ellipsis,):
        parts = [parts[0]] * len(items)
    if len(parts) != len(items):
        raise MisfitError(f"{brief(value)} has {len(items)} entries, not {len(parts)}")
    return tuple(_part(f"[{at}]", *pair) for at, pair in enumerate(zip(parts, items, strict=True)))


def _fitting(kind: Any, value: Any, what: str) -> Any:
    if not isinstance(value, kind):
        raise MisfitError(f"{brief(value)} is no {what}")
    return value


def _list(value: Any) -> Sequence[Any]:
    return _fitting(list | tuple, value, "list")  # type: ignore[no-any-return]


def _object(value: Any) -> Mapping[str, Any]:
    return _fitting(Mapping, value, "object")  # type: ignore[no-any-return]


def _decode_mapping(parts: tuple[Any, ...], value: Any) -> dict[Any, Any]:
    return {
        _decode(parts[0], key): _part(f".{key}", parts[1], item)
        for key, item in _object(value).items()
    }


def _decode_choice(choices: tuple[Any, ...], value: Any) -> Any:
    if not any(value == choice and type(value) is type(choice) for choice in choices):
        raise MisfitError(f"{brief(value)} is none of {', '.join(map(repr, choices))}")
    return value


def _decode_union(kinds: tuple[Any, ...], value: Any) -> Any:
    """Return ``None``, the noun whose tag there is, or the first of several types that fits."""
    present = [kind for kind in kinds if kind is not types.NoneType]
    if value is None and len(present) < len(kinds):
        return None
    tagged = {tag[1]: (tag[0], kind) for kind in present if (tag := layout_of(kind).tag)}
    if tagged:
        ((name, _), *_) = tagged.values()
        word = _part(f".{name}", Literal[*tagged], _object(value).get(name))
        return _decode(tagged[word][1], value)
    for kind in present[:-1]:
        with suppress(MisfitError):
            return _decode(kind, value)
    return _decode(present[-1], value)


_READERS: Mapping[Any, Callable[[tuple[Any, ...], Any], Any]] = {
    tuple: _decode_tuple,
    dict: _decode_mapping,
    Mapping: _decode_mapping,
    Literal: _decode_choice,
    Union: _decode_union,
    types.UnionType: _decode_union,
}


def _decode_plain(kind: Any, value: Any) -> Any:
    if kind is Any:
        return value
    if issubclass(kind, Enum):
        return kind(_decode_choice(tuple(one.value for one in kind), value))
    if kind in (int, float) and isinstance(value, bool):
        raise MisfitError(f"{value} is no {kind.__name__}")
    if kind is float and isinstance(value, int):
        return float(value)
    return _fitting(kind, value, kind.__name__)


def _decode_noun(kind: Any, value: Any) -> Any:
    layout, entries = layout_of(kind), _entries(kind)
    if layout.shape == "value":
        return kind(_decode(entries[0].kind, value))
    if layout.shape == "list":
        return _decode_list(kind, entries, value)
    given = {}
    for entry in entries:
        if entry.name in _object(value):
            part = value[entry.name]
            given[entry.name] = _part(f".{entry.name}", entry.kind, part, entry.mark)
        elif entry.required:
            raise MisfitError(f"there is no '{entry.name}'")
    return kind(**given)


def _decode_list(kind: Any, entries: tuple[_Entry, ...], value: Any) -> Any:
    *leading, rest = entries
    others = len(_list(value)) - len(leading)
    found = _decode_tuple(
        [*(one.kind for one in leading), *get_args(rest.kind)[:1] * others], value
    )
    return kind(*found[: len(leading)], found[len(leading) :])


@frozen
class Document(Generic[T]):
    """A noun as a JSON document that is written and read.

    ``title`` is its name in messages. ``other_version`` and ``damaged`` are the codes of errors,
    ``hint`` says how to come by a good one.
    """

    title: str
    kind: type[T]
    other_version: str
    damaged: str
    hint: str

    @property
    def version(self) -> int:
        """The version that is written and read: what ``schema_version`` is by default."""
        defaults: JsonObject = {one.name: one.default for one in fields(self.kind)}  # type: ignore[arg-type]
        version: int = defaults[VERSION]
        return version

    def to_dict(self, noun: T) -> JsonObject:
        """Return a noun as plain JSON types."""
        plain: JsonObject = encode(noun)
        return plain

    def to_text(self, noun: T) -> str:
        """Return a noun as the text of a file, in ASCII."""
        return json.dumps(self.to_dict(noun), indent=2) + "\n"

    def from_dict(self, document: Any, **apart: Any) -> T:
        """Read what :meth:`to_dict` wrote, and ``apart``, the fields that are kept elsewhere.

        Raises:
            InputError: the document has another version, or is damaged.
        """
        found = document.get(VERSION) if isinstance(document, Mapping) else self.version
        if found != self.version:
            raise input_error(
                self.other_version,
                f"the {self.title} has schema version {found}, not {self.version}",
                hint=self.hint,
            )
        try:
            noun = decode(self.kind, {**document, **apart} if apart else document)
            if layout_of(self.kind).closed:
                for name in unknown(document, encode(noun)):
                    raise MisfitError(f"nothing in it is called '{name}'")
        except (MisfitError, RecursionError) as error:
            why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
            raise self.damage(why) from None
        return noun

    def damage(self, why: str) -> InputError:
        """Return the error of a document that cannot be read."""
        return input_error(self.damaged, f"the {self.title} is damaged: {why}", hint=self.hint)


def json_text(noun: Any) -> str:
    """Return a noun as JSON to print."""
    return json.dumps(encode(noun), indent=2, ensure_ascii=False) + "\n"
