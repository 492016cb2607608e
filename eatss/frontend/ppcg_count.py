"""Counts the statements of a region as PPCG's front end (pet) does.

pet numbers statements in the order in which it reads them. It also numbers what is none here:
declarations, the ends of the lives of what a block declares, and the first value and the increment
of a counter that its ``for`` does not declare.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from eatss.frontend.symbols import SymbolTable, Variable
from eatss.frontend.tree import Node, named_in


class PpcgCount:
    """The running count; its calls follow the source.

    ``killed`` are the variables declared in blocks of the region, whose values end with the block;
    ``counters`` those that a loop sets without declaring them; ``steps`` what sets them, each with
    its name and the number of loops around it; ``wholes`` is the text of what pet takes for one
    statement, with all that is below it.
    """

    def __init__(self) -> None:
        self.counters: frozenset[Variable] = frozenset()
        self.killed: frozenset[Variable] = frozenset()
        self.steps: list[tuple[str, int]] = []
        self.wholes: list[str] = []
        self._count = 0
        self._open_blocks = 0
        self._open_loops = 0

    def statement(self) -> str:
        """Count one statement; return its name."""
        name = f"S_{self._count}"
        self._count += 1
        return name

    def declared(self, variables: Iterable[Variable | None]) -> None:
        """Count the ends of what one declaration declared, which pet numbers here.

        What the region declares outside all blocks lives on, as far as PPCG knows.
        """
        if not self._open_blocks:
            return
        for variable in variables:
            _ = self.statement()
            if variable is not None:
                self.killed |= {variable}

    @contextmanager
    def block(self) -> Iterator[None]:
        """Count the statements between braces."""
        self._open_blocks += 1
        yield
        self._open_blocks -= 1

    @contextmanager
    def loop(self, counter: Variable | None) -> Iterator[None]:
        """Count a loop; ``counter`` is one it does not declare, set before and in each round."""
        if counter is not None:
            self.counters |= {counter}
            self.steps.append((self.statement(), self._open_loops))
        self._open_loops += 1
        yield
        if counter is not None:
            self.steps.append((self.statement(), self._open_loops))
        self._open_loops -= 1


def killed_after(
    symbols: SymbolTable, before: Sequence[Node], following: Sequence[Any]
) -> frozenset[Variable]:
    """Return the variables that the block around the region declares and does not use after it.

    None of them has its address taken before.
    """
    addressed = (one for node in before for part in node.parts("address") for one in part.children)
    named = [*named_in(following), *(one.declaration for one in addressed if one.kind == "name")]
    declared = [
        one.declaration
        for node in before
        if node.kind == "declarations"
        for one in node.children
        if one.kind == "variable"
    ]
    return frozenset(
        variable
        for variable in symbols.variables
        if any(variable.declaration == other for other in declared)
        and not any(variable.declaration == other for other in named)
    )
