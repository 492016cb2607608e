"""What all plots share: whether one can be drawn here, new figures, colours, and writing files."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from io import BytesIO
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from eatss.base.diagnostics import input_error
from eatss.base.files import write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
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


def own_axes(width_in: float = 6.4, height_in: float = 4.8) -> Axes:
    """Return the axes of a new figure; sizes in inches.

    Raises:
        InputError: ``EATSS-E052`` matplotlib is not installed.
    """
    return new_figure(width_in, height_in).subplots()


def finished(
    axes: Axes,
    title: str,
    x: str = "",
    y: str = "",
    *,
    lines: Literal["both", "x", "y"] = "both",
    legend: int = 0,
    right: Axes | None = None,
    below: float = 4.4,
) -> Axes:
    """Return axes with a title, labels, thin lines below the data, and a legend below the axes.

    Args:
        axes: with all that is drawn.
        title: of them.
        x: label of the horizontal axis.
        y: label of the vertical axis.
        lines: across which axis lines go.
        legend: how many columns the legend has; 0 for none.
        right: axes of the same place whose entries it has, too.
        below: what ticks and the label of the axis take, in sizes of its font.
    """
    axes.set(
        **{name: text for name, text in (("title", title), ("xlabel", x), ("ylabel", y)) if text}
    )
    axes.grid(axis=lines, linewidth=0.4, alpha=0.6)
    axes.set_axisbelow(True)
    handles, labels = axes.get_legend_handles_labels()
    if right is not None:
        more, names = right.get_legend_handles_labels()
        handles, labels = handles + more, labels + names
    if legend and handles:
        axes.legend(
            handles,
            labels,
            loc="upper center",
            bbox_to_anchor=(0.5, 0.0),
            borderaxespad=below,
            ncols=legend,
            frameon=False,
            fontsize="small",
        )
    return axes


def plain_numbers(axes: Axes, which: str, subs: Sequence[float] = ()) -> None:
    """Write numbers on a logarithmic axis as people do, at so many times each power of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter  # noqa: PLC0415

    axis = axes.xaxis if which == "x" else axes.yaxis
    if subs:
        axis.set_major_locator(LogLocator(subs=subs))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


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
