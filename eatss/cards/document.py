"""Profile documents (plain JSON or TOML types) to ``GpuProfile`` and back.

TOML files and plain documents go through the same validation. pydantic says which rule a value
breaks; here that is said in the user's terms, with the place in the file and what to write instead:

========== =====================================================
EATSS-G006 unknown key
EATSS-G007 missing key
EATSS-G008 wrong type or unit
EATSS-G009 outside the range any card can have
EATSS-G010 two parts of the profile contradict each other
EATSS-G011 a source or note that leads nowhere
EATSS-G012 a schema version that this eatss does not read
========== =====================================================

``tomllib`` keeps no positions. Where in a text a key stands is found by its lines: table headers,
keys at the start of a line, and keys inside an inline table on that line. Where a text is written
in a way this does not follow, the nearest enclosing table is the answer, or there is none.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from typing import TYPE_CHECKING, Any

from eatss.base.diagnostics import Diagnostic, InputError, SourceSpan, did_you_mean
from eatss.base.frozen import frozen
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


_HEADER = re.compile(r"^\s*\[\[?\s*(?P<path>[^\[\]]+?)\s*\]\]?\s*(?:#.*)?$")
_PART = r"(?:[A-Za-z0-9_-]+|\"[^\"]*\"|'[^']*')"
_KEY = re.compile(rf"^\s*(?P<path>{_PART}(?:\s*\.\s*{_PART})*)\s*=")


@frozen
class Place:
    """A span in a TOML text and the whole line it stands on."""

    span: SourceSpan
    source_line: str


def find_place(text: str, path: tuple[str, ...], file: str) -> Place | None:
    """Return where the key ``path`` stands, or its nearest enclosing key or table."""
    while path:
        place = _exact(text, path, file)
        if place is not None:
            return place
        path = path[:-1]
    return None


def place_at(text: str, line: int, column: int, file: str) -> Place:
    """Return the one-character place at a line and column (from 1) of ``text``."""
    lines = text.splitlines() or [""]
    line = min(max(line, 1), len(lines))
    return _place(lines[line - 1], line, column - 1, column, file)


def _exact(text: str, path: tuple[str, ...], file: str) -> Place | None:
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), start=1):
        header = _HEADER.match(line)
        if header is not None:
            table = _split(header["path"])
            if table == path:
                return _place(line, number, header.start("path"), header.end("path"), file)
            continue
        key = _KEY.match(line)
        if key is None:
            continue
        full = table + _split(key["path"])
        if full == path:
            return _place(line, number, key.start("path"), key.end("path"), file)
        if path[:-1] == full:
            inner = re.compile(rf"[{{,]\s*(?P<key>[\"']?{re.escape(path[-1])}[\"']?)\s*=")
            found = inner.search(line, key.end())
            if found is not None:
                return _place(line, number, found.start("key"), found.end("key"), file)
    return None


def _split(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip().strip("\"'") for part in re.findall(_PART, dotted))


def _place(line: str, number: int, start: int, end: int, file: str) -> Place:
    span = SourceSpan(
        file=file,
        line=number,
        column=start + 1,
        end_line=number,
        end_column=max(end, start + 1) + 1,
    )
    return Place(span=span, source_line=line)


_KEYS = (
    *("schema_version", "name", "title", "aliases", "architecture", "compute_capability"),
    *("figures", "sources", "notes", "calibration", "url", "value", "source"),
    *(*FIGURES, *Calibration.__dataclass_fields__, *Coefficient.__dataclass_fields__),
)
"""Every key that a profile may have somewhere."""

_RANGES = {
    "greater_than": ("gt", "more than"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "less than"),
    "less_than_equal": ("le", "at most"),
}
_HINTS = (
    ("_bytes", 'is given in bytes, or as a text with a unit: "192 KiB"'),
    ("_mhz", "is given in MHz"),
    ("_gb_s", "is given in GB/s (10^9 bytes a second)"),
    ("_gflops", "is given in GFLOP/s"),
    ("_w", "is given in watts"),
    ("source", "is a key of [sources]; every figure names its own"),
    ("compute_capability", 'is written as "9.0"'),
    ("name", "has lower-case letters, digits and . _ - only"),
    ("aliases", "are names of lower-case letters, digits and . _ - only"),
)
"""What keys with these endings hold."""


@frozen
class Origin:
    """What a document was read from: ``text`` is there when it came from a file."""

    label: str
    text: str | None = None


def finding(
    code: str, message: str, path: tuple[str, ...], origin: Origin, hint: str | None = None
) -> Diagnostic:
    """Return a finding about the key ``path``, with its place where the origin is a file."""
    place = None if origin.text is None else find_place(origin.text, path, origin.label)
    if place is None:
        return Diagnostic(code=code, message=f"{origin.label}: {message}", hint=hint)
    return Diagnostic(
        code=code, message=message, span=place.span, source_line=place.source_line, hint=hint
    )


def from_pydantic(detail: Mapping[str, Any], origin: Origin) -> Diagnostic:
    """Word one error of pydantic."""
    path = tuple(str(part) for part in detail["loc"])
    code, message, hint = _word(detail, path)
    return finding(code, message, path, origin, hint)


def _word(detail: Mapping[str, Any], path: tuple[str, ...]) -> tuple[str, str, str | None]:
    kind, value, context = detail["type"], _show(detail["input"]), detail.get("ctx", {})
    dotted, hint = ".".join(path), _hint(path)
    if kind == "missing":
        where = f" in {'.'.join(path[:-1])}" if path[1:] else ""
        if path[0] == "figures" and not path[2:]:
            hint = f'{path[-1]} = {{ value = …, source = "…" }}'
        return "EATSS-G007", f"{path[-1]} is missing{where}", hint
    if kind == "extra_forbidden":
        return "EATSS-G006", f"unknown key {dotted}", did_you_mean(path[-1], _KEYS) or None
    if kind == "literal_error":
        said = f"{dotted} is {value}; this eatss reads {SCHEMA_VERSION}"
        return "EATSS-G012", said, f"schema_version = {SCHEMA_VERSION}"
    if kind in _RANGES:
        key, words = _RANGES[kind]
        said = f"{dotted} = {value}, but a card has {words} {context[key]:.15g}"
        return "EATSS-G009", said, hint
    if "instead" in context:
        hint = f"write {context['instead']}"
    said = "it has to be a table" if kind in ("model_type", "dict_type") else detail["msg"]
    return "EATSS-G008", f"{dotted} = {value}: {said}", hint


def _hint(path: tuple[str, ...]) -> str | None:
    return next(
        (f"{part} {words}" for part in path for end, words in _HINTS if part.endswith(end)), None
    )


def _show(value: object) -> str:
    try:
        text = f'"{value}"' if isinstance(value, str) else str(value)
    except ValueError:  # Python writes no decimal number of more than 4300 digits
        text = "a number of thousands of digits"
    text = text.replace("\n", " ")
    return text if len(text) <= 60 else f"{text[:57]}..."


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


_SYNTAX_PLACE = re.compile(r"\s*\(at (?:line (\d+), column (\d+)|end of document)\)$")


def parsed_toml(text: str, label: str, code: str) -> dict[str, Any]:
    """Return what a TOML text holds.

    Raises:
        InputError: of the given code, with the place where it is no TOML.
    """
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        found = _SYNTAX_PLACE.search(str(error))
        line, column = len(text.splitlines()), 1
        if found is not None and found[1] is not None:
            line, column = int(found[1]), int(found[2])
        place = place_at(text, line, column, label)
        message = f"not valid TOML: {_SYNTAX_PLACE.sub('', str(error))}"
    raise InputError(
        Diagnostic(code=code, message=message, span=place.span, source_line=place.source_line)
    )


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
