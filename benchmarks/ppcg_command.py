"""``eatss ppcg`` with a real PPCG, and what it wrote on a card: measured, compared, metered.

    python -m benchmarks.ppcg_command prepare DIR --ppcg PPCG     # where eatss and a PPCG are
    python -m benchmarks.ppcg_command measure DIR [--results R]   # where the card is
    python -m benchmarks.ppcg_command report [--results R]        # prints it

``prepare`` builds gemm, atax, jacobi-2d and 2mm at the sizes of the source with selected sizes and
with PPCG's own, and once more with small sizes, at which results are compared with the C source.
``measure`` runs the commands ``eatss measure``, ``eatss compare`` and ``eatss meter`` as a user
does and keeps what they print as JSON; it needs NumPy, SciPy, CuPy, NVML, Typer, Rich, and NVRTC
or nvcc. What is metered is this script itself, multiplying matrices with CuPy for some seconds.
``--card`` and ``--nvml`` name what stands in for a card, to try it out.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from eatss.measurement import comparison_from_dict
from eatss.measurement.measurement import Comparison, Measurement

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "h200"
NAMES = ("gemm", "atax", "jacobi-2d", "2mm")
FILE, TRACE = "ppcg-command.json", "ppcg-command-power.csv"
QUICK = ("--window", "1", "--updates", "10", "--windows", "3", "--budget", "8", "--target", "2%")
CHECKING = ("--window", "0.2", "--updates", "2", "--windows", "1", "--budget", "1")
LOADS = (("a load of 4 s", (), "4"), ("3 loads of 1 s", ("--repeat", "3"), "1"))
SHORT = "a run that is too short"


def prepare(directory: Path, ppcg: str) -> None:
    """Build every program three times, and keep how PPCG was run."""
    import eatss  # noqa: PLC0415 - the card's machine has nothing that generates

    commands: dict[str, list[Sequence[str]]] = {}
    for name in NAMES:
        source = ROOT / "kernels" / f"{name}.c"
        ways: tuple[tuple[str, bool, tuple[str, ...]], ...] = (
            ("selected", True, ()),
            ("default", False, ()),
            ("small", True, ("-DSMALL_DATASET",)),
        )
        for way, selects, arguments in ways:
            made = eatss.ppcg(
                source,
                gpu="h200",
                ppcg=ppcg,
                output=directory / name / way,
                arguments=arguments,
                selects=selects,
            )
            plain = [["ppcg", *words[1:-1], f"{name}.c"] for words in made.commands]
            commands[f"{name} {way}"] = [" ".join(words) for words in plain]
            print(f"{name} {way}: {len(made.files)} files")
    (directory / "commands.json").write_text(json.dumps(commands, indent=2) + "\n")


def measure(directory: Path, results: Path, card: str | None, nvml: str | None) -> None:
    """Run the commands and keep what they print."""
    begin_s = time.monotonic()
    card_words = () if card is None else ("--card", card)
    small = [str(directory / name / "small") for name in NAMES]
    checked = _json("measure", *small, *CHECKING, *card_words)
    compared = {
        name: _json(
            "compare",
            *(str(directory / name / way) for way in ("selected", "default")),
            *("--baseline", "default"),
            *QUICK,
            *card_words,
        )
        for name in NAMES
    }
    results.mkdir(parents=True, exist_ok=True)
    found = {
        "commands": json.loads((directory / "commands.json").read_text()),
        "checked": checked,
        "compared": compared,
        "metered": dict(_metered(results, nvml)),
        "took_s": round(time.monotonic() - begin_s, 1),
    }
    (results / FILE).write_text(json.dumps(found, indent=1) + "\n")


def _metered(results: Path, nvml: str | None) -> Iterator[tuple[str, Any]]:
    """Yield what ``eatss meter`` tells of loads, and of a program too short to tell anything."""
    nvml_words = () if nvml is None else ("--nvml", nvml)
    load = [sys.executable, "-c", "pass"] if nvml else [sys.executable, __file__, "load"]
    out = results / "metering.json"
    for number, (name, words, seconds) in enumerate((*LOADS, (SHORT, (), ""))):
        trace = ("--trace", str(results / TRACE)) if number == 0 else ()
        program = [*load, seconds] if seconds else ["true"]
        _run("meter", *nvml_words, *words, *trace, "-f", "json", "-o", str(out), "--", *program)
        yield name, {**json.loads(out.read_text()), "command": [Path(p).name for p in program]}
    out.unlink()


def _json(*words: str) -> Any:
    return json.loads(_run(*words, "--format", "json"))


def _run(*words: str) -> str:
    """Run a command of eatss; what fails on the card is part of what it prints."""
    began_s = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "eatss", *words], stdout=subprocess.PIPE, text=True, cwd=ROOT,
        check=False,
    )  # fmt: skip
    took_s = time.monotonic() - began_s
    print(f"eatss {words[0]}: exit code {done.returncode}, {took_s:.0f} s", file=sys.stderr)
    if words[0] != "meter" and not done.stdout:
        sys.exit(f"eatss {' '.join(words)} printed nothing")
    return done.stdout


def load(seconds: float) -> None:
    """Multiply matrices on the card for some seconds."""
    import cupy  # noqa: PLC0415

    left = cupy.random.random((4096, 4096), dtype=cupy.float32)
    end_s = time.monotonic() + seconds
    while time.monotonic() < end_s:
        for _ in range(20):
            left @ left
        cupy.cuda.runtime.deviceSynchronize()


def report(results: Path) -> None:
    """Print what was measured."""
    found = json.loads((results / FILE).read_text())
    print("PPCG's code, built by eatss ppcg: at small sizes against the C source")
    for one in found["checked"]["measurements"]:
        checked = "; ".join(one["method"]["checked"]) if one["method"] else one["reason"]
        print(f"  {one['program']:10} {one['status']:10} {checked}")
    print("\nat the sizes of the source, PPCG's own sizes and the selected ones, by turns")
    head = ("program", "default ms", "selected", "default J", "selected", "speed-up", "energy")
    print(f"  {head[0]:10}" + "".join(f"{word:>12}" for word in head[1:]))
    for name, document in found["compared"].items():
        print(f"  {name:10}" + _row(comparison_from_dict(document)))
    print("\neatss meter")
    for name, one in found["metered"].items():
        (card,) = one["cards"]
        print(f"  {name}: {one['runs']} runs, {one['time_s']:.3f} s, {_energy(card)}")
    with (results / TRACE).open(encoding="utf-8") as file:
        print(f"  power trace: {len(list(csv.reader(file))) - 1} samples in {TRACE}")
    print(f"\nall of it took {found['took_s']} s")


def _energy(card: Any) -> str:
    if card["energy_j"] is None:
        return "no energy: " + "; ".join(missing["reason"] for missing in card["missing"])
    figures = [card[name] for name in ("power_w", "peak_power_w", "idle_power_w")]
    mean, peak, idle = ("unknown" if one is None else f"{one:.0f} W" for one in figures)
    energy = f"{card['energy_j']:.1f} ± {card['uncertainty_j']:.1f} J"
    return f"{energy}, {mean}, peak {peak}, idle before {idle}"


def _row(comparison: Comparison) -> str:
    rows = [comparison.row(way) for way in ("default", "selected")]
    measured: list[Measurement] = [row.measurement for row in rows]
    cells = [_figure(one.time_s, 1e3) for one in measured]
    cells += [_figure(one.energy_j, 1.0) for one in measured]
    for ratio in (rows[1].speedup, rows[1].energy_ratio):
        cells.append("-" if ratio is None else f"{ratio.value:.3f}")
    states = " ".join(one.status for one in measured if one.status != "ok")
    return "".join(f"{cell:>12}" for cell in cells) + (f"  {states}" if states else "")


def _figure(value: float | None, factor: float) -> str:
    return "-" if value is None else f"{value * factor:.3f}"


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description="eatss ppcg, measure, compare and meter, for real")
    parser.add_argument("action", choices=["prepare", "measure", "report", "load"])
    parser.add_argument("where", nargs="?", default=".", help="folder of the builds, or seconds")
    parser.add_argument("--ppcg", default="ppcg")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--card")
    parser.add_argument("--nvml")
    given = parser.parse_args()
    if given.action == "prepare":
        prepare(Path(given.where), given.ppcg)
    elif given.action == "measure":
        results = given.results.absolute()
        measure(Path(given.where).absolute(), results, given.card, given.nvml)
        report(results)
    elif given.action == "report":
        report(given.results)
    else:
        load(float(given.where))


if __name__ == "__main__":
    main()
