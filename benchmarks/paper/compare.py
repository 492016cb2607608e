"""The tables of the page beside the EATSS paper: printed, selected, predicted, measured.

    python benchmarks/paper/compare.py    # prints them and writes them into docs/paper.md

Published numbers are in ``published.toml`` and ``figure7.csv``, selections and predictions in
``selections.csv`` (written by ``selections.py``), measurements in ``benchmarks/results``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from math import ceil
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.library import LIBRARY
from benchmarks.paper.selections import (
    BY_SIZE,
    DATASETS,
    H200,
    HALF,
    SELECTED,
    THREE,
    Selected,
    figure7,
    published,
    read_selections,
)
from benchmarks.paper.studies import LOOP_SIZES, SCRIPTS_SIZES
from benchmarks.ppcg_records import DEFAULT, Row, load_rows
from benchmarks.recorded import RESULTS, geometric_mean
from benchmarks.tables import renewed, table
from benchmarks.windows import read_rows
from eatss.base.frozen import frozen
from eatss.cards import GpuProfile, load_profile

PAGE = Path(__file__).resolve().parents[2] / "docs" / "paper.md"
TITLES = {"ga100": "GA100", "xavier": "Xavier"}
MODELS = {"paper": "text's model", "artifact": "scripts' model"}
PPCG_ROWS, PPCG_COLUMNS = 16, 32
"""Threads of a block that PPCG takes by itself."""

PRODUCTS = {"gemm": 1, "2mm": 2, "3mm": 3}
"""Products of 4000³ in each."""

Pair = tuple[float, float]
"""Energy and time."""


@cache
def selections() -> tuple[Selected, ...]:
    """Return what is selected here."""
    return tuple(read_selections())


def choices(card: str, kernel: str, chosen_by: str, dataset: str | None = None) -> list[Selected]:
    """Return the choices for a kernel, at the dataset of Fig. 7 if none is named."""
    if dataset is None:
        dataset = published()["figure7"]["dataset"][card]
    wanted = (card, kernel, chosen_by, dataset)
    return [
        one for one in selections() if (one.card, one.kernel, one.chosen_by, one.dataset) == wanted
    ]


def over(default: Sequence[Selected], chosen: Sequence[Selected]) -> Pair | None:
    """Return PPCG's default over the choice of least energy, as predicted."""
    (first,) = default
    known = [one for one in chosen if one.energy_j is not None]
    if not known or first.energy_j is None or first.time_s is None:
        return None
    best = min(known, key=lambda one: one.energy_j or 0.0)
    assert best.energy_j is not None
    assert best.time_s is not None
    return first.energy_j / best.energy_j, first.time_s / best.time_s


def predicted_ratio(card: str, kernel: str, chosen_by: str) -> Pair | None:
    """Return PPCG's default over a choice as predicted, a model's at a warp fraction of a half."""
    chosen = choices(card, kernel, chosen_by)
    chosen = [one for one in chosen if one.warp_fraction in (None, HALF)]
    return over(choices(card, kernel, DEFAULT), chosen)


@cache
def measured() -> dict[tuple[str, str], Pair]:
    """Return PPCG's default over variants on the H200, by kernel and arguments, in doubles.

    Arguments are ``least`` for the least energy tried of a kernel. Of several runs the last that
    has a variant counts.
    """
    found: dict[tuple[str, str], Pair] = {}
    for path in sorted({*RESULTS.glob("ppcg*.jsonl"), *RESULTS.glob("variants*.jsonl.xz")}):
        pairs: dict[tuple[str, str], list[Pair]] = {}
        for row in load_rows([path]):
            if row.status == "ok" and row.dtype == "double" and row.energy_j and row.time_ms:
                pairs.setdefault((row.kernel, row.arguments), []).append(
                    (row.energy_j, row.time_ms)
                )
        mean = {
            key: (geometric_mean([a for a, _ in own]), geometric_mean([b for _, b in own]))
            for key, own in pairs.items()
        }
        for (kernel, arguments), own in mean.items():
            if default := mean.get((kernel, "")):
                ratio = default[0] / own[0], default[1] / own[1]
                found[kernel, arguments] = ratio
                found[kernel, "least"] = max(found.get((kernel, "least"), ratio), ratio)
    return found


