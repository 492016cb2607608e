"""From a record to coefficients: non-negative least squares of energies, rates, latencies.

Choi and Vuduc fit ``E = Σ price × amount + π0 T`` [eqs. (9), (10)]. Here the sum runs over kinds of
instructions, counted in machine code, and levels of memory. Clocks that a power limit lowers are
part of it: with them the voltage falls, and what runs at the SMs' voltage takes ``v²`` of its
price, ``v = a + (1 - a) f / f0`` (``voltage_floor`` is a). Memory has a voltage of its own. That is
the model's answer to the power cap, which the paper leaves open [section 5.2].

Codes: B020 too few benchmarks for a fit.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar, nnls

from eatss.base.diagnostics import input_error
from eatss.base.frozen import frozen
from eatss.base.text import NamedTexts, Texts
from eatss.cards.detect import DetectedGpu, detect
from eatss.cards.match import match_profile, profile_from_device, voltage_share
from eatss.cards.profile import COEFFICIENTS, Calibration, Coefficient, Coefficients, GpuProfile
from eatss.cards.this_machine import is_auto, load_profile
from eatss.measurement.assemble import students_t
from eatss.measurement.characterize.arithmetic import OPERATIONS
from eatss.measurement.characterize.benchmark import SECTOR_BYTES, WARP, Record, Result, Subject
from eatss.measurement.characterize.roofline import (
    WIDTHS,
    PowerLimitedRoofline,
    roofline_from_coefficients,
)

GROUPS = ("arithmetic", "tensor", "memory", "chase", "bank conflicts", "intensity", "idle")
"""Groups whose energies the prices are fitted to."""

TABLES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
"""Features, opcodes, and which benchmark tells a coefficient."""

_MANY = ("instructions", "wavefronts", "bytes", "loads")

PRICES: NamedTexts = tuple(
    (feature, f"{feature.removesuffix('s') if feature.endswith(_MANY) else feature}_pj")
    for feature in TABLES["features"]
)
"""Features of the fit and the coefficients that are their prices."""

MEMORY = ("dram_read_bytes", "dram_write_bytes")
"""Features whose price does not follow the voltage of the SMs."""

OPCODES: Mapping[str, str] = TABLES["opcodes"]
"""What of the fit an opcode is: the first that matches as a whole. NOP is nothing."""

SEQUENCES = {one["sequence"] for one in OPERATIONS.values() if "sequence" in one}
"""Features that are many instructions; their price is that of all of them."""

MOST_FLOOR = 0.9
DEFAULT_FLOOR = 0.0
_FLOORS = 91
LOWERED = 0.98
"""Clocks below this share of the highest say something of the voltage."""

Floats = npt.NDArray[np.float64]


@frozen
class Residual:
    """A benchmark and how far the fitted energy is from the measured one, as a share of it."""

    name: str
    energy_j: float
    fitted_j: float

    @property
    def share(self) -> float:
        """Fitted over measured, less 1."""
        return self.fitted_j / self.energy_j - 1


@frozen
class EnergyFit:
    """Prices in J (``constant`` in W) with intervals, and what is left over.

    ``r_squared`` is of mean powers, so that it does not depend on how much a benchmark repeats.
    Where no clock fell nothing tells of the voltage; its floor is the default.
    """

    prices: tuple[tuple[str, Coefficient], ...]
    constant_w: Coefficient
    voltage_floor: Coefficient
    top_clock_mhz: float
    residuals: tuple[Residual, ...]
    r_squared: float

    @property
    def median_residual(self) -> float:
        """Half of the benchmarks are nearer than this share."""
        return float(np.median([abs(one.share) for one in self.residuals]))

    @property
    def worst_residual(self) -> float:
        """The largest share."""
        return max(abs(one.share) for one in self.residuals)


def amounts_of(result: Result) -> dict[str, float]:
    """Return the features of a result: what it moves, and the instructions of its loop by kind."""
    found = dict(result.amounts)
    if any(feature in found for feature in SEQUENCES):
        return found
    for opcode, count in result.opcodes:
        kind = next(kind for form, kind in OPCODES.items() if re.fullmatch(form, opcode))
        if kind and result.loops:
            found[kind] = found.get(kind, 0.0) + result.loops * count
    return found


def fit_energy(results: Sequence[Result]) -> EnergyFit:
    """Fit prices to energies, each benchmark by its share of error.

    Args:
        results: with an energy each.

    Raises:
        InputError: ``EATSS-B020``, there are fewer results than prices.
    """
    used = [one for one in results if one.energy_j]
    amounts = [amounts_of(one) for one in used]
    features = [feature for feature, _ in PRICES if any(one.get(feature) for one in amounts)]
    if len(used) < len(features) + 2:
        raise input_error(
            "EATSS-B020",
            f"{len(used)} benchmarks with an energy are too few for {len(features) + 1} prices; "
            f"they are fitted to the groups {', '.join(GROUPS)}",
            hint="let eatss characterize run them all",
        )
    top = max((one.sm_clock_mhz or 0.0 for one in used), default=0.0) or 1.0
    energies = np.array([one.energy_j for one in used], dtype=float)
    times = np.array([one.time_s for one in used])
    clocks = np.array([(one.sm_clock_mhz or top) / top for one in used])
    at_top = np.array([[one.get(feature, 0.0) for feature in features] for one in amounts])

    def costs(floor: float) -> Floats:
        """Return what each feature and the time would cost at a price of 1; a row a benchmark."""
        shares = np.where(np.isin(features, MEMORY), 1.0, voltage_share(clocks, floor)[:, None])
        return np.column_stack((at_top * shares, times))

    def squares(floor: float) -> float:
        return _solved(costs(floor), energies)[1]

    if not (clocks < LOWERED).any():
        voltage_floor = Coefficient(value=DEFAULT_FLOOR, low=0.0, high=MOST_FLOOR)
    else:
        voltage_floor = _least_floor(squares, max(1, len(used) - len(features) - 2))
    matrix = costs(voltage_floor.value)
    prices, left = _solved(matrix, energies)
    fitted = matrix @ prices
    *intervals, constant_w = _intervals(matrix / energies[:, None], prices, left)
    powers, off = energies / times, (energies - fitted) / times
    return EnergyFit(
        prices=tuple(zip(features, intervals, strict=True)),
        constant_w=constant_w,
        voltage_floor=voltage_floor,
        top_clock_mhz=top,
        residuals=tuple(
            Residual(name=one.name, energy_j=float(e), fitted_j=float(f))
            for one, e, f in zip(used, energies, fitted, strict=True)
        ),
        r_squared=1 - float((off**2).sum() / ((powers - powers.mean()) ** 2).sum()),
    )


def _least_floor(squares: Callable[[float], float], free: int) -> Coefficient:
    """Return the voltage floor of least squares, and those that fit about as well."""
    best = minimize_scalar(squares, bounds=(0.0, MOST_FLOOR), method="bounded")
    width = students_t(free) ** 2 / free
    floors = np.linspace(0.0, MOST_FLOOR, _FLOORS)
    near = [float(best.x), *(a for a in floors if squares(a) <= best.fun * (1 + width))]
    return Coefficient(value=near[0], low=float(min(near)), high=float(max(near)))


def _scaled_columns(relative: Floats) -> tuple[Floats, Floats]:
    """Return columns over the largest of each, and those."""
    scale = relative.max(axis=0)
    scale[scale == 0] = 1.0
    return relative / scale, scale


def _solved(matrix: Floats, energies: Floats) -> tuple[Floats, float]:
    """Return the prices, none below zero, and the sum of the squared shares of error."""
    columns, scale = _scaled_columns(matrix / energies[:, None])
    prices, norm = nnls(columns, np.ones(len(energies)))
    return prices / scale, float(norm**2)


def _intervals(relative: Floats, prices: Floats, squares: float) -> list[Coefficient]:
    """Return prices with intervals of the linear model; one that is zero may be up to its error."""
    free = max(1, len(relative) - int((prices > 0).sum()))
    columns, scale = _scaled_columns(relative)
    covariance = np.linalg.pinv(columns.T @ columns) * squares / free
    widths = students_t(free) * np.sqrt(np.diag(covariance)) / scale
    return [
        Coefficient(value=float(p), low=max(0.0, float(p - w)), high=float(p + w))
        for p, w in zip(prices, widths, strict=True)
    ]


def calibrated(record: Record) -> tuple[Calibration, EnergyFit]:
    """Return the calibration that a record gives, and the fit behind it.

    Raises:
        InputError: ``EATSS-B020``, the record holds too little.
    """
    fit = fit_energy([one for one in record.results if one.group in GROUPS and one.name != "idle"])
    subject, names = record.subject, dict(PRICES)
    found = {names[feature]: _scaled(price, 1e12) for feature, price in fit.prices}
    found |= {"constant_w": fit.constant_w, "voltage_floor": fit.voltage_floor}
    found["clock_mhz"] = _exact(fit.top_clock_mhz)
    for reading, told in TABLES["readings"].items():
        for name, benchmark in told.items():
            result = record.named(benchmark)
            value = None if result is None else _READINGS[reading](result, subject.sm_count)
            if value is not None:
                found[name] = _exact(value)
    found |= _overlap(record, {name: one.value for name, one in found.items()})
    return (
        Calibration(
            coefficients=tuple((name, found[name]) for name in COEFFICIENTS if name in found),
            cards=(subject.card,),
            driver=subject.driver or "unknown",
            toolkit=subject.toolkit or "unknown",
            date=subject.created[:10],
            revision=subject.revision or "unknown",
            power_limit_w=subject.power_limit_w or 0.0,
            r_squared=fit.r_squared,
            median_residual=fit.median_residual,
            worst_residual=fit.worst_residual,
            benchmarks=len(fit.residuals),
        ),
        fit,
    )


def _exact(value: float) -> Coefficient:
    return Coefficient(value=value, low=value, high=value)


def _scaled(one: Coefficient, by: float) -> Coefficient:
    return Coefficient(value=one.value * by, low=one.low * by, high=one.high * by)


MOST_OVERLAP = 16.0
"""The largest exponent: times that are equal take 4 % longer together than one alone."""


Reading: TypeAlias = Callable[[Result, int], float | None]
"""A coefficient out of a result and the number of SMs; ``None`` if it does not tell it."""


def _per_cycle(amount: Callable[[Result], float]) -> Reading:
    """Return what tells how much an SM does in a cycle, at the clock the benchmark ran at."""

    def reading(one: Result, sms: int) -> float | None:
        cycles = one.time_s * (one.sm_clock_mhz or 0.0) * 1e6 * sms
        return amount(one) / cycles if cycles else None

    return reading


_READINGS: Mapping[str, Reading] = {
    "power": lambda one, _: one.power_w,
    "operations": _per_cycle(lambda one: one.operations),
    "instructions": _per_cycle(lambda one: one.instructions),
    "shared": _per_cycle(lambda one: one.amount("shared_wavefronts")),
    "bandwidth": lambda one, _: one.useful_bytes / one.time_s / 1e9,
    "torn": lambda one, _: one.operations * WARP * SECTOR_BYTES / one.time_s / 1e9,
    "cycles": lambda one, _: one.cycles,
    "time": lambda one, _: one.time_s,
}
"""How the result of one benchmark tells a coefficient: ``TABLES`` says of which each is told so."""


def _overlap(record: Record, found: Coefficients) -> dict[str, Coefficient]:
    """Return how the times of arithmetic and memory join: what fits the intensity sweep best."""
    sweeps = []
    for width in WIDTHS:
        own = [one for one in record.of("intensity") if one.flops and one.name.startswith(width)]
        try:
            machine = roofline_from_coefficients(
                found, width, record.subject.sm_count, record.subject.power_limit_w
            )
        except (KeyError, ValueError):
            continue  # a part of the suite, or a price of zero
        work = np.array([one.flops for one in own])
        intensity = work / np.array([one.useful_bytes for one in own])
        if len({*(intensity < machine.time_balance)}) > 1:  # on one side alone nothing overlaps
            sweeps.append((machine, work, intensity, np.array([one.time_s for one in own])))
    if not sweeps:
        return {}

    def squares(overlap: float) -> float:
        joining = {**found, "overlap": overlap}
        shares = [
            PowerLimitedRoofline.of(joining, machine).time_s(work, intensity) / time_s - 1
            for machine, work, intensity, time_s in sweeps
        ]
        return float(np.square(np.concatenate(shares)).sum())

    best = minimize_scalar(squares, bounds=(1.0, MOST_OVERLAP), method="bounded")
    return {"overlap": _exact(float(best.x))}


def _listed(texts: Iterable[str]) -> str:
    return ", ".join(sorted(set(texts)))


_JOINED: Mapping[str, Callable[[list[Any]], Any]] = {
    "cards": lambda cards: tuple(sorted(set(chain(*cards)))),
    "driver": _listed,
    "toolkit": _listed,
    "date": max,
    "revision": lambda texts: ", ".join(dict.fromkeys(texts)),
    "r_squared": min,
    "median_residual": max,
    "worst_residual": max,
    "benchmarks": max,
}
"""What a field of calibrations that are joined is."""


def joined(calibrations: Sequence[Calibration]) -> Calibration:
    """Return the mean over cards of one kind; the spread between them becomes part of it.

    Records of one card count as one.
    """
    cards: dict[Texts, list[Mapping[str, Coefficient]]] = {}
    for one in calibrations:
        cards.setdefault(one.cards, []).append(dict(one.coefficients))
    coefficients = []
    for name in COEFFICIENTS:
        each = [[own[name] for own in of_card if name in own] for of_card in cards.values()]
        known = [_mean(found) for found in each if found]
        if not known:
            continue
        mean, values = _mean(known), [one.value for one in known]
        if len(values) > 1 and mean.value:
            mean = replace(mean, spread=(max(values) - min(values)) / 2 / mean.value)
        coefficients.append((name, mean))
    return replace(
        calibrations[0],
        coefficients=tuple(coefficients),
        **{
            name: of_all([getattr(one, name) for one in calibrations])
            for name, of_all in _JOINED.items()
        },
    )


def _mean(found: Sequence[Coefficient]) -> Coefficient:
    value, low, high = np.mean([(one.value, one.low, one.high) for one in found], axis=0).tolist()
    return Coefficient(value=value, low=low, high=high)


def profile_for(gpu: str, subject: Subject, output: Path) -> GpuProfile:
    """Return the profile that a card's figures are put into.

    Args:
        gpu: a name or path, or ``auto``: the profile at ``output`` if there is one, else the one
            that the record names, else the shipped one of such a card, else a new one from what
            the driver of this machine reports.
        subject: the card.
        output: where the calibrated profile will be.

    Raises:
        InputError: there is no such profile, or it is of another kind of card or auto found none
            (``EATSS-B005``).
    """
    own = (output if output.is_file() else subject.profile) if is_auto(gpu) else gpu
    if own or not is_auto(gpu):
        return same_kind(load_profile(own), subject)
    major, minor = divmod(subject.compute_capability, 10)
    named = DetectedGpu(
        name=subject.name,
        uuid="",
        compute_capability=(major, minor),
        sm_count=subject.sm_count,
    )
    shipped = match_profile(named)
    if shipped is not None:
        return shipped
    for one in detect().gpus:
        if one.name == subject.name:
            return profile_from_device(one)
    raise input_error(
        "EATSS-B005",
        f"no profile is known of a {subject.name}, and no such card is here to make one from",
        hint="name the profile to calibrate with --gpu",
    )


def same_kind(profile: GpuProfile, subject: Subject) -> GpuProfile:
    """Return a profile if it is of the kind of card that was characterised.

    Raises:
        InputError: ``EATSS-B005``: it is not.
    """
    if (profile.sm, profile.sm_count) != (subject.compute_capability, subject.sm_count):
        raise input_error(
            "EATSS-B005",
            f"the profile {profile.name} is of another card: it has {profile.sm_count} SMs of "
            f"compute capability {profile.capability}, the {subject.name} {subject.sm_count} of "
            f"{subject.compute_capability / 10:.1f}",
            hint="name the right profile with --gpu, or another file with -o",
        )
    return profile
