"""From what sources recorded to an ``EnergyMeasurement``: sums over cards, and named windows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eatss.measurement.energy.measurement import (
    EnergyMeasurement,
    SourceKind,
    WindowEnergy,
    WindowRun,
    WindowShare,
    summed,
)
from eatss.measurement.energy.source import Source
from eatss.measurement.measurement import Missing
from eatss.measurement.meters.interval_energy import IntervalEnergy, Span, joined


@dataclass(slots=True, kw_only=True)
class OpenedWindow:
    """A window while it is open; ``end_s`` is ``None`` until it ends."""

    name: str
    begin_s: float
    end_s: float | None = None

    @property
    def span(self) -> Span:
        """Begin and end."""
        return self.begin_s, self.begin_s if self.end_s is None else self.end_s


def energy_result(
    sources: Sequence[Source], windows: Sequence[OpenedWindow], begin_s: float, end_s: float
) -> EnergyMeasurement:
    """Return what sources tell of a block, after they have stopped.

    Args:
        sources: all that were recorded.
        windows: of the block, in the order in which they began.
        begin_s: when the block began, by the clock of the traces.
        end_s: when it ended.
    """
    results = tuple(source.result(begin_s, end_s) for source in sources)
    cards = [one for one in results if one.kind == "card"]
    cpus = [one for one in results if one.kind == "cpu"]
    first = cards[0] if cards else None
    energy_j = summed(one.energy_j for one in cards)
    missing = [
        Missing(what=one.what, reason=_placed(source.name, one.reason, several=len(results) > 1))
        for source in results
        for one in source.missing
    ]
    named: dict[str, list[Span]] = {}
    for window in windows:
        named.setdefault(window.name, []).append(window.span)
    return EnergyMeasurement(
        time_s=end_s - begin_s,
        energy_j=energy_j,
        uncertainty_j=None if energy_j is None else summed(one.uncertainty_j for one in cards),
        power_w=None if energy_j is None else energy_j / (end_s - begin_s),
        meter=None if first is None else first.meter,
        updates=0 if first is None else first.updates,
        checks=() if first is None else first.checks,
        device=None if first is None else first.device,
        before=None if first is None else first.before,
        after=None if first is None else first.after,
        error="",
        missing=tuple(missing),
        cpu_energy_j=summed(one.energy_j for one in cpus),
        cpu_uncertainty_j=summed(one.uncertainty_j for one in cpus),
        sources=results,
        contradictions=tuple(
            _placed(one.name, one.contradiction, several=len(results) > 1)
            for one in results
            if one.contradiction
        ),
        windows=tuple(_window(name, spans, sources, begin_s) for name, spans in named.items()),
    )


def _placed(source: str, reason: str, *, several: bool) -> str:
    return f"{source}: {reason}" if several else reason


def _window(
    name: str, spans: Sequence[Span], sources: Sequence[Source], begin_s: float
) -> WindowEnergy:
    whole = joined(spans)
    time_s = sum(end_s - start_s for start_s, end_s in whole)
    shares: list[WindowShare] = []
    missing: list[Missing] = []
    for source in sources:
        told, why = source.energies(whole)
        best = told[0] if told else None
        shares.append(_share(source, best))
        if best is None:
            missing += [
                Missing(
                    what=one.what,
                    reason=_placed(source.name, one.reason, several=len(sources) > 1),
                )
                for one in why or source.missing
            ]
    if not sources:
        missing.append(Missing(what="energy", reason="no card, CPU or meter records it"))
    energy_j, uncertainty_j = _sums(shares, "card")
    cpu_energy_j, cpu_uncertainty_j = _sums(shares, "cpu")
    return WindowEnergy(
        name=name,
        count=len(spans),
        time_s=time_s,
        energy_j=energy_j,
        uncertainty_j=uncertainty_j,
        cpu_energy_j=cpu_energy_j,
        cpu_uncertainty_j=cpu_uncertainty_j,
        power_w=energy_j / time_s if energy_j is not None else None,
        sources=tuple(shares),
        runs=tuple(_run(span, sources, begin_s) for span in spans),
        missing=tuple(missing),
    )


def _run(span: Span, sources: Sequence[Source], begin_s: float) -> WindowRun:
    shares = []
    for source in sources:
        if source.kind == "card":
            told, _ = source.energies((span,))
            shares.append(_share(source, told[0] if told else None))
    energy_j, uncertainty_j = _sums(shares, "card")
    return WindowRun(
        begin_s=span[0] - begin_s,
        time_s=span[1] - span[0],
        energy_j=energy_j,
        uncertainty_j=uncertainty_j,
    )


def _share(source: Source, energy: IntervalEnergy | None) -> WindowShare:
    return WindowShare(
        source=source.name,
        kind=source.kind,
        energy_j=None if energy is None else energy.energy_j,
        uncertainty_j=None if energy is None else energy.uncertainty_j,
    )


def _sums(shares: Sequence[WindowShare], kind: SourceKind) -> tuple[float | None, float | None]:
    """Return the energy of all sources of a kind, and how far it may be off."""
    own = [share for share in shares if share.kind == kind]
    energy_j = summed(share.energy_j for share in own)
    return energy_j, None if energy_j is None else summed(share.uncertainty_j for share in own)
