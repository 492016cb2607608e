"""Profile documents (plain JSON or TOML types) to ``GpuProfile`` and back.

TOML files and plain documents go through the same validation; a finding
about a file also says where in the file. ``eatss.cards.findings`` words the findings.

What must hold between the figures of one card.

Each entry of ``ORDERED`` says that one figure is at most another, and why. The
list is data, so that a profile with several faults is told all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from typing import TYPE_CHECKING, Any

from eatss.base.diagnostics import Diagnostic, InputError, did_you_mean
from eatss.cards.findings import Origin, finding, from_pydantic
from eatss.cards.profile import (
    COEFFICIENTS,
    FIGURES,
    SCHEMA_VERSION,
    Calibration,
    Coefficient,
    GpuProfile,
    Source,
)

if TYPE_CHECKING:
    from eatss.cards.schema import Document


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


def contradictions(figures: Mapping[str, float]) -> Iterator[tuple[str, str]]:
    """Yield what cannot hold among ``figures``: the one to point at, and why; some may be absent.

    ``figures`` are values by the names of fields.
    """
    said = {
        name: f"{name} = {int(value) if value == int(value) else value}"
        for name, value in figures.items()
    }
    for small, large, why in ORDERED:
        if small in figures and large in figures and figures[small] > figures[large]:
            yield small, f"{said[small]} is more than {said[large]}, but {why}"
    warp = figures.get("threads_per_warp")
    for field in WHOLE_WARPS:
        if warp and field in figures and figures[field] % warp:
            yield field, f"{said[field]} is not a multiple of {said['threads_per_warp']}"


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
    from pydantic import ValidationError  # noqa: PLC0415  (only needed to read a profile)

    from eatss.cards.schema import Document  # noqa: PLC0415

    try:
        shape = Document.model_validate(dict(document))
        wrong = []
    except ValidationError as error:
        wrong = error.errors(include_url=False)
    findings = [from_pydantic(detail, origin) for detail in wrong[:_MOST_FINDINGS]]
    faulty = {str(detail["loc"][1]) for detail in wrong if detail["loc"][1:]}
    findings += islice(_cross_findings(document, faulty, origin), _MOST_FINDINGS)
    if findings:
        raise InputError(*sorted(findings, key=_place_order))
    return _built(shape)


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


def _built(shape: Document) -> GpuProfile:
    major, minor = shape.compute_capability.split(".")
    figures = {name: getattr(shape.figures, name) for name in FIGURES}
    values: dict[str, Any] = {name: one and one.value for name, one in figures.items()}
    measured = shape.calibration
    return GpuProfile(
        name=shape.name,
        title=shape.title,
        aliases=tuple(shape.aliases),
        architecture=shape.architecture,
        compute_capability=(int(major), int(minor)),
        sources=tuple((name, one.source) for name, one in figures.items() if one is not None),
        bibliography=tuple(
            Source(key=key, **entry.model_dump()) for key, entry in shape.sources.items()
        ),
        notes=tuple(shape.notes.items()),
        calibration=None if measured is None else _calibration(measured.model_dump()),
        **values,
    )


def _calibration(plain: dict[str, Any]) -> Calibration:
    coefficients = plain.pop("coefficients")
    ordered = tuple(
        (name, Coefficient(**coefficients[name])) for name in COEFFICIENTS if name in coefficients
    )
    return Calibration(**plain | {"cards": tuple(plain["cards"]), "coefficients": ordered})


def _cross_findings(
    document: Mapping[str, Any], faulty: set[str], origin: Origin
) -> Iterator[Diagnostic]:
    """Yield what is wrong between parts that are each in order."""
    from eatss.cards.schema import parse_size  # noqa: PLC0415

    sources = document.get("sources")
    figures = _table(document, ("figures",))
    sound = {name: entry for name, entry in figures.items() if name not in faulty}
    values: dict[str, Any] = {name: parse_size(entry["value"]) for name, entry in sound.items()}
    for field, message in contradictions(values):
        yield finding("EATSS-G010", message, ("figures", field), origin)
    for name, entry in sound.items():
        key = entry["source"]
        if isinstance(sources, Mapping) and key not in sources:
            message = f'{name} names the source "{key}", which [sources] lacks'
            hint = f"known: {', '.join(map(str, sources)) or 'none'}"
            yield finding("EATSS-G011", message, ("figures", name, "source"), origin, hint)
    for path, known, code, message in (
        (("notes",), tuple(GpuProfile.__dataclass_fields__), "EATSS-G011",
         "the note {} is about no field of a profile"),
        (("calibration", "coefficients"), tuple(COEFFICIENTS), "EATSS-G006",
         "{} is no coefficient of a card"),
    ):  # fmt: skip
        for name in _table(document, path):
            if name not in known:
                meant = did_you_mean(str(name), known) or None
                yield finding(code, message.format(name), (*path, str(name)), origin, meant)
    aliases = document.get("aliases", [])
    names = [document.get("name"), *(aliases if isinstance(aliases, list) else ())]
    for name in sorted({name for name in names if isinstance(name, str) and names.count(name) > 1}):
        message = f"the profile calls itself {name} more than once"
        yield finding("EATSS-G010", message, ("aliases",), origin, "give each name once")


def _table(document: object, path: Sequence[str]) -> Mapping[str, Any]:
    """Return a table of a document; an empty one if there is none."""
    for key in path:
        document = document.get(key) if isinstance(document, Mapping) else None
    return document if isinstance(document, Mapping) else {}


def _place_order(diagnostic: Diagnostic) -> tuple[int, int, str]:
    span = diagnostic.span
    return (0, 0, diagnostic.code) if span is None else (span.line, span.column, diagnostic.code)
