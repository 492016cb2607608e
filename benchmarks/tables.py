"""The tables of the pages of results, made from the records in ``benchmarks/results``.

    python benchmarks/tables.py            # write them into docs/measured-*.md
    python benchmarks/tables.py --check    # end with 1 if a page has another table

A table stands behind the line ``<!-- table: NAME -->`` of a page, up to the next empty line.
"""

from __future__ import annotations

import argparse
import csv
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import rows, selected_and_default, unseen
from benchmarks.before_and_after import AFTER, BEFORE
from benchmarks.library import LIBRARY, SELECTED
from benchmarks.ppcg_records import DEFAULT, load_rows, means
from benchmarks.recorded import RESULTS, drifted, geometric_mean, geometric_means, load
from benchmarks.windows import Row, by_workload, read_rows

PAGES = Path(__file__).resolve().parent.parent / "docs"
H100 = RESULTS.parent / "h100"
TYPES = ("double", "float")

PRODUCTS = {
    "gemm": "gemm, 4000",
    "gemm-1111": "gemm, 1111",
    "gemm-8191": "gemm, 8191",
    "2mm": "2mm, 4000",
    "3mm": "3mm, 4000",
    "syrk": "syrk, 4000",
    "syr2k": "syr2k, 4000",
    "trmm": "trmm, 4000",
    "symm": "symm, 4000",
    "covariance": "covariance, 4000",
    "correlation": "correlation, 4000",
    "product-tt": "transposed product, 3000",
    "batched-product": "20 000 products of 32 × 32",
    "tall-product": "product of 10⁶ × 32",
    "doitgen": "doitgen",
    "mttkrp": "mttkrp, 512³ × 64",
    "convolution-layer": "convolution layer",
    "contraction": "tensors over one index, 96⁴",
    "contraction-two": "tensors over two indices, 48⁴",
    "softmax": "softmax of 20 000 rows of 2000",
}
UNSEEN = {
    "signs-gemm": "gemm, 2330 × 2610 × 1230",
    "signs-syrk": "syrk, 2370 × 1510",
    "signs-syr2k": "syr2k, 1570 × 2290",
    "signs-symm": "symm, 2170 × 1490",
    "signs-2mm": "2mm, 1870 × 1330 × 2090 × 1450",
    "signs-product-tt": "transposed product, 2090 × 2510 × 1310",
    "signs-trmm": "trmm, 1990",
    "signs-embedded-projection": "embedded projection, 14 × 370 × 530 × 610",
    "signs-weighted-scores": "weighted scores, 1850 × 2270 × 1430",
}


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; all columns but the first are numbers."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def pair(amounts: Iterable[float]) -> str:
    """Return two ratios: of time and of energy."""
    return "{:.2f}, {:.2f}".format(*amounts)


def beside_library(file: str, titles: Mapping[str, str]) -> str:
    """Return time and energy of programs, and how much more the library takes."""
    rows = read_rows(H100 / file)
    found = {(row.workload, row.dtype, row.program): row for row in rows if row.times_s}
    ratios: dict[str, list[tuple[float, float]]] = {dtype: [] for dtype in TYPES}

    def cells(name: str) -> Iterator[str]:
        yield titles[name]
        for dtype in TYPES:
            own, other = found[name, dtype, SELECTED], found[name, dtype, LIBRARY]
            ratios[dtype].append(other.over(own))
            yield f"{own.time_s * 1e3:.3g}, {own.energy_j:.3g}"
            yield pair(ratios[dtype][-1])

    lines = [list(cells(name)) for name in titles]
    last = [cell for own in ratios.values() for cell in ("", pair(geometric_means(own)))]
    return table(
        ["", "double: ms, J", "library ÷ eatss", "float: ms, J", "library ÷ eatss"],
        [*lines, ["geometric mean", *last]],
    )


def tensor_cores() -> str:
    """Return what products of halves and of rounded floats take beside the library's."""
    named = {
        ("half-products.json", "half-product-1111", SELECTED): "halves, 1111",
        ("half-products.json", "half-product", SELECTED): "halves, 4096",
        ("library-tf32.json", "gemm", "tf32-selected"): "floats, 4000, `--tf32 on`",
        ("library-tf32.json", "gemm", "split-selected"): "floats, 4000, `--tf32 split`",
    }
    lines = []
    for (file, workload, program), title in named.items():
        rows = by_workload(read_rows(H100 / file))[workload]
        own, other = rows[program], rows[LIBRARY]
        amounts = [f"{one.time_s * 1e3:.3g}, {one.energy_j:.3g}" for one in (own, other)]
        lines.append([title, *amounts, pair(other.over(own))])
    return table(["product of", "eatss: ms, J", "cuBLAS: ms, J", "library ÷ eatss"], lines)


