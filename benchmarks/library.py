"""Our time and energy beside those of the vendor's library, by turns in one process.

    python benchmarks/library.py prepare DIR [--only gemm,syrk] [--variants]   # where eatss is
    python benchmarks/library.py run DIR -o FILE [--seconds 1.2] [--rounds 3]  # where the card is
    python benchmarks/library.py [FILE]                                        # prints the table

What a user would call instead is PyTorch: cuBLAS and cuDNN, TF32 off. Each round runs every program
of a workload for a window, in turn, on the same arrays; a result stands once the program's own
results agree with the library's. Energy is that of the card's counter. ``--variants`` adds layouts
by hand, so that a call on a card also tells how far the selected one is from them.

``prepare --only half-products --dtypes half`` makes programs that multiply halves and add floats.

``--tf32`` is for programs of floats that round factors to TF32: the library does so, too. What it
takes in floats, TF32 off, is a row of its own (``library in floats``), and all results are held
against those. ``prepare --tf32`` makes such programs, and split ones.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.library_unseen import (
    every_workload,
    unseen,
    unseen_bound,
    unseen_edges,
    unseen_factors,
    unseen_last,
    unseen_later,
    unseen_parts,
    unseen_shares,
    unseen_signs,
    unseen_streams,
    unseen_terms,
)
from benchmarks.library_workloads import (
    Workload,
    half_products,
    other_shapes,
    reductions,
    workloads,
)
from benchmarks.recorded import RESULTS, geometric_mean
from benchmarks.windows import window

FILE = RESULTS.parent / "h100" / "library.json"
LIBRARY = "library"
IN_FLOATS = "library in floats"
SELECTED = "selected"
MMA = {"instructions": ["mma_f64_16x8x4"], "stages": 3}

Arrays = dict[str, Any]


_BY_HAND: dict[str, dict[str, Any]] = {
    "64x64": {"tiles": {"i": 64, "j": 64, "k": 16}, "block": (16, 8)},
    "128x64": {"tiles": {"i": 128, "j": 64, "k": 16}, "block": (32, 8)},
    "64x128": {"tiles": {"i": 64, "j": 128, "k": 16}, "block": (16, 16)},
    "128x128": {"tiles": {"i": 128, "j": 128, "k": 16}, "block": (32, 8)},
    "128x128-wide": {"tiles": {"i": 128, "j": 128, "k": 16}, "block": (16, 16)},
    "128x64-k32": {"tiles": {"i": 128, "j": 64, "k": 32}, "block": (16, 8)},
}
_PLAIN_BY_HAND: dict[str, dict[str, Any]] = {
    "128x64": {"tiles": {"i": 128, "j": 64, "k": 32}, "block": (8, 8)},
    "128x64-half": {"tiles": {"i": 128, "j": 64, "k": 32}, "block": (16, 8)},
    "128x128": {"tiles": {"i": 128, "j": 128, "k": 32}, "block": (8, 16)},
    "128x128-wide": {"tiles": {"i": 128, "j": 128, "k": 32}, "block": (16, 8)},
    "128x128-half": {"tiles": {"i": 128, "j": 128, "k": 32}, "block": (16, 16)},
    "256x128": {"tiles": {"i": 256, "j": 128, "k": 32}, "block": (16, 16)},
    "256x128-k16": {"tiles": {"i": 256, "j": 128, "k": 16}, "block": (16, 16)},
}
_PLACES = {"A": "shared", "B": "shared"}
_TF32_BY_HAND: dict[str, dict[str, Any]] = {
    "128x256": {"tiles": {"i": 128, "j": 256, "k": 32}, "block": (16, 16)},
    "256x128": {"tiles": {"i": 256, "j": 128, "k": 32}, "block": (32, 8)},
    "128x128": {"tiles": {"i": 128, "j": 128, "k": 32}, "block": (16, 8)},
    "128x128-half": {"tiles": {"i": 128, "j": 128, "k": 32}, "block": (16, 16)},
}
_TF32 = {"tf32": ("on", "mma_tf32_16x8x8"), "split": ("split", "mma_3xtf32_16x8x8")}

ALLOWED = {"double": 1e-9, "float": 1e-3, "half": 1e-3}
"""Differences of two results, as a share of the largest value."""

ALLOWED_TF32 = 2.0**-10
"""The same with TF32: a product is off by so much of itself where both factors are rounded."""


KINDS = {"double": "float64", "float": "float32", "half": "float16"}
"""What PyTorch calls the types."""


_GROUPS = {
    "half-products": half_products,
    "unseen": unseen,
    "unseen-later": unseen_later,
    "unseen-last": unseen_last,
    "unseen-edges": unseen_edges,
    "unseen-parts": unseen_parts,
    "unseen-shares": unseen_shares,
    "unseen-streams": unseen_streams,
    "unseen-bound": unseen_bound,
    "unseen-terms": unseen_terms,
    "unseen-factors": unseen_factors,
    "unseen-signs": unseen_signs,
}
"""Products of halves; shapes that nobody looked at before the code was done, by when that was."""


def variants(name: str, dtype: str) -> dict[str, dict[str, Any]]:
    """Return options of ``eatss.codegen`` by what they are called."""
    square = name.partition("-")[0] in ("gemm", "syrk", "product")
    if dtype != "double":
        return {
            f"{key}-s{stages}": {**given, "placements": _PLACES, "stages": stages}
            for key, given in _PLAIN_BY_HAND.items()
            for stages in (1, 2)
            if square
        }
    found: dict[str, dict[str, Any]] = {"mma": MMA}
    if square:
        for size, given in _BY_HAND.items():
            for stages in (1, 2, 3, 4):
                options = {**given, "placements": _PLACES, **MMA, "stages": stages}
                found[f"mma-{size}-s{stages}"] = options
    return found


def tf32_variants(name: str, *, by_hand: bool) -> dict[str, dict[str, Any]]:
    """Return options of programs that multiply floats on tensor cores, by what they are called."""
    square = name.partition("-")[0] in ("gemm", "syrk", "product")
    found: dict[str, dict[str, Any]] = {}
    for label, (choice, instruction) in _TF32.items():
        found[label] = {"tf32": choice}
        for size, given in _TF32_BY_HAND.items() if by_hand and square else ():
            chosen = {"placements": _PLACES, "instructions": [instruction], "stages": 3}
            found[f"{label}-{size}-s3"] = {**given, **chosen}
    return found


def prepare(
    folder: Path, only: Sequence[str], dtypes: Sequence[str], *, by_hand: bool, tf32: bool
) -> None:
    """Generate every program of every workload, for an H200."""
    import eatss  # noqa: PLC0415 - not on the machine with the card

    known = every_workload()
    for name in only or workloads() | other_shapes():
        workload = known[name]
        for dtype in dtypes:
            wanted: dict[str, dict[str, Any]] = {SELECTED: {}}
            if tf32:
                wanted = tf32_variants(name, by_hand=by_hand)
            elif by_hand:
                wanted |= variants(name, dtype)
            for label, options in wanted.items():
                place = folder / f"{name}-{dtype}" / label
                kind = "_Float16" if dtype == "half" else dtype
                defines: dict[str, str | int] = {"DATA_TYPE": kind, **workload.sizes}
                try:
                    eatss.codegen(
                        workload.source, gpu="h200", defines=defines, output=place, **options
                    )
                except eatss.EatssError as error:
                    print(f"{name} {dtype} {label}: {error.diagnostics[0].message}")
            print(f"{name} {dtype}: {len(wanted)} programs")


@dataclass(slots=True, kw_only=True)
class Row:
    """What was measured of one program of a workload."""

    workload: str
    dtype: str
    program: str
    status: str = "ok"
    difference: float = 0.0
    times_s: list[float] = field(default_factory=list)
    energies_j: list[float] = field(default_factory=list)

    @property
    def time_s(self) -> float:
        """Seconds of a run, the middle of the windows."""
        return statistics.median(self.times_s)

    @property
    def energy_j(self) -> float:
        """Joules of a run, the middle of the windows."""
        return statistics.median(self.energies_j)


def measured(folder: Path, seconds: float, rounds: int, *, tf32: bool) -> Iterator[Row]:
    """Measure what was prepared, workload by workload."""
    import torch  # noqa: PLC0415 - only where the card is

    _allow_tf32(torch, tf32)
    known = every_workload()
    for place in sorted(folder.iterdir()):
        name, _, dtype = place.name.rpartition("-")
        yield from _of_workload(torch, known[name], name, dtype, place, seconds, rounds, tf32=tf32)


def _allow_tf32(torch: Any, allowed: bool) -> None:
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_tf32 = allowed
    torch.backends.cudnn.allow_tf32 = allowed


def _of_workload(
    torch: Any,
    of: Workload,
    name: str,
    dtype: str,
    place: Path,
    seconds: float,
    rounds: int,
    *,
    tf32: bool,
) -> list[Row]:
    arrays = fresh_arrays(torch, of, dtype)
    _allow_tf32(torch, False)
    expected = {key: array.clone() for key, array in arrays.items()}
    of.call(torch, **expected, **of.scalars)
    _allow_tf32(torch, tf32)
    wanted = {key: array.clone() for key, array in arrays.items()}
    of.call(torch, **wanted, **of.scalars)
    allowed = ALLOWED_TF32 if tf32 else ALLOWED[dtype]

    def by_library() -> None:
        _restored(of, arrays, wanted)
        of.call(torch, **wanted, **of.scalars)

    calls: dict[str, Callable[[], object]] = {LIBRARY: by_library}
    library = Row(workload=name, dtype=dtype, program=LIBRARY)
    library.difference = _difference(wanted[of.result], expected[of.result])
    rows = {LIBRARY: library}
    if tf32:

        def in_floats() -> None:
            _allow_tf32(torch, False)
            by_library()
            _allow_tf32(torch, True)

        calls[IN_FLOATS] = in_floats
        rows[IN_FLOATS] = Row(workload=name, dtype=dtype, program=IN_FLOATS)
    for one in sorted(place.iterdir()):
        rows[one.name] = row = Row(workload=name, dtype=dtype, program=one.name)
        run = _agreeing(torch, of, one, arrays, expected, row, allowed)
        if run is not None:
            calls[one.name] = run
    for _ in range(rounds):
        for key, run in calls.items():
            time_s, energy_j = window(torch, run, seconds)
            rows[key].times_s.append(time_s)
            rows[key].energies_j.append(energy_j)
    return list(rows.values())


def _agreeing(
    torch: Any,
    of: Workload,
    folder: Path,
    arrays: Arrays,
    expected: Arrays,
    row: Row,
    allowed: float,
) -> Callable[[], object] | None:
    """Return what runs a program of ours, ``None`` where it fails or is wrong, as ``row`` says."""
    try:
        call = our_call(folder, of)
        fresh = {key: array.clone() for key, array in arrays.items()}
        call(fresh)
        torch.cuda.synchronize()
    except Exception as error:
        row.status = f"{type(error).__name__}: {error}"[:200]
        return None
    row.difference = _difference(fresh[of.result], expected[of.result])
    if not row.difference <= allowed:  # NaN is no agreement
        row.status = "wrong"
        return None

    def run() -> None:
        _restored(of, arrays, fresh)
        call(fresh)

    return run


def _restored(of: Workload, arrays: Arrays, given: Arrays) -> None:
    for name in of.restored:
        given[name].copy_(arrays[name])


def _difference(found: Any, expected: Any) -> float:
    """Return how far a result is from another, as a share of that one's largest value."""
    return float((found - expected).abs().max() / expected.abs().max())


