"""Halves that are copied one by one come through registers, while there are products to do.

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

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from eatss.free_names import free_name
from eatss.kernel.nodes import Buffer, Copy, Declare, Element, For, If, Layout, Let, Node
from eatss.kernel.uses import every, every_of, mapped, trips_from_zero
from eatss.program import Constant, Name, names_in


@dataclass(frozen=True, slots=True, kw_only=True)
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
