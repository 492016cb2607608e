"""Factors that all products of a sum share are multiplied once, when the sum is there.

Sums of warps that would begin with loaded values are parted from those in the same way.

    double C_r[4][8]; …load it…
    for (k0 = 0; k0 < NK; k0 += 16)
        …C_r[ri][rj] += alpha * A[i][k] * B[k][j];

becomes

    double sum_C_r[4][8]; …zero it…
    for (k0 = 0; k0 < NK; k0 += 16)
        …sum_C_r[ri][rj] += A[i][k] * B[k][j];
    double C_r[4][8]; …zero it, load it…
    …C_r[ri][rj] += alpha * sum_C_r[ri][rj];

So what is added to is loaded when it is needed. Results are rounded otherwise.

A sum that is added to another one goes on in the registers of that one.

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
from typing import Literal

from eatss.free_names import free_name
from eatss.isl_names import involved_dims
from eatss.kernel.nodes import (
    Buffer,
    Compute,
    Copy,
    Declare,
    Element,
    Fill,
    For,
    If,
    Kernel,
    Node,
    Source,
    over_places,
)
from eatss.kernel.uses import (
    accesses,
    affine_values,
    buffers_of,
    elements,
    every,
    every_of,
    mapped,
    read,
    with_bodies,
    with_elements,
    written,
)
from eatss.program import IntExpr, Name, names_in
from eatss.scops import AffineValue, Binary, Expression, Read, Unary, preorder
from eatss.scops.expression import addends, factors, product_of
from eatss.transform.stream_k import is_zero
from eatss.transform.use_instruction import added_to_target, own_part


def with_factors_last(kernel: Kernel, taken: set[str], *, apart: bool = False) -> Kernel:
    """Return a kernel whose sums of products get the factors that all of them share at their end.

    Those factors are scalars that are passed to the kernel. What else a loop does with the sum, or
    nodes before it, keeps it as it is; and so does a loop that adds to each register once, or that
    has boxes where those lie that are needed behind it then. Names that are ``taken`` stay what
    they are. A factor that is infinite makes NaN where a sum is zero.

    Where warps compute products, sums without such factors that would begin with loaded values are
    parted from them, too: NVRTC 13.0 finds registers for them then, and otherwise takes stack. So
    are all that are to be ``apart``, whatever they begin with but zero.
    """
    overlaid = frozenset(name for group in kernel.overlaid for name in group)
    parted: _Parted = "all" if apart else "loaded" if kernel.warps else "none"
    body = _changed(kernel.body, taken, overlaid, apart=parted)
    return replace(kernel, body=body, regroups=kernel.regroups or body != kernel.body)


def _changed(
    nodes: Sequence[Node], taken: set[str], overlaid: frozenset[str], *, apart: _Parted
) -> tuple[Node, ...]:
    for at, node in enumerate(nodes):
        sum_ = _Sum.of(nodes[:at], node, apart=apart) if isinstance(node, For | If) else None
        if sum_ is not None and not sum_.needs(overlaid):
            return (*sum_.nodes(taken), *_changed(nodes[at + 1 :], taken, overlaid, apart=apart))
    inside = partial(_changed, taken=taken, overlaid=overlaid, apart=apart)
    return tuple(with_bodies(node, inside) for node in nodes)


_Parted = Literal["none", "loaded", "all"]
"""Which sums are parted from what they begin with."""


class _Sum:
    """A loop that adds products to registers, what stands before it, and the shared factors."""

    def __init__(
        self, before: Sequence[Node], loop: For | If, buffer: Buffer, shared: Sequence[Expression]
    ) -> None:
        self._before, self._loop, self._buffer = before, loop, buffer
        self._shared = tuple(shared)
        self._computes = list(every_of((loop,), Compute))

    @classmethod
    def of(cls, before: Sequence[Node], loop: For | If, *, apart: _Parted) -> _Sum | None:
        """Return the sum of a loop, which may stand behind a test, if it has shared factors.

        ``apart`` ones need no factors if they begin with such values.
        """
        computes = list(every_of((loop,), Compute))
        orelse = isinstance(loop, If) and loop.orelse
        if orelse or not any(_repeats(loop, one) for one in computes):
            return None
        targets = {one.target.buffer for one in computes}
        if len(targets) != 1 or any(one.by is not None for one in computes):
            return None
        (buffer,) = targets
        declared = any(isinstance(one, Declare) and one.buffer == buffer for one in before)
        if not declared or buffer.layout.elements is None:
            return None
        others = [one for one in every((loop,)) if not isinstance(one, Compute)]
        used = {element.buffer for one in others for element in elements(one)}
        if buffer in used or not _alone(before, buffer, loop):
            return None
        shared = _factors_of_all(computes)
        parted = (apart != "none" and _is_loaded(before, buffer)) or (
            apart == "all" and _is_computed(before, buffer)
        )
        if shared is None or not (shared or parted):
            return None
        return cls(before, loop, buffer, [expression for _, expression in shared])

    def nodes(self, taken: set[str]) -> tuple[Node, ...]:
        """Return what stands up to the end of the loop, and what then becomes of the sum."""
        sums = replace(self._buffer, name=free_name(f"sum_{self._buffer.name}", taken))
        counters = tuple(free_name("s", taken) for _ in self._buffer.layout.extents)
        moving = [*self._own(), *self._boxes_filled()]
        moved = [one for one in self._before if any(one is other for other in moving)]
        stays = [one for one in self._before if not any(one is other for other in moved)]
        places = tuple(Name(one) for one in counters)
        zero = over_places(
            self._buffer, counters, Fill(target=Element(buffer=sums, subscripts=places), value=0)
        )
        last = over_places(self._buffer, counters, self._added(sums, places))
        # registers that are loaded where a tile has points only would keep their values till then
        nothing = Fill(target=Element(buffer=self._buffer, subscripts=places), value=0)
        empty = over_places(self._buffer, counters, nothing)
        if isinstance(self._loop, If):
            last = If(conditions=self._loop.conditions, body=(last,))
        loaded = [
            node for one in moved for node in ((one, empty) if isinstance(one, Declare) else (one,))
        ]
        return (*stays, Declare(buffer=sums), zero, self._without(sums), *loaded, last)

    def _own(self) -> list[Node]:
        """Return the nodes before the loop that have to do with its registers."""
        return [
            one
            for one in self._before
            if (isinstance(one, Declare) and one.buffer == self._buffer)
            or self._buffer in buffers_of((one,))
        ]

    def needs(self, overlaid: frozenset[str]) -> bool:
        """Tell whether boxes of these names, filled before the loop, are needed behind it."""
        filled = {one for node in self._boxes_filled() for one in _accessed(node)[0]}
        boxes = (one for one in buffers_of(self._own()) - filled if one.space == "shared")
        return any(one.name in overlaid for one in boxes)

    def _boxes_filled(self) -> list[Node]:
        """Return the nodes that fill boxes for no other nodes than those that move.

        They go with them, so that these boxes are not in use during the loop.
        """
        moved = self._own()
        rest = [one for one in self._before if not any(one is other for other in moved)]
        used = {one for one in buffers_of(moved) if one.space == "shared"}
        changed, _ = _accessed(self._loop)
        fills = []
        for node in rest:
            made, needed = _accessed(node)
            if made and made <= used and not needed & (changed | used):
                fills.append(node)
        others = [one for one in rest if not any(one is other for other in fills)]
        kept = buffers_of((*others, self._loop))
        return [one for one in fills if not buffers_of((one,)) & used & kept]

    def _added(self, sums: Buffer, places: tuple[Name, ...]) -> Compute:
        """Return the addition of the shared factors times an element of the sum."""
        first = self._computes[0]
        statement = first.statement
        own = Element(buffer=self._buffer, subscripts=places)
        # what the value does not read any more is not named where its places are not known
        reads = (one if one.buffer.space == "argument" else own for one in first.reads)
        number = len(statement.accesses)
        times = product_of((*self._shared, Read(access=number)))
        value = Binary(operator="+", left=Read(access=0), right=times)
        return replace(
            first,
            statement=replace(
                statement, value=value, accesses=(*statement.accesses, statement.write)
            ),
            target=own,
            reads=(*reads, Element(buffer=sums, subscripts=places)),
            integers=_integers(first, value),
        )

    def _without(self, sums: Buffer) -> Node:
        """Return the loop with the sums in the place of the registers, the factors left out."""

        def element(one: Element) -> Element:
            return replace(one, buffer=sums) if one.buffer == self._buffer else one

        def changed(node: Node) -> tuple[Node, ...]:
            if not isinstance(node, Compute):
                return (node,)
            value = _value_without(node, self._shared)
            statement = replace(node.statement, value=value)
            return (replace(node, statement=statement, integers=_integers(node, value)),)

        (loop,) = with_elements(mapped((self._loop,), changed), element)
        return loop


def _accessed(node: Node) -> tuple[set[Buffer], set[Buffer]]:
    """Return what a node and those in it write and read, but for registers that it declares."""
    lines = {one.buffer for one in every_of((node,), Declare)}
    return written((node,)) - lines, read((node,)) - lines


def _is_loaded(nodes: Sequence[Node], buffer: Buffer) -> bool:
    """Tell whether registers get values from memory."""
    return any(
        node.target.buffer == buffer and node.source.buffer.space == "global"
        for node in every_of(nodes, Copy)
    )


def _is_computed(nodes: Sequence[Node], buffer: Buffer) -> bool:
    """Tell whether registers get other values than zero."""
    return any(
        node.target.buffer == buffer and not is_zero(node) for node in every_of(nodes, Compute)
    )


def _alone(before: Sequence[Node], buffer: Buffer, loop: Node) -> bool:
    """Tell whether what stands before a loop and has to do with a buffer may stand behind it."""
    changed = written((loop,))
    needed: set[Buffer] = set()
    for node in before:
        made, used = written((node,)), read((node,))
        if buffer not in buffers_of((node,)):
            if made & needed:  # it stays, and would change what is read behind it then
                return False
            continue
        if made - {buffer} or used & (changed - {buffer}):
            return False
        needed |= used - {buffer}
    return True


def _repeats(loop: Node, node: Compute) -> bool:
    """Tell whether a loop runs a statement several times for the same register."""
    places = set(names_in(*node.target.subscripts))
    around = [one for one in every_of((loop,), For) if node in every(one.body)]
    return any(one.counter not in places for one in around)


def _factors_of_all(computes: Sequence[Compute]) -> list[tuple[str, Expression]] | None:
    """Return the scalars that are factors of all that is added; ``None`` where they differ."""
    first, *others = (_scalar_factors(one) for one in computes)
    return first if all(one == first for one in others) else None


def _scalar_factors(node: Compute) -> list[tuple[str, Expression]] | None:
    """Return the factors of what a statement adds that are scalars, with their names."""
    added = added_to_target(node, node.statement.value)
    if added is None or any(
        isinstance(one, Read) and node.reads[one.access].buffer == node.target.buffer
        for one in preorder(added)
    ):
        return None
    found = [(name, one) for one in factors(added) if (name := _scalar(node, one)) is not None]
    return found if len(found) < len(list(factors(added))) else []


def _scalar(node: Compute, factor: Expression) -> str | None:
    """Return the name of a factor that is a scalar which is passed to the kernel, with its sign."""
    if isinstance(factor, Unary) and factor.operator == "-":
        inner = _scalar(node, factor.operand)
        return None if inner is None else f"-{inner}"
    if isinstance(factor, AffineValue):  # of integers that are passed, if of no counters
        return None if involved_dims(factor.value) else str(factor.value)
    if not isinstance(factor, Read):
        return None
    buffer = node.reads[factor.access].buffer
    return buffer.name if buffer.space == "argument" else None


def _integers(node: Compute, value: Expression) -> tuple[IntExpr, ...]:
    """Return what the affine functions in a value are, which is made of parts of a statement's."""
    own = affine_values(node.statement.value)
    known = {id(one): integer for one, integer in zip(own, node.integers, strict=True)}
    return tuple(known[id(one)] for one in affine_values(value))


def _value_without(node: Compute, shared: Sequence[Expression]) -> Expression:
    """Return the value of a statement without the factors that are multiplied later."""
    added = added_to_target(node, node.statement.value)
    assert added is not None
    names = {_scalar(node, one) for one in shared}
    left = [one for one in factors(added) if _scalar(node, one) not in names]
    return Binary(operator="+", left=own_part(node), right=product_of(left))


def with_sums_continued(kernel: Kernel) -> Kernel:
    """Return a kernel whose sums go on in the registers of others that they are added to.

    The other sum is complete and is needed for nothing else but to be stored, and both have the
    same factors, which wait until the sums are there.
    """
    return replace(kernel, body=_continued(kernel.body))


def _continued(nodes: Sequence[Node]) -> tuple[Node, ...]:
    for node in nodes:
        if isinstance(node, Declare):
            found = _Continued.of(nodes, node.buffer)
            if found is not None:
                return _continued(found.nodes(nodes))
    return tuple(with_bodies(node, _continued) for node in nodes)


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
