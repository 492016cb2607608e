"""What a thread does to all rows of its points, one thing after the other, it does row by row.

    for (ri…) for (rj…) C_r[ri][rj] = C[i][j];
    for (ri…) for (rj…) C_r[ri][rj] *= beta;
    for (ri…) for (rj…) C[i][j] = C_r[ri][rj];

becomes

    for (ri…) {
        for (rj…) C_r[ri][rj] = C[i][j];
        for (rj…) C_r[ri][rj] *= beta;
        for (rj…) C[i][j] = C_r[ri][rj];
    }

So a row is in registers at a time, beside the sums that are there already.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from eatss.lower.kernel.nodes import (
    Compute,
    Copy,
    Element,
    For,
    If,
    Init,
    Kernel,
    Let,
    Node,
    Nodes,
    Source,
)
from eatss.lower.kernel.uses import (
    buffers_of,
    elements,
    every,
    every_of,
    names_of,
    substituted,
    with_bodies,
    written,
)
from eatss.program import IntExpr, Name, names_in, substitute
from eatss.program.expression import Environment
from eatss.program.linear import linear

_PLAIN = (Compute, Copy, Init, For, If, Let, Source)
"""What may stand in loops that become one."""


def with_rows_one_by_one(kernel: Kernel) -> Kernel:
    """Return a kernel in which loops over a thread's rows that follow each other are one.

    They go over the same rows, are unrolled, use no shared memory, and what one of them writes the
    others use in the same row only.
    """
    return replace(kernel, body=_joined(kernel.body))


def _joined(nodes: Sequence[Node]) -> Nodes:
    found: list[Node] = []
    for node in nodes:
        own = with_bodies(node, _joined)
        before = _over_rows(found[-1]) if found else None
        after = _over_rows(own)
        one = None if before is None or after is None else _one(before, after)
        if one is None:
            found.append(own)
        else:
            found[-1] = one
    return tuple(found)


def _over_rows(node: Node) -> For | None:
    """Return a node as a loop over rows; a test around a loop that it does not change goes in."""
    match node:
        case If(orelse=(), body=(For() as loop,)):
            if loop.counter in names_of((replace(node, body=()),)):
                return None
            node = replace(loop, body=(replace(node, body=loop.body),))
    if not isinstance(node, For) or node.unroll != "whole":
        return None
    plain = all(isinstance(one, _PLAIN) for one in every(node.body))
    shared = any(one.space == "shared" for one in buffers_of(node.body))
    return node if plain and not shared else None


def _one(first: For, second: For) -> For | None:
    """Return two loops as one, ``None`` where that would change what they do."""
    taken = {one.name for one in every_of(first.body, Let)}
    if first.counter in names_of(second.body) - {second.counter} or second.counter in taken:
        return None
    change: Environment = {second.counter: Name(first.counter)}
    other = replace(
        second,
        counter=first.counter,
        condition=substitute(second.condition, change),
        body=substituted(second.body, change),
    )
    if replace(first, body=()) != replace(other, body=()):
        return None
    if not _own_rows(first, other):
        return None
    body = _together(first.body, other.body)
    return None if body is None else replace(first, body=body)


def _own_rows(first: For, second: For) -> bool:
    """Tell whether what one loop writes the other uses in the same iteration only."""
    for buffer in written(first.body) | written(second.body):
        places = [
            _rows(one, loop)
            for loop in (first, second)
            for node in every(loop.body)
            for one in elements(node)
            if one.buffer == buffer
        ]
        if not set.intersection(*places):
            return False
    return True


def _rows(element: Element, loop: For) -> set[tuple[int, IntExpr]]:
    """Return the subscripts, by number, that differ from iteration to iteration, not within one."""
    lets = {one.name: one.value for one in every_of(loop.body, Let)}
    counters = {one.counter for one in every_of(loop.body, For)}
    found = set()
    for number, subscript in enumerate(element.subscripts):
        value = subscript
        while used := set(names_in(value)) & set(lets):
            value = substitute(value, {name: lets[name] for name in used})
        form = linear(value)
        if form is not None and loop.counter in form.terms and not counters & set(form.terms):
            found.add((number, form.expression()))
    return found


def _together(first: Sequence[Node], second: Sequence[Node]) -> Nodes | None:
    """Return two bodies in one; what both define is defined once, equal tests are one."""
    defined = {one.name: one for one in first if isinstance(one, Let)}
    found = list(first)
    for node in second:
        if isinstance(node, Let) and node.name in defined:
            if node != defined[node.name]:
                return None
            continue
        match found[-1:], node:
            case [If(orelse=()) as last], If(orelse=()) as own if last.conditions == own.conditions:
                inner = _together(last.body, own.body)
                if inner is not None:
                    found[-1] = replace(last, body=inner)
                    continue
        found.append(node)
    return tuple(found)
