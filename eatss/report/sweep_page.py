"""One HTML page of one or several sweeps: nothing outside of the file is needed to read it."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from importlib.resources import files
from io import BytesIO
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, StrictUndefined

from eatss.base.shown import energy_text, time_text
from eatss.base.text import equations
from eatss.report.plots import check_matplotlib
from eatss.report.sweep_figures import sweep_figures
from eatss.report.sweep_tables import (
    all_tables,
    heading,
    overall_tables,
    sentences,
)
from eatss.tune.evaluation import Evaluated, SweepReport
from eatss.version import __version__

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PNG_DPI = 130
SCREEN_DPI = 96


def html_page(evaluated: Sequence[Evaluated], report: SweepReport) -> str:
    """Return the page of sweeps, and tables over all where there are several.

    Args:
        evaluated: at least one.
        report: what was computed of them.

    Raises:
        InputError: ``EATSS-E052`` matplotlib is not installed.
    """
    check_matplotlib()
    several = len(evaluated) > 1
    overall = overall_tables(report) if several else ()
    template = files("eatss.report").joinpath("sweep_page.html").read_text(encoding="utf-8")
    environment = Environment(autoescape=True, undefined=StrictUndefined)
    return environment.from_string(template).render(
        title=f"{len(evaluated)} sweeps" if several else heading(evaluated[0].evaluation),
        version=__version__,
        overall=[table for table in overall if table.rows],
        sweeps=evaluated,
        heading=heading,
        sentences=sentences,
        energy=energy_text,
        time=time_text,
        equations=equations,
        figures=sweep_figures,
        tables=all_tables,
        image=_image,
        size=lambda drawn: [round(side * SCREEN_DPI) for side in drawn.get_size_inches()],
        number=_number,
    )


def _number(cell: Any) -> float | None:
    """Return what a cell sorts by; texts that are numbers are numbers."""
    try:
        return float(cell)
    except (TypeError, ValueError):
        return None


def _image(drawn: Figure) -> str:
    """Return the address that holds a figure itself."""
    image = BytesIO()
    drawn.savefig(image, format="png", dpi=PNG_DPI)
    return f"data:image/png;base64,{base64.b64encode(image.getvalue()).decode()}"
