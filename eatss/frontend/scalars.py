"""Values of the integer scalars that a region sets, where they are affine.

    for (i = 0; i < n; i++) { j = i + 1; a[j - 1] = b[j]; }

reads ``b[i + 1]`` and writes ``a[i]``. While statements are read in their order, the value that
each scalar has is known or not known: what is set to an affine value has it until it is set
again; after an ``if``, each arm says what it is where it was taken; what a round of a loop sets is
not known at the start of the next one, nor after the loop.

Values of types that may wrap are known only where they provably do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import islpy as isl

from eatss.frontend.affine import AffineReader, RegionReader
from eatss.frontend.declarations import SymbolTable, Variable, base_name
from eatss.frontend.refusals import NotAffineError, Reporter
from eatss.frontend.tree import WRITES, Node
from eatss.frontend.values import Poly, Value, same


class ScalarValues(RegionReader):
    """What is known of scalars; :attr:`AffineReader.scalars` holds it for those who read names."""

    def __init__(self, symbols: SymbolTable, affine: AffineReader, reporter: Reporter) -> None:
        super().__init__(symbols, affine, reporter)
        self._values = affine.scalars
        self._followed: set[Variable] = set()
        self.known: set[Variable] = set()

    def follow(self, nodes: Sequence[Node]) -> None:
        """Find the scalars whose values decide where something is."""
        every = [node for root in nodes for node in root.preorder()]
        deciding = {"subscript": slice(1, None), "for": slice(-1), "if": slice(1)}
        todo = [one for node in every for one in node.children[deciding.get(node.kind, slice(0))]]
        while todo:
            found = {self._of(part) for node in todo for part in node.parts("name")}
            new = {
                one for one in found if one is not None and _may_be_followed(one)
            } - self._followed
            self._followed |= new
            todo = [one for node in every if self._written(node) in new for one in node.children]

    def _written(self, node: Node) -> Variable | None:
        """Return the scalar that a node sets, or that it declares."""
        if node.kind != "variable" and node.kind not in WRITES:
            return None
        variable = self._of(node if node.kind == "variable" else base_name(node.children[0]))
        return variable if variable is not None and variable.is_scalar else None

    def after(self, node: Node, domain: isl.Set) -> Value | None:
        """Return what the scalar that a statement sets is then, ``None`` if that is not known."""
        variable = self._written(node)
        if variable is None or variable not in self._followed:
            return None
        with suppress(NotAffineError), self._ranges.stating():
            value = self._new_value(node, self._values.get(variable), domain)
            if value is not None and self._fits(variable, value, domain):
                return value
        return None

    def _new_value(self, node: Node, before: Value | None, domain: isl.Set) -> Value | None:
        if node.kind == "variable" or (node.kind == "assign" and not node.op):
            return self._affine.value(node.children[-1], domain) if node.children else None
        if before is None:
            return None
        target, value = node.children
        if target.type != value.type and node.op not in ("+", "-"):
            return None
        whole = Node("binary", node.cursor, value.type, [target, value], op=node.op)
        return self._affine.value(whole, domain)

    def _fits(self, variable: Variable, value: Value, domain: isl.Set) -> bool:
        """Return whether a value is one of the scalar's type; that of ``int`` does not overflow."""
        kind = variable.shape.element
        if kind.signed and kind.bits >= 32:
            return True
        ranges = self._ranges
        if isinstance(value, Poly) and not value.is_linear:
            return kind.bits >= 32 and ranges.sums_up(value, domain)
        holds = self._algebra.at_least(value, kind.minimum)
        if kind.bits <= 32:
            holds = holds.intersect(self._algebra.at_least(kind.maximum, value))
        return ranges.proven_or_stated(domain, holds)

    def note(self, node: Node, value: Value | None) -> None:
        """Note what a statement has set."""
        variable = self._written(node)
        if variable is not None:
            self._values.pop(variable, None)
            if value is not None:
                self._values[variable] = value
                self.known.add(variable)

    def forget(self, node: Node) -> None:
        """Note that any statement below a node may have run, or not."""
        for part in node.preorder():
            self.note(part, None)

    def now(self) -> dict[Variable, Value]:
        """Return what is known here."""
        return dict(self._values)

    def restore(self, known: dict[Variable, Value]) -> None:
        """Go back to what was known."""
        self._values.clear()
        self._values.update(known)

    def join(self, holds: isl.Set, if_true: dict[Variable, Value]) -> None:
        """Note what is known after an ``if``: now is the end of the other arm."""
        if_false = self.now()
        self._values.clear()
        for variable in if_true.keys() & if_false.keys():
            yes, no = if_true[variable], if_false[variable]
            with suppress(NotAffineError):
                chosen = yes if same(yes, no) else self._algebra.choose(holds, yes, no)
                self._values[variable] = chosen


def _may_be_followed(variable: Variable) -> bool:
    shape = variable.shape
    is_integer = shape.element.is_integer and not shape.qualified_volatile
    return variable.is_scalar and is_integer and variable.role == "data"
