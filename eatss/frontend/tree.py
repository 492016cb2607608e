"""Our own small syntax tree of C, read from libclang once and without recursion."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from eatss.frontend import clang
from eatss.frontend.clang import CursorKind, TypeKind
from eatss.frontend.types import NO_TYPE, CType, type_of


class NodeKind(enum.Enum):
    """What a node is; the comment says what its children are."""

    INT = enum.auto()  # value
    FLOAT = enum.auto()  # value
    NAME = enum.auto()  # name, declaration
    SUBSCRIPT = enum.auto()  # base, index
    DEREFERENCE = enum.auto()  # pointer
    BINARY = enum.auto()  # left, right
    UNARY = enum.auto()  # operand
    STEP = enum.auto()  # operand of ++ or --
    ASSIGN = enum.auto()  # target, value; op is "" or the operator of a compound assignment
    CONDITIONAL = enum.auto()  # condition, if true, if false
    CAST = enum.auto()  # operand, last child
    CALL = enum.auto()  # callee, arguments
    MEMBER = enum.auto()
    ADDRESS = enum.auto()
    STRING = enum.auto()
    COMPOUND = enum.auto()  # statements
    FOR = enum.auto()  # init, condition, increment, body if all are there
    IF = enum.auto()  # condition, then, else if there
    DECLARATIONS = enum.auto()  # variables
    VARIABLE = enum.auto()  # declaration; its initialiser is the last child
    EMPTY = enum.auto()
    WHILE = enum.auto()
    DO = enum.auto()
    GOTO = enum.auto()  # what refers to the label
    LABEL = enum.auto()  # statement
    BREAK = enum.auto()
    CONTINUE = enum.auto()
    RETURN = enum.auto()
    SWITCH = enum.auto()
    BROKEN = enum.auto()  # clang could not make sense of it
    OTHER = enum.auto()


_KINDS: dict[Any, NodeKind] = {
    CursorKind.INTEGER_LITERAL: NodeKind.INT,
    CursorKind.CHARACTER_LITERAL: NodeKind.INT,
    CursorKind.FLOATING_LITERAL: NodeKind.FLOAT,
    CursorKind.STRING_LITERAL: NodeKind.STRING,
    CursorKind.DECL_REF_EXPR: NodeKind.NAME,
    CursorKind.ARRAY_SUBSCRIPT_EXPR: NodeKind.SUBSCRIPT,
    CursorKind.CONDITIONAL_OPERATOR: NodeKind.CONDITIONAL,
    CursorKind.CSTYLE_CAST_EXPR: NodeKind.CAST,
    CursorKind.CALL_EXPR: NodeKind.CALL,
    CursorKind.MEMBER_REF_EXPR: NodeKind.MEMBER,
    CursorKind.COMPOUND_STMT: NodeKind.COMPOUND,
    CursorKind.FOR_STMT: NodeKind.FOR,
    CursorKind.IF_STMT: NodeKind.IF,
    CursorKind.DECL_STMT: NodeKind.DECLARATIONS,
    CursorKind.VAR_DECL: NodeKind.VARIABLE,
    CursorKind.NULL_STMT: NodeKind.EMPTY,
    CursorKind.WHILE_STMT: NodeKind.WHILE,
    CursorKind.DO_STMT: NodeKind.DO,
    CursorKind.GOTO_STMT: NodeKind.GOTO,
    CursorKind.INDIRECT_GOTO_STMT: NodeKind.GOTO,
    CursorKind.LABEL_STMT: NodeKind.LABEL,
    CursorKind.BREAK_STMT: NodeKind.BREAK,
    CursorKind.CONTINUE_STMT: NodeKind.CONTINUE,
    CursorKind.RETURN_STMT: NodeKind.RETURN,
    CursorKind.SWITCH_STMT: NodeKind.SWITCH,
}

_TYPELESS = frozenset(
    {
        NodeKind.COMPOUND, NodeKind.FOR, NodeKind.IF, NodeKind.DECLARATIONS, NodeKind.EMPTY,
        NodeKind.WHILE, NodeKind.DO, NodeKind.GOTO, NodeKind.LABEL, NodeKind.BREAK,
        NodeKind.CONTINUE, NodeKind.RETURN, NodeKind.SWITCH,
    }
)  # fmt: skip

_CONSTANTS = frozenset(
    f"__builtin_{name}{suffix}" for name in ("inf", "huge_val", "nan") for suffix in ("", "f")
)
"""What ``INFINITY``, ``HUGE_VAL`` and ``NAN`` call."""

# What a statement that holds other statements may have as its body.
BODIES = _TYPELESS | {NodeKind.ASSIGN, NodeKind.STEP, NodeKind.CALL}


ELEMENTS = frozenset({NodeKind.SUBSCRIPT, NodeKind.DEREFERENCE})
WRITES = frozenset({NodeKind.ASSIGN, NodeKind.STEP})


@dataclass(slots=True, eq=False)
class Node:
    """A node of the tree; ``cursor`` is only for spans and declarations."""

    kind: NodeKind
    cursor: Any
    type: CType
    children: list[Node] = field(default_factory=list)
    op: str = ""
    name: str = ""
    value: int | float | None = None
    declaration: Any = None
    implicit: bool = False
    depth: int = 0
    pure_index: bool = False
    is_inlined: bool = False  # of the body of a function; it stands where that is called

    @property
    def offsets(self) -> tuple[int, int]:
        """Byte offsets ``[start, end)`` in the main file, macros not expanded."""
        extent = self.cursor.extent
        return extent.start.offset, extent.end.offset

    @property
    def line_and_column(self) -> tuple[int, int]:
        """Line and column (in bytes) clang gives for the node."""
        start = self.cursor.extent.start
        return start.line, start.column

    def preorder(self) -> Iterator[Node]:
        """Walk the subtree, parents first, in source order; no recursion."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(node.children))

    def parts(self, *kinds: NodeKind) -> Iterator[Node]:
        """Yield the nodes of some kinds in the subtree, parents first, in source order."""
        return (node for node in self.preorder() if node.kind in kinds)

    def has(self, *kinds: NodeKind) -> bool:
        """Return whether a node of some kinds is in the subtree."""
        return any(self.parts(*kinds))

    def is_binary(self, *operators: str) -> bool:
        """Return whether the node applies one of some binary operators."""
        return self.kind is NodeKind.BINARY and self.op in operators

    def names(self, declaration: Any) -> int:
        """Return how often the subtree names a variable."""
        return sum(node.declaration == declaration for node in self.parts(NodeKind.NAME))

    @property
    def reads_memory(self) -> bool:
        """Whether an element is in the subtree."""
        return self.has(*ELEMENTS)


