"""Sums, scans and rows of `programs/rows` beside PyTorch, by turns in one process.

    python benchmarks/rows.py prepare DIR          # where eatss is
    python benchmarks/rows.py run DIR -o FILE      # where the card is
    python benchmarks/rows.py [FILE]               # prints the table

What a user would call instead is PyTorch, eager or by ``torch.compile``: the table has the one that
takes less energy. A program in ``DIR/NAME/before``, if there is one, is measured as well. A result
stands once it agrees with that of PyTorch, TF32 off.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.before_and_after import AFTER, BEFORE
from benchmarks.recorded import RESULTS, geometric_means
from benchmarks.windows import (
    Row,
    Run,
    apart,
    arguments,
    by_workload,
    command_line,
    folders,
    started,
    take_turns,
)

PROGRAMS = Path(__file__).resolve().parent / "programs" / "rows"
FILE = RESULTS / "rows.json"
EAGER, COMPILED = "eager", "compiled"
WITHIN = 1e-3


def _logsumexp(torch: Any, a: Any) -> Any:
    return torch.logsumexp(a["X"], 1)


def _rmsnorm(torch: Any, a: Any) -> Any:
    return torch.nn.functional.rms_norm(a["X"], a["g"].shape, a["g"], 1e-5)


def _layernorm2(torch: Any, a: Any) -> Any:
    return torch.nn.functional.layer_norm(a["X"], a["g"].shape, a["g"], a["b"], 1e-5)


def _layernorm(torch: Any, a: Any) -> Any:
    return torch.nn.functional.layer_norm(a["x"], a["g"].shape, a["g"], a["b"], 1e-5)


def _groupnorm(torch: Any, a: Any) -> Any:
    batch, groups, channels, points = a["X"].shape
    flat = a["X"].view(batch, groups * channels, points)
    return torch.nn.functional.group_norm(flat, groups, eps=1e-5).view(a["X"].shape)


def _batchnorm(torch: Any, a: Any) -> Any:
    return torch.nn.functional.batch_norm(a["x"], None, None, a["g"], a["b"], True, 0.1, 1e-5)


def _cosines(torch: Any, a: Any) -> Any:
    return torch.nn.functional.cosine_similarity(a["X"], a["Y"], 1)


def _crossentropy(torch: Any, a: Any) -> Any:
    return torch.logsumexp(a["X"], 1) - (a["P"] * a["X"]).sum(1)


def _mlplayer(torch: Any, a: Any) -> Any:
    return torch.relu(torch.addmm(a["b"], a["X"], a["W"]))


def _centroids(torch: Any, a: Any) -> Any:
    x, c = a["X"], a["C"]
    apart = (x * x).sum(1)[:, None] - 2 * x @ c.T + (c * c).sum(1)
    return apart.min(1).values


def _nearest(torch: Any, a: Any) -> Any:
    x, y = a["X"], a["Y"]
    return ((x * x).sum(1)[:, None] - 2 * x @ y.T + (y * y).sum(1)).min(1).values


def _complexgemv(torch: Any, a: Any) -> Any:
    return torch.addmv(a["Ar"] @ a["xr"], a["Ai"], a["xi"], alpha=-1), torch.addmv(
        a["Ar"] @ a["xi"], a["Ai"], a["xr"]
    )


def _cgemm(torch: Any, a: Any) -> Any:
    return torch.view_as_real(torch.view_as_complex(a["A"]) @ torch.view_as_complex(a["B"]))


def _attn(torch: Any, a: Any) -> Any:
    scaled = torch.nn.functional.scaled_dot_product_attention
    operands = (a[name][None] for name in "QKV")  # its fast forms want batches of heads
    return scaled(*operands, scale=0.75)[0]


def _emarows(torch: Any, a: Any) -> Any:
    x = a["X"]
    y = torch.empty_like(x)
    y[:, 0] = x[:, 0]
    for j in range(1, x.shape[1]):
        torch.lerp(y[:, j - 1], x[:, j], 0.1, out=y[:, j])
    return y


def _ema(torch: Any, a: Any) -> Any:
    x = a["x"]
    y = torch.empty_like(x)
    y[0] = x[0]
    for t in range(1, x.shape[0]):
        torch.lerp(x[t], y[t - 1], a["a"], out=y[t])
    return y


def _variance(torch: Any, a: Any) -> Any:
    return a["x"].var(0, correction=0)[None]


LIBRARY: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "attn": ("O", _attn),
    "batchnorm": ("y", _batchnorm),
    "biasgrad": ("g", lambda torch, a: a["X"].sum((0, 2))),
    "centroids": ("best", _centroids),
    "cgemm": ("C", _cgemm),
    "colmax": ("r", lambda torch, a: a["X"].amax(0)),
    "complexgemv": ("yr yi", _complexgemv),
    "cosines": ("r", _cosines),
    "crossentropy": ("r", _crossentropy),
    "cumrow": ("s", lambda torch, a: torch.cumsum(a["x"], 1)),
    "dot": ("s", lambda torch, a: torch.dot(a["x"], a["y"])[None]),
    "ema": ("y", _ema),
    "emarows": ("Y", _emarows),
    "frobenius": ("r", lambda torch, a: torch.dot(a["X"].view(-1), a["Y"].view(-1))[None]),
    "groupnorm": ("Y", _groupnorm),
    "integralimage": ("Y", lambda torch, a: a["X"].cumsum(1).cumsum(0)),
    "layernorm": ("y", _layernorm),
    "layernorm2": ("Y", _layernorm2),
    "logsumexp": ("r", _logsumexp),
    "mlplayer": ("Y", _mlplayer),
    "nearest": ("best", _nearest),
    "prefixone": ("y", lambda torch, a: torch.cumsum(a["x"], 0)),
    "quad": ("s", lambda torch, a: torch.dot(a["x"], a["A"] @ a["y"])[None]),
    "residual": ("Y", lambda torch, a: torch.addmm(a["R"], a["X"], a["W"], alpha=0.5)),
    "rmsnorm": ("Y", _rmsnorm),
    "rowmax": ("r", lambda torch, a: a["X"].amax(1)),
    "runmax": ("Y", lambda torch, a: torch.cummax(a["X"], 1).values),
    "unitcols": ("Y", lambda torch, a: a["X"] / torch.sqrt((a["X"] * a["X"]).sum(0) + 1e-9)),
    "variance": ("var", _variance),
    "wsum3": ("y", lambda torch, a: ((a["X"] @ a["c"]) @ a["b"]) @ a["a"]),
}
"""Of each program the arrays that are compared, and PyTorch's call."""

