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
from collections.abc import Mapping
from math import inf
from typing import Annotated, Any, TypeVar

from eatss.base.codec import BY_NAME, JsonObject, MisfitError, decode, encode, in_order, unknown
from eatss.base.diagnostics import Diagnostic, InputError, SourceSpan, did_you_mean
from eatss.base.frozen import Names, frozen, their_names
from eatss.base.text import BYTES_OF_UNIT, NamedTexts, Texts
from eatss.cards.profile import (
    COEFFICIENTS,
    FIGURES,
    FIGURES_IN_WORDS,
    SCHEMA_VERSION,
    TABLES,
    Calibration,
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
    lines, span, first = (origin.text or "").splitlines(), None, 0
    for key in path:
        form = re.compile(rf"(?:^|[\[{{,.])\s*([\"']?{re.escape(key)}[\"']?)\s*[=.\]]")
        found = ((n, m) for n in range(first, len(lines)) if (m := form.search(lines[n])))
        first, match = next(found, (first, None))
        if match is None:
            break
        span = SourceSpan.in_line(origin.label, first + 1, match.start(1) + 1, len(match[1]))
    told = message if span else f"{origin.label}: {message}"
    line = lines[span.line - 1] if span else None
    return Diagnostic(code=code, message=told, span=span, source_line=line, hint=hint)


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


@frozen
class _Figure:
    name: str
    value: Any
    source: str


@frozen
class _Document:
    schema_version: int
    name: str
    title: str
    architecture: str
    compute_capability: str
    figures: Annotated[tuple[_Figure, ...], BY_NAME]
    sources: Annotated[tuple[Source, ...], BY_NAME]
    aliases: Names = ()
    notes: Annotated[NamedTexts, BY_NAME] = ()
    calibration: Calibration | None = None


_PLAIN = Origin(label="profile")
_NAME = r"[a-z0-9]([a-z0-9._-]*[a-z0-9])?"
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]iB|B)", re.ASCII)


def profile_from_document(document: Mapping[str, Any], origin: Origin = _PLAIN) -> GpuProfile:
    """Validate a document and return its profile; findings name ``origin``.

    Raises:
        InputError: ``EATSS-G005``, the document is wrong.
    """
    try:
        return _read(shaped(_Document, document))
    except MisfitError as error:
        raise InputError(misfit("EATSS-G005", error, origin)) from None
    except RecursionError:
        raise InputError(finding("EATSS-G005", "it is nested too deeply", (), origin)) from None


def _read(shape: _Document) -> GpuProfile:
    own, measured = {shape.name, *shape.aliases}, shape.calibration
    figures = {one.name: one for one in shape.figures}
    _known("figures", figures, FIGURES)
    _known("notes", dict(shape.notes), GpuProfile.__dataclass_fields__)
    coefficients = {} if measured is None else dict(measured.coefficients)
    _known("calibration.coefficients", coefficients, COEFFICIENTS)
    values = {name: _value(figures.get(name), name) for name in FIGURES}
    for place, is_wrong, why in (
        ("schema_version", shape.schema_version != SCHEMA_VERSION,
         f"it is {shape.schema_version}; this eatss reads {SCHEMA_VERSION}"),
        ("name", not all(re.fullmatch(_NAME, one) for one in own),
         f"{shape.name!r}, or an alias, has more than lower-case letters, digits and . _ -"),
        ("aliases", len(own) <= len(shape.aliases),
         "the profile calls itself the same more than once"),
        ("compute_capability", not re.fullmatch(r"\d{1,2}\.\d", shape.compute_capability),
         'it is written as "9.0"'),
        ("calibration.coefficients",
         not all(0 <= one.value <= 1e12 for one in coefficients.values()),
         "a value is none that was measured"),
        *((f"figures.{less}", (values[less] or 0) > (values[more] or inf),
           f"{less} cannot be more than {more}") for less, more in TABLES["ordered"]),
        *((f"figures.{name}.source", one.source not in _keys(shape.sources),
           f'[sources] has no "{one.source}"; known: {", ".join(_keys(shape.sources))}')
          for name, one in figures.items()),
    ):  # fmt: skip
        if is_wrong:
            raise MisfitError(why, place)
    major, minor = shape.compute_capability.split(".")
    return GpuProfile(
        name=shape.name,
        title=shape.title,
        aliases=shape.aliases,
        architecture=shape.architecture,
        compute_capability=(int(major), int(minor)),
        sources=tuple((name, figures[name].source) for name in FIGURES if name in figures),
        bibliography=shape.sources,
        notes=shape.notes,
        calibration=measured,
        **values,
    )


def _keys(sources: tuple[Source, ...]) -> Names:
    """Return what sources are called in a profile."""
    return tuple(one.key for one in sources)


def _known(table: str, given: Mapping[str, Any], names: Any) -> None:
    for name in given:
        if name not in names:
            why = f"there is no such key; {did_you_mean(name, names)}"
            raise MisfitError(why, f"{table}.{name}")


def _value(figure: _Figure | None, name: str) -> Any:
    """Return a figure, within what a card can have; ``None`` where there may be none."""
    place, unit = f"figures.{name}", FIGURES_IN_WORDS[name][1]
    if figure is None:
        if GpuProfile.__dataclass_fields__[name].type not in ("int", "float"):
            return None
        why = f'{name} is missing; {name} = {{ value = …, source = "…" }}'
        raise MisfitError(why, "figures")
    least, most = TABLES["ranges"][unit]
    given = figure.value
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
    document = _Document(
        schema_version=SCHEMA_VERSION,
        name=profile.name,
        title=profile.title,
        architecture=profile.architecture,
        compute_capability=profile.capability,
        figures=tuple(
            _Figure(name=name, value=getattr(profile, name), source=sources[name])
            for name in FIGURES
            if name in sources
        ),
        sources=profile.bibliography,
        aliases=profile.aliases,
        notes=profile.notes,
        calibration=profile.calibration,
    )
    return _without_none(encode(document))


def calibration_to_document(calibration: Calibration) -> JsonObject:
    """Return the table ``[calibration]`` of a profile; what is ``None`` is left out."""
    return _without_none(encode(calibration))


def _without_none(plain: JsonObject) -> JsonObject:
    return {
        name: _without_none(value) if isinstance(value, dict) else value
        for name, value in plain.items()
        if value is not None
    }
