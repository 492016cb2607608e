"""Parts that stand in a value several times are computed once.

    out[i] = (b[i + 1] - b[i]) * s > 0 ? 0 : b[i + 1] - b[i];

becomes

    double v0;
    v0 = b[i + 1] - b[i];
    out[i] = v0 * s > 0 ? 0 : v0;

Compilers see that by themselves; people read the text. It is done where statements compute anew
what they read in the source, whose values repeat whole producers. Nothing is rounded otherwise.

Registers that a tile sets only where it has points begin as zero where all of them compute.

    float C_r[8][16];
    for (ri…) if (i < NI) for (rj…) if (j < NJ) C_r[ri][rj] = beta * C[i][j];
    for (k…) for (ri…) for (rj…) C_r[ri][rj] += A[i][k] * B[k][j];

Nothing stores what is computed of registers without a value, but compilers follow them to all that
is made of them: NVRTC 13.0 took 320 bytes of stack for symm in floats and 3000 for a gemm of
doubles with four boxes, and none with ``for (…) C_r[ri][rj] = 0;`` first. With 3664 for a trmm of
2550 doubles results on a card were wrong besides. Kernels in which such registers are few stay as
they are: products of 32 x 32 floats, which have 16 sums a thread, took longer with it. Registers
between memory and boxes are filled in any case, and declared so.

What a thread loads for all rows of its points it loads before it tests which rows there are.

    for (ri…) if (i < k) for (rj…) C_r[ri][rj] += sh.A[k][i] * sh.B[k][j];

becomes

    float B_k[16]; for (rj…) B_k[rj] = sh.B[k][j];
    for (ri…) if (i < k) for (rj…) C_r[ri][rj] += sh.A[k][i] * B_k[rj];

A compiler cannot know that all of a row of shared memory may be loaded, so it loads it anew behind
each test.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from eatss.analysis.variant import WORD_BYTES
from eatss.base.trees import free_name
from eatss.lower.kernel.nodes import (
    Buffer,
    Compute,
    Copy,
    Declare,
    Element,
    Extents,
    For,
    If,
    Init,
    Kernel,
    Let,
    Load,
    Node,
    Nodes,
    Scope,
    Source,
    over_places,
)
from eatss.lower.kernel.uses import (
    accesses,
    buffers_of,
    every_of,
    inside,
    mapped,
    mapped_of,
    names_of,
    trips_from_zero,
)
from eatss.polyhedral.expression import (
    AffineValue,
    Binary,
    Cast,
    ElementType,
    Expression,
    Literal,
    Read,
    Select,
    Unary,
    operands,
    preorder,
    rebuilt,
)
from eatss.polyhedral.scop import Access, AccessKind, Statement
from eatss.program import Constant, IntExpr, Name, names_in

_ARITHMETIC = frozenset({"+", "-", "*", "/"})


def with_common_subexpressions(kernel: Kernel, taken: set[str]) -> Kernel:
    """Return a kernel in which statements that compute anew do so once for each value.

    Names that are ``taken`` stay what they are.
    """

    def change(node: Compute) -> Node | Nodes:
        return _Parts(node, taken).nodes() if node.statement.recomputed else node

    return replace(kernel, body=mapped_of(kernel.body, Compute, change))


class _Parts:
    """The parts of a value that stand in it several times, each in a register."""

    def __init__(self, node: Compute, taken: set[str]) -> None:
        self._node = node
        self._taken = taken | set(node.types)
        self._types = dict(node.types)
        self._accesses = list(node.statement.accesses)
        self._reads = list(node.reads)
        self._values: dict[Expression, Read] = {}
        self._found: list[tuple[Buffer, Expression]] = []

    def nodes(self) -> Nodes:
        """Return the nodes that compute the parts, and then the value from them."""
        value = self._node.statement.value
        for part in _repeated(value):
            kind = _floating_type(part, self._types, self._accesses)
            if kind is not None:
                self._name(part, kind)
        if not self._found:
            return (self._node,)
        whole = self._shortened(value)
        statement = replace(self._node.statement, value=whole, accesses=tuple(self._accesses))
        reads = tuple(self._reads)
        parts = [
            node
            for buffer, part in self._found
            for node in (Declare(buffer=buffer), self._evaluate(buffer, part, statement))
        ]
        last = replace(self._node, statement=statement, reads=reads, types=self._types)
        return (Scope(body=(*parts, last)),)

    def _name(self, part: Expression, kind: ElementType) -> None:
        """Give a part, in which smaller ones have their names, a register."""
        shortened = self._shortened(part)
        name = free_name(f"v{len(self._found)}", self._taken)
        buffer = Buffer(name=name, space="register", element_type=kind, layout=Extents(()))
        self._found.append((buffer, shortened))
        self._values[part] = Read(access=len(self._accesses))
        write = self._node.statement.write
        self._accesses.append(replace(write, array=name, kind=AccessKind.READ, text=name))
        self._reads.append(Element(buffer=buffer))
        self._types[name] = kind

    def _shortened(self, part: Expression) -> Expression:
        known = self._values.get(part)
        return rebuilt(part, self._shortened) if known is None else known

    def _evaluate(self, buffer: Buffer, part: Expression, statement: Statement) -> Load:
        return Load(
            statement=statement,
            part=part,
            target=Element(buffer=buffer),
            reads=tuple(self._reads),
            types=self._types,
        )


def _repeated(value: Expression) -> tuple[Expression, ...]:
    """Return the parts that are operands of several others, or of one twice; inner ones first.

    Those with values of counters are left out: their text depends on the place in the value.
    """
    users: dict[Expression, int] = {}
    order: list[Expression] = []

    def visit(node: Expression) -> None:
        users[node] = users.get(node, 0) + 1
        if users[node] > 1:
            return
        for operand in operands(node):
            visit(operand)
        order.append(node)

    visit(value)
    return tuple(
        node
        for node in order
        if users[node] > 1
        and operands(node.operand if isinstance(node, Cast) else node)
        and not any(isinstance(one, AffineValue) for one in preorder(node))
    )


def _floating_type(
    node: Expression, types: Mapping[str, ElementType], accesses: Sequence[Access]
) -> ElementType | None:
    """Return the floating-point type of a value, ``None`` where it has none or it is not sure."""
    if isinstance(node, Literal | Cast):
        found: ElementType | None = node.element_type
    elif isinstance(node, Read):
        found = types.get(accesses[node.access].array)
    elif isinstance(node, Unary | Binary) and node.operator not in _ARITHMETIC:
        found = None
    else:  # the tree has all conversions, so operands are of the type of the result
        own = (node.if_true, node.if_false) if isinstance(node, Select) else operands(node)
        known = (_floating_type(one, types, accesses) for one in own)
        found = None if isinstance(node, AffineValue) else next(filter(None, known), None)
    return found if found is not None and found.is_floating else None


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
    own = Element(buffer=buffer, subscripts=tuple(Name(one) for one in counters))
    return over_places(buffer, counters, Init(target=own, value=0))


def with_loads_before_tests(kernel: Kernel, taken: set[str]) -> Kernel:
    """Return a kernel whose threads load before tests what does not depend on what these ask.

    Only boxes are loaded from that are filled as a whole. Names that are ``taken`` stay what they
    are.
    """
    partly = {
        node.target.buffer
        for node in every_of(kernel.body, Copy)
        if node.condition is not None and not node.clears
    }
    whole = frozenset(kernel.shared) - partly

    def changed(node: Node) -> Nodes:
        tested = _Tested.of(node)
        return (node,) if tested is None else tested.nodes(whole, taken)

    return replace(kernel, body=mapped(kernel.body, changed))


@dataclass(frozen=True, slots=True)
class _Tested:
    """A loop over rows, the test in it, and the loop over the points of a row behind that."""

    rows: For
    lets: tuple[Let, ...]
    test: If
    points: For
    count: int

    @classmethod
    def of(cls, node: Node) -> _Tested | None:
        """Return such a loop, ``None`` for any other node."""
        if not isinstance(node, For) or node.unroll != "whole" or not node.body:
            return None
        *lets, test = node.body
        if not isinstance(test, If) or test.orelse or len(test.body) != 1:
            return None
        (points,) = test.body
        plain = isinstance(points, For) and points.unroll == "whole"
        if not plain or not all(isinstance(one, Let) for one in lets):
            return None
        assert isinstance(points, For)
        if any(not isinstance(one, Let | Source | Compute) for one in points.body):
            return None
        count = trips_from_zero(points)
        own = tuple(one for one in lets if isinstance(one, Let))
        return None if count is None else cls(node, own, test, points, count)

    def nodes(self, whole: frozenset[Buffer], taken: set[str]) -> Nodes:
        """Return the loop with what is loaded in front of it."""
        own = {self.rows.counter, *(one.name for one in self.lets)}
        inner = [one for one in self.points.body if isinstance(one, Let)]
        loads: dict[Element, Element] = {}
        for element in self._read():
            if (
                element.buffer in whole
                and element not in loads
                and self._moves(element, inner, own)
            ):
                loads[element] = self._register(element, taken)
        if not loads:
            return (self.rows,)
        front: list[Node] = [Declare(buffer=one.buffer) for one in loads.values()]
        copies = (Copy(target=one, source=element) for element, one in loads.items())
        front.append(replace(self.points, body=(*inner, *copies)))
        body = [_with_reads(one, loads) for one in self.points.body]
        used = names_of(body)
        kept = (one for one in body if not isinstance(one, Let) or one.name in used)
        points = replace(self.points, body=tuple(kept))
        return (*front, replace(self.rows, body=(*self.lets, replace(self.test, body=(points,)))))

    def _read(self) -> Iterator[Element]:
        for node in self.points.body:
            if isinstance(node, Compute):
                yield from node.reads[1:]

    def _moves(self, element: Element, inner: Sequence[Let], own: set[str]) -> bool:
        """Tell whether an element moves along the points of a row, and is the same in all rows."""
        names = set(names_in(*element.subscripts))
        for one in reversed(inner):
            if one.name in names:
                names |= set(names_in(one.value))
        return self.points.counter in names and not names & own

    def _register(self, element: Element, taken: set[str]) -> Element:
        buffer = Buffer(
            name=free_name(f"{element.buffer.name}_row", taken),
            space="register",
            element_type=element.buffer.element_type,
            layout=Extents((Constant(self.count),)),
        )
        return Element(buffer=buffer, subscripts=(Name(self.points.counter),))


def _with_reads(node: Node, loads: dict[Element, Element]) -> Node:
    if not isinstance(node, Compute):
        return node
    return replace(node, reads=tuple(loads.get(one, one) for one in node.reads))
