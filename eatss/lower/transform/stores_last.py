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

Quotients of several points by one value share its reciprocal, likewise:

    divisor = sqrtf(s / M + 1e-5f);
    inverse = eatss_reciprocal<float>(divisor, exact);
    for (rj…) Y_r[rj] = eatss_quotient<float>(X[i][j], divisor, inverse, exact) * g[j];

It is done where a statement has such quotients, or reads other elements of what it writes. Any
other division, and most functions, have a branch in them for numbers that are rare. What stands
behind it is not loaded before it, so a thread loads first what all of its points read, without a
condition:

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
from math import prod

from eatss.analysis.variant import WORD_BYTES
from eatss.base.quotients import FORMATS
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
    depends_on,
    every,
    every_of,
    integers_of,
    loads_along,
    mapped_of,
    trips_from_zero,
    with_bodies,
    with_homes,
)
from eatss.lower.transform.common_subexpressions import floating_type, with_parts_named
from eatss.polyhedral.expression import (
    Binary,
    Call,
    Expression,
    divisors_always,
    fused_quotient,
    preorder,
    read_always,
    reads_in,
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

    def changed(nodes: Nodes) -> Nodes:
        found: list[Node] = []
        for node in nodes:
            together = _together(node, points, taken) if isinstance(node, For) else ()
            if not together and isinstance(node, For):
                together = _loads_first(node, points, taken)
            found += together or (with_bodies(node, changed),)
        return tuple(found)

    return replace(kernel, body=changed(kernel.body))


def _together(loop: For, points: Collection[str], taken: set[str]) -> Nodes:
    """Return what a loop over points is with its stores last, nothing where it stays as it is."""
    computes = [*every_of((loop,), Compute)]
    if not _is_plain(loop, computes, points):
        return ()
    shared, front, inverses = _with_divisors(loop, computes, taken)
    parts = (part for one in computes for part in preorder(one.statement.value))
    has_quotients = bool(front) or any(map(fused_quotient, parts))
    if not (has_quotients or _reads_own(computes)):
        return ()
    homes = [*_homes((loop,), taken, ())]
    if sum(one.buffer.size_bytes for one in homes) > _MOST_WORDS * WORD_BYTES:
        return ()
    flag = free_name("exact", taken) if has_quotients else ""
    by_flag = (replace(one, flag=flag) if isinstance(one, Reciprocal) else one for one in front)

    def with_each(change: Callable[[Compute, Element, int], Node], nodes: Nodes) -> Nodes:
        left = enumerate(homes)

        def changed(one: Compute) -> Node:
            at, home = next(left)
            return change(one, home, at)

        return mapped_of(nodes, Compute, changed)

    def stored(one: Compute, home: Element, _: int) -> Node:
        return Copy(target=one.target, source=home)

    def divided(_: Compute, home: Element, at: int) -> Node:
        return replace(shared[at], target=home, flag=flag, reciprocals=inverses[at])

    fast = with_each(divided, (loop,))
    bare = mapped_of((loop,), Source, lambda _: ())
    again = with_each(lambda _, home, at: replace(shared[at], target=home), bare)
    tested: tuple[Nodes, Nodes] = ((), ())
    if has_quotients:
        tested = (Flag(name=flag), *by_flag), (If(conditions=(equals(Name(flag), 0),), body=again),)
    before, behind = tested
    declared = (Declare(buffer=one.buffer) for one in homes)
    return (*declared, *before, *fast, *behind, *with_each(stored, bare))


_SHARED = 4
"""Quotients by one value from which on it has a reciprocal."""


def _with_divisors(
    loop: For, computes: Sequence[Compute], taken: set[str]
) -> tuple[list[Compute], Nodes, list[tuple[tuple[int, Element], ...]]]:
    """Return statements that divide by a register what they divide by one value at all points.

    With them come what gives these registers and their reciprocals in front of the loop, and which
    of these each statement has.
    """
    loops = [*every_of((loop,), For)]
    inside = {one.counter for one in loops} | {one.name for one in every_of((loop,), Let)}
    several = prod(trips_from_zero(one) or 0 for one in loops) >= _SHARED
    changed: list[Compute] = []
    inverses: list[tuple[tuple[int, Element], ...]] = []
    front: list[Node] = []
    for one in computes:
        parts = []
        for part in divisors_always(one.statement.value) if several else ():
            kind = floating_type(part, one.types, one.statement.accesses)
            places = [place for at in reads_in(part) for place in one.reads[at].subscripts]
            moves = inside & {*names_in(*places, *integers_of(one, part))}
            if kind is not None and kind.value in FORMATS and not moves:
                name = free_name("divisor", taken)
                parts.append((Buffer.of("register", name, kind), part))
        whole, loads = with_parts_named(one, parts)
        changed.append(whole)
        own = []
        for at, load in enumerate(loads, len(one.reads)):
            kind = load.target.buffer.element_type
            inverse = Buffer.of("register", free_name("inverse", taken), kind).at()
            own.append((at, inverse))
            front += [Declare(buffer=load.target.buffer), load, Declare(buffer=inverse.buffer)]
            front.append(Reciprocal(target=inverse, source=load.target, flag=""))
        inverses.append(tuple(own))
    return changed, tuple(front), inverses


def _loads_first(loop: For, points: Collection[str], taken: set[str]) -> Nodes:
    """Return a loop over points behind its loads, nothing where it stays as it is."""
    computes = [*every_of((loop,), Compute)]
    values = (part for one in computes for part in preorder(one.statement.value))
    if not any(map(_branches, values)) or not _is_plain(loop, computes, points):
        return ()
    lets = {one.name: (one.value,) for one in every_of((loop,), Let)}
    loops = {one.counter: trips_from_zero(one) or 0 for one in every_of((loop,), For)}
    homes: dict[Element, Element] = {}
    reads = ([one.reads[k] for k in sorted(read_always(one.statement.value))] for one in computes)
    for own in chain(*reads):
        if own.buffer.space == "global" and own not in homes:
            moved = depends_on(names_in(*own.subscripts), lets)
            along = {one: trips for one, trips in loops.items() if one in moved}
            name, kind = free_name(f"{own.buffer.name}_r", taken), own.buffer.element_type
            homes[own] = Buffer.of("register", name, kind, *along.values()).at(*map(Name, along))
    repeated = len(lets) < len([*every_of((loop,), Let)])
    if repeated or sum(one.buffer.size_bytes for one in homes.values()) > _MOST_WORDS * WORD_BYTES:
        return ()

    groups = dict.fromkeys(one.subscripts for one in homes.values())
    return (
        *(Declare(buffer=one.buffer) for one in homes.values()),
        *(node for along in groups for node in loads_along((loop,), along, homes, lets)),
        *with_homes((loop,), homes),
    )


_STRAIGHT = frozenset({"fabs", "fmin", "fmax", "fma", "exp2", "floor", "ceil", "copysign"})
"""Functions without branches; so is ``expf``."""


def _branches(part: Expression) -> bool:
    """Tell whether what computes a part of a value has a branch, as far as that is known."""
    if isinstance(part, Call):
        return part.function != "expf" and part.function.removesuffix("f") not in _STRAIGHT
    is_quotient = isinstance(part, Binary) and part.operator == "/"
    return is_quotient and fused_quotient(part) is None


def _reads_own(computes: Sequence[Compute]) -> bool:
    """Tell whether a statement reads other elements of the array that it writes."""
    return any(
        own.buffer == one.target.buffer and own != one.target
        for one in computes
        for own in one.reads[1:]
    )


def _is_plain(loop: For, computes: Sequence[Compute], points: Collection[str]) -> bool:
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


def _homes(nodes: Nodes, taken: set[str], around: tuple[For, ...]) -> Iterator[Element]:
    """Yield the registers that each statement's values have until they are stored."""
    for node in nodes:
        if isinstance(node, Compute):
            target = node.target.buffer
            name, kind = free_name(f"{target.name}_r", taken), target.element_type
            extents = (trips_from_zero(one) or 0 for one in around)
            own = Buffer.of("register", name, kind, *extents)
            yield own.at(*(Name(one.counter) for one in around))
        elif isinstance(node, For):
            yield from _homes(node.body, taken, (*around, node))
