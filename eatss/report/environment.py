"""What ``eatss doctor`` prints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from eatss.documents import json_text
from eatss.gpu.environment import Check
from eatss.report.render import render

_MARKS = {
    True: Text("ok", style="green"),
    False: Text("missing", style="bold red"),
    None: Text("note", style="yellow"),
}

_MEASURING = frozenset({"Python", "numpy", "typer", "rich", "NVIDIA driver", "cards", "CuPy"})
_METER = "energy meter"


@dataclass(frozen=True, slots=True, kw_only=True)
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
    for check in checks:
        if check.remedy or check.command:
            text = Text(f"\n{check.name}", style="bold")
            text.append(f", for {check.needed_for}: {check.remedy}", style="not bold")
            lines.append(text)
        if check.command:
            lines.append(Padding(Text(check.command, style="cyan", overflow="fold"), (0, 0, 0, 4)))
    return lines


def _verdict(checks: Sequence[Check]) -> Text:
    """Say which commands work here; measuring needs less than selecting, and a card."""
    broken = [check.name for check in checks if check.ok is False]
    lacking = [check.name for check in checks if check.name in _MEASURING and not check.ok]
    blind = any(check.name == _METER and not check.ok for check in checks)
    verdict = Text()
    if broken:
        verdict.append(f"\neatss select cannot run here without: {', '.join(broken)}", "bold red")
    else:
        verdict.append("\neatss select works here.", "bold green")
    if lacking:
        verdict.append(f"\neatss measure cannot run here without: {', '.join(lacking)}", "yellow")
    elif blind:
        verdict.append("\neatss measure works here, for time but not for energy.", "yellow")
    else:
        verdict.append("\neatss measure works here.", "bold green")
    return verdict
