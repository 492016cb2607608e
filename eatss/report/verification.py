"""What ``eatss verify`` prints."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from eatss.codec import json_text
from eatss.report.render import render
from eatss.verify import SizeResult, Verification
from eatss.verify.plain_text import coverage_text, error_text, remarks, size_text, verdict
from eatss.verify.result import OF_THE_WHOLE, Verifications


def render_verifications(verifications: Sequence[Verification], output: str) -> str:
    """Return verifications as ``table`` or ``json``."""
    if output == "json":
        return json_text(Verifications(verifications=tuple(verifications)))
    parts: list[RenderableType] = []
    for verification in verifications:
        parts += [*([""] if parts else []), *verification_parts(verification)]
    return render(*parts)


def verification_parts(verification: Verification) -> list[RenderableType]:
    """Return what is told of a verification, part by part."""
    head = Text(verification.program, style="bold")
    head.append(
        f"  on {'this CPU' if verification.device == 'cpu' else 'the GPU'}: ", style="not bold"
    )
    head.append(verification.status, style="green" if verification.ok else "red")
    if verification.status in OF_THE_WHOLE:
        head.append(f": {verification.message}", style="not bold")
    if verification.status == "refused":
        return [head]
    rule = "every bit equal" if verification.bit_equal else "equal within the bound of rounding"
    foot = Text(
        f"  demanded: {rule}; {verification.compile_time_s:.2f} s compiling, "
        f"{verification.run_time_s:.2f} s running",
        style="dim",
    )
    parts: list[RenderableType] = [head, _table(verification.results)]
    for result in verification.results:
        note = remarks(result)
        if note:
            parts.append(Text(f"  {result.launcher} at {size_text(result)}: {note}"))
    if verification.coverage is not None:
        lines = coverage_text(verification.coverage, verification.results)
        parts += [Text(f"  {line}", style="dim") for line in lines]
    return [*parts, foot]


def _table(results: Sequence[SizeResult]) -> Table:
    table = Table(box=None, padding=(0, 0, 0, 2))
    for column in ("entry", "sizes", "elements", "largest error", ""):
        numeric = column in ("elements", "largest error")
        table.add_column(
            column, justify="right" if numeric else "left", header_style="dim", overflow="fold"
        )
    for result in results:
        table.add_row(
            result.launcher,
            size_text(result),
            f"{result.compared:,}" if result.compared else "-",
            error_text(result),
            Text(verdict(result), style="red" if result.failed else "green"),
        )
    return table
