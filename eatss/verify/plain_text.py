"""Sizes from text, and a verification as plain text."""

from __future__ import annotations

from collections.abc import Sequence

from eatss.base.diagnostics import input_error
from eatss.verify.result import OF_THE_WHOLE, Coverage, SizeResult, Verification

_MOST_UNTAKEN = 12


def parse_sizes(texts: Sequence[str]) -> tuple[dict[str, int], ...] | None:
    """Turn ``N=37,M=5`` strings into one mapping each; ``None`` if there are none.

    Raises:
        InputError: a text is no list of names with integers.
    """
    found: list[dict[str, int]] = []
    for text in texts:
        sizes: dict[str, int] = {}
        for part in filter(None, text.split(",")):
            name, _, value = part.partition("=")
            try:
                sizes[name.strip()] = int(value)
            except ValueError:
                raise input_error(
                    "EATSS-V008",
                    f"'{text}' gives no sizes",
                    hint="write names and integers, like --size N=37,M=5",
                ) from None
        found.append(sizes)
    return tuple(found) or None


def size_text(result: SizeResult) -> str:
    """Return the sizes of a run, ``N=37 M=5``, and what is special of its data."""
    sizes = " ".join(f"{name}={value}" for name, value in result.sizes) or "fixed"
    return ", ".join(filter(None, (sizes, result.data)))


def verdict(result: SizeResult) -> str:
    """Return the status of a run in words."""
    return "refused, as it has to be" if result.refused else result.status


def error_text(result: SizeResult) -> str:
    """Return the largest error and what is allowed."""
    if result.compared == 0 or result.worst_error == 0.0:
        return "0" if result.compared else "-"
    return f"{result.worst_error:.2g} of {result.bound:.2g}"


def remarks(result: SizeResult) -> str:
    """Return what a reader should know of a run besides its verdict."""
    found = [result.message] if result.message else []
    if result.not_finite:
        found.append(f"{result.not_finite:,} of {result.compared:,} elements are not finite")
    if result.loose:
        found.append(
            f"{result.loose:,} of {result.compared:,} elements within a bound above their size"
        )
    return "; ".join(found)


def _counted(number: int, one: str, more: str) -> str:
    return f"{number:,} {one if number == 1 else more}"


def coverage_text(coverage: Coverage, results: Sequence[SizeResult]) -> list[str]:
    """Return lines that say what was covered, by runs that ``results`` lists and others."""
    unlisted = coverage.runs - sum(result.compared > 0 for result in results)
    lines = [
        f"compared: {_counted(coverage.elements, 'element', 'elements')} in "
        f"{_counted(coverage.runs, 'run', 'runs')}"
        + (f" ({unlisted:,} of them not listed)" if unlisted else "")
        + f", {coverage.changed:,} of them changed by the original; "
        f"{_counted(coverage.refusals, 'refusal', 'refusals')}, "
        f"{_counted(coverage.accepted, 'empty size', 'empty sizes')} accepted"
    ]
    if coverage.kernels is None:
        return [*lines, "tiles and branches: not counted"]
    for kernel in coverage.kernels:
        tiles = f"{kernel.full_tiles:,} full, {kernel.partial_tiles:,} partial"
        lines.append(f"tiles of {kernel.kernel}: {'never ran' if kernel.idle else tiles}")
    untaken = coverage.untaken
    lines.append(
        f"branches: {coverage.branches}, of which {len(untaken) or 'none'} "
        f"{'is' if len(untaken) == 1 else 'are'} one-sided or never reached"
    )
    lines += [
        f"  line {each.line} of {each.function}: ({each.condition}) was never {each.never}"
        for each in untaken[:_MOST_UNTAKEN]
    ]
    if len(untaken) > _MOST_UNTAKEN:
        lines.append(f"  and {len(untaken) - _MOST_UNTAKEN} more; --format json lists all")
    return lines


def verification_text(verification: Verification) -> str:
    """Return a verification as a plain text table."""
    head = f"{verification.program} on {verification.device}: {verification.status}"
    if verification.status in OF_THE_WHOLE:
        head += f": {verification.message}"
    if verification.status == "refused":
        return f"{head}\n"
    rows = [("entry", "sizes", "status", "error", "elements", "")]
    rows += [_row(result) for result in verification.results]
    widths = [max(len(row[k]) for row in rows) for k in range(5)]
    lines = ["  ".join((*map(str.ljust, row[:5], widths), row[5])).rstrip() for row in rows]
    time = (
        f"{verification.compile_time_s:.2f} s compiling, {verification.run_time_s:.2f} s running; "
        + ("every bit has to be equal" if verification.bit_equal else "rounding is bounded")
    )
    if verification.coverage is not None:
        lines += coverage_text(verification.coverage, verification.results)
    return "\n".join((head, *(f"  {line}" for line in lines), f"  {time}")) + "\n"


def _row(result: SizeResult) -> tuple[str, str, str, str, str, str]:
    return (
        result.launcher,
        size_text(result),
        verdict(result),
        error_text(result),
        f"{result.compared:,}" if result.compared else "-",
        remarks(result),
    )
