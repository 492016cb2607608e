"""``EnergyMeasurement``: what a block of code took, how sure that is, or why it is not known."""

from __future__ import annotations

from collections.abc import Iterable
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from eatss.base.codec import JsonForm, encode
from eatss.base.frozen import frozen
from eatss.base.shown import Shown, in_lines
from eatss.measurement.measurement import CardState, DeviceInfo, Missing
from eatss.measurement.meters.interval_energy import IntervalEnergy
from eatss.measurement.meters.meter import PowerSample, PowerTrace

if TYPE_CHECKING:
    from matplotlib.axes import Axes


ENERGY_SCHEMA = 1
"""Version of the JSON form; it grows when a reader of the old form would fail."""

_PLOT = "eatss.report.plots:draw_power"
"""What draws; found by its name when it is asked for, because it needs these nouns."""

SourceKind: TypeAlias = Literal["card", "cpu"]
"""A GPU, or a CPU package."""


@frozen
class SourceEnergy:
    """What one source drew during a block: a card, or a CPU package.

    Attributes:
        name: ``"card 0"`` as CUDA counts, ``"CPU package 0"``.
        kind: ``"card"`` or ``"cpu"``.
        energy_j: Joules, gross; ``None`` with a reason in ``missing``.
        uncertainty_j: Joules that ``energy_j`` may be off, as far as the sensor is right.
        power_w: Mean watts.
        peak_power_w: Largest watts that the sensor told, itself a mean over some time.
        idle_power_w: Mean watts before the block.
        meter: The sensor that ``energy_j`` rests on.
        updates: How many values it gave during the block.
        checks: What other sensors of the source said.
        device: The card; ``None`` for other sources.
        before: Clocks and temperature of the card before the block.
        after: The same after it.
        missing: What is not known, and why.
        trace: Power over time, from before the block to its end.
    """

    json_layout = JsonForm(apart=("trace",))

    name: str
    kind: SourceKind
    energy_j: float | None
    uncertainty_j: float | None
    power_w: float | None
    peak_power_w: float | None
    meter: str | None
    updates: int
    checks: tuple[IntervalEnergy, ...] = ()
    device: DeviceInfo | None = None
    before: CardState | None = None
    after: CardState | None = None
    missing: tuple[Missing, ...] = ()
    trace: tuple[PowerSample, ...] = ()
    idle_power_w: float | None = None

    def __repr__(self) -> str:
        return f"<SourceEnergy {self.name}: {_joules(self.energy_j, self.uncertainty_j)}>"


@frozen
class WindowShare:
    """What one source drew in all windows of a name.

    Attributes:
        source: Name of the source.
        kind: ``"card"`` or ``"cpu"``.
        energy_j: Joules; ``None`` with a reason in ``missing`` of the window.
        uncertainty_j: Joules that ``energy_j`` may be off.
    """

    source: str
    kind: SourceKind
    energy_j: float | None
    uncertainty_j: float | None


@frozen
class WindowRun:
    """One window of a name.

    Attributes:
        begin_s: Seconds since the block began.
        time_s: Seconds that it took.
    """

    begin_s: float
    time_s: float


@frozen
class WindowEnergy:
    """All windows of one name, ``with meter.window("forward"):``, together.

    Attributes:
        name: As it was given.
        count: How many windows there were.
        time_s: Seconds of all of them; where they overlap, once.
        energy_j: Joules of all cards in them; ``None`` with a reason in ``missing``.
        uncertainty_j: Joules that ``energy_j`` may be off.
        cpu_energy_j: Joules of all CPU packages in them, likewise.
        cpu_uncertainty_j: Joules that ``cpu_energy_j`` may be off.
        power_w: Mean watts of all cards.
        sources: What each source drew.
        runs: The windows one by one.
        missing: What is not known, and why.
    """

    name: str
    count: int
    time_s: float
    energy_j: float | None
    uncertainty_j: float | None
    cpu_energy_j: float | None
    cpu_uncertainty_j: float | None
    power_w: float | None
    sources: tuple[WindowShare, ...]
    runs: tuple[WindowRun, ...]
    missing: tuple[Missing, ...]

    def __repr__(self) -> str:
        return f"<WindowEnergy {_of_window(self)}>"


