"""The EATSS paper's studies at its size: variants through PPCG, on one card or several of one host.

    python benchmarks/paper/studies.py list STUDY DIR     # where eatss is installed
    python benchmarks/paper/studies.py run DIR --ppcg PPCG --cards 0,1,2,3 --budget S --out OUT
    python benchmarks/paper/studies.py report OUT         # what was measured, variants a minute

``STUDY`` is one of ``2mm-space`` (Figs. 2, 3), ``kernels`` (Fig. 7), ``splits`` (Fig. 8) and
``sizes`` (Figs. 12, 13). ``run`` starts a process for each card; a program stays on one card, or,
where there are fewer programs than cards, its variants are shared out and its default is measured
on each. Rows of each card are in a file of their own, and running again adds what is missing.
"""

from __future__ import annotations

import argparse
import itertools
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.ppcg_records import (
    DEFAULT,
    Manifest,
    Row,
    load_rows,
    save_manifest,
)

HERE = Path(__file__).resolve().parent
SCRIPTS_SIZES = (16, 20, 32, 50, 64, 100, 128, 200, 256)
"""Of each loop of 2mm in the published scripts, for three loops."""

LOOP_SIZES = tuple(sorted((*SCRIPTS_SIZES, 8, 24, 40, 48, 80, 160)))
"""Of each loop of 2mm in the study: those nine and six more."""

RANDOM = 200


def two_products(directory: Path) -> Manifest:
    """List 15³ tiles for both products of 2mm, in a random order, so that any part is fair."""
    from benchmarks.ppcg_variants import STATIC_SHARED_BYTES  # noqa: PLC0415

    manifest = _drawn(directory, ["2mm"], {}, 0)
    (default,) = (one for one in manifest.variants if one.name == DEFAULT)
    variants = [default]
    for tiles in itertools.product(LOOP_SIZES, repeat=3):
        sizes = "; ".join(f"kernel[{n}] -> tile[{', '.join(map(str, tiles))}]" for n in (0, 1))
        arguments = (f"--max-shared-memory={STATIC_SHARED_BYTES}", f"--sizes={{ {sizes} }}")
        variants.append(replace(default, name="-".join(map(str, tiles)), arguments=arguments))
    rest = variants[1:]
    random.Random(1).shuffle(rest)  # noqa: S311
    return replace(manifest, variants=(default, *rest))


def of_kernels(directory: Path) -> Manifest:
    """List selected and paper's sizes and 200 random variants of every kernel of Fig. 7."""
    return _drawn(directory, _kernels(), None, RANDOM)


def of_splits(directory: Path) -> Manifest:
    """List the published model's sizes at every share of shared memory and warp fraction."""
    from benchmarks.paper.selections import published  # noqa: PLC0415

    numbers = published()
    settings = {"selected": ""}
    for split in numbers["figure8"]["shared_shares"]["ga100"]:
        for warps in numbers["section5d"]["warp_fractions"]:
            settings[f"paper-{split}-{warps}"] = (
                f"--objective paper --model paper --split {split} --warp-fraction {warps}"
            )
    return _drawn(directory, _kernels(), settings, 0)


def of_sizes(directory: Path) -> Manifest:
    """List default and selection of seven kernels over PolyBench's datasets."""
    from benchmarks.paper.selections import BY_SIZE, DATASETS  # noqa: PLC0415

    for kernel, dataset in itertools.product(BY_SIZE, DATASETS):
        text = (directory / "sources" / f"{kernel}.c").read_text(encoding="utf-8")
        path = directory / "sources" / f"{kernel}-{dataset.lower()}.c"
        path.write_text(f"#define {dataset}_DATASET\n{text}", encoding="utf-8")
    names = [f"{kernel}-{dataset.lower()}" for kernel in BY_SIZE for dataset in DATASETS]
    return _drawn(directory, names, {"selected": ""}, 0)


STUDIES: Mapping[str, Callable[[Path], Manifest]] = {
    "2mm-space": two_products,
    "kernels": of_kernels,
    "splits": of_splits,
    "sizes": of_sizes,
}


def _kernels() -> list[str]:
    from benchmarks.paper.selections import figure7  # noqa: PLC0415

    return [row["kernel"] for row in figure7() if row["card"] == "ga100"]


