"""Profile documents (plain JSON or TOML types) to ``GpuProfile`` and back.

TOML files and plain documents go through the same validation, whose first finding is told with its
place in the file: G005 the text is no TOML, or what it holds is no profile (unknown or missing
keys, wrong types, units or ranges, contradictions, sources and notes that lead nowhere).

``tomllib`` keeps no positions: where a key stands is found by looking for each part of its path
behind the one before.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from eatss.base.codec import JsonObject, MisfitError, decode, encode, in_order, unknown
from eatss.base.diagnostics import Diagnostic, InputError, SourceSpan, did_you_mean
from eatss.base.frozen import Names, frozen, their_names
from eatss.base.text import BYTES_OF_UNIT, Texts
from eatss.cards.profile import (
    COEFFICIENTS,
    FIGURES,
    FIGURES_IN_WORDS,
    SCHEMA_VERSION,
    TABLES,
    Calibration,
    Coefficients,
    GpuProfile,
    Source,
)

T = TypeVar("T")


@frozen
class Origin:
    """What a document was read from: ``text`` is there when it came from a file."""

    label: str
    text: str | None = None


def finding(
    code: str, message: str, path: Texts, origin: Origin, hint: str | None = None
) -> Diagnostic:
    """Return a finding about the key ``path``, with its place where the origin is a file.

    Where the key is not found, that is the nearest key or table around it.
    """
    lines, span = (origin.text or "").splitlines(), None
    table = 0
    for key in path:
        form = re.compile(rf"(?:^|[\[{{,.])\s*(?P<key>[\"']?{re.escape(key)}[\"']?)\s*[=.\]]")
        found = ((n, m) for n, line in enumerate(lines[table:], table) if (m := form.search(line)))
        table, match = next(found, (table, None))
        if match is None:
            break
        span = SourceSpan.in_line(
            origin.label, table + 1, match.start("key") + 1, len(match["key"])
        )
    if span is None:
        return Diagnostic(code=code, message=f"{origin.label}: {message}", hint=hint)
    return Diagnostic(
        code=code, message=message, span=span, source_line=lines[span.line - 1], hint=hint
    )


def misfit(code: str, error: MisfitError, origin: Origin) -> Diagnostic:
    """Return the finding about what does not fit in a document; a hint stands behind ``; ``."""
    where = error.where.strip(".")
    path = tuple(filter(None, re.split(r"[.\[\]]+", where)))
    message, _, hint = error.why.partition("; ")
    told = f"{where}: {message}" if where else message
    return finding(code, told, path, origin, hint or None)


def shaped(kind: type[T], document: Any) -> T:
    """Return the noun of a document, which has no keys besides.

    Raises:
        MisfitError: it is no such noun.
    """
    shape = decode(kind, document)
    for place in unknown(document, encode(shape)):
        meant = did_you_mean(place.rpartition(".")[2], their_names(in_order(kind)))
        raise MisfitError(f"there is no such key; {meant}", place)
    return shape


def parsed_toml(text: str, label: str, code: str) -> JsonObject:
    """Return what a TOML text holds.

    Raises:
        InputError: of the given code, with the place where it is no TOML.
    """
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        said, lines = str(error), text.splitlines() or [""]
    found = re.search(r"\(at line (\d+), column (\d+)\)$", said)
    line, column = map(int, found.groups()) if found else (len(lines), 1)
    line = min(line, len(lines))
    raise InputError(
        Diagnostic(
            code=code,
            message=f"not valid TOML: {said.rpartition(' (at ')[0] or said}",
            span=SourceSpan.in_line(label, line, column),
            source_line=lines[line - 1],
        )
    )


WHOLE_WARPS = ("threads_per_block", "max_threads_per_sm")


def contradictions(figures: Coefficients) -> Iterator[tuple[str, str]]:
    """Yield what cannot hold among ``figures``: the one to point at, and why; some may be absent.

    ``figures`` are values by the names of fields.
    """
    for small, large in TABLES["ordered"]:
        if small in figures and large in figures and figures[small] > figures[large]:
            less, more = figures[small], figures[large]
            yield small, f"{small} = {less:.15g} cannot be more than {large} = {more:.15g}"
    warp = figures.get("threads_per_warp")
    for field in WHOLE_WARPS:
        if warp and (threads := figures.get(field, 0)) % warp:
            yield field, f"{field} = {threads} is not a multiple of threads_per_warp = {warp}"


@frozen
class _Figure:
    value: Any
    source: str


@frozen
class _Source:
    title: str
    url: str | None = None


@frozen
class _Document:
    schema_version: int
    name: str
    title: str
    architecture: str
    compute_capability: str
    figures: Mapping[str, _Figure]
    sources: Mapping[str, _Source]
    aliases: Names = ()
    notes: Mapping[str, str] | None = None
    calibration: Calibration | None = None


_PLAIN = Origin(label="profile")
_NAME = re.compile(r"[a-z0-9]([a-z0-9._-]*[a-z0-9])?")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]iB|B)", re.ASCII)


def profile_from_document(document: Mapping[str, Any], origin: Origin = _PLAIN) -> GpuProfile:
    """Validate a document and return its profile; findings name ``origin``.

    Raises:
        InputError: ``EATSS-G005``, the document is wrong.
    """
    try:
        return _read(document)
    except MisfitError as error:
        raise InputError(misfit("EATSS-G005", error, origin)) from None
    except RecursionError:
        raise InputError(finding("EATSS-G005", "it is nested too deeply", (), origin)) from None


def _read(document: Any) -> GpuProfile:
    shape = shaped(_Document, document)
    if shape.schema_version != SCHEMA_VERSION:
        why = f"it is {shape.schema_version}; this eatss reads {SCHEMA_VERSION}"
        raise MisfitError(why, "schema_version")
    for name in (shape.name, *shape.aliases):
        if not _NAME.fullmatch(name):
            raise MisfitError(
                f"{name!r} has more than lower-case letters, digits and . _ -", "name"
            )
    if len({shape.name, *shape.aliases}) <= len(shape.aliases):
        raise MisfitError("the profile calls itself the same more than once", "aliases")
    if not re.fullmatch(r"\d{1,2}\.\d", shape.compute_capability):
        raise MisfitError('it is written as "9.0"', "compute_capability")
    major, minor = shape.compute_capability.split(".")
    values = _figures(shape)
    notes, measured = shape.notes or {}, shape.calibration
    _known("notes", notes, GpuProfile.__dataclass_fields__)
    if measured is not None:
        _known("calibration.coefficients", dict(measured.coefficients), COEFFICIENTS)
        if not all(0 <= one.value <= 1e12 for _, one in measured.coefficients):
            raise MisfitError("a value is none that was measured", "calibration.coefficients")
    return GpuProfile(
        name=shape.name,
        title=shape.title,
        aliases=shape.aliases,
        architecture=shape.architecture,
        compute_capability=(int(major), int(minor)),
        sources=tuple((name, shape.figures[name].source) for name in values),
        bibliography=tuple(
            Source(key=key, title=one.title, url=one.url) for key, one in shape.sources.items()
        ),
        notes=tuple(notes.items()),
        calibration=measured,
        **{name: values.get(name) for name in FIGURES},  # type: ignore[arg-type]
    )


def _figures(shape: _Document) -> JsonObject:
    """Return the figures in order of display, each within what a card can have."""
    _known("figures", shape.figures, FIGURES)
    values: JsonObject = {}
    for name in FIGURES:
        place, figure = f"figures.{name}", shape.figures.get(name)
        if figure is not None:
            values[name] = _value(place, FIGURES_IN_WORDS[name][1], figure.value)
            if figure.source not in shape.sources:
                known = ", ".join(shape.sources) or "none"
                why = f'[sources] has no "{figure.source}"; known: {known}'
                raise MisfitError(why, f"{place}.source")
        elif GpuProfile.__dataclass_fields__[name].type in ("int", "float"):
            raise MisfitError(
                f'{name} is missing; {name} = {{ value = …, source = "…" }}', "figures"
            )
    for name, why in contradictions(values):
        raise MisfitError(why, f"figures.{name}")
    return values


def _known(table: str, given: Mapping[str, Any], names: Any) -> None:
    for name in given:
        if name not in names:
            raise MisfitError(
                f"there is no such key; {did_you_mean(name, names)}", f"{table}.{name}"
            )


def _value(place: str, unit: str, given: Any) -> Any:
    least, most = TABLES["ranges"][unit]
    if unit in BYTES_OF_UNIT and isinstance(given, str):
        size = _SIZE.fullmatch(given)
        amount = float(size[1]) * {"B": 1, **BYTES_OF_UNIT}[size[2]] if size else 0.5
        if amount % 1:
            raise MisfitError(f'"{given}" is no size; write bytes, or a text as "192 KiB"', place)
        given = int(amount)
    try:
        value = decode(type(least), given)
    except MisfitError as error:
        raise MisfitError(error.why, place) from None
    if not least <= value <= most:
        unit = "bytes" if unit in BYTES_OF_UNIT else unit
        why = f"it is {value:.15g}, but a card has {least:.15g} to {most:.15g} {unit}".rstrip()
        raise MisfitError(why, place)
    return value


def profile_to_document(profile: GpuProfile) -> JsonObject:
    """Return the document of a profile; ``profile_from_document`` is its inverse."""
    sources = dict(profile.sources)
    figures = {
        field: {"value": getattr(profile, field), "source": sources[field]}
        for field in FIGURES
        if getattr(profile, field) is not None
    }
    bibliography = {
        source.key: {"title": source.title} | ({} if source.url is None else {"url": source.url})
        for source in profile.bibliography
    }
    calibration = profile.calibration
    measured = {} if calibration is None else {"calibration": calibration_to_document(calibration)}
    return {
        "schema_version": SCHEMA_VERSION,
        "name": profile.name,
        "title": profile.title,
        "aliases": list(profile.aliases),
        "architecture": profile.architecture,
        "compute_capability": profile.capability,
        "figures": figures,
        "sources": bibliography,
        "notes": dict(profile.notes),
    } | measured


def calibration_to_document(calibration: Calibration) -> JsonObject:
    """Return the table ``[calibration]`` of a profile; what is ``None`` is left out."""
    document: JsonObject = encode(calibration)
    for one in document["coefficients"].values():
        if one["spread"] is None:
            del one["spread"]
    return document
