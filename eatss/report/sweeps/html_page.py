"""One HTML page of one or several sweeps: nothing outside of the file is needed to read it.

Figures are images in the page; their data, and those of tables, are links that hold them.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from importlib.resources import files
from importlib.util import find_spec
from io import BytesIO
from typing import TYPE_CHECKING
from urllib.parse import quote

from eatss.diagnostics import input_error
from eatss.evaluation.population import size_words
from eatss.evaluation.sweep_evaluation import Evaluated, SweepReport
from eatss.frozen import frozen
from eatss.report.render import seconds
from eatss.report.sweeps.figure_list import SweepFigure, sweep_figures
from eatss.report.sweeps.summary_text import heading, sentences
from eatss.report.sweeps.tables import (
    Cell,
    Table,
    all_tables,
    cell_text,
    means_table,
    programs_table,
    variants_table,
)
from eatss.shown import energy_text
from eatss.version import __version__

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PNG_DPI = 160
_COLOURS = 128
SCREEN_DPI = 96

_PAGE = "eatss.report.sweeps.page"


@frozen
class _Cell:
    text: str
    number: float | int | None


@frozen
class _Row:
    cells: tuple[_Cell, ...]
    role: bool


@frozen
class _Table:
    name: str
    title: str
    note: str
    columns: tuple[str, ...]
    rows: tuple[_Row, ...]
    csv_link: str


@frozen
class _Image:
    name: str
    caption: str
    source: str
    width: int
    height: int
    csv_link: str
    wide: bool


@frozen
class _Section:
    prefix: str
    heading: str
    sentences: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    csv_link: str
    figures: tuple[_Image, ...]
    tables: tuple[_Table, ...]


def check_page() -> None:
    """Refuse a page where it cannot be made.

    Raises:
        InputError: ``EATSS-H001`` Jinja2 or matplotlib is not installed.
    """
    missing = [name for name in ("jinja2", "matplotlib") if find_spec(name) is None]
    if missing:
        raise input_error(
            "EATSS-H001",
            f"a page needs {' and '.join(missing)}, which {'is' if len(missing) == 1 else 'are'} "
            "not installed",
            hint="install what is missing with: pip install 'eatss[report]'; --format text needs "
            "neither",
        )


def html_page(evaluated: Sequence[Evaluated], report: SweepReport) -> str:
    """Return the page of sweeps, and tables over all where there are several.

    Args:
        evaluated: at least one.
        report: what was computed of them.

    Raises:
        InputError: ``EATSS-H001`` Jinja2 or matplotlib is not installed.
    """
    check_page()
    from jinja2 import Environment, StrictUndefined  # noqa: PLC0415 - optional
    from markupsafe import Markup  # noqa: PLC0415

    several = len(evaluated) > 1
    overall = (programs_table(report.sweeps), means_table(report.means)) if several else ()
    headings = [heading(one.evaluation) for one in evaluated]
    environment = Environment(autoescape=True, undefined=StrictUndefined)
    return environment.from_string(_packaged("page.html")).render(
        title=f"{len(evaluated)} sweeps" if several else headings[0],
        version=__version__,
        style=Markup(_packaged("page.css")),  # noqa: S704 - of this package
        script=Markup(_packaged("sort_tables.js")),  # noqa: S704
        overall=[_shown(table) for table in overall if table.rows],
        sweeps=[_section(one, number) for number, one in enumerate(evaluated, 1)],
    )


def _packaged(name: str) -> str:
    return files(_PAGE).joinpath(name).read_text(encoding="utf-8")


def _section(one: Evaluated, number: int) -> _Section:
    name = "".join(c if c.isalnum() else "-" for c in one.evaluation.identity.program)
    return _Section(
        prefix=f"{number}-{name}",
        heading=heading(one.evaluation),
        sentences=sentences(one.evaluation),
        facts=_facts(one),
        csv_link=_csv_link(variants_table(one, most=None).csv),
        figures=tuple(_image(figure) for figure in sweep_figures(one)),
        tables=tuple(_shown(table) for table in all_tables(one)),
    )


def _facts(one: Evaluated) -> tuple[tuple[str, str], ...]:
    found = one.evaluation
    identity = found.identity
    seen = [card for card in one.sweep.cards if card.power_limit_w is not None]
    limits = sorted({f"{card.power_limit_w:g} W" for card in seen})
    spent = f"{seconds(found.card_s)} of cards, {seconds(found.processor_s)} of processors"
    if found.card_j is not None:
        spent += f", {energy_text(found.card_j)}"
    facts = [
        ("card", identity.card + (f", power limit {' and '.join(limits)}" if limits else "")),
        ("driver", identity.driver),
        ("compiler", identity.compiler),
        ("generator", f"{identity.target}, {identity.generator}"),
        ("sizes", size_words(found.sizes)),
        ("macros", " ".join(identity.defines)),
        ("spent", spent),
        ("source (SHA-256)", identity.source_hash[:12]),
    ]
    return tuple((name, value) for name, value in facts if value)


def _shown(table: Table) -> _Table:
    role = table.columns.index("role") if "role" in table.columns else None
    return _Table(
        name=table.name,
        title=table.title,
        note=table.note,
        columns=tuple(column.strip() for column in table.columns),
        rows=tuple(
            _Row(
                cells=tuple(_Cell(text=cell_text(cell), number=_number(cell)) for cell in row),
                role=role is not None and bool(row[role]),
            )
            for row in table.rows
        ),
        csv_link=_csv_link(table.csv),
    )


def _number(cell: Cell) -> float | int | None:
    """Return what a cell sorts by; texts that are numbers are numbers."""
    if isinstance(cell, str):
        try:
            return float(cell)
        except ValueError:
            return None
    return cell


def _csv_link(text: str) -> str:
    return f"data:text/csv;charset=utf-8,{quote(text, safe=',:;=/()*!')}"


def _image(figure: SweepFigure) -> _Image:
    drawn = figure.draw()
    width, height = drawn.get_size_inches() * SCREEN_DPI
    return _Image(
        name=figure.name,
        caption=figure.caption,
        source=f"data:image/png;base64,{base64.b64encode(_png(drawn)).decode()}",
        width=round(width),
        height=round(height),
        csv_link=_csv_link(figure.csv()),
        wide=figure.wide,
    )


def _png(figure: Figure) -> bytes:
    """Return a figure as PNG of few colours, which takes a third of the bytes."""
    from PIL import Image  # noqa: PLC0415 - comes with matplotlib

    drawn, small = BytesIO(), BytesIO()
    figure.savefig(drawn, format="png", dpi=PNG_DPI)
    with Image.open(drawn) as picture:
        few = picture.convert("RGB").quantize(_COLOURS, dither=Image.Dither.NONE)
        few.save(small, format="png", optimize=True)
    return small.getvalue()
