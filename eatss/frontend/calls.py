"""Which function a call calls, and what stands for a call of a function of the file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from eatss.frontend import clang
from eatss.frontend.clang import NO_TYPE, CursorKind, type_of
from eatss.frontend.declarations import Shape, shape_of
from eatss.frontend.tree import ELEMENTS, WRITES, Kind, Node, read_tree

_MAX_NODES = 20_000
_EFFECTS: frozenset[Kind] = WRITES | {"address", "broken", "other"}
_MEMORY = ELEMENTS | {"member", "call"}
_TEXTUAL = frozenset({"int", "float", "variable"})
_FIRST_STATEMENT = {"compound": 0, "if": 1, "for": 3, "label": 0}
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


def inlined(nodes: Sequence[Node], function: Any) -> list[Node]:
    """Return statements with what a function of the file returns in the place of its calls.

    clang has converted the arguments to the types of the parameters, and what is returned to the
    type of the call. A call that is a statement stands for those of a function without ``return``,
    or for nothing.

    Args:
        nodes: The statements of a region.
        function: The function around them, which may hide variables of the file.
    """
    return _Inliner(function).statements(nodes)


class _Inliner:
    def __init__(self, function: Any) -> None:
        self._function = function
        self._hidden: frozenset[str] | None = None
        self._added = 0
        self._open: list[int] = []

    def statements(self, nodes: Sequence[Node]) -> list[Node]:
        root = Node("compound", self._function, NO_TYPE, list(nodes))
        self._replace(root)
        return root.children

    def _replace(self, root: Node) -> None:
        """Replace the calls below a node, the innermost first."""
        for node in reversed(list(root.preorder())):
            first = _FIRST_STATEMENT.get(node.kind, len(node.children))
            for at, child in enumerate(node.children):
                found = self._value(child) if child.kind == "call" else None
                if child.kind == "call" and at >= first:
                    idle = Node("empty", child.cursor, NO_TYPE)
                    found = self._statements(child) if found is None else idle
                node.children[at] = found or child

    def _value(self, call: Node) -> Node | None:
        """Return what a call returns; ``None`` where that is not known."""
        definition = _definition(call.children[0])
        if definition is None:
            return None
        body = read_tree(clang.children(definition)[-1])
        if body.has(*_EFFECTS):
            return None
        value = self._returned(body.children, {})
        if value is None or value.type != call.type or _called(body) != _called(value):
            return None  # what nobody takes may have an effect
        return self._in_place_of(call, value, definition)

    def _statements(self, call: Node) -> Node | None:
        """Return the statements of a function that is called; ``None`` where they are not known.

        What is given for a parameter has to keep its value meanwhile.
        """
        definition = _definition(call.children[0])
        if definition is None:
            return None
        body = read_tree(clang.children(definition)[-1])
        last = body.children[-1:]
        if last and last[0].kind == "return" and not last[0].children:
            body.children.pop()
        parts = list(body.preorder())
        given = [node for argument in call.children[1:] for node in _evaluated(argument)]
        has_array = any(part.kind == "variable" and not part.type.is_arithmetic for part in parts)
        if has_array or body.has("return", "goto", "label"):
            return None
        if any(node.kind in _MEMORY for node in given):
            return None
        targets = (part.children[0] for part in parts if part.kind in WRITES)
        written = {target.declaration.hash for target in targets if target.kind == "name"}
        fixed = {node.declaration.hash for node in given if node.kind == "name"}
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
        inside = [self._with(body, given, call.cursor)]
        holder = Node("compound", call.cursor, NO_TYPE, inside)
        self._open.append(definition.hash)
        self._replace(holder)
        self._open.pop()
        return holder.children[0]

    def _returned(self, statements: list[Node], values: Mapping[int, Node]) -> Node | None:
        """Return what statements yield that only declare, choose and return.

        Args:
            statements: The statements.
            values: What the variables hold that were declared before, by their declarations.
        """
        while statements and statements[0].kind == "compound":
            statements = statements[0].children
        if not statements:
            return None
        first, *others = statements
        if first.kind == "return" and len(first.children) == 1:
            return self._with(first.children[0], values)
        if first.kind == "declarations" and all(map(_is_value, first.children)):
            for variable in first.children:
                value = self._with(variable.children[0], values)
                values = {**values, variable.declaration.hash: value}
            return self._returned(others, values)
        return self._chosen(first, others, values) if first.kind == "if" else None

    def _chosen(self, first: Node, others: list[Node], values: Mapping[int, Node]) -> Node | None:
        """Return what an ``if`` and the statements behind it yield."""
        test, *arms = first.children
        if_true = self._returned([arms[0]], values)
        if_false = self._returned([arms[1]] if len(arms) > 1 else others, values)
        if if_true is None or if_false is None or if_true.type != if_false.type:
            return None
        return replace(
            first,
            kind="conditional",
            type=if_true.type,
            children=[self._with(test, values), if_true, if_false],
        )

    def _sees(self, body: Node, parameters: Sequence[Any]) -> bool:
        """Return whether a body that stands at a call names what it names in its function."""
        own = {parameter.hash for parameter in parameters}
        own |= {n.declaration.hash for n in body.parts("variable")}
        if self._hidden is None:
            self._hidden = frozenset(
                cursor.spelling
                for cursor in clang.below(self._function)
                if cursor.kind in (CursorKind.VAR_DECL, CursorKind.PARM_DECL)
            )
        return not any(
            name in self._hidden and (variable is None or variable.hash not in own)
            for name, variable in map(_variable_named, body.preorder())
        )

    def _take(self, parameters: Sequence[Any], arguments: Sequence[Node], value: Node) -> bool:
        """Return whether arguments may stand for the parameters wherever a value names them."""
        if len(parameters) != len(arguments):
            return False
        used = {clang.variable_of(n.declaration).hash for n in value.parts("name")}
        for parameter, argument in zip(parameters, arguments, strict=True):
            kinds = {node.kind for node in _evaluated(argument)}
            if kinds & _EFFECTS or (parameter.hash not in used and "call" in kinds):
                return False
            wanted = shape_of(parameter)
            if not wanted.sizes and type_of(parameter.type) != argument.type:
                return False
            if wanted.sizes and not _names_rows(argument, wanted):
                return False
        return True

    def _with(self, node: Node, given: Mapping[int, Node], place: Any = None) -> Node:
        """Return a copy with what is given in the place of names.

        Args:
            node: What to copy.
            given: What stands for variables, by their declarations.
            place: The call at which the copy stands; literals and declarations stay where they are,
                as their text says what they are.
        """
        self._added += 1
        if self._added > _MAX_NODES:
            raise RecursionError
        if node.kind == "name" and node.declaration.hash in given:
            return self._with(given[node.declaration.hash], {})
        children = [self._with(child, given, place) for child in node.children]
        found = replace(node, children=children)
        if isinstance(node.declaration, clang.Member) and node.declaration.base.hash in given:
            found = _member_of(node, given[node.declaration.base.hash])
        if place is not None and node.kind not in _TEXTUAL:
            found.cursor, found.is_inlined = place, True
        return _element_of_address(found)


def _is_value(variable: Node) -> bool:
    """Return whether a declaration gives a plain variable a value."""
    return (
        variable.kind == "variable"
        and variable.type.is_arithmetic
        and len(variable.children) == 1
        and clang.is_automatic(variable.cursor)
    )


def _element_of_address(node: Node) -> Node:
    """Return ``a[i + j]`` for ``(&a[i])[j]``, and ``a[i]`` for ``*&a[i]``; else the node."""
    if node.kind not in ELEMENTS:
        return node
    address, *index = node.children
    if address.kind != "address" or address.children[0].kind != "subscript":
        return node
    element = address.children[0]
    if not index:
        return element
    array, first = element.children
    wider = max(first.type, index[0].type, key=lambda one: one.bits)
    terms = [first, *index]
    total = Node("binary", node.cursor, wider, terms, op="+", is_inlined=True)
    return replace(node, children=[array, total])


def _variable_named(node: Node) -> tuple[str, Any]:
    if node.kind != "name" or node.declaration is None:
        return node.name * (node.kind == "name"), None
    variable = clang.variable_of(node.declaration)
    return variable.spelling, variable


def _member_of(node: Node, structure: Node) -> Node:
    """Return a member of a parameter as one of the structure that is given for it."""
    if structure.kind != "name" or isinstance(structure.declaration, clang.Member):
        return replace(node, kind="member", declaration=None)
    member = clang.Member.of(node.declaration, structure.declaration, node.declaration.path)
    return replace(node, declaration=member, name=member.spelling)


def _evaluated(argument: Node) -> Iterator[Node]:
    """Yield the nodes of an argument whose values it takes: of ``&a[i]``, not the element."""
    if argument.kind == "address" and argument.children[0].kind == "subscript":
        argument = argument.children[0].children[1]
    return argument.preorder()


def _called(node: Node) -> set[str]:
    return {part.name for part in node.parts("call")}


def _definition(callee: Node) -> Any:
    """Return the definition of a function that the file defines, or ``None``."""
    declaration = callee.declaration if callee.kind == "name" else None
    if declaration is None or declaration.kind is not CursorKind.FUNCTION_DECL:
        return None
    return declaration.get_definition()


def _names_rows(argument: Node, wanted: Shape) -> bool:
    """Return whether subscripts of a pointer name the same elements of what is given for it.

    Sizes that are no numbers are equal where the program is defined (C99 6.7.5.2p6).
    """
    if argument.kind == "address" and argument.children[0].kind == "subscript":
        array, index = argument.children[0].children
        is_plain = array.kind == "name" and index.type.is_integer
        return is_plain and len(wanted.sizes) == 1 and _names_rows(array, wanted)
    if argument.kind != "name" or argument.declaration is None:
        return False
    found = shape_of(argument.declaration)
    return (
        wanted.element == found.element
        and len(wanted.sizes) == len(found.sizes)
        and not (wanted.pointer_to_pointer or found.pointer_to_pointer)
        and all(
            one == other or not (isinstance(one, int) and isinstance(other, int))
            for one, other in zip(wanted.sizes[1:], found.sizes[1:], strict=True)
        )
    )
