"""Walks the statements of a region and reads each assignment with its iteration domain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import field, replace
from itertools import count

import islpy as isl

from eatss.base.frozen import Numbers, frozen
from eatss.frontend import clang
from eatss.frontend.affine import Common, RegionReader
from eatss.frontend.clang import INT
from eatss.frontend.declarations import (
    PpcgCount,
    Variable,
    base_name,
    counter_of,
    written_name,
)
from eatss.frontend.expressions import (
    ExpressionReader,
    Guard,
    Place,
    guarded,
    target_of,
    update_of,
)
from eatss.frontend.loops import Loop, RawStatement
from eatss.frontend.refusals import NotAffineError
from eatss.frontend.source import RefusedError
from eatss.frontend.tree import Node, chain
from eatss.frontend.values import Poly, Value, same
from eatss.polyhedral.isl_names import coalesced
from eatss.polyhedral.scop import AccessKind

# -- scalars -----------------------------------------------------------------------------------
# Values of the integer scalars that a region sets, where they are affine.
#
#     for (i = 0; i < n; i++) { j = i + 1; a[j - 1] = b[j]; }
#
# reads ``b[i + 1]`` and writes ``a[i]``. While statements are read in their order, the value that
# each scalar has is known or not known: what is set to an affine value has it until it is set
# again; after an ``if``, each arm says what it is where it was taken; what a round of a loop sets
# is not known at the start of the next one, nor after the loop.
#
# Values of types that may wrap are known only where they provably do not.


class ScalarValues(RegionReader):
    """What is known of scalars; :attr:`AffineReader.scalars` holds it for those who read names."""

    def __init__(self, common: Common) -> None:
        super().__init__(common)
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
        if node.kind not in ("variable", "assign"):
            return None
        variable = self._of(node if node.kind == "variable" else base_name(node.children[0]))
        return variable if variable is not None and variable.is_scalar else None

    def after(self, node: Node, domain: isl.Set) -> Value | None:
        """Return what the scalar that a statement sets is then, ``None`` if that is not known."""
        variable = self._written(node)
        if variable not in self._followed or node.op or not node.children:
            return None
        assert variable is not None
        with suppress(NotAffineError), self._ranges.stating():
            value = self._affine.value(node.children[-1], domain)
            return value if self._fits(variable, value, domain) else None
        return None

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
            self._affine.scalars.pop(variable, None)
            if value is not None:
                self._affine.scalars[variable] = value
                self.known.add(variable)

    def forget(self, node: Node) -> None:
        """Note that any statement below a node may have run, or not."""
        for part in node.preorder():
            self.note(part, None)

    def join(self, holds: isl.Set, if_true: dict[Variable, Value]) -> None:
        """Note what is known after an ``if``: now is the end of the other arm."""
        if_false, self._affine.scalars = self._affine.scalars, {}
        for variable in if_true.keys() & if_false.keys():
            yes, no = if_true[variable], if_false[variable]
            with suppress(NotAffineError):
                chosen = yes if same(yes, no) else self._algebra.choose(holds, yes, no)
                self._affine.scalars[variable] = chosen


def _may_be_followed(variable: Variable) -> bool:
    shape = variable.shape
    is_integer = shape.element.is_integer and not shape.qualified_volatile
    return variable.is_scalar and is_integer and variable.role == "data"


# -- statements --------------------------------------------------------------------------------


@frozen
class Frame:
    """Where in the region a statement stands; ``places`` are those left in its block."""

    loops: tuple[Loop, ...]
    positions: Numbers
    domain: isl.Set
    guards: tuple[Guard, ...] = ()
    places: Iterator[int] = field(default_factory=count)

    def next(self) -> Frame:
        """Return where the next statement stands, with a block of its own."""
        return replace(self, positions=(*self.positions, next(self.places)), places=count())

    def within(self, domain: isl.Set) -> Frame:
        """Return the same place for the points of a domain."""
        return replace(self, domain=coalesced(domain) if domain.n_basic_set() > 1 else domain)


def _one_by_one(node: Node) -> list[Node]:
    """Return a statement, or the assignments that stand inside each other in it, the last first."""
    if node.kind != "assign":
        return [node]
    before, value = _apart(node.children[1])
    return [*before, replace(node, children=[node.children[0], value])] if before else [node]


def _apart(value: Node) -> tuple[list[Node], Node]:
    """Return the assignments that a value is of, and what they leave it to be."""
    if value.kind == "cast":
        before, inner = _apart(value.children[0])
        return before, replace(value, children=[inner])
    return (_one_by_one(value), value.children[0]) if value.kind == "assign" else ([], value)


class StatementReader(RegionReader):
    """Reads the statements of one region in source order."""

    def __init__(self, common: Common) -> None:
        super().__init__(common)
        self.scalars = ScalarValues(self._common)
        self.ppcg = PpcgCount()
        self.statements: list[RawStatement] = []
        self._ppcg_name = ""
        self._loops: list[Loop] = []

    def read_all(self, nodes: list[Node], frame: Frame) -> None:
        """Read statements that follow one another."""
        for node in nodes:
            left = self._loops[-1].left if self._loops else None
            if left is not None:
                frame = frame.within(frame.domain.subtract(left))
            self._statement(node, frame)

    def _statement(self, node: Node, frame: Frame) -> None:
        match node.kind:
            case "compound":
                self.ppcg.blocks += 1
                self.read_all(node.children, frame)
                self.ppcg.blocks -= 1
            case "for":
                self._for(node, frame.next())
            case "if":
                self._if(node, frame)
            case "declarations":
                for variable in node.children:
                    self._declaration(variable, frame)
                    self.ppcg.declared(self._of(variable))
            case "break" | "continue":
                self._leave(node, frame)
            case "empty":
                pass
            case _:
                name = self.ppcg.statement()
                *before, last = _one_by_one(node)
                if before:
                    self.ppcg.wholes.append(self._quoted(node))
                for at, one in enumerate(before):
                    self._ppcg_name = f"{name}_{at}"
                    self._simple(one, frame.next())
                self._ppcg_name = name
                self._simple(last, frame.next())

    # -- control --------------------------------------------------------------------

    def _for(self, node: Node, frame: Frame) -> None:
        counter = counter_of(node)
        sets = self._of(counter) if counter is not None and counter.kind == "name" else None
        self.ppcg.stepped(sets, len(frame.loops))
        with suppress(RefusedError):  # what is below a loop is read when its own form is
            self._loop(node, Loop(self._common, node), frame)
        self.ppcg.stepped(sets, len(frame.loops) + 1)
        self.scalars.forget(node)

    def _loop(self, node: Node, loop: Loop, frame: Frame) -> None:
        if loop.variable in self._affine.active:
            self._refuse("same_counter", node.children[0], name=loop.variable.name)
        self.scalars.forget(loop.body)  # what a round sets, the next one does not know
        domain = loop.iterations(frame.domain)
        loop.guards, first = len(frame.guards), len(self.statements)
        loops = (*frame.loops, loop)
        with loop.active():
            self._loops.append(loop)
            self.read_all([loop.body], replace(frame, loops=loops, domain=domain))
            self._loops.pop()
        self.statements[first:] = [
            replace(raw, domain=loop.unbroken(raw.domain)) for raw in self.statements[first:]
        ]

    def _leave(self, node: Node, frame: Frame) -> None:
        next(frame.places)
        if not self._loops:
            self._reporter.refused(node, is_statement=True)
        elif len(frame.guards) > self._loops[-1].guards:
            test = frame.guards[-1].test
            self._error("jump_on_data", test, construct=node.kind)
        else:
            self._loops[-1].leave(frame.domain, breaks=node.kind == "break")

    def _if(self, node: Node, frame: Frame) -> None:
        test, *arms = node.children
        try:
            with self._ranges.stating():
                holds = self._affine.condition(test, frame.domain)
        except NotAffineError as error:
            if not self._affine.is_index(test):
                self._choice(node, frame)
            else:
                self._reporter.not_affine(error, test, "condition")
            self.scalars.forget(node)
            return
        before = dict(self._affine.scalars)
        self.read_all(arms[:1], frame.within(frame.domain.intersect(holds)))
        known, self._affine.scalars = self._affine.scalars, before
        for arm in arms[1:]:
            self.read_all([arm], frame.within(frame.domain.subtract(holds)))
        self.scalars.join(holds, known)

    def _choice(self, node: Node, frame: Frame) -> None:
        """Read an ``if`` whose condition depends on data, or on scalars that are no integers.

        If it sets one element it is one statement, else its condition guards each statement.
        """
        test, *arms = node.children
        if len(arms) == 1:
            test, frame = self._without_affine(test, frame)
            node = replace(node, children=[test, *arms])
        reader = ExpressionReader(self._common, frame.domain)
        try:
            _ = reader.read(test)
        except RefusedError:
            return
        if reader.failed:
            return
        found = update_of(node)
        if found is None:
            places = [reader.where(test, holds=holds) for holds in (True, False)]
            self._guard(node, test, frame, places)
            return
        here = frame.next()
        if not self._writes_counter(node, target_of(found)):
            self._ppcg_name = self.ppcg.statement()
            self._assign(node, found, here)

    def _guard(self, node: Node, test: Node, frame: Frame, places: Sequence[isl.Set]) -> None:
        """Read the statements of an ``if``, each under its condition and in the place of its arm.

        If one of them sets what the condition reads, that is kept in a variable.
        """
        self.ppcg.wholes.append(self._quoted(test))
        arms = node.children[1:]
        changed = {self._of(written_name(part)) for part in node.parts("assign")} - {None}
        if any(self._of(part) in changed for part in test.preorder() if part.name):
            kept = self._symbols.add_local(test, "condition")
            self._ppcg_name = self.ppcg.statement()
            numbers = [Node("int", test.cursor, INT, value=value) for value in (1, 0)]
            truth = Node("conditional", test.cursor, INT, [test, *numbers])
            self._assign(test, Node("assign", test.cursor, INT, [kept, truth]), frame.next())
            test = kept
        declared = frozenset(map(self._of, node.parts("variable")))
        before = self._affine.scalars
        for arm, holds, place in zip(arms, (True, False), places, strict=False):
            self._affine.scalars = dict(before)
            guard = Guard(test=test, holds=holds, declared=declared)
            inside = frame.within(frame.domain.intersect(place))
            self.read_all([arm], replace(inside, guards=(*frame.guards, guard)))

    def _without_affine(self, test: Node, frame: Frame) -> tuple[Node, Frame]:
        """Return what is not affine of a condition, and where the rest of it holds."""
        parts = chain(test, "&&")
        rest: Node | None = None
        for part in parts if len(parts) > 1 else ():
            try:
                holds = self._affine.condition(part, frame.domain)
                frame = frame.within(frame.domain.intersect(holds))
            except NotAffineError:
                rest = part if rest is None else replace(test, children=[rest, part])
        return rest or test, frame

    # -- statements -------------------------------------------------------------------

    def _declaration(self, node: Node, frame: Frame) -> None:
        variable = self._of(node)
        _ = self.ppcg.statement()  # what the variable held before ends
        if node.kind != "variable" or variable is None:
            self._error("declaration", node)
            return
        known = self.scalars.after(node, frame.domain)
        self.scalars.note(node, None)
        if not clang.is_automatic(node.cursor):
            self._error("declaration", node)
        elif not node.children:
            pass
        elif variable.role == "counter":
            self._error("written_counter", node)
        elif (
            not (variable.is_scalar or variable.shape.is_pointer)
            or node.children[0].kind == "other"
        ):
            self._error("initialiser", node)
        else:
            self._ppcg_name = self.ppcg.statement()
            update = Node("assign", node.cursor, node.type, [node, *node.children])
            self._assign(node, update, frame.next())
            self.scalars.note(node, known)

    def _simple(self, node: Node, frame: Frame) -> None:
        if node.kind != "assign":
            is_idle = node.kind == "cast" and node.children[0].kind in ("name", "int")
            if not is_idle or node.type.is_arithmetic:  # (void) x; (void) 0 is an assert
                self._reporter.refused(node, is_statement=True)
                self.scalars.forget(node)
        elif not self._writes_counter(node, node.children[0]):
            known = self.scalars.after(node, frame.domain)
            self._assign(node, node, frame, known)
            self.scalars.note(node, known)

    def _writes_counter(self, node: Node, target: Node) -> bool:
        variable = self._of(base_name(target))
        if variable is None or variable.role != "counter":
            return False
        self._error("written_counter", node, name=variable.name)
        return True

    def _assign(self, node: Node, update: Node, frame: Frame, known: Value | None = None) -> None:
        """Read what a statement does to an element, or to the variable that it declares.

        A scalar that is ``known`` afterwards is set to that, whatever it was.
        """
        reader = ExpressionReader(self._common, frame.domain)
        place = target_of(update)
        with suppress(RefusedError):
            try:
                variable = self._target(reader, place)
            except RefusedError:
                if update.kind == "assign":
                    reader.search(update.children[1])
                raise
            kind = variable.shape.element
            assert kind.element is not None
            update = guarded(update, variable, frame.guards)
            stored = None
            if known is not None and not frame.guards:
                stored = reader.known(known, kind.element)
            if stored is None:
                stored = reader.read(Place(node=place, type=kind).stored(update))
            if not reader.failed:
                self.statements.append(
                    RawStatement(
                        loops=frame.loops,
                        positions=frame.positions,
                        domain=frame.domain,
                        accesses=tuple(reader.accesses),
                        value=stored,
                        node=node,
                        ppcg_name=self._ppcg_name,
                    )
                )

    def _target(self, reader: ExpressionReader, place: Node) -> Variable:
        variable = self._of(place)
        is_pointer = variable is not None and variable.shape.is_pointer
        if (place.kind == "variable" and is_pointer) or place.type.kind == "pointer":
            self._refuse("set_pointer", place)
        return reader.add_access(place, AccessKind.WRITE).variable