def fresh_arrays(torch: Any, of: Workload, dtype: str) -> Arrays:
    """Return the arrays of a workload on the card, the same values each time."""
    torch.manual_seed(0)
    shapes = {name: [_extent(one, of.sizes) for one in own] for name, own in of.shapes.items()}
    found = {}
    for name, own in shapes.items():
        kind = getattr(torch, KINDS["float" if name in of.floats else dtype])
        values = torch.rand(own, dtype=kind, device="cuda") - 0.5
        found[name] = values * of.scales.get(name, 1.0)
    return found


def _extent(text: str, sizes: Mapping[str, int]) -> int:
    """Return the value of ``NY + NR - 1``."""
    value, sign = 0, 1
    for word in text.split():
        if word in "+-":
            sign = 1 if word == "+" else -1
        else:
            value += sign * (sizes[word] if word in sizes else int(word))
    return value


def our_call(folder: Path, of: Workload) -> Callable[[Arrays], object]:
    """Return what runs a generated program on arrays of the card."""
    from eatss.program import load_program  # noqa: PLC0415 - as above

    compiled = load_program(folder).compile()
    return lambda given: compiled(**given, **of.scalars)


def write_rows(rows: Sequence[Row], path: Path) -> None:
    """Write what was measured so far, a line each."""
    lines = ",\n".join(json.dumps(asdict(one)) for one in rows)
    path.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


