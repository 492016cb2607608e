"""The shape of an array variable, read from its declaration."""

from __future__ import annotations

from typing import Any

from eatss.frontend import clang
from eatss.frontend.clang import CursorKind, TypeKind
from eatss.frontend.tree import Node, read_tree
from eatss.frontend.types import ARRAYS, NO_TYPE, CType, type_of
from eatss.frozen import frozen


@frozen
class Shape:
    """Sizes outermost first: a number, an expression (C99 VLA), or ``None`` where not given.

    ``through_pointer`` says that the outermost dimension is reached through a pointer, be it
    a parameter of array type; ``is_pointer`` that the variable is declared as a pointer.
    ``pointer_to_pointer`` stands for several levels of pointers, or pointers inside an array.
    """

    element: CType
    sizes: tuple[int | Node | None, ...]
    through_pointer: bool
    is_pointer: bool
    pointer_to_pointer: bool
    qualified_volatile: bool
    invalid: bool


def shape_of(declaration: Any) -> Shape:
    """Read the shape of a variable or parameter."""
    reader = _Reader()
    reader.read(declaration.type, _size_expressions(declaration))
    is_parameter = declaration.kind is CursorKind.PARM_DECL
    return Shape(
        element=reader.element,
        sizes=tuple(reader.sizes),
        through_pointer=reader.pointers > 0 or (is_parameter and bool(reader.sizes)),
        is_pointer=reader.pointers > 0 and reader.starts_with_pointer,
        pointer_to_pointer=reader.pointer_inside,
        qualified_volatile=reader.volatile,
        invalid=reader.invalid or clang.is_invalid(declaration),
    )


def scalar_shape(element: CType) -> Shape:
    """Return the shape of a plain variable."""
    return Shape(
        element=element,
        sizes=(),
        through_pointer=False,
        is_pointer=False,
        pointer_to_pointer=False,
        qualified_volatile=False,
        invalid=False,
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


class _Reader:
    """Walks a type from the outside in."""

    def __init__(self) -> None:
        self.sizes: list[int | Node | None] = []
        self.pointers = 0
        self.starts_with_pointer = False
        self.pointer_inside = False
        self.volatile = False
        self.invalid = False
        self.element = NO_TYPE

    def read(self, clang_type: Any, expressions: list[Any]) -> None:
        """Read a type whose size expressions, outermost first, are given."""
        while True:
            kind = clang_type.kind
            self.volatile = self.volatile or clang_type.is_volatile_qualified()
            if kind in ARRAYS:
                self.sizes.append(self._size(clang_type, expressions))
                clang_type = clang_type.element_type
            elif kind is TypeKind.POINTER:
                if self.pointers or self.sizes:
                    self.pointer_inside = True
                self.starts_with_pointer = self.starts_with_pointer or not self.sizes
                self.pointers += 1
                self.sizes.append(None)
                clang_type = clang_type.get_pointee()
            elif kind is TypeKind.TYPEDEF:
                declaration = clang_type.get_declaration()
                self.invalid = self.invalid or clang.is_invalid(declaration)
                expressions = _size_expressions(declaration)
                clang_type = declaration.underlying_typedef_type
            elif kind is TypeKind.ELABORATED:
                clang_type = clang_type.get_named_type()
            elif kind is TypeKind.UNEXPOSED and clang_type.get_canonical().kind is not kind:
                clang_type = clang_type.get_canonical()
            else:
                break
        self.element = type_of(clang_type)

    def _size(self, clang_type: Any, expressions: list[Any]) -> int | Node | None:
        kind = clang_type.kind
        if kind is TypeKind.INCOMPLETEARRAY:
            return None
        expression = expressions.pop(0) if expressions else None
        if kind is TypeKind.CONSTANTARRAY:
            return int(clang_type.element_count)
        if expression is None:
            self.invalid = True
            return None
        return read_tree(expression)
