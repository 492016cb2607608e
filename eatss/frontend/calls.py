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


def inlined(nodes: list[Node]) -> list[Node]:
    """Return statements with what a function of the file returns in the place of its calls.

    clang has converted the arguments to the types of the parameters, and what is returned to the
    type of the call.

    Raises:
        RecursionError: It has no end.
    """
    _Inliner().replace(nodes)
    return nodes


class _Inliner:
    def __init__(self) -> None:
        self._added = 0

    def replace(self, roots: Sequence[Node]) -> None:
        """Replace the calls below some nodes, the innermost first."""
        for node in reversed([part for root in roots for part in root.preorder()]):
            node.children = [self._value(child) or child for child in node.children]

    def _value(self, call: Node) -> Node | None:
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
        copy = self._copy(value, dict(zip(parameters, arguments, strict=True)), call.cursor)
        holder = Node("compound", call.cursor, NO_TYPE, [copy])
        self.replace([holder])
        return holder.children[0]

    def _copy(self, node: Node, given: Mapping[Any, Node], place: Any = None) -> Node:
        """Return a copy with what is ``given`` for variables in the place of their names.

        It stands at ``place``; literals stay where they are, as their text says what they are.
        """
        self._added += 1
        if self._added > _MAX_NODES:
            raise RecursionError
        if node.kind == "name" and node.declaration in given:
            return self._copy(given[node.declaration], {})
        found = replace(node, children=[self._copy(one, given, place) for one in node.children])
        if place is not None and node.kind not in _TEXTUAL:
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
