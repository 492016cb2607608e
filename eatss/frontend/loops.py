"""Reads ``for`` loops: the counter, its direction and its iterations."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import islpy as isl

from eatss.base.frozen import Numbers, frozen
from eatss.frontend.affine import Common, RawAccess, RegionReader
from eatss.frontend.declarations import Variable, started_by
from eatss.frontend.refusals import NotAffineError
from eatss.frontend.source import RefusedError
from eatss.frontend.tree import Node, unconverted
from eatss.frontend.values import Poly, Value
from eatss.polyhedral.expression import Expression
from eatss.polyhedral.isl_names import (
    coalesced,
    involved_parameters,
    renamed_parameter,
    without_parameters,
)


class Loop(RegionReader):
    """A loop ``for (i = start; condition; i += step)``; ``name`` is that of its counter in sets.

    ``left`` is where rounds of it are left by ``break`` or ``continue``, ``broken`` where the loop
    is; ``guards`` is the number of conditions around it that are not affine.

    Raises:
        RefusedError: It has another form.
    """

    def __init__(self, common: Common, loop: Node) -> None:
        super().__init__(common)
        if len(loop.children) != 4:
            self._refuse("no_head", loop)
        start, self._condition, increment, self.body = loop.children
        self.variable, self._start = self._counter(start)
        name = self.variable.name
        self.step = self._amount(increment) or self._refuse("no_step", increment, name=name)
        self.sign = 1 if self.step > 0 else -1
        self.name = self._free(name)
        self.guards = 0
        self.left: isl.Set | None = None
        self.broken: isl.Set | None = None

    def _counter(self, start: Node) -> tuple[Variable, Node]:
        name = started_by(start)
        variable = self._of(name)
        if (
            name is None
            or variable is None
            or not variable.is_scalar
            or not variable.shape.element.is_integer
            or variable.shape.element.element is None
            or variable.shape.qualified_volatile
            or (name.kind == "variable" and not name.children)
        ):
            self._refuse("no_counter", start)
        return variable, name.children[0] if name.kind == "variable" else start.children[1]

    def _amount(self, increment: Node) -> int | None:
        """Return what is added to the counter, if it is a number."""
        if increment.kind != "assign" or self._of(increment.children[0]) is not self.variable:
            return None
        sign, amount = increment.op, increment.children[1]
        if not sign:  # i = i + c says what i += c says, in unsigned types too
            total = unconverted(amount)
            if not total.is_binary("+", "-") or (
                self._of(unconverted(total.children[0])) is not self.variable
            ):
                return None
            sign, amount = total.op, total.children[1]
        try:
            value = self._affine.value(amount, self._algebra.everywhere)
        except NotAffineError:
            return None
        constant = self._algebra.constant_of(value)
        return None if constant is None else {"+": constant, "-": -constant}.get(sign)

    # -- iterations -----------------------------------------------------------------

    @contextmanager
    def active(self) -> Iterator[None]:
        """Let the counter be one of the loops around what is read."""
        self._affine.active[self.variable] = self.name
        try:
            yield
        finally:
            del self._affine.active[self.variable]

    def iterations(self, outer: isl.Set) -> isl.Set:
        """Return the values of the counter together with those of ``outer``.

        Raises:
            RefusedError: If a bound is not affine or the loop's end is not provable.
        """
        bound = self._start
        try:
            with self._ranges.stating():
                start = self._affine.value(bound, outer)
                _ = self._algebra.function(start)
                bound = self._condition
                with self.active():
                    domain = self._domain(start, outer)
        except NotAffineError as error:
            self._reporter.not_affine(error, bound, "bound")
            raise RefusedError from None
        self._check_type(domain)
        return domain

    def _domain(self, start: Value, outer: isl.Set) -> isl.Set:
        counter, algebra = Poly.unknown(self.name), self._algebra
        sides = (counter, start) if self.step > 0 else (start, counter)
        reached = algebra.at_least(*sides)
        if abs(self.step) > 1:
            distance = algebra.add(counter, algebra.function(start), -1)
            reached = reached.intersect(algebra.modulo(distance, abs(self.step)).zero_set())
        reached = outer.intersect(reached)
        tested = self._tested(start, reached)
        holds = self._affine.condition(self._condition, tested)
        if not self._ends(self._condition, tested):
            self._refuse("no_end", self._condition, way="up" if self.step > 0 else "down")
        domain = reached.intersect(holds)
        return coalesced(domain) if domain.n_basic_set() > 1 else domain

    def _tested(self, start: Value, reached: isl.Set) -> isl.Set:
        """Return where the condition is computed: at the start, and one step after it held.

        ``i + 1 < n`` is computed at ``i = n - 1`` last: of unsigned numbers it does not wrap.
        """
        if not any(map(_may_wrap, self._condition.preorder())):
            return reached
        with self._ranges.trust():
            holds = self._affine.condition(self._condition, reached)
        counter, before = Poly.unknown(self.name), self._free(f"{self.name}_later")
        step = self._algebra.add(counter, self.step, -1)
        after = without_parameters(
            renamed_parameter(reached.intersect(holds), self.name, before).intersect(
                self._algebra.equal(Poly.unknown(before), step)
            ),
            (before,),
        )
        return coalesced(reached.intersect(self._algebra.equal(counter, start).union(after)))

    def _ends(self, condition: Node, reached: isl.Set) -> bool:
        """Return whether the condition bounds the counter in its direction, by its form."""
        if condition.is_binary("&&"):
            # each ends the loop, so none turns true again after it was false
            return all(self._ends(one, reached) for one in condition.children)
        if not condition.is_binary("<", "<=", ">", ">="):
            return False
        sides = self._affine.operands(condition, reached)
        left, right = (_coefficient(side, self.name) for side in sides)
        if left is None or right is None:
            return False
        return (left - right) * self.step * (-1 if condition.op[0] == ">" else 1) > 0

    def _check_type(self, domain: isl.Set) -> None:
        """See that the counter does not leave its type before the loop ends."""
        ctype, counter = self.variable.shape.element, Poly.unknown(self.name)
        after = self._algebra.add(counter, self.step)
        at_least, ranges = self._algebra.at_least, self._ranges
        stays = at_least(ctype.maximum, after).intersect(at_least(ctype.maximum, counter))
        least = at_least(after if self.step < 0 else counter, 0)
        fits = self._algebra.within(ctype.minimum, after, ctype.maximum)
        with ranges.stating():
            if (
                (self.step > 0 and ranges.always_leaves(domain, stays))
                or not (ctype.signed or ranges.proven(domain, least))
                or not (ctype.bits >= 32 or ranges.proven_or_stated(domain, fits))
            ):
                words = {"name": self.variable.name, "type": ctype.spelling}
                self._refuse("counter_leaves", self._condition, **words)

    # -- exits ----------------------------------------------------------------------

    def leave(self, domain: isl.Set, *, breaks: bool) -> None:
        """Add the points at which a ``break`` or a ``continue`` is met."""
        self.left = domain if self.left is None else self.left.union(domain)
        if breaks:
            self.broken = domain if self.broken is None else self.broken.union(domain)

    def unbroken(self, domain: isl.Set) -> isl.Set:
        """Return the part of a domain in rounds that no earlier ``break`` has kept from running."""
        if self.broken is None:
            return domain
        earlier = f"{self.name}_earlier"
        gap = Poly.unknown(self.name).plus(Poly.unknown(earlier), -1)
        after = self._algebra.at_least(gap.scaled(self.sign), 1)
        met = renamed_parameter(self.broken, self.name, earlier).intersect(after)
        return coalesced(domain.subtract(without_parameters(met, (earlier,))))


@frozen
class RawStatement:
    """An assignment with its domain as a set of counter and parameter values.

    ``positions`` are the textual positions around and between the loops. ``value`` holds its affine
    parts as functions of counters and parameters, all as isl parameters.
    """

    loops: tuple[Loop, ...]
    positions: Numbers
    domain: isl.Set
    accesses: tuple[RawAccess, ...]
    value: Expression
    node: Node
    ppcg_name: str = ""

    @property
    def written(self) -> Variable:
        """What it sets."""
        return self.accesses[0].variable


def _may_wrap(node: Node) -> bool:
    """Return whether C computes a node in a type whose values may be others than the integers."""
    is_computed = node.kind not in ("name", "int")
    return is_computed and node.type.is_integer and (not node.type.signed or node.type.bits < 32)


def _coefficient(value: Value, name: str) -> int | None:
    """Return the coefficient of a counter in a value, ``None`` where it is not linear in it."""
    if isinstance(value, Poly):
        return value.beside(name).constant_value
    return None if name in involved_parameters(value) else 0
