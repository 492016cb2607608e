"""The shape of an array variable, read from its declaration."""

from __future__ import annotations

from typing import Any

from eatss.base.frozen import frozen
from eatss.frontend import clang
from eatss.frontend.clang import CursorKind, TypeKind
from eatss.frontend.tree import Node, read_tree
from eatss.frontend.types import ARRAYS, CType, type_of


@frozen
class Shape:
    """Sizes outermost first: a number, an expression (C99 VLA), or ``None`` where not given.

    ``through_pointer`` says that the outermost dimension is reached through a pointer, be it
    a parameter of array type; ``is_pointer`` that the variable is declared as a pointer.
    ``pointer_to_pointer`` stands for several levels of pointers, or pointers inside an array.
    """

    element: CType
    sizes: tuple[int | Node | None, ...] = ()
    through_pointer: bool = False
    is_pointer: bool = False
    pointer_to_pointer: bool = False
    qualified_volatile: bool = False
    invalid: bool = False


def shape_of(declaration: Any) -> Shape:
    """Read the shape of a variable or parameter, its type from the outside in."""
    clang_type, expressions = declaration.type, _size_expressions(declaration)
    sizes: list[int | Node | None] = []
    pointers = 0
    starts_with_pointer = pointer_inside = is_volatile = False
    is_invalid = clang.is_invalid(declaration)
    while True:
        kind = clang_type.kind
        is_volatile |= clang_type.is_volatile_qualified()
        if kind in ARRAYS:
            is_given = kind is not TypeKind.INCOMPLETEARRAY
            size = expressions.pop(0) if is_given and expressions else None
            if kind is TypeKind.CONSTANTARRAY:
                sizes.append(int(clang_type.element_count))
            else:
                is_invalid |= is_given and size is None
                sizes.append(None if size is None else read_tree(size))
            clang_type = clang_type.element_type
        elif kind is TypeKind.POINTER:
            pointer_inside |= bool(sizes)
            starts_with_pointer |= not sizes
            pointers += 1
            sizes.append(None)
            clang_type = clang_type.get_pointee()
        elif kind is TypeKind.TYPEDEF:
            typedef = clang_type.get_declaration()
            is_invalid |= clang.is_invalid(typedef)
            expressions = _size_expressions(typedef)
            clang_type = typedef.underlying_typedef_type
        elif kind is TypeKind.ELABORATED:
            clang_type = clang_type.get_named_type()
        elif kind is TypeKind.UNEXPOSED and clang_type.get_canonical().kind is not kind:
            clang_type = clang_type.get_canonical()
        else:
            break
    is_parameter = declaration.kind is CursorKind.PARM_DECL
    return Shape(
        element=type_of(clang_type),
        sizes=tuple(sizes),
        through_pointer=pointers > 0 or (is_parameter and bool(sizes)),
        is_pointer=starts_with_pointer,
        pointer_to_pointer=pointer_inside,
        qualified_volatile=is_volatile,
        invalid=is_invalid,
    )


def _size_expressions(declaration: Any) -> list[Any]:
    """Return the size expressions of a declarator, outermost first.

    libclang visits the innermost array type first; an initialiser comes last and ends the
    declaration.
    """
    end = declaration.extent.end.offset
    expressions = [c for c in declaration.get_children() if c.kind.is_expression()]
    closes = declaration.kind is CursorKind.VAR_DECL
    if closes and expressions and expressions[-1].extent.end.offset == end:
        expressions.pop()
    expressions.reverse()
    return expressions
