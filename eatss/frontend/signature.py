"""Reads what surrounds a region: the function's parameters, and whether there is other work."""

from __future__ import annotations

from typing import Any

from eatss.frontend import clang
from eatss.frontend.kinds import CursorKind, StorageClass
from eatss.frontend.regions import PlacedRegion
from eatss.frontend.shapes import shape_of
from eatss.frontend.symbols import Role, SymbolTable, Variable
from eatss.frontend.tree import Node, NodeKind, read_tree
from eatss.frontend.types import TypeTable
from eatss.frozen import frozen
from eatss.scops import FunctionParameter, Origin, ParameterDeclaration

_EFFECTS = frozenset(
    {
        NodeKind.ASSIGN, NodeKind.STEP, NodeKind.CALL, NodeKind.BROKEN, NodeKind.OTHER,
    }
)  # fmt: skip
_VALUES = frozenset(
    {
        NodeKind.INT, NodeKind.FLOAT, NodeKind.NAME, NodeKind.CAST, NodeKind.UNARY,
        NodeKind.BINARY, NodeKind.CONDITIONAL, NodeKind.SUBSCRIPT, NodeKind.DEREFERENCE,
    }
)  # fmt: skip


def function_parameters(function: Any, types: TypeTable) -> tuple[FunctionParameter, ...]:
    """Return the parameters of a function in their order."""
    found = []
    for position, declaration in enumerate(function.get_arguments()):
        shape = shape_of(declaration, types)
        canonical = declaration.type.get_canonical().spelling
        found.append(
            FunctionParameter(
                name=declaration.spelling,
                c_type=canonical,
                is_pointer=bool(shape.sizes),
                position=position,
                element_type=None if shape.pointer_to_pointer else shape.element.element,
            )
        )
    return tuple(found)


def origin_of(variable: Variable) -> Origin:
    """Return where the object of a variable lives."""
    declaration = variable.declaration
    if declaration.kind is CursorKind.PARM_DECL:
        return "member" if variable.is_member else "parameter"
    if not clang.outlives_function(declaration):
        return "local"
    return "static" if declaration.storage_class is StorageClass.STATIC else "global"


def declared_parameter(variable: Variable, macros: frozenset[str]) -> ParameterDeclaration:
    """Describe an integer parameter of a region; ``macros`` are the sizes that are symbols."""
    element = variable.shape.element.element
    assert element is not None
    return ParameterDeclaration(
        name=variable.unique_name,
        source_name=variable.name,
        element_type=element,
        origin="macro" if variable.name in macros else origin_of(variable),
    )


def is_whole_function(
    placed: PlacedRegion,
    symbols: SymbolTable,
    types: TypeTable,
    accessed: frozenset[Variable],
) -> bool:
    """Tell whether a function does nothing that can be observed but its region.

    Declarations, ``return;`` and expressions without effect may stand around it; what gives a
    variable of the region its value before the region runs, may not. ``accessed`` are the
    variables whose elements the region reads or writes.
    """
    if placed.block.kind is not CursorKind.COMPOUND_STMT or placed.block not in list(
        placed.function.get_children()
    ):
        return False
    region = placed.region
    around = (
        child
        for child in clang.children(placed.block)
        if not region.opening.start <= child.extent.start.offset < region.closing.start
    )
    surroundings = _Surroundings(symbols=symbols, types=types, accessed=accessed)
    return all(_is_idle(read_tree(child, types), surroundings) for child in around)


@frozen
class _Surroundings:
    symbols: SymbolTable
    types: TypeTable
    accessed: frozenset[Variable]


def _is_idle(node: Node, known: _Surroundings) -> bool:
    if node.kind is NodeKind.EMPTY:
        return True
    if node.kind is NodeKind.RETURN:
        return not node.children
    if node.kind is NodeKind.DECLARATIONS:
        return all(_is_idle_declaration(child, known) for child in node.children)
    return node.kind in _VALUES and not _has_effect(node)


def _is_idle_declaration(node: Node, known: _Surroundings) -> bool:
    if node.kind is not NodeKind.VARIABLE:
        return node.kind is not NodeKind.BROKEN
    cursors = [child for child in clang.children(node.cursor) if child.kind.is_expression()]
    parts = [read_tree(cursor, known.types) for cursor in cursors]
    if any(_has_effect(part) for part in parts):
        return False
    variable = known.symbols.variable_of(node.declaration)
    if not node.children or variable is None or variable.role is Role.COUNTER:
        return True
    is_known = variable.constant is not None or variable.role is Role.DATA
    return is_known and variable not in known.accessed


def _has_effect(node: Node) -> bool:
    return any(inner.kind in _EFFECTS for inner in node.preorder())
