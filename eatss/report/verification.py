"""What ``eatss verify`` prints."""

from __future__ import annotations

from rich.console import RenderableType
from rich.text import Text

from eatss.report.render import NONE, apart, headed, listing
from eatss.verify import Verification
from eatss.verify.plain_text import coverage_text, error_text, remarks, size_text, verdict
from eatss.verify.result import OF_THE_WHOLE, Verifications


def verifications_parts(found: Verifications) -> list[RenderableType]:
    """Return what is told of several, one after the other."""
    return apart(*map(verification_parts, found.verifications))


def verification_parts(verification: Verification) -> list[RenderableType]:
    """Return what is told of a verification, part by part."""
    where = "this CPU" if verification.device == "cpu" else "the GPU"
    head = headed(verification.program, f"  on {where}: ")
    head.append(verification.status, style="green" if verification.ok else "red")
    if verification.status in OF_THE_WHOLE:
        head.append(f": {verification.message}", style="not bold")
    if verification.status == "refused":
        return [head]
    results = verification.results
    table = listing(
        ("entry", "sizes", ">elements", ">largest error", ""),
        (
            (
                one.launcher,
                size_text(one),
                f"{one.compared:,}" if one.compared else NONE,
                error_text(one),
                Text(verdict(one), style="red" if one.failed else "green"),
            )
            for one in results
        ),
    )
    notes = [
        Text(f"  {one.launcher} at {size_text(one)}: {note}")
        for one in results
        if (note := remarks(one))
    ]
    rule = "every bit equal" if verification.bit_equal else "equal within the bound of rounding"
    covered = verification.coverage
    lines = [
        *(() if covered is None else coverage_text(covered, results)),
        f"demanded: {rule}; {verification.compile_time_s:.2f} s compiling, "
        f"{verification.run_time_s:.2f} s running",
    ]
    return [head, table, *notes, *(Text(f"  {line}", style="dim") for line in lines)]
