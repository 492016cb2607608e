"""Refuses pointers that visibly may name the memory of another array of the region.

Distinct parameters and distinct global pointers are taken not to overlap (as pet and
PPCG take it, and as ``restrict`` says). But a pointer that the function sets from another array
is followed to where it comes from.
"""

from __future__ import annotations

from typing import Any

from eatss.frontend import clang
from eatss.frontend.clang import CursorKind
from eatss.frontend.report import Reporter
from eatss.frontend.signature import Surroundings
from eatss.frontend.symbols import SymbolTable, is_variable
from eatss.frontend.tree import ELEMENTS, Node, read_tree
from eatss.frontend.types import type_of

_Origins = list[Any]


def check_aliases(
    symbols: SymbolTable,
    surroundings: Surroundings,
    reporter: Reporter,
) -> None:
    """Record a finding for every two arrays of the region that may be the same memory."""
    arrays = [v for v in symbols.variables if v.role != "counter" and v.first_use is not None]
    if len(arrays) < 2 or not any(a.shape.through_pointer for a in arrays):
        return
    written = any(a.first_write is not None for a in arrays)
    if not written:
        return
    sources = _Sources(surroundings)
    origins = {array: sources.of(array.declaration) for array in arrays}
    unknown = {array: sources.is_unknown(array.declaration, origins[array]) for array in arrays}
    for position, first in enumerate(arrays):
        for second in arrays[position + 1 :]:
            if first.first_write is None and second.first_write is None:
                continue
            if _overlap(origins[first], origins[second]) or (
                (unknown[first] and not second.is_scalar)
                or (unknown[second] and not first.is_scalar)
            ):
                place = second.first_use or first.first_use
                assert place is not None
                reporter.error(
                    "EATSS-F027",
                    place,
                    f"'{first.name}' and '{second.name}' may be the same memory",
                    "use one name for one array within the region",
                )


def check_counters(symbols: SymbolTable, surroundings: Surroundings, reporter: Reporter) -> None:
    """Refuse counters that can be reached through a pointer, whose value would be observed."""
    for variable in symbols.variables:
        if variable.role != "counter" or variable.first_use is None:
            continue
        if any(variable.declaration == taken for taken, _ in surroundings.addressed):
            reporter.error(
                "EATSS-F027",
                variable.first_use,
                f"the address of counter '{variable.name}' is taken in this function",
                "use a counter of the loop's own: for (int i = 0; ...)",
            )


def _overlap(left: _Origins, right: _Origins) -> bool:
    return any(a == b for a in left for b in right)


class _Sources:
    """From which other variables the pointers of a function and of the file are set."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._assigned = surroundings.assigned
        self._addressed = surroundings.addressed

    def of(self, declaration: Any) -> _Origins:
        """Return the declaration and all that its value may come from."""
        found: _Origins = []
        todo = [declaration]
        while todo:
            current = todo.pop()
            if any(current == known for known in found):
                continue
            found.append(current)
            if type_of(current.type).kind != "pointer":
                continue
            for target, value, _ in self._assigned:
                if value is not None and target == current:
                    todo.extend(_pointers_in(value))
            todo.extend(self._from_initialiser(current))
        return found

    def is_unknown(self, declaration: Any, origins: _Origins) -> bool:
        """Return whether a pointer may hold an address that cannot be followed.

        Such as one loaded from memory, returned by a function that does not allocate, or
        set through a pointer to the pointer. ``restrict`` says that it is alone.
        """
        if declaration.type.is_restrict_qualified():
            return False
        pointers = [o for o in origins if type_of(o.type).kind == "pointer"]
        if pointers and isinstance(declaration, clang.Member):
            return declaration.kind is CursorKind.VAR_DECL  # may come with a whole structure
        for pointer in pointers:
            if any(taken == pointer and not is_argument for taken, is_argument in self._addressed):
                return True
            values = [v for target, v, _ in self._assigned if v is not None and target == pointer]
            tree = read_tree(pointer)
            if tree.kind == "variable":
                values.extend(tree.children[:1])
            if any(_is_opaque(value) for value in values):
                return True
        return False

    def _from_initialiser(self, declaration: Any) -> _Origins:
        """Return what a pointer of file scope is initialised from."""
        tree = read_tree(declaration)
        if tree.kind != "variable" or not tree.children:
            return []
        return _pointers_in(tree.children[0])


def _pointers_in(value: Node) -> _Origins:
    """Return the arrays and pointers an expression takes addresses from."""
    found: _Origins = []
    under_address: set[int] = set()
    for node in value.preorder():
        if node.kind == "address":
            under_address.update(id(inner) for inner in node.preorder())
        if node.kind != "name" or not is_variable(node.declaration):
            continue
        is_address = node.type.kind in ("pointer", "array")
        if is_address or id(node) in under_address:
            found.append(node.declaration)
    return found


def _is_opaque(value: Node) -> bool:
    """Return whether a pointer's value comes from where it cannot be followed."""
    todo = [(value, False)]
    while todo:
        node, is_addressed = todo.pop()
        if node.type.is_integer and not is_addressed:
            continue
        is_pointer = node.type.kind in ("pointer", "array")
        if node.kind == "call":
            if is_pointer and "alloc" not in node.name.lower():
                return True
            continue  # its arguments are sizes
        if node.kind == "member" and (is_pointer or is_addressed):
            return True
        if node.kind in ELEMENTS and node.type.kind == "pointer":
            return True
        if node.kind == "cast" and is_pointer and node.children[0].type.is_integer:
            return node.children[0].kind != "int"
        if node.kind in ("other", "broken") and is_pointer:
            return True
        inside = node.kind == "address"
        todo.extend((child, inside) for child in node.children)
    return False