def unconverted(node: Node, *, explicit: bool = False) -> Node:
    """Return what C converts by itself, or what is converted ``explicit``ly too."""
    while node.kind is NodeKind.CAST and (node.implicit or explicit):
        node = node.children[0]
    return node


def chain(node: Node, operator: str) -> list[Node]:
    """Return the operands of a chain of one operator along its left spine, without recursion."""
    found: list[Node] = []
    while node.is_binary(operator):
        found.append(node.children[1])
        node = node.children[0]
    return [node, *reversed(found)]


LOOPS = frozenset({NodeKind.FOR, NodeKind.WHILE, NodeKind.DO})
LEAVING = frozenset({NodeKind.BREAK, NodeKind.CONTINUE, NodeKind.GOTO, NodeKind.RETURN})


def leaves(body: Node, kinds: frozenset[NodeKind] = LEAVING) -> bool:
    """Return whether the body of a loop has a statement of some kinds that leaves its rounds."""
    todo = [(body, kinds)]
    while todo:
        node, wanted = todo.pop()
        if node.kind in wanted:
            return True
        if node.kind in LOOPS:
            wanted -= {NodeKind.BREAK, NodeKind.CONTINUE}
        elif node.kind is NodeKind.SWITCH:
            wanted -= {NodeKind.BREAK}
        todo.extend((child, wanted) for child in node.children)
    return False


