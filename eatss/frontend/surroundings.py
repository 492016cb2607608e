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
    ``--``) and the offset of each.
    """

    def __init__(self, placed: PlacedRegion, types: TypeTable) -> None:
        self.assigned: list[tuple[Any, Node | None, int]] = []
        region = placed.region
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
        for node in body.preorder():
            at = node.offsets[0] if node.kind in _WRITES else 0
            if node.kind is NodeKind.VARIABLE and node.children:
                self.assigned.append((node.declaration, node.children[0], at))
            elif node.kind in (NodeKind.ASSIGN, NodeKind.STEP):
                target = node.children[0]
                if target.kind is NodeKind.NAME:
                    value = node.children[1] if node.kind is NodeKind.ASSIGN else None
                    self.assigned.append((target.declaration, value, at))


_WRITES = frozenset({NodeKind.VARIABLE, NodeKind.ASSIGN, NodeKind.STEP})


def check_sizes(symbols: SymbolTable, surroundings: Surroundings, reporter: Reporter) -> None:
    """Refuse arrays whose size was fixed before one of its variables got another value."""
    for array in symbols.variables:
        declared = array.declaration.location.offset
        for size in array.shape.sizes:
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


def _named(size: int | Node | None, symbols: SymbolTable) -> list[Variable]:
    if not isinstance(size, Node):
        return []
    found = (symbols.of(node) for node in size.preorder() if node.kind is NodeKind.NAME)
    return [variable for variable in found if variable is not None]
