"""What all plots share: whether one can be drawn here, new figures, colours, and writing files."""

from __future__ import annotations

from importlib.util import find_spec
from io import BytesIO
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING

from eatss.diagnostics import input_error
from eatss.files import write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BLACK = "#000000"
ORANGE = "#e69f00"
SKY = "#56b4e9"
GREEN = "#009e73"
YELLOW = "#f0e442"
BLUE = "#0072b2"
VERMILION = "#d55e00"
PURPLE = "#cc79a7"
"""Okabe and Ito's colours, which people with colour blindness can tell apart."""

GREY = "#8c8c8c"

LINES = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION)
"""Colours of things that are told apart, in order."""

DPI = 150
SUFFIXES = (".png", ".svg", ".pdf")


def check_plot_file(path: Path) -> None:
    """Refuse a plot that could not be written.

    Raises:
        InputError: ``EATSS-E052`` matplotlib is not installed, ``EATSS-E053`` the file is of no
            known kind, or its folder is not there.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise input_error(
            "EATSS-E053",
            f"'{path}' is no name for a plot",
            hint=f"let it end in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}",
        )
    if not path.parent.is_dir():
        raise input_error(
            "EATSS-E053",
            f"there is no folder '{path.parent}' for the plot",
            hint="make the folder first, or name another file",
        )
    check_matplotlib()


def check_matplotlib() -> None:
    """Refuse to draw without matplotlib.

    Raises:
        InputError: ``EATSS-E052``.
    """
    if find_spec("matplotlib") is None:
        raise input_error(
            "EATSS-E052",
            "plots need matplotlib, which is not installed",
            hint="install it with: pip install 'eatss[plot]'",
        )


def new_figure(width_in: float = 6.4, height_in: float = 4.8) -> Figure:
    """Return an empty figure that needs no window; sizes in inches.

    Raises:
        InputError: ``EATSS-E052`` matplotlib is not installed.
    """
    check_matplotlib()
    from matplotlib import figure as drawing  # noqa: PLC0415 - optional
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415

    figure = drawing.Figure(figsize=(width_in, height_in), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save_figure(figure: Figure, path: str | PathLike[str]) -> None:
    """Write a figure; the same figure gives the same file.

    Args:
        figure: with something drawn in it.
        path: a PNG, SVG or PDF to write.

    Raises:
        InputError: ``EATSS-E052`` matplotlib is not installed, ``EATSS-E053`` the file cannot be
            written.
    """
    file = Path(fspath(path))
    check_plot_file(file)
    import matplotlib as mpl  # noqa: PLC0415 - optional

    kind = file.suffix[1:].lower()
    undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}[kind]
    drawn = BytesIO()
    with mpl.rc_context({"svg.hashsalt": "eatss"}):
        figure.savefig(drawn, dpi=DPI, format=kind, metadata=undated)
    try:
        write_whole(file, drawn.getvalue())
    except OSError as error:
        raise input_error(
            "EATSS-E053",
            f"cannot write '{file}': {error.strerror or error}",
            hint="name a file in a folder that can be written",
        ) from None
