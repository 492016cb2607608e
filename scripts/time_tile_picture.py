"""Draw the picture of the page on time tiles, ``docs/images/time-tile.svg``, from a plan.

    python scripts/time_tile_picture.py

The plan is of jacobi-2d. Lags, windows and halos are as it has them; the strip of rows and the warp
are drawn smaller than tiles are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from eatss.plan.time_tiles import TimeTilePlan, Version, time_tile_plan
from eatss.polyhedral.time_chains import time_chains
from eatss.session.session import Session

REPOSITORY = Path(__file__).resolve().parents[1]
PICTURE = REPOSITORY / "docs" / "images" / "time-tile.svg"
DEPTH = 3
STORED = 8
"""Rows and columns that a tile stores."""
NEWEST = 6
"""The row that is loaded, counted from the first one that is stored."""
CELL, STEP, LEFT, TOP, APART = 24, 52, 78, 74, 70
COLOURS = {
    "gone": "#dddddd",
    "window": "#9ecae1",
    "made": "#2166ac",
    "known": "#9ecae1",
    "stored": "#1b7837",
    "before": "#a6dba0",
    "other": "#ffffff",
}
LEGEND = (
    ("made", False, "loaded or computed now"),
    ("window", False, "in registers"),
    ("gone", False, "no longer needed"),
    ("stored", False, "stored now"),
    ("before", False, "stored before"),
    ("other", True, "halo: computed again by a neighbour"),
)
WIDTH, HEIGHT = 900, 360
DESCRIPTION = (
    "A time tile of three steps of jacobi-2d. Left, along rows: row 6 is loaded at step t, row 5 "
    "is computed at t + 1 from rows 4 to 6, row 4 at t + 2, row 3 at t + 3 and stored. The last "
    "three rows of each step are in registers. Right, across: a warp loads columns, each step "
    "knows one less on either side, and what is left in the middle is stored. The halo is shaded."
)


def steps() -> tuple[TimeTilePlan, list[Version]]:
    """Return a plan, and what the array of jacobi-2d is at first and behind each of its steps."""
    source = (REPOSITORY / "kernels" / "jacobi-2d.c").read_text(encoding="utf-8")
    (region,) = Session(source, code=True).symbolic.regions
    scheduled = region.scheduled
    (chain,) = time_chains(scheduled.scop, scheduled.dependences)
    plan = time_tile_plan(chain, DEPTH)
    (first,) = plan.loaded
    array = plan.versions[first].field
    return plan, [one for one in plan.versions if one.field == array]


def text(x: float, y: float, words: str, anchor: str = "middle", **more: str) -> str:
    """Return a line of text."""
    styles = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in more.items())
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}"{styles}>{words}</text>'


def cell(x: float, y: float, kind: str, *, halo: bool, faint: bool = False) -> Iterator[str]:
    """Yield a cell."""
    box = f'x="{x:g}" y="{y:g}" width="{CELL}" height="{CELL}"'
    line = 'stroke="#bbb" stroke-dasharray="2 2"' if faint else 'stroke="#555"'
    yield f'<rect {box} fill="{COLOURS[kind]}" {line}/>'
    if halo:
        yield f'<rect {box} fill="url(#halo)" stroke="none"/>'


def bracket(x: float, y: float, cells: int, words: str, *, above: bool) -> Iterator[str]:
    """Yield a bracket over or under so many cells, and what it says."""
    end, tip = x + cells * CELL, y + (-6 if above else 6)
    points = f"M{x + 1:g} {y:g}V{tip:g}H{end - 1:g}V{y:g}"
    yield f'<path d="{points}" fill="none" stroke="#333"/>'
    yield text((x + end) / 2, tip + (-5 if above else 14), words)


def along_rows(plan: TimeTilePlan, versions: Sequence[Version]) -> Iterator[str]:
    """Yield a tile's rows over its steps at one turn."""
    ahead = plan.ahead
    count = STORED + 2 * ahead
    for number, version in enumerate(versions):
        y = TOP + number * STEP
        assert version.halo is not None
        (front, back), _ = version.halo
        made, last = NEWEST - version.lag, version is versions[-1]
        yield text(LEFT - 12, y + 17, "t" if number == 0 else f"t + {number}", "end")
        for row in range(-ahead, STORED + ahead):
            needed = -front <= row < STORED + back
            if row == made:
                kind = "stored" if last else "made"
            elif not needed or row > made:
                kind = "other"
            else:
                gone = "before" if last else "gone"
                kind = "window" if row > made - version.slots else gone
            halo = needed and not 0 <= row < STORED
            x = LEFT + (row + ahead) * CELL
            yield from cell(x, y, kind, halo=halo, faint=not needed)
            if number == 0:
                yield text(x + CELL / 2, y - 8, str(row), fill="#555")
            if row == made and number:
                for far in (-1, 0, 1):
                    start = x + CELL / 2 + far * CELL
                    yield (
                        f'<path d="M{start:g} {y - STEP + CELL - 3}L{x + CELL / 2 + far * 4:g} '
                        f'{y - 2}" stroke="#d95f02" stroke-width="1.6" marker-end="url(#tip)"/>'
                    )
    yield text(LEFT + count * CELL / 2, 26, "along rows, one after another", font_weight="bold")
    yield text(LEFT - 12, TOP - 8, "row", "end", fill="#555")
    under = TOP + (len(versions) - 1) * STEP + CELL + 4
    yield from bracket(LEFT + ahead * CELL, under, STORED, "rows that the tile stores", above=False)


