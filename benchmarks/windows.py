"""Seconds and joules of programs by turns, from windows in which the card never waits.

What ``before_and_after.py``, ``library.py``, ``polybench_card.py`` and ``rows.py`` share: the
arguments of a program, windows by turns, rows of results, and the command line.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

Run: TypeAlias = Callable[[], object]

# -- rows --------------------------------------------------------------------------------------


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

    def fails(self, error: Exception) -> None:
        """Say why it does not run."""
        self.status = f"{type(error).__name__}: {error}"[:200]

    def over(self, other: Row) -> tuple[float, float]:
        """Return how many times the time and the energy of another it takes."""
        return self.time_s / other.time_s, self.energy_j / other.energy_j


def write_rows(rows: Sequence[Row], path: Path) -> None:
    """Write what was measured so far, a line each."""
    lines = ",\n".join(json.dumps(asdict(one)) for one in rows)
    path.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


def read_rows(path: Path) -> list[Row]:
    """Return what :func:`write_rows` wrote."""
    return [Row(**one) for one in json.loads(path.read_text(encoding="utf-8"))]


def by_workload(rows: Iterable[Row]) -> dict[str, dict[str, Row]]:
    """Return the rows of each workload by their programs."""
    found: dict[str, dict[str, Row]] = {}
    for row in rows:
        found.setdefault(row.workload, {})[row.program] = row
    return found


# -- measuring ---------------------------------------------------------------------------------


KINDS: Mapping[str, str] = {
    "_Float16": "float16", "float": "float32", "double": "float64", "short": "int16",
    "int": "int32", "long": "int64",
}  # fmt: skip
"""What PyTorch calls types of C; bytes are all others."""


def folders(directory: Path) -> list[Path]:
    """Return the folders in a folder, in the order of their names."""
    return sorted(one for one in directory.iterdir() if one.is_dir())


def arguments(
    torch: Any,
    folder: Path,
    scalars: Mapping[str, float] = MappingProxyType({}),
    scales: Mapping[str, float] = MappingProxyType({}),
) -> dict[str, Any]:
    """Return random arguments of a generated program at the sizes of its source.

    Args:
        torch: PyTorch.
        folder: that of the program.
        scalars: their values; 0.75 for others.
        scales: what arrays are multiplied by; they are of numbers from -0.5 to 0.5, those of
            integers from -10 to 10.
    """
    from eatss.program import evaluate, load_program  # noqa: PLC0415 - not to read results

    program = load_program(folder)
    sizes = {one.name: one.default for one in program.parameters if one.default is not None}
    given: dict[str, Any] = {}
    drawn = torch.Generator("cuda")
    drawn.manual_seed(0)
    for argument in program.entries[0].arguments:
        name, kind = argument.name, getattr(torch, KINDS.get(argument.element_type, "int8"))
        if argument.role == "array":
            shape = [evaluate(extent, sizes) for extent in argument.shape]
            drawn_as = kind if kind.is_floating_point else torch.float32
            values = torch.rand(shape, dtype=drawn_as, device="cuda", generator=drawn) - 0.5
            scale = scales.get(name, 1.0 if kind.is_floating_point else 20.0)
            given[name] = (values * scale).to(kind)
        elif argument.role == "scalar":
            given[name] = scalars.get(name, 0.75 if kind.is_floating_point else 1)
    return given


def started(torch: Any, folder: Path, given: Mapping[str, Any]) -> Run:
    """Run a generated program on arguments; return calls of it."""
    from eatss.program import load_program  # noqa: PLC0415 - as above

    compiled = load_program(folder).compile()
    compiled(**given)
    torch.cuda.synchronize()
    return lambda: compiled(**given)


def apart(found: Any, expected: Any) -> float:
    """Return how far a result is from another, as a share of that one's largest value."""
    return float((found - expected).abs().max() / expected.abs().max())


def take_turns(torch: Any, runs: Iterable[tuple[Row, Run]], seconds: float, rounds: int) -> None:
    """Measure programs by turns, a window of each in a round."""
    every = [*runs]
    for _ in range(rounds):
        for row, run in every:
            time_s, energy = window(torch, run, seconds)
            row.times_s.append(time_s)
            row.energies_j.append(energy)


