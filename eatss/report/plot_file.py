"""Whether a plot can be drawn here, asked before time goes into what it shows."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from eatss.diagnostics import input_error

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
    if find_spec("matplotlib") is None:
        raise input_error(
            "EATSS-E052",
            "plots need matplotlib, which is not installed",
            hint="install it with: pip install 'eatss[plot]'",
        )
