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

Factors that stay the same for points of a thread are multiplied with each other first.

    for (ri…) for (rr…) A_r[ri][rr] += T[i][j][k] * B[j][r] * C[k][r];

becomes

    for (ri…) for (rr…) A_r[ri][rr] += T[i][j][k] * (B[j][r] * C[k][r]);

The compiler then multiplies ``B * C`` once for all ``ri``. Several products are added one by one:
``C_r += a * b + d * e`` becomes ``C_r = C_r + a * b + d * e``, two operations instead of three.
Results are rounded otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

from eatss.base.frozen import frozen
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
    Staging,
    filled,
    over_places,
)
from eatss.lower.kernel.uses import (
    affine_values,
    buffers_of,
    elements,
    every,
    every_of,
    mapped_of,
    read,
    rewritten,
    with_bodies,
    with_elements,
    written,
)
from eatss.lower.transform.stream_k import is_zero
from eatss.lower.transform.use_instruction import added_terms, added_to_target, own_part
from eatss.polyhedral.expression import (
    SUMS,
    AffineValue,
    Binary,
    Expression,
    Read,
    Unary,
    factors,
    preorder,
    product_of,
    regrouped,
)
from eatss.polyhedral.isl_names import involved_dims
from eatss.program import Name, names_in
from eatss.program.expression import IntExprs


def with_epilogue_scaling(kernel: Kernel, taken: set[str], *, apart: bool = False) -> Kernel:
    """Return a kernel whose sums of products get the factors that all of them share at their end.

    Those factors are scalars that are passed to the kernel. What else a loop does with the sum, or
    nodes before it, keeps it as it is; and so does a loop that adds to each register once, or that
    has tiles where those lie that are needed behind it then. Names that are ``taken`` stay what
    they are. A factor that is infinite makes NaN where a sum is zero.

    Where warps compute products, sums without such factors that would begin with loaded values are
    parted from them, too: NVRTC 13.0 finds registers for them then, and otherwise takes stack. So
    are all that are to be ``apart``, whatever they begin with but zero. Sums that are ``continued``
    [:class:`eatss.lower.kernel.nodes.Kernel`] go on in the registers of others, which are complete
    then and needed for nothing else but to be stored.
    """
    found = _Epilogues(
        taken=taken,
        overlaid=frozenset(name for group in kernel.overlaid for name in group),
        parted="all" if apart else "loaded" if kernel.warps else "none",
        continued=dict(kernel.continued),
    )
    return _regrouped(kernel, found.nodes(kernel.body))


def _regrouped(kernel: Kernel, body: Nodes) -> Kernel:
    return replace(kernel, body=body, regroups=kernel.regroups or body != kernel.body)


_Parted = Literal["none", "loaded", "all"]
"""Which sums are parted from what they begin with."""


@frozen
class _Epilogues:
    taken: set[str]
    overlaid: frozenset[str]
    parted: _Parted
    continued: Mapping[str, str]

    def nodes(self, nodes: Nodes) -> Nodes:
        """Return nodes whose sums have their shared factors last."""
        for at, node in enumerate(nodes):
            sum_ = _Sum.of(nodes[:at], node, self.parted) if isinstance(node, For | If) else None
            if sum_ is None or any(box.name in self.overlaid for box in sum_.needed):
                continue
            other = self.continued.get(sum_.buffer.name)
            behind = nodes[at + 1 :]
            stores = tuple(one for one in behind if other in {own.name for own in read((one,))})
            rest = tuple(one for one in behind if one not in stores)
            return (*sum_.nodes(self.taken, other, stores), *self.nodes(rest))
        return tuple(with_bodies(node, self.nodes) for node in nodes)


