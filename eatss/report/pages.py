"""Results as text by templates: what a page says stands in ``templates/NAME.txt``, in Jinja.

In a template ``it`` is the result. Marks are those of Rich: ``[bold]``. A line that begins with
``||`` has the titles of a table, as :func:`eatss.report.render.listing` takes them, one with ``|``
is a row of it. Numbers get four digits, ``None`` is ``-``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from functools import cache, partial
from html import escape
from importlib.util import cache_from_source
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, FileSystemBytecodeCache, PackageLoader, StrictUndefined
from markupsafe import Markup
from rich.markup import escape as escape_marks
from rich.text import Text

from eatss.base.codec import json_text
from eatss.base.shown import Shown
from eatss.report.render import (
    BAR,
    NONE,
    Parts,
    cell_text,
    grouped_by,
    listing,
    printed_parts,
    render,
)

if TYPE_CHECKING:
    from eatss.measurement.measurement import Measurement

_HOMES = {
    "eatss.base.shown": "energy_text pairs_text sizes_text time_text why_unknown",
    "eatss.base.text": "bytes_text counted equations",
    "eatss.cards.profile": "COEFFICIENTS FIGURES_IN_WORDS",
    "eatss.cost.expected": "HOST_INSTANCE_S",
    "eatss.polyhedral.recomputed_producers": "recomputed_arrays",
    "eatss.report.cards": "MEASURING amount",
    "eatss.report.characterization": "arithmetic_rows memory_rows worst_residuals",
    "eatss.report.inspection": "maps_of schedule_lines",
    "eatss.report.measurement": "other_meters sources_of",
    "eatss.report.pages": "notes shared_notes",
    "eatss.report.render": "counter_words figure grouped off_by percent ratio_text with_prefix",
    "eatss.report.selection": "host_loops",
    "eatss.report.sweep_tables": "figures_of heading overall_tables point regret_of shown_tables",
    "eatss.tune.replay": "NEAR SHARES",
    "eatss.tune.rows": "ranked",
    "eatss.tune.standing": "TOPS",
    "shlex": "quote",
}
"""What templates call, by where it is; each is loaded when it is called, also what is constant."""


def printed(noun: Any, output: str, **more: Any) -> str:
    """Return a result as ``json``, or as the ``table`` that a notebook shows as well."""
    return json_text(noun) if output == "json" else render(*parts_of(noun, **more))


def html_of(noun: Shown) -> str:
    """Return a result for a notebook as one element of HTML, in the page's own colour."""
    text = printed_parts(parts_of(noun), width=110, terminal=False)
    return f'<pre style="white-space:pre;overflow-x:auto">{escape(text)}</pre>'


def parts_of(noun: Shown, **more: Any) -> Parts:
    """Return what is told of a result by the page that it names; it may ask for ``more``."""
    return page(noun.shown_by, it=noun, **more)


def page(name: str, **names: Any) -> Parts:
    """Return the parts of a page; of blank lines side by side one stays."""
    found: Parts = []
    for line in lines_of(name, names):
        cells = cells_of(line)
        if line.startswith("||"):
            found.append(table := listing(map(str, cells[2:]), ()))
        elif line.startswith("|"):
            table.add_row(*cells[1:])
        elif line or (found and found[-1]):
            found.append(Text.from_markup(line, emoji=False))
    return found if found and found[-1] else found[:-1]


def cells_of(line: str) -> list[Text]:
    """Return what stands between bars."""
    return [Text.from_markup(cell.strip(), emoji=False) for cell in line.split("|")]


def lines_of(name: str, names: dict[str, Any]) -> list[str]:
    """Return the lines of a page as they stand in its template, filled in."""
    return _templates().get_template(f"{name}.txt").render(names).splitlines()


@cache
def _templates() -> Environment:
    compiled = Path(cache_from_source(__file__)).parent
    keeps = os.access(compiled, os.W_OK) and not sys.dont_write_bytecode
    templates = Environment(
        loader=PackageLoader("eatss.report"),
        bytecode_cache=FileSystemBytecodeCache(str(compiled)) if keeps else None,
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_spelled,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    functions = {
        name: partial(_called, f"{home}:{name}")
        for home, names in _HOMES.items()
        for name in names.split()
    }
    templates.filters |= functions
    templates.filters["times"] = lambda value, factor: None if value is None else factor * value
    templates.globals |= functions | {"explain": False}
    return templates


def _called(path: str, *arguments: Any) -> Any:
    found = resolve_name(path)
    return found(*arguments) if callable(found) else found


def _spelled(value: Any) -> Markup:
    """Return a value as it stands in a page: nothing in it is a mark, a row or a line."""
    if isinstance(value, Markup):
        return value
    text = NONE if value is None else str(cell_text(value))
    return Markup(escape_marks(" ".join(text.splitlines())).replace("|", BAR))  # noqa: S704 - for a terminal


def notes(measurement: Measurement) -> list[tuple[str, Markup]]:
    """Return pairs of a word and what is to be said under it, most important first."""
    pairs = (line.partition(" | ") for line in lines_of("measurement_notes", {"it": measurement}))
    return [(word, Markup(text.strip())) for word, _, text in pairs if text.strip()]  # noqa: S704 - escaped


def shared_notes(measurements: Sequence[Measurement]) -> Iterator[tuple[str, str, Markup]]:
    """Yield the notes; one that is the same for several variants stands there once."""
    measured = {found.variant for found in measurements if found.windows}
    variants = grouped_by((note, one.variant) for one in measurements for note in notes(one))
    for (word, text), names in sorted(variants.items(), key=lambda pair: pair[0][0] != "why"):
        everyone = 1 < len(measured) <= len(names)
        yield "all measured" if everyone else "; ".join(names), word, text
