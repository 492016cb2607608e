"""What reading a region yields before it becomes a ``Scop``, statements over C; who reads it."""

from __future__ import annotations

import islpy as isl

from eatss.base.frozen import frozen
from eatss.frontend.affine import AffineReader
from eatss.frontend.report import Reporter
from eatss.frontend.symbols import SymbolTable, Variable
from eatss.frontend.tree import Node
from eatss.frontend.values import Value
from eatss.polyhedral.scops import AccessKind, Expression


class RegionReader:
    """Reads a part of one region: its variables, what is affine, and what is wrong."""

    def __init__(self, symbols: SymbolTable, affine: AffineReader, reporter: Reporter) -> None:
        self._symbols, self._affine, self._reporter = symbols, affine, reporter
        self._algebra, self._ranges = affine.algebra, affine.ranges
        self._of = symbols.of
        self._error, self._refuse, self._quoted = reporter.error, reporter.refuse, reporter.quoted

    def _free(self, name: str) -> str:
        """Return a name for a counter inside the loops around."""
        return self._symbols.names.free(name, self._affine.active.values())


@frozen
class LoopLevel:
    """A loop around a statement; ``sign`` is -1 where the counter runs down."""

    name: str
    sign: int


@frozen
class RawAccess:
    """A reference with its subscripts as values of counters and parameters.

    It is made at the points of ``domain`` at which its statement runs.
    """

    variable: Variable
    kind: AccessKind
    subscripts: tuple[Value, ...]
    node: Node
    domain: isl.Set


@frozen
class RawStatement:
    """An assignment with its domain as a set of counter and parameter values.

    ``positions`` are the textual positions around and between the loops. ``value`` holds its affine
    parts as functions of counters and parameters, all as isl parameters. ``doubtful`` marks a
    statement below a loop that was refused.
    """

    loops: tuple[LoopLevel, ...]
    positions: tuple[int, ...]
    domain: isl.Set
    accesses: tuple[RawAccess, ...]
    value: Expression
    node: Node
    doubtful: bool = False
    ppcg_name: str = ""