def read_tree(cursor: Any) -> Node:
    """Read a statement or expression.

    Parentheses, and conversions that do not change the scalar type, are left out.
    """
    root: list[Node] = []
    stack: list[tuple[Any, list[Node], int]] = [(cursor, root, 0)]
    while stack:
        current, siblings, depth = stack.pop()
        node, children = _read(current)
        if node is None:
            stack.append((children[0], siblings, depth))
            continue
        node.depth = depth
        siblings.append(node)
        stack.extend((child, node.children, depth + 1) for child in reversed(children))
    return root[0]


def without_unused_labels(nodes: list[Node], function: Any) -> list[Node]:
    """Return statements without the labels that nothing in their function goes to."""
    if not any(node.has(NodeKind.LABEL) for node in nodes):
        return nodes
    used = _label_references(function)

    def plain(node: Node) -> Node:
        while node.kind is NodeKind.LABEL and node.cursor.spelling not in used:
            node = node.children[0]
        return node

    kept = [plain(node) for node in nodes]
    for node in kept:
        for part in node.preorder():
            part.children = [plain(child) for child in part.children]
    return kept


def labels_of_elsewhere(nodes: list[Node], function: Any) -> frozenset[str]:
    """Return the labels in statements that something else in their function goes to."""
    here = Counter(
        part.children[0].cursor.spelling
        for node in nodes
        for part in node.parts(NodeKind.GOTO)
        if part.children
    )
    names = {label.cursor.spelling for node in nodes for label in node.parts(NodeKind.LABEL)}
    every = _label_references(function) if names else Counter[str]()
    return frozenset(name for name in names if every[name] > here[name])


def _label_references(function: Any) -> Counter[str]:
    """Return how often a function refers to its labels."""
    return Counter(c.spelling for c in clang.below(function) if c.kind is CursorKind.LABEL_REF)


def _read(cursor: Any) -> tuple[Node | None, list[Any]]:
    """Return the node of a cursor, or ``None`` if its only child stands for it."""
    clang_kind = cursor.kind
    children = clang.children(cursor)
    if clang_kind is CursorKind.PAREN_EXPR and len(children) == 1:
        return None, children
    if clang_kind is CursorKind.UNEXPOSED_EXPR:
        return _read_unexposed(cursor, children)
    is_constant = clang_kind is CursorKind.CALL_EXPR and cursor.spelling in _CONSTANTS
    kind = NodeKind.FLOAT if is_constant else _KINDS.get(clang_kind, NodeKind.OTHER)
    if clang_kind in (CursorKind.BINARY_OPERATOR, CursorKind.COMPOUND_ASSIGNMENT_OPERATOR):
        return _read_binary(cursor), children
    if clang_kind is CursorKind.UNARY_OPERATOR:
        return _read_unary(cursor), children
    ctype = NO_TYPE if kind in _TYPELESS else type_of(cursor.type)
    node = Node(kind, cursor, ctype)
    return _fill(node, cursor, children)


def _fill(node: Node, cursor: Any, children: list[Any]) -> tuple[Node, list[Any]]:
    """Set what a node of its kind has; return it with the cursors of its children."""
    kind = node.kind
    if kind in (NodeKind.INT, NodeKind.FLOAT):
        node.value = clang.evaluate(cursor)
        if node.value is None:
            node.kind = NodeKind.BROKEN
        return node, []
    if kind in (NodeKind.NAME, NodeKind.MEMBER):
        _fill_name(node, cursor)
        if kind is NodeKind.MEMBER:
            _fill_member(node, cursor)
        return node, []
    if kind is NodeKind.CALL:
        node.name = cursor.spelling
    elif kind is NodeKind.VARIABLE:
        node.name, node.declaration = cursor.spelling, cursor
        children = _initialiser(cursor, children)
    elif kind is NodeKind.CAST:
        children = children[-1:]  # a TYPE_REF may come first
    elif kind is NodeKind.OTHER:
        node.value = _size_of(cursor)
        if node.value is not None:
            node.kind = NodeKind.INT
            return node, []
    return node, children