def measured_selection(kernel: str) -> Pair | None:
    """Return PPCG's default over what is selected for the H200 now, where that was measured."""
    (chosen,) = choices(H200, kernel, SELECTED, "")
    return measured().get((kernel, chosen.arguments))


def pair(ratio: Pair | None) -> str:
    """Print a ratio of energy and one of time."""
    return "–" if ratio is None else f"{_short(ratio[0])}, {_short(ratio[1])}"


def _short(number: float) -> str:
    return (
        f"{number:.0f}" if number >= 100 else f"{number:.1f}" if number >= 10 else f"{number:.2f}"
    )


def _means(columns: Iterable[Sequence[Pair | None]]) -> list[str]:
    cells = []
    for column in columns:
        known = [one for one in column if one is not None]
        means = [geometric_mean([one[place] for one in known]) for place in (0, 1)] if known else []
        cells.append(f"{_short(means[0])}, {_short(means[1])} ({len(known)})" if means else "–")
    return cells


FIGURES_OF_CARDS = """
    threads_per_block threads_per_warp registers_per_sm registers_per_thread registers_per_block
    sm_count l1_shared_kib l2_kib shared_per_block_kib shared_per_sm_kib peak_fp64_gflops tdp_w
    architecture
""".split()  # noqa: SIM905 - words are easier to read than quotes
"""Of Tables I and III."""


def _figure(profile: GpuProfile, name: str) -> Any:
    """Return a figure of a card by its name in the paper's tables."""
    found = getattr(profile, name.replace("_kib", "_bytes"))
    return found // 1024 if name.endswith("_kib") else found


def tables_1_and_3() -> str:
    """Compare the printed figures of the cards with the profiles."""
    numbers = published()
    lines = []
    for card, title in TITLES.items():
        profile = load_profile(card)
        printed = {**numbers["table3"][card], **(numbers["table1"] if card == "ga100" else {})}
        own = {name: _figure(profile, name) for name in FIGURES_OF_CARDS}
        differ = [
            f"{name.replace('_', ' ')}: printed {printed[name]}, here {value:g}"
            if isinstance(value, (int, float))
            else f"{name}: printed {printed[name]}, here {value}"
            for name, value in own.items()
            if name in printed and printed[name] != value
        ]
        equal = sum(name in printed and printed[name] == value for name, value in own.items())
        lines.append([title, str(equal), "; ".join(differ) or "none"])
    return table(["card", "figures that agree", "figures that differ"], lines)


def of_kernels(heads: Sequence[str], found: Mapping[str, Sequence[Pair | None]]) -> str:
    """Return a table of ratios, a kernel a line, and their means."""
    lines = [[kernel, *map(pair, cells)] for kernel, cells in found.items()]
    lines.append(["geometric mean (kernels)", *_means(zip(*found.values(), strict=True))])
    return table(["kernel", *heads], lines)


def figure_7(card: str) -> str:
    """Return the table of Fig. 7 beside ours."""
    asked = {one.chosen_by for one in selections() if one.card == card}
    models = [model for model in MODELS if model in asked]
    heads = ["printed: EATSS", "printed: best"]
    heads += [MODELS[model] for model in models]
    heads += ["selected"]
    found: dict[str, list[Pair | None]] = {}
    for row in figure7():
        if row["card"] != card:
            continue
        kernel = row["kernel"]
        energy, gflops = float(row["default_energy"]), float(row["default_gflops"])
        cells: list[Pair | None] = [
            (energy / float(row[f"{who}_energy"]), float(row[f"{who}_gflops"]) / gflops)
            for who in ("ours", "best")
        ]
        cells += [predicted_ratio(card, kernel, model) for model in (*models, SELECTED)]
        found[kernel] = cells
    return of_kernels(heads, found)


