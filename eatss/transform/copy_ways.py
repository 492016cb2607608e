"""The ways of a copy into shared memory, of which a loop that copies ahead takes one.

Boxes at the edge of an array are copied as whole ones are, each element or vector with a test.

    if (box is whole) …copy…
    else if (its steps are) { for (e < 4) copy row e where that row is there }
    else { copy element by element, each where it is there }

The second way needs no more than a test that no step of a loop changes, such as ``i < N``. Where a
loop over steps of products has one text for whole tiles, it takes all that the first does, and
blocks at an edge are as fast as others; elsewhere that test only costs registers. So loops that
load operands a step ahead take the second and third way, and all others the first and third.

Turned boxes are filled through registers, where there are products to do meanwhile.

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

Halves that are copied one by one come through registers, while there are products to do.

    if (box is whole) { for (e < 8) sh.A[…] = A[…]; } else { for (e < 8) sh.A[…] = … ? A[…] : 0; }

becomes what fills registers and what fills the box from them:

    half A_line[8];
    if (box is whole) { for (e < 8) A_line[e] = A[…]; } else { for (e < 8) A_line[e] = … }
    …
    for (e < 8) sh.A[…] = A_line[e];

No card copies two bytes to shared memory without registers. A row of halves that is of odd length
begins anywhere, so vectors of it cannot be loaded. :mod:`eatss.transform.pipeline` puts the loads
in front of a turn's products and the stores behind them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from eatss.analysis.structure import WORD_BYTES
from eatss.free_names import free_name
from eatss.frozen import frozen
from eatss.kernel.nodes import Buffer, Copy, Declare, Element, For, If, Layout, Let, Node
from eatss.kernel.uses import every, every_of, mapped, trips_from_zero
from eatss.program import Constant, Name, names_in

_ALWAYS = Constant(1)


def without_tests(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """Return nodes with the first and the third way."""

    def changed(node: Node) -> tuple[Node, ...]:
        steps = _steps(node)
        if steps is None or not isinstance(node, If):
            return (node,)
        return (If(conditions=node.conditions, body=node.body, orelse=steps.orelse),)

    return mapped(nodes, changed)


def with_tests(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """Return nodes with the second and the third way."""

    def changed(node: Node) -> tuple[Node, ...]:
        steps = _steps(node)
        if steps is None:
            return (node,)
        return steps.body if steps.conditions == (_ALWAYS,) else (steps,)

    return mapped(nodes, changed)


def _steps(node: Node) -> If | None:
    """Return the second and the third way of copies, ``None`` where there are not three."""
    if not isinstance(node, If) or not node.tested:
        return None
    (steps,) = node.orelse
    assert isinstance(steps, If)
    return steps


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


@frozen
class NarrowLines:
    """Copies in two parts: ``loads`` fill registers, or boxes without them; ``stores`` boxes."""

    declared: tuple[Buffer, ...]
    loads: tuple[Node, ...]
    stores: tuple[Node, ...]

    @property
    def words(self) -> int:
        """Registers for what is on its way: each half has one."""
        return sum(one.layout.elements or 0 for one in self.declared)

    def declarations(self) -> tuple[Node, ...]:
        """Return the declarations of the registers."""
        return tuple(Declare(buffer=one) for one in self.declared)

    @classmethod
    def of(
        cls, copies: Sequence[Node], is_narrow: Callable[[Copy], bool], taken: set[str]
    ) -> NarrowLines | None:
        """Return copies in two parts, ``None`` where no box is filled by narrow copies alone.

        Args:
            copies: what fills boxes, one after the other.
            is_narrow: whether a copy has to come through registers.
            taken: names that are not free.
        """
        declared, loads, stores = list[Buffer](), list[Node](), list[Node]()
        free = set(taken)
        for node in copies:
            own = list(every_of((node,), Copy))
            walk = _walk(node, own) if own and all(map(is_narrow, own)) else None
            if walk is None:
                loads.append(node)
                continue
            line = Buffer(
                name=free_name(f"{own[0].target.buffer.name}_line", free),
                space="register",
                element_type=own[0].target.buffer.element_type,
                layout=Layout((Constant(trips_from_zero(walk) or 0),)),
            )
            element = Element(buffer=line, subscripts=(Name(walk.counter),))
            declared.append(line)
            loads += _into(node, element)
            stores.append(replace(walk, body=(Copy(target=own[0].target, source=element),)))
        if not declared:
            return None
        return cls(declared=tuple(declared), loads=tuple(loads), stores=tuple(stores))


def _into(node: Node, line: Element) -> tuple[Node, ...]:
    """Return copies whose elements go to registers, which are cleared where none is read."""

    def changed(one: Node) -> tuple[Node, ...]:
        if isinstance(one, Copy):
            return (replace(one, target=line, clears=one.condition is not None),)
        return (one,)

    return mapped((node,), changed)


def _walk(node: Node, copies: Sequence[Copy]) -> For | None:
    """Return the loop over what a thread copies, if it is the same in all branches of a node."""
    inside = list(every((node,)))
    loops = [one for one in inside if isinstance(one, For)]
    if not loops or not all(isinstance(one, Copy | For | If | Let) for one in inside):
        return None
    same = all(
        replace(one, body=()) == replace(loops[0], body=())
        and sum(isinstance(each, Copy) for each in one.body) == 1
        and all(isinstance(each, Copy | Let) for each in one.body)
        for one in loops
    )
    lets = {one.name for one in inside if isinstance(one, Let)}
    places = {one.target for one in copies}
    named = {name for one in places for name in names_in(*one.subscripts)}
    unrolled = loops[0].unroll == "whole" and trips_from_zero(loops[0])
    whole = same and len(loops) == len(copies) and len(places) == 1 and not named & lets
    return loops[0] if whole and unrolled else None
