"""Measurements and comparisons as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from eatss.codec import decode, encode
from eatss.diagnostics import input_error
from eatss.measurement.comparison import Comparison
from eatss.measurement.measurement import SCHEMA_VERSION, Measurement

T = TypeVar("T")


def measurement_to_dict(measurement: Measurement) -> dict[str, Any]:
    """Return a measurement as plain JSON types; sizes and tile sizes as lists of pairs."""
    return _version_first(encode(measurement))


def measurement_from_dict(document: Mapping[str, Any]) -> Measurement:
    """Read what :func:`measurement_to_dict` wrote.

    Raises:
        InputError: ``EATSS-E070`` it is of another schema, ``EATSS-E071`` it is damaged.
    """
    return _read(Measurement, document, "measurement")


def comparison_to_dict(comparison: Comparison) -> dict[str, Any]:
    """Return a comparison, with the measurements in it, as plain JSON types."""
    return _version_first(encode(comparison))


def comparison_from_dict(document: Mapping[str, Any]) -> Comparison:
    """Read what :func:`comparison_to_dict` wrote.

    Raises:
        InputError: ``EATSS-E070`` it is of another schema, ``EATSS-E071`` it is damaged.
    """
    return _read(Comparison, document, "comparison")


def _version_first(plain: dict[str, Any]) -> dict[str, Any]:
    return {"schema_version": plain.pop("schema_version"), **plain}


def _read(kind: type[T], document: Any, name: str) -> T:
    version = document.get("schema_version") if isinstance(document, Mapping) else None
    if isinstance(document, Mapping) and version != SCHEMA_VERSION:
        raise input_error(
            "EATSS-E070",
            f"the {name} has schema version {version}, not {SCHEMA_VERSION}",
            hint="measure again with this version of eatss, or read it with the one that wrote it",
        )
    try:
        return decode(kind, document)
    except (KeyError, TypeError, ValueError) as error:
        raise input_error(
            "EATSS-E071",
            f"the {name} is damaged: {_said(error)}",
            hint="measure again, or take the file from where it was copied",
        ) from None


def _said(error: Exception) -> str:
    return f"there is no {error}" if isinstance(error, KeyError) else str(error)
