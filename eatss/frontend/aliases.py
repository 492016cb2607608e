"""Refuses pointers that visibly may name the memory of another array of the region.

Distinct parameters and distinct global pointers are taken not to overlap (as pet and
PPCG take it, and as ``restrict`` says). But a pointer that the function sets from another array
is followed to where it comes from.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

from eatss.frontend import clang
from eatss.frontend.clang import CursorKind
from eatss.frontend.report import Reporter
from eatss.frontend.signature import Surroundings
from eatss.frontend.symbols import SymbolTable, is_variable
from eatss.frontend.tree import ELEMENTS, Node, read_tree
from eatss.frontend.types import type_of


def check_aliases(
    symbols: SymbolTable,
    surroundings: Surroundings,
    reporter: Reporter,
) -> None:
    """Record a finding for every two arrays of the region that may be the same memory."""
    arrays = [v for v in symbols.variables if v.role != "counter" and v.first_use is not None]
    if not any(a.shape.through_pointer for a in arrays):
        return
    known = [(one, _origins(one.declaration, surroundings)) for one in arrays]
    found = [(one, own, _is_unknown(one.declaration, own, surroundings)) for one, own in known]
    for (first, own, is_lost), (second, others, is_other_lost) in combinations(found, 2):
        if first.first_write is None and second.first_write is None:
            continue
        if (
            any(a == b for a in own for b in others)
            or (is_lost and not second.is_scalar)
            or (is_other_lost and not first.is_scalar)
        ):
            assert second.first_use is not None
            reporter.error(
                "EATSS-F027",
                second.first_use,
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


def _is_pointer(declaration: Any) -> bool:
    return type_of(declaration.type).kind == "pointer"


def _values_of(pointer: Any, surroundings: Surroundings) -> list[Node]:
    """Return what the function and the declaration of a pointer set it to."""
    assigned = surroundings.assigned
    values = [v for target, v, _ in assigned if v is not None and target == pointer]
    tree = read_tree(pointer)
    return [*values, *(tree.children[:1] if tree.kind == "variable" else [])]


def _origins(declaration: Any, surroundings: Surroundings) -> list[Any]:
    """Return the declaration and all that its value may come from."""
    found: list[Any] = []
    todo = [declaration]
    while todo:
        current = todo.pop()
        if any(current == known for known in found):
            continue
        found.append(current)
        if _is_pointer(current):
            for value in _values_of(current, surroundings):
                todo.extend(_pointers_in(value))
    return found


def _is_unknown(declaration: Any, origins: list[Any], surroundings: Surroundings) -> bool:
    """Return whether a pointer may hold an address that cannot be followed.

    Such as one loaded from memory, returned by a function that does not allocate, or
    set through a pointer to the pointer. ``restrict`` says that it is alone.
    """
    if declaration.type.is_restrict_qualified():
        return False
    pointers = [one for one in origins if _is_pointer(one)]
    if pointers and isinstance(declaration, clang.Member):
        # may come with a whole structure
        return declaration.kind is CursorKind.VAR_DECL
    addressed = surroundings.addressed
    return any(
        any(taken == pointer and not is_argument for taken, is_argument in addressed)
        or any(map(_is_opaque, _values_of(pointer, surroundings)))
        for pointer in pointers
    )


def _pointers_in(value: Node) -> list[Any]:
    """Return the arrays and pointers an expression takes addresses from."""
    found: list[Any] = []
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
