"""The fit gives true prices back: of a scripted card, of published coefficients, of noisy data.

Tables and equations are those of Choi and Vuduc, *A roofline model of energy*.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eatss.base.diagnostics import InputError
from eatss.cards import load_profile
from eatss.cards.match import voltage_share
from eatss.cards.profile import Calibration
from eatss.measurement.characterize.bench import CupyBench
from eatss.measurement.characterize.benchmark import Record, Result, read_record
from eatss.measurement.characterize.fit import (
    GROUPS,
    MEMORY,
    PRICES,
    SEQUENCES,
    EnergyFit,
    amounts_of,
    calibrated,
    fit_energy,
    joined,
)
from eatss.measurement.characterize.roofline import (
    WIDTHS,
    PowerLimitedRoofline,
    roofline_from_coefficients,
)
from eatss.measurement.characterize.run import run_bench, suite
from tests.examples import examples
from tests.measurement.characterize.scripted_bench import ScriptedBench, Truth, chip_of
from tests.measurement.scripted_card import CardScript, ScriptedCard

RECORDED = Path(__file__).parents[3] / "benchmarks" / "results" / "h200"


BYTES = ("l2_bytes", "shared_bytes", *MEMORY)


@cache
def recorded(run: str) -> Record:
    return read_record(RECORDED / f"characterize-{run}.jsonl")


@cache
def recorded_fit(run: str) -> tuple[Calibration, EnergyFit]:
    return calibrated(recorded(run))


result = partial(Result, group="intensity", loops=1.0, time_s=1.0)


# a card with known prices


@st.composite
def truths(draw: st.DrawFn) -> Truth:
    """Prices of 100 to 600 pJ, a tenth of that for bytes."""
    prices = {
        feature: draw(st.floats(100, 600)) * (1e-13 if feature in BYTES else 1e-12)
        for feature, _ in PRICES
    }
    return Truth(
        prices=prices,
        constant_w=draw(st.floats(50, 200)),
        floor=draw(st.floats(0.02, 0.8)),
        capped_share=draw(st.sampled_from((0.6, 0.75, 0.85))),
    )


def measured(truth: Truth, path: Path) -> Record:
    bench = ScriptedBench(
        truth=truth, record=recorded("1"), scripted=ScriptedCard(script=CardScript())
    )
    fitted = [one for one in suite(chip_of(load_profile("h200"))) if one.group in GROUPS]
    run_bench(cast("CupyBench", bench), fitted, path, sm_count=132)
    return read_record(path)


def same(fit: EnergyFit, truth: Truth) -> None:
    assert [feature for feature, _ in fit.prices] == [feature for feature, _ in PRICES]
    for feature, price in fit.prices:
        assert price.value == pytest.approx(truth.prices[feature], rel=1e-3), feature
        assert price.low <= price.value <= price.high
    assert fit.constant_w.value == pytest.approx(truth.constant_w, rel=1e-3)
    assert fit.worst_residual < 1e-3


def test_a_calibration_has_prices_in_picojoules_and_where_they_come_from(tmp_path: Path) -> None:
    truth = Truth(
        prices={feature: 2e-12 if feature in BYTES else 3e-10 for feature, _ in PRICES},
        constant_w=90.0,
    )
    record = measured(truth, tmp_path / "record.jsonl")
    calibration, fit = calibrated(record)
    assert calibration.value("fp64_pj") == pytest.approx(300, rel=1e-3)
    assert calibration.value("dram_read_byte_pj") == pytest.approx(2, rel=1e-3)
    assert calibration.value("constant_w") == pytest.approx(90, rel=1e-3)
    assert calibration.value("idle_w") == pytest.approx(100, rel=1e-3)
    assert calibration.value("active_idle_w") == pytest.approx(90, rel=1e-3)
    assert calibration.value("l1_cycles") is None  # no latencies were measured
    assert calibration.benchmarks == len(fit.residuals) == len(record.results) - 1
    assert (calibration.cards, calibration.toolkit) == ((record.subject.card,), "13.0")
    assert calibration.power_limit_w == 700.0


# published coefficients


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A card of the paper: peaks of table 3, energies of tables 4 and 5, in pJ and W."""

    single_s: float
    double_s: float
    bytes_s: float
    single: float
    double: float
    memory: float
    constant_w: float
    first: float
    second: float
    first_is: str

    @property
    def prices(self) -> Mapping[str, float]:
        """In J; a multiply-add of a warp is 64 flops, a wavefront of L1 128 bytes."""
        first = self.first * (128 if self.first_is == "l1_wavefronts" else 1)
        return {
            "fp32": 64e-12 * self.single,
            "fp64": 64e-12 * self.double,
            "dram_read_bytes": 1e-12 * self.memory,
            "l2_bytes": 1e-12 * self.second,
            self.first_is: 1e-12 * first,
        }


