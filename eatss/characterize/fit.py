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
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar, nnls  # type: ignore[attr-defined]
from scipy.stats import t as student  # type: ignore[attr-defined]

from eatss.characterize.benchmark import WARP
from eatss.characterize.memory import SECTOR_BYTES
from eatss.characterize.power_limited_roofline import (
    WIDTHS,
    PowerLimitedRoofline,
    roofline_from_coefficients,
)
from eatss.characterize.result import Record, Result, Subject
from eatss.diagnostics import input_error
from eatss.frozen import frozen
from eatss.gpu.detect import DetectedGpu
from eatss.gpu.match import match_profile, profile_from_device
from eatss.gpu.profile import COEFFICIENTS, Calibration, Coefficient, GpuProfile
from eatss.gpu.scaled import voltage_share
from eatss.gpu.this_machine import is_auto, load_profile

GROUPS = ("arithmetic", "tensor", "memory", "chase", "bank conflicts", "intensity", "idle")
"""Groups whose energies the prices are fitted to."""

_COUNTED = ("instructions", "wavefronts", "bytes", "loads")

PRICES: tuple[tuple[str, str], ...] = tuple(
    (feature, f"{feature[:-1] if feature.endswith(_COUNTED) else feature}_pj")
    for feature in (
        "instructions",
        "int32_add",
        "int64_add",
        "int32_mul",
        "int32_count",
        "int32_shift",
        "int32_bits",
        "int32_compare",
        "fp32_add",
        "fp32_mul",
        "fp32",
        "fp32_div",
        "fp32_div_ftz",
        "fp32_div_approx",
        "fp32_div_approx_ftz",
        "special",
        "fp64_add",
        "fp64_mul",
        "fp64",
        "fp64_div",
        "fp16x2",
        "tensor_fp16",
        "tensor_bf16",
        "tensor_tf32",
        "tensor_fp64",
        "l1_wavefronts",
        "shared_wavefronts",
        "shared_bytes",
        "l2_bytes",
        "constant_loads",
        "dram_read_bytes",
        "dram_write_bytes",
    )
)
"""Features of the fit and the coefficients that are their prices."""

MEMORY = ("dram_read_bytes", "dram_write_bytes")
"""Features whose price does not follow the voltage of the SMs."""

OPCODES: tuple[tuple[str, str], ...] = (
    (r"HMMA\.16816\.F32\.BF16", "tensor_bf16"),
    (r"HMMA\.16816\.F32", "tensor_fp16"),
    (r"HMMA\.1688\.F32\.TF32", "tensor_tf32"),
    (r"DMMA\..*", "tensor_fp64"),
    (r"V?IADD.*|IMAD\.IADD", "int32_add"),
    (r"IMAD.*", "int32_mul"),
    (r"POPC|FLO\..*|BREV", "int32_count"),
    (r"SHF\..*", "int32_shift"),
    (r"LOP3\..*", "int32_bits"),
    (r"ISETP\..*", "int32_compare"),
    (r"FADD.*", "fp32_add"),
    (r"FMUL.*", "fp32_mul"),
    (r"FFMA.*", "fp32"),
    (r"MUFU\..*", "special"),
    (r"DADD", "fp64_add"),
    (r"DMUL", "fp64_mul"),
    (r"DFMA", "fp64"),
    (r"HFMA2.*", "fp16x2"),
    (r"LDC.*", "constant_loads"),
    (r"NOP", ""),
    (r".*", "instructions"),
)
"""What of the fit an opcode is: the first that matches as a whole. NOP is nothing."""

SEQUENCES: tuple[str, ...] = (
    "int64_add", "fp32_div", "fp32_div_ftz", "fp32_div_approx", "fp32_div_approx_ftz", "fp64_div",
)  # fmt: skip
"""Features that are many instructions; their price is that of all of them."""