@frozen
class _Sum:
    """A loop that adds products to registers, perhaps behind a test, and the shared factors.

    ``stays`` stood before it, and ``moves`` goes behind it: what has to do with the registers, and
    what fills tiles for that alone. Tiles that are ``needed`` there are filled before the loop.
    """

    stays: Nodes
    loop: For | If
    moves: Nodes
    buffer: Buffer
    shared: tuple[Expression, ...]
    needed: frozenset[Buffer]

    @classmethod
    def of(cls, before: Sequence[Node], loop: For | If, parted: _Parted) -> _Sum | None:
        """Return the sum of a loop if it has shared factors, or is parted from what it begins with.

        Args:
            before: what stands before the loop.
            loop: the loop, or a test around it.
            parted: which sums need no factors.
        """
        computes = list(every_of((loop,), Compute))
        orelse = isinstance(loop, If) and loop.orelse
        if orelse or not any(_repeats(loop, one) for one in computes):
            return None
        buffer = computes[0].target.buffer
        own = [one for one in before if _declares(one, buffer) or buffer in buffers_of((one,))]
        others = (one for one in every((loop,)) if not isinstance(one, Compute))
        if (
            any(one.target.buffer != buffer for one in computes)
            or not any(_declares(one, buffer) for one in own)
            or buffer.layout.elements is None
            or any(element.buffer == buffer for one in others for element in elements(one))
            or not _alone(before, buffer, loop)
        ):
            return None
        shared = _factors_of_all(computes)
        copied = (one for one in every_of(own, Copy) if one.source.buffer.space == "global")
        loaded = any(one.target.buffer == buffer for one in copied)
        begun = (one for one in every_of(own, Compute) if one.target.buffer == buffer)
        computed = parted == "all" and not all(map(is_zero, begun))
        if shared is None or not (shared or computed or (parted != "none" and loaded)):
            return None
        boxes = {one for one in buffers_of(own) if one.space == "shared"}
        staged = [one for one in before if isinstance(one, Staging)]
        used = buffers_of((*(one for one in before if one not in (*own, *staged)), loop))
        fills = [one for one in staged if written((one,)) & boxes - used]
        moves = tuple(one for one in before if one in own or one in fills)
        return cls(
            stays=tuple(one for one in before if one not in moves),
            loop=loop,
            moves=moves,
            buffer=buffer,
            shared=tuple(expression for _, expression in shared),
            needed=frozenset(boxes - written(fills)),
        )

    def nodes(self, taken: set[str], other: str | None, stores: Sequence[Node]) -> Nodes:
        """Return what stands up to the end of the loop, and what then becomes of the sum.

        Args:
            taken: names that are not free.
            other: the registers in which the sum goes on, if it does.
            stores: what stores those.
        """
        sums = replace(self.buffer, name=free_name(f"sum_{self.buffer.name}", taken))
        counters = tuple(free_name("s", taken) for _ in self.buffer.layout.extents)
        places = tuple(Name(one) for one in counters)

        def zero(buffer: Buffer) -> Nodes:
            return Declare(buffer=buffer), filled(buffer, counters, 0)

        # registers that are loaded where a tile has points only would keep their values till then
        loaded = [
            node
            for one in self.moves
            for node in (zero(self.buffer) if isinstance(one, Declare) else (one,))
        ]
        if other is not None:
            own = replace(self.buffer, name=other)
            return (*self.stays, *stores, self._without(own), *loaded)
        last = over_places(self.buffer, counters, self._added(sums, places))
        if isinstance(self.loop, If):
            last = If(conditions=self.loop.conditions, body=(last,))
        return (*self.stays, *zero(sums), self._without(sums), *loaded, last, *stores)

    def _added(self, sums: Buffer, places: tuple[Name, ...]) -> Compute:
        """Return the addition of the shared factors times an element of the sum."""
        first = next(every_of((self.loop,), Compute))
        statement = first.statement
        own = self.buffer.at(*places)
        # what the value does not read any more is not named where its places are not known
        reads = (one if one.buffer.space == "argument" else own for one in first.reads)
        times = product_of((*self.shared, Read(access=len(statement.accesses))))
        value = Binary(operator="+", left=Read(access=0), right=times)
        return replace(
            first,
            statement=replace(
                statement, value=value, accesses=(*statement.accesses, statement.write)
            ),
            target=own,
            reads=(*reads, sums.at(*places)),
            integers=_integers(first, value),
        )

    def _without(self, sums: Buffer) -> Node:
        """Return the loop with the sums in the place of the registers, the factors left out."""

        def element(one: Element) -> Element:
            return replace(one, buffer=sums) if one.buffer == self.buffer else one

        def changed(node: Compute) -> Compute:
            value = _value_without(node, self.shared)
            statement = replace(node.statement, value=value)
            return replace(node, statement=statement, integers=_integers(node, value))

        (loop,) = with_elements(mapped_of((self.loop,), Compute, changed), element)
        return loop


