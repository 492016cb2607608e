"""Figures of sweeps: what is drawn is what was found, and axes say their units."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection

from eatss.report.sweep_figures import (
    correlation_bars,
    hull_figure,
    over_metric,
    performance_energy_scatter,
    sorted_distribution,
    spectrum,
    split_bars,
    sweep_figures,
)
from eatss.tune.evaluation import evaluate, of_target
from eatss.tune.population import Floats, convex_hull, pareto_front
from tests.synthetic_sweeps import of_rows, row, sweep

ONE = evaluate(sweep(variants=60, cards=2, careful=4))
FOUND = ONE.found


def clouds(axes: Axes) -> list[Floats]:
    return [
        np.asarray(one.get_offsets()) for one in axes.collections if isinstance(one, PathCollection)
    ]


def texts(axes: Axes) -> list[str]:
    return [one.get_text() for one in axes.texts]


def labels(axes: Axes) -> list[str]:
    return axes.get_legend_handles_labels()[1]


def test_sorting_by_performance_draws_every_variant_from_slow_to_fast() -> None:
    axes = sorted_distribution(FOUND)
    (points,) = clouds(axes)
    assert points[:, 1].tolist() == pytest.approx(sorted(FOUND.performance))
    right = axes.figure.axes[1]
    energies = np.asarray(right.collections[0].get_offsets())[:, 1]
    assert sorted(energies) == pytest.approx(sorted(FOUND.energy_j))
    assert axes.get_ylabel() == "performance in GFLOP/s"
    assert right.get_ylabel() == "energy of a run in J (right)"
    assert axes.lines[0].get_ydata()[0] == pytest.approx(  # type: ignore[index]
        next(r.gflops for r in FOUND.rows if r.role == "default")
    )


def test_choices_are_marked_by_their_letters() -> None:
    for axes in (performance_energy_scatter(FOUND), hull_figure(FOUND)):
        assert texts(axes) == ["P", "E", "U"]
        assert "P default, E paper, U ours" in axes.get_title()
    assert texts(spectrum(FOUND)).count("U") == 2


def test_letters_that_would_cover_each_other_stand_apart() -> None:
    rows = [row(k, 1.0 + k, 1.0 + k) for k in range(5)]
    rows += [row(10, 3.0, 3.0, role="default"), row(11, 3.0, 3.0, role="ours")]
    axes = performance_energy_scatter(evaluate(of_rows(rows)).found)
    beside = {one.xyann for one in axes.texts}  # type: ignore[attr-defined]
    assert len(beside) == len(axes.texts) == 2


def test_the_hull_is_closed_and_the_front_is_on_it() -> None:
    axes = hull_figure(FOUND)
    x, y = FOUND.performance, FOUND.efficiency
    hull, front = axes.lines[0], axes.lines[1]
    assert len(hull.get_xdata()) == len(convex_hull(x, y)) + 1  # type: ignore[arg-type]
    assert list(front.get_xdata()) == pytest.approx(x[list(pareto_front(x, y))].tolist())  # type: ignore[arg-type]
    assert any("thriftiest" in one for one in labels(axes))


def test_bars_of_correlations_are_sorted() -> None:
    axes = correlation_bars(ONE.evaluation.correlations)
    widths = [one.get_width() for one in axes.patches]  # type: ignore[attr-defined]
    assert widths == sorted(widths)
    expected = of_target(ONE.evaluation.correlations, "performance")
    assert [one.get_text() for one in axes.get_yticklabels()] == [c.metric for c in expected]


def test_over_a_metric_each_panel_shows_every_variant_and_its_trend() -> None:
    panels = over_metric(FOUND, "occupancy").figure.axes
    assert len(panels) == 3
    for axes, y in zip(panels, (FOUND.performance, FOUND.efficiency, FOUND.power_w), strict=True):
        (cloud,) = clouds(axes)
        assert cloud[:, 1] == pytest.approx(y)
        (trend,) = axes.lines
        assert np.corrcoef(FOUND.column("occupancy"), y)[0, 1] == pytest.approx(
            float(axes.get_title().split()[2]), abs=0.006
        )
        slope = np.polyfit(FOUND.column("occupancy"), y, 1)[0]
        assert np.ptp(trend.get_ydata()) == pytest.approx(abs(slope) * np.ptp(trend.get_xdata()))


def test_studies_draw_their_numbers() -> None:
    bars = ONE.evaluation.split_study
    heights = [one.get_height() for one in split_bars(bars).patches]  # type: ignore[attr-defined]
    speedups = [one.speedup for one in bars]
    assert heights == pytest.approx([*speedups, *(one.energy or 0.0 for one in bars)])


@pytest.mark.filterwarnings("error")
def test_every_figure_of_a_sweep_can_be_drawn(tmp_path: Path) -> None:
    figures = sweep_figures(ONE)
    names = [one.name for one in figures]
    assert len(set(names)) == len(names) > 9
    for one in figures:
        assert one.caption.endswith(".")
    for one in figures[::7]:  # each kind has a test of its own above
        one.draw().savefig(tmp_path / "figure.png", dpi=30)


@pytest.mark.parametrize(
    "made",
    [
        sweep(variants=12, energy=False, metrics=False, careful=0),
        sweep(variants=3, roles=False, failing=0, references=0, careful=0),
        of_rows([row(1, 1.0, 1.0), row(2, 1.0, 1.0)]),
        of_rows([row(1, 1.0), row(2, 2.0, 1.0, flops=None)]),
    ],
    ids=["no energy", "few", "equal", "no operations"],
)
@pytest.mark.filterwarnings("error")
def test_poor_sweeps_have_the_figures_that_they_can_have(made: object) -> None:
    for one in sweep_figures(evaluate(made)):  # type: ignore[arg-type]
        one.draw().draw_without_rendering()
