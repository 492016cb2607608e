"""What is listed: kernels, a space, what ``eatss verify`` found."""

from __future__ import annotations

import json
from collections.abc import Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from eatss.base.codec import encode
from eatss.base.shipped import MARK, ShippedKernels
from eatss.report.render import (
    NONE,
    apart,
    equations,
    headed,
    listing,
    render,
)
from eatss.tune.points import Point, SpaceCount
from eatss.verify import Verification
from eatss.verify.plain_text import coverage_text, error_text, remarks, size_text, verdict
from eatss.verify.result import OF_THE_WHOLE, Verifications


def kernels_parts(kernels: ShippedKernels) -> list[RenderableType]:
    """Return the kernels that come with eatss."""
    rows = (
        (Text(f"{MARK}{one.name}", style="bold", no_wrap=True), one.title, equations(one.sizes))
        for one in kernels.kernels
    )
    return [listing(("name", "what it computes", "sizes (-D)"), rows)]


def render_space(count: SpaceCount, points: Sequence[Point], output: str) -> str:
    """Return the count of a space and some of its points as ``table`` or ``json``."""
    if output == "json":
        document = encode(count) | ({"sample": list(map(dict, points))} if points else {})
        return json.dumps(document, indent=2) + "\n"

    def share(part: int) -> str:
        if not part or not count.raw:
            return ""
        percent = 100 * part / count.raw
        return f"{percent:.1f} %" if percent >= 0.1 else f"{percent:.1g} %"

    table = listing(
        ("", ">points", ">share"),
        (
            ("raw", _number(count.raw), ""),
            *(
                (
                    Text(one.name, style="dim"),
                    f"−{_number(one.removed)}" if one.removed else "0",
                    share(one.removed),
                )
                for one in count.filters
            ),
            (
                Text("kept", style="bold"),
                Text(_number(count.kept), style="bold"),
                share(count.kept),
            ),
        ),
    )
    table.columns[0].max_width = 44
    for column in table.columns[1:]:
        column.no_wrap = True
    drawn = Table.grid(padding=(0, 2, 0, 0))
    for number, point in enumerate(points, start=1):
        drawn.add_row(Text(str(number), style="dim"), Text(equations(point.items(), "  ")))
    return render(Text(count.name, style="bold"), table, *[drawn] * bool(points))


def _number(number: int) -> str:
    """Return a number with its digits in groups; beyond 10^12 with six digits."""
    return f"{number:,}".replace(",", " ") if number < 10**12 else f"{number:.5e}"


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
