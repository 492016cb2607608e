"""JSON Schemas of what eatss prints and reads, made of the nouns themselves.

The types are those that :mod:`eatss.base.codec` goes by; titles and descriptions of nouns come from
their docstrings. pydantic turns types into JSON Schema (draft 2020-12).
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from pkgutil import resolve_name
from typing import Any, get_type_hints

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from eatss.base.codec import VERSION, JsonObject, getters, in_order, layout_of
from eatss.base.diagnostics import did_you_mean, input_error
from eatss.base.frozen import their_names

DIALECT = "https://json-schema.org/draft/2020-12/schema"


PUBLISHED: Mapping[str, str] = {
    "select": "eatss.choose.selection:Selection",
    "plan": "eatss.program.plan:Program",
    "recipe": "eatss.lower.recipe:Recipe",
    "measurement": "eatss.measurement.measurement:Measurement",
}
"""The nouns (``module:Class``) of documents with a schema, by name."""

_ROLE = re.compile(r":\w+:`~?([^`]*)`")
_SECTION = re.compile(r"\n\s*(?:Attributes|Raises|Args|Returns):")


def schema(name: str) -> JsonObject:
    """Return the JSON Schema of a document: as ``eatss schema`` lists them.

    Args:
        name: Of the document.

    Raises:
        InputError: ``EATSS-C017``, there is none of this name.
    """
    if name not in PUBLISHED:
        raise input_error(
            "EATSS-C017",
            f"there is no schema '{name}'",
            hint=did_you_mean(name, PUBLISHED, "choose one of"),
        )
    kind = resolve_name(PUBLISHED[name])
    found = TypeAdapter(kind).json_schema(schema_generator=_Generator)
    if VERSION in found["properties"]:
        found["required"] = [VERSION, *found.get("required", ())]
    if layout_of(kind).closed:
        _close(found)
    return {"$schema": DIALECT, **found}


def _close(part: Any) -> None:
    """Refuse other names in all objects of a schema."""
    if isinstance(part, dict):
        if "properties" in part and part.get("type") == "object":
            part["additionalProperties"] = False
        for inner in part.values():
            _close(inner)


class _Generator(GenerateJsonSchema):
    """Lays nouns out as :mod:`eatss.base.codec` does, and describes them by their docstrings."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Leave titles to nouns."""
        del schema
        return False

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> JsonSchemaValue:
        """Return the schema of a noun."""
        kind = schema["cls"]
        layout, plain = layout_of(kind), super().dataclass_schema(schema)
        about = _plain_text(_SECTION.split(inspect.getdoc(kind) or "")[0])
        head = {"title": kind.__name__, "description": about}
        order = their_names(in_order(kind))
        entries = {name: plain["properties"][name] for name in order}
        plain["required"] = [name for name in order if name in plain.get("required", ())]
        if layout.shape == "value":
            return {**head, **next(iter(entries.values()))}
        if layout.shape == "list":
            *leading, rest = entries.values()
            return {
                **head,
                "type": "array",
                "prefixItems": leading,
                "minItems": len(leading),
                "items": rest["items"],
            }
        if VERSION in entries:
            version = entries.pop(VERSION)["default"]
            entries = {VERSION: {"type": "integer", "const": version}, **entries}
        if layout.tag is not None:
            entries = {layout.tag[0]: {"const": layout.tag[1]}, **entries}
            plain["required"] = [layout.tag[0], *plain["required"]]
        for derived, getter in getters(kind).items():
            found = TypeAdapter(get_type_hints(getter)["return"]).json_schema()
            entries[derived] = {**found, "description": _plain_text(getter.__doc__)}
        for apart in layout.apart:
            del entries[apart]
        required = [one for one in plain["required"] if one not in layout.apart]
        return {
            **head,
            "type": "object",
            "properties": entries,
            "required": required,
        }


def _plain_text(doc: str | None) -> str:
    """Return text of a docstring without the marks of its markup."""
    return (
        _ROLE.sub(r"`\1`", " ".join((doc or "").split()))
        .replace("``None``", "`null`")
        .replace("``", "`")
    )
