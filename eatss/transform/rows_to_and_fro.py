"""Rows of a thread's points are taken to and fro.

    for (ri < 8) for (rj < 16) sum[ri][rj] += A_k[ri] * B_k[rj];

becomes

    for (ri_pair < 4) {
        { ri = 2 * ri_pair;     for (rj < 16) sum[ri][rj] += A_k[ri] * B_k[rj]; }
        { ri = 2 * ri_pair + 1; for (rj_back < 16) { rj = 15 - rj_back; sum[ri][rj] += …; } }
    }

So an operand serves two products that follow each other, where a row ends, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from eatss.free_names import free_name
from eatss.kernel.nodes import Compute, For, Let, Node, Scope
from eatss.kernel.uses import every, every_of, trips_from_zero, with_bodies
from eatss.program import Constant, Name


def with_rows_to_and_fro(nodes: Sequence[Node], taken: set[str]) -> tuple[Node, ...]:
    """Return loops over rows of points as loops over two rows each, the second backwards.

    Those stay as they are where a point meets what is written at another. Names are added to those
    that are ``taken``.
    """
    found: list[Node] = []
    for node in nodes:
        row = _row(node)
        if row is not None:
            found.append(_two_rows(*row, taken))
        else:
            found.append(with_bodies(node, partial(with_rows_to_and_fro, taken=taken)))
    return tuple(found)


def _row(node: Node) -> tuple[For, tuple[Let, ...], For] | None:
    """Return a loop over rows, what each begins with, and the loop over its points."""
    if not isinstance(node, For) or not node.body or (trips_from_zero(node) or 1) % 2:
        return None
    *lets, row = node.body
    values = tuple(one for one in lets if isinstance(one, Let))
    if len(values) < len(lets) or not isinstance(row, For):
        return None
    nested = any(isinstance(one, For) for one in every(row.body))
    places = {Name(node.counter), Name(row.counter)}
    return None if nested or not _are_apart(row.body, places) else (node, values, row)


def _are_apart(nodes: Sequence[Node], places: set[Name]) -> bool:
    """Tell whether no point meets what is written at another, so that their order does not matter.

    Places are those of a point.
    """
    computed = list(every_of(nodes, Compute))
    written = {one.target.buffer for one in computed}
    return all(
        places <= set(one.subscripts)
        for node in computed
        for one in (node.target, *node.reads)
        if one.buffer in written
    )


def _two_rows(rows: For, values: Sequence[Let], row: For, taken: set[str]) -> For:
    count, points = trips_from_zero(rows) or 0, trips_from_zero(row) or 0
    pair, back = free_name(f"{rows.counter}_pair", taken), free_name(f"{row.counter}_back", taken)
    last = Constant(points - 1)
    backwards = Let(name=row.counter, value=last - Name(back), narrow=row.narrow)
    there_and_back = (row, _counting(row, back, points, (backwards, *row.body)))
    scopes = tuple(
        Scope(
            body=(
                Let(
                    name=rows.counter,
                    value=2 * Name(pair) + second,
                    narrow=rows.narrow,
                ),
                *values,
                one,
            )
        )
        for second, one in enumerate(there_and_back)
    )
    return _counting(rows, pair, count // 2, scopes)


def _counting(loop: For, counter: str, count: int, body: tuple[Node, ...]) -> For:
    """Return a loop as one by another counter, from zero."""
    condition = Name(counter) < count
    return replace(loop, counter=counter, condition=condition, body=body)