def on_the_h200() -> str:
    """Return the kernels of Fig. 7 and Fig. 10 as measured on an H200."""
    kernels = [row["kernel"] for row in figure7() if row["card"] == "ga100"]
    found = {
        kernel: [measured_selection(kernel), measured().get((kernel, "least"))]
        for kernel in (*kernels, *THREE)
    }
    return of_kernels(["selected", "least of all tried"], found)


def products_of_figure_7() -> str:
    """Return what the printed numbers of plain products say of each other."""
    lines = []
    for row in figure7():
        if row["card"] == "ga100" and row["kernel"] in PRODUCTS:
            operations = 2 * PRODUCTS[row["kernel"]] * 4000**3 / 1e9
            energy_j = float(row["default_energy"])
            time_s = operations / float(row["default_gflops"])
            product = float(row["default_ppw"]) * energy_j
            (default,) = choices("ga100", row["kernel"], DEFAULT)
            assert default.energy_j is not None
            assert default.time_s is not None
            cells = (
                f"{operations:.0f}",
                f"{product:.0f}",
                f"{product / operations:.2f}",
                f"{time_s * 1e3:.0f} ms, {energy_j / time_s:.0f} W",
                f"{default.time_s * 1e3:.0f} ms, {default.energy_j / default.time_s:.0f}&nbsp;W",
            )
            lines.append([row["kernel"], *cells])
    heads = ["PPCG's default", "2 N³ of each product, GFLOP", "PPW × J", "ratio"]
    return table([*heads, "printed: time, power by 2 N³", "predicted here"], lines)


def over_shares(ratio: Callable[[str, float, float], float | None]) -> str:
    """Return what a model takes of the default's energy at each share and warp fraction."""
    numbers = published()
    shares = numbers["figure8"]["shared_shares"]["ga100"]
    fractions = numbers["section5d"]["warp_fractions"]

    def cell(kernel: str, share: float) -> str:
        ratios = [ratio(kernel, share, fraction) for fraction in fractions]
        return " / ".join("–" if one is None else _short(1 / one) for one in ratios)

    kernels = [row["kernel"] for row in figure7() if row["card"] == "ga100"]
    heads = ["kernel", *(f"{share:.0%} shared".replace("%", " %") for share in shares)]
    return table(heads, [[one, *(cell(one, share) for share in shares)] for one in kernels])


def figure_8() -> str:
    """Return the predicted energy of the paper's model at each share and warp fraction."""

    def ratio(kernel: str, share: float, fraction: float) -> float | None:
        own = choices("ga100", kernel, "paper")
        own = [one for one in own if (one.split, one.warp_fraction) == (share, fraction)]
        found = over(choices("ga100", kernel, DEFAULT), own)
        return None if found is None else found[0]

    return over_shares(ratio)


def figure_10() -> str:
    """Return the three kernels of Fig. 10, and Sec. V-D's counts."""
    numbers = published()
    lines = []
    for kernel in THREE:
        fits = [
            f"{sum(bool(one.arguments) for one in own)} {model}"
            for model in MODELS
            if (own := choices("ga100", kernel, model))
        ]
        cells = [
            pair((numbers["figure10"]["energy"][kernel], numbers["figure10"]["speedup"][kernel])),
            *(pair(predicted_ratio("ga100", kernel, by)) for by in (*MODELS, SELECTED)),
            str(numbers["section5d"]["configurations"][kernel]),
            ", ".join(fits),
        ]
        lines.append([kernel, *cells])
    heads = ["kernel", "printed", *MODELS.values(), "selected"]
    heads += ["of 12 fit, printed", "of 12 fit here"]
    return table(heads, lines)


