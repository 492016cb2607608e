"""Our own small syntax tree of C, read from libclang once and without recursion."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from eatss.frontend import clang
from eatss.frontend.clang import FLOAT, INT, NO_TYPE, CType, CursorKind, TypeKind, type_of
from eatss.polyhedral.expression import ElementType

Kind: TypeAlias = Literal[
    "int",  # value
    "float",  # value
    "name",  # name, declaration
    "subscript",  # base, index
    "dereference",  # pointer
    "binary",  # left, right
    "unary",  # operand
    "assign",  # target, value; op is "" or that of a compound assignment, as which ++ is read
    "conditional",  # condition, if true, if false
    "cast",  # operand, last child
    "call",  # callee, arguments
    "member",
    "address",
    "string",
    "compound",  # statements
    "for",  # init, condition, increment, body if all are there
    "if",  # condition, then, else if there
    "declarations",  # variables
    "variable",  # declaration; its initialiser is the last child
    "empty",
    "while",
    "do",
    "goto",  # what refers to the label
    "label",  # statement
    "break",
    "continue",
    "return",
    "switch",
    "broken",  # clang could not make sense of it
    "other",
    "kept",  # what an update sets, as it was before
    "any",  # a value nobody sees
]
"""What a node is; the comment says what its children are."""

_STATEMENTS: dict[str, Kind] = {
    "COMPOUND": "compound",
    "FOR": "for",
    "IF": "if",
    "DECL": "declarations",
    "NULL": "empty",
    "WHILE": "while",
    "DO": "do",
    "GOTO": "goto",
    "INDIRECT_GOTO": "goto",
    "LABEL": "label",
    "BREAK": "break",
    "CONTINUE": "continue",
    "RETURN": "return",
    "SWITCH": "switch",
}
_OTHERS: dict[str, Kind] = {
    "INTEGER_LITERAL": "int",
    "CHARACTER_LITERAL": "int",
    "FLOATING_LITERAL": "float",
    "STRING_LITERAL": "string",
    "DECL_REF_EXPR": "name",
    "ARRAY_SUBSCRIPT_EXPR": "subscript",
    "CONDITIONAL_OPERATOR": "conditional",
    "CSTYLE_CAST_EXPR": "cast",
    "CALL_EXPR": "call",
    "MEMBER_REF_EXPR": "member",
    "VAR_DECL": "variable",
}
_KINDS: dict[Any, Kind] = {
    getattr(CursorKind, name): kind
    for name, kind in (*_OTHERS.items(), *((f"{n}_STMT", k) for n, k in _STATEMENTS.items()))
}

_CONSTANTS = frozenset(
    f"__builtin_{name}{suffix}" for name in ("inf", "huge_val", "nan") for suffix in ("", "f")
)
"""What ``INFINITY``, ``HUGE_VAL`` and ``NAN`` call."""

ELEMENTS: frozenset[Kind] = frozenset({"subscript", "dereference"})
JUMPS: tuple[Kind, ...] = (
    "goto", "label", "while", "do", "break", "continue", "return", "switch",
)  # fmt: skip
"""Control that is not read, ``break`` and ``continue`` of no loop of the region too."""
TRUTHS = frozenset({"<", "<=", ">", ">=", "==", "!=", "&&", "||", "!"})
"""Operators whose value is 0 or 1."""
BODIES: frozenset[Kind] = frozenset({*_STATEMENTS.values(), "assign", "call"})
"""Statements that do something, or hold others."""


@dataclass(slots=True, eq=False)
class Node:
    """A node of the tree; ``cursor`` is only for spans and declarations."""

    kind: Kind
    cursor: Any
    type: CType
    children: list[Node] = field(default_factory=list)
    op: str = ""
    name: str = ""
    value: int | float | None = None
    declaration: Any = None
    implicit: bool = False
    is_inlined: bool = False  # of the body of a function; it stands where that is called

    @property
    def offsets(self) -> tuple[int, int]:
        """Byte offsets ``[start, end)`` in the main file, macros not expanded."""
        extent = self.cursor.extent
        return extent.start.offset, extent.end.offset

    def preorder(self) -> Iterator[Node]:
        """Walk the subtree, parents first, in source order; no recursion."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(node.children))

    def parts(self, *kinds: Kind) -> Iterator[Node]:
        """Yield the nodes of some kinds in the subtree, parents first, in source order."""
        return (node for node in self.preorder() if node.kind in kinds)

    def has(self, *kinds: Kind) -> bool:
        """Return whether a node of some kinds is in the subtree."""
        return any(self.parts(*kinds))

    def is_binary(self, *operators: str) -> bool:
        """Return whether the node applies one of some binary operators."""
        return self.kind == "binary" and self.op in operators

    def names(self, declaration: Any) -> int:
        """Return how often the subtree names a variable."""
        return sum(declaration == node.declaration for node in self.parts("name"))


