"""Kernel Tuner's strategies and those of eatss on a card, at equal seconds, measured alike.

    python benchmarks/tuners.py prepare build/tuners          # needs all of eatss, no card
    python benchmarks/tuners.py run build/tuners -o tuners.json --seconds 60 --seeds 2
    python benchmarks/tuners.py show tuners.json --sweep gemm.db

``prepare`` generates every point of a space of gemm, without tensor cores. ``run`` needs a card,
CuPy, Kernel Tuner and nvidia-ml-py: Kernel Tuner compiles and measures all variants, its
NVMLObserver reads the power, and only who chooses the next one differs. A strategy of eatss is
``eatss:model``; others are Kernel Tuner's. Times are those that Kernel Tuner books for a variant.
``--sweep`` shows beside them what ``eatss sweep`` found in ``space.toml`` of the bundle, by its own
clock and measuring.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from math import inf, isfinite
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from eatss.tune.points import Value, variant_key
from eatss.tune.strategies import ListedSpace, StrategyJob, make

SPACE = """
name = "gemm"
[constants]
max_threads = "card.max_threads_per_block"
shared_bytes = 49152
[iterators]
threads_i = { powers = [2, 4, 32] }
threads_j = { powers = [2, 8, 32] }
points_i = [2, 4, 8]
points_j = [2, 4, 8]
tile_k = [8, 16, 32]
[filters]
"whole warps" = "threads_i * threads_j % 32 == 0"
"threads of a block" = "64 <= threads_i * threads_j <= max_threads"
"registers of the sums" = "8 <= points_i * points_j <= 64"
"shared memory" = "(threads_i * points_i + threads_j * points_j) * (tile_k + 1) * 8 <= shared_bytes"
[variant]
warps = "'none'"
"""
OBJECTIVES: Mapping[str, str] = {"time": "time", "energy": "nvml_energy"}
"""What Kernel Tuner calls our objectives: milliseconds, joules."""

STRATEGIES = (
    "eatss:model",
    "eatss:local",
    "random_sample",
    "genetic_algorithm",
    "greedy_ils",
    "bayes_opt",
)
STATIC_SHARED_BYTES = 48 * 1024
SHARES = (0.1, 0.25, 0.5, 1.0)


@dataclass(frozen=True, slots=True)
class Bundle:
    """What ``prepare`` wrote: a kernel, its arguments, and a text a point."""

    folder: Path
    document: Mapping[str, Any]

    @classmethod
    def read(cls, folder: Path) -> Bundle:
        """Read a bundle."""
        return cls(folder, json.loads((folder / "bundle.json").read_text(encoding="utf-8")))

    @property
    def points(self) -> list[dict[str, Value]]:
        """All points."""
        return [dict(one["values"]) for one in self.document["points"]]

    @property
    def names(self) -> list[str]:
        """Names of a point's values."""
        return list(self.points[0])

    def ranked(self, objective: str) -> tuple[dict[str, Value], ...]:
        """Return the points by what the model predicts, the best first; those that it does."""
        name = {"time": "predicted_time_s", "energy": "predicted_energy_j"}[objective]
        found = [one for one in self.document["points"] if name in one["metrics"]]
        found.sort(key=lambda one: one["metrics"][name])
        return tuple(dict(one["values"]) for one in found)

    def entries(self) -> dict[str, Mapping[str, Any]]:
        """Return what is known of a point, by its key."""
        return {one["key"]: one for one in self.document["points"]}

    def arguments(self) -> list[Any]:
        """Return the kernel's arguments, with random numbers in arrays."""
        dice = np.random.default_rng(0)
        found: list[Any] = []
        for one in self.document["arguments"]:
            scalar = np.dtype(one["dtype"]).type
            found.append(
                dice.random(one["shape"]).astype(one["dtype"]) if one["shape"] else scalar(0.5)
            )
        return found


