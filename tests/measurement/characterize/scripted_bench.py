"""A card with known prices, on which microbenchmarks take what those prices say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from eatss.cards.match import voltage_share
from eatss.cards.profile import GpuProfile
from eatss.measurement.card import LaunchError
from eatss.measurement.characterize.benchmark import (
    Benchmark,
    Chip,
    Occupancy,
    Opcodes,
    Record,
    Result,
)
from eatss.measurement.characterize.fit import MEMORY, amounts_of
from tests.measurement.scripted_card import ScriptedCard


def chip_of(profile: GpuProfile) -> Chip:
    """Return what benchmarks have to know of a card."""
    major, minor = profile.compute_capability
    return Chip(sms=profile.sm_count, l2_bytes=profile.l2_bytes, capability=10 * major + minor)


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """What the card costs: prices in J by feature, constant power, and how its voltage falls."""

    prices: Mapping[str, float]
    constant_w: float
    floor: float = 0.1
    limit_w: float = 1e9
    capped_share: float = 0.75
    """Share of the highest clock at which the card runs what exceeds the limit."""


@dataclass(slots=True)
class ScriptedBenchmark:
    bench: ScriptedBench
    benchmark: Benchmark
    opcodes: Opcodes
    repeats: int = 1

    @property
    def clock_mhz(self) -> float | None:
        return self.bench.counted_mhz

    def reset(self) -> None:
        pass

    def timed(self, count: int, *, restoring: bool = False) -> float:
        del restoring
        if self.benchmark.name in self.bench.failing:
            raise LaunchError("out of luck", lost=self.bench.failing[self.benchmark.name])
        known = self.bench.known[self.benchmark.name]
        each_s, power_w, share = self.bench.loaded(known)
        self.bench.scripted.script = replace(
            self.bench.scripted.script, load_clock_mhz=round(1980 * share)
        )
        seconds = count * self.repeats * each_s
        self.bench.scripted.draw(seconds, power_w)
        return seconds

    def cycles(self) -> float:
        known = self.bench.known[self.benchmark.name]
        return (known.cycles or 1.0) * self.benchmark.operations * self.repeats

    def occupancy(self) -> Occupancy:
        return Occupancy(theoretical=1.0, achieved=0.9)


@dataclass(slots=True)
class ScriptedBench:
    """Benchmarks take the times of a record, and energies that follow from ``truth``."""

    truth: Truth
    record: Record
    scripted: ScriptedCard
    failing: dict[str, bool] = field(default_factory=dict)
    wrong_code: frozenset[str] = frozenset()
    compiled: list[str] = field(default_factory=list)
    counted_mhz: float | None = None
    """What the SMs say of their clock; nothing if ``None``."""

    @property
    def known(self) -> dict[str, Result]:
        return {one.name: one for one in self.record.results}

    @property
    def card(self) -> ScriptedCard:
        return self.scripted

    def compile(self, benchmarks: Iterable[Benchmark]) -> None:
        self.compiled = [one.name for one in benchmarks]

    def loaded(self, known: Result) -> tuple[float, float, float]:
        """Return seconds, watts and the share of the highest clock."""
        chip = sum(
            amount * self.truth.prices.get(feature, 0.0)
            for feature, amount in amounts_of(known).items()
            if feature not in MEMORY
        )
        moved = sum(known.amount(f) * self.truth.prices.get(f, 0.0) for f in MEMORY)
        power_w = self.truth.constant_w + (chip + moved) / known.time_s
        if power_w <= self.truth.limit_w:
            return known.time_s, power_w, 1.0
        share = self.truth.capped_share
        cheaper = float(voltage_share(share, self.truth.floor))
        time_s = known.time_s / share
        return time_s, self.truth.constant_w + (chip * cheaper + moved) / time_s, share

    def load(self, benchmark: Benchmark) -> ScriptedBenchmark:
        opcodes = self.known[benchmark.name].opcodes
        if benchmark.name in self.wrong_code:
            opcodes = (("NOP", 1),)
        return ScriptedBenchmark(bench=self, benchmark=benchmark, opcodes=opcodes)