def over_datasets(cell: Callable[[str, str], str]) -> str:
    """Return a table of kernels over PolyBench's datasets."""
    heads = ["kernel", *(dataset.lower() for dataset in DATASETS)]
    return table(heads, [[kernel, *(cell(kernel, one) for one in DATASETS)] for kernel in BY_SIZE])


def problem_sizes() -> str:
    """Return predicted power and energy over the datasets, for Figs. 12 and 13."""

    def cell(kernel: str, dataset: str) -> str:
        both = [choices("ga100", kernel, by, dataset) for by in (DEFAULT, SELECTED)]
        watts = [
            f"{one.energy_j / one.time_s:.0f}" if one.energy_j and one.time_s else "–"
            for (one,) in both
        ]
        ratio = over(both[0], both[1])
        return f"{' → '.join(watts)} W, {'–' if ratio is None else _short(ratio[0])}"

    return over_datasets(cell)


@cache
def study(name: str) -> tuple[Row, ...]:
    """Return the rows of a study that was run on H200s; none if it was not."""
    path = RESULTS / f"studies-{name}.jsonl.xz"
    return load_rows([path]) if path.exists() else ()


@frozen
class Against:
    """PPCG's default over a variant on the same card."""

    kernel: str
    variant: str
    launched: bool
    time: float | None = None
    energy: float | None = None


def against_default(rows: Sequence[Row]) -> list[Against]:
    """Return PPCG's default over each variant, both as measured on one card."""
    by_card: dict[tuple[str, str], dict[str, list[Row]]] = {}
    for row in rows:
        by_card.setdefault((row.card, row.kernel), {}).setdefault(row.variant, []).append(row)
    found = []
    for (_, kernel), variants in by_card.items():
        usual = _amounts(variants.get(DEFAULT, ()))
        for name, listed in variants.items():
            same = listed[0].reason if listed[0].status == "alias" else name
            own = variants[same]
            if name == DEFAULT or own[0].status in ("not generated", "not compiled"):
                continue
            mine = _amounts(own)
            both = [None if not a or not b else a / b for a, b in zip(usual, mine, strict=True)]
            found.append(
                Against(
                    kernel=kernel,
                    variant=name,
                    launched=mine[0] is not None,
                    time=both[0],
                    energy=both[1],
                )
            )
    return found


def _amounts(rows: Sequence[Row]) -> tuple[float | None, float | None]:
    """Return the means of milliseconds and joules."""
    own = [row for row in rows if row.status == "ok"]
    means = []
    for name in ("time_ms", "energy_j"):
        known = [getattr(row, name) for row in own if getattr(row, name) is not None]
        means.append(sum(known) / len(known) if known else None)
    return means[0], means[1]


def figures_2_and_3() -> str:
    """Return how 2mm's variants stand beside PPCG's default, as measured."""
    every = against_default(study("2mm-space"))
    lines = []
    for title, sizes in (("15 sizes a loop", LOOP_SIZES), ("the scripts' nine", SCRIPTS_SIZES)):
        own = [one for one in every if {*map(int, one.variant.split("-"))} <= {*sizes}]
        cells = [f"{len(own)} of {len(sizes) ** 3}", str(sum(one.launched for one in own))]
        for what in ("energy", "time"):
            known = [
                (ratio, one.variant) for one in own if (ratio := getattr(one, what)) is not None
            ]
            better = sum(ratio > 1 for ratio, _ in known) / len(own)
            best, name = max(known)
            cells += [f"{better:.0%}".replace("%", " %"), f"{best:.2f} ({name})"]
        lines.append([title, *cells])
    heads = ["variants", "measured", "launch", "less energy", "best", "less time", "best"]
    return table(heads, lines)