def ppcg_sizes() -> str:
    """Return what PPCG's default takes over the selected sizes.

    Kernels that keep the default in both types are left out.
    """
    text = (RESULTS / "ppcg-current.txt").read_text(encoding="utf-8")
    rows = re.findall(r"^(\S+) +(double|float) +(\S+) +(\S+) +(.+)$", text, re.MULTILINE)
    random = dict(re.findall(r"^(\S+) +\d+ +(\d\.\d+)$", text, re.MULTILINE))
    found = {(kernel, dtype): rest for kernel, dtype, *rest in rows}

    def cell(kernel: str, dtype: str) -> str:
        time, energy, run = map(str, found[kernel, dtype])
        if "default" in run:
            return "kept"
        if run == "not measured":
            return run
        return "fails" if time == "-" else f"{float(time):.2f}, {float(energy):.2f}"

    lines = []
    for kernel in dict.fromkeys(kernel for kernel, _ in found):
        least = f"{float(random[kernel]):.2f}" if kernel in random else ""
        cells = [cell(kernel, dtype) for dtype in TYPES]
        if set(cells) != {"kept"}:
            lines.append([kernel, *cells, least])
    means = [re.search(rf"^{t}: .*?time (\S+), energy (\S+);", text, re.MULTILINE) for t in TYPES]
    pairs = [f"{float(m[1]):.2f}, {float(m[2]):.2f}" if m else "" for m in means]
    mean = geometric_mean([float(one) for one in random.values()])
    lines.append(["geometric mean", *pairs, f"{mean:.2f}"])
    return table(
        [
            "kernel",
            "double: default ÷ selected",
            "float: the same",
            "energy, double: selected ÷ least random",
        ],
        lines,
    )


def ppcg_unseen() -> str:
    """Return the same for programs on which nothing was tuned."""
    rows = load_rows([RESULTS / "unseen-ppcg.jsonl"])
    again = load_rows([RESULTS / "unseen-ppcg-2.jsonl"])
    found = means((*(row for row in rows if row.kernel != "stencil-4d"), *again))
    lines = []
    for kernel in sorted({row.kernel for row in rows}):
        cells = [kernel]
        for dtype in TYPES:
            usual, own = (found.get((kernel, dtype, name)) for name in (DEFAULT, "selected"))
            if usual is None or own is None:
                cells.append("fails" if own else "-")
            elif usual == own:
                cells.append("kept")
            else:
                cells.append(pair((usual[0] / own[0], usual[1] / own[1])))
        lines.append(cells)
    head = ["program", "double: default ÷ selected", "float: the same"]
    return table(head, lines)


BASELINE = Path(__file__).resolve().parent / "baselines" / "h200-ppcg.csv"
"""PPCG 0.09 on the same kind of card, PolyBench 3.2, whole programs with resident data, one window
of 1.2 s."""

_OTHER_NAMES = {"jacobi-1d-imper": "jacobi-1d", "jacobi-2d-imper": "jacobi-2d"}


def best_of_ppcg() -> dict[str, tuple[float, float, bool]]:
    """Return PPCG's least seconds and joules of kernels, and whether more than one was tried.

    Kernels whose sizes the table does not tell are left out ("as published").
    """
    found = {}
    with BASELINE.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            time_ms = row["fastest_time_ms"] or row["default_time_ms"]
            energy_j = row["least_energy_j"] or row["default_energy_j"]
            if "as published" not in row["problem_size"] and " " not in f"{time_ms}{energy_j}":
                name = _OTHER_NAMES.get(row["kernel"], row["kernel"])
                tried = int(row["variants_tried"]) > 0
                found[name] = float(time_ms) / 1e3, float(energy_j), tried
    return found


def kernels() -> str:
    """Return every kernel beside 32 for every loop and PPCG's best variants."""
    ours = {m.program: m for m in load(RESULTS / selected_and_default.FILE) if _selected(m.variant)}
    baseline = best_of_ppcg()
    lines = []
    ratios: dict[str, list[tuple[float, float]]] = {"32": [], "PPCG": []}
    for comparison in selected_and_default.comparisons(RESULTS):
        base = comparison.row(selected_and_default.DEFAULT)
        row = comparison.row(selected_and_default.SELECTED)
        spoilt = drifted(base.measurement) or drifted(row.measurement)
        own, ppcg = ours[comparison.program], baseline.get(comparison.program)
        if not own.time_s or not own.energy_j or row.speedup is None or row.energy_ratio is None:
            continue
        ratio = ""
        if ppcg is not None:
            over = ppcg[0] / own.time_s, ppcg[1] / own.energy_j
            ratio = pair(over) + " *" * (not ppcg[2])
            if ppcg[2]:
                ratios["PPCG"].append(over)
        ratios["32"].append((row.speedup.value, 1 / row.energy_ratio.value))
        amounts = f"{own.time_s * 1e3:.3g}, {own.energy_j:.3g}"
        lines.append([comparison.program + " ~" * spoilt, amounts, pair(ratios["32"][-1]), ratio])
    means = (pair(geometric_means(own)) for own in ratios.values())
    lines.append(["geometric mean, those with * left out", "", *means])
    return table(["kernel", "selected: ms, J", "32 ÷ selected", "PPCG's best ÷ selected"], lines)


def _selected(variant: str) -> bool:
    return variant.endswith(f":{selected_and_default.SELECTED}")


