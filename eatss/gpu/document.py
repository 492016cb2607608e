"""Profile documents (plain JSON or TOML types) to ``GpuProfile`` and back.

TOML files and plain documents go through the same validation; a finding
about a file also says where in the file. ``eatss.gpu.findings`` words the findings.

What must hold between the figures of one card.

Each entry of ``ORDERED`` says that one figure is at most another, and why. The
list is data, so that a profile with several faults is told all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from itertools import islice
from typing import TYPE_CHECKING, Any

from eatss.diagnostics import Diagnostic, InputError, did_you_mean
from eatss.frozen import frozen
from eatss.gpu.findings import Origin, finding, from_pydantic
from eatss.gpu.profile import (
    COEFFICIENTS,
    FIGURES,
    SCHEMA_VERSION,
    Calibration,
    Coefficient,
    GpuProfile,
    Source,
)

if TYPE_CHECKING:
    from eatss.gpu.schema import Document, FigureValues


@frozen
class Contradiction:
    """Two figures that cannot both be right; ``field`` is the one to point at."""

    field: str
    message: str


ORDERED: tuple[tuple[str, str, str], ...] = (
    ("threads_per_warp", "threads_per_block", "a block holds at least one warp"),
    ("threads_per_block", "max_threads_per_sm", "a block runs on one SM"),
    ("registers_per_thread", "registers_per_block", "a block holds at least one thread"),
    ("registers_per_block", "registers_per_sm", "a block runs on one SM"),
    (
        "shared_per_block_bytes",
        "shared_per_block_optin_bytes",
        "opting in never gives a block less than the default",
    ),
    ("shared_per_block_optin_bytes", "shared_per_sm_bytes", "a block runs on one SM"),
    ("shared_per_sm_bytes", "l1_shared_bytes", "shared memory is a part of L1 + shared memory"),
    ("l2_bytes", "memory_bytes", "L2 caches the memory"),
    ("base_clock_mhz", "boost_clock_mhz", "boost is the higher of the two clocks"),
)
WHOLE_WARPS = ("threads_per_block", "max_threads_per_sm")


def contradictions(figures: Mapping[str, float]) -> Iterator[Contradiction]:
    """Yield what cannot hold among ``figures`` (field name to value); absent ones are skipped."""
    for small, large, why in ORDERED:
        if small in figures and large in figures and figures[small] > figures[large]:
            yield Contradiction(
                field=small,
                message=(
                    f"{small} = {_show(figures[small])} is more than "
                    f"{large} = {_show(figures[large])}, but {why}"
                ),
            )
    warp = figures.get("threads_per_warp")
    for field in WHOLE_WARPS:
        if warp and field in figures and figures[field] % warp:
            yield Contradiction(
                field=field,
                message=(
                    f"{field} = {_show(figures[field])} is not a multiple of "
                    f"threads_per_warp = {_show(warp)}"
                ),
            )


def _show(value: float) -> str:
    return str(int(value)) if value == int(value) else str(value)


_MOST_FINDINGS = 20
"""Findings of a kind; finding the place of each in a text of thousands would take minutes."""


_PLAIN = Origin(label="profile")


def profile_from_document(document: Mapping[str, Any], origin: Origin = _PLAIN) -> GpuProfile:
    """Validate a document and return its profile; findings name ``origin``.

    Raises:
        InputError: the document is wrong; carries all findings, in order of their place.
    """
    if not isinstance(document, Mapping):
        message = f"a profile is a table, not {type(document).__name__}"
        raise InputError(finding("EATSS-G008", message, (), origin))
    shape, shape_findings = _read_shape(document, origin)
    values, value_findings, faulty = _read_values(document, origin)
    crossing = islice(_cross_findings(document, faulty, origin), _MOST_FINDINGS)
    findings = [*shape_findings, *value_findings, *crossing]
    if shape is None or values is None or findings:
        raise InputError(*sorted(findings, key=_place_order))
    return _build(shape, values)


def profile_to_document(profile: GpuProfile) -> dict[str, Any]:
    """Return the document of a profile; ``profile_from_document`` is its inverse."""
    sources = dict(profile.sources)
    major, minor = profile.compute_capability
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
        "compute_capability": f"{major}.{minor}",
        "figures": figures,
        "sources": bibliography,
        "notes": dict(profile.notes),
    } | measured


def calibration_to_document(calibration: Calibration) -> dict[str, Any]:
    """Return the table ``[calibration]`` of a profile."""
    document = asdict(calibration)
    document["cards"] = list(calibration.cards)
    document["coefficients"] = {
        name: {key: value for key, value in asdict(one).items() if value is not None}
        for name, one in calibration.coefficients
    }
    return document


def _read_shape(
    document: Mapping[str, Any], origin: Origin
) -> tuple[Document | None, list[Diagnostic]]:
    """Check all but the values of the figures."""
    from pydantic import ValidationError  # noqa: PLC0415  (only needed to read a profile)

    from eatss.gpu.schema import Document  # noqa: PLC0415

    try:
        return Document.model_validate(dict(document)), []
    except ValidationError as error:
        details = error.errors(include_url=False)[:_MOST_FINDINGS]
        return None, [from_pydantic(detail, detail["loc"], origin) for detail in details]


def _read_values(
    document: Mapping[str, Any], origin: Origin
) -> tuple[FigureValues | None, list[Diagnostic], set[str]]:
    """Check the values of the figures; also return the fields that are not usable."""
    from pydantic import ValidationError  # noqa: PLC0415

    from eatss.gpu.schema import FigureValues  # noqa: PLC0415

    figures = document.get("figures")
    if not isinstance(figures, Mapping):
        return None, [], set(FIGURES)
    shapeless = {
        name
        for name, entry in figures.items()
        if not isinstance(entry, Mapping) or "value" not in entry
    }
    values = {name: entry["value"] for name, entry in figures.items() if name not in shapeless}
    nulls = [name for name, value in values.items() if value is None]
    findings = [_no_value(name, origin) for name in nulls[:_MOST_FINDINGS]]
    faulty = shapeless.union(nulls)
    try:
        model = FigureValues.model_validate(values)
    except ValidationError as error:
        for detail in error.errors(include_url=False)[:_MOST_FINDINGS]:
            field = str(detail["loc"][0])
            if field not in faulty:  # else it is already said what is wrong with it
                of_key = detail["type"] in {"missing", "extra_forbidden"}
                path = ("figures", field) if of_key else ("figures", field, "value")
                findings.append(from_pydantic(detail, path, origin))
        return None, findings, faulty | {str(detail["loc"][0]) for detail in error.errors()}
    return model, findings, faulty


def _no_value(name: str, origin: Origin) -> Diagnostic:
    """Word a JSON ``null``, which TOML cannot say: an unknown figure is left out."""
    message = f"figures.{name}.value is null"
    return finding(
        "EATSS-G008",
        message,
        ("figures", name, "value"),
        origin,
        f"leave out {name} if no source gives it",
    )


def _build(shape: Document, values: FigureValues) -> GpuProfile:
    major, minor = shape.compute_capability.split(".")
    figures: dict[str, Any] = {name: getattr(values, name) for name in FIGURES}
    return GpuProfile(
        name=shape.name,
        title=shape.title,
        aliases=tuple(shape.aliases),
        architecture=shape.architecture,
        compute_capability=(int(major), int(minor)),
        sources=tuple(
            (name, shape.figures[name].source) for name in FIGURES if name in shape.figures
        ),
        bibliography=tuple(
            Source(key=key, title=entry.title, url=entry.url)
            for key, entry in shape.sources.items()
        ),
        notes=tuple(shape.notes.items()),
        calibration=_calibration(shape),
        **figures,
    )


def _calibration(shape: Document) -> Calibration | None:
    entry = shape.calibration
    if entry is None:
        return None
    plain = entry.model_dump() | {
        "cards": tuple(entry.cards),
        "coefficients": tuple(
            (name, Coefficient(**entry.coefficients[name].model_dump()))
            for name in COEFFICIENTS
            if name in entry.coefficients
        ),
    }
    return Calibration(**plain)


def _calibration_findings(document: Mapping[str, Any], origin: Origin) -> Iterator[Diagnostic]:
    table = document.get("calibration")
    coefficients = table.get("coefficients") if isinstance(table, Mapping) else None
    if not isinstance(coefficients, Mapping):
        return
    for name in coefficients:
        if name not in COEFFICIENTS:
            hint = did_you_mean(str(name), COEFFICIENTS) or None
            path = ("calibration", "coefficients", str(name))
            yield finding("EATSS-G006", f"{name} is no coefficient of a card", path, origin, hint)


def _cross_findings(
    document: Mapping[str, Any], faulty: set[str], origin: Origin
) -> Iterator[Diagnostic]:
    """Yield what is wrong between parts that are each in order."""
    figures = document.get("figures")
    if isinstance(figures, Mapping):
        sound = {name: entry for name, entry in figures.items() if name not in faulty}
        values = {name: _bytes_or_number(entry["value"]) for name, entry in sound.items()}
        for fault in contradictions(values):
            yield finding("EATSS-G010", fault.message, ("figures", fault.field), origin)
        yield from _source_findings(sound, document.get("sources"), origin)
    yield from _note_findings(document.get("notes"), origin)
    yield from _name_findings(document, origin)
    yield from _calibration_findings(document, origin)


def _source_findings(
    figures: Mapping[str, Any], sources: object, origin: Origin
) -> Iterator[Diagnostic]:
    if not isinstance(sources, Mapping):
        return
    for name, entry in figures.items():
        key = entry.get("source")
        if isinstance(key, str) and key and key not in sources:
            message = f'{name} names the source "{key}", which [sources] lacks'
            hint = f"known: {', '.join(map(str, sources)) or 'none'}"
            yield finding("EATSS-G011", message, ("figures", name, "source"), origin, hint)


def _note_findings(notes: object, origin: Origin) -> Iterator[Diagnostic]:
    if not isinstance(notes, Mapping):
        return
    fields = tuple(GpuProfile.__dataclass_fields__)
    for name in notes:
        if name not in fields:
            hint = did_you_mean(str(name), fields) or None
            message = f"the note {name} is about no field of a profile"
            yield finding("EATSS-G011", message, ("notes", str(name)), origin, hint)


def _name_findings(document: Mapping[str, Any], origin: Origin) -> Iterator[Diagnostic]:
    aliases = document.get("aliases", [])
    if not isinstance(aliases, list):
        return
    names = [document.get("name"), *aliases]
    for name in sorted({name for name in names if isinstance(name, str) and names.count(name) > 1}):
        message = f"the profile calls itself {name} more than once"
        yield finding("EATSS-G010", message, ("aliases",), origin, "give each name once")


def _bytes_or_number(value: object) -> float:
    from eatss.gpu.schema import parse_size  # noqa: PLC0415

    number = parse_size(value)
    assert isinstance(number, int | float)
    return number


def _place_order(diagnostic: Diagnostic) -> tuple[int, int, str]:
    span = diagnostic.span
    return (0, 0, diagnostic.code) if span is None else (span.line, span.column, diagnostic.code)
