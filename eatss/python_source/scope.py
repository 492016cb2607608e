"""The variables of a function: parameters, arrays, locals, counters."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Literal

from eatss.frozen import frozen
from eatss.python_source.names import Resolve
from eatss.python_source.number_types import NumberType, Weak
from eatss.scops import ElementType


@frozen
class Argument:
    """A parameter of the function.

    ``kind`` is ``param`` for an integer that sizes may name, ``scalar`` or ``array``. ``extents``
    are the texts of the sizes of an array, outermost first, as Python has them.
    """

    name: str
    kind: Literal["param", "scalar", "array"]
    element_type: ElementType
    extents: tuple[str, ...] = ()


@frozen
class Local:
    """What a name that the function assigns holds: a number, or an array of ``n_dims``.

    ``weak`` is the type of a literal that is assigned as well, and is a number of Python there.
    """

    type: NumberType
    n_dims: int = 0
    weak: Weak | None = None


@dataclass(slots=True, kw_only=True)
class Scope:
    """What names mean at some place of a function.

    ``types`` are those of the locals as far as they are known; ``counters`` are those of the loops
    around; ``past`` are counters of loops that have ended; ``refused`` are names of which a finding
    tells already. ``mixes`` says that there are floating-point numbers of 32 bits.
    """

    arguments: dict[str, Argument]
    resolve: Resolve
    assigned: frozenset[str]
    mixes: bool
    locals: dict[str, Local] = field(default_factory=dict)
    counters: list[str] = field(default_factory=list)
    past: set[str] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)
    macros: set[str] = field(default_factory=set)

    def meaning(self, node: ast.expr) -> str | None:
        """Return the full name of a function or module; ``None`` for variables and the unknown."""
        first = node
        while isinstance(first, ast.Attribute):
            first = first.value
        if isinstance(first, ast.Name) and (
            first.id in self.arguments or first.id in self.assigned or first.id in self.counters
        ):
            return None
        return self.resolve(node)
