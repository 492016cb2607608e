"""Values of the integer scalars that a region sets, where they are affine.

    k = 0;
    for (i = 0; i < n; i++) { j = i + 1; a[k] = b[j]; k += 2; }

reads ``b[i + 1]`` and writes ``a[2 * i]``. While statements are read in their order, the value that
each scalar has is known or not known:

- what is set to an affine value has it until it is set again;
- what every round of a loop counts up by the same is closed form at the start of each round;
- what a round sets is, in the next one, what it was for the counter before; at first what it was
  before the loop;
- after an ``if``, each arm says what it is where it was taken.

Values of types that may wrap are known only where they provably do not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final

import islpy as isl

from eatss.base.frozen import frozen
from eatss.frontend.affine import AffineReader, RegionReader
from eatss.frontend.declarations import SymbolTable, Variable, base_name
from eatss.frontend.loops import Header, LoopReader
from eatss.frontend.refusals import NotAffineError, Reporter, Unknown
from eatss.frontend.tree import Node, leaves
from eatss.frontend.values import NonLinearError, Poly, TooManyPiecesError, Value, extremum, same

_WRITES = ("assign", "step", "variable")
_SKIPS: Final = ("continue", "goto", "return")
_TESTS = ("if", "while", "do")
_NO_VALUE = (NotAffineError, NonLinearError, TooManyPiecesError)
_ITSELF = "itself"
_MAX_DISTANCE = 3
"""From how many rounds before a value may come."""

_MAX_TURNS = 8
"""After how many rounds a scalar may be what it was."""

_OTHERWISE = "a loop that counts would have less than no rounds otherwise"


@frozen
class Rounds:
    """A loop whose body sets the scalars of ``written``.

    ``before`` is what was known before it; each round adds ``steps`` to some of them. Others have
    the values of ``turns`` one after another, and again.
    """

    header: Header
    outer: isl.Set
    written: frozenset[Variable]
    before: dict[Variable, Value]
    steps: dict[Variable, Poly]
    turns: dict[Variable, tuple[int, ...]]


class ScalarValues(RegionReader):
    """What is known of scalars; :attr:`AffineReader.scalars` holds it for those who read names."""

    def __init__(
        self, symbols: SymbolTable, affine: AffineReader, loops: LoopReader, reporter: Reporter
    ) -> None:
        super().__init__(symbols, affine, reporter)
        self._loops = loops
        self._values = affine.scalars
        self._followed: set[Variable] = set()
        self.known: set[Variable] = set()

    def follow(self, nodes: Sequence[Node]) -> None:
        """Find the scalars whose values decide where something is, or that are counted."""
        every = [node for root in nodes for node in root.preorder()]
        for node in every:
            if node.kind == "subscript":
                self._add(node.children[1:])
            elif node.kind == "for":
                self._add(node.children[:-1])
            elif node.kind in _TESTS or _is_count(node):
                self._add(node.children[:1])
        before = -1
        while before != len(self._followed):
            before = len(self._followed)
            for node in every:
                if self._written(node) in self._followed:
                    self._add(node.children)

    def start(
        self, before: Sequence[Node], is_dead: Callable[[Variable], bool]
    ) -> dict[Variable, tuple[Node, int]]:
        """Note the numbers that statements just before the region set scalars to; return them.

        Args:
            before: the statements.
            is_dead: whether nothing but the region reads a scalar after them.
        """
        found: dict[Variable, tuple[Node, int]] = {}
        for statement in before:
            if statement.has("label", "goto", "switch"):
                self._values.clear()
            is_list = statement.kind == "declarations"
            for node in statement.children if is_list else [statement]:
                variable, number = self._written(node), None
                if variable is None or len(self._all_written(node)) > 1:
                    self.forget(node)
                    continue
                value = self.after(node, self._algebra.everywhere) if is_dead(variable) else None
                number = None if value is None else self._algebra.constant_of(value)
                self._put(variable, None if number is None else value)
                if number is not None:
                    found[variable] = node, number
        return {variable: found[variable] for variable in found.keys() & self._values.keys()}

    def _add(self, nodes: Iterable[Node]) -> None:
        for node in nodes:
            for part in node.parts("name"):
                variable = self._of(part)
                if variable is not None and self._may_follow(variable):
                    self._followed.add(variable)

    @staticmethod
    def _may_follow(variable: Variable) -> bool:
        shape = variable.shape
        is_integer = shape.element.is_integer and not shape.qualified_volatile
        return variable.is_scalar and is_integer and variable.role == "data"

    def _written(self, node: Node) -> Variable | None:
        """Return the scalar that a node sets, or that it declares."""
        if node.kind not in _WRITES:
            return None
        is_declaration = node.kind == "variable"
        variable = self._of(node if is_declaration else base_name(node.children[0]))
        return variable if variable is not None and variable.is_scalar else None

    # -- statements -----------------------------------------------------------------

    def after(self, node: Node, domain: isl.Set) -> Value | None:
        """Return what the scalar that a statement sets is then, ``None`` if that is not known."""
        variable = self._written(node)
        if variable not in self._followed:
            return None
        assert variable is not None
        try:
            value = self._new_value(node, self._values.get(variable), domain)
        except NotAffineError as error:
            self._affine.unknown[variable] = self._set_to(variable, node, error)
            return None
        except _NO_VALUE:
            return None
        if value is None or self._fits(variable, value, domain):
            return value
        self._affine.unknown[variable] = _beyond_type(variable)
        return None

    def _set_to(self, variable: Variable, node: Node, error: NotAffineError) -> Unknown:
        """Return that a scalar is set to what is not affine, or why what it is set to is not."""
        cause = self._of(error.node)
        if cause is not None and cause in self._affine.unknown:
            return self._affine.unknown[cause]
        if error.reason == "own":
            return Unknown(
                reason=error.reason, message=error.message, code=error.code, hint=error.hint
            )
        what = f"'{variable.name}' is set to {self._quoted(node.children[-1])}"
        return Unknown(
            reason=error.reason,
            message=what if error.reason == "data" else f"{what}, {error.message}",
        )

    def _new_value(self, node: Node, before: Value | None, domain: isl.Set) -> Value | None:
        if node.kind == "variable" or (node.kind == "assign" and not node.op):
            return self._affine.value(node.children[-1], domain) if node.children else None
        if before is None:
            return None
        if node.kind == "step":
            return self._algebra.add(before, 1 if node.op.endswith("++") else -1)
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
            self._put(variable, value)

    def _put(self, variable: Variable, value: Value | None) -> None:
        if value is None:
            self._values.pop(variable, None)
        else:
            self._values[variable] = value
            self._affine.unknown.pop(variable, None)
            self.known.add(variable)

    def forget(self, node: Node, test: Node | None = None) -> None:
        """Note that any statement below a node may have run, or not, as a test says."""
        for variable in self._all_written(node):
            self._put(variable, None)
            if test is not None and variable in self._followed:
                self._affine.unknown[variable] = self._chosen_by(variable, test)

    def _chosen_by(self, variable: Variable, test: Node) -> Unknown:
        return Unknown(
            reason="data", message=f"'{variable.name}' is set under {self._quoted(test)}"
        )

    def _all_written(self, node: Node) -> set[Variable]:
        found = (self._written(part) for part in node.preorder())
        return {variable for variable in found if variable is not None}

    # -- conditions -----------------------------------------------------------------

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
        for variable in if_true.keys() | if_false.keys():
            yes, no = if_true.get(variable), if_false.get(variable)
            value = None
            if yes is not None and no is not None:
                value = yes if same(yes, no) else self._chosen(holds, yes, no)
            self._put(variable, value)

    def _chosen(self, holds: isl.Set, yes: Value, no: Value) -> Value | None:
        try:
            return self._algebra.choose(holds, yes, no)
        except _NO_VALUE:
            return None

    # -- loops ----------------------------------------------------------------------

    def header(self, loop: Node, outer: isl.Set) -> Header | str:
        """Return the header of a ``while`` that counts a scalar of its condition, or why not."""
        condition, body, after = loop.children
        if condition.reads_memory:
            return "depends on data"
        if condition.has("call"):
            return "depends on what a call returns"
        before = self.now()
        written = self._all_written(loop)
        named = {self._of(part) for part in condition.preorder()}
        tested = [one for one in self._symbols.variables if one in named & written]
        for variable in written:
            self._put(variable, None)
        steps = {one: self._step(one, body, after, outer) for one in tested if one in before}
        self.restore(before)
        for variable, step in steps.items():
            amount = None if step is None else step.constant_value
            if amount and variable in self._followed:
                return Header(
                    variable=replace(variable),
                    start=condition,
                    condition=condition,
                    step=amount,
                    body=body,
                    after=after,
                    counted=variable,
                    first=before[variable],
                    runs_first=loop.kind == "do",
                )
        for variable in tested:
            if variable in before:
                return self._why_no_count(variable, loop)
            return f"does not end by counts: '{variable.name}' has no value before that is known"
        return "names nothing that the loop changes"

    def _why_no_count(self, variable: Variable, loop: Node) -> str:
        """Return why a loop does not count a scalar of its condition."""
        condition, body, _ = loop.children
        if variable in self._all_written(condition):
            return f"changes '{variable.name}', and rounds or the loop may be left"
        if leaves(body, *_SKIPS):
            return (
                f"does not end by counts: rounds may be left before they change '{variable.name}'"
            )
        writes = [part for part in body.preorder() if self._written(part) is variable]
        if len(writes) == 1 and writes[0].kind == "assign":
            text = self._quoted(writes[0])
            return f"does not end by counts: {text} does not add a constant to '{variable.name}'"
        return f"does not end by counts: not all rounds add the same to '{variable.name}'"

    def suppose(self, loop: Node) -> None:
        """Take what the rounds of a refused loop set for known, so that only the loop is told."""
        for variable in self._all_written(loop) & self._followed:
            name = self._free(variable.name)
            self._put(variable, Poly.unknown(f"{name} {_ITSELF}"))

    def enter(self, header: Header, outer: isl.Set) -> Rounds:
        """Come to a loop: what its rounds set is not known in its header."""
        before = self.now()
        written = set[Variable]().union(*map(self._all_written, header.round))
        for variable in written:
            self._put(variable, None)
        steps: dict[Variable, Poly] = {}
        turns: dict[Variable, tuple[int, ...]] = {}
        for variable in written & self._followed & before.keys():
            step = self._step(variable, header.body, header.after, outer)
            if step is not None:
                steps[variable] = step
            elif not leaves(header.body) and header.after is None:
                numbers = self._turns(variable, header.body, before[variable], outer)
                if numbers:
                    turns[variable] = numbers
        others = written & self._followed - steps.keys() - turns.keys()
        if not leaves(header.body, *_SKIPS):
            steps |= self._steps_together(others & before.keys(), header, outer)
        for variable in others - steps.keys():
            if variable in before:
                self._affine.unknown[variable] = self._why_not_counted(variable, header)
        return Rounds(
            header=header,
            outer=outer,
            written=frozenset(written),
            before=before,
            steps=steps,
            turns=turns,
        )

    def _steps_together(
        self, variables: Iterable[Variable], header: Header, domain: isl.Set
    ) -> dict[Variable, Poly]:
        """Return what each round adds to scalars that it sets from one another."""
        at_first = {one: Poly.unknown(f"{_ITSELF} {k}") for k, one in enumerate(variables)}
        if not at_first:
            return {}
        before = self.now()
        self._values.update(at_first)
        last = self._at_end(header.round, domain)
        self.restore(before)
        found = {}
        for variable, value in at_first.items():
            then = last.get(variable)
            change = then.plus(value, -1) if isinstance(then, Poly) else None
            if change is not None and not any(one.startswith(_ITSELF) for one in change.unknowns):
                found[variable] = change
        return found

    def _why_not_counted(self, variable: Variable, header: Header) -> Unknown:
        """Return why it is not known what a scalar is at the start of a round."""
        todo: list[tuple[Node, Node | None]] = [(node, None) for node in header.round]
        while todo:
            node, test = todo.pop()
            if self._written(node) is variable:
                if test is not None:
                    return self._chosen_by(variable, test)
                if node.kind == "assign" and node.children[1].reads_memory:
                    return Unknown(
                        reason="data",
                        message=f"{self._quoted(node)} sets '{variable.name}'",
                    )
            is_choice = node.kind == "if" and node.children[0].reads_memory
            inside = node.children[0] if is_choice else test
            todo.extend((child, inside) for child in reversed(node.children))
        counter = (header.counted or header.variable).name
        is_left = leaves(header.body, *_SKIPS)
        add = "may be left before they change" if is_left else "do not all add the same number to"
        return Unknown(
            reason="non_affine",
            message=f"rounds of the loop that counts '{counter}' {add} '{variable.name}'",
            hint="a packed triangle has no affine subscripts, a matrix has; what has an affine "
            "value in each round can be set to it (k = 2 * i)",
        )

    def _step(
        self, variable: Variable, body: Node, after: Node | None, domain: isl.Set
    ) -> Poly | None:
        """Return what each round adds to a scalar, be it left or not."""
        if leaves(body, *_SKIPS) and variable in self._all_written(body):
            return None
        return self._net(variable, [body] if after is None else [body, after], domain)

    def _turns(
        self, variable: Variable, body: Node, before: Value, domain: isl.Set
    ) -> tuple[int, ...]:
        """Return the numbers that a scalar is in turn, as by ``t = 1 - t``."""
        plain = body.children if body.kind == "compound" else [body]
        setting = [node for node in plain if variable in self._all_written(node)]
        first = self._algebra.constant_of(before)
        if len(setting) != 1 or self._written(setting[0]) is not variable or first is None:
            return ()
        numbers = [first]
        while len(numbers) <= _MAX_TURNS:
            self._values[variable] = Poly.constant(numbers[-1])
            value = self.after(setting[0], domain)
            del self._values[variable]
            number = None if value is None else self._algebra.number(value)
            if number is None:
                return ()
            if number == first:
                return tuple(numbers)
            numbers.append(number)
        return ()

    def begin(self, rounds: Rounds, name: str, domain: isl.Set) -> None:
        """Note what is known at the start of a round, whose counter is called ``name``."""
        header = rounds.header
        if header.counted is not None:
            self._put(header.counted, Poly.unknown(name))
        if not rounds.written:
            return
        try:
            start = self._loops.start(header, rounds.outer)
            distance = self._algebra.add(Poly.unknown(name), start, -1)
        except _NO_VALUE:
            return
        for variable, step in rounds.steps.items():
            if variable is header.counted:
                continue
            before = rounds.before[variable]
            with self._ranges.stating():
                value = self._counted(variable, before, step, distance, header.step, domain)
            self._put(variable, value)
        for variable, turns in rounds.turns.items():
            self._put(variable, self._in_turn(turns, distance, header.step))
        if not leaves(header.body):
            self._from_rounds_before(rounds, name, start, domain)

    def _in_turn(self, turns: tuple[int, ...], distance: Value, stride: int) -> Value | None:
        """Return what a scalar is that has the same values again after some rounds."""
        every = len(turns) * stride
        ahead = self._algebra.scale(distance, 1 if stride > 0 else -1)
        place = self._algebra.modulo(ahead, abs(every))
        cases = (
            (self._algebra.equal(place, at * abs(stride)), Poly.constant(number))
            for at, number in enumerate(turns)
            if at
        )
        return self._piecewise(Poly.constant(turns[0]), cases)

    def _piecewise(self, value: Value, cases: Iterable[tuple[isl.Set, Value]]) -> Value | None:
        """Return what other values are somewhere, a later one before an earlier one."""
        for here, other in cases:
            chosen = self._chosen(here, other, value)
            if chosen is None:
                return None
            value = chosen
        return value

    def _from_rounds_before(self, rounds: Rounds, name: str, start: Value, domain: isl.Set) -> None:
        """Note what scalars are that were set in a round before, and at first before the loop."""
        header = rounds.header
        earlier = Poly.unknown(name).plus(Poly.constant(header.step), -1)
        values: dict[Variable, tuple[Value, ...]] = {}  # in the first rounds, and in later ones
        for _ in range(_MAX_DISTANCE):
            last = self._at_end(header.round, domain)
            for variable in rounds.written & rounds.before.keys() - self._values.keys():
                then = last.get(variable)
                if isinstance(then, Poly):
                    later: tuple[Value, ...] = (then,)
                else:
                    others = (one for one in values if self._values.get(one) is then)
                    later = next((values[one] for one in others), ())
                if not later or not isinstance(later[-1], Poly):
                    continue
                shifted = later[-1].with_unknown(name, earlier)
                values[variable] = (rounds.before[variable], *later[:-1], shifted)
                self._put(variable, self._by_round(values[variable], name, start, header.step))

    def _by_round(
        self, values: tuple[Value, ...], name: str, start: Value, stride: int
    ) -> Value | None:
        cases = (
            (
                self._algebra.equal(Poly.unknown(name), self._algebra.add(start, number * stride)),
                values[number],
            )
            for number in reversed(range(len(values) - 1))
        )
        return self._piecewise(values[-1], cases)

    def leave(self, rounds: Rounds) -> None:
        """Note what is known after a loop."""
        for variable in rounds.written:
            self._put(variable, None)
        if not rounds.steps or leaves(rounds.header.body, "break"):
            return
        count = self._loops.rounds(rounds.header, rounds.outer)
        if count is None:
            return
        for variable, step in rounds.steps.items():
            value = self._total(rounds.before[variable], step, count, rounds.outer)
            if value is not None and self._fits(variable, value, rounds.outer):
                self._put(variable, value)

    def _counted(
        self,
        variable: Variable,
        before: Value,
        step: Poly,
        distance: Value,
        stride: int,
        domain: isl.Set,
    ) -> Value | None:
        """Return what a scalar is where the counter is so far from its start."""
        constant = step.constant_value
        try:
            if constant is not None and constant % stride == 0:
                change = self._algebra.scale(distance, constant // stride)
            elif constant is not None:
                ahead = self._algebra.scale(distance, 1 if stride > 0 else -1)
                change = self._algebra.scale(
                    self._algebra.floor_divide(ahead, abs(stride)), constant
                )
            elif isinstance(distance, Poly) and abs(stride) == 1:
                change = step.times(distance).scaled(stride)
            else:
                return None
            value = self._algebra.add(before, change)
        except _NO_VALUE:
            return None
        if self._fits(variable, value, domain):
            return value
        self._affine.unknown[variable] = _beyond_type(variable)
        return None

    def _total(self, before: Value, step: Poly, count: Value, outer: isl.Set) -> Value | None:
        constant = step.constant_value
        try:
            if isinstance(count, Poly) and self._is_counted(count, outer):
                return self._algebra.add(before, step.times(count))
            if constant is None:
                return None
            most = extremum(is_max=True, left=count, right=0)
            return self._algebra.add(before, self._algebra.scale(most, constant))
        except _NO_VALUE:
            return None

    def _is_counted(self, count: Poly, domain: isl.Set) -> bool:
        """Return whether a number of rounds is one, and not a negative number for none."""
        return self._ranges.proven_or_stated(domain, self._algebra.at_least(count, 0), _OTHERWISE)

    def _at_end(self, nodes: Sequence[Node], domain: isl.Set) -> dict[Variable, Value]:
        """Return what is known after a round of which nothing but plain statements is followed."""
        before = self.now()
        for node in nodes:
            self._run(node, domain)
        last = self.now()
        self.restore(before)
        return last

    def _run(self, node: Node, domain: isl.Set) -> None:
        if node.kind in ("compound", "declarations"):
            for child in node.children:
                self._run(child, domain)
        elif len(self._all_written(node)) == 1 and self._written(node) is not None:
            self.note(node, self.after(node, domain))
        else:
            self.forget(node)

    def _net(self, variable: Variable, nodes: Sequence[Node], domain: isl.Set) -> Poly | None:
        """Return what statements add to a scalar, each time the same."""
        total = Poly({})
        for node in nodes:
            if variable not in self._all_written(node):
                continue
            try:
                change = self._net_of(variable, node, domain)
            except _NO_VALUE:
                return None
            if not isinstance(change, Poly):
                return None
            total = total.plus(change)
        return total

    def _net_of(self, variable: Variable, node: Node, domain: isl.Set) -> Value | None:
        if node.kind == "compound":
            return self._net(variable, node.children, domain)
        if node.kind == "for":
            return self._net_of_loop(variable, node, domain)
        if self._written(node) is not variable or len(self._all_written(node)) > 1:
            return None
        return self._net_of_statement(variable, node, domain)

    def _net_of_loop(self, variable: Variable, node: Node, domain: isl.Set) -> Value | None:
        header = self._loops.header(node)
        if leaves(header.body):
            return None
        inside = self._net(variable, [header.body], domain)
        count = self._loops.rounds(header, domain)
        if inside is None or not isinstance(count, Poly):
            return None
        with self._ranges.stating():
            return inside.times(count) if self._is_counted(count, domain) else None

    def _net_of_statement(self, variable: Variable, node: Node, domain: isl.Set) -> Value | None:
        """Return what ``v += e`` or ``v = v + e`` adds to ``v``."""
        itself = Poly.unknown(_ITSELF)
        self._values[variable] = itself
        try:
            total = self._new_value(node, itself, domain)
        finally:
            del self._values[variable]
        if not isinstance(total, Poly):
            return None
        change = total.plus(itself, -1)
        return None if _ITSELF in change.unknowns else change


def _beyond_type(variable: Variable) -> Unknown:
    kind = variable.shape.element
    return Unknown(
        reason="own",
        message=f"'{variable.name}' may leave the range of its type '{kind.spelling}'",
        code="EATSS-F036",
        hint="use int or long",
    )


def _is_count(node: Node) -> bool:
    """Return whether a statement adds a constant to a variable."""
    if node.kind == "step":
        return True
    is_sum = node.kind == "assign" and node.op in ("+", "-")
    return is_sum and node.children[1].kind == "int"
