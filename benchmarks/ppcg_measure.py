"""Measures programs of PPCG on the card: a process for each, energy by the meters of ``eatss``."""

from __future__ import annotations

import json
import math
import os
import selectors
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from benchmarks.ppcg_build import Built, build, build_runtime, stop_builds
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
from benchmarks.ppcg_variants import Generation, written
from eatss.measurement.cupy_card import CupyCard
from eatss.measurement.measurement import LoadState, Missing, Reading
from eatss.measurement.metering import Metering, load_state
from eatss.measurement.meters.background import sampled_states
from eatss.measurement.meters.choose import choose_meters
from eatss.measurement.meters.meter import Meter, read
from eatss.measurement.meters.nvml import NvmlDevice, card_state

CHILD = Path(__file__).resolve().parent / "ppcg_child.py"
WARM_UP_S = 10.0
SETTLE_S = 0.25
SHORT_S = 0.1
LONG_RUN_S = 2.5
"""A run that takes longer is not repeated."""

MUCH_SLOWER = 30.0
"""So many times the default's time, and a random variant is stopped."""

RESTORING_SHARE = 0.01
"""Restoring what a run overwrites is part of every run where it takes no more of it than this."""

RESTORING_BYTES_PER_S = 2.5e12
OPEN_TIMEOUT_S = 60.0
FIRST_S = 3.0
"""What the arguments and loading may take before the first run."""
TOLERANCE: Mapping[str, float] = {"double": 1e-6, "float": 1e-2}
LOOK_AHEAD = 100
"""Jobs among which the next is chosen."""

REPEAT_DEFAULT = 20
"""Variants between two measurements of the default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureRequest:
    """How to measure.

    Above ``far`` times its default's time a variant gets no window, so no energy. The programs are
    shared by turns between ``shares`` processes, of which this is one, and their variants where
    there are fewer programs than that; ``card`` is NVML's number.
    Variants that are yet to be generated are left out without ``generation``.
    """

    results: Path
    window_s: float
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
    restoring: bool | None = None


@dataclass(slots=True, kw_only=True)
class _Job:
    variant: PpcgVariant
    group: _Group
    built: Future[Built]
    child: _Child | None = field(default=None)


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
    """A child ended, hung or was refused; ``timed_out`` if it hung."""

    def __init__(self, message: str, *, timed_out: bool = False) -> None:
        super().__init__(message)
        self.timed_out = timed_out


class _Child:
    """A process that runs one library."""

    def __init__(self, library: Path, program: PpcgProgram, *, host: bool, uuid: str) -> None:
        task = {
            "library": str(library),
            "host_statements": host,
            "parameters": [asdict(one) for one in program.parameters],
        }
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(CHILD), json.dumps(task)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={**os.environ, "CUDA_VISIBLE_DEVICES": uuid},
        )
        self._selector = selectors.DefaultSelector()
        assert self._process.stdout is not None
        self._selector.register(self._process.stdout, selectors.EVENT_READ)
        self.opened = False

    def ask(self, what: str, **arguments: object) -> None:
        """Give a command."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"do": what, **arguments}).encode() + b"\n")
            self._process.stdin.flush()
        except OSError as error:
            raise ChildError(self._last_words()) from error

    def answer(self, timeout_s: float) -> dict[str, Any]:
        """Return the answer to the command given."""
        assert self._process.stdout is not None
        if not self._selector.select(timeout_s):
            raise ChildError(f"no answer in {timeout_s:.0f} s", timed_out=True)
        line = self._process.stdout.readline()
        if not line:
            raise ChildError(self._last_words())
        answer: dict[str, Any] = json.loads(line)
        if answer.get("error"):
            raise ChildError(answer["error"])
        return answer

    def do(self, what: str, timeout_s: float, **arguments: object) -> dict[str, Any]:
        """Give a command and return the answer."""
        self.ask(what, **arguments)
        return self.answer(timeout_s)

    def open_ahead(self) -> None:
        """Begin to open the card."""
        with suppress(ChildError):  # the answer says so
            self.ask("open")

    def await_open(self) -> None:
        """Wait until the card is open."""
        if not self.opened:
            self.answer(OPEN_TIMEOUT_S)
            self.opened = True

    def end(self, *, kill: bool) -> None:
        """Begin to end."""
        if kill:
            self._process.kill()
        if self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.close()

    def await_end(self) -> None:
        """Wait until it has ended and its memory on the card is free."""
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(20)
        self._selector.close()
        if self._process.stdout is not None:
            self._process.stdout.close()
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
        self._missing: tuple[Missing, ...] = ()

    def meters(self, choice: str) -> tuple[Meter, ...]:
        """Return the meters of the card."""
        chosen = choose_meters(choice, self._nvml.known("uuid"), nvml=self._nvml)
        self._missing = chosen.missing
        return chosen.meters

    def missing_meters(self) -> tuple[Missing, ...]:
        """Return why some were left out."""
        return self._missing