@frozen
class EnergyMeasurement(Shown):
    """Time and energy of one block of code.

    Energy is gross: all that was drawn, idle power and other programs' work included. The true
    energy lies within ``energy_j ± uncertainty_j``, as far as the sensor is right: one that moves
    every 100 ms says nothing of a shorter block. What is ``None`` stands in ``missing`` with the
    reason; it is never 0.

    Attributes:
        time_s: Seconds that the block took.
        energy_j: Joules of all cards together; ``None`` if one of them is not known.
        uncertainty_j: Joules that ``energy_j`` may be off, of all cards together.
        power_w: Mean watts of all cards together.
        meter: The sensor that the first card's energy rests on.
        updates: How many values it gave during the block.
        checks: What other sensors of the first card said.
        device: The first card.
        before: Its clocks and temperature before the block.
        after: The same after it.
        error: Names the exception that ended the block, ``""`` if none did.
        missing: What is not known, and why.
        cpu_energy_j: Joules of all CPU packages together; ``None`` if one is not known or none was
            asked for.
        cpu_uncertainty_j: Joules that ``cpu_energy_j`` may be off.
        sources: Each card and CPU package by itself.
        windows: The named windows of the block, in the order in which they first began.
        waited_for: What was waited for before time began and ended, in words.
        counted: How cards are counted, in words.
        schema_version: Of the JSON form.
    """

    shown_by = "eatss.report.measurement:energy_parts"

    time_s: float
    energy_j: float | None
    uncertainty_j: float | None
    power_w: float | None
    meter: str | None
    updates: int
    checks: tuple[IntervalEnergy, ...]
    device: DeviceInfo | None
    before: CardState | None
    after: CardState | None
    error: str
    missing: tuple[Missing, ...]
    cpu_energy_j: float | None = None
    cpu_uncertainty_j: float | None = None
    sources: tuple[SourceEnergy, ...] = ()
    windows: tuple[WindowEnergy, ...] = ()
    waited_for: tuple[str, ...] = ()
    counted: str = ""
    schema_version: int = ENERGY_SCHEMA

    @property
    def total_energy_j(self) -> float | None:
        """Joules of all cards and CPU packages that were asked for; ``None`` if one is unknown."""
        parts = [self.energy_j] * bool(self.cards) + [self.cpu_energy_j] * bool(self.cpus)
        known = [part for part in parts if part is not None]
        return sum(known) if known and len(known) == len(parts) else None

    @property
    def cards(self) -> tuple[SourceEnergy, ...]:
        """The cards, each by itself."""
        return tuple(one for one in self.sources if one.kind == "card")

    @property
    def cpus(self) -> tuple[SourceEnergy, ...]:
        """The CPU packages, each by itself."""
        return tuple(one for one in self.sources if one.kind == "cpu")

    def source(self, name: str) -> SourceEnergy:
        """Return a source, ``"card 0"``; ``KeyError`` if there is none."""
        return {one.name: one for one in self.sources}[name]

    def window(self, name: str) -> WindowEnergy:
        """Return the windows of a name; ``KeyError`` if there were none."""
        return {one.name: one for one in self.windows}[name]

    def power_traces(self) -> tuple[PowerTrace, ...]:
        """Return power over time as arrays, of each source that tells it."""
        return tuple(PowerTrace.of(one.name, one.trace) for one in self.sources if one.trace)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw power over time, and the named windows below it.

        Args:
            ax: Axes of matplotlib to draw in; new ones if not given.

        Raises:
            InputError: ``EATSS-E052`` matplotlib is not installed.
        """
        drawn: Axes = resolve_name(_PLOT)(self, ax)
        return drawn

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON types, without the traces of power."""
        plain: dict[str, Any] = encode(self)
        return plain

    def __repr__(self) -> str:
        return in_lines(f"EnergyMeasurement {self}", [_of_window(one) for one in self.windows])

    def __str__(self) -> str:
        told = [f"{self.time_s:.4g} s", self._of_cards()]
        if self.cpu_energy_j is not None:
            told.append(f"CPU {_joules(self.cpu_energy_j, self.cpu_uncertainty_j)}")
        elif self.cpus:
            told.append(f"CPU energy unknown: {_why(self.cpus)}")
        return ", ".join(filter(None, told))

    def _of_cards(self) -> str:
        """Return what all cards drew, "" if none was asked for."""
        if self.energy_j is None or self.uncertainty_j is None or self.power_w is None:
            others = (one.reason for one in self.missing if one.what == "energy")
            why = _why(self.cards) or next(others, "")
            return f"energy unknown: {why}" if why or self.cards else ""
        told = f"{self.meter}, {self.updates} updates"
        if len(self.cards) > 1:
            told = f"{len(self.cards)} cards"
        return f"{self.energy_j:.4g} ± {self.uncertainty_j:.2g} J, {self.power_w:.4g} W ({told})"


def _why(sources: Iterable[SourceEnergy]) -> str:
    """Return the first reason why a source has no energy."""
    unknown = (one for source in sources if source.energy_j is None for one in source.missing)
    return next((one.reason for one in unknown if one.what.startswith("energy")), "")


def _joules(energy_j: float | None, uncertainty_j: float | None) -> str:
    if energy_j is None or uncertainty_j is None:
        return "energy unknown"
    return f"{energy_j:.4g} ± {uncertainty_j:.2g} J"


def _of_window(one: WindowEnergy) -> str:
    """Return a line of all windows of a name."""
    kinds = {share.kind for share in one.sources}
    told = [f"{one.name}: {one.count} x", f"{one.time_s:.4g} s"]
    if "card" in kinds:
        told.append(_joules(one.energy_j, one.uncertainty_j))
    if "cpu" in kinds:
        told.append(f"CPU {_joules(one.cpu_energy_j, one.cpu_uncertainty_j)}")
    return ", ".join(told)