def unconverted(node: Node, *, explicit: bool = False) -> Node:
    """Return what C converts by itself, or what is converted ``explicit``ly too."""
    while node.kind == "cast" and (node.implicit or explicit):
        node = node.children[0]
    return node


def chain(node: Node, operator: str) -> list[Node]:
    """Return the operands of a chain of one operator along its left spine, without recursion."""
    found = []
    while node.is_binary(operator):
        found.append(node.children[1])
        node = node.children[0]
    return [node, *reversed(found)]


def read_tree(cursor: Any) -> Node:
    """Read a statement or expression.

    Parentheses, and conversions that do not change the scalar type, are left out.
    """
    root: list[Node] = []
    steps = []
    stack: list[tuple[Any, list[Node]]] = [(cursor, root)]
    while stack:
        current, siblings = stack.pop()
        node, children = _read(current)
        if node is None:
            stack.append((children[0], siblings))
            continue
        siblings.append(node)
        stack.extend((child, node.children) for child in reversed(children))
        if node.kind == "assign" and len(children) == 1:
            steps.append(node)
    for step in steps:
        is_narrow = step.type.is_integer and step.type.bits < INT.bits
        step.children.append(number(1, INT if is_narrow else step.type, step.cursor))
    return root[0]


def number(value: int, kind: CType, cursor: Any) -> Node:
    """Return a number in the type in which operands of a type are computed."""
    if kind.element is ElementType.HALF:
        return Node("float", cursor, FLOAT, value=float(value))
    return converted(Node("int", cursor, INT, value=value), kind)


def converted(node: Node, kind: CType) -> Node:
    """Return a value as one of a type."""
    is_same = node.type.element is kind.element
    return node if is_same else Node("cast", node.cursor, kind, [node], implicit=True)


def _read(cursor: Any) -> tuple[Node | None, list[Any]]:
    """Return the node of a cursor, or ``None`` if its only child stands for it.

    What comes with it are the cursors of its children.
    """
    clang_kind, children = cursor.kind, clang.children(cursor)
    if clang_kind is CursorKind.PAREN_EXPR and len(children) == 1:
        return None, children
    if clang_kind is CursorKind.UNEXPOSED_EXPR:
        return _read_unexposed(cursor, children)
    if clang_kind in _OPERATIONS:
        return _read_operation(cursor), children
    is_constant = clang_kind is CursorKind.CALL_EXPR and cursor.spelling in _CONSTANTS
    kind: Kind = "float" if is_constant else _KINDS.get(clang_kind, "other")
    node = Node(kind, cursor, NO_TYPE if clang_kind.is_statement() else type_of(cursor.type))
    is_size = clang_kind is CursorKind.CXX_UNARY_EXPR  # sizeof and its like
    if is_size or kind in ("int", "float"):
        node.value = clang.evaluate(cursor)
        if is_size and isinstance(node.value, int):
            node.kind = "int"
        elif node.value is None and not is_size:
            node.kind = "broken"
        return node, children if node.kind == "other" else []
    return node, _filled(node, cursor, children)


def _filled(node: Node, cursor: Any, children: list[Any]) -> list[Any]:
    """Set what a node of its kind has; return the cursors of its children."""
    if node.kind == "name":
        node.name, node.declaration = cursor.spelling, cursor.referenced
        if node.declaration is not None and node.declaration.kind is CursorKind.ENUM_CONSTANT_DECL:
            node.kind, node.value = "int", int(node.declaration.enum_value)
        return []
    if node.kind == "call":
        node.name = cursor.spelling
    elif node.kind == "variable":
        node.name, node.declaration = cursor.spelling, cursor
        end = cursor.extent.end.offset  # an initialiser ends its declaration, a size does not
        last = [one for one in children[-1:] if one.kind.is_expression()]
        return [one for one in last if one.extent.end.offset == end]
    return children[-1:] if node.kind == "cast" else children  # a TYPE_REF may come first