def across(plan: TimeTilePlan, versions: Sequence[Version]) -> Iterator[str]:
    """Yield a row of a warp over the steps of a tile."""
    front, back = plan.halo[-1]
    count = STORED + front + back
    left = LEFT + (STORED + 2 * plan.ahead) * CELL + APART
    for number, version in enumerate(versions):
        y = TOP + number * STEP
        assert version.halo is not None
        before, behind = version.halo[-1]
        for column in range(-front, STORED + back):
            known = -before <= column < STORED + behind
            kind = "other" if not known else "stored" if version is versions[-1] else "known"
            halo = known and not 0 <= column < STORED
            yield from cell(left + (column + front) * CELL, y, kind, halo=halo, faint=not known)
    middle = left + count * CELL / 2
    yield text(middle, 26, "across, the columns of a warp", font_weight="bold")
    yield from bracket(left, TOP - 4, count, "loaded by 32 lanes", above=True)
    under = TOP + (len(versions) - 1) * STEP + CELL + 4
    yield from bracket(left + front * CELL, under, STORED, "stored", above=False)
    yield text(left + (front + STORED) * CELL + 6, under + 20, "next warp", "start", fill="#555")
    yield text(left + front * CELL - 6, under + 20, "warp before", "end", fill="#555")


def legend() -> Iterator[str]:
    """Yield what colours mean."""
    for number, (kind, halo, words) in enumerate(LEGEND):
        x, y = LEFT + number % 3 * 250, HEIGHT - 62 + number // 3 * 32
        yield from cell(x, y, kind, halo=halo)
        yield text(x + CELL + 8, y + 17, words, "start")


def picture() -> str:
    """Return the picture."""
    plan, versions = steps()
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="13">',
        f"<title>A time tile</title><desc>{DESCRIPTION}</desc>",
        '<defs><pattern id="halo" width="6" height="6" patternUnits="userSpaceOnUse" '
        'patternTransform="rotate(45)"><path d="M0 0V6" stroke="#b2182b" stroke-width="2.4" '
        'stroke-opacity="0.75"/></pattern><marker id="tip" viewBox="0 0 6 6" refX="5" refY="3" '
        'markerWidth="5" markerHeight="5" orient="auto"><path d="M0 0L6 3L0 6z" fill="#d95f02"/>'
        "</marker></defs>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        *along_rows(plan, versions),
        *across(plan, versions),
        *legend(),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
