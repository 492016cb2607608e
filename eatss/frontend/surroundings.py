"""The code of a function around a region: what it assigns to variables the region uses."""

from __future__ import annotations

from typing import Any

from eatss.frontend import clang
from eatss.frontend.codes import Code
from eatss.frontend.regions import PlacedRegion
from eatss.frontend.report import Reporter
from eatss.frontend.symbols import SymbolTable, Variable
from eatss.frontend.tree import Node, NodeKind, read_tree
from eatss.frontend.types import TypeTable


class Surroundings:
    """The assignments of a function outside a region.

    ``assigned`` holds the declaration of the target, the value (``None`` for ``++`` and
    ``--``) and the offset of each. ``addressed`` holds the variables whose address is taken,
    and whether a function is called with it directly (``scanf("%d", &n)``). ``before`` are the
    statements that stand before the region in its block.
    """

    def __init__(self, placed: PlacedRegion, types: TypeTable) -> None:
        self._types = types
        self.assigned: list[tuple[Any, Node | None, int]] = []
        self.addressed: list[tuple[Any, bool]] = []
        region = placed.region
        self.before = tuple(
            read_tree(child, types)
            for child in clang.children(placed.block)
            if child.extent.end.offset <= region.opening.start
        )
        todo = [placed.function]
        while todo:
            for child in clang.children(todo.pop()):
                extent = child.extent
                first, last = extent.start.offset, extent.end.offset
                if first < region.opening.start and last > region.closing.start:
                    todo.append(child)
                elif last <= region.opening.start or first >= region.closing.start:
                    self._collect(read_tree(child, types))

    def _collect(self, body: Node) -> None:
        arguments: set[int] = set()
        for node in body.preorder():
            at = node.offsets[0] if node.kind in _WRITES else 0
            if node.kind is NodeKind.VARIABLE:
                self._collect_sizes(node)
            if node.kind is NodeKind.VARIABLE and node.children:
                self.assigned.append((node.declaration, node.children[0], at))
            elif node.kind is NodeKind.CALL:
                arguments.update(id(_unconverted(child)) for child in node.children[1:])
            elif node.kind is NodeKind.ADDRESS and node.children[0].kind is NodeKind.NAME:
                declaration = node.children[0].declaration
                self.addressed.append((declaration, id(node) in arguments))
            elif node.kind in (NodeKind.ASSIGN, NodeKind.STEP):
                target = node.children[0]
                if target.kind is NodeKind.NAME:
                    value = node.children[1] if node.kind is NodeKind.ASSIGN else None
                    self.assigned.append((target.declaration, value, at))

    def _collect_sizes(self, variable: Node) -> None:
        for child in clang.children(variable.cursor):
            if child.kind.is_expression():
                self._collect(read_tree(child, self._types))


def _unconverted(node: Node) -> Node:
    while node.kind is NodeKind.CAST:
        node = node.children[0]
    return node


_WRITES = frozenset({NodeKind.VARIABLE, NodeKind.ASSIGN, NodeKind.STEP})


def check_sizes(symbols: SymbolTable, surroundings: Surroundings, reporter: Reporter) -> None:
    """Refuse arrays whose size was fixed before one of its variables got another value."""
    for array in symbols.variables:
        for size in array.shape.sizes:
            declared = array.declaration.location.offset
            if isinstance(size, Node):
                _refuse_effects(array, size, reporter)
                declared = min(declared, size.offsets[0])  # a typedef fixes it where it stands
            for variable in _named(size, symbols):
                changed = any(
                    at > declared and target == variable.declaration
                    for target, _, at in surroundings.assigned
                )
                if changed and array.first_use is not None:
                    reporter.error(
                        Code.STALE_SIZE,
                        array.first_use,
                        f"'{variable.name}' in the size of '{array.name}' is changed after "
                        f"'{array.name}' is declared",
                        "use a variable that keeps its value",
                    )


def _refuse_effects(array: Variable, size: Node, reporter: Reporter) -> None:
    kinds = (NodeKind.ASSIGN, NodeKind.STEP, NodeKind.CALL)
    if any(node.kind in kinds for node in size.preorder()):
        reporter.error(
            Code.SEVERAL_EFFECTS,
            size,
            f"size of '{array.name}' has a side effect or calls a function",
            "use a variable that keeps its value as the size",
        )


def _named(size: int | Node | None, symbols: SymbolTable) -> list[Variable]:
    if not isinstance(size, Node):
        return []
    found = (symbols.of(node) for node in size.preorder() if node.kind is NodeKind.NAME)
    return [variable for variable in found if variable is not None]
