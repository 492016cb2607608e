"""Which function a call calls, and what stands for a call of a function of the file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from eatss.frontend import clang
from eatss.frontend.clang import NO_TYPE, CursorKind, type_of
from eatss.frontend.tree import WRITES, Kind, Node, read_tree

_MAX_NODES = 20_000
_EFFECTS: frozenset[Kind] = WRITES | {"address", "broken", "other"}
_TEXTUAL = frozenset({"int", "float"})


def inlined(nodes: Sequence[Node], function: Any) -> list[Node]:
    """Return statements with what a function of the file returns in the place of its calls.

    clang has converted the arguments to the types of the parameters, and what is returned to the
    type of the call.

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
            for at, child in enumerate(node.children):
                if child.kind == "call":
                    node.children[at] = self._value(child) or child

    def _value(self, call: Node) -> Node | None:
        """Return what a call returns; ``None`` where that is not known."""
        definition = _definition(call.children[0])
        if definition is None:
            return None
        body = read_tree(clang.children(definition)[-1]).children
        if len(body) != 1 or body[0].kind != "return" or len(body[0].children) != 1:
            return None
        (value,) = body[0].children
        parameters, arguments = list(definition.get_arguments()), call.children[1:]
        if (
            value.has(*_EFFECTS)
            or value.type != call.type
            or definition.hash in self._open
            or not self._sees(value, parameters)
            or not _take(parameters, arguments, value)
        ):
            return None
        given = dict(zip((p.hash for p in parameters), arguments, strict=True))
        holder = Node("compound", call.cursor, NO_TYPE, [self._with(value, given, call.cursor)])
        self._open.append(definition.hash)
        self._replace(holder)
        self._open.pop()
        return holder.children[0]

    def _sees(self, value: Node, parameters: Sequence[Any]) -> bool:
        """Return whether a value that stands at a call names what it names in its function."""
        own = {parameter.hash for parameter in parameters}
        if self._hidden is None:
            self._hidden = frozenset(
                cursor.spelling
                for cursor in clang.below(self._function)
                if cursor.kind in (CursorKind.VAR_DECL, CursorKind.PARM_DECL)
            )
        return not any(
            one.name in self._hidden
            and (one.declaration is None or one.declaration.hash not in own)
            for one in value.parts("name")
        )

    def _with(self, node: Node, given: Mapping[int, Node], place: Any = None) -> Node:
        """Return a copy with what is given in the place of names.

        Args:
            node: What to copy.
            given: What stands for variables, by their declarations.
            place: The call at which the copy stands; literals stay where they are, as their text
                says what they are.
        """
        self._added += 1
        if self._added > _MAX_NODES:
            raise RecursionError
        if node.kind == "name" and node.declaration.hash in given:
            return self._with(given[node.declaration.hash], {})
        children = [self._with(child, given, place) for child in node.children]
        found = replace(node, children=children)
        if place is not None and node.kind not in _TEXTUAL:
            found.cursor, found.is_inlined = place, True
        return found


def _take(parameters: Sequence[Any], arguments: Sequence[Node], value: Node) -> bool:
    """Return whether arguments may stand for the parameters wherever a value names them."""
    if len(parameters) != len(arguments):
        return False
    used = {one.declaration.hash for one in value.parts("name")}
    return all(
        argument.type.is_arithmetic
        and type_of(parameter.type) == argument.type
        and not argument.has(*_EFFECTS)
        and (parameter.hash in used or not argument.has("call"))
        for parameter, argument in zip(parameters, arguments, strict=True)
    )


def _definition(callee: Node) -> Any:
    """Return the definition of a function that the file defines, or ``None``."""
    declaration = callee.declaration if callee.kind == "name" else None
    if declaration is None or declaration.kind is not CursorKind.FUNCTION_DECL:
        return None
    return declaration.get_definition()
