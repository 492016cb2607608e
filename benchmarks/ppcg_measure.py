"""Measures programs of PPCG on the card, compiled ahead, energy by the meters of ``eatss``.

One process runs them all; it is started anew after a crash or a run that outlasts its limit.
"""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import selectors
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from benchmarks.ppcg_build import Built, Wanted, build, build_runtime
from benchmarks.ppcg_child import DIGEST
from benchmarks.ppcg_records import (
    DEFAULT,
    Manifest,
    PpcgProgram,
    PpcgVariant,
    Row,
    append_row,
    load_manifest,
    load_rows,
)
from benchmarks.ppcg_variants import Generation
from eatss.measurement.cupy_card import CupyCard
from eatss.measurement.measurement import Reading
from eatss.measurement.metering import Metering, load_state
from eatss.measurement.meters.background import sampled_states
from eatss.measurement.meters.choose import ChosenMeters, choose_meters
from eatss.measurement.meters.meter import Trace, read
from eatss.measurement.meters.nvml import NvmlDevice, card_state

CHILD = Path(__file__).resolve().parent / "ppcg_child.py"
WARM_UP_S = 10.0
SHORT_S = 0.1
SHORT_RUN_S = 0.02
"""A run that takes less is timed once more before its window is planned."""

MUCH_SLOWER = 30.0
"""So many times the default's time, and a random variant is stopped."""

RESTORING_SHARE = 0.01
"""Restoring what a run overwrites is part of every run where it takes no more of it than this."""

RESTORING_BYTES_PER_S = 2.5e12
OPEN_TIMEOUT_S = 60.0
FIRST_S = 1.0
"""What the arguments and loading may take before the first run."""
TOLERANCE: Mapping[str, float] = {"double": 1e-6, "float": 1e-2}
LOOK_AHEAD = 100
"""Jobs among which the next is chosen."""

SHORT_WINDOW_S = 0.3
"""The counter of an H200 moves every tenth of a second: a shorter window may hold two moves, any
other has to hold three."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureRequest:
    """How to measure.

    A window is ``window_s`` of load after ``settle_s`` of it. The default is measured again after
    ``repeat_default`` variants. Above ``far`` times its time a variant gets no window, so energy
    only if one run is long enough. The programs are shared by turns between ``shares`` processes,
    of which this is one, and their variants where there are fewer programs than that; ``card`` is
    NVML's number.
    Variants that are yet to be generated are left out without ``generation``.
    """

    results: Path
    window_s: float
    settle_s: float
    repeat_default: int
    budget_s: float
    longest_run_s: float
    warm_up_s: float = WARM_UP_S
    far: float = 10.0
    nvcc: str = "nvcc"
    card: int = 0
    share: int = 0
    shares: int = 1
    generation: Generation | None = None


@dataclass(slots=True, kw_only=True)
class _Group:
    """A program: its variants yet to be measured, and what the first one told."""

    program: PpcgProgram
    reference: npt.NDArray[np.float64] | None = None
    time_s: float | None = None
    restoring: bool = False

    def learn(self, row: Row, first: Mapping[str, float]) -> None:
        """Decide at the first run of all whether arrays are restored in front of every run."""
        if self.time_s is None:
            share = first["restored_bytes"] / RESTORING_BYTES_PER_S / (first["ms"] * 1e-3)
            self.restoring = not row.host_statements and share < RESTORING_SHARE


@dataclass(slots=True, kw_only=True)
class _Job:
    variant: PpcgVariant
    group: _Group
    built: Future[Built]


def _taken(jobs: list[_Job]) -> _Job | None:
    """Take the next job, one that need not wait for its compilation if there is any.

    The jobs of a program keep their order.
    """
    begun: set[int] = set()
    for place, job in enumerate(jobs[:LOOK_AHEAD]):
        if id(job.group) not in begun and job.built.done():
            return jobs.pop(place)
        begun.add(id(job.group))
    return jobs.pop(0) if jobs else None


class ChildError(Exception):
    """A child ended, hung or was refused; ``timed_out`` if it hung, ``usable`` if it goes on."""

    def __init__(self, message: str, *, timed_out: bool = False, usable: bool = False) -> None:
        super().__init__(message)
        self.timed_out = timed_out
        self.usable = usable


class _Child:
    """A process that runs libraries."""

    def __init__(self, common: Path, uuid: str) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(CHILD), str(common)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={**os.environ, "CUDA_VISIBLE_DEVICES": uuid, "CUDA_MODULE_LOADING": "EAGER"},
        )
        self._selector = selectors.DefaultSelector()
        assert self._process.stdout is not None
        self._selector.register(self._process.stdout, selectors.EVENT_READ)
        self.do("open", OPEN_TIMEOUT_S)

    def do(self, what: str, timeout_s: float, **arguments: object) -> dict[str, Any]:
        """Give a command and return the answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps({"do": what, **arguments}).encode() + b"\n")
            self._process.stdin.flush()
        except OSError as error:
            raise ChildError(self._last_words()) from error
        if not self._selector.select(timeout_s):
            raise ChildError(f"no answer in {timeout_s:.0f} s", timed_out=True)
        line = self._process.stdout.readline()
        if not line:
            raise ChildError(self._last_words())
        answer: dict[str, Any] = json.loads(line)
        if answer.get("error"):
            raise ChildError(answer["error"], usable=answer.get("usable", False))
        return answer

    def end(self) -> None:
        """End it, whatever it does, and wait until its memory on the card is free."""
        self._process.kill()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(20)
        self._selector.close()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        self._errors.close()

    def _last_words(self) -> str:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(20)
        self._errors.seek(0)
        text = self._errors.read().decode(errors="replace")
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        cuda = [line for line in lines if line.startswith("CUDA error")]
        last = (cuda or lines[-1:] or [""])[0]
        return f"the process ended with {self._process.returncode}: {last}"[:300]