def prepare(folder: Path, gpu: str, size: int, most: int | None) -> None:
    """Generate a program for each point of the space, and write what ``run`` needs of it."""
    from eatss.base.shipped import data_directory  # noqa: PLC0415
    from eatss.cards import load_profile  # noqa: PLC0415
    from eatss.frontend.options import Reading  # noqa: PLC0415
    from eatss.tune.bound import bind  # noqa: PLC0415
    from eatss.tune.document import read_space  # noqa: PLC0415
    from eatss.tune.jobs import MakerJob, VariantJob  # noqa: PLC0415
    from eatss.tune.makers import CudaMaker  # noqa: PLC0415 - not where the card is
    from eatss.tune.points import card_constants  # noqa: PLC0415

    folder.mkdir(parents=True, exist_ok=True)
    declared = folder / "space.toml"
    declared.write_text(SPACE.lstrip(), encoding="utf-8")
    profile = load_profile(gpu)
    space = bind(read_space(declared), card_constants(profile))
    sizes = dict.fromkeys(("NI", "NJ", "NK"), size)
    maker = CudaMaker(
        MakerJob(
            source=str(data_directory("kernels") / "gemm.c"),
            reading=Reading(defines=sizes),
            target="cuda",
            profile=profile,
            objective="time",
            capability=0,
            folder=str(folder / "programs"),
        )
    )
    kept: list[dict[str, Any]] = []
    document: dict[str, Any] = {}
    for point in space.points() if most is None else space.sample(most, seed=0):
        decisions = tuple(space.decisions(point).items())
        values = tuple(point.items())
        made = maker.make(
            VariantJob(variant=variant_key(point), values=values, decisions=decisions)
        )
        assert made.folder is not None, made.row.reason
        entry, common = _entry(Path(made.folder), sizes, folder)
        if entry is None:
            continue
        document = common
        metrics = dict(made.row.metrics)
        assert entry["block"] == [point["threads_j"], point["threads_i"], 1]
        kept.append({"key": variant_key(point), "values": point, "metrics": metrics, **entry})
        print(f"\r{len(kept)} points", end="", file=sys.stderr)
    print(file=sys.stderr)
    document |= {"sizes": sizes, "gpu": gpu, "points": kept}
    text = json.dumps(document, indent=1) + "\n"
    (folder / "bundle.json").write_text(text, encoding="utf-8")


def _entry(
    program: Path, sizes: Mapping[str, int], bundle: Path
) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """Return what is known of one program, and what all have in common; ``None``: left out.

    Left out is what Kernel Tuner's backend cannot launch: several kernels, dynamic shared memory.
    """
    from eatss.program import load_program  # noqa: PLC0415 - not where the card is
    from eatss.program.expression import evaluate  # noqa: PLC0415
    from eatss.program.plan import HostIf, Launch  # noqa: PLC0415

    plan = load_program(program)
    (entry,) = plan.entries
    steps_of_it = list(entry.body)
    while len(steps_of_it) == 1 and isinstance(condition := steps_of_it[0], HostIf):
        steps_of_it = list(condition.body) if evaluate(condition.condition, sizes) else []
    (kernel, *others) = plan.kernels
    if others or len(steps_of_it) != 1 or not isinstance(launch := steps_of_it[0], Launch):
        return None, {}
    if kernel.dynamic_shared or kernel.shared_bytes > STATIC_SHARED_BYTES:
        return None, {}
    known = {one.name: one for one in entry.arguments}
    arguments = [
        {
            "name": name,
            "dtype": {"double": "float64", "float": "float32"}[known[name].element_type],
            "shape": [evaluate(extent, sizes) for extent in known[name].shape],
        }
        for name in kernel.arguments
    ]
    own: dict[str, Any] = {
        "file": str((program / plan.file).relative_to(bundle)),
        "grid": [evaluate(extent, sizes) for extent in launch.grid],
        "block": list(kernel.block),
    }
    return own, {"kernel": kernel.name, "arguments": arguments}


class OfEatss:
    """A strategy of eatss as Kernel Tuner takes those of its users: by its ``tune``."""

    def __init__(self, bundle: Bundle, name: str, seed: int, objective: str) -> None:
        self._bundle = bundle
        self._name = name
        self._seed = seed
        self._objective = objective

    def tune(self, searchspace: Any, runner: Any, tuning_options: Any) -> list[dict[str, Any]]:
        """Ask and tell until the budget is spent; Kernel Tuner measures."""
        common = import_module("kernel_tuner.strategies.common")
        stopped = import_module("kernel_tuner.util").StopCriterionReached
        points = self._bundle.points
        job = StrategyJob(
            space=ListedSpace(self._bundle.names, points),
            seed=self._seed,
            ranked=self._bundle.ranked(self._objective),
        )
        strategy = make(self._name, job)
        cost_of = common.CostFunc(searchspace, tuning_options, runner)
        try:
            while isinstance(point := strategy.ask(), dict):
                cost = float(cost_of([point[name] for name in searchspace.param_names]))
                strategy.tell(point, cost if cost < sys.float_info.max else inf)
        except stopped:
            pass
        results: list[dict[str, Any]] = cost_of.results
        return results


