"""Every code of a call is documented, and every documented one exists and is tested."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def documented() -> set[str]:
    """Return the J-codes of the table, ranges spelled out."""
    found: set[str] = set()
    for cell in re.findall(r"^\| EATSS-(J[^|]*) \|", (ROOT / "docs/findings.md").read_text(), re.M):
        for part in cell.split(", "):
            first, _, last = part.partition(" to ")
            numbers = [int(one.removeprefix("J")) for one in (first, last or first)]
            found |= {f"J{number:03d}" for number in range(numbers[0], numbers[1] + 1)}
    return found


def test_every_code_of_a_call_is_documented() -> None:
    text = "".join(path.read_text() for path in sorted((ROOT / "eatss/session/jit").glob("*.py")))
    raised = set(re.findall(r'"EATSS-(J\d+)"', text))
    assert raised
    assert documented() == raised


def test_every_code_of_a_call_is_tested() -> None:
    tests = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    assert documented() <= set(re.findall(r"\b(J\d{3})\b", tests))
