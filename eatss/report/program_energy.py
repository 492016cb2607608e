"""What ``eatss meter`` tells of a program."""

from __future__ import annotations

import csv
import math
import shlex
from io import StringIO

from rich.text import Text

from eatss.documents import json_text
from eatss.foreign.program_energy import CardEnergy, ProgramEnergy
from eatss.report.render import indented_table, render

_ENOUGH_S = 2.0
"""Of recorded time: twenty updates of a counter that moves every 100 ms."""

_VAGUE = 0.05


def render_program_energy(found: ProgramEnergy, output: str) -> str:
    """Return it as ``table`` or ``json``."""
    if output == "json":
        return json_text(found)
    runs = f"{found.runs} runs, {found.time_s / found.runs:.4g} s each" if found.runs > 1 else ""
    head = Text(shlex.join(found.command), style="bold")
    head.append(f"  {found.time_s:.4g} s", style="not bold")
    head.append(f" ({runs})" if runs else "")
    head.append(f"  exit code {found.exit_code}" if found.exit_code else "", style="red")
    table = indented_table("card", "energy", "mean", "peak", "idle before", "updates")
    for card in found.cards:
        table.add_row(
            _name(card, several=len(found.cards) > 1),
            _energy(card, found.runs),
            _watts(card.power_w),
            _watts(card.peak_power_w),
            _watts(card.idle_power_w),
            str(card.updates),
        )
    notes = dict.fromkeys(note for card in found.cards for note in _notes(card, found))
    return render(head, table, *(Text(f"  {note}") for note in notes))


def power_csv(found: ProgramEnergy) -> str:
    """Return the power of every card over time as CSV: seconds since the program began, watts."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["device", "time_s", "power_w"])
    for card in found.cards:
        name = card.device.uuid or card.device.name
        writer.writerows([name, f"{s.time_s:.4f}", f"{s.power_w:.3f}"] for s in card.trace)
    return text.getvalue()


def _name(card: CardEnergy, *, several: bool) -> str:
    """Return the name of a card; of several, with the start of its UUID."""
    uuid = card.device.uuid or ""
    return f"{card.device.name} {uuid[:12]}".strip() if several else card.device.name


def _energy(card: CardEnergy, runs: int) -> str:
    if card.energy_j is None or card.uncertainty_j is None:
        return "unknown"
    total = f"{card.energy_j:.4g} ± {card.uncertainty_j:.2g} J"
    return f"{total}, {card.energy_j / runs:.4g} J a run" if runs > 1 else total


def _watts(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.4g} W"


def _notes(card: CardEnergy, found: ProgramEnergy) -> list[str]:
    if card.energy_j is None or card.uncertainty_j is None:
        reasons = [one.reason for one in card.missing if one.what.startswith("energy")]
        return [*dict.fromkeys(f"no energy: {reason}" for reason in reasons), *_longer(found)]
    if card.uncertainty_j <= _VAGUE * card.energy_j:
        return []
    share = card.uncertainty_j / card.energy_j
    moved = f"{card.meter} moved {card.updates} times meanwhile"
    return [f"energy is known to ± {share:.0%} only: {moved}", *_longer(found)]


def _longer(found: ProgramEnergy) -> list[str]:
    """Return what helps against too short a run, unless the program failed."""
    if found.exit_code:
        return []
    each_s = max(found.time_s / found.runs, 1e-3)
    repeat = max(2 * found.runs, math.ceil(_ENOUGH_S / each_s))
    return [f"run it for longer, as with --repeat {repeat}"]
