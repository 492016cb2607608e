"""Documents: nouns that stand alone as JSON, with a version, and what is said of damaged ones."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Generic, TypeVar

from eatss.codec import VERSION, MisfitError, decode, encode, layout_of, unknown
from eatss.diagnostics import InputError, input_error

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
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
        defaults: dict[str, Any] = {one.name: one.default for one in fields(self.kind)}  # type: ignore[arg-type]
        version: int = defaults[VERSION]
        return version

    def to_dict(self, noun: T) -> dict[str, Any]:
        """Return a noun as plain JSON types."""
        plain: dict[str, Any] = encode(noun)
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