def plot_figures_2_and_3(path: Path) -> None:
    """Draw energy over time of 2mm's variants, as measured, by the points of a thread."""
    from matplotlib.colors import LogNorm  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    every = [one for one in against_default(study("2mm-space")) if one.energy and one.time]
    sizes = [[*map(int, one.variant.split("-"))] for one in every]
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    drawn = axes.scatter(
        [1 / (one.time or 1.0) for one in every],
        [1 / (one.energy or 1.0) for one in every],
        c=[ceil(rows / PPCG_ROWS) * ceil(columns / PPCG_COLUMNS) for rows, columns, _ in sizes],
        s=5,
        norm=LogNorm(),
        cmap="viridis",
    )
    figure.colorbar(drawn, label="points of a thread").ax.yaxis.set_major_formatter("{x:g}")
    axes.axhline(1, color="0.6", linewidth=0.8)
    axes.axvline(1, color="0.6", linewidth=0.8)
    axes.set(
        xscale="log", yscale="log", xlabel="time over that of PPCG's default",
        ylabel="energy over that of PPCG's default",
    )  # fmt: skip
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter("{x:g}")
    figure.savefig(path, dpi=110)


def figure_8_measured() -> str:
    """Return the measured energy of the paper's model at each share and warp fraction."""
    found = {(one.kernel, one.variant): one for one in against_default(study("splits"))}

    def ratio(kernel: str, share: float, fraction: float) -> float | None:
        one = found.get((kernel, f"paper-{share}-{fraction}"))
        return None if one is None else one.energy

    return over_shares(ratio)


def problem_sizes_measured() -> str:
    """Return PPCG's default over the selection, measured energy and time, over the datasets."""
    found = {one.kernel: one for one in against_default(study("sizes")) if one.variant == SELECTED}

    def cell(kernel: str, dataset: str) -> str:
        one = found.get(f"{kernel}-{dataset.lower()}")
        if one is None or one.time is None:
            return "–"
        return pair((one.energy, one.time)) if one.energy else f"–, {_short(one.time)}"

    return over_datasets(cell)


def table_4() -> str:
    """Return Table IV beside a product that was measured here."""
    lines = []
    for one in published()["table4"]:
        energy = one["energy_j"]["library"] / one["energy_j"]["ours"]
        time = one["gflops"]["ours"] / one["gflops"]["library"]
        title = TITLES[one["card"]]
        lines.append([f"{one['library']}, {one['kernel']}", title, pair((energy, time)), "PPCG"])
    rows = {
        row.program: row
        for row in read_rows(RESULTS.parent / "h100" / "library.json")
        if (row.workload, row.dtype) == ("gemm", "double")
    }
    own, other = rows[SELECTED], rows[LIBRARY]
    ratio = other.energy_j / own.energy_j, other.time_s / own.time_s
    lines.append(["cuBLAS, gemm, measured here", "H100", pair(ratio), "`eatss codegen`"])
    return table(["library", "card", "library ÷ ours: energy, time", "whose code"], lines)


TABLES: Mapping[str, Callable[[], str]] = {
    "cards": tables_1_and_3,
    "figure 7 on ga100": lambda: figure_7("ga100"),
    "figure 7 on xavier": lambda: figure_7("xavier"),
    "measured on an h200": on_the_h200,
    "products of figure 7": products_of_figure_7,
    "figures 2 and 3": figures_2_and_3,
    "figure 8": figure_8,
    "figure 8 measured": figure_8_measured,
    "figure 10": figure_10,
    "problem sizes": problem_sizes,
    "problem sizes measured": problem_sizes_measured,
    "libraries": table_4,
}


def main() -> None:
    """Print the tables and write them into the page."""
    text = renewed(PAGE.read_text(encoding="utf-8"), TABLES)
    PAGE.write_text(text, encoding="utf-8")
    plot_figures_2_and_3(RESULTS / "studies-2mm-space.png")
    for name, make in TABLES.items():
        print(f"{name}\n\n{make()}")


if __name__ == "__main__":
    main()
