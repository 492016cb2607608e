"""What all plots share.

matplotlib is imported when a plot is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from io import BytesIO
from os import fspath
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from eatss.base.diagnostics import InputError, input_error
from eatss.base.files import StrPath, write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure


BLACK = "#000000"
ORANGE = "#e69f00"
GREEN = "#009e73"
BLUE = "#0072b2"
VERMILION = "#d55e00"
PURPLE = "#cc79a7"
"""Okabe and Ito's colours, which people with colour blindness can tell apart."""

GREY = "#8c8c8c"

DPI = 150
SUFFIXES = (".png", ".svg", ".pdf")


def check_plot_file(path: Path) -> None:
    """Refuse a plot that could not be written.

    Raises:
        InputError: ``EATSS-E052`` matplotlib is not installed, ``EATSS-E053`` the file is of no
            known kind, or its folder is not there.
    """
    if path.suffix.lower() not in SUFFIXES or not path.parent.is_dir():
        raise input_error(
            "EATSS-E053",
            f"cannot write a plot to '{path}'",
            hint="name a .png, .svg or .pdf in a folder that exists",
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


def new_axes(width_in: float = 6.4, height_in: float = 4.8) -> Axes:
    """Return the axes of a new figure; sizes in inches.

    Raises:
        InputError: ``EATSS-E052`` matplotlib is not installed.
    """
    return new_figure(width_in, height_in).subplots()


def panels(figure: Figure, rows: int, columns: int) -> list[Axes]:
    """Return axes side by side, row by row, each with room for a legend of its own."""
    parts = figure.subfigures(rows, columns, squeeze=False)
    return [part.subplots() for part in parts.flat]


def finished(
    axes: Axes,
    title: str,
    x: str = "",
    y: str = "",
    *,
    lines: Literal["both", "x", "y"] = "both",
    legend: int = 0,
) -> Axes:
    """Return axes with a title, labels, thin lines below the data, and a legend below the axes.

    Args:
        axes: with all that is drawn.
        title: of them.
        x: label of the horizontal axis.
        y: label of the vertical axis, "" where it has one.
        lines: across which axis lines go.
        legend: how many columns the legend of all axes in this place has; 0 for none.
    """
    axes.set(title=title, xlabel=x, ylabel=y or axes.get_ylabel())
    axes.grid(axis=lines, linewidth=0.4, alpha=0.6)
    axes.set_axisbelow(True)
    if legend:
        axes.figure.legend(
            loc="outside lower center", ncols=legend, frameon=False, fontsize="small"
        )
    return axes


def plain_numbers(axis: Axis, subs: Sequence[float] = ()) -> None:
    """Write numbers on a logarithmic axis as people do, at so many times each power of ten."""
    from matplotlib.ticker import LogLocator  # noqa: PLC0415

    if subs:
        axis.set_major_locator(LogLocator(subs=subs))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter("")


def save_figure(figure: Figure, path: StrPath) -> None:
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
    write_bytes(file, drawn.getvalue())


def write_bytes(file: Path, data: bytes) -> None:
    """Write a file of a report, all of it or nothing.

    Raises:
        InputError: ``EATSS-E053`` it cannot be written.
    """
    try:
        write_whole(file, data)
    except OSError as error:
        raise unwritable(file, error) from None


def unwritable(path: Path, why: object) -> InputError:
    """Return the error of a file or folder of a report that cannot be written."""
    return input_error(
        "EATSS-E053",
        f"cannot write '{path}': {why}",
        hint="name a file, or a folder for figures, that can be written",
    )
