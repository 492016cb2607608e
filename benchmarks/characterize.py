"""What was measured of the H200: tables and plots of microbenchmarks and of the fitted roofline.

    python benchmarks/characterize.py                     # what was recorded on an H200
    python benchmarks/characterize.py --output DIR        # the plots somewhere else
    python benchmarks/characterize.py --no-plots

It reads three runs on two cards which ``eatss characterize`` wrote: everything on card A, the
fitted groups once more there and on card B. It prints tables in the columns
of MIPP, Tables I to IV, the coefficients of each run with the differences between runs and cards,
and how well they explain the energies. It draws the figures of Choi and Vuduc (2, 4 to 7), of MIPP
(6 to 8) and of Allen and Ge (4 to 9). It needs no card.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from math import fsum
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rich.console import RenderableType
from rich.table import Table

from benchmarks.card_figures import block_figure, fitted_figure, memory_figure
from benchmarks.recorded import RESULTS
from eatss.cards import load_profile
from eatss.cards.profile import COEFFICIENTS, Calibration
from eatss.measurement.characterize.benchmark import read_record
from eatss.measurement.characterize.fit import calibrated
from eatss.measurement.characterize.roofline import WIDTHS
from eatss.report.card_plots import roofline_figure
from eatss.report.characterization import CardRoofline, arithmetic_rows, memory_rows
from eatss.report.pages import page
from eatss.report.plots import save_figure
from eatss.report.render import figure, listing, percent, render

RUNS = ("run 1, card A", "run 2, card A", "run 3, card B")
FILES = ("characterize-1.jsonl", "characterize-2.jsonl", "characterize-3.jsonl")
PROFILE = "h200"


def report(results: Path) -> None:
    """Print the tables; arithmetic, memory and latencies are of the first record."""
    records = [read_record(results / file) for file in FILES]
    fitted = [calibrated(record) for record in records]
    first, (_, fit) = records[0], fitted[0]
    runs = dict(zip(RUNS, (calibration for calibration, _ in fitted), strict=True))
    joined = load_profile(PROFILE).calibration
    assert joined is not None
    parts: list[RenderableType] = [
        f"{first.subject.name}, {RUNS[0]}. An instruction is one of a thread (an mma is 32), "
        "a rate that of an SM in a cycle. Gross is all that the card drew, net leaves out "
        f"{fit.constant_w.value:.1f} W of constant power.",
        "",
        *page("named_rows", what="instruction", rows=arithmetic_rows(first, fit)),
        "",
        "Accesses are of warps, on the whole card. A transaction is 128 bytes of a line, or a "
        "cycle of shared memory.",
        "",
        *page("named_rows", what="memory", rows=memory_rows(first, fit)),
        "",
        *page("latency", record=first, clock_mhz=fit.top_clock_mhz),
        "",
        "Coefficients of each run. Prices are those of an instruction of a warp at the highest "
        "clock; runs: range of both runs on card A over their mean; cards: difference of the "
        "cards' means.",
        "",
        runs_table(runs),
        "",
        f"Coefficients of the profile {PROFILE}, with the mean of the cards' intervals",
        "",
        *page("coefficients", calibration=joined),
    ]
    for label, (_, one) in zip(RUNS, fitted, strict=True):
        parts += ["", f"Fit of {label}", *page("fit", fit=one)]
    print(render(*parts), end="")


def draw(results: Path, folder: Path) -> None:
    """Save the figures as ``characterize-*.png``; they are of card A's first run."""
    first = read_record(results / FILES[0])
    profile = load_profile(PROFILE)
    _, fit = calibrated(first)
    name = first.subject.name
    card = CardRoofline(profile=profile, widths=WIDTHS, record=first)
    figures = {
        "roofline": roofline_figure(card.roofs(), f"{name}: rooflines in time, energy and power"),
        "memory": memory_figure(first, f"{name}: what an access costs"),
        "blocks": block_figure(first, f"{name}: access patterns over sizes of blocks"),
        "fit": fitted_figure(
            [(one.fitted_j, one.energy_j) for one in fit.residuals],
            f"{len(fit.residuals)} benchmarks",
            f"{name}: energy of a repeat, fitted and measured",
        ),
    }
    for suffix, drawn in figures.items():
        save_figure(drawn, folder / f"characterize-{suffix}.png")


def runs_table(runs: Mapping[str, Calibration]) -> Table:
    """Return the coefficients of several runs side by side, and how far they are apart.

    ``runs`` differ by the range over the mean between runs of one card, ``cards`` by that between
    the cards' means; ``-`` where there is only one.
    """
    rows = []
    for name, (unit, _) in COEFFICIENTS.items():
        values = [one.value(name) for one in runs.values()]
        if any(value is not None for value in values):
            factor, shown_unit = (1e6, "µs") if unit == "s" else (1.0, unit)
            between = differences(name, tuple(runs.values()))
            rows.append(
                (
                    name,
                    *(figure(value, factor=factor) for value in values),
                    shown_unit,
                    *(percent(share, ".2f") for share in between),
                )
            )
    titles = ("coefficient", *(f">{one}" for one in runs), "unit", ">runs", ">cards")
    return listing(titles, rows)


def differences(
    name: str, calibrations: Sequence[Calibration]
) -> tuple[float | None, float | None]:
    """Return how far a coefficient is apart between runs of one card and between cards.

    Shares of the mean: the range of runs of one card, the largest of any card; the range of the
    cards' means. ``None`` where there is only one run of each card, or one card.
    """
    cards: dict[tuple[str, ...], list[float]] = {}
    for one in calibrations:
        value = one.value(name)
        if value is not None:
            cards.setdefault(one.cards, []).append(value)
    repeated = [_spread(values) for values in cards.values() if len(values) > 1]
    means = [fsum(values) / len(values) for values in cards.values()]
    return max(repeated, default=None), _spread(means) if len(means) > 1 else None


def _spread(values: Sequence[float]) -> float:
    mean = fsum(values) / len(values)
    return (max(values) - min(values)) / mean if mean else 0.0


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables and save the plots."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder of the plots")
    parser.add_argument("--no-plots", action="store_true", help="print the tables only")
    options = parser.parse_args(arguments)
    report(RESULTS)
    if not options.no_plots:
        draw(RESULTS, options.output)


if __name__ == "__main__":
    main()