LOOPED = {"ema", "emarows"}
"""What PyTorch has no call for: thousands of its calls, which it records as one graph."""


def prepare(folder: Path, _: argparse.Namespace) -> None:
    """Generate the programs."""
    import eatss  # noqa: PLC0415 - not on the machine with the card

    for source in sorted(PROGRAMS.glob("*.c")):
        eatss.codegen(source, gpu="h200", output=folder / source.stem / AFTER)


def measured(directory: Path, given: argparse.Namespace) -> Iterator[Row]:
    """Measure what was prepared, ours and PyTorch's by turns."""
    import torch  # noqa: PLC0415 - only where the card is

    places = folders(directory)
    with ThreadPoolExecutor(4) as pool:
        builds = [pool.submit(_built, one) for one in places]
        for place, build in zip(places, builds, strict=True):
            build.exception()  # raised again where the program starts
            yield from _of_program(torch, place, given)
            torch.cuda.empty_cache()


def _built(place: Path) -> None:
    from eatss.program import load_program  # noqa: PLC0415 - as above

    for label in place.iterdir():
        load_program(label).compile()


def _of_program(torch: Any, place: Path, asked: argparse.Namespace) -> list[Row]:
    names, call = LIBRARY[place.name]
    rows: list[Row] = []
    runs: list[tuple[Row, Run]] = []
    given: Any = {}
    for label in (BEFORE, AFTER, EAGER, COMPILED):
        row = Row(workload=place.name, dtype="", program=label)
        is_library = label in {EAGER, COMPILED}
        if not (given if is_library else (place / label).is_dir()):
            continue
        rows.append(row)
        try:
            if is_library:
                run = _library(torch, place.name, call, given, compiled=label == COMPILED)
            else:
                given = arguments(torch, place / label)
                run = started(torch, place / label, given)
                row.difference = _apart(names, given, call(torch, given))
            if not row.difference <= WITHIN:  # NaN is no agreement
                row.status = f"results {row.difference:.1e} apart"
        except Exception as error:
            row.fails(error)
        if row.status == "ok":
            runs.append((row, run))
    take_turns(torch, runs, asked.seconds, asked.rounds)
    return rows


def _apart(names: str, found: Any, expected: Any) -> float:
    parts = expected if isinstance(expected, tuple) else (expected,)
    return max(apart(found[name], one) for name, one in zip(names.split(), parts, strict=True))


def _library(
    torch: Any, name: str, call: Callable[[Any, Any], Any], given: Any, *, compiled: bool
) -> Callable[[], object]:
    if not compiled and name not in LOOPED:
        return lambda: call(torch, given)
    if not compiled:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            call(torch, given)
        replay: Callable[[], object] = graph.replay
        return replay
    if name in LOOPED:
        raise NotImplementedError("a loop of thousands of calls")
    torch._dynamo.reset()
    quick = torch.compile(lambda arrays: call(torch, arrays))
    quick(given)
    return lambda: quick(given)


def pairs(rows: Sequence[Row]) -> Iterator[tuple[str, Row, Row]]:
    """Yield each program that is right, ours, and the row of PyTorch's with less energy."""
    for name, own in by_workload(row for row in rows if row.status == "ok").items():
        libraries = [own[one] for one in (EAGER, COMPILED) if one in own]
        if AFTER in own and libraries:
            yield name, own[AFTER], min(libraries, key=lambda row: row.energy_j)


def report(rows: Sequence[Row]) -> None:
    """Print what each takes, and ratios of PyTorch to ours: above 1 is better than it."""
    print(f"{'program':14} {'ours ms':>10} {'J':>8} {'PyTorch ms':>10} {'J':>8}   time energy")
    ratios: list[tuple[float, float]] = []
    for name, ours, library in pairs(rows):
        ratios.append(library.over(ours))
        print(
            f"{name:14} {_columns(ours)} {_columns(library)}  "
            f"{ratios[-1][0]:5.2f} {ratios[-1][1]:6.2f}  {library.program}"
        )
    for row in rows:
        if row.status != "ok" and row.program in {BEFORE, AFTER}:
            print(f"{row.workload:14} {row.program}: {row.status}")
    if ratios:
        time, energy = geometric_means(ratios)
        print(
            f"\nPyTorch over ours, geometric mean of {len(ratios)}: time {time:.3f}, "
            f"energy {energy:.3f}"
        )


def _columns(row: Row) -> str:
    return f"{1e3 * row.time_s:10.4f} {row.energy_j:8.4f}"


if __name__ == "__main__":
    command_line(__doc__, FILE, measured, report, prepare, seconds=0.4, rounds=2)
