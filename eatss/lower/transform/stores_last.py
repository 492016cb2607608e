"""Points of a thread are stored behind all of them, their quotients by literals tested at once.

    for (ri = 0; ri < 4; ++ri)
        A[(t + 1) % 2][i][j] = (A[t % 2][i - 1][j] + A[t % 2][i + 1][j]) / 3;

becomes

    double A_r[4];
    bool exact = true;
    for (ri = 0; ri < 4; ++ri)
        A_r[ri] = eatss_quotient<double>(A[t % 2][i - 1][j] + A[t % 2][i + 1][j], 3.0, exact);
    if (exact == 0)
        for (ri = 0; ri < 4; ++ri)
            A_r[ri] = eatss_quotient<double>(A[t % 2][i - 1][j] + A[t % 2][i + 1][j], 3.0);
    for (ri = 0; ri < 4; ++ri) A[(t + 1) % 2][i][j] = A_r[ri];

Compilers load what points have in common once then, and all at a time: no branch and no store
stands between loads. For all that they know, a store to the array that is read, to another plane of
it too, could change what is loaded behind it. A thread has its points of parallel loops, which
dependences have shown to be so: none of them needs what another one stores, and none stores what
another one reads.

It is done where a statement has quotients, or reads other elements of what it writes. Any other
division, and most functions, have a branch in them for numbers that are rare. What stands behind it
is not loaded before it, so a thread loads first what all of its points read, without a condition:

    for (rs = 0; rs < 4; ++rs) y[s] = (x[s] - mean[c]) / sqrtf(var[c]);

becomes

    float x_r[4];
    for (rs = 0; rs < 4; ++rs) x_r[rs] = x[s];
    float mean_r = mean[c], var_r = var[c];
    for (rs = 0; rs < 4; ++rs) y[s] = (x_r[rs] - mean_r) / sqrtf(var_r);
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from itertools import chain

from eatss.analysis.variant import WORD_BYTES
from eatss.base.trees import free_name
from eatss.lower.kernel.nodes import (
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
    Source,
)
from eatss.lower.kernel.uses import (
    depends_on,
    every,
    every_of,
    loads_along,
    mapped_of,
    outermost,
    trips_from_zero,
    with_homes,
)
from eatss.polyhedral.expression import (
    branches,
    fused_quotient,
    preorder,
    read_always,
)
from eatss.program import Name, equals, names_in

_MOST_WORDS = 32
"""Registers that what is stored together may take."""


def with_stores_last(kernel: Kernel, points: Collection[str], taken: set[str]) -> Kernel:
    """Return a kernel whose threads test quotients of all their points at once, and store then.

    Points that are guarded one by one stay as they are.

    Args:
        kernel: before barriers are put.
        points: counters of the points that a thread has of parallel loops.
        taken: names that are not free; those that come to be are added.
    """

    def changed(node: Node) -> Nodes:
        if not isinstance(node, For):
            return ()
        return _together(node, points, taken) or _loads_first(node, points, taken)

    return replace(kernel, body=outermost(kernel.body, changed))


def _together(loop: For, points: Collection[str], taken: set[str]) -> Nodes:
    """Return what a loop over points is with its stores last, nothing where it stays as it is."""
    computes = [*every_of((loop,), Compute)]
    parts = (part for one in computes for part in preorder(one.statement.value))
    has_quotients = any(map(fused_quotient, parts))
    if not (has_quotients or _reads_own(computes)) or not stores_values(loop, computes, points):
        return ()
    homes = [*homes_of((loop,), taken)]
    if sum(one.buffer.size_bytes for one in homes) > _MOST_WORDS * WORD_BYTES:
        return ()
    flag = free_name("exact", taken) if has_quotients else ""

    def with_each(change: Callable[[Compute, Element], Node], nodes: Nodes) -> Nodes:
        left = iter(homes)
        return mapped_of(nodes, Compute, lambda one: change(one, next(left)))

    def stored(one: Compute, home: Element) -> Node:
        return Copy(target=one.target, source=home)

    fast = with_each(lambda one, home: replace(one, target=home, flag=flag), (loop,))
    bare = mapped_of((loop,), Source, lambda _: ())
    again = with_each(lambda one, home: replace(one, target=home), bare)
    tested: tuple[Nodes, Nodes] = ((), ())
    if has_quotients:
        tested = (Flag(name=flag),), (If(conditions=(equals(Name(flag), 0),), body=again),)
    before, behind = tested
    declared = (Declare(buffer=one.buffer) for one in homes)
    return (*declared, *before, *fast, *behind, *with_each(stored, bare))


def _loads_first(loop: For, points: Collection[str], taken: set[str]) -> Nodes:
    """Return a loop over points behind its loads, nothing where it stays as it is."""
    computes = [*every_of((loop,), Compute)]
    values = (part for one in computes for part in preorder(one.statement.value))
    if not any(map(branches, values)) or not stores_values(loop, computes, points):
        return ()
    lets = {one.name: (one.value,) for one in every_of((loop,), Let)}
    loops = {one.counter: trips_from_zero(one) or 0 for one in every_of((loop,), For)}
    homes: dict[Element, Element] = {}
    reads = ([one.reads[k] for k in sorted(read_always(one.statement.value))] for one in computes)
    for own in chain(*reads):
        if own.buffer.space == "global" and own not in homes:
            moved = depends_on(names_in(*own.subscripts), lets)
            along = {one: trips for one, trips in loops.items() if one in moved}
            registers = own.buffer.registers(
                free_name(f"{own.buffer.name}_r", taken), *along.values()
            )
            homes[own] = registers.at(*map(Name, along))
    repeated = len(lets) < len([*every_of((loop,), Let)])
    if repeated or sum(one.buffer.size_bytes for one in homes.values()) > _MOST_WORDS * WORD_BYTES:
        return ()

    groups = dict.fromkeys(one.subscripts for one in homes.values())
    return (
        *(Declare(buffer=one.buffer) for one in homes.values()),
        *(node for along in groups for node in loads_along((loop,), along, homes, lets)),
        *with_homes((loop,), homes),
    )


def _reads_own(computes: Sequence[Compute]) -> bool:
    """Tell whether a statement reads other elements of the array that it writes."""
    return any(
        own.buffer == one.target.buffer and own != one.target
        for one in computes
        for own in one.reads[1:]
    )


def stores_values(loop: For, computes: Sequence[Compute], points: Collection[str]) -> bool:
    """Tell whether a loop does nothing but to store values at points, which no other one reads."""
    loops = [*every_of((loop,), For)]
    targets = {one.target.buffer for one in computes}
    read = {own.buffer for one in computes for own in one.reads[1:]}
    return (
        all(isinstance(one, For | Let | Source | Compute) for one in every((loop,)))
        and all(one.counter in points and trips_from_zero(one) for one in loops)
        and all(one.space == "global" and one.layout.extents for one in targets)
        and (len(computes) == 1 or not targets & read)
    )


def homes_of(nodes: Nodes, taken: set[str], around: tuple[For, ...] = ()) -> Iterator[Element]:
    """Yield the registers that each statement's values have until they are stored."""
    for node in nodes:
        if isinstance(node, Compute):
            target, extents = node.target.buffer, (trips_from_zero(one) or 0 for one in around)
            own = target.registers(free_name(f"{target.name}_r", taken), *extents)
            yield own.at(*(Name(one.counter) for one in around))
        elif isinstance(node, For):
            yield from homes_of(node.body, taken, (*around, node))
