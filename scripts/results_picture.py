"""Draw the picture of README and home page from committed sweeps: ``docs/images/sweeps.svg``.

    python scripts/results_picture.py

Needs matplotlib. The numbers it shows stand in the description of the picture, too, for readers
who do not see it, and for the test that compares them with the stores.
"""

from __future__ import annotations

from pathlib import Path

import eatss
from eatss.tune.rows import Row, Sweep

REPOSITORY = Path(__file__).resolve().parents[1]
STORES = REPOSITORY / "benchmarks" / "results" / "h200" / "sweeps"
PICTURE = REPOSITORY / "docs" / "images" / "sweeps.svg"
PROGRAMS = ("gemm", "conv-2d")
CHOICES = {
    "default": ("s", "#7f7f7f", "32 for every loop"),
    "paper": ("D", "#d95f02", "the EATSS paper's model"),
    "ours": ("*", "#1b7837", "eatss"),
}


def measured(sweep: Sweep) -> list[Row]:
    """Return the measured variants of a sweep, careful rows in the place of first ones."""
    best = {row.variant: row for row in sweep.rows if row.measured and row.stage == "first"}
    best |= {row.variant: row for row in sweep.rows if row.measured and row.stage == "careful"}
    return list(best.values())


def chosen(rows: list[Row], role: str) -> Row:
    """Return the row of a choice."""
    return next(row for row in rows if row.role == role)


def joules(row: Row) -> float:
    """Return the energy of a measured row in joules."""
    assert row.energy_j is not None
    return row.energy_j


def milliseconds(row: Row) -> float:
    """Return the time of a measured row in milliseconds."""
    assert row.time_s is not None
    return row.time_s * 1e3


def on_tensor_cores(row: Row) -> bool:
    """Tell whether warps compute the products of a row; nothing decides it of other programs."""
    return dict(row.values).get("warps", "none") != "none"


def description() -> str:
    """Return in words what the picture shows."""
    sentences = []
    for program in PROGRAMS:
        rows = measured(eatss.read_sweep(STORES / f"{program}.db"))
        points = ", ".join(
            f"{meaning} {milliseconds(row):.3g} ms and {joules(row):.3g} J"
            for role, (_, _, meaning) in CHOICES.items()
            for row in [chosen(rows, role)]
        )
        least = min(joules(row) for row in rows)
        fast = sum(map(on_tensor_cores, rows))
        which = f" ({fast} on tensor cores)" if fast else ""
        sentences.append(f"{program}: {points}; least energy of {len(rows)}{which} {least:.3g} J.")
    return " ".join(sentences)


def draw() -> None:
    """Write the picture."""
    import matplotlib as mpl  # noqa: PLC0415 - the test of the numbers needs none

    mpl.use("svg")
    mpl.rcParams |= {"svg.hashsalt": "eatss", "svg.fonttype": "none", "font.size": 11}
    from matplotlib import pyplot  # noqa: PLC0415

    figure, axes = pyplot.subplots(1, len(PROGRAMS), figsize=(9, 4.2), layout="constrained")
    for axis, program in zip(axes, PROGRAMS, strict=True):
        rows = measured(eatss.read_sweep(STORES / f"{program}.db"))
        for name, kind, colour in (
            ("a variant", False, "#9ecae1"),
            ("a variant on tensor cores", True, "#3182bd"),
        ):
            drawn = [row for row in rows if on_tensor_cores(row) == kind]
            x, y = [milliseconds(row) for row in drawn], [joules(row) for row in drawn]
            axis.scatter(x, y, s=12, color=colour, label=name)
        for role, (marker, colour, meaning) in CHOICES.items():
            row = chosen(rows, role)
            size = 260 if role == "ours" else 80
            style = {"marker": marker, "color": colour, "s": size, "edgecolor": "black"}
            axis.scatter(milliseconds(row), joules(row), label=meaning, zorder=3, **style)
        axis.set(xscale="log", yscale="log", xlabel="time of a run, ms", title=program)
        for line in (axis.xaxis, axis.yaxis):
            line.set_major_locator(mpl.ticker.LogLocator(subs=(1, 2, 5)))
            line.set_major_formatter(mpl.ticker.StrMethodFormatter("{x:g}"))
            line.set_minor_formatter(mpl.ticker.NullFormatter())
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("energy of a run, J")
    axes[1].legend(loc="upper left", fontsize=10)
    metadata = {"Date": None, "Creator": None, "Description": description()}
    figure.savefig(PICTURE, metadata=metadata)


if __name__ == "__main__":
    draw()
