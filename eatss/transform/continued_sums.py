"""A sum that is added to another one goes on in the registers of that one.

    for (k…) t_r += B[k][j] * A[i][k];
    sum_C_r = 0;
    for (k…) sum_C_r += A[k][i] * B[k][j];
    C_r = beta * C + alpha * t_r;
    C_r += alpha * sum_C_r;
    t = t_r;

becomes

    for (k…) t_r += B[k][j] * A[i][k];
    t = t_r;
    for (k…) t_r += A[k][i] * B[k][j];
    C_r = beta * C + alpha * t_r;

So threads have one set of sums instead of two, and twice the points. Results are rounded otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from eatss.kernel.nodes import (
    Buffer,
    Compute,
    Copy,
    Declare,
    Element,
    Fill,
    Kernel,
    Node,
    Source,
)
from eatss.kernel.uses import (
    accesses,
    buffers_of,
    every,
    every_of,
    mapped,
    with_bodies,
    with_elements,
    written,
)
from eatss.scops import Expression, Read
from eatss.scops.expression import addends, factors


def with_sums_continued(kernel: Kernel) -> Kernel:
    """Return a kernel whose sums go on in the registers of others that they are added to.

    The other sum is complete and is needed for nothing else but to be stored, and both have the
    same factors, which wait until the sums are there.
    """
    return replace(kernel, body=_changed(kernel.body))


def _changed(nodes: Sequence[Node]) -> tuple[Node, ...]:
    for node in nodes:
        if isinstance(node, Declare):
            found = _Continued.of(nodes, node.buffer)
            if found is not None:
                return _changed(found.nodes(nodes))
    return tuple(with_bodies(node, _changed) for node in nodes)


@dataclass(frozen=True, slots=True)
class _Continued:
    """A sum that may go on in the registers of ``other``: which nodes go, and which come first.

    ``gone`` are its declaration, what empties it and what adds it at the end; ``stores`` those of
    the other sum.
    """

    own: Buffer
    other: Buffer
    loop: int
    gone: frozenset[int]
    stores: tuple[int, ...]

    @classmethod
    def of(cls, nodes: Sequence[Node], own: Buffer) -> _Continued | None:
        """Return it for a buffer that is declared among nodes, if it is such a sum."""
        users = [at for at, node in enumerate(nodes) if own in _buffers((node,))]
        if len(users) != len(("declaration", "zero", "loop", "last")):
            return None
        declared, zero, loop, last = users
        added = _only_compute(nodes[last])
        if added is None or not _zeroes(nodes[zero], own) or not _adds(added, own):
            return None
        for at in range(loop + 1, last):
            finish = _only_compute(nodes[at])
            if finish is None or finish.target.buffer != added.target.buffer:
                continue
            for other in _with_factors(finish, added, own):
                stores = _stores(nodes, other, loop, at)
                if stores is not None and _stored_alike(nodes, nodes[at], finish, last):
                    gone = frozenset((declared, zero, last))
                    return cls(own, other, loop, gone, stores)
        return None

    def nodes(self, nodes: Sequence[Node]) -> tuple[Node, ...]:
        """Return nodes in which the sum goes on."""

        def element(one: Element) -> Element:
            return replace(one, buffer=self.other) if one.buffer == self.own else one

        found: list[Node] = []
        for at, node in enumerate(nodes):
            if at == self.loop:
                found += [nodes[store] for store in self.stores]
                found += with_elements((node,), element)
            elif at not in self.gone and at not in self.stores:
                found.append(node)
        return tuple(found)


def _buffers(nodes: Sequence[Node]) -> set[Buffer]:
    declared = {node.buffer for node in every_of(nodes, Declare)}
    return buffers_of(nodes) | declared


def _acts(node: Node) -> list[Node]:
    """Return what a nest of loops and tests does."""
    return [one for one in every((node,)) if any(accesses(one))]


def _only_compute(node: Node) -> Compute | None:
    """Return the one statement that a nest runs, ``None`` where it does more."""
    acts = _acts(node)
    return acts[0] if len(acts) == 1 and isinstance(acts[0], Compute) else None


def _zeroes(node: Node, own: Buffer) -> bool:
    acts = _acts(node)
    return len(acts) == 1 and isinstance(acts[0], Fill) and acts[0].target.buffer == own


def _adds(last: Compute, own: Buffer) -> bool:
    """Tell whether a statement adds factors times a sum to its target, at the same point."""
    parts = list(addends(last.statement.value))
    if len(parts) != len(("target", "sum")) or not _is_read(last, parts[0], last.target):
        return False
    return any(_is_read(last, one, replace(last.target, buffer=own)) for one in factors(parts[1]))


def _is_read(node: Compute, part: Expression, element: Element) -> bool:
    return isinstance(part, Read) and node.reads[part.access] == element


def _with_factors(finish: Compute, last: Compute, own: Buffer) -> Iterator[Buffer]:
    """Yield the sums that a statement adds with the factors that another one has, once each."""
    _, times = addends(last.statement.value)
    wanted = _named(last, times, own)
    if not wanted:
        return
    for part in addends(finish.statement.value):
        for one in factors(part):
            read = finish.reads[one.access] if isinstance(one, Read) else None
            if read is None or read.buffer.space != "register" or read.buffer == own:
                continue
            like = replace(own, name=read.buffer.name) == read.buffer
            at_point = read.subscripts == finish.target.subscripts
            if like and at_point and _named(finish, part, read.buffer) == wanted:
                uses = [one for one in finish.reads if one.buffer == read.buffer]
                if len(uses) == 1:
                    yield read.buffer


def _named(node: Compute, part: Expression, without: Buffer) -> list[str] | None:
    """Return the scalars that a product multiplies a sum by; ``None`` if there is more to it."""
    found: list[str] = []
    for one in factors(part):
        if not isinstance(one, Read):
            return None
        buffer = node.reads[one.access].buffer
        if buffer == without:
            continue
        if buffer.space != "argument":
            return None
        found.append(buffer.name)
    return sorted(found)


def _stores(nodes: Sequence[Node], other: Buffer, loop: int, finish: int) -> tuple[int, ...] | None:
    """Return the nodes that store a sum, ``None`` where it is needed for more behind the loop."""
    found: list[int] = []
    for at in range(loop, len(nodes)):
        if at == finish or other not in buffers_of((nodes[at],)):
            continue
        acts = _acts(nodes[at])
        if not acts or not all(
            isinstance(one, Copy) and one.source.buffer == other for one in acts
        ):
            return None
        found.append(at)
    targets = written(nodes[at] for at in found)
    between = [nodes[at] for at in range(loop, max(found, default=loop)) if at not in found]
    return None if targets & buffers_of(between) else tuple(found)


def _stored_alike(nodes: Sequence[Node], node: Node, finish: Compute, last: int) -> bool:
    """Tell whether what a statement computes is stored at the points where it runs, no others."""
    stores = [
        one
        for one in nodes[last + 1 :]
        if any(
            isinstance(own, Copy) and own.source.buffer == finish.target.buffer
            for own in _acts(one)
        )
    ]
    return bool(stores) and all(_frame(one) == _frame(node) for one in stores)


def _frame(node: Node) -> Node:
    """Return a nest without what it does."""

    def frame(one: Node) -> tuple[Node, ...]:
        return () if isinstance(one, Source) or any(accesses(one)) else (one,)

    return with_bodies(node, partial(mapped, change=frame))
