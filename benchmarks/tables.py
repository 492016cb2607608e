"""The tables of the pages of results, made from the records in ``benchmarks/results``.

    python benchmarks/tables.py            # write them into docs/measured-*.md
    python benchmarks/tables.py --check    # end with 1 if a page has another table

A table stands behind the line ``<!-- table: NAME -->`` of a page, up to the next empty line.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import rows, selected_and_default, unseen
from benchmarks.before_and_after import AFTER, BEFORE
from benchmarks.h200 import BASELINE, read_baseline
from benchmarks.library import LIBRARY, SELECTED, Row, read_rows
from benchmarks.ppcg_records import DEFAULT, load_rows
from benchmarks.recorded import RESULTS, drifted, geometric_mean, load

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


def beside_library(file: str, titles: Mapping[str, str]) -> str:
    """Return time and energy of programs, and how much more the library takes."""
    rows = read_rows(H100 / file)
    found = {(row.workload, row.dtype, row.program): row for row in rows if row.times_s}
    ratios: dict[str, list[tuple[float, float]]] = {dtype: [] for dtype in TYPES}

    def cells(name: str) -> Iterator[str]:
        yield titles[name]
        for dtype in TYPES:
            own, other = found[name, dtype, SELECTED], found[name, dtype, LIBRARY]
            ratios[dtype].append((other.time_s / own.time_s, other.energy_j / own.energy_j))
            yield f"{own.time_s * 1e3:.3g}, {own.energy_j:.3g}"
            yield "{:.2f}, {:.2f}".format(*ratios[dtype][-1])

    lines = [list(cells(name)) for name in titles]
    means = [map(geometric_mean, zip(*ratios[dtype], strict=True)) for dtype in TYPES]
    lines.append(["geometric mean", *(c for m in means for c in ("", "{:.2f}, {:.2f}".format(*m)))])
    return table(
        ["", "double: ms, J", "library ÷ eatss", "float: ms, J", "library ÷ eatss"],
        lines,
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
        rows = {row.program: row for row in read_rows(H100 / file) if row.workload == workload}
        own, other = rows[program], rows[LIBRARY]
        lines.append(
            [
                title,
                f"{own.time_s * 1e3:.3g}, {own.energy_j:.3g}",
                f"{other.time_s * 1e3:.3g}, {other.energy_j:.3g}",
                f"{other.time_s / own.time_s:.2f}, {other.energy_j / own.energy_j:.2f}",
            ]
        )
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
    rows = (*(row for row in rows if row.kernel != "stencil-4d"), *again)

    def means(kernel: str, dtype: str, variant: str) -> tuple[float, float] | None:
        own = [row for row in rows if (row.kernel, row.dtype) == (kernel, dtype)]
        aliases = {row.variant: row.reason for row in own if row.status == "alias"}
        name = aliases.get(variant, variant)
        right = [row for row in own if row.variant == name and row.status == "ok"]
        pairs = [(row.time_ms, row.energy_j) for row in right if row.time_ms and row.energy_j]
        if not pairs:
            return None
        times, energies = zip(*pairs, strict=True)
        return sum(times) / len(times), sum(energies) / len(energies)

    lines = []
    for kernel in sorted({row.kernel for row in rows}):
        cells = [kernel]
        for dtype in TYPES:
            usual, own = means(kernel, dtype, DEFAULT), means(kernel, dtype, "selected")
            if usual is None or own is None:
                cells.append("fails" if own else "-")
            elif usual == own:
                cells.append("kept")
            else:
                cells.append(f"{usual[0] / own[0]:.2f}, {usual[1] / own[1]:.2f}")
        lines.append(cells)
    head = ["program", "double: default ÷ selected", "float: the same"]
    return table(head, lines)


def kernels() -> str:
    """Return every kernel beside 32 for every loop and PPCG's best variants."""
    ours = {m.program: m for m in load(RESULTS / selected_and_default.FILE) if _selected(m.variant)}
    baseline = {one.kernel: one for one in read_baseline(BASELINE) if one.same_sizes}
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
        if ppcg and ppcg.fastest_time_s and ppcg.least_energy_j:
            time, energy = ppcg.fastest_time_s / own.time_s, ppcg.least_energy_j / own.energy_j
            ratios["PPCG"].append((time, energy))
            ratio = f"{time:.2f}, {energy:.2f}" + " *" * (not ppcg.variants)
        ratios["32"].append((row.speedup.value, 1 / row.energy_ratio.value))
        lines.append(
            [
                comparison.program + " ~" * spoilt,
                f"{own.time_s * 1e3:.3g}, {own.energy_j:.3g}",
                f"{row.speedup.value:.2f}, {1 / row.energy_ratio.value:.2f}",
                ratio,
            ]
        )
    means = [map(geometric_mean, zip(*pairs, strict=True)) for pairs in ratios.values()]
    lines.append(["geometric mean", "", *("{:.2f}, {:.2f}".format(*mean) for mean in means)])
    return table(["kernel", "selected: ms, J", "32 ÷ selected", "PPCG's best ÷ selected"], lines)


def _selected(variant: str) -> bool:
    return variant.endswith(f":{selected_and_default.SELECTED}")


def layouts() -> str:
    """Return the selected layouts of unseen programs over the best of thirty random ones."""
    lines, ratios = [], []
    measured = (*load(RESULTS / "unseen-cuda.json"), *load(RESULTS / "unseen-cuda-2.json"))
    programs: dict[str, dict[str, tuple[float, float]]] = {}
    for one in measured:
        program, _, name = one.variant.partition(":")
        if one.time_s and one.energy_j and name not in programs.get(program, {}):
            programs.setdefault(program, {})[name] = one.time_s, one.energy_j
    for program, own in sorted(programs.items()):
        time_s, energy_j = own.pop(unseen.SELECTED)
        time, energy = (min(amounts) for amounts in zip(*own.values(), strict=True))
        ratios.append((time_s / time, energy_j / energy))
        cell = f"{time_s * 1e3:.3g}, {energy_j:.3g}"
        lines.append([program, cell, "{:.2f}, {:.2f}".format(*ratios[-1])])
    means = map(geometric_mean, zip(*ratios, strict=True))
    lines.append(["geometric mean", "", "{:.2f}, {:.2f}".format(*means)])
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
        ratios.append((library.time_s / ours.time_s, library.energy_j / ours.energy_j))
        lines.append(
            [name, _amounts(ours), _amounts(library), "{:.2f}, {:.2f}".format(*ratios[-1])]
        )
    means = map(geometric_mean, zip(*ratios, strict=True))
    lines.append(["geometric mean", "", "", "{:.2f}, {:.2f}".format(*means)])
    return table(["program", "eatss: ms, J", "PyTorch: ms, J", "PyTorch ÷ eatss"], lines)


def loops_cut() -> str:
    """Return loops that run in blocks, tiles and chunks beside one launch a step."""
    found = read_rows(RESULTS / "loops-cut.json")
    lines = []
    for name in dict.fromkeys(row.workload for row in found):
        own = {row.program: row for row in found if row.workload == name}
        before, after = own[BEFORE], own[AFTER]
        ratios = before.time_s / after.time_s, before.energy_j / after.energy_j
        library = _amounts(own[LIBRARY]) if LIBRARY in own else ""
        amounts = _amounts(before), _amounts(after)
        lines.append([name, *amounts, "{:.2f}, {:.2f}".format(*ratios), library])
    return table(
        ["program", "a launch a step: ms, J", "eatss: ms, J", "ratio", "cuSOLVER, cuBLAS: ms, J"],
        lines,
    )


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