def _drawn(
    directory: Path, names: list[str], settings: Mapping[str, str] | None, count: int
) -> Manifest:
    from benchmarks.ppcg_variants import SETTINGS, Request, draw  # noqa: PLC0415

    sources = directory / "sources"
    return draw(
        directory,
        Request(
            gpu="h200",
            kernels=tuple(sources / f"{name}.c" for name in names),
            dtypes=("double",),
            settings=SETTINGS if settings is None else settings,
            given=(),
            random=count,
            near=0,
            seed=1,
        ),
    )


def listed(study: str, directory: Path) -> None:
    """Write the list of a study, and the sources that it needs."""
    from eatss.base.shipped import data_directory  # noqa: PLC0415

    shutil.copytree(data_directory("kernels"), directory / "sources", dirs_exist_ok=True)
    manifest = STUDIES[study](directory)
    save_manifest(replace(manifest, about={**manifest.about, "study": study}), directory)
    print(f"{study}: {len(manifest.variants)} variants of {len(manifest.programs)} programs")


def run(options: argparse.Namespace) -> None:
    """Measure on every card at once."""
    options.out.mkdir(parents=True, exist_ok=True)
    cards = options.cards.split(",")
    running = []
    for place, card in enumerate(cards):
        command = [sys.executable, str(HERE.parent / "ppcg.py"), "measure", str(options.directory)]
        command += ["--ppcg", str(options.ppcg), "--sources", str(options.directory / "sources")]
        command += ["--card", card, "--share", f"{place}/{len(cards)}"]
        command += ["--results", str(options.out / f"card-{card}.jsonl")]
        command += ["--window", str(options.window), "--settle", "0.05", "--longest-run", "1.5"]
        command += ["--repeat-default", "40", "--ppcg-timeout", "20"]
        command += ["--warm-up", "3", "--budget", str(options.budget)]
        with (options.out / f"card-{card}.log").open("a") as log:
            running.append(subprocess.Popen(command, stdout=log, stderr=log))
    for one in running:
        one.wait()
    report(options.out)


def report(out: Path) -> None:
    """Print how many variants a minute each card measured, and where each default stands."""
    total = 0.0
    for path in sorted(out.glob("card-*.jsonl")):
        rows = [row for row in load_rows([path]) if row.status not in ("alias", "not generated")]
        if len(rows) < 2:
            continue
        by_session: dict[str, list[float]] = {}
        for row in rows:
            by_session.setdefault(row.session, []).append(row.at_s)
        minutes = sum(max(at) - min(at) for at in by_session.values()) / 60
        rate = (len(rows) - len(by_session)) / minutes
        total += rate
        ok = [row for row in rows if row.status == "ok"]
        print(f"{path.stem}: {len(rows)} rows, {len(ok)} right, {rate:.1f} variants a minute")
        for kernel in sorted({row.kernel for row in ok}):
            _print_standing(kernel, [row for row in ok if row.kernel == kernel])
    print(f"all cards: {total:.1f} variants a minute")


def _print_standing(kernel: str, rows: list[Row]) -> None:
    line = f"  {kernel:24}"
    for what, of in (("time", "time_ms"), ("energy", "energy_j")):
        known = [(getattr(row, of), row.variant) for row in rows if getattr(row, of) is not None]
        default = [number for number, name in known if name == DEFAULT]
        others = [(number, name) for number, name in known if name != DEFAULT]
        if not default or not others:
            continue
        mean = sum(default) / len(default)
        better = sum(number < mean for number, _ in others)
        least, name = min(others)
        line += f" {what}: {better} of {len(others)} better than the default,"
        line += f" best {mean / least:.2f} ({name})"
    print(line)


def main() -> None:
    """Run a step."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    steps = parser.add_subparsers(dest="step", required=True)
    first = steps.add_parser("list", help="write the list of a study")
    first.add_argument("study", choices=STUDIES)
    first.add_argument("directory", type=Path)
    second = steps.add_parser("run", help="measure it, where the cards are")
    second.add_argument("directory", type=Path)
    second.add_argument("--ppcg", type=Path, required=True, help="the binary")
    second.add_argument("--cards", default="0", help="numbers as nvidia-smi has them: 0,1")
    second.add_argument("--budget", type=float, required=True, help="seconds in all")
    second.add_argument("--window", type=float, default=0.2, help="seconds of load")
    second.add_argument("--out", type=Path, required=True)
    third = steps.add_parser("report", help="print what was measured")
    third.add_argument("out", type=Path)
    options = parser.parse_args()
    if options.step == "list":
        listed(options.study, options.directory)
    elif options.step == "run":
        run(options)
    else:
        report(options.out)


if __name__ == "__main__":
    main()
