"""JSON Schemas of what eatss prints and reads, made of the nouns themselves.

The types are those that :mod:`eatss.base.codec` goes by; titles, descriptions and units come from
docstrings and names. pydantic turns types into JSON Schema (draft 2020-12).
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass, is_dataclass
from importlib import import_module
from typing import Any, get_type_hints

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from eatss.base.codec import VERSION, getters, in_order, layout_of
from eatss.base.diagnostics import did_you_mean, input_error

DIALECT = "https://json-schema.org/draft/2020-12/schema"


@dataclass(frozen=True, slots=True)
class Published:
    """A document with a schema: where its noun is (``module:Class``), and what prints it."""

    noun: str
    printed_by: str

    @property
    def kind(self) -> type[Any]:
        """The noun, imported."""
        module, _, name = self.noun.partition(":")
        found: type[Any] = getattr(import_module(module), name)
        return found


PUBLISHED: Mapping[str, Published] = {
    "select": Published("eatss.choose.selection:Selection", "eatss select --format json"),
    "predict": Published("eatss.choose.expectation:ProgramExpectation", "eatss predict"),
    "codegen": Published("eatss.report.selection:PrintedPlan", "eatss codegen --format json"),
    "plan": Published("eatss.program.plan:Program", "eatss codegen, as plan.json of a folder"),
    "recipe": Published("eatss.lower.recipe:Recipe", "eatss codegen --save-recipe"),
    "verify": Published("eatss.verify.result:Verifications", "eatss verify --format json"),
    "measure": Published(
        "eatss.measurement.measurement:Measurements", "eatss measure --format json"
    ),
    "measurement": Published(
        "eatss.measurement.measurement:Measurement", "eatss measure, one of its list"
    ),
    "comparison": Published(
        "eatss.measurement.requirement:JudgedComparison", "eatss compare --format json"
    ),
    "cache": Published("eatss.base.cache:Contents", "eatss cache ls --format json"),
    "meter": Published("eatss.measurement.foreign:ProgramEnergy", "eatss meter --format json"),
    "results": Published("eatss.tune.rows:Summaries", "eatss results ls --format json"),
    "sweep": Published("eatss.tune.rows:Sweep", "eatss results export, show --format json"),
    "prepared": Published(
        "eatss.tune.campaign:Prepared", "eatss sweep --prepare, as sweep.json of a folder"
    ),
    "report": Published("eatss.tune.evaluation:SweepReport", "eatss report --format json"),
    "replay": Published("eatss.tune.replay:Replay", "eatss sweep --replay --format json"),
    "doctor": Published("eatss.report.cards:Examination", "eatss doctor --format json"),
    "kernels": Published("eatss.base.shipped:ShippedKernels", "eatss kernels --format json"),
    "diagnostics": Published("eatss.report.diagnostics:Findings", "--diagnostics json, on stderr"),
}
"""The documents with a schema, by name."""

_UNITS: Mapping[str, str] = {
    "s": "seconds",
    "j": "joules",
    "w": "watts",
    "mhz": "MHz",
    "c": "degrees Celsius",
    "bytes": "bytes",
}
_ROLE = re.compile(r":\w+:`~?([^`]*)`")
_ATTRIBUTE = re.compile(r"^    (\w+): (.+(?:\n {8}.+)*)", re.MULTILINE)
_SENTENCE_END = re.compile(r"(?<=[.])\s+(?=[A-Z`])")
_SECTION = re.compile(r"\n\s*(?:Raises|Args|Returns):")


def schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema of a document: ``select``, ``plan``, … as ``eatss schema`` lists them.

    Args:
        name: Of the document.

    Raises:
        InputError: ``EATSS-C020``, there is none of this name.
    """
    if name not in PUBLISHED:
        raise input_error(
            "EATSS-C020",
            f"there is no schema '{name}'",
            hint=did_you_mean(name, PUBLISHED, "choose one of"),
        )
    kind = PUBLISHED[name].kind
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
        about, fields = _described(kind)
        order = in_order(kind)
        entries = {name: plain["properties"][name] for name in order}
        plain["required"] = [name for name in order if name in plain.get("required", ())]
        if layout.shape == "value":
            return {"title": kind.__name__, "description": about, **next(iter(entries.values()))}
        if layout.shape == "list":
            *leading, rest = entries.values()
            return {
                "title": kind.__name__,
                "description": about,
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
            "title": kind.__name__,
            "description": about,
            "type": "object",
            "properties": {one: _with_text(one, part, fields) for one, part in entries.items()},
            "required": required,
        }


def _with_text(name: str, part: Mapping[str, Any], texts: Mapping[str, str]) -> dict[str, Any]:
    """Return the schema of a field with what is said of it, and its unit."""
    unit = _UNITS.get(name.rpartition("_")[2]) if "_" in name else None
    said = texts.get(name, part.get("description", ""))
    told = unit is None or unit.lower() in said.lower()
    text = " ".join(filter(None, (said, "" if told else f"In {unit}.")))
    return {**part, "description": text} if text else dict(part)


def _described(kind: type) -> tuple[str, dict[str, str]]:
    """Return what the docstring says of a noun, and of each of its fields: by sentences."""
    assert is_dataclass(kind)
    doc = _SECTION.split(inspect.getdoc(kind) or "")[0]
    doc, _, listed = doc.partition("\nAttributes:\n")
    names = kind.__dataclass_fields__
    own: list[str] = []
    of_fields: dict[str, list[str]] = {}
    others = (_described(base)[1] for base in kind.__bases__ if is_dataclass(base))
    inherited = {name: text for base in others for name, text in base.items()}
    for sentence in _SENTENCE_END.split(" ".join(doc.split())):
        named = [name for name in names if f"``{name}``" in sentence]
        for name in named:
            of_fields.setdefault(name, []).append(_plain_text(sentence))
        if not named:
            own.append(_plain_text(sentence))
    for name, text in _ATTRIBUTE.findall(listed):
        of_fields.setdefault(name, []).append(_plain_text(text))
    return " ".join(own), inherited | {name: " ".join(said) for name, said in of_fields.items()}


def _plain_text(doc: str | None) -> str:
    """Return text of a docstring without the marks of its markup."""
    return (
        _ROLE.sub(r"`\1`", " ".join((doc or "").split()))
        .replace("``None``", "`null`")
        .replace("``", "`")
    )