def _declares(node: Node, buffer: Buffer) -> bool:
    return isinstance(node, Declare) and node.buffer == buffer


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
    added = added_to_target(node)
    if added is None or any(
        isinstance(one, Read) and node.reads[one.access].buffer == node.target.buffer
        for one in preorder(added)
    ):
        return None
    found = [(name, one) for one in factors(added) if (name := _scalar(node, one)) is not None]
    return found if len(found) < len(list(factors(added))) else []


def _scalar(node: Compute, factor: Expression) -> str | None:
    """Return the name of a factor that is a scalar which is passed to the kernel, with its sign."""
    match factor:
        case Unary(operator="-"):
            inner = _scalar(node, factor.operand)
            return None if inner is None else f"-{inner}"
        case AffineValue():  # of integers that are passed, if of no counters
            return None if involved_dims(factor.value) else str(factor.value)
        case Read():
            buffer = node.reads[factor.access].buffer
            return buffer.name if buffer.space == "argument" else None
    return None


def _integers(node: Compute, value: Expression) -> IntExprs:
    """Return what the affine functions in a value are, which is made of parts of a statement's."""
    own = affine_values(node.statement.value)
    known = {id(one): integer for one, integer in zip(own, node.integers, strict=True)}
    return tuple(known[id(one)] for one in affine_values(value))


def _value_without(node: Compute, shared: Sequence[Expression]) -> Expression:
    """Return the value of a statement without the factors that are multiplied later."""
    added = added_to_target(node)
    assert added is not None
    names = {_scalar(node, one) for one in shared}
    left = [one for one in factors(added) if _scalar(node, one) not in names]
    return Binary(operator="+", left=own_part(node), right=product_of(left))


Names = Mapping[str, frozenset[str]]
"""Which points of a thread a name depends on, by their counters."""


def with_factors_grouped(kernel: Kernel) -> Kernel:
    """Return a kernel whose sums multiply factors first that depend on the same points.

    Factors are what is read, of products that are added to a register in a loop. Of several
    products each is added by itself.
    """
    nothing = _Known({}, repeats=False)
    return _regrouped(kernel, rewritten(kernel.body, nothing, _Known.at, _changed))


class _Known(NamedTuple):
    """What names depend on, and whether the same place is met several times."""

    names: Names
    repeats: bool

    def at(self, node: Node) -> tuple[_Known, _Known]:
        """Return what is known inside a node and behind it."""
        match node:
            case Let():
                own = {node.name: _points(names_in(node.value), self.names)}
                return self, self._replace(names={**self.names, **own})
            case For():
                is_point = node.unroll == "whole" and node.narrow
                own = {node.counter: frozenset({node.counter} if is_point else ())}
                return _Known({**self.names, **own}, self.repeats or not is_point), self
        return self, self


def _changed(node: Node, known: _Known) -> Nodes:
    if not known.repeats or not isinstance(node, Compute):
        return (node,)
    return (_grouped(node, known.names) if node.target.buffer.space == "register" else node,)


def _grouped(node: Compute, known: Names) -> Compute:
    terms = added_terms(node)
    if len(terms) > 1:
        return _one_by_one(node, terms)
    parts = [factor for term in terms for factor in factors(term)]
    if len(parts) < 3 or not all(isinstance(one, Read) for one in parts):
        return node

    def depends(part: Expression) -> frozenset[str]:
        assert isinstance(part, Read)
        return _points(names_in(*node.reads[part.access].subscripts), known)

    product = regrouped(parts, depends)
    summed = Binary(operator="+", left=own_part(node), right=product)
    statement = replace(node.statement, value=summed)
    return node if product == terms[0] else replace(node, statement=statement)


def _one_by_one(node: Compute, terms: Sequence[Expression]) -> Compute:
    """Return a statement that adds products to its target one after the other."""
    products = all(len(list(factors(one))) > 1 for one in terms)
    if not products or not node.target.buffer.element_type.is_floating or _is_in_turn(node):
        return node
    value: Expression = own_part(node)
    for term in terms:
        value = Binary(operator="+", left=value, right=term)
    return replace(node, statement=replace(node.statement, value=value))


def _is_in_turn(node: Compute) -> bool:
    """Tell whether terms are added to the target one after the other already."""
    value = node.statement.value
    while isinstance(value, Binary) and value.operator in SUMS:
        if isinstance(value.right, Binary) and value.right.operator in SUMS:
            return False
        value = value.left
    return value == own_part(node)


def _points(names: Iterable[str], known: Names) -> frozenset[str]:
    nothing: frozenset[str] = frozenset()
    return nothing.union(*(known.get(name, nothing) for name in names))