CARDS = {
    "GTX 680": Published(
        single_s=3532.8e9, double_s=147.2e9, bytes_s=192.2e9, single=43.2, double=262.9,
        memory=437.5, constant_w=66.37, first=51, second=195, first_is="shared_bytes",
    ),
    "GTX 580": Published(
        single_s=1581.06e9, double_s=197.63e9, bytes_s=192.4e9, single=99.7, double=212,
        memory=513, constant_w=122, first=149, second=257, first_is="l1_wavefronts",
    ),
}  # fmt: skip
"""On the GTX 680, "L1" is shared memory."""

INTENSITIES = tuple(2.0**power for power in np.arange(-3, 7.1, 0.5))
STREAMED = 2.0**30
CACHE_SHARES = (1.5, 2.0, 3.0, 4.0)
"""Rates of a cache over that of memory: table 5 tells none, and any will do."""


def observed(card: Published, noise: float, seed: int) -> list[Result]:
    """Return the intensity sweeps by equation (9) and the caches by equation (10)."""
    random = np.random.default_rng(seed)
    found = []
    for opcode, flop_pj, flops_s in (
        ("FFMA", card.single, card.single_s),
        ("DFMA", card.double, card.double_s),
    ):
        for intensity in INTENSITIES:
            flops = intensity * STREAMED
            time_s = max(flops / flops_s, STREAMED / card.bytes_s)
            energy_j = 1e-12 * (flops * flop_pj + STREAMED * card.memory)
            found.append(
                result(
                    name=f"{opcode} {intensity:g}",
                    opcodes=((opcode, 2),),
                    loops=flops / 128,
                    amounts=(("dram_read_bytes", STREAMED),),
                    time_s=time_s,
                    energy_j=energy_j + card.constant_w * time_s,
                )
            )
    for share in CACHE_SHARES:
        time_s = STREAMED / card.bytes_s / share
        for feature, byte_pj in ((card.first_is, card.first), ("l2_bytes", card.second)):
            amount = STREAMED / (128 if feature == "l1_wavefronts" else 1)
            found.append(
                result(
                    name=f"{feature} {share}",
                    group="chase",
                    amounts=((feature, amount),),
                    time_s=time_s,
                    energy_j=1e-12 * STREAMED * byte_pj + card.constant_w * time_s,
                )
            )
    return [
        replace(one, energy_j=(one.energy_j or 0) * (1 + noise * random.standard_normal()))
        for one in found
    ]


@pytest.mark.parametrize("name", CARDS)
def test_published_coefficients_come_back_through_noise_of_the_published_size(name: str) -> None:
    """Section 4.3: the median residual was below 4.5 % (GTX 680) and 4 % (GTX 580)."""
    card, noise = CARDS[name], 0.05
    fit = fit_energy(observed(card, noise, 680))
    assert 0.02 < fit.median_residual < {"GTX 680": 0.045, "GTX 580": 0.04}[name]
    for feature, price in fit.prices:
        truth = card.prices[feature]
        assert price.low <= truth <= price.high, feature
        assert price.value == pytest.approx(truth, rel=0.25), feature
    assert fit.constant_w.low <= card.constant_w <= fit.constant_w.high


# intervals, signs, refusals


def random_results(random: np.random.Generator, count: int, truth: Mapping[str, float]) -> Results:
    """Return benchmarks with amounts of every feature, and what they take without noise."""
    found = []
    for number in range(count):
        amounts = {feature: float(random.uniform(0, 1e12)) for feature in truth}
        time_s = float(random.uniform(0.1, 2))
        clock = float(random.choice([1980.0, 1600.0]))
        share = float(voltage_share(clock / 1980, 0.2))
        costs = sum(
            amount * truth[feature] * (1 if feature in MEMORY else share)
            for feature, amount in amounts.items()
        )
        found.append(
            result(
                name=str(number),
                amounts=tuple(amounts.items()),
                time_s=time_s,
                energy_j=costs + 100 * time_s,
                sm_clock_mhz=clock,
            )
        )
    return found


