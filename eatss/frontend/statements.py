"""Walks the statements of a region and reads each assignment with its iteration domain."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import field, replace
from itertools import count

import islpy as isl

from eatss.base.frozen import frozen
from eatss.frontend import clang
from eatss.frontend.affine import AffineReader, LoopLevel, RawAccess, RawStatement, RegionReader
from eatss.frontend.clang import INT
from eatss.frontend.declarations import (
    PpcgCount,
    SymbolTable,
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
    operator_of,
    target_of,
    update_of,
)
from eatss.frontend.loops import Exits, Header, LoopReader
from eatss.frontend.refusals import (
    COMMA,
    IDLE_STATEMENT,
    REFUSED_STATEMENTS,
    NotAffineError,
    Reporter,
    call_refusal,
)
from eatss.frontend.scalars import ScalarValues
from eatss.frontend.source import RefusedError
from eatss.frontend.tree import WRITES, Kind, Node, chain
from eatss.frontend.values import Value
from eatss.polyhedral.isl_names import coalesced
from eatss.polyhedral.scop import AccessKind

_MAX_LOOPS = 60


@frozen
class Frame:
    """Where in the region a statement stands; ``places`` are those left in its block."""

    loops: tuple[LoopLevel, ...]
    positions: tuple[int, ...]
    domain: isl.Set
    guards: tuple[Guard, ...] = ()
    places: Iterator[int] = field(default_factory=count)

    def next(self) -> Frame:
        """Return where the next statement stands, with a block of its own."""
        return replace(self, positions=(*self.positions, next(self.places)), places=count())

    def within(self, domain: isl.Set) -> Frame:
        """Return the same place for the points of a domain."""
        return replace(self, domain=coalesced(domain) if domain.n_basic_set() > 1 else domain)


class StatementReader(RegionReader):
    """Reads the statements of one region in source order."""

    def __init__(self, symbols: SymbolTable, affine: AffineReader, reporter: Reporter) -> None:
        super().__init__(symbols, affine, reporter)
        self._loops = LoopReader(symbols, affine, reporter)
        self.scalars = ScalarValues(symbols, affine, reporter)
        self.ppcg = PpcgCount()
        self.statements: list[RawStatement] = []
        self._ppcg_name = ""
        self._exits: list[Exits] = []
        self._readers: dict[Kind, Callable[[Node, Frame], None]] = {
            "if": self._if,
            "declarations": self._declarations,
            "for": self._for,
            "break": self._leave,
            "continue": self._leave,
        }

    def read_all(self, nodes: list[Node], frame: Frame) -> None:
        """Read statements that follow one another."""
        for node in nodes:
            left = self._exits[-1].left if self._exits else None
            if left is not None:
                frame = frame.within(frame.domain.subtract(left))
            self._statement(node, frame)

    def _statement(self, node: Node, frame: Frame) -> None:
        if node.kind == "compound":
            with self.ppcg.block():
                self.read_all(node.children, frame)
        elif node.kind != "empty":
            self._readers.get(node.kind, self._other)(node, frame)

    def _other(self, node: Node, frame: Frame) -> None:
        self._ppcg_name = self.ppcg.statement()
        self._simple(node, frame.next())

    # -- control --------------------------------------------------------------------

    def _for(self, node: Node, frame: Frame) -> None:
        frame = frame.next()
        counter = counter_of(node)
        is_set = counter is not None and counter.kind == "name"
        sets = self._of(counter) if counter is not None and is_set else None
        # what is below a loop is read when its own form is
        with self.ppcg.loop(sets), suppress(RefusedError):
            self._loop(node, self._loops.header(node), frame)
        self.scalars.forget(node)

    def _loop(self, node: Node, header: Header, frame: Frame) -> None:
        variable, active = header.variable, self._affine.active
        if len(frame.loops) == _MAX_LOOPS:
            self._refuse("EATSS-F009", node, "loops are nested too deeply", "use fewer levels")
        if variable in active:
            self._refuse(
                "EATSS-F031",
                node.children[0],
                f"counter '{variable.name}' of the enclosing loop is the counter of this loop too",
                "use another variable",
            )
        name = self._free(variable.name)
        level = LoopLevel(name=name, sign=header.sign)
        self.scalars.forget(header.body)  # what a round sets, the next one does not know
        active[variable] = name
        try:
            domain = self._loops.iterations(header, name, frame.domain)
            exits = Exits(counter=name, sign=header.sign, guards=len(frame.guards))
            first = len(self.statements)
            self._exits.append(exits)
            inner = replace(frame, loops=(*frame.loops, level), domain=domain)
            self.read_all([header.body], inner)
            self._exits.pop()
        finally:
            del active[variable]
        self.statements[first:] = [
            replace(raw, domain=exits.before(raw.domain, self._algebra))
            for raw in self.statements[first:]
        ]

    def _leave(self, node: Node, frame: Frame) -> None:
        next(frame.places)
        if not self._exits:
            self._refuse_statement(node)
        elif len(frame.guards) > self._exits[-1].guards:
            test = frame.guards[-1].test
            self._error(
                "EATSS-F012",
                test,
                f"condition {self._quoted(test)} of a {node.kind} depends on data",
                "leave rounds of a loop under conditions of counters and parameters only",
            )
        else:
            self._exits[-1].add(frame.domain, breaks=node.kind == "break")

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
        before = self.scalars.now()
        self.read_all(arms[:1], frame.within(frame.domain.intersect(holds)))
        known = self.scalars.now()
        self.scalars.restore(before)
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
        reader = ExpressionReader(self._symbols, self._affine, self._reporter, frame.domain)
        try:
            _ = reader.read(test)
        except RefusedError:
            reader.failed = True
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
        parts = (part for arm in arms for part in arm.parts(*WRITES))
        changed = {self._of(written_name(part)) for part in parts} - {None}
        if any(self._of(part) in changed for part in test.preorder() if part.name):
            kept = self._symbols.add_local(test, "condition")
            self._ppcg_name = self.ppcg.statement()
            numbers = [Node("int", test.cursor, INT, value=value) for value in (1, 0)]
            truth = Node("conditional", test.cursor, INT, [test, *numbers])
            self._assign(test, Node("assign", test.cursor, INT, [kept, truth]), frame.next())
            test = kept
        named = map(self._of, node.parts("variable"))
        declared = frozenset(one for one in named if one is not None)
        before = self.scalars.now()
        for arm, holds, place in zip(arms, (True, False), places, strict=False):
            self.scalars.restore(before)
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

    def _declarations(self, node: Node, frame: Frame) -> None:
        for variable in node.children:
            self._declaration(variable, frame)
            self.ppcg.declared(self._of(variable))

    def _declaration(self, node: Node, frame: Frame) -> None:
        variable = self._of(node)
        _ = self.ppcg.statement()  # what the variable held before ends
        if node.kind != "variable" or variable is None:
            self._error(
                "EATSS-F019", node, "declaration outside the subset",
                "declare variables only",
            )  # fmt: skip
            return
        known = self._known_after(node, frame)
        if self._refuses_storage(node, variable) or not node.children:
            self.scalars.note(node, None)
        elif variable.role == "counter":
            self._error(
                "EATSS-F031",
                node,
                f"counter '{variable.name}' gets a value outside its loop",
                "start it in the for statement",
            )
        elif (
            not (variable.is_scalar or variable.shape.is_pointer)
            or node.children[0].kind == "other"
        ):
            self._error(
                "EATSS-F019", node, f"array '{variable.name}' with an initialiser",
                "assign its elements in a loop",
            )  # fmt: skip
        else:
            self._ppcg_name = self.ppcg.statement()
            update = Node("assign", node.cursor, node.type, [node, *node.children])
            self._assign(node, update, frame.next())
            self.scalars.note(node, known)

    def _known_after(self, node: Node, frame: Frame) -> Value | None:
        with self._ranges.stating():
            return self.scalars.after(node, frame.domain)

    def _refuses_storage(self, node: Node, variable: Variable) -> bool:
        """Refuse a variable whose memory outlives the block it is declared in."""
        if clang.is_automatic(node.cursor):
            return False
        self._error(
            "EATSS-F019",
            node,
            f"'{variable.name}' is declared static or extern inside the region",
            "declare it before #pragma scop",
        )
        return True

    def _simple(self, node: Node, frame: Frame) -> None:
        if node.kind in WRITES:
            if self._writes_counter(node, node.children[0]):
                return
            known = self._known_after(node, frame)
            self._assign(node, node, frame, known)
            self.scalars.note(node, known)
            return
        self._refuse_statement(node)
        self.scalars.forget(node)

    def _writes_counter(self, node: Node, target: Node) -> bool:
        variable = self._of(base_name(target))
        if variable is None or variable.role != "counter":
            return False
        where = "in the body of its" if variable in self._affine.active else "outside its"
        message = f"counter '{variable.name}' is written {where} loop"
        self._error("EATSS-F031", node, message, "use another variable")
        return True

    def _assign(self, node: Node, update: Node, frame: Frame, known: Value | None = None) -> None:
        """Read what a statement does to an element, or to the variable that it declares.

        A scalar that is ``known`` afterwards is set to that, whatever it was.
        """
        reader = ExpressionReader(self._symbols, self._affine, self._reporter, frame.domain)
        place = target_of(update)
        try:
            write = self._target(reader, place, operator_of(update))
        except RefusedError:
            if update.kind == "assign":
                reader.search(update.children[1])
            return
        kind = write.variable.shape.element
        assert kind.element is not None
        update = guarded(update, write.variable, frame.guards)
        try:
            stored = None if frame.guards else reader.known(known, kind.element)
            if stored is None:
                stored = reader.read(Place(node=place, type=kind).stored(update))
        except RefusedError:
            return
        if reader.failed:
            return
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

    def _target(self, reader: ExpressionReader, place: Node, operator: str) -> RawAccess:
        variable = self._of(place)
        is_pointer = variable is not None and variable.shape.is_pointer
        if (place.kind == "variable" and is_pointer) or place.type.kind == "pointer":
            self._refuse(
                "EATSS-F024",
                place,
                "pointer arithmetic" if operator else "a pointer is set inside the region",
                "set pointers before #pragma scop and use subscripts",
            )
        return reader.add_access(place, AccessKind.WRITE)

    def _refuse_statement(self, node: Node) -> None:
        if node.kind == "cast" and not node.type.is_arithmetic:
            inner = node.children[0]
            if inner.kind in ("name", "int"):
                return  # (void) x;
        code, message, hint = REFUSED_STATEMENTS.get(node.kind, IDLE_STATEMENT)
        if node.is_binary(","):
            code, message, hint = COMMA
        if node.kind == "broken" and node.name:
            code, message = "EATSS-F007", f"the declaration of '{node.name}' is not understood"
        if node.kind == "call":
            code, message, hint = call_refusal(node.children[0])
        self._error(code, node, message, hint)
