"""Division of several points by one value: multiplication with its reciprocal, one test for all.

    for (v = 0; v < 4; ++v) Y_row[v] = X_k[v] / sqrtf_once * g_row[v];

becomes

    float inverse = eatss_reciprocal<float>(sqrtf_once);
    bool exact = true;
    for (v = 0; v < 4; ++v)
        Y_row[v] = eatss_quotient<float>(X_k[v], sqrtf_once, inverse, exact) * g_row[v];
    if (exact == 0)
        for (v = 0; v < 4; ++v) Y_row[v] = X_k[v] / sqrtf_once * g_row[v];

with the bits of the divisions, see :mod:`eatss.base.quotients`. Each of those has a branch of its
own, and they come one after the other. The reciprocal stands in front of all loops that do not
change what they divide by. Values go to registers, which the test may give another one: what goes
to memory is stored behind it, if it is few.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from functools import partial
from math import prod

from eatss.analysis.variant import WORD_BYTES
from eatss.base.trees import free_name
from eatss.lower.kernel.nodes import (
    Buffer,
    Compute,
    Copy,
    Declare,
    Element,
    Flag,
    For,
    If,
    Kernel,
    Let,
    Node,
    Nodes,
    Reciprocal,
    Source,
)
from eatss.lower.kernel.uses import (
    divides_alike,
    every,
    every_of,
    mapped_of,
    rewritten,
    trips_from_zero,
    with_bodies,
)
from eatss.lower.transform.stores_last import homes_of, stores_values
from eatss.plan.phases import SEVERAL
from eatss.polyhedral.expression import divisors
from eatss.program import Name, equals

_MOST_WORDS = 8
"""Registers that what is stored together may take."""


def with_shared_reciprocals(kernel: Kernel, points: Collection[str], taken: set[str]) -> Kernel:
    """Return a kernel whose threads divide several points by one value without a branch for each.

    Args:
        kernel: before barriers are put.
        points: counters of the points that a thread has of parallel loops.
        taken: names that are not free; those that come to be are added.
    """
    return replace(kernel, body=_Quotients(points, taken).in_nodes(kernel.body))


class _Quotients:
    def __init__(self, points: Collection[str], taken: set[str]) -> None:
        self.points, self.taken = points, taken

    def in_nodes(self, nodes: Nodes, around: int = 1) -> Nodes:
        """Return nodes in which groups of points share reciprocals, ``around`` times."""
        found: list[Node] = []
        for node in nodes:
            inside, _ = _times(around, node)
            if not isinstance(node, For):
                found.append(with_bodies(node, partial(self.in_nodes, around=inside)))
                continue
            front, loop = self._with_inverses(node, around)
            groups = self._together(loop, around)
            inner = (with_bodies(loop, partial(self.in_nodes, around=inside)),)
            found += [*front, *(groups or inner)]
        return tuple(found)

    def _with_inverses(self, loop: For, around: int) -> tuple[Nodes, For]:
        """Return the reciprocals of what a loop does not change, and the loop with them."""
        is_alike, inverses = divides_alike(loop), dict[Element, Element]()

        def of(divisor: Element) -> Element | None:
            if is_alike(divisor) and divisor not in inverses:
                kind = divisor.buffer.element_type
                inverse = Buffer.of("register", free_name("inverse", self.taken), kind)
                inverses[divisor] = inverse.at()
            return inverses.get(divisor)

        def changed(one: Compute) -> Compute:
            known = dict(one.reciprocals)
            for number in divisors(one.statement.value):
                inverse = None if number in known else of(one.reads[number])
                if inverse is not None:
                    known[number] = inverse
            return replace(one, reciprocals=tuple(known.items()))

        def of_group(node: Node, times: int) -> Nodes:
            own = isinstance(node, For) and self._is_group(node, times)
            return mapped_of((node,), Compute, changed) if own else (node,)

        groups = rewritten((loop,), around, _times, of_group)
        front = (
            node
            for source, inverse in inverses.items()
            for node in (
                Declare(buffer=inverse.buffer),
                Reciprocal(target=inverse, source=source, flag=""),
            )
        )
        (found,) = groups
        return tuple(front), found if isinstance(found, For) else loop

    def _is_group(self, loop: For, around: int) -> bool:
        """Tell whether a loop has several points, and may give its values a second time."""
        loops, computes = [*every_of((loop,), For)], [*every_of((loop,), Compute)]
        return (
            any(divisors(one.statement.value) for one in computes)
            and not any(one.flag or one.inverts for one in computes)
            and all(isinstance(one, For | Let | Source | Compute) for one in every((loop,)))
            and all(one.unroll == "whole" for one in loops)
            and around * prod(trips_from_zero(one) or 0 for one in loops) >= SEVERAL
            and (_are_new(computes) or self._are_few(loop, computes))
        )

    def _are_few(self, loop: For, computes: list[Compute]) -> bool:
        """Tell whether a loop may store its values behind all of its points."""
        size_bytes = sum(one.buffer.size_bytes for one in homes_of((loop,), set(self.taken)))
        stored = _are_in_place(computes) or stores_values(loop, computes, self.points)
        return stored and size_bytes <= _MOST_WORDS * WORD_BYTES

    def _together(self, loop: For, around: int) -> Nodes:
        """Return a group of points whose quotients are tested at once, nothing if it is none."""
        own = [*every_of((loop,), Compute)]
        if not any(one.reciprocals for one in own) or not self._is_group(loop, around):
            return ()
        stored = not _are_new(own)
        homes = [*homes_of((loop,), self.taken)] if stored else [one.target for one in own]
        pairs = [*zip(own, homes, strict=True)]
        flag = free_name("exact", self.taken)
        bare = mapped_of((loop,), Source, lambda _: ())
        fast = [replace(one, target=home, flag=flag) for one, home in pairs]
        again = [replace(one, target=home, reciprocals=()) for one, home in pairs]
        stores = [Copy(target=one.target, source=home) for one, home in pairs]
        return (
            *(Declare(buffer=one.buffer) for one in homes if stored),
            Flag(name=flag),
            *_each((loop,), fast),
            If(conditions=(equals(Name(flag), 0),), body=_each(bare, again)),
            *(_each(bare, stores) if stored else ()),
        )


def _times(around: int, node: Node) -> tuple[int, int]:
    """Return how often a thread runs what is in a node as loops are unrolled, and behind it."""
    whole = isinstance(node, For) and node.unroll == "whole"
    return around * (trips_from_zero(node) or 1 if isinstance(node, For) and whole else 1), around


def _are_new(computes: list[Compute]) -> bool:
    """Tell whether values go to registers that no statement reads."""
    read = {own.buffer for one in computes for own in one.reads[1:]}
    targets = {one.target.buffer for one in computes}
    return all(one.space == "register" for one in targets) and not targets & read


def _are_in_place(computes: list[Compute]) -> bool:
    """Tell whether the value of each point takes the place of a register that it alone reads."""
    (first, *others) = computes
    own = [one for one in first.reads[1:] if one.buffer == first.target.buffer]
    return not others and first.target.buffer.space == "register" and {*own} == {first.target}


def _each(nodes: Nodes, instead: Iterable[Node]) -> Nodes:
    """Return nodes with others in the places of what is computed, in order."""
    left = iter(instead)
    return mapped_of(nodes, Compute, lambda _: next(left))