_FORMS = tuple((re.compile(form), kind) for form, kind in OPCODES)
MOST_FLOOR = 0.9
DEFAULT_FLOOR = 0.0
_FLOORS = 91
LOWERED = 0.98
"""Clocks below this share of the highest say something of the voltage."""
CONFIDENCE = 0.95

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
    Where no clock fell (``clocks_fell``) nothing tells of the voltage; its floor is the default.
    """

    prices: tuple[tuple[str, Coefficient], ...]
    constant_w: Coefficient
    voltage_floor: Coefficient
    top_clock_mhz: float
    residuals: tuple[Residual, ...]
    r_squared: float
    clocks_fell: bool

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
        kind = next(kind for form, kind in _FORMS if form.fullmatch(opcode))
        if kind and result.loops:
            found[kind] = found.get(kind, 0.0) + result.loops * count
    return found


def fit_energy(results: Sequence[Result], *, floor: float | None = None) -> EnergyFit:
    """Fit prices to energies, each benchmark by its share of error.

    Args:
        results: with an energy each.
        floor: the voltage floor; found by least squares if not given.

    Raises:
        InputError: ``EATSS-B020``, there are fewer results than prices.
    """
    used = [one for one in results if one.energy_j]
    features = [
        feature for feature, _ in PRICES if any(amounts_of(one).get(feature) for one in used)
    ]
    if len(used) < len(features) + 2:
        raise input_error(
            "EATSS-B020",
            f"{len(used)} benchmarks with an energy are too few for {len(features) + 1} prices; "
            f"they are fitted to the groups {', '.join(GROUPS)}",
            hint="run the others: `eatss characterize` goes on where it ended",
        )
    top = max((one.sm_clock_mhz or 0.0 for one in used), default=0.0) or 1.0
    energies = np.array([one.energy_j for one in used], dtype=float)
    clocks_fell = any((one.sm_clock_mhz or top) < LOWERED * top for one in used)
    voltage_floor = _floor(used, features, top, energies, floor if clocks_fell else DEFAULT_FLOOR)
    if not clocks_fell:
        voltage_floor = Coefficient(value=DEFAULT_FLOOR, low=0.0, high=MOST_FLOOR)
    floor = voltage_floor.value
    matrix = _matrix(used, features, top, floor)
    prices, squares = _solved(matrix, energies)
    fitted = matrix @ prices
    intervals = _intervals(matrix / energies[:, None], prices, float(squares.sum()))
    times = np.array([one.time_s for one in used])
    powers, off = energies / times, (energies - fitted) / times
    return EnergyFit(
        prices=tuple(zip(features, intervals[:-1], strict=True)),
        constant_w=intervals[-1],
        voltage_floor=voltage_floor,
        top_clock_mhz=top,
        clocks_fell=clocks_fell,
        residuals=tuple(
            Residual(name=one.name, energy_j=float(e), fitted_j=float(f))
            for one, e, f in zip(used, energies, fitted, strict=True)
        ),
        r_squared=1 - float((off**2).sum() / ((powers - powers.mean()) ** 2).sum()),
    )


def _floor(
    used: Sequence[Result],
    features: Sequence[str],
    top_mhz: float,
    energies: Floats,
    known: float | None,
) -> Coefficient:
    """Return the voltage floor of least squares, and those that fit about as well."""
    if known is not None:
        return _exact(known)

    def squares(floor: float) -> float:
        return float(_solved(_matrix(used, features, top_mhz, floor), energies)[1].sum())

    best = minimize_scalar(squares, bounds=(0.0, MOST_FLOOR), method="bounded")  # type: ignore[no-untyped-call]
    free = max(1, len(used) - len(features) - 2)
    width = student.ppf((1 + CONFIDENCE) / 2, free) ** 2 / free
    near = [
        a for a in np.linspace(0.0, MOST_FLOOR, _FLOORS) if squares(a) <= best.fun * (1 + width)
    ]
    value = float(best.x)
    return Coefficient(value=value, low=float(min([value, *near])), high=float(max([value, *near])))


def _matrix(
    used: Sequence[Result], features: Sequence[str], top_mhz: float, floor: float
) -> Floats:
    """Return what each feature and the time would cost at a price of 1; a row a benchmark."""
    rows = []
    for one in used:
        amounts = amounts_of(one)
        share = voltage_share((one.sm_clock_mhz or top_mhz) / top_mhz, floor)
        row = [amounts.get(f, 0.0) * (1.0 if f in MEMORY else share) for f in features]
        rows.append([*row, one.time_s])
    return np.array(rows)


def _solved(matrix: Floats, energies: Floats) -> tuple[Floats, Floats]:
    """Return the prices, none below zero, and the squared shares of error."""
    relative = matrix / energies[:, None]
    scale = relative.max(axis=0)
    scale[scale == 0] = 1.0
    prices, _ = nnls(relative / scale, np.ones(len(energies)))
    prices = prices / scale
    return prices, (relative @ prices - 1) ** 2


def _intervals(relative: Floats, prices: Floats, squares: float) -> list[Coefficient]:
    """Return prices with intervals of the linear model; one that is zero may be up to its error."""
    free = len(relative) - int((prices > 0).sum())
    scale = relative.max(axis=0)
    scale[scale == 0] = 1.0
    covariance = np.linalg.pinv((relative / scale).T @ (relative / scale)) * squares / max(1, free)
    widths = student.ppf((1 + CONFIDENCE) / 2, max(1, free)) * np.sqrt(np.diag(covariance)) / scale
    return [
        Coefficient(value=float(p), low=max(0.0, float(p - w)), high=float(p + w))
        for p, w in zip(prices, widths, strict=True)
    ]


def calibrated(record: Record) -> tuple[Calibration, EnergyFit]:
    """Return the calibration that a record gives, and the fit behind it.

    Raises:
        InputError: ``EATSS-B020``, the record holds too little.
    """
    results = [one for one in record.results if one.group in GROUPS and one.name != "idle"]
    fit = fit_energy(results)
    subject = record.subject
    found = _energy_coefficients(record, fit) | _rates(record, fit.top_clock_mhz) | _waits(record)
    found |= _overlap(record, {name: one.value for name, one in found.items()})
    ordered = tuple((name, found[name]) for name in COEFFICIENTS if name in found)
    return (
        Calibration(
            coefficients=ordered,
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


def _energy_coefficients(record: Record, fit: EnergyFit) -> dict[str, Coefficient]:
    names = dict(PRICES)
    found = {names[feature]: _scaled(price, 1e12) for feature, price in fit.prices}
    found["constant_w"] = fit.constant_w
    found["voltage_floor"] = fit.voltage_floor
    for name, benchmark in (("idle_w", "idle"), ("active_idle_w", "active idle")):
        result = record.named(benchmark)
        if result is not None and result.power_w is not None:
            found[name] = _exact(result.power_w)
    return found


def _scaled(one: Coefficient, by: float) -> Coefficient:
    return Coefficient(value=one.value * by, low=one.low * by, high=one.high * by)


_PER_CYCLE = (
    ("fp32_per_cycle", "fp32 fma", "operations"),
    ("fp64_per_cycle", "fp64 fma", "operations"),
    ("issue_per_cycle", "fp32 add", "instructions"),
    ("shared_wavefronts_per_cycle", "shared read", "shared_wavefronts"),
)
_BYTES_S = (
    ("dram_read_gb_s", "DRAM read"),
    ("dram_write_gb_s", "DRAM write"),
    ("dram_copy_gb_s", "DRAM copy"),
    ("l2_gb_s", "L2 read"),
    ("l1_gb_s", "L1 read"),
)
MOST_OVERLAP = 16.0
"""The largest exponent: times that are equal take 4 % longer together than one alone."""

TORN = "strided global write, 256 threads"
"""Writes sectors in parts."""

_CYCLES = (
    ("shared_cycles", "shared load latency"),
    ("l1_cycles", "L1 load latency"),
    ("l2_cycles", "L2 load latency"),
    ("dram_cycles", "DRAM load latency"),
    ("fp32_cycles", "fp32 fma latency"),
    ("fp64_cycles", "fp64 fma latency"),
    ("fp32_div_cycles", "fp32 div latency"),
    ("fp64_div_cycles", "fp64 div latency"),
    ("atomic_cycles", "atomic add latency"),
    ("barrier_cycles", "barrier latency"),
)


def _rates(record: Record, top_mhz: float) -> dict[str, Coefficient]:
    """Return rates at the clock each benchmark ran at."""
    found = {"clock_mhz": _exact(top_mhz)}
    for name, benchmark, feature in _PER_CYCLE:
        result = record.named(benchmark)
        if result is None or not result.sm_clock_mhz or not record.subject.sm_count:
            continue
        amount = {"operations": result.operations, "instructions": result.instructions}.get(
            feature, result.amount(feature)
        )
        cycles = result.time_s * result.sm_clock_mhz * 1e6 * record.subject.sm_count
        found[name] = _exact(amount / cycles)
    for name, benchmark in _BYTES_S:
        result = record.named(benchmark)
        if result is not None:
            found[name] = _exact(result.useful_bytes / result.time_s / 1e9)
    torn = record.named(TORN)
    if torn is not None:
        # each thread of a warp writes a word to a sector of its own
        sectors = torn.operations * WARP
        found["l2_torn_gb_s"] = _exact(sectors * SECTOR_BYTES / torn.time_s / 1e9)
    return found


def _waits(record: Record) -> dict[str, Coefficient]:
    found = {}
    for name, benchmark in _CYCLES:
        result = record.named(benchmark)
        if result is not None and result.cycles is not None:
            found[name] = _exact(result.cycles)
    launch = record.named("launch overhead")
    if launch is not None:
        found["launch_s"] = _exact(launch.time_s)
    return found


def _overlap(record: Record, found: Mapping[str, float]) -> dict[str, Coefficient]:
    """Return how the times of arithmetic and memory join: what fits the intensity sweep best."""
    points = []
    for width in WIDTHS:
        own = [one for one in record.of("intensity") if one.flops and one.name.startswith(width)]
        try:
            machine = roofline_from_coefficients(
                found, width, record.subject.sm_count, record.subject.power_limit_w
            )
        except (KeyError, ValueError):
            continue  # a part of the suite, or a price of zero
        balance = machine.time_balance
        sides = {one.flops / one.useful_bytes < balance for one in own}
        if len(sides) > 1:  # on one side alone nothing overlaps
            points += [(machine, one) for one in own]
    if not points:
        return {}

    def squares(overlap: float) -> float:
        shares = [
            float(
                PowerLimitedRoofline.of({**found, "overlap": overlap}, machine).time_s(
                    one.flops, one.flops / one.useful_bytes
                )
            )
            / one.time_s
            - 1
            for machine, one in points
        ]
        return float(np.square(shares).sum())

    best = minimize_scalar(squares, bounds=(1.0, MOST_OVERLAP), method="bounded")  # type: ignore[no-untyped-call]
    return {"overlap": _exact(float(best.x))}


def joined(calibrations: Sequence[Calibration]) -> Calibration:
    """Return the mean over cards of one kind; the spread between them becomes part of it.

    Records of one card count as one.
    """
    first = calibrations[0]
    cards: dict[tuple[str, ...], list[Calibration]] = {}
    for one in calibrations:
        cards.setdefault(one.cards, []).append(one)
    coefficients = []
    for name in COEFFICIENTS:
        each = [
            _mean([dict(c.coefficients)[name] for c in own if name in dict(c.coefficients)])
            for own in cards.values()
        ]
        known = [one for one in each if one is not None]
        mean = _mean(known)
        if mean is None:
            continue
        values = [one.value for one in known]
        spread = None
        if len(values) > 1 and mean.value:
            spread = (max(values) - min(values)) / 2 / mean.value
        coefficients.append(
            (name, Coefficient(value=mean.value, low=mean.low, high=mean.high, spread=spread))
        )
    return Calibration(
        coefficients=tuple(coefficients),
        cards=tuple(sorted({card for one in calibrations for card in one.cards})),
        driver=", ".join(sorted({one.driver for one in calibrations})),
        toolkit=", ".join(sorted({one.toolkit for one in calibrations})),
        date=max(one.date for one in calibrations),
        revision=", ".join(dict.fromkeys(one.revision for one in calibrations)),
        power_limit_w=first.power_limit_w,
        r_squared=min(one.r_squared for one in calibrations),
        median_residual=max(one.median_residual for one in calibrations),
        worst_residual=max(one.worst_residual for one in calibrations),
        benchmarks=max(one.benchmarks for one in calibrations),
    )


def _mean(found: Sequence[Coefficient]) -> Coefficient | None:
    if not found:
        return None
    return Coefficient(
        value=float(np.mean([one.value for one in found])),
        low=float(np.mean([one.low for one in found])),
        high=float(np.mean([one.high for one in found])),
    )


def profile_for(gpu: str, subject: Subject, output: Path) -> GpuProfile:
    """Return the profile that a card's figures are put into.

    Args:
        gpu: a name or path, or ``auto``: the profile at ``output`` if there is one, else the one
            that the record names, else the shipped one of such a card, else a new one from what
            the driver of this machine reports.
        subject: the card.
        output: where the calibrated profile will be.

    Raises:
        InputError: there is no such profile, it is of another kind of card (``EATSS-B007``), or
            auto found none (``EATSS-B008``).
    """
    if not is_auto(gpu):
        return same_kind(load_profile(gpu), subject)
    if output.is_file():
        return same_kind(load_profile(output), subject)
    if subject.profile:
        return same_kind(load_profile(subject.profile), subject)
    capability = divmod(subject.compute_capability, 10)
    named = DetectedGpu(
        name=subject.name,
        uuid="",
        readers=(),
        compute_capability=(capability[0], capability[1]),
        sm_count=subject.sm_count,
    )
    shipped = match_profile(named)
    return shipped if shipped is not None else _of_this_machine(subject)


def _of_this_machine(subject: Subject) -> GpuProfile:
    from eatss.gpu.detect import detect_gpus  # noqa: PLC0415 - asks the driver

    for gpu in detect_gpus():
        if gpu.name == subject.name:
            return profile_from_device(gpu)
    raise input_error(
        "EATSS-B008",
        f"no profile is known of a {subject.name}, and no such card is here to make one from",
        hint="name the profile to calibrate with --gpu",
    )


def same_kind(profile: GpuProfile, subject: Subject) -> GpuProfile:
    """Return a profile if it is of the kind of card that was characterised.

    Raises:
        InputError: ``EATSS-B007``: it is not.
    """
    major, minor = profile.compute_capability
    if (10 * major + minor, profile.sm_count) != (subject.compute_capability, subject.sm_count):
        raise input_error(
            "EATSS-B007",
            f"the profile {profile.name} is of another card: it has {profile.sm_count} SMs of "
            f"compute capability {major}.{minor}, the {subject.name} {subject.sm_count} of "
            f"{subject.compute_capability / 10:.1f}",
            hint="name the right profile with --gpu, or another file with -o",
        )
    return profile