def window(torch: Any, run: Run, seconds: float) -> tuple[float, float]:
    """Return seconds and joules of a run, from a window in which the card never waits.

    Runs are queued ahead of it. Their time is that between events on the card, their power that
    between two moves of its energy counter.
    """
    queue = _Queue(torch, run)
    queue.keep_busy(LEAD_S)
    begin_s, begin_j = queue.next_value()
    first = queue.done
    while time.perf_counter() < begin_s + seconds or queue.done is first:
        queue.turn()
    end_s, end_j = queue.next_value()
    time_s = queue.seconds_since(first)
    torch.cuda.synchronize()
    return time_s, time_s * (end_j - begin_j) / (end_s - begin_s)


LEAD_S = 0.2
"""Seconds in front of a window. At the limit of its power a card swings: an H100 ran one product of
matrices in 2.8 to 3.2 ms, up and down in 1.1 s. So windows are to be about as long as that."""


class _Queue:
    """Runs in bursts with an event after each, several of them ahead of the card.

    Attributes:
        done: The last event that the card has passed, and the runs before it.
    """

    AHEAD = 8
    BURST_S = 0.002

    def __init__(self, torch: Any, run: Run) -> None:
        self._torch, self._run = torch, run
        run()
        torch.cuda.synchronize()
        begin = time.perf_counter()
        run()
        torch.cuda.synchronize()
        self._burst = max(1, int(self.BURST_S / (time.perf_counter() - begin)))
        self._queued: deque[tuple[Any, int]] = deque()
        self._runs = 0
        self.done = (self._event(), 0)

    def _event(self) -> Any:
        event = self._torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def turn(self) -> None:
        """Queue bursts until enough are ahead; note what is done."""
        while len(self._queued) < self.AHEAD:
            for _ in range(self._burst):
                self._run()
            self._runs += self._burst
            self._queued.append((self._event(), self._runs))
        while self._queued and self._queued[0][0].query():
            self.done = self._queued.popleft()
        time.sleep(0.0002)

    def keep_busy(self, seconds: float) -> None:
        """Run for some seconds."""
        end_s = time.perf_counter() + seconds
        while time.perf_counter() < end_s:
            self.turn()

    def next_value(self) -> tuple[float, float]:
        """Run until the energy counter moves; return when it did, and its joules."""
        before = now = energy_j()
        while now == before:
            self.turn()
            now = energy_j()
        return time.perf_counter(), now

    def seconds_since(self, first: tuple[Any, int]) -> float:
        """Return seconds of a run between an event and the last one that is done."""
        (begin, before), (end, runs) = first, self.done
        return float(begin.elapsed_time(end)) / 1e3 / (runs - before)


def energy_j() -> float:
    """Return the joules of the card that the process sees first, since its driver was loaded."""
    import pynvml  # noqa: PLC0415 - only where the card is

    if not hasattr(energy_j, "card"):
        pynvml.nvmlInit()
        first, *_ = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")
        energy_j.card = pynvml.nvmlDeviceGetHandleByIndex(int(first))  # type: ignore[attr-defined]
    millijoules = pynvml.nvmlDeviceGetTotalEnergyConsumption(energy_j.card)  # type: ignore[attr-defined]
    return float(millijoules) / 1e3


# -- command line ------------------------------------------------------------------------------


def command_line(
    description: str | None,
    file: Path,
    measured: Callable[[Path, argparse.Namespace], Iterator[Row]],
    report: Callable[[list[Row]], None],
    prepare: Callable[[Path, argparse.Namespace], None] | None = None,
    *,
    seconds: float,
    rounds: int,
    options: Callable[[argparse.ArgumentParser], object] = lambda _: None,
) -> None:
    """Prepare a folder, run what is in one, or print the rows of a file.

    Args:
        description: of the command.
        file: where rows are.
        measured: measures what is in a folder; rows are written as they come.
        report: prints rows.
        prepare: generates the programs into a folder.
        seconds: of a window, by default.
        rounds: by default.
        options: adds further options.
    """
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("words", nargs="*", help="prepare DIR, run DIR, or a file of results")
    parser.add_argument("-o", "--output", type=Path, default=file)
    parser.add_argument("--seconds", type=float, default=seconds, help="of a window")
    parser.add_argument("--rounds", type=int, default=rounds)
    options(parser)
    given = parser.parse_args()
    what, *rest = given.words or [str(file)]
    if what == "prepare" and prepare is not None:
        prepare(Path(rest[0]), given)
    elif what == "run":
        rows: list[Row] = []
        for row in measured(Path(rest[0]), given):
            rows.append(row)
            write_rows(rows, given.output)
        report(rows)
    else:
        report(read_rows(Path(what)))