Results = list[Result]
THREE = {"l2_bytes": 2e-10, "dram_read_bytes": 4e-10, "shared_wavefronts": 3e-10}


def noisy(results: Results, noise: float, random: np.random.Generator) -> Results:
    factors = 1 + noise * random.standard_normal(len(results))
    return [
        replace(one, energy_j=float((one.energy_j or 0) * by))
        for one, by in zip(results, factors, strict=True)
    ]


def test_an_interval_holds_the_truth_95_times_of_100() -> None:
    random = np.random.default_rng(1)
    exact = random_results(random, 24, THREE)
    held = []
    for _ in range(250):
        fit = fit_energy(noisy(exact, 0.02, random))
        held += [price.low <= THREE[feature] <= price.high for feature, price in fit.prices]
        held.append(fit.constant_w.low <= 100 <= fit.constant_w.high)
    assert 0.93 <= np.mean(held) <= 0.97


@settings(max_examples=examples(15), deadline=None)
@given(st.integers(0, 2**32), st.floats(0, 0.9))
def test_a_price_is_never_negative_whatever_was_measured(seed: int, noise: float) -> None:
    random = np.random.default_rng(seed)
    measured_ = [
        replace(one, energy_j=float(random.uniform(0.01, 1)) * (1 + noise))
        for one in random_results(random, 12, THREE)
    ]
    fit = fit_energy(measured_)
    for _, price in (*fit.prices, ("constant", fit.constant_w)):
        assert 0 <= price.low <= price.value <= price.high
        assert np.isfinite(price.high)
    assert 0 <= fit.voltage_floor.value <= 0.9


def test_too_few_benchmarks_are_refused_with_what_to_run() -> None:
    random = np.random.default_rng(6)
    enough = random_results(random, 5, THREE)
    assert len(fit_energy(enough).residuals) == 5
    for few in (enough[:4], [replace(one, energy_j=None) for one in enough], []):
        with pytest.raises(InputError) as caught:
            fit_energy(few)
        (found,) = caught.value.diagnostics
        assert found.code == "EATSS-B020"
        assert "too few" in found.message
        assert found.hint is not None
        assert "run them all" in found.hint


# what an opcode is


def test_every_instruction_that_was_ever_recorded_is_counted_once() -> None:
    features = {feature for feature, _ in PRICES}
    for one in recorded("1").results:
        if not any(sequence in dict(one.amounts) for sequence in SEQUENCES):
            counted = amounts_of(replace(one, amounts=()))
            assert counted.keys() <= features
            assert sum(counted.values()) == pytest.approx(one.instructions)


# the recorded H200s


@pytest.mark.parametrize("run", ["1", "2", "3"])
def test_recorded_energies_follow_the_fit(run: str) -> None:
    calibration, fit = recorded_fit(run)
    assert fit.r_squared > 0.996  # of mean powers
    assert fit.median_residual < 0.015
    assert fit.worst_residual < 0.15
    intensities = {one.name for one in recorded(run).of("intensity")}
    shares = {one.name: abs(one.share) for one in fit.residuals if one.name in intensities}
    assert len(shares) == 26
    assert max(shares.values()) < 0.05
    assert calibration.r_squared == fit.r_squared


@pytest.mark.parametrize("run", ["1", "2", "3"])
def test_the_intensity_sweep_is_what_its_own_fit_predicts_time_and_clock_included(run: str) -> None:
    record, (calibration, _) = recorded(run), recorded_fit(run)
    found = {name: one.value for name, one in calibration.coefficients}
    missed = []
    for width in WIDTHS:
        machine = roofline_from_coefficients(
            found, width, record.subject.sm_count, record.subject.power_limit_w
        )
        lowered = PowerLimitedRoofline.of(found, machine)
        for one in record.of("intensity"):
            if one.name.startswith(width) and one.flops:
                expected_j = float(lowered.energy_j(one.flops, one.flops / one.useful_bytes))
                missed.append(abs((one.energy_j or 0) / expected_j - 1))
    assert len(missed) == 24
    assert max(missed) < 0.07
    assert sum(share > 0.05 for share in missed) <= 2


def test_the_shipped_profile_joins_the_recorded_runs() -> None:
    shipped = load_profile("h200").calibration
    assert shipped is not None
    found = joined([recorded_fit(run)[0] for run in ("1", "2", "3")])
    assert shipped.cards == found.cards
    theirs = dict(shipped.coefficients)
    for name, one in found.coefficients:
        assert theirs[name].value == pytest.approx(one.value, rel=1e-4), name
