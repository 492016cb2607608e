"""Parts that stand in a value several times are computed once.

    out[i] = (b[i + 1] - b[i]) * s > 0 ? 0 : b[i + 1] - b[i];

becomes

    double v0;
    v0 = b[i + 1] - b[i];
    out[i] = v0 * s > 0 ? 0 : v0;

Compilers see that by themselves; people read the text. It is done where statements compute anew
what they read in the source, whose values repeat whole producers. Nothing is rounded otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from eatss.base.free_names import free_name
from eatss.lower.kernel.nodes import (
    Buffer,
    Compute,
    Declare,
    Element,
    Evaluate,
    Extents,
    Kernel,
    Node,
    Nodes,
    Scope,
)
from eatss.lower.kernel.uses import mapped
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

_ARITHMETIC = frozenset({"+", "-", "*", "/"})


def with_parts_once(kernel: Kernel, taken: set[str]) -> Kernel:
    """Return a kernel in which statements that compute anew do so once for each value.

    Names that are ``taken`` stay what they are.
    """

    def change(node: Node) -> Nodes:
        if not isinstance(node, Compute) or node.by is not None or not node.statement.recomputed:
            return (node,)
        return _Parts(node, taken).nodes()

    return replace(kernel, body=mapped(kernel.body, change))


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

    def _evaluate(self, buffer: Buffer, part: Expression, statement: Statement) -> Evaluate:
        return Evaluate(
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