def read_rows(path: Path) -> list[Row]:
    """Return what :func:`write_rows` wrote."""
    return [Row(**one) for one in json.loads(path.read_text(encoding="utf-8"))]


def report(rows: Sequence[Row]) -> None:
    """Print ratios: of the library to ours, above 1 is better than it."""
    print(
        f"{'workload':24} {'program':22} {'ms':>9} {'J':>9} {'W':>5} "
        f"{'library ms':>10} {'library J':>9}  {'time':>5} {'energy':>6}"
    )
    selected: dict[tuple[str, str], tuple[float, float]] = {}
    for name, dtype in dict.fromkeys((row.workload, row.dtype) for row in rows):
        own = [row for row in rows if (row.workload, row.dtype) == (name, dtype)]
        (library,) = [row for row in own if row.program == LIBRARY]
        for row in own:
            if row.program == LIBRARY:
                continue
            head = f"{name + ' ' + dtype:24} {row.program:22}"
            if row.status != "ok":
                print(f"{head} {row.status}")
                continue
            time_ratio, energy_ratio = library.time_s / row.time_s, library.energy_j / row.energy_j
            print(
                f"{head} {1e3 * row.time_s:9.4f} {row.energy_j:9.4f} "
                f"{row.energy_j / row.time_s:5.0f} {1e3 * library.time_s:10.4f} "
                f"{library.energy_j:9.4f}  {time_ratio:5.2f} {energy_ratio:6.2f}"
            )
            if row.program == SELECTED:
                selected[name, dtype] = energy_ratio, time_ratio
    print("\nthe library over ours in the geometric mean, sizes as selected:")
    groups = {
        "": workloads(),
        "other shapes, ": other_shapes(),
        "reductions, ": reductions(),
        **{f"{name} shapes, ": shapes() for name, shapes in _GROUPS.items()},
    }
    for what, known in groups.items():
        for dtype in KINDS:
            own_ratios = [
                found for (name, of), found in selected.items() if of == dtype and name in known
            ]
            if own_ratios:
                energy, time_ratio = map(geometric_mean, zip(*own_ratios, strict=True))
                print(
                    f"  {what}{dtype}, {len(own_ratios)} programs: energy {energy:.3f}, "
                    f"time {time_ratio:.3f}"
                )


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("words", nargs="*", help="prepare DIR, run DIR, or a file of results")
    parser.add_argument("-o", "--output", type=Path, default=FILE)
    parser.add_argument("--only", default="", help=f"workloads, or {', '.join(map(repr, _GROUPS))}")
    parser.add_argument("--dtypes", default="double,float")
    parser.add_argument("--variants", action="store_true")
    parser.add_argument("--tf32", action="store_true", help="floats, factors rounded to TF32")
    parser.add_argument("--seconds", type=float, default=1.2)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args(arguments)
    what, *rest = given.words or [""]
    if what == "prepare":
        only = [word for word in given.only.split(",") if word]
        only = [*_GROUPS[only[0]]()] if only and only[0] in _GROUPS else only
        dtypes = ["float"] if given.tf32 else given.dtypes.split(",")
        prepare(Path(rest[0]), only, dtypes, by_hand=given.variants, tf32=given.tf32)
    elif what == "run":
        rows = []
        for row in measured(Path(rest[0]), given.seconds, given.rounds, tf32=given.tf32):
            rows.append(row)
            write_rows(rows, given.output)
        report(rows)
    else:
        report(read_rows(Path(what) if what else FILE))


if __name__ == "__main__":
    main()
