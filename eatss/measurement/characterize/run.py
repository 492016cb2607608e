"""Runs the benchmarks on a card, one after the other, and keeps what each took.

Codes: B003 the card tells no energy, or other programs compute on it, E048 no benchmark of that
group, B010 a benchmark gave no result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TypeAlias

from eatss.base.diagnostics import Diagnostic, Diagnostics, Severity, input_error
from eatss.base.frozen import frozen
from eatss.base.targets import CardNumber
from eatss.measurement.card import CompileError, LaunchError
from eatss.measurement.characterize.arithmetic import arithmetic_benchmarks, intensity_benchmarks
from eatss.measurement.characterize.bench import CupyBench, CupyBenchmark
from eatss.measurement.characterize.benchmark import (
    Benchmark,
    Chip,
    Record,
    Repeat,
    Result,
    Subject,
    hashed,
    missing,
    result_line,
    subject_line,
)
from eatss.measurement.characterize.latency import (
    awake_benchmark,
    latency_benchmarks,
    launch_benchmark,
)
from eatss.measurement.characterize.memory import curve_benchmarks, memory_benchmarks
from eatss.measurement.cupy_card import CupyCard
from eatss.measurement.metering import LOOK_S, Metering, Pace, load_state, take_window
from eatss.version import package_revision


def suite(chip: Chip) -> Iterator[Benchmark]:
    """Yield all benchmarks: those that coefficients are fitted to first, then the curves."""
    yield awake_benchmark(chip)
    yield from latency_benchmarks(chip)
    yield launch_benchmark(chip)
    for made in (
        arithmetic_benchmarks,
        memory_benchmarks,
        intensity_benchmarks,
        curve_benchmarks,
    ):
        yield from made(chip)


LAUNCH_S = 0.02
"""Seconds that a launch is made to last, so that the gap before the next is of no weight."""

SETTLE_S = 0.4
CURVE_SETTLE_S = 0.2
LONG_WINDOW_S = 1.0
"""Windows from this on settle for ``SETTLE_S``, shorter ones for ``CURVE_SETTLE_S``."""

IDLE_PAUSE_S = 1.0
IDLE_S = 3.0
IDLE = "idle"
"""Name of the result of a card that does nothing."""

LATENCY_S = 0.005
MOST_REPEATS = 1 << 24
_TRIES = 3


OnStep: TypeAlias = Callable[[str, int, int], None]
"""Called with the benchmark that is about to run, how many came before it, and how many in all."""


def check_card(bench: CupyBench, metering: Metering, *, force: bool) -> None:
    """See that the card tells its energy and that nothing else computes on it.

    Raises:
        InputError: ``EATSS-B003``.
    """
    if metering.primary is None:
        raise input_error(
            "EATSS-B003",
            f"the card tells no energy: {metering.failure}",
            hint="`eatss doctor` says which sensors work; a MIG slice has none of its own",
        )
    others = bench.card.other_processes()
    if others and not force:
        raise input_error(
            "EATSS-B003",
            f"other programs compute on the card: {', '.join(others)}",
            hint="wait for them, or choose another card (--device); --force measures all the same",
        )


def _idle(bench: CupyBench, metering: Metering) -> Result:
    card = bench.card
    with card.sampled_states(LOOK_S) as seen:
        power_w = metering.idle_power_w(pause_s=IDLE_PAUSE_S, seconds=IDLE_S)
    state = load_state(seen)
    told = None if isinstance(power_w, str) else power_w
    return Result(
        name=IDLE,
        group="idle",
        time_s=1.0,
        power_w=told,
        energy_j=told,
        window_s=IDLE_S,
        sm_clock_mhz=state.sm_clock_mean_mhz,
        memory_clock_mhz=state.memory_clock_mhz,
        temperature_c=state.temperature_c,
        missing=power_w if isinstance(power_w, str) else "",
    )


def _tried(bench: CupyBench, metering: Metering, benchmark: Benchmark) -> Result | str:
    """Return what a benchmark took, or why it gave no result."""
    try:
        loaded = bench.load(benchmark)
        if wrong := missing(benchmark, loaded.opcodes):
            return (
                f"the machine code of '{benchmark.name}' has {'; '.join(wrong)}: this compiler "
                "folds the work away or writes it otherwise"
            )
        return _measured(metering, benchmark, loaded)
    except (CompileError, LaunchError) as error:
        if error.lost:
            raise
        return f"'{benchmark.name}' failed: {error}"


def _measured(metering: Metering, benchmark: Benchmark, loaded: CupyBenchmark) -> Result:
    launch_s = _fill(benchmark, loaded)
    result = Result(
        **{one.name: getattr(benchmark, one.name) for one in fields(Repeat)},
        time_s=launch_s / loaded.repeats,
        opcodes=loaded.opcodes,
    )
    if benchmark.group == "latency":
        each = benchmark.operations * loaded.repeats
        return replace(result, cycles=loaded.cycles() / each)
    if benchmark.window_s is None:
        return result
    settle_s = SETTLE_S if benchmark.window_s >= LONG_WINDOW_S else CURVE_SETTLE_S
    pace = Pace(run_s=launch_s, window_s=benchmark.window_s, settle_s=settle_s)
    taken = take_window(metering, loaded, pace, restoring=False)
    window = taken.window
    time_s, power_w, during = window.time_s / loaded.repeats, window.power_w, window.during
    assert during is not None
    return replace(
        result,
        time_s=time_s,
        power_w=power_w,
        most_power_w=taken.most_power_w,
        energy_j=None if power_w is None else power_w * time_s,
        window_s=window.duration_s,
        updates=None if power_w is None else window.readings[0].updates,
        sm_clock_mhz=loaded.clock_mhz or during.sm_clock_mean_mhz,
        lowest_sm_clock_mhz=during.sm_clock_lowest_mhz,
        memory_clock_mhz=during.memory_clock_mhz,
        temperature_c=during.temperature_c,
        throttle=during.throttle,
        occupancy=loaded.occupancy() if benchmark.group == "block size" else None,
        missing=taken.no_energy,
    )


def _fill(benchmark: Benchmark, loaded: CupyBenchmark) -> float:
    """Choose how often a launch repeats its work; return the seconds that a launch takes then."""
    wanted_s = LATENCY_S if benchmark.window_s is None else LAUNCH_S
    loaded.repeats = benchmark.repeats or 1
    loaded.timed(1)
    launch_s = loaded.timed(1)
    for _ in range(_TRIES if benchmark.repeats is None else 0):
        if launch_s > wanted_s / 2:
            break
        grown = int(loaded.repeats * min(1000.0, wanted_s / max(launch_s, 1e-6)))
        loaded.repeats = max(loaded.repeats, min(MOST_REPEATS, grown))
        launch_s = loaded.timed(1)
    return launch_s


@frozen
class Characterised:
    """A record, and warnings about benchmarks that gave no result."""

    record: Record
    warnings: Diagnostics


def characterise_card(
    path: Path,
    *,
    device: CardNumber = 0,
    profile: str = "",
    force: bool = False,
    progress: OnStep,
) -> Characterised:
    """Run the benchmarks on a card of this machine and keep every result as soon as it is there.

    Args:
        path: of the record.
        device: the card's number as CUDA counts those it sees, or its UUID.
        profile: name of the profile that the card is known by, for the record.
        force: run even where other programs compute on the card.
        progress: told what runs next.

    Raises:
        InputError: there is no card, it is busy or tells no energy.
        LaunchError: the card is lost; what was finished is in the record.
    """
    card = CupyCard(device)
    chip = Chip(
        sms=card.gpu.sm_count or 1,
        l2_bytes=card.gpu.l2_bytes or 0,
        capability=card.compile_target.capability,
    )
    return run_bench(
        CupyBench(card), [*suite(chip)], path, chip.sms, profile, force=force, progress=progress
    )


def run_bench(
    bench: CupyBench,
    benchmarks: Sequence[Benchmark],
    path: Path,
    sm_count: int,
    profile: str = "",
    *,
    force: bool = False,
    progress: OnStep = lambda *_: None,
) -> Characterised:
    """Run benchmarks on a card and write a record; see :func:`characterise_card`."""
    info = bench.card.info
    metering = Metering(bench.card, "auto")
    check_card(bench, metering, force=force)
    subject = Subject(
        name=info.name,
        card=hashed(info.uuid),
        profile=profile,
        compute_capability=info.compute_capability or 0,
        sm_count=sm_count,
        driver=info.driver,
        toolkit=info.toolkit,
        power_limit_w=info.power_limit_w,
        revision=package_revision()[0],
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        meter=metering.primary,
    )
    results, said = list[Result](), list[str]()
    try:
        file = path.open("w", encoding="utf-8")
    except OSError as error:
        why = f"cannot write the record {path}: {error.strerror}"
        raise input_error("EATSS-C008", why) from None
    total = len(benchmarks) + 1

    def kept(result: Result) -> None:
        results.append(result)
        file.write(result_line(result))
        file.flush()

    with file:
        file.write(subject_line(subject))
        progress(IDLE, 0, total)
        kept(_idle(bench, metering))
        progress("compiling", 1, total)
        bench.compile(benchmarks)
        for number, benchmark in enumerate(benchmarks, 1):
            progress(benchmark.name, number, total)
            found = _tried(bench, metering, benchmark)
            if isinstance(found, str):
                said.append(found)
                continue
            kept(found)
            if found.missing:
                said.append(f"'{benchmark.name}' has no energy: {found.missing}")
    warning = partial(Diagnostic, code="EATSS-B010", severity=Severity.WARNING)
    return Characterised(
        record=Record(subject=subject, results=tuple(results)),
        warnings=tuple(warning(message=one) for one in said),
    )
