"""What is listed: kernels, a space, what ``eatss verify`` found."""

from __future__ import annotations

import json
from collections.abc import Sequence

from rich.text import Text

from eatss.base.codec import encode
from eatss.base.shipped import MARK, ShippedKernels
from eatss.base.text import counted, equations
from eatss.report.render import (
    NONE,
    Columns,
    Parts,
    apart,
    bold,
    facts,
    figure,
    grouped,
    headed,
    listing,
    listing_of,
    render,
)
from eatss.tune.points import Point, SpaceCount
from eatss.verify.result import (
    OF_THE_WHOLE,
    Coverage,
    SizeResult,
    Verification,
    Verifications,
)

_MOST_UNTAKEN = 12


def kernels_parts(kernels: ShippedKernels) -> Parts:
    """Return the kernels that come with eatss."""
    rows = (
        (
            Text(f"{MARK}{one.name}", style="bold", no_wrap=True),
            one.title,
            equations(one.sizes, " "),
        )
        for one in kernels.kernels
    )
    return [listing(("name", "what it computes", "sizes (-D)"), rows)]


def render_space(count: SpaceCount, points: Sequence[Point], output: str, about: str = "") -> str:
    """Return the count of a space and some of its points as ``table`` or ``json``.

    ``about`` is what the space is for: a card, a type, a target.
    """
    if output == "json":
        document = encode(count) | ({"sample": list(map(dict, points))} if points else {})
        return json.dumps(document, indent=2) + "\n"

    def share(part: int) -> str:
        return f"{figure(100 * part / count.raw, 2)} %" if part and count.raw else ""

    table = listing(
        ("", ">points", ">share"),
        [
            ("raw", grouped(count.raw), ""),
            *((one.name, grouped(-one.removed), share(one.removed)) for one in count.filters),
            (bold("kept"), bold(grouped(count.kept)), share(count.kept)),
        ],
    )
    table.columns[0].max_width = 44
    for column in table.columns[1:]:
        column.no_wrap = True
    rows = enumerate((equations(point.items(), "  ") for point in points), start=1)
    drawn = facts((str(number), text) for number, text in rows)
    return render(headed(count.name, f"  {about}"), table, *[drawn] * bool(points))


def verifications_parts(found: Verifications) -> Parts:
    """Return what is told of several, one after the other."""
    return apart(*map(verification_parts, found.verifications))


def verification_parts(verification: Verification) -> Parts:
    """Return what is told of a verification, part by part."""
    where = "this CPU" if verification.device == "cpu" else "the GPU"
    head = headed(verification.program, f"  on {where}: ")
    head.append(verification.status, style="green" if verification.ok else "red")
    if verification.status in OF_THE_WHOLE:
        head.append(f": {verification.message}", style="not bold")
    if verification.status == "refused":
        return [head]
    results = verification.results
    columns: Columns = {
        "entry": "launcher",
        "sizes": _size_text,
        ">elements": lambda one: grouped(one.compared) if one.compared else None,
        ">largest error": _error_text,
        "": lambda one: Text(
            "refused, as it has to be" if one.refused else one.status,
            style="red" if one.failed else "green",
        ),
    }
    notes = [
        Text(f"  {one.launcher} at {_size_text(one)}: {note}")
        for one in results
        if (note := _remarks(one))
    ]
    rule = "every bit equal" if verification.bit_equal else "equal within the bound of rounding"
    covered = verification.coverage
    lines = [
        *(() if covered is None else _coverage(covered, results)),
        f"demanded: {rule}; {verification.compile_time_s:.2f} s compiling, "
        f"{verification.run_time_s:.2f} s running",
    ]
    return [
        head,
        listing_of(results, columns),
        *notes,
        *(Text(f"  {line}", style="dim") for line in lines),
    ]


def _size_text(result: SizeResult) -> str:
    """Return the sizes of a run, ``N=37 M=5``, and what is special of its data."""
    sizes = equations(result.sizes, " ") or "fixed"
    return ", ".join(filter(None, (sizes, result.data)))


def _error_text(result: SizeResult) -> str:
    """Return the largest error and what is allowed."""
    if result.compared == 0 or result.worst_error == 0.0:
        return "0" if result.compared else NONE
    return f"{result.worst_error:.2g} of {result.bound:.2g}"


def _remarks(result: SizeResult) -> str:
    """Return what a reader should know of a run besides its verdict."""
    counts = ((result.not_finite, "not finite"), (result.loose, "within a bound above their size"))
    found = (
        f"{grouped(count)} of {grouped(result.compared)} elements are {what}"
        for count, what in counts
        if count
    )
    return "; ".join(filter(None, (result.message, *found)))


def _coverage(coverage: Coverage, results: Sequence[SizeResult]) -> list[str]:
    """Return lines that say what was covered, by runs that ``results`` lists and others."""
    unlisted = coverage.runs - sum(result.compared > 0 for result in results)
    lines = [
        f"compared: {grouped(coverage.elements)} elements in {counted(coverage.runs, 'run')}"
        + (f" ({grouped(unlisted)} of them not listed)" if unlisted else "")
        + f", {grouped(coverage.changed)} of them changed by the original; "
        f"{counted(coverage.refusals, 'refusal')}, "
        f"{counted(coverage.accepted, 'empty size')} accepted"
    ]
    if coverage.kernels is None:
        return [*lines, "tiles and branches: not counted"]
    for kernel in coverage.kernels:
        tiles = f"{grouped(kernel.full_tiles)} full, {grouped(kernel.partial_tiles)} partial"
        lines.append(f"tiles of {kernel.kernel}: {'never ran' if kernel.idle else tiles}")
    untaken = coverage.untaken
    taken = "all taken both ways"
    if untaken:
        taken = f"{len(untaken)} taken one way only or never reached"
    lines.append(f"branches: {coverage.branches}, {taken}")
    lines += [
        f"  line {each.line} of {each.function}: ({each.condition}) was never {each.never}"
        for each in untaken[:_MOST_UNTAKEN]
    ]
    if len(untaken) > _MOST_UNTAKEN:
        lines.append(f"  and {len(untaken) - _MOST_UNTAKEN} more; --format json lists all")
    return lines