def tuned(
    bundle: Bundle,
    strategy: str,
    seed: int,
    objective: str,
    seconds: float,
    observers: Sequence[Any] = (),
) -> dict[str, Any]:
    """Return what one strategy found within seconds: a step a variant that was measured."""
    kernel_tuner = import_module("kernel_tuner")
    entries = bundle.entries()

    def entry(values: Mapping[str, Any]) -> Mapping[str, Any]:
        return entries[variant_key({name: int(values[name]) for name in bundle.names})]

    def text(values: Mapping[str, Any]) -> str:
        file: str = entry(values)["file"]
        return (bundle.folder / file).read_text(encoding="utf-8")

    def allowed(values: Mapping[str, Any]) -> bool:
        return variant_key({name: int(values[name]) for name in bundle.names}) in entries

    random.seed(seed)
    np.random.seed(seed)  # what its strategies throw
    family, _, own = strategy.partition(":")
    began = time.perf_counter()
    results, _ = kernel_tuner.tune_kernel(
        bundle.document["kernel"],
        text,
        lambda values: tuple(entry(values)["grid"]),
        bundle.arguments(),
        {name: sorted({int(one[name]) for one in bundle.points}) for name in bundle.names},
        grid_div_x=1,
        grid_div_y=1,
        grid_div_z=1,
        block_size_names=["threads_j", "threads_i"],
        restrictions=[allowed],
        lang="CUPY",
        defines={name: str(value) for name, value in bundle.document["sizes"].items()},
        compiler_options=["--std=c++17"],
        strategy=OfEatss(bundle, own, seed, objective) if family == "eatss" else strategy,
        strategy_options={"time_limit": seconds, "max_fevals": len(entries)},
        objective=OBJECTIVES[objective],
        objective_higher_is_better=False,
        observers=list(observers),
        quiet=True,
    )
    return {
        "strategy": strategy,
        "seed": seed,
        "objective": objective,
        "seconds": seconds,
        "lasted_s": time.perf_counter() - began,
        "steps": list(steps(results, bundle.names, OBJECTIVES[objective])),
    }


BOOKED = ("strategy_time", "framework_time", "compile_time", "verification_time", "benchmark_time")


def steps(
    results: Sequence[Mapping[str, Any]], names: Sequence[str], objective: str
) -> Iterator[dict[str, Any]]:
    """Yield an entry a measured variant: values, cost, best so far, seconds booked so far."""
    best, spent_s = inf, 0.0
    for one in results:
        spent_s += sum(float(one.get(name, 0.0)) for name in BOOKED) / 1e3
        cost = inf if "__error__" in one else float(one[objective])
        best = min(best, cost)
        yield {
            "values": {name: int(one[name]) for name in names},
            "cost": cost if isfinite(cost) else None,
            "best": best if isfinite(best) else None,
            "time_ms": None if "__error__" in one else float(one["time"]),
            "energy_j": None if "__error__" in one else one.get("nvml_energy"),
            "spent_s": spent_s,
            "at": str(one.get("timestamp", "")),
        }


def observers_for(objective: str) -> list[Any]:
    """Return Kernel Tuner's own observer of energy where energy is wanted."""
    if objective != "energy":
        return []
    observer = import_module("kernel_tuner.observers.nvml").NVMLObserver
    return [observer(["nvml_energy", "nvml_power"], continuous_duration=1)]


