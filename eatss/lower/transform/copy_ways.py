"""The ways of a copy into shared memory, of which a loop that copies ahead takes one.

Tiles at the edge of an array are copied as whole ones are, each element or vector with a test.

    if (tile is whole) …copy…
    else if (its steps are) { for (e < 4) copy row e where that row is there }
    else { copy element by element, each where it is there }

The second way needs no more than a test that no step of a loop changes, such as ``i < N``. Where a
loop over steps of products has one text for whole tiles, it takes all that the first does, and
blocks at an edge are as fast as others; elsewhere that test only costs registers. So loops that
load operands a step ahead take the second and third way, and all others the first and third.

Transposed tiles are filled through registers, where there are products to do meanwhile.

A tile whose rows lie along another dimension than those of its array can be copied in two ways:

    if (wide_A && …) {
        float A_line[2][4];
        for (e < 2) { load A_line[e] from four neighbours of a row of A }
        for (e < 2) for (q < 4) sh.A[4 * (thread % 2) + q][thread / 2] = A_line[e][q];
    } else { copy A element by element, without registers }

The first takes a quarter of the loads and fewer turns of the ways into shared memory, but a thread
would wait for what it loads. So it stays only where :mod:`eatss.lower.transform.pipeline` can part
it: loads stand in front of a turn's products, stores behind them. And all tiles of the turn have to
come so: beside copies that are waited for, it took as long or longer when it was measured.
Elsewhere the second stays.

Halves that are copied one by one come through registers, while there are products to do.

    if (tile is whole) { for (e < 8) sh.A[…] = A[…]; } else { for (e < 8) sh.A[…] = … ? A[…] : 0; }

becomes what fills registers and what fills the tile from them:

    half A_line[8];
    if (tile is whole) { for (e < 8) A_line[e] = A[…]; } else { for (e < 8) A_line[e] = … }
    …
    for (e < 8) sh.A[…] = A_line[e];

No card copies two bytes to shared memory without registers. A row of halves that is of odd length
begins anywhere, so vectors of it cannot be loaded. :mod:`eatss.lower.transform.pipeline` puts the
loads in front of a turn's products and the stores behind them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from eatss.analysis.structure import WORD_BYTES
from eatss.base.free_names import free_name
from eatss.base.frozen import frozen
from eatss.lower.kernel.nodes import (
    Buffer,
    Copy,
    Element,
    Extents,
    For,
    If,
    Node,
    Nodes,
    Staging,
    Steps,
    Way,
)
from eatss.lower.kernel.uses import every_of, mapped, trips_from_zero
from eatss.program import Apply, Constant, IntExpr, Name, Operator


@frozen
class Copying:
    """How stages are carried out: which way whole ``steps`` take, and whether ``lines`` are used.

    Lines are registers that vectors of transposed tiles pass.
    """

    steps: bool = False
    lines: bool = False

    def ways(self, stage: Staging) -> tuple[Way, ...]:
        """Return the ways of a stage, each taken where those before it are not."""
        ways = [way for way in stage.ways if isinstance(way, Way)]
        known = any(way.steps for way in ways) and self.steps
        *first, edge = ways
        found = (*(way for way in first if way.steps == known), edge)
        always = next((at for at, way in enumerate(found) if not way.conditions), len(found))
        return found[: always + 1]

    def nodes(self, nodes: Sequence[Node]) -> Nodes:
        """Return nodes whose stages and steps are carried out."""

        def changed(node: Node) -> Nodes:
            if isinstance(node, Steps):
                return node.between(0, node.count, (*node.loads, *node.products))
            return self._copied(self.ways(node)) if isinstance(node, Staging) else (node,)

        return mapped(nodes, changed)

    def _copied(self, ways: Sequence[Way]) -> Nodes:
        first, *others = ways
        nodes = first.elements
        if self._vectors(first):
            nodes = (If(conditions=first.wide, body=first.vectors, orelse=nodes),)
        if not first.conditions:
            return nodes
        return (If(conditions=first.conditions, body=nodes, orelse=self._copied(others)),)

    def _vectors(self, way: Way) -> bool:
        return bool(way.vectors) and (self.lines or way.line is None)

    def plain(self, stages: Sequence[Staging]) -> tuple[tuple[IntExpr, ...], Nodes]:
        """Return when the first way of all stages is taken, in vectors, and what it does."""
        ways = [self.ways(stage)[0] for stage in stages]
        tests = [
            test
            for way in ways
            for test in (*way.conditions, *(way.wide if self._vectors(way) else ()))
        ]
        nodes = (way.vectors if self._vectors(way) else way.elements for way in ways)
        return tuple(tests), tuple(node for own in nodes for node in own)


def all_of(conditions: Sequence[IntExpr]) -> tuple[IntExpr, ...]:
    """Return the conditions that have to hold for all of these to hold, each once."""
    found: dict[IntExpr, None] = {}
    for one in conditions:
        several = isinstance(one, Apply) and one.operator is Operator.AND
        found |= dict.fromkeys(
            all_of(one.operands) if isinstance(one, Apply) and several else (one,)
        )
    return tuple(found)


def is_line_store(node: Node) -> bool:
    """Tell whether a node fills tiles from registers."""
    return any(one.source.buffer.space == "register" for one in every_of((node,), Copy))


@frozen
class NarrowLines:
    """Copies in two parts: ``loads`` fill registers, or tiles without them; ``stores`` tiles."""

    declared: tuple[Buffer, ...]
    loads: Nodes
    stores: Nodes

    @property
    def words(self) -> int:
        """Registers for what is on its way: each half has one."""
        return sum(one.layout.elements or 0 for one in self.declared)

    @classmethod
    def of(cls, stages: Sequence[Staging], taken: set[str]) -> NarrowLines | None:
        """Return stages in two parts, ``None`` where no tile is filled by narrow copies alone.

        Args:
            stages: what fills tiles, one after the other.
            taken: names that are not free.
        """
        declared, loads, stores = list[Buffer](), list[Node](), list[Node]()
        free = set(taken)
        for stage in stages:
            walk = _walk(stage)
            if walk is None:
                loads.append(stage)
                continue
            copy = next(every_of((walk,), Copy))
            line = Buffer(
                name=free_name(f"{copy.target.buffer.name}_line", free),
                space="register",
                element_type=copy.target.buffer.element_type,
                layout=Extents((Constant(trips_from_zero(walk) or 0),)),
            )
            element = Element(buffer=line, subscripts=(Name(walk.counter),))
            declared.append(line)
            loads += _into(stage, element)
            stores.append(replace(walk, body=(Copy(target=copy.target, source=element),)))
        if not declared:
            return None
        return cls(declared=tuple(declared), loads=tuple(loads), stores=tuple(stores))


def is_narrow(stage: Staging) -> bool:
    """Tell whether single halves or bytes are copied, which pass through registers."""
    ways = [way for way in stage.ways if isinstance(way, Way)]
    copies = every_of((node for way in ways for node in way.elements), Copy)
    bytes_ = {copy.target.buffer.element_type.size_bytes for copy in copies}
    vectors = any(way.vectors and way.line is None for way in ways)
    return max(bytes_) < WORD_BYTES and not vectors


def _walk(stage: Staging) -> For | None:
    """Return the unrolled loop over what a thread copies of a narrow stage."""
    (walk,) = (way.elements[0] for way in stage.ways[-1:] if isinstance(way, Way))
    unrolled = isinstance(walk, For) and walk.unroll == "whole"
    return walk if isinstance(walk, For) and unrolled and is_narrow(stage) else None


def _into(stage: Staging, line: Element) -> Nodes:
    """Return a stage whose elements go to registers, which are cleared where none is read."""

    def changed(one: Node) -> Nodes:
        if isinstance(one, Copy):
            return (replace(one, target=line, clears=one.condition is not None),)
        return (one,)

    return mapped((stage,), changed)
