"""Which function a call calls, and whether its name may be trusted to say what it does."""

from __future__ import annotations

from eatss.frontend.kinds import CursorKind
from eatss.frontend.symbols import SymbolTable
from eatss.frontend.tree import Node


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


def inlined_body(callee: Node, symbols: SymbolTable) -> tuple[Node, list[str]] | None:
    """Return the expression a function returns and the names of its parameters.

    Only functions that do nothing but return: ``return e;`` or ``if (c) return a; return b;``.
    """
    declaration = callee.declaration
    if declaration is None or declaration.kind is not CursorKind.FUNCTION_DECL:
        return None
    definition = declaration.get_definition()
    if definition is None:
        return None
    return symbols.returned_expression(definition)