def run(
    bundle: Bundle,
    output: Path,
    strategies: Sequence[str],
    objectives: Sequence[str],
    seeds: int,
    seconds: float,
) -> None:
    """Run every strategy with every seed; what is there is kept as soon as it is."""
    document: dict[str, Any] = {
        "gpu": bundle.document["gpu"],
        "sizes": bundle.document["sizes"],
        "points": len(bundle.points),
        "runs": [],
    }
    for objective in objectives:
        for seed in range(seeds):
            for strategy in strategies:
                print(f"{objective} {strategy} {seed}", file=sys.stderr)
                try:
                    found = tuned(
                        bundle, strategy, seed, objective, seconds, observers_for(objective)
                    )
                except (
                    Exception
                ) as error:  # one strategy that fails is no reason to lose the others
                    found = {"strategy": strategy, "seed": seed, "objective": objective}
                    found["error"] = f"{type(error).__name__}: {error}"
                    print(found["error"], file=sys.stderr)
                document["runs"].append(found)
                output.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def table(document: Mapping[str, Any]) -> str:
    """Return the best found, over the best of all runs, after shares of the seconds.

    Of several runs of a strategy the median, and the best and the worst of them at the end.
    """
    runs = [one for one in document["runs"] if one.get("steps")]
    lines: list[str] = []
    for objective in dict.fromkeys(one["objective"] for one in runs):
        of_it = [one for one in runs if one["objective"] == objective]
        found = [step["best"] for one in of_it for step in one["steps"] if step["best"]]
        if not found:
            continue
        least = min(found)
        lines.append(f"{objective}: least {least:.4g}; % above it after a share of the seconds")
        shares = "".join(f"{100 * share:>8g} %" for share in SHARES)
        lines.append(f"{'strategy':24}{shares}{'best':>10}{'worst':>10}{'variants':>12}")
        for strategy in dict.fromkeys(one["strategy"] for one in of_it):
            own = [one for one in of_it if one["strategy"] == strategy]
            found_at = {share: [_above(one, share, least) for one in own] for share in SHARES}
            middle = [median(found_at[share]) for share in SHARES]
            at_end = found_at[SHARES[-1]]
            cells = "".join(f"{_percent(one):>10}" for one in (*middle, min(at_end), max(at_end)))
            lines.append(f"{strategy:24}{cells}{median(len(one['steps']) for one in own):>12g}")
        lines.append("")
    return "\n".join(lines)


def _above(run: Mapping[str, Any], share: float, least: float) -> float:
    """Return how far the best of a run is above the least, in per cent; infinite without one."""
    within = [step for step in run["steps"] if step["spent_s"] <= share * run["seconds"]]
    best = within[-1]["best"] if within else None
    return inf if best is None else 100 * (best / least - 1)


def _percent(value: float) -> str:
    return f"{value:.1f}" if isfinite(value) else "-"


def of_sweep(store: Path, objective: str, seconds: float) -> dict[str, Any]:
    """Return what `eatss sweep` found, by its own clock and its own measuring, as a run."""
    from eatss.tune.store import Store  # noqa: PLC0415 - only where there is a store

    best, found = inf, []
    rows = (row for row in Store.read(store).rows if row.stage != "reference")
    for row in sorted(rows, key=lambda row: row.at_s):
        cost = {"time": row.time_s and row.time_s * 1e3, "energy": row.energy_j}[objective]
        best = min(best, cost if row.measured and cost is not None else inf)
        found.append({"best": best if isfinite(best) else None, "spent_s": row.at_s})
    return {
        "strategy": "eatss sweep",
        "seed": 0,
        "objective": objective,
        "seconds": seconds,
        "steps": found,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Prepare, run or show."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("prepare", help="generate all points")
    one.add_argument("bundle", type=Path)
    one.add_argument("--gpu", default="h200")
    one.add_argument("--size", type=int, default=2048, help="NI, NJ and NK")
    one.add_argument("--most", type=int, help="so many points, drawn from the space")
    one = commands.add_parser("run", help="measure on the card")
    one.add_argument("bundle", type=Path)
    one.add_argument("-o", "--output", type=Path, required=True)
    one.add_argument("--strategies", default=",".join(STRATEGIES))
    one.add_argument("--objectives", default="time,energy")
    one.add_argument("--seeds", type=int, default=2)
    one.add_argument("--seconds", type=float, default=60.0)
    one = commands.add_parser("show", help="print what was found")
    one.add_argument("results", type=Path)
    one.add_argument("--sweep", type=Path, help="what `eatss sweep` has kept of the same space")
    given = parser.parse_args(arguments)
    if given.command == "prepare":
        prepare(given.bundle, given.gpu, given.size, given.most)
    elif given.command == "run":
        run(
            Bundle.read(given.bundle),
            given.output,
            given.strategies.split(","),
            given.objectives.split(","),
            given.seeds,
            given.seconds,
        )
    else:
        document = json.loads(given.results.read_text(encoding="utf-8"))
        if given.sweep is not None:
            budgets = {
                one["objective"]: one["seconds"] for one in document["runs"] if "steps" in one
            }
            document["runs"] += [of_sweep(given.sweep, *budget) for budget in budgets.items()]
        print(table(document))


if __name__ == "__main__":
    main()