@dataclass(frozen=True, slots=True, kw_only=True)
class _Energy:
    """A stretch of load as the meters and NVML saw it."""

    answer: dict[str, Any]
    reading: Reading | str
    load: LoadState


class Bench:
    """Measures one variant after the other, the next one's process started meanwhile."""

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
        self._leaving: list[_Child] = []
        rows = load_rows([request.results]) if request.results.is_file() else ()
        self._plan = plan(manifest, rows)
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
        common = build_runtime(self._folder, self._capability, self._nvcc)
        workers = max(1, ((os.cpu_count() or 1) - 4) // self._request.shares)
        built: dict[str, Future[Built]] = {}
        pool = ThreadPoolExecutor(workers)
        try:
            for one in self._plan:
                if one.folder not in built:
                    built[one.folder] = pool.submit(self._build, one, common)
            self._warm_up()
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
            following = _taken(jobs)
            while following is not None:
                job, following = following, _taken(jobs)
                if time.monotonic() > self._end_s:
                    print(f"the time is used up; {len(jobs) + 1} are left", flush=True)
                    break
                self._write(self._measured(job, following))
                library = job.built.result().library
                later = [*jobs, following] if following is not None else jobs
                if library is not None and all(one.built is not job.built for one in later):
                    library.unlink(missing_ok=True)
            if following is not None:
                self._leave(following, kill=True)
            self._see_off()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            stop_builds()
            pool.shutdown()
            shutil.rmtree(self._folder, ignore_errors=True)

    def _build(self, variant: PpcgVariant, common: Path) -> Built:
        directory = self._directory
        if variant.status == "wanted":
            assert self._request.generation is not None
            directory = self._folder / "generated"  # other processes have their own
            variant, _ = written(directory, self._request.generation, variant)
            if variant.reason:
                return Built(library=None, reason=variant.reason)
        return build(
            self._folder,
            directory / variant.folder,
            self._groups[variant.kernel, variant.dtype].program,
            variant,
            common,
            self._capability,
            self._nvcc,
        )

    def _warm_up(self) -> None:
        empty = PpcgProgram(kernel="", dtype="double", function="", parameters=())
        child = _Child(self._folder / "warm.so", empty, host=False, uuid=self._uuid)
        child.do("open", OPEN_TIMEOUT_S)
        if self._request.warm_up_s > 0:
            child.do("burn", self._request.warm_up_s + 60, seconds=self._request.warm_up_s)
        child.end(kill=False)
        child.await_end()

    def _measured(self, job: _Job, following: _Job | None) -> Row:
        """Measure a variant; whatever fails is a row."""
        variant = job.variant
        built = job.built.result()
        row = self._row(variant, status="ok")
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
        kill = False
        try:
            self._start(job)
            assert job.child is not None
            job.child.await_open()
            if following is not None and following.built.done():
                self._start(following)
            row = self._timed(job, following, row)
        except ChildError as error:
            kill = True
            status = "slow" if error.timed_out else "failed"
            row = replace(row, status=status, reason=str(error))
        finally:
            self._leave(job, kill=kill)
        return row

    def _timed(self, job: _Job, following: _Job | None, row: Row) -> Row:
        child, group = job.child, job.group
        assert child is not None
        limit_s = self._request.longest_run_s
        if group.time_s is not None and job.variant.name.startswith("random"):
            limit_s = min(limit_s, max(3.0, MUCH_SLOWER * group.time_s))
        first = self._metered(child, "first", limit_s + FIRST_S)
        first_s = first.answer["ms"] * 1e-3
        row = self._compared(job, child, row)
        if group.restoring is None:
            share = first.answer["restored_bytes"] / RESTORING_BYTES_PER_S / first_s
            group.restoring = not row.host_statements and share < RESTORING_SHARE
        row = replace(row, restored=group.restoring)
        self._quiet(following)
        if first_s > LONG_RUN_S:
            if group.time_s is None:
                group.time_s = first_s
            return self._filled(row, first, runs=1, settle_s=SETTLE_S)
        once = child.do("timed", 30, runs=1, restoring=group.restoring)
        time_s = once["ms"] * 1e-3
        runs = min(100_000, max(1, math.ceil(SHORT_S / max(time_s, 1e-6))))
        if runs > 1:
            again = child.do("timed", 60, runs=runs, restoring=group.restoring)
            time_s = again["ms"] * 1e-3 / runs
        if group.time_s is None:
            group.time_s = time_s
        row = replace(row, short_time_ms=time_s * 1e3)
        if time_s > self._request.far * group.time_s:
            return replace(row, time_ms=time_s * 1e3, reason=row.reason or "far slower")
        runs = max(1, math.ceil(self._request.window_s * 1.04 / time_s))
        settling = 0 if time_s > 1.0 else max(1, math.ceil(SETTLE_S / time_s))
        taken = self._metered(
            child, "window", 60, settling=settling, runs=runs, restoring=group.restoring
        )
        # settled, so that an update shortly after the begin is of the same load
        settle_s = 0.0 if settling else SETTLE_S
        row = self._filled(row, taken, runs=runs, settle_s=settle_s)
        _, finite = self._digest(child)
        return replace(row, finite=finite)

    def _metered(self, child: _Child, what: str, timeout_s: float, **arguments: object) -> _Energy:
        with (
            self._metering.recording() as recording,
            sampled_states(lambda: card_state(self._nvml), 0.1) as seen,
        ):
            answer = child.do(what, timeout_s, **arguments)
        trace = self._metering.primary_trace(recording)
        reading: Reading | str = self._metering.failure or "no meter"
        if trace is not None:
            settle_s = 0.0 if arguments.get("settling") else SETTLE_S
            if trace.kind == "power":
                settle_s = max(settle_s, 0.3)
            reading = read(
                trace, answer["begin_s"], answer["end_s"], settle_s=settle_s, least_intervals=2
            )
        return _Energy(answer=answer, reading=reading, load=load_state(seen))

    @staticmethod
    def _filled(row: Row, taken: _Energy, *, runs: int, settle_s: float) -> Row:
        time_ms = taken.answer["ms"] / runs
        row = replace(
            row,
            time_ms=time_ms,
            runs=runs,
            window_s=taken.answer["end_s"] - taken.answer["begin_s"] - settle_s,
            sm_mhz=taken.load.sm_clock_mean_mhz,
            throttle=", ".join(taken.load.throttle or ()),
        )
        if isinstance(taken.reading, str):
            return replace(row, reason="; ".join(filter(None, (row.reason, taken.reading))))
        return replace(
            row,
            power_w=taken.reading.power_w,
            energy_j=taken.reading.power_w * time_ms * 1e-3,
            updates=taken.reading.updates,
        )

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

    def _start(self, job: _Job) -> None:
        if job.child is None:
            built = job.built.result()
            if built.library is not None:
                job.child = _Child(
                    built.library,
                    job.group.program,
                    host=built.host_statements,
                    uuid=self._uuid,
                )
                job.child.open_ahead()

    def _quiet(self, following: _Job | None) -> None:
        """Wait until nothing else of ours is on its way on the card."""
        if following is not None and following.child is not None:
            with suppress(ChildError):  # its turn will tell
                following.child.await_open()
        self._see_off()

    def _leave(self, job: _Job, *, kill: bool) -> None:
        if job.child is not None:
            job.child.end(kill=kill)
            self._leaving.append(job.child)
            job.child = None

    def _see_off(self) -> None:
        for child in self._leaving:
            child.await_end()
        self._leaving.clear()

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


def plan(manifest: Manifest, rows: Sequence[Row]) -> list[PpcgVariant]:
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
        for start in range(0, len(others), REPEAT_DEFAULT):
            queue += default + others[start : start + REPEAT_DEFAULT]
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
