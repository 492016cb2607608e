"""Parts that stand in a value several times are computed once.

    out[i] = (b[i + 1] - b[i]) * s > 0 ? 0 : b[i + 1] - b[i];

becomes

    double v0;
    v0 = b[i + 1] - b[i];
    out[i] = v0 * s > 0 ? 0 : v0;

Compilers see most of that by themselves. It is done where statements compute anew what they read
in the source, whose values repeat whole producers: horizontal diffusion in float takes 52 registers
and 0.162 ms on an H200 without, 40 and 0.140 ms with it. Nothing is rounded otherwise.

Registers that a tile sets only where it has points begin as zero where all of them compute.

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

from collections.abc import Iterator, Mapping, Sequence
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
    Load,
    Node,
    Nodes,
    Scope,
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
from eatss.polyhedral.scop import Access, AccessKind
from eatss.program import IntExpr, Name, names_in

_ARITHMETIC = frozenset({"+", "-", "*", "/"})


def with_common_subexpressions(kernel: Kernel, taken: set[str]) -> Kernel:
    """Return a kernel in which statements that compute anew do so once for each value.

    Names that are ``taken`` stay what they are.
    """

    def change(node: Compute) -> Node | Nodes:
        return _parted(node, taken) if node.statement.recomputed else node

    return replace(kernel, body=mapped_of(kernel.body, Compute, change))


def _parted(node: Compute, taken: set[str]) -> Nodes:
    """Return nodes that compute the parts of a value that repeat, then the value from them."""
    statement, types = node.statement, dict(node.types)
    accesses, reads, names = list(statement.accesses), list(node.reads), taken | set(types)
    values: dict[Expression, Read] = {}
    parts: list[tuple[Buffer, Expression]] = []

    def shortened(part: Expression) -> Expression:
        known = values.get(part)
        return rebuilt(part, shortened) if known is None else known

    for part in _repeated(statement.value):
        kind = _floating_type(part, types, accesses)
        if kind is not None:
            own = Buffer.of("register", free_name(f"v{len(parts)}", names), kind)
            parts.append((own, shortened(part)))
            values[part] = Read(access=len(accesses))
            read = replace(statement.write, array=own.name, kind=AccessKind.READ, text=own.name)
            accesses.append(read)
            reads.append(own.at())
            types[own.name] = kind
    if not parts:
        return (node,)
    whole = replace(statement, value=shortened(statement.value), accesses=tuple(accesses))
    last = replace(node, statement=whole, reads=tuple(reads), types=types)
    loads = (
        Load(
            statement=whole,
            part=part,
            target=own.at(),
            reads=last.reads,
            types=types,
            flag=node.flag,
        )
        for own, part in parts
    )
    declared = (Declare(buffer=own) for own, _ in parts)
    both = (one for pair in zip(declared, loads, strict=True) for one in pair)
    return (Scope(body=(*both, last)),)


def _repeated(value: Expression) -> tuple[Expression, ...]:
    """Return the parts that are operands of several others, or of one twice; inner ones first.

    Those with values of counters are left out: their text depends on the place in the value.
    """
    users: dict[Expression, int] = {}
    order = []

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
            own, kind = element.buffer, element.buffer.element_type
            row = Buffer.of("register", free_name(f"{own.name}_row", taken), kind, count)
            homes[element] = row.at(Name(points.counter))
    if not homes:
        return (rows,)
    test = replace(test, body=with_homes(test.body, homes))
    return (
        *(Declare(buffer=one.buffer) for one in homes.values()),
        *loads_along((points,), (Name(points.counter),), homes, values),
        replace(rows, body=(*lets, test)),
    )