def layouts() -> str:
    """Return the selected layouts of unseen programs over the best of random ones."""
    lines, ratios = [], []
    programs: dict[str, dict[str, tuple[float, float]]] = {}
    for one in load(unseen.FILE):
        program, _, name = one.variant.partition(":")
        if one.time_s and one.energy_j:
            programs.setdefault(program, {})[name] = one.time_s, one.energy_j
    for program, own in sorted(programs.items()):
        time_s, energy_j = own.pop(unseen.SELECTED)
        time, energy = (min(amounts) for amounts in zip(*own.values(), strict=True))
        ratios.append((time_s / time, energy_j / energy))
        lines.append([program, f"{time_s * 1e3:.3g}, {energy_j:.3g}", pair(ratios[-1])])
    lines.append(["geometric mean", "", pair(geometric_means(ratios))])
    return table(["program", "selected: ms, J", "selected ÷ best random"], lines)


def prediction() -> str:
    """Return how far predictions are from what was measured."""
    lines = []
    for file, code in (("prediction.txt", "PPCG's code"), ("prediction-cuda.txt", "eatss's code")):
        text = (RESULTS / file).read_text(encoding="utf-8")
        parts = re.findall(r"^((?:fitted|held out|unseen) \(.*?)\n\n", text, re.M | re.S)
        lines += [[f"{code}, {part.partition(' (')[0]}", *_quality(part)] for part in parts]
    return table(
        ["", "energy, time known", "energy", "time", "rank of energy", "chosen ÷ best, energy"],
        lines,
    )


def _quality(part: str) -> Iterator[str]:
    known = r"energy if the time is known: (?:rank.*?median error )?(\d+%)"
    for pattern in (
        known,
        r"(?:error: energy |energy: rank.*?median error )(\d+%)",
        r"(?:error: energy \d+%, time |time: rank.*?median error )(\d+%)",
        r"(?:rank: energy |energy: rank )(\d\.\d+)",
        r"chosen(?:/best)? (\d\.\d+)",
    ):
        found = re.search(pattern, part)
        yield found[1].replace("%", " %") if found else "-"


def sums_and_rows() -> str:
    """Return sums, scans and rows beside PyTorch."""
    lines: list[list[str]] = []
    ratios: list[tuple[float, float]] = []
    for name, ours, library in rows.pairs(read_rows(rows.FILE)):
        ratios.append(library.over(ours))
        lines.append([name, _amounts(ours), _amounts(library), pair(ratios[-1])])
    lines.append(["geometric mean", "", "", pair(geometric_means(ratios))])
    return table(["program", "eatss: ms, J", "PyTorch: ms, J", "PyTorch ÷ eatss"], lines)


def loops_cut() -> str:
    """Return loops that run in blocks, tiles and chunks beside one launch a step."""
    lines, ratios = [], []
    for name, own in by_workload(read_rows(RESULTS / "loops-cut.json")).items():
        before, after = own[BEFORE], own[AFTER]
        beside = ["", ""]
        if LIBRARY in own:
            ratios.append(after.over(own[LIBRARY]))
            beside = [_amounts(own[LIBRARY]), pair(ratios[-1])]
        lines.append([name, _amounts(before), _amounts(after), pair(before.over(after)), *beside])
    lines.append(["geometric mean", "", "", "", "", pair(geometric_means(ratios))])
    head = ["program", "a launch a step: ms, J", "eatss: ms, J", "ratio"]
    return table([*head, "cuSOLVER, cuBLAS: ms, J", "eatss ÷ library"], lines)


def _amounts(row: Row) -> str:
    return ", ".join(
        f"{one:.{3 if one < 1000 else 4}g}" for one in (1e3 * row.time_s, row.energy_j)
    )


TABLES: Mapping[str, Callable[[], str]] = {
    "products": lambda: beside_library("library.json", PRODUCTS),
    "unseen products": lambda: beside_library("library-unseen-signs.json", UNSEEN),
    "tensor cores": tensor_cores,
    "sizes for ppcg": ppcg_sizes,
    "unseen for ppcg": ppcg_unseen,
    "kernels": kernels,
    "layouts": layouts,
    "prediction": prediction,
    "sums and rows": sums_and_rows,
    "loops cut": loops_cut,
}


def renewed(text: str, tables: Mapping[str, Callable[[], str]] = TABLES) -> str:
    """Return a page with the tables as the records have them."""

    def one(found: re.Match[str]) -> str:
        return f"{found[1]}\n{tables[found[2]]()}\n"

    return re.sub(r"(<!-- table: ([a-z0-9 ]+) -->\n)\n?(?:\|.*\n)*\n?", one, text)


def main() -> None:
    """Write the tables, or say which pages differ."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="write nothing")
    check = parser.parse_args().check
    stale = []
    for page in sorted(PAGES.glob("measured-*.md")):
        text = page.read_text(encoding="utf-8")
        made = renewed(text)
        if made != text:
            stale.append(page.name)
            if not check:
                page.write_text(made, encoding="utf-8")
    if check and stale:
        sys.exit(f"other tables: {', '.join(stale)}; run python benchmarks/tables.py")


if __name__ == "__main__":
    main()
