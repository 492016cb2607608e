"""What ``eatss doctor`` prints."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from rich.table import Table
from rich.text import Text

from eatss.gpu.environment import Check
from eatss.report.render import render

_MARKS = {
    True: Text("ok", style="green"),
    False: Text("missing", style="bold red"),
    None: Text("optional", style="yellow"),
}

_MEASURING = frozenset({"Python", "numpy", "scipy", "typer", "rich", "CuPy"})
_METER = "energy meter"


def render_checks(checks: Sequence[Check], output: str) -> str:
    """Return the checks of this machine as ``table`` or ``json``."""
    if output == "json":
        return json.dumps({"checks": [asdict(check) for check in checks]}, indent=2) + "\n"
    table = Table(box=None)
    for title in ("", "what", "found", "for"):
        table.add_column(title, header_style="dim", overflow="fold")
    for check in checks:
        table.add_row(_MARKS[check.ok], check.name, check.found, Text(check.needed_for, "dim"))
    missing = Text()
    for check in checks:
        if check.remedy:
            missing.append(f"\n{check.name}: ", style="bold")
            missing.append(check.remedy)
    return render(table, missing, _verdict(checks))


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
