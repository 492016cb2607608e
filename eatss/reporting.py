"""``eatss.sweep_report``: stores of sweeps in; numbers, and a page if wanted, out."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Literal, TypeAlias

from eatss.base.codec import json_text
from eatss.base.diagnostics import input_error
from eatss.base.files import StrPath
from eatss.report.plots import (
    check_matplotlib,
    check_plot_file,
    save_figure,
    unwritable,
    write_bytes,
)
from eatss.tune.evaluation import Evaluated, SweepReport, evaluate, summed_up
from eatss.tune.exchange import sweep_csv
from eatss.tune.rows import Sweep
from eatss.tune.store import check_no_store, read_sweep

ReportFormat: TypeAlias = Literal["html", "text", "json", "csv"]
FigureFormat: TypeAlias = Literal["png", "svg", "pdf"]

_SUFFIXES: dict[str, ReportFormat] = {
    ".html": "html",
    ".htm": "html",
    ".json": "json",
    ".csv": "csv",
    ".txt": "text",
}


def sweep_report(
    sweeps: StrPath | Sweep | Sequence[StrPath | Sweep],
    *,
    output: StrPath | None = None,
    figures: StrPath | None = None,
) -> SweepReport:
    """Evaluate sweeps: optima, trade-offs, ranks of the choices, correlations, means over sweeps.

    Args:
        sweeps: Files of ``eatss sweep``, recorded sweeps of eatss (``"@gemm"``), or what
            ``eatss.read_sweep`` returned; one or several.
        output: A file to write as well: ``.html``, a page that needs nothing outside of itself,
            ``.json``, ``.txt``, or ``.csv`` with a line a measurement.
        figures: A folder to write each figure to, as PNG.

    Returns:
        The numbers of each sweep, and geometric means over all.

    Raises:
        InputError: a store cannot be read (``EATSS-D001`` to ``D005``); the page needs a
            package that is not installed (``EATSS-E052``); a file cannot be written
            (``EATSS-E053``); ``output`` is what is read, or a store (``EATSS-C008``).
    """
    several = [sweeps] if isinstance(sweeps, str | PathLike | Sweep) else sweeps
    place = None if output is None else Path(fspath(output))
    if place is not None:
        chosen = checked_output(place, None)
        check_no_store(place, [one for one in several if isinstance(one, str | PathLike)])
    found = evaluated(several)
    if place is not None:
        write_bytes(place, rendered(found, chosen).encode())
    if figures is not None:
        write_figures(found, Path(fspath(figures)), "png")
    return summed_up(found)


def evaluated(sweeps: Sequence[StrPath | Sweep]) -> tuple[Evaluated, ...]:
    """Read and evaluate sweeps, one that is given twice once.

    Raises:
        InputError: a store cannot be read, or there is none (``EATSS-D001``).
    """
    if not sweeps:
        raise input_error("EATSS-D001", "there is no sweep to report", hint="name a store")
    named = {fspath(one) if isinstance(one, str | PathLike) else id(one): one for one in sweeps}
    return tuple(
        evaluate(read_sweep(one, measurements=False) if isinstance(one, str | PathLike) else one)
        for one in named.values()
    )


def rendered(found: Sequence[Evaluated], output: ReportFormat) -> str:
    """Return a report as ``html``, ``text`` or ``json``, or the measurements as ``csv``.

    Raises:
        InputError: ``EATSS-E052`` a package is not installed.
    """
    if output == "csv":
        return sweep_csv(*(one.sweep for one in found))
    report = summed_up(found)
    if output == "json":
        return json_text(report)
    if output == "text":
        from eatss.report.sweep_tables import report_text  # noqa: PLC0415

        return report_text(report)
    from eatss.report.sweep_page import html_page  # noqa: PLC0415 - matplotlib

    return html_page(found, report)


def checked_output(path: Path, output: ReportFormat | None) -> ReportFormat:
    """Return the format of a file, by its name if none is told, before time goes into it.

    Raises:
        InputError: ``EATSS-E052`` the page needs a package that is not installed, ``EATSS-E053``
            no format has this name, or there is no such folder.
    """
    chosen = output or _SUFFIXES.get(path.suffix.lower())
    if chosen is None:
        raise input_error(
            "EATSS-E053",
            f"'{path}' is no name for a report",
            hint="let it end in .html, .json, .csv or .txt, or name a --format",
        )
    if path.is_dir() or not path.parent.is_dir():
        raise unwritable(path, "there is no such folder, or it is one")
    if chosen == "html":
        check_matplotlib()
    return chosen


def write_figures(found: Sequence[Evaluated], folder: Path, kind: FigureFormat) -> tuple[Path, ...]:
    """Write each figure of each sweep to a folder, which is made; return the files.

    Of several sweeps, names begin with the number and the name of the program.

    Raises:
        InputError: ``EATSS-E052`` matplotlib is not installed, ``EATSS-E053`` a file cannot be
            written, ``EATSS-E053`` the folder cannot be made.
    """
    from eatss.report.sweep_figures import sweep_figures  # noqa: PLC0415 - matplotlib

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(folder, error) from None
    check_plot_file(folder / f"figure.{kind}")
    written = []
    for number, one in enumerate(found, 1):
        program = one.evaluation.identity.program.replace("/", "-")
        prefix = f"{number}-{program}-" if len(found) > 1 else ""
        for figure in sweep_figures(one):
            path = folder / f"{prefix}{figure.name}.{kind}"
            save_figure(figure.draw(), path)
            written.append(path)
    return tuple(written)
