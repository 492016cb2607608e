"""The figures of a GPU, specified and measured.

What was measured of a card: prices of operations and bytes, rates, latencies, and of which card.

``eatss characterize`` finds these figures, the predicted objectives use them. A profile without
them is **uncalibrated**: :mod:`eatss.cards.match` scales another card's by specifications.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from eatss.base.codec import BY_NAME
from eatss.base.frozen import Names, frozen
from eatss.base.shown import Shown, figure
from eatss.base.targets import Capability
from eatss.base.text import NamedTexts

Coefficients: TypeAlias = Mapping[str, float]
"""What was measured of a card, by name."""

TABLES = tomllib.loads(Path(__file__).with_name("tables.toml").read_text(encoding="utf-8"))
"""What is known of cards and of their figures."""

COEFFICIENTS: Mapping[str, tuple[str, str]] = TABLES["coefficients"]
"""Every coefficient with its unit and what it is of, in order of display."""


@frozen
class Coefficient:
    """A figure with the ends of its 95 % interval.

    ``low`` and ``high`` are the value where only one measurement says it. ``spread`` is half of the
    range between cards of one kind over their mean, ``None`` where one card was measured.
    """

    value: float
    low: float
    high: float
    spread: float | None = None


@frozen
class Calibration:
    """The coefficients of a card, how well they fit, and where they come from.

    ``cards`` are hashes of the cards' UUIDs. ``r_squared`` is of the mean powers that the fit
    gives; ``median_residual`` and ``worst_residual`` are shares of an energy. ``benchmarks`` is how
    many a run has.
    """

    coefficients: Annotated[tuple[tuple[str, Coefficient], ...], BY_NAME]
    cards: Names
    driver: str
    toolkit: str
    date: str
    revision: str
    power_limit_w: float
    r_squared: float
    median_residual: float
    worst_residual: float
    benchmarks: int

    @property
    def missing(self) -> Names:
        """The coefficients that it lacks."""
        known = dict(self.coefficients)
        return tuple(name for name in COEFFICIENTS if name not in known)

    def value(self, name: str) -> float | None:
        """Return a coefficient, ``None`` if it was not found."""
        found = dict(self.coefficients).get(name)
        return None if found is None else found.value


SCHEMA_VERSION = 1

Tf32 = Literal["off", "on", "split"]
"""Whether tensor cores may multiply floats: not, rounded to TF32, or each as two such numbers."""

TIMES_TF32: Mapping[str, float] = {"tf32": 1.0, "fp16": 2.0, "int8": 4.0}
"""Products of other formats for each of TF32: of halves with sums in floats, and of bytes with sums
in integers, at least. So in the tables of all cards that have profiles."""

FIGURES_IN_WORDS: Mapping[str, tuple[str, str]] = TABLES["figures"]
"""What each figure of a profile is, and the unit that people read it in, in order of display."""

FIGURES: Names = tuple(FIGURES_IN_WORDS)
"""The fields of a profile that are figures, each with a source, in order of display."""


@frozen
class Source:
    """Where figures come from."""

    key: str
    title: str
    url: str | None = None


@frozen
class GpuProfile(Shown):
    """Limits and figures of one card; ``None`` means that no source gives the figure.

    Attributes:
        name: What ``--gpu`` calls it, ``"h200"``.
        title: Full name of the card.
        aliases: Other names of it.
        architecture: Generation, ``"Hopper"``.
        compute_capability: Major and minor, ``(9, 0)``.
        threads_per_block: Most threads of a block [EATSS, Table I: T_P_B].
        threads_per_warp: Threads of a warp [T_P_W].
        registers_per_sm: 32-bit registers of an SM [R_P_S].
        registers_per_block: Most 32-bit registers of a block [R_P_B].
        registers_per_thread: Most 32-bit registers of a thread [R_P_T].
        l1_shared_bytes: Bytes of L1 cache and shared memory of an SM together [L1_SH].
        l2_bytes: Bytes of L2 cache.
        sm_count: Streaming multiprocessors.
        max_threads_per_sm: Most threads of an SM.
        max_blocks_per_sm: Most blocks of an SM.
        shared_per_sm_bytes: Bytes of shared memory that an SM can have.
        shared_per_block_bytes: Bytes of shared memory that a block can have untold.
        shared_per_block_optin_bytes: Bytes that it can have if it asks for more.
        base_clock_mhz: Base clock in MHz.
        boost_clock_mhz: Boost clock in MHz.
        memory_bytes: Bytes of device memory.
        bandwidth_gb_s: Bandwidth of device memory, 10^9 bytes a second.
        peak_fp64_gflops: Peak of double precision, 10^9 operations a second, no tensor cores.
        peak_fp64_tensor_gflops: The same with tensor cores.
        peak_fp32_gflops: Peak of single precision, 10^9 operations a second.
        peak_tf32_tensor_gflops: Peak of TF32 on tensor cores, 10^9 operations a second.
        tdp_w: Thermal design power in watts.
        sources: The name of each figure with the key of its source in ``bibliography``.
        bibliography: Where figures come from.
        notes: What a figure means, by its name, where that is not obvious.
        calibration: What was measured of such a card, ``None`` if nobody did.
        clock_share: Share of the highest clock that the SMs are held to, as an owner may hold them.
    """

    shown_by = "profile"

    name: str
    title: str
    aliases: Names
    architecture: str
    compute_capability: Capability

    threads_per_block: int
    threads_per_warp: int
    registers_per_sm: int
    registers_per_block: int
    registers_per_thread: int
    l1_shared_bytes: int
    l2_bytes: int

    sm_count: int
    max_threads_per_sm: int
    max_blocks_per_sm: int
    shared_per_sm_bytes: int
    shared_per_block_bytes: int
    shared_per_block_optin_bytes: int
    base_clock_mhz: int | None
    boost_clock_mhz: int | None
    memory_bytes: int
    bandwidth_gb_s: float
    peak_fp64_gflops: float | None
    peak_fp64_tensor_gflops: float | None
    peak_fp32_gflops: float | None
    peak_tf32_tensor_gflops: float | None
    tdp_w: float | None

    sources: NamedTexts
    bibliography: tuple[Source, ...]
    notes: NamedTexts = ()
    calibration: Calibration | None = None
    clock_share: float = 1.0

    def __repr__(self) -> str:
        return (
            f"<GpuProfile {self.name}: {self.title}, compute capability {self.capability}, "
            f"{self.sm_count} SMs, {self.bandwidth_gb_s:g} GB/s, {figure(self.tdp_w, 'W')}>"
        )

    @property
    def capability(self) -> str:
        """The compute capability as CUDA writes it, ``"9.0"``."""
        return ".".join(map(str, self.compute_capability))

    @property
    def sm(self) -> int:
        """The compute capability as ``nvcc`` takes it: 90 of ``sm_90``."""
        major, minor = self.compute_capability
        return 10 * major + minor

    def peak_tensor_gflops(self, form: str) -> float | None:
        """Return the peak of products of a format, where a card has TF32 as well."""
        if form == "fp64":
            return self.peak_fp64_tensor_gflops
        single = self.peak_tf32_tensor_gflops
        return None if single is None else TIMES_TF32[form] * single

    @property
    def calibrated(self) -> bool:
        """Whether every coefficient was measured on cards of this kind."""
        return self.calibration is not None and not self.calibration.missing
