"""What ``energy_meter`` found, as a table: sources, then named windows, then what is not known."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from eatss.measurement.energy.measurement import EnergyMeasurement, WindowEnergy
from eatss.report.figures import MODULE_NOTE, NONE, figure
from eatss.report.render import indented_table

_NUMBERS = ("times", "s", "J", "± J", "W")


def energy_parts(found: EnergyMeasurement) -> list[RenderableType]:
    """Return what is told of a block, part by part."""
    table = indented_table("", *_NUMBERS, "meter", numbers=_NUMBERS)
    for one in found.sources:
        table.add_row(
            _name(one.name, "" if one.device is None else one.device.name),
            "1",
            figure(found.time_s),
            figure(one.energy_j),
            figure(one.uncertainty_j, 2),
            figure(one.power_w),
            one.meter or NONE,
        )
    for window in found.windows:
        for name, energy_j, uncertainty_j in _drawn(window):
            table.add_row(
                name,
                str(window.count),
                figure(window.time_s),
                figure(energy_j),
                figure(uncertainty_j, 2),
                figure(None if energy_j is None else energy_j / window.time_s),
                "",
            )
    reasons = list(found.contradictions)
    modules = [one.device.power_scope == "module" for one in found.cards if one.device is not None]
    reasons += [MODULE_NOTE] if any(modules) else []
    reasons += [one.reason for one in found.missing]
    reasons += [f"window {w.name}: {one.reason}" for w in found.windows for one in w.missing]
    notes = [Text(f"  {reason}") for reason in dict.fromkeys(reasons)]
    if found.error:
        notes.append(Text(f"  ended by {found.error}", style="red"))
    return [Text(str(found), style="bold"), table, *notes]


def _drawn(window: WindowEnergy) -> Iterator[tuple[str, float | None, float | None]]:
    """Yield a line for each kind of source in a window: all cards, all CPUs, each other meter."""
    name = f"window {window.name}"
    kinds = {share.kind for share in window.sources}
    if "card" in kinds or not kinds:
        yield name, window.energy_j, window.uncertainty_j
    if "cpu" in kinds:
        yield f"{name}, CPU", window.cpu_energy_j, window.cpu_uncertainty_j
    for share in window.sources:
        if share.kind == "own":
            yield f"{name}, {share.source}", share.energy_j, share.uncertainty_j


def _name(source: str, card: str) -> str:
    return f"{source}, {card}" if card else source
