"""Reads the header of a ``for`` loop: its counter, its direction and its iterations."""

from __future__ import annotations

from dataclasses import dataclass

import islpy as isl

from eatss.base.frozen import frozen
from eatss.frontend.affine import RegionReader
from eatss.frontend.declarations import Variable, started_by
from eatss.frontend.refusals import NotAffineError, has_product, product_of_variables
from eatss.frontend.source import RefusedError
from eatss.frontend.tree import WRITES, Node, unconverted
from eatss.frontend.values import NonLinearError, Poly, TooManyPiecesError, Value, ValueAlgebra
from eatss.polyhedral.isl_names import (
    coalesced,
    involves_parameter,
    renamed_parameter,
    without_parameters,
)


@frozen
class Header:
    """The counter of a loop, what is added to it per iteration, and its parts."""

    variable: Variable
    start: Node
    condition: Node
    step: int
    body: Node

    @property
    def sign(self) -> int:
        """Which way the counter runs."""
        return 1 if self.step > 0 else -1


class LoopReader(RegionReader):
    """Reads loop headers."""

    # -- form ---------------------------------------------------------------------

    def header(self, loop: Node) -> Header:
        """Read the form of a loop.

        Raises:
            RefusedError: If it is not ``for (i = start; condition; i += constant)``.
        """
        if len(loop.children) != 4:
            self._refuse(
                "EATSS-F018", loop, "loop without start, condition or increment",
                "write for (i = start; i < end; i++)",
            )  # fmt: skip
        start, condition, increment, body = loop.children
        variable, first = self._start(start)
        step = self._step(increment, variable)
        return Header(variable=variable, start=first, condition=condition, step=step, body=body)

    def _start(self, start: Node) -> tuple[Variable, Node]:
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
            self._refuse(
                "EATSS-F018", start, "start of the loop does not set one integer counter",
                "write for (i = start; i < end; i++) with one counter",
            )  # fmt: skip
        first = name.children[0] if name.kind == "variable" else start.children[1]
        return variable, first

    def _step(self, increment: Node, variable: Variable) -> int:
        amount = self._amount(increment, variable)
        if not amount:
            self._refuse(
                "EATSS-F018",
                increment,
                f"increment of '{variable.name}' is no constant other than zero",
                f"write {variable.name}++, {variable.name} += 2 or {variable.name} -= 2",
            )
        return amount

    def _amount(self, increment: Node, variable: Variable) -> int | None:
        is_write = increment.kind in WRITES
        if not is_write or self._of(increment.children[0]) is not variable:
            return None
        if increment.kind == "step":
            return 1 if increment.op.endswith("++") else -1
        sign, amount = increment.op, increment.children[1]
        if not sign:  # i = i + c says what i += c says, in unsigned types too
            total = unconverted(amount)
            if not total.is_binary("+", "-") or (
                self._of(unconverted(total.children[0])) is not variable
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

    def iterations(self, header: Header, name: str, outer: isl.Set) -> isl.Set:
        """Return the values of the counter ``name`` together with those of ``outer``.

        ``header.variable`` must be active under ``name``.

        Raises:
            RefusedError: If a bound is not affine or the loop's end is not provable.
        """
        with self._ranges.stating():
            return self._iterations(header, name, outer)

    def _iterations(self, header: Header, name: str, outer: isl.Set) -> isl.Set:
        try:
            start = self._start_value(header, outer)
            reached = self._from_start(header, name, start, outer)
            holds = self._end(header, name, start, reached)
            domain = reached.intersect(holds)
        except NotAffineError as error:
            inside = any(node is error.node for node in header.condition.preorder())
            whole = header.condition if inside else header.start
            self._reporter.not_affine(error, whole, "bound")
            raise RefusedError from None
        except NonLinearError:
            whole = header.start if has_product(header.start) else header.condition
            self._reporter.not_affine(product_of_variables(whole), whole, "bound")
            raise RefusedError from None
        except TooManyPiecesError:
            self._refuse(
                "EATSS-F009", header.condition, "bounds have too many cases",
                "use fewer min, max and ?: in one loop",
            )  # fmt: skip
        if domain.n_basic_set() > 1:
            domain = coalesced(domain)
        self._check_type(header, name, domain)
        return domain

    def _start_value(self, header: Header, outer: isl.Set) -> Value:
        """Return what the counter is at first; its name means the one before the loop there."""
        active = self._affine.active
        name = active.pop(header.variable)
        try:
            return self._affine.value(header.start, outer)
        finally:
            active[header.variable] = name

    def _from_start(self, header: Header, name: str, start: Value, outer: isl.Set) -> isl.Set:
        """Return where the counter is the start plus a multiple of the stride."""
        counter = Poly.unknown(name)
        if header.step > 0:
            reached = self._algebra.at_least(counter, start)
        else:
            reached = self._algebra.at_least(start, counter)
        stride = abs(header.step)
        if stride > 1:
            distance = self._algebra.add(counter, self._algebra.function(start), -1)
            on_grid = self._algebra.modulo(distance, stride)
            reached = reached.intersect(on_grid.zero_set())
        return outer.intersect(reached)

    def _end(self, header: Header, name: str, start: Value, reached: isl.Set) -> isl.Set:
        """Return where the condition holds, which bounds the counter in its direction."""
        tested = self._tested(header, name, start, reached)
        holds = self._affine.condition(header.condition, tested)
        if not self._ends(header, name, header.condition, tested):
            self._refuse(
                "EATSS-F018",
                header.condition,
                f"condition {self._quoted(header.condition)} does not end a loop that "
                f"counts {'up' if header.step > 0 else 'down'}",
                "use < or <= when counting up, > or >= when counting down, and put other "
                "conditions in an if",
            )
        return holds

    def _tested(self, header: Header, name: str, start: Value, reached: isl.Set) -> isl.Set:
        """Return where the condition is computed: at the start, and one step after it held.

        ``i + 1 < n`` is computed at ``i = n - 1`` last: of unsigned numbers it does not wrap.
        """
        condition = header.condition
        if not any(_may_wrap(node) for node in condition.preorder()):
            return reached
        with self._ranges.trust():
            holds = self._affine.condition(condition, reached)
        counter, before = Poly.unknown(name), self._fresh(name)
        step = self._algebra.add(counter, header.step, -1)
        after = without_parameters(
            renamed_parameter(reached.intersect(holds), name, before).intersect(
                self._algebra.equal(Poly.unknown(before), step)
            ),
            (before,),
        )
        return coalesced(reached.intersect(self._algebra.equal(counter, start).union(after)))

    def _ends(self, header: Header, name: str, condition: Node, reached: isl.Set) -> bool:
        """Return whether the condition bounds the counter in its direction, by its form."""
        if condition.is_binary("&&"):
            # each ends the loop, so none turns true again after it was false
            return all(self._ends(header, name, c, reached) for c in condition.children)
        if not condition.is_binary("<", "<=", ">", ">="):
            return False
        left, right = self._affine.operands(condition, reached)
        coefficient = _coefficient(left, name), _coefficient(right, name)
        if coefficient[0] is None or coefficient[1] is None:
            return False
        slope = coefficient[0] - coefficient[1]
        if condition.op in (">", ">="):
            slope = -slope
        return slope * header.step > 0

    def _fresh(self, name: str) -> str:
        return self._free(f"{name}_later")

    def _check_type(self, header: Header, name: str, domain: isl.Set) -> None:
        """See that the counter does not leave its type before the loop ends."""
        ctype, counter = header.variable.shape.element, Poly.unknown(name)
        after = self._algebra.add(counter, header.step)
        at_least, ranges = self._algebra.at_least, self._ranges
        stays = at_least(ctype.maximum, after).intersect(at_least(ctype.maximum, counter))
        least = at_least(after if header.step < 0 else counter, 0)
        fits = self._algebra.within(ctype.minimum, after, ctype.maximum)
        if (
            (header.step > 0 and ranges.always_leaves(domain, stays))
            or not (ctype.signed or ranges.proven(domain, least))
            or not (ctype.bits >= 32 or ranges.proven_or_stated(domain, fits))
        ):
            self._refuse(
                "EATSS-F036",
                header.condition,
                f"counter '{header.variable.name}' may leave the range of type '{ctype.spelling}' "
                "before the loop ends",
                "use int or long",
            )


def _may_wrap(node: Node) -> bool:
    """Return whether C computes a node in a type whose values may be others than the integers."""
    is_computed = node.kind not in ("name", "int")
    return is_computed and node.type.is_integer and (not node.type.signed or node.type.bits < 32)


def _coefficient(value: Value, name: str) -> int | None:
    """Return the coefficient of a counter in a value, ``None`` where it is not linear in it."""
    if isinstance(value, Poly):
        if any(name in monomial and len(monomial) > 1 for monomial in value.terms):
            return None
        return value.coefficient(name)
    return None if involves_parameter(value, name) else 0


@dataclass(slots=True, kw_only=True)
class Exits:
    """Where the body of one loop is left: ``left`` for the round, ``broken`` for the loop.

    ``sign`` is -1 where the counter runs down; ``guards`` is the number of conditions around the
    loop that are not affine.
    """

    counter: str
    sign: int
    guards: int
    left: isl.Set | None = None
    broken: isl.Set | None = None

    def add(self, domain: isl.Set, *, breaks: bool) -> None:
        """Add the points at which a ``break`` or a ``continue`` is met."""
        self.left = domain if self.left is None else self.left.union(domain)
        if breaks:
            self.broken = domain if self.broken is None else self.broken.union(domain)

    def before(self, domain: isl.Set, algebra: ValueAlgebra) -> isl.Set:
        """Return the part of a domain in rounds that no earlier ``break`` has kept from running."""
        if self.broken is None:
            return domain
        earlier = f"{self.counter}_earlier"
        gap = algebra.add(Poly.unknown(self.counter), Poly.unknown(earlier), -1)
        after = algebra.at_least(algebra.scale(gap, self.sign), 1)
        met = renamed_parameter(self.broken, self.counter, earlier).intersect(after)
        return coalesced(domain.subtract(without_parameters(met, (earlier,))))
