"""What ``eatss doctor`` prints."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from eatss.codec import json_text
from eatss.frozen import frozen
from eatss.machine.environment import Check
from eatss.machine.requirements import LIGHT
from eatss.missing_packages import GENERATING
from eatss.report.render import render

_MARKS = {
    True: Text("ok", style="green"),
    False: Text("missing", style="bold red"),
    None: Text("note", style="yellow"),
}

_MEASURING = frozenset({"Python", "numpy", "typer", "rich", "NVIDIA driver", "cards", "CuPy"})
_METER = "energy meter"


@frozen
class Examination:
    """What ``eatss doctor`` found, a check for each part."""

    checks: tuple[Check, ...]


def render_checks(checks: Sequence[Check], output: str) -> str:
    """Return the checks of this machine as ``table`` or ``json``."""
    if output == "json":
        return json_text(Examination(checks=tuple(checks)))
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for check in checks:
        table.add_row(_MARKS[check.ok], check.name, check.found)
    return render(table, *_remedies(checks), _verdict(checks))


def _remedies(checks: Sequence[Check]) -> list[RenderableType]:
    """Return what to do about what is not in order; a command has a line of its own, to copy."""
    lines: list[RenderableType] = []
    for (needed_for, remedy, command), alike in groupby(
        (check for check in checks if check.remedy or check.command),
        key=lambda check: (check.needed_for, check.remedy, check.command),
    ):
        text = Text(f"\n{', '.join(check.name for check in alike)}", style="bold")
        text.append(f", for {needed_for}: {remedy}", style="not bold")
        lines.append(text)
        if command:
            lines.append(Padding(Text(command, style="cyan", overflow="fold"), (0, 0, 0, 4)))
    return lines


def _verdict(checks: Sequence[Check]) -> Text:
    """Say which commands work here; measuring needs less than selecting, and a card."""
    broken = [check.name for check in checks if check.ok is False]
    left_out = [
        check.name for check in checks if check.name in GENERATING.values() and check.ok is None
    ]
    lacking = [check.name for check in checks if check.name in _MEASURING and not check.ok]
    blind = any(check.name == _METER and not check.ok for check in checks)
    verdict = Text()
    if broken:
        what = LIGHT if left_out else "eatss select"
        verdict.append(f"\n{what} cannot run here without: {', '.join(broken)}", "bold red")
    elif left_out:
        verdict.append(f"\n{LIGHT} has all that it needs here; it does not select.", "bold green")
    else:
        verdict.append("\neatss select works here.", "bold green")
    if lacking:
        verdict.append(f"\neatss measure cannot run here without: {', '.join(lacking)}", "yellow")
    elif blind:
        verdict.append("\neatss measure works here, for time but not for energy.", "yellow")
    else:
        verdict.append("\neatss measure works here.", "bold green")
    return verdict
