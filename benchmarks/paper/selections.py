"""What this project selects for the two cards of the EATSS paper, and what it predicts of it.

    python benchmarks/paper/selections.py [CARD ...] [--ask MODEL ...]    # renews selections.csv

Kernels and datasets are those of Fig. 7, and GA100's three others of Fig. 10. For each: PPCG's
default, the least predicted energy (``selected``), and the published models at every share of
shared memory of Fig. 8 and warp fraction of Sec. V-D. All are priced by the same prediction of what
PPCG makes of them. For the H200 it is what is selected at the sources' own sizes, to be looked up
among measurements. Choices of the published models are kept and priced anew, unless ``--ask`` has
them solved again, which takes half an hour on two cores. It needs no card.
"""

from __future__ import annotations

import argparse
import csv
import sys
import tomllib
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import eatss
from benchmarks.ppcg_records import DEFAULT
from benchmarks.prediction import predicted, read_arguments
from eatss.base.shipped import data_directory
from eatss.cards import load_profile
from eatss.cost.ppcg_model import PpcgModel

HERE = Path(__file__).resolve().parent
SELECTIONS = HERE / "selections.csv"
SELECTED = "selected"
MODELS = ("paper", "artifact")
DATASETS = ("SMALL", "STANDARD", "LARGE", "EXTRALARGE")
H200 = "h200"
THREE = ("conv-2d", "heat-3d", "mttkrp")
BY_SIZE = ("2mm", "gemm", "mvt", "fdtd-2d", *THREE)
"""The kernels of Figs. 12 and 13."""

HALF = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Selected:
    """A choice for a kernel; without ``energy_j`` none fits, or none is predicted to run."""

    card: str
    kernel: str
    dataset: str
    chosen_by: str
    split: float | None = None
    warp_fraction: float | None = None
    arguments: str = ""
    time_s: float | None = None
    energy_j: float | None = None


def published() -> dict[str, Any]:
    """Return what the paper prints."""
    return tomllib.loads((HERE / "published.toml").read_text(encoding="utf-8"))


def figure7() -> list[dict[str, str]]:
    """Return the rows of Fig. 7."""
    with (HERE / "figure7.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def of_kernel(job: tuple[str, str, str, tuple[str, ...], tuple[Selected, ...]]) -> list[Selected]:
    """Return the choices for a kernel on a card: selected, of models that are asked, and kept."""
    card, kernel, dataset, asked, kept = job
    warnings.simplefilter("ignore")
    source = data_directory("kernels") / f"{kernel}.c"
    defines = [f"{dataset}_DATASET"] if dataset else []
    facts = eatss.inspect(source, dtype="double", defines=defines).facts
    models = [PpcgModel.of(one, load_profile(card)) for one in facts]
    default = Selected(card=card, kernel=kernel, dataset=dataset, chosen_by=DEFAULT)
    chosen = eatss.select(source, gpu=card, dtype="double", defines=defines)
    selected = replace(default, chosen_by=SELECTED, arguments=" ".join(chosen.ppcg_arguments))
    found = [default, selected, *(one for one in kept if one.chosen_by not in asked)]
    for model, split, warps in _grid(card, asked):
        one = replace(default, chosen_by=model, split=split, warp_fraction=warps)
        try:
            own = eatss.select(
                source,
                gpu=card,
                dtype="double",
                defines=defines,
                objective="paper",
                model=model,  # type: ignore[arg-type]
                split=split,
                warp_fraction=warps,
            )
        except eatss.EatssError:
            found.append(one)
        else:
            found.append(replace(one, arguments=" ".join(own.ppcg_arguments)))
    return [_priced(one, models) for one in found]


def _priced(one: Selected, models: Sequence[PpcgModel]) -> Selected:
    fits = one.arguments or one.split is None
    expected = predicted(models, read_arguments(one.arguments)) if fits else None
    energy_j, time_s = expected or (None, None)
    return replace(one, energy_j=energy_j, time_s=time_s)


def _grid(card: str, asked: Sequence[str]) -> Iterator[tuple[str, float, float]]:
    """Return models, splits and warp fractions; the scripts' shares are of a block's 48 KiB."""
    numbers = published()
    profile = load_profile(card)
    block = profile.shared_per_block_bytes / profile.l1_shared_bytes
    fractions = numbers["section5d"]["warp_fractions"] if card == "ga100" else (HALF,)
    for model in asked:
        for share in numbers["figure8"]["shared_shares"][card]:
            for warps in fractions:
                yield model, share * block if model == "artifact" else share, warps


def read_selections() -> list[Selected]:
    """Return what :func:`main` wrote."""
    numbers = {"split", "warp_fraction", "time_s", "energy_j"}
    with SELECTIONS.open(encoding="utf-8", newline="") as file:
        return [
            Selected(
                **{
                    name: (float(text) if text else None) if name in numbers else text
                    for name, text in row.items()
                }  # type: ignore[arg-type]
            )
            for row in csv.DictReader(file)
        ]


def jobs_of(card: str) -> list[tuple[str, str, bool]]:
    """Return kernels and datasets, and whether the published models are of interest there."""
    if card == H200:
        names = dict.fromkeys(row["kernel"] for row in figure7())
        return [(kernel, "", False) for kernel in (*names, *THREE)]
    dataset = published()["figure7"]["dataset"][card]
    jobs = [(row["kernel"], dataset, True) for row in figure7() if row["card"] == card]
    if card == "ga100":
        jobs += [(kernel, dataset, True) for kernel in THREE]
        known = {job[:2] for job in jobs}
        sized = [(kernel, size, False) for kernel in BY_SIZE for size in DATASETS]
        jobs += [job for job in sized if job[:2] not in known]
    return jobs


def main() -> None:
    """Select for the cards that are named, or all, and keep the others' rows."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cards", nargs="*", default=["ga100", "xavier", H200], metavar="CARD")
    parser.add_argument("--ask", choices=MODELS, nargs="+", default=[], help="solve anew")
    options = parser.parse_args()
    before = read_selections()
    found = [one for one in before if one.card not in options.cards]
    jobs = []
    for card in options.cards:
        for kernel, dataset, by_models in jobs_of(card):
            kept = tuple(
                one
                for one in before
                if (one.card, one.kernel, one.dataset) == (card, kernel, dataset)
                and one.chosen_by in MODELS
            )
            jobs.append((card, kernel, dataset, tuple(options.ask) if by_models else (), kept))
    with ProcessPoolExecutor() as pool:
        for own in pool.map(of_kernel, jobs):
            found += own
            print(f"{own[0].card} {own[0].kernel} {own[0].dataset}", flush=True)
    with SELECTIONS.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [one.name for one in fields(Selected)], lineterminator="\n")
        writer.writeheader()
        for one in sorted(found, key=lambda one: one.card):
            row = asdict(one)
            for name in ("time_s", "energy_j"):
                row[name] = "" if row[name] is None else f"{row[name]:.4g}"
            writer.writerow(row)


if __name__ == "__main__":
    main()
