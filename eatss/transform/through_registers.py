"""Turned boxes are filled through registers, where there are products to do meanwhile.

A box whose rows lie along another dimension than those of its array can be copied in two ways:

    if (wide_A && …) {
        float A_line[2][4];
        for (e < 2) { load A_line[e] from four neighbours of a row of A }
        for (e < 2) for (q < 4) sh.A[4 * (thread % 2) + q][thread / 2] = A_line[e][q];
    } else { copy A element by element, without registers }

The first takes a quarter of the loads and fewer turns of the ways into shared memory, but a thread
would wait for what it loads. So it stays only where :mod:`eatss.transform.pipeline` can part it:
loads stand in front of a turn's products, stores behind them. And all boxes of the turn have to
come so: beside copies that are waited for, it took as long or longer when it was measured.
Elsewhere the second stays.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from eatss.analysis.structure import WORD_BYTES
from eatss.kernel.nodes import Buffer, Copy, Declare, If, Node
from eatss.kernel.uses import every_of, mapped


def without_lines(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """Return nodes in which turned boxes are copied element by element."""

    def changed(node: Node) -> tuple[Node, ...]:
        return node.orelse if isinstance(node, If) and _has_lines(node) else (node,)

    return mapped(nodes, changed)


def all_in_lines(nodes: Sequence[Node], boxes: Collection[Buffer]) -> bool:
    """Tell whether all boxes that nodes fill come through registers, where rows allow it."""
    stores = [node for node in every_of(nodes, Copy) if _stores(node)]
    return {one.target.buffer for one in stores} == set(boxes)


def line_words(nodes: Sequence[Node]) -> int:
    """Return the registers for what is on its way through them."""
    declared = (one.buffer for one in every_of(nodes, Declare))
    return sum(one.size_bytes for one in declared) // WORD_BYTES


def lines_parted(nodes: Sequence[Node]) -> tuple[tuple[Node, ...], tuple[Node, ...]]:
    """Return what fills registers, or boxes without them, and what fills boxes from registers."""
    stores = tuple(one for one in nodes if _stores(one))
    return tuple(one for one in nodes if one not in stores), stores


def _has_lines(node: If) -> bool:
    return bool(node.body) and isinstance(node.body[0], Declare) and _stores(node.body[-1])


def _stores(node: Node) -> bool:
    copies = list(every_of((node,), Copy))
    return bool(copies) and all(
        one.source.buffer.space == "register" and one.target.buffer.space == "shared"
        for one in copies
    )