def _fill_name(node: Node, cursor: Any) -> None:
    node.name = cursor.spelling
    node.declaration = cursor.referenced
    declaration = node.declaration
    if declaration is not None and declaration.kind is CursorKind.ENUM_CONSTANT_DECL:
        node.kind, node.value = NodeKind.INT, int(declaration.enum_value)


def _fill_member(node: Node, cursor: Any) -> None:
    """Make a number of a member of a ``const`` structure whose initialiser is there, else a name.

    A name stands for a member that is a variable of its own.
    """
    is_constant = cursor.type.is_const_qualified() and not cursor.type.is_volatile_qualified()
    if is_constant and node.type.is_arithmetic:
        node.value = clang.evaluate(cursor)
    member = clang.member_of(cursor)
    if node.value is not None:
        node.kind = NodeKind.INT if node.type.is_integer else NodeKind.FLOAT
    elif member is not None:
        node.kind, node.name, node.declaration = NodeKind.NAME, member.spelling, member


def _size_of(cursor: Any) -> int | None:
    """Return the value of ``sizeof`` and of its like."""
    if cursor.kind is not CursorKind.CXX_UNARY_EXPR:
        return None
    value = clang.evaluate(cursor)
    return value if isinstance(value, int) else None


def _initialiser(cursor: Any, children: list[Any]) -> list[Any]:
    """Return the initialiser of a variable, told from the sizes in its type by its place."""
    if not children or not children[-1].kind.is_expression():
        return []
    last = children[-1]
    # A size stands before the end of the declarator "name[size]"; an initialiser ends the
    # declaration.
    if last.extent.end.offset == cursor.extent.end.offset:
        return [last]
    return []


def _read_unexposed(cursor: Any, children: list[Any]) -> tuple[Node | None, list[Any]]:
    if len(children) != 1 or cursor.type.kind is TypeKind.DEPENDENT:
        return Node(NodeKind.BROKEN, cursor, NO_TYPE, name=_invalid_name(children)), []
    if cursor.type.kind is children[0].type.kind:
        return None, children
    target = type_of(cursor.type)
    source = type_of(children[0].type)
    if target == source or not (target.is_arithmetic and source.is_arithmetic):
        return None, children
    return Node(NodeKind.CAST, cursor, target, implicit=True), children


def _invalid_name(cursors: list[Any]) -> str:
    """Return the name whose declaration made clang give up on an expression, if that is so."""
    for cursor in clang.below(*cursors):
        if cursor.kind is CursorKind.DECL_REF_EXPR:
            declaration = cursor.referenced
            if declaration is not None and clang.is_invalid(declaration):
                return str(cursor.spelling)
    return ""


def _read_binary(cursor: Any) -> Node:
    operator = clang.binary_operator(cursor)
    ctype = type_of(cursor.type)
    if operator is None:
        return Node(NodeKind.OTHER, cursor, ctype)
    if operator == "=":
        return Node(NodeKind.ASSIGN, cursor, ctype)
    if operator.endswith("=") and operator not in ("<=", ">=", "==", "!="):
        return Node(NodeKind.ASSIGN, cursor, ctype, op=operator[:-1])
    return Node(NodeKind.BINARY, cursor, ctype, op=operator)


def _read_unary(cursor: Any) -> Node:
    operator = clang.unary_operator(cursor)
    ctype = type_of(cursor.type)
    if operator is None:
        return Node(NodeKind.OTHER, cursor, ctype)
    if operator == "&":
        return Node(NodeKind.ADDRESS, cursor, ctype)
    if operator == "*":
        return Node(NodeKind.DEREFERENCE, cursor, ctype)
    if operator.endswith(("++", "--")):
        return Node(NodeKind.STEP, cursor, ctype, op=operator)
    return Node(NodeKind.UNARY, cursor, ctype, op=operator)