class _MeterCard:
    """As much of a card as meters need."""

    def __init__(self, nvml: NvmlDevice) -> None:
        self._nvml = nvml

    def meters(self, choice: str) -> ChosenMeters:
        """Return the meters of the card."""
        return choose_meters(choice, self._nvml.known("uuid"), nvml=self._nvml)


class Bench:
    """Measures one variant after the other."""

    def __init__(self, manifest: Manifest, directory: Path, request: MeasureRequest) -> None:
        self._request = request
        self._directory = directory
        self._end_s = time.monotonic() + request.budget_s
        self._nvml = NvmlDevice(request.card)
        self._uuid = self._nvml.known("uuid")
        self._capability = self._nvml.known("compute_capability")
        self._metering = Metering(cast("CupyCard", _MeterCard(self._nvml)), "auto")
        self._session = time.strftime("%Y%m%dT%H%M%S")
        self._folder = Path(tempfile.mkdtemp(prefix="eatss-ppcg-"))
        self._groups = {(one.kernel, one.dtype): _Group(program=one) for one in manifest.programs}
        self._child: _Child | None = None
        self._texts: dict[str, str] = {}
        rows = load_rows([request.results]) if request.results.is_file() else ()
        self._plan = plan(manifest, rows, request.repeat_default)
        self._nvcc = shutil.which(request.nvcc) or "/usr/local/cuda/bin/nvcc"
        known = {(row.kernel, row.dtype, row.variant) for row in rows}
        for one in manifest.variants:
            if (
                one.status not in ("wanted", "generated")
                and (one.kernel, one.dtype, one.name) not in known
            ):
                reason = one.same_as or one.reason
                self._write(self._row(one, status=one.status, reason=reason))

    def run(self) -> None:
        """Measure until everything or the time is used up."""
        self._common = build_runtime(self._folder, self._capability, self._nvcc)
        workers = max(1, ((os.cpu_count() or 1) - 4) // self._request.shares)
        built: dict[str, Future[Built]] = {}
        # processes, lest the meters wait for the interpreter
        pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"))
        try:
            wanted = Wanted(
                folder=self._folder,
                directory=self._directory,
                generation=self._request.generation,
                capability=self._capability,
                nvcc=self._nvcc,
            )
            for one in self._plan:
                if one.folder not in built:
                    program = self._groups[one.kernel, one.dtype].program
                    built[one.folder] = pool.submit(build, wanted, program, one)
            if self._request.warm_up_s > 0:
                seconds = self._request.warm_up_s
                self._opened().do("burn", seconds + 60, seconds=seconds)
            jobs = [
                _Job(
                    variant=one,
                    group=self._groups[one.kernel, one.dtype],
                    built=built[one.folder],
                )
                for one in self._plan
            ]
            print(
                f"{len(jobs)} measurements on {self._nvml.known('name')}, energy by"
                f" {self._metering.primary or self._metering.failure}",
                flush=True,
            )
            while (job := _taken(jobs)) is not None:
                if time.monotonic() > self._end_s:
                    print(f"the time is used up; {len(jobs) + 1} are left", flush=True)
                    break
                self._write(self._measured(job))
                library = job.built.result().library
                if library is not None and all(one.built is not job.built for one in jobs):
                    library.unlink(missing_ok=True)
        finally:
            self._end_child()
            pool.shutdown(wait=False, cancel_futures=True)
            for process in multiprocessing.active_children():
                process.kill()
            shutil.rmtree(self._folder, ignore_errors=True)

    def _opened(self) -> _Child:
        if self._child is None:
            self._child = _Child(self._common, self._uuid)
        return self._child

    def _end_child(self) -> None:
        if self._child is not None:
            self._child.end()
            self._child = None

    def _measured(self, job: _Job) -> Row:
        """Measure a variant; whatever fails is a row."""
        variant = job.variant
        built = job.built.result()
        row = self._row(variant, status="ok")
        if built.text:
            text = f"{variant.kernel} {variant.dtype} {built.text}"
            first = self._texts.setdefault(text, variant.name)
            if first != variant.name:
                return replace(row, status="alias", reason=first)
        row = replace(
            row,
            host_statements=built.host_statements,
            resources=built.resources,
            registers=max((one.registers for one in built.resources), default=None),
            spill_bytes=max((one.spill_bytes for one in built.resources), default=None),
            stack_bytes=max((one.stack_bytes for one in built.resources), default=None),
            shared_bytes=max((one.shared_bytes for one in built.resources), default=None),
        )
        if built.library is None:
            return replace(row, status="not compiled", reason=built.reason)
        try:
            self._opened().do(
                "load",
                FIRST_S,
                library=str(built.library),
                parameters=[asdict(one) for one in job.group.program.parameters],
                host_statements=built.host_statements,
            )
            return self._timed(job, row)
        except ChildError as error:
            if not error.usable:
                self._end_child()
            status = "slow" if error.timed_out else "failed"
            return replace(row, status=status, reason=str(error))

    def _timed(self, job: _Job, row: Row) -> Row:
        child, group, request = self._opened(), job.group, self._request
        limit_s = request.longest_run_s
        if group.time_s is not None and job.variant.name.startswith("random"):
            limit_s = min(limit_s, max(1.0, MUCH_SLOWER * group.time_s))
        with (
            self._metering.recording() as recording,
            sampled_states(lambda: card_state(self._nvml), 0.1) as seen,
        ):
            first = child.do("first", limit_s + FIRST_S)
            time_s = first["ms"] * 1e-3
            begin_s, end_s, settle_s = first["begin_s"], first["end_s"], request.settle_s
            group.learn(row, first)
            row = replace(row, restored=group.restoring)
            steady = group.restoring and time_s >= SHORT_RUN_S
            if not steady:  # later runs go on from these results, or too few would be timed
                row = self._compared(job, child, row)
            if time_s < SHORT_RUN_S:
                time_s = self._short(child, group)
            if group.time_s is None:
                group.time_s = time_s
            row = replace(row, short_time_ms=time_s * 1e3, time_ms=time_s * 1e3)
            if time_s > request.far * group.time_s:
                row = replace(row, reason=row.reason or "far slower")
            elif time_s < request.settle_s + request.window_s:
                settling, runs = self._planned(time_s, steady=steady)
                taken = child.do(
                    "window", 60, settling=settling, runs=runs, restoring=group.restoring
                )
                row = replace(row, time_ms=taken["ms"] / runs, runs=runs)
                end_s = taken["end_s"]
                if not steady:
                    begin_s, settle_s = taken["begin_s"], 0.0
        row = self._filled(row, recording, begin_s, end_s, settle_s)
        load = load_state(seen)
        row = replace(row, sm_mhz=load.sm_clock_mean_mhz, throttle=", ".join(load.throttle or ()))
        if steady:
            return self._compared(job, child, row)
        _, finite = self._digest(child)
        return replace(row, finite=finite)

    def _planned(self, time_s: float, *, steady: bool) -> tuple[int, int]:
        """Return how many runs settle and how many are timed; the first run counts if steady."""
        settle_s, window_s = self._request.settle_s, self._request.window_s
        if steady:
            return 0, math.ceil((settle_s + window_s) / time_s) - 1
        return math.ceil(settle_s / time_s), math.ceil(window_s * 1.04 / time_s)

    @staticmethod
    def _short(child: _Child, group: _Group) -> float:
        """Return the seconds of a run that is too short to be timed alone."""
        once = child.do("timed", 30, runs=1, restoring=group.restoring)
        runs: int = min(100_000, max(1, math.ceil(SHORT_S / max(once["ms"] * 1e-3, 1e-6))))
        again = child.do("timed", 60, runs=runs, restoring=group.restoring)
        return float(again["ms"]) * 1e-3 / runs

    def _filled(
        self, row: Row, recording: list[Trace], begin_s: float, end_s: float, settle_s: float
    ) -> Row:
        """Add what the meters saw between two moments."""
        trace = self._metering.primary_trace(recording)
        reading: Reading | str = self._metering.failure or "no meter"
        if trace is not None:
            if trace.kind == "power":
                settle_s = max(settle_s, 0.3)
            least = 1 if self._request.window_s < SHORT_WINDOW_S else 2
            reading = read(trace, begin_s, end_s, settle_s=settle_s, least_intervals=least)
        row = replace(row, window_s=end_s - begin_s - settle_s)
        if isinstance(reading, str):
            return replace(row, reason="; ".join(filter(None, (row.reason, reading))))
        assert row.time_ms is not None
        energy_j = reading.power_w * row.time_ms * 1e-3
        return replace(row, power_w=reading.power_w, energy_j=energy_j, updates=reading.updates)

    def _compared(self, job: _Job, child: _Child, row: Row) -> Row:
        """Compare the results of the first run with those of the first variant that ran."""
        digest, finite = self._digest(child)
        if job.group.reference is None:
            job.group.reference = digest
            reason = "" if finite else "the reference is not finite"
            return replace(row, finite=finite, max_rel_error=0.0, reason=reason)
        error = relative_error(digest, job.group.reference)
        row = replace(row, finite=finite, max_rel_error=error if math.isfinite(error) else 1e300)
        if not error <= TOLERANCE[job.variant.dtype]:
            return replace(row, status="wrong", reason=f"results differ by {error:.2g}")
        return row

    def _digest(self, child: _Child) -> tuple[npt.NDArray[np.float64], bool]:
        path = self._folder / "digest.bin"
        child.do("digest", 60, path=str(path))
        digest = np.fromfile(path).reshape(-1, DIGEST)
        return digest, bool(np.isfinite(digest).all())

    def _row(self, variant: PpcgVariant, *, status: str, reason: str = "") -> Row:
        return Row(
            kernel=variant.kernel,
            dtype=variant.dtype,
            variant=variant.name,
            arguments=" ".join(variant.arguments),
            session=self._session,
            status=status,
            reason=reason,
            card=self._uuid,
            at_s=round(time.time(), 2),
        )

    def _write(self, row: Row) -> None:
        append_row(row, self._request.results)
        if row.status in ("not generated", "alias"):
            return
        time_ms = "-" if row.time_ms is None else f"{row.time_ms:.4f} ms"
        energy = "-" if row.energy_j is None else f"{row.energy_j:.5f} J"
        name = f"{row.kernel} {row.dtype} {row.variant}"
        print(f"{name:36} {row.status:8} {time_ms:>14} {energy:>12} {row.reason}", flush=True)


def plan(manifest: Manifest, rows: Sequence[Row], repeat_default: int) -> list[PpcgVariant]:
    """Return what is to be measured, the programs in turns, the default again and again.

    The default of a program comes first in every session, since others are compared with it.
    """
    done = {(row.kernel, row.dtype, row.variant) for row in rows if row.variant != DEFAULT}
    queues: list[list[PpcgVariant]] = []
    for program in manifest.programs:
        own = [
            one
            for one in manifest.variants
            if (one.kernel, one.dtype) == (program.kernel, program.dtype)
            and one.status in ("wanted", "generated")
        ]
        default = [one for one in own if one.name == DEFAULT]
        others = [
            one
            for one in own
            if one.name != DEFAULT and (one.kernel, one.dtype, one.name) not in done
        ]
        queue: list[PpcgVariant] = []
        for start in range(0, len(others), repeat_default):
            queue += default + others[start : start + repeat_default]
        queues.append(queue + default if queue else [])
    longest = max(map(len, queues), default=0)
    return [queue[turn] for turn in range(longest) for queue in queues if turn < len(queue)]


def relative_error(found: npt.NDArray[np.float64], reference: npt.NDArray[np.float64]) -> float:
    """Return the largest difference of the sums of pieces and of the samples of any array."""
    if found.shape != reference.shape:
        return math.inf
    worst = 0.0
    pieces = (DIGEST - 16384) // 2
    for one, other in zip(found, reference, strict=True):
        scale = np.maximum(other[pieces : 2 * pieces], np.finfo(float).tiny)
        by_sums = np.abs(one[:pieces] - other[:pieces]) / scale
        mean = float(np.mean(np.abs(other[2 * pieces :])))
        scale = np.maximum(np.abs(other[2 * pieces :]), max(mean, np.finfo(float).tiny))
        by_samples = np.abs(one[2 * pieces :] - other[2 * pieces :]) / scale
        both = np.concatenate([by_sums, by_samples])
        same_gap = np.isnan(np.concatenate([other[:pieces], other[2 * pieces :]]))
        both = np.where(same_gap, 0.0, both)
        worst = max(worst, float(np.max(np.nan_to_num(both, nan=np.inf))))
    return worst


def measure(directory: Path, request: MeasureRequest) -> None:
    """Measure what was prepared in a folder and is not yet among the results."""
    manifest = load_manifest(directory)
    few = len(manifest.programs) < request.shares
    programs = manifest.programs if few else manifest.programs[request.share :: request.shares]
    own = {(one.kernel, one.dtype) for one in programs}
    variants = tuple(
        one
        for place, one in enumerate(manifest.variants)
        if (one.kernel, one.dtype) in own
        and (one.status != "wanted" or request.generation is not None)
        and (not few or one.name == DEFAULT or place % request.shares == request.share)
    )
    manifest = replace(manifest, programs=programs, variants=variants)
    Bench(manifest, directory, request).run()
