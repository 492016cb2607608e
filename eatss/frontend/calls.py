"""Which function a call calls, and what stands for a call of a function of the file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from eatss.frontend import clang
from eatss.frontend.kinds import CursorKind
from eatss.frontend.shapes import Shape, shape_of
from eatss.frontend.tree import Node, NodeKind, read_tree
from eatss.frontend.types import TypeTable

_MAX_NODES = 20_000
_EFFECTS = frozenset(
    {NodeKind.ASSIGN, NodeKind.STEP, NodeKind.ADDRESS, NodeKind.BROKEN, NodeKind.OTHER}
)
_WRITES = (NodeKind.ASSIGN, NodeKind.STEP)
_LEAVING = frozenset({NodeKind.RETURN, NodeKind.GOTO, NodeKind.LABEL})
_MEMORY = frozenset({NodeKind.SUBSCRIPT, NodeKind.DEREFERENCE, NodeKind.MEMBER, NodeKind.CALL})
_FIRST_STATEMENT = {NodeKind.COMPOUND: 0, NodeKind.IF: 1, NodeKind.FOR: 3, NodeKind.LABEL: 0}
"""At which child the statements of a statement begin."""


def is_library_function(callee: Node) -> bool:
    """Return whether a name stands for a function whose body is not in the file.

    Only then does the name say what the function does; a pointer of that name, or a
    function that the file defines, may do anything.
    """
    declaration = callee.declaration
    return (
        declaration is not None
        and declaration.kind is CursorKind.FUNCTION_DECL
        and declaration.get_definition() is None
    )


def why_not_inlined(callee: Node) -> tuple[str, str]:
    """Return why a call is no value, and a hint."""
    name = callee.name or "a function"
    if _definition(callee) is not None:
        return (
            f"call of '{name}', which stands for no single expression here",
            "write its body as one return without assignments and recursion, whose variables of "
            "the file are not hidden where it is called; or as a macro",
        )
    return (
        f"call of '{name}' may have side effects",
        "call only mathematical functions such as sqrt, exp or fmax, and functions of the file "
        "that are one return",
    )


def inlined(nodes: Sequence[Node], function: Any, types: TypeTable) -> list[Node]:
    """Return statements with what a function of the file returns in the place of its calls.

    clang has converted the arguments to the types of the parameters, and what is returned to the
    type of the call. A call that is a statement stands for those of a function without ``return``,
    or for nothing.

    Args:
        nodes: The statements of a region.
        function: The function around them, which may hide variables of the file.
        types: The types of C.
    """
    return _Inliner(function, types).statements(nodes)


class _Inliner:
    def __init__(self, function: Any, types: TypeTable) -> None:
        self._function = function
        self._types = types
        self._hidden: frozenset[str] | None = None
        self._added = 0
        self._open: list[int] = []

    def statements(self, nodes: Sequence[Node]) -> list[Node]:
        root = Node(NodeKind.COMPOUND, self._function, self._types.none)
        root.children = list(nodes)
        self._replace(root)
        return root.children

    def _replace(self, root: Node) -> None:
        """Replace the calls below a node, the innermost first."""
        for node in reversed(list(root.preorder())):
            first = _FIRST_STATEMENT.get(node.kind, len(node.children))
            for at, child in enumerate(node.children):
                found = self._value(child) if child.kind is NodeKind.CALL else None
                if child.kind is NodeKind.CALL and at >= first:
                    idle = Node(NodeKind.EMPTY, child.cursor, self._types.none)
                    found = self._statements(child) if found is None else idle
                node.children[at] = found or child

    def _value(self, call: Node) -> Node | None:
        """Return what a call returns; ``None`` where that is not known."""
        definition = _definition(call.children[0])
        value = None if definition is None else _returned_by(definition, self._types)
        if value is None or value.type != call.type:
            return None
        if any(node.kind in _EFFECTS for node in value.preorder()):
            return None
        return self._in_place_of(call, value, definition)

    def _statements(self, call: Node) -> Node | None:
        """Return the statements of a function that is called; ``None`` where they are not known.

        What is given for a parameter has to keep its value meanwhile.
        """
        definition = _definition(call.children[0])
        if definition is None:
            return None
        body = read_tree(clang.children(definition)[-1], self._types)
        if body.children and _is_plain_return(body.children[-1]):
            body.children.pop()
        parts = list(body.preorder())
        given = [node for argument in call.children[1:] for node in argument.preorder()]
        if any(part.kind in _LEAVING or _is_array(part) for part in parts):
            return None
        if any(node.kind in _MEMORY for node in given):
            return None
        targets = (part.children[0] for part in parts if part.kind in _WRITES)
        written = {target.declaration.hash for target in targets if target.kind is NodeKind.NAME}
        fixed = {node.declaration.hash for node in given if node.kind is NodeKind.NAME}
        if written & (fixed | {parameter.hash for parameter in definition.get_arguments()}):
            return None
        return self._in_place_of(call, body, definition)

    def _in_place_of(self, call: Node, body: Node, definition: Any) -> Node | None:
        arguments = call.children[1:]
        parameters = list(definition.get_arguments())
        if definition.hash in self._open or not self._sees(body, parameters):
            return None
        if not self._take(parameters, arguments, body):
            return None
        given = dict(zip((p.hash for p in parameters), arguments, strict=True))
        holder = Node(NodeKind.COMPOUND, call.cursor, self._types.none)
        holder.children = [self._with(body, given, call.cursor)]
        self._open.append(definition.hash)
        self._replace(holder)
        self._open.pop()
        return holder.children[0]

    def _sees(self, body: Node, parameters: Sequence[Any]) -> bool:
        """Return whether a body that stands at a call names what it names in its function."""
        own = {parameter.hash for parameter in parameters}
        own |= {n.declaration.hash for n in body.preorder() if n.kind is NodeKind.VARIABLE}
        if self._hidden is None:
            self._hidden = frozenset(_declared_in(self._function))
        return not any(
            node.kind is NodeKind.NAME
            and (node.declaration is None or node.declaration.hash not in own)
            and node.name in self._hidden
            for node in body.preorder()
        )

    def _take(self, parameters: Sequence[Any], arguments: Sequence[Node], value: Node) -> bool:
        """Return whether arguments may stand for the parameters wherever a value names them."""
        if len(parameters) != len(arguments):
            return False
        used = {n.declaration.hash for n in value.preorder() if n.kind is NodeKind.NAME}
        for parameter, argument in zip(parameters, arguments, strict=True):
            kinds = {node.kind for node in argument.preorder()}
            if kinds & _EFFECTS or (parameter.hash not in used and NodeKind.CALL in kinds):
                return False
            wanted = shape_of(parameter, self._types)
            if not wanted.sizes and self._types.of(parameter.type) != argument.type:
                return False
            if wanted.sizes and not _names_rows(argument, wanted, self._types):
                return False
        return True

    def _with(self, node: Node, given: Mapping[int, Node], place: Any) -> Node:
        """Return a copy with arguments in the place of parameters; it stands at the call.

        Literals and declarations stay where they are, as their text says what they are.
        """
        if node.kind is NodeKind.NAME and node.declaration.hash in given:
            return self._copy(given[node.declaration.hash])
        self._count()
        children = [self._with(child, given, place) for child in node.children]
        if node.kind in (NodeKind.INT, NodeKind.FLOAT, NodeKind.VARIABLE):
            return replace(node, children=children)
        return replace(node, children=children, cursor=place, is_inlined=True)

    def _copy(self, node: Node) -> Node:
        self._count()
        return replace(node, children=[self._copy(child) for child in node.children])

    def _count(self) -> None:
        self._added += 1
        if self._added > _MAX_NODES:
            raise RecursionError


def _is_plain_return(node: Node) -> bool:
    return node.kind is NodeKind.RETURN and not node.children


def _is_array(node: Node) -> bool:
    return node.kind is NodeKind.VARIABLE and not node.type.is_arithmetic


def _declared_in(function: Any) -> Iterator[str]:
    todo = [function]
    while todo:
        for child in clang.children(todo.pop()):
            todo.append(child)
            if child.kind in (CursorKind.VAR_DECL, CursorKind.PARM_DECL):
                yield child.spelling


def _definition(callee: Node) -> Any:
    """Return the definition of a function that the file defines, or ``None``."""
    declaration = callee.declaration if callee.kind is NodeKind.NAME else None
    if declaration is None or declaration.kind is not CursorKind.FUNCTION_DECL:
        return None
    return declaration.get_definition()


def _names_rows(argument: Node, wanted: Shape, types: TypeTable) -> bool:
    """Return whether subscripts of a pointer name the same elements of what is given for it.

    Sizes that are no numbers are equal where the program is defined (C99 6.7.5.2p6).
    """
    if argument.kind is not NodeKind.NAME or argument.declaration is None:
        return False
    found = shape_of(argument.declaration, types)
    return (
        wanted.element == found.element
        and len(wanted.sizes) == len(found.sizes)
        and not (wanted.pointer_to_pointer or found.pointer_to_pointer)
        and all(
            one == other or not (isinstance(one, int) and isinstance(other, int))
            for one, other in zip(wanted.sizes[1:], found.sizes[1:], strict=True)
        )
    )


def _returned_by(definition: Any, types: TypeTable) -> Node | None:
    """Return the expression of a function that does nothing but return it."""
    body = clang.children(definition)[-1]
    return _returned(read_tree(body, types).children)


def _returned(statements: list[Node]) -> Node | None:
    """Return the expression that a list of ``if`` and ``return`` statements yields."""
    if not statements:
        return None
    first = statements[0]
    if first.kind is NodeKind.COMPOUND:
        return _returned(first.children)
    if first.kind is NodeKind.RETURN and len(first.children) == 1:
        return first.children[0]
    if first.kind is NodeKind.IF:
        test, *arms = first.children
        if_true = _returned([arms[0]])
        if_false = _returned([arms[1]] if len(arms) > 1 else statements[1:])
        if if_true is None or if_false is None or if_true.type != if_false.type:
            return None
        choice = Node(NodeKind.CONDITIONAL, first.cursor, if_true.type)
        choice.children = [test, if_true, if_false]
        return choice
    return None
