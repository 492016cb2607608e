"""Registers that a tile sets only where it has points begin as zero where all of them compute.

    float C_r[8][16];
    for (ri…) if (i < NI) for (rj…) if (j < NJ) C_r[ri][rj] = beta * C[i][j];
    for (k…) for (ri…) for (rj…) C_r[ri][rj] += A[i][k] * B[k][j];

Nothing stores what is computed of registers without a value, but compilers follow them to all that
is made of them: NVRTC 13.0 took 320 bytes of stack for symm in floats and 3000 for a gemm of
doubles with four boxes, and none with ``for (…) C_r[ri][rj] = 0;`` first. With 3664 for a trmm of
2550 doubles results on a card were wrong besides. Kernels in which such registers are few stay as
they are: products of 32 x 32 floats, which have 16 sums a thread, took longer with it. Registers
between memory and tiles are filled in any case, and declared so.

What a thread loads for all rows of its points it loads before it tests which rows there are.

    for (ri…) if (i < k) for (rj…) C_r[ri][rj] += sh.A[k][i] * sh.B[k][j];

becomes

    float B_k[16]; for (rj…) B_k[rj] = sh.B[k][j];
    for (ri…) if (i < k) for (rj…) C_r[ri][rj] += sh.A[k][i] * B_k[rj];

A compiler cannot know that all of a row of shared memory may be loaded, so it loads it anew behind
each test.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from eatss.analysis.variant import WORD_BYTES
from eatss.base.frozen import their_names
from eatss.base.trees import free_name
from eatss.lower.kernel.nodes import (
    Buffer,
    Compute,
    Copy,
    Declare,
    Element,
    For,
    If,
    Kernel,
    Let,
    Node,
    Nodes,
    Source,
    filled,
)
from eatss.lower.kernel.uses import (
    accesses,
    buffers_of,
    depends_on,
    every_of,
    inside,
    loads_along,
    mapped,
    mapped_of,
    trips_from_zero,
    with_homes,
)
from eatss.program import IntExpr, Name, names_in

_LEAST_BYTES = 48 * WORD_BYTES
"""Registers with gaps, all together, from which on a kernel is changed."""

_Guards = frozenset[IntExpr | frozenset[IntExpr]]
"""Conditions that hold, and such that do not all hold."""


def with_registers_defined(kernel: Kernel, taken: set[str]) -> Kernel:
    """Return a kernel whose registers have values wherever something is computed of them.

    Args:
        kernel: before barriers are put.
        taken: names that counters must not have; those that come to be are added.
    """
    having = frozenset(_with_gaps(kernel.body))
    if sum(one.size_bytes for one in having) < _LEAST_BYTES:
        return kernel

    def changed(node: Declare) -> Node | Nodes:
        return (node, _emptied(node.buffer, taken)) if node.buffer in having else node

    return replace(kernel, body=mapped_of(kernel.body, Declare, changed))


def _with_gaps(nodes: Sequence[Node]) -> Iterator[Buffer]:
    """Yield the registers that are read where they may have no value."""
    for at, node in enumerate(nodes):
        for body in inside(node):
            yield from _with_gaps(body)
        if (
            isinstance(node, Declare)
            and not node.filled
            and _has_gaps(nodes[at + 1 :], node.buffer)
        ):
            yield node.buffer


def _has_gaps(nodes: Sequence[Node], buffer: Buffer) -> bool:
    """Tell whether registers are read where they may have no value."""
    users = [node for node in nodes if buffer in buffers_of((node,))]
    if not users or buffer.layout.elements is None:
        return False
    written = [guards for guards, writes in _uses(users[:1], buffer, frozenset()) if writes]
    needed = _Guards() if _is_whole(written) else _Guards().union(*written)
    read = (guards for guards, writes in _uses(users, buffer, frozenset()) if not writes)
    return bool(needed) and any(not needed <= guards for guards in read)


def _is_whole(written: Sequence[_Guards]) -> bool:
    """Tell whether something is written in any case: without a test, or with it and else."""
    both = (
        _Guards({one}) in written and one in written
        for own in written
        for one in own
        if isinstance(one, frozenset)
    )
    return not all(written) or any(both)


def _uses(nodes: Sequence[Node], buffer: Buffer, around: _Guards) -> Iterator[tuple[_Guards, bool]]:
    """Yield what guards each access of a buffer, and whether it is a write."""
    for node in nodes:
        if isinstance(node, If):
            yield from _uses(node.body, buffer, around | set(node.conditions))
            yield from _uses(node.orelse, buffer, around | {frozenset(node.conditions)})
            continue
        for body in inside(node):
            yield from _uses(body, buffer, around)
        for writes, own in zip((True, False), accesses(node), strict=True):
            yield from ((around, writes) for one in own if one.buffer == buffer)


def _emptied(buffer: Buffer, taken: set[str]) -> Node:
    counters = tuple(free_name("s", taken) for _ in buffer.layout.extents)
    return filled(buffer, counters, 0)


def with_loads_before_tests(kernel: Kernel, taken: set[str]) -> Kernel:
    """Return a kernel whose threads load before tests what does not depend on what these ask.

    Only tiles are loaded from that are filled as a whole. Names that are ``taken`` stay what they
    are.
    """
    partly = {
        node.target.buffer
        for node in every_of(kernel.body, Copy)
        if node.condition is not None and not node.clears
    }
    whole = frozenset(kernel.shared) - partly

    return replace(kernel, body=mapped(kernel.body, lambda node: _loaded(node, whole, taken)))


def _loaded(rows: Node, whole: frozenset[Buffer], taken: set[str]) -> Nodes:
    """Return a loop over rows, a test in it and a loop over points, with loads in front of all."""
    match rows:
        case For(
            unroll="whole",
            body=(*lets, If(orelse=(), body=(For(unroll="whole") as points,)) as test),
        ):
            count = trips_from_zero(points)
        case _:
            return (rows,)
    plain = all(isinstance(one, Let | Source | Compute) for one in points.body)
    if count is None or not plain or not all(isinstance(one, Let) for one in lets):
        return (rows,)
    values = {one.name: (one.value,) for one in every_of(points.body, Let)}
    of_rows = {rows.counter, *their_names(every_of(lets, Let))}
    homes: dict[Element, Element] = {}
    for element in (one for node in every_of(points.body, Compute) for one in node.reads[1:]):
        names = depends_on(names_in(*element.subscripts), values)
        moves = points.counter in names and not names & of_rows  # along points, not from row to row
        if moves and element.buffer in whole and element not in homes:
            own = element.buffer
            row = own.registers(free_name(f"{own.name}_row", taken), count)
            homes[element] = row.at(Name(points.counter))
    if not homes:
        return (rows,)
    test = replace(test, body=with_homes(test.body, homes))
    return (
        *(Declare(buffer=one.buffer) for one in homes.values()),
        *loads_along((points,), (Name(points.counter),), homes, values),
        replace(rows, body=(*lets, test)),
    )