def _read_unexposed(cursor: Any, children: list[Any]) -> tuple[Node | None, list[Any]]:
    if len(children) != 1 or cursor.type.kind is TypeKind.DEPENDENT:
        # clang gave up on the expression, perhaps because of the declaration of a name
        every = (one for child in children for one in child.walk_preorder())
        invalid = (
            str(one.spelling)
            for one in every
            if one.kind is CursorKind.DECL_REF_EXPR
            and one.referenced is not None
            and clang.is_invalid(one.referenced)
        )
        return Node("broken", cursor, NO_TYPE, name=next(invalid, "")), []
    if cursor.type.kind is children[0].type.kind:
        return None, children
    target, source = type_of(cursor.type), type_of(children[0].type)
    if target == source or not (target.is_arithmetic and source.is_arithmetic):
        return None, children
    return Node("cast", cursor, target, implicit=True), children


_OPERATIONS = (
    CursorKind.BINARY_OPERATOR, CursorKind.COMPOUND_ASSIGNMENT_OPERATOR, CursorKind.UNARY_OPERATOR,
)  # fmt: skip


def _read_operation(cursor: Any) -> Node:
    is_unary = cursor.kind is CursorKind.UNARY_OPERATOR
    operator = clang.operator(cursor)
    kind: Kind = "unary" if is_unary else "binary"
    if operator is None:
        kind, operator = "other", ""
    elif is_unary and operator in ("&", "*"):
        kind, operator = "address" if operator == "&" else "dereference", ""
    elif operator in ("++", "--"):
        kind, operator = "assign", operator[0]
    elif operator[-1] == "=" and operator not in ("<=", ">=", "==", "!="):
        kind, operator = "assign", operator[:-1]
    return Node(kind, cursor, type_of(cursor.type), op=operator)


# -- calls -------------------------------------------------------------------------------------
# Which function a call calls, and what stands for a call of a function of the file.


_MOST_CALLS, _MOST_NODES = 100, 20_000
_EFFECTS: tuple[Kind, ...] = ("assign", "address", "broken", "other")


def inlined(nodes: list[Node], depth: int = 0) -> list[Node]:
    """Return statements with what a function of the file returns in the place of its calls.

    clang has converted the arguments to the types of the parameters, and what is returned to the
    type of the call. ``depth`` calls are around them: Python's own limit must not be met within
    libclang, which then returns some of the children.

    Raises:
        RecursionError: It has no end, or is far too large.
    """
    if depth > _MOST_CALLS:
        raise RecursionError
    for node in reversed([part for root in nodes for part in root.preorder()]):
        node.children = [_returned_by(child, depth) or child for child in node.children]
    return nodes


def _returned_by(call: Node, depth: int) -> Node | None:
    """Return what a call returns; ``None`` where that is not known."""
    definition = _definition(call.children[0]) if call.kind == "call" else None
    if definition is None:
        return None
    body = read_tree(clang.children(definition)[-1]).children
    if len(body) != 1 or body[0].kind != "return" or len(body[0].children) != 1:
        return None
    (value,) = body[0].children
    parameters, arguments = list(definition.get_arguments()), call.children[1:]
    functions = [one.children[0] for one in value.parts("call")]
    used = {name.declaration for name in value.parts("name") if name not in functions}
    if (
        len(parameters) != len(arguments)
        or not used <= {*parameters}
        or value.has(*_EFFECTS)
        or value.type != call.type
        or not all(map(_takes, parameters, arguments, map(used.__contains__, parameters)))
    ):
        return None
    copy = _copied(value, dict(zip(parameters, arguments, strict=True)), call.cursor)
    if sum(1 for _ in copy.preorder()) > _MOST_NODES:
        raise RecursionError
    (holder,) = inlined([Node("compound", call.cursor, NO_TYPE, [copy])], depth + 1)
    return holder.children[0]


def _copied(node: Node, given: Mapping[Any, Node], place: Any = None) -> Node:
    """Return a copy with what is ``given`` for variables in the place of their names.

    It stands at ``place``; literals stay where they are, as their text says what they are.
    """
    if node.kind == "name" and node.declaration in given:
        return _copied(given[node.declaration], {})
    found = replace(node, children=[_copied(one, given, place) for one in node.children])
    if place is not None and node.kind not in ("int", "float"):
        found.cursor, found.is_inlined = place, True
    return found


def _takes(parameter: Any, argument: Node, is_used: bool) -> bool:
    """Return whether an argument may stand for a parameter wherever a value names it."""
    return (
        argument.type.is_arithmetic
        and type_of(parameter.type) == argument.type
        and not argument.has(*_EFFECTS)
        and (is_used or not argument.has("call"))
    )


def _definition(callee: Node) -> Any:
    """Return the definition of a function that the file defines, or ``None``."""
    declaration = callee.declaration if callee.kind == "name" else None
    if declaration is None or declaration.kind is not CursorKind.FUNCTION_DECL:
        return None
    return declaration.get_definition()
