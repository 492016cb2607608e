"""What ``eatss doctor`` prints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from eatss.base.frozen import frozen
from eatss.base.missing_packages import GENERATING
from eatss.base.shown import Shown
from eatss.cards.machine.environment import Check
from eatss.cards.machine.requirements import LIGHT
from eatss.report.render import RIGHT

_MARKS = {
    True: Text("ok", style="green"),
    False: Text("missing", style="bold red"),
    None: Text("note", style="yellow"),
}

_MEASURING = frozenset({"Python", "numpy", "typer", "rich", "NVIDIA driver", "cards", "CuPy"})


@frozen
class Examination(Shown):
    """What ``eatss doctor`` found, a check for each part."""

    shown_by = "eatss.report.environment:checks_parts"

    checks: tuple[Check, ...]


def checks_parts(found: Examination) -> Iterator[RenderableType]:
    """Yield the checks of this machine, what to do about each, and which commands work here."""
    table = Table(box=None, show_header=False, padding=RIGHT)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for check in found.checks:
        table.add_row(_MARKS[check.ok], check.name, check.found)
    yield table
    for (needed_for, remedy, command), alike in groupby(
        (check for check in found.checks if check.remedy or check.command),
        key=lambda check: (check.needed_for, check.remedy, check.command),
    ):
        text = Text(f"\n{', '.join(check.name for check in alike)}", style="bold")
        yield text.append(f", for {needed_for}: {remedy}", style="not bold")
        if command:  # a line of its own, to copy
            yield Padding(Text(command, style="cyan", overflow="fold"), (0, 0, 0, 4))
    yield _verdict(found.checks)


def _verdict(checks: Sequence[Check]) -> Text:
    """Say which commands work here; measuring needs less than selecting, and a card."""
    broken = [check.name for check in checks if check.ok is False]
    light = any(check.name in GENERATING.values() and check.ok is None for check in checks)
    verdict = Text()
    if broken:
        what = LIGHT if light else "eatss select"
        verdict.append(f"\n{what} cannot run here without: {', '.join(broken)}", "bold red")
    elif light:
        verdict.append(f"\n{LIGHT} has all that it needs here; it does not select.", "bold green")
    else:
        verdict.append("\neatss select works here.", "bold green")
    lacking = [check.name for check in checks if check.name in _MEASURING and not check.ok]
    if lacking:
        verdict.append(f"\neatss measure cannot run here without: {', '.join(lacking)}", "yellow")
    elif any(check.name == "energy meter" and not check.ok for check in checks):
        verdict.append("\neatss measure works here, for time but not for energy.", "yellow")
    else:
        verdict.append("\neatss measure works here.", "bold green")
    return verdict
