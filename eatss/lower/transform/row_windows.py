"""Steps of a loop along rows that a thread has in registers: loaded first, stored last.

    for (j = j0; j < j0 + 32; ++j) {
        X[i][j - (j0 - 1)] -= X[i][j - 1 - (j0 - 1)] * A[i][j - j0] / B[i][j - 1 - (j0 - 1)];
        B[i][j - (j0 - 1)] -= A[i][j - j0] * A[i][j - j0] / B[i][j - 1 - (j0 - 1)];
    }

becomes

    for (j = j0; j < j0 + 32; j += 16) {
        double X_w[17], A_w[16], B_w[17];
        for (w = 0; w < 17; ++w) X_w[w] = X[i][j - j0 + w];  …
        bool exact = true;
        for (w = 0; w < 16; ++w) {
            X_w[1 + w] -= eatss_divided<double>(X_w[w] * A_w[w], B_w[w], exact);
            B_w[1 + w] -= eatss_divided<double>(A_w[w] * A_w[w], B_w[w], exact);
        }
        if (exact == 0)
            for (j_w = j; j_w < j + 16; ++j_w) … as above …
        else
            for (w = 0; w < 16; ++w) X[i][j - j0 + 1 + w] = X_w[1 + w];  …
    }

where tiles of rows are in shared memory, and the thread writes some of their elements. No load may
move in front of a store then that may be to the same tile for all that compilers know, and none in
front of the branch of a division. A window is what a few steps read and write of a tile through
references that meet: one has in some step what another one has in an earlier step. A tile that they
write to has one window. Only what no step before it writes is loaded. Quotients are
products with reciprocals, and those by one number share it; where some is not exact the steps are
done again from shared memory, which has still what it had.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from eatss.base.quotients import FORMATS
from eatss.base.trees import free_name
from eatss.lower.kernel.nodes import (
    Buffer,
    Compute,
    Copy,
    Declare,
    Element,
    Flag,
    For,
    If,
    Kernel,
    Let,
    Node,
    Nodes,
    Scope,
    Source,
    counted,
)
from eatss.lower.kernel.uses import (
    constant_trips,
    every,
    every_of,
    mapped_of,
    substituted,
    with_elements,
)
from eatss.plan.stage import window_steps
from eatss.polyhedral.expression import Binary, Cast, Literal, preorder
from eatss.program import Constant, IntExpr, Name, equals, substitute
from eatss.program.linear import as_sum, linear


def with_row_windows(kernel: Kernel, taken: set[str]) -> Kernel:
    """Return a kernel whose threads have steps along rows that they write in registers.

    Args:
        kernel: before barriers are put.
        taken: names that are not free; those that come to be are added.
    """

    def changed(loop: For) -> Node:
        steps = window_steps(constant_trips(loop) or 1) if loop.unroll == "whole" else 1
        plain = all(isinstance(o, Let | Scope | Source | Compute) for o in every(loop.body))
        if steps == 1 or not plain:
            return loop
        body = mapped_of(loop.body, Scope, lambda one: replace(one, body=_without_lets(one.body)))
        body = _without_lets(body)
        own = _Steps(body, loop.counter, int(steps))
        return own.in_windows(loop, taken) if own.are_apart() else loop

    return replace(kernel, body=mapped_of(kernel.body, For, changed))


def _without_lets(body: Nodes) -> Nodes:
    """Return nodes with the values of their constants in place."""
    lets = {one.name: one.value for one in body if isinstance(one, Let)}
    for _ in range(2):  # constants are of others
        body = substituted(mapped_of(body, Let, lambda _: ()), lets)
    return body


class _Steps:
    """Steps that are to be in registers.

    ``places`` are what references have: what another has, so many steps later.
    """

    def __init__(self, body: Nodes, counter: str, steps: int) -> None:
        self.body, self.counter, self.steps = body, counter, steps
        self.computes = [*every_of(body, Compute)]
        self.places: dict[Element, tuple[Element, int]] = {}

    def at(self, own: Element, later: IntExpr | int) -> Element:
        """Return what a reference has so many steps later."""
        values = {self.counter: Name(self.counter) + later}
        return own.buffer.at(*(as_sum(substitute(one, values)) for one in own.subscripts))

    def are_apart(self) -> bool:
        """Find the places; tell whether all that is written through a tile has one, in a range."""
        for own in (one for compute in self.computes for one in compute.reads):
            forms = [linear(one) for one in own.subscripts]
            moves = any(one and self.counter in one.terms for one in forms)
            if own.buffer.space == "shared" and moves and all(forms):
                self.places[own] = next(self._of_another(own), (own, 0))
            elif own.buffer.of_phases:
                return False
        self.touched = {first: self._touched(first) for first, _ in self.places.values()}
        buffers = [one.buffer for one in self.touched if one.buffer.of_phases]
        written = any(one.target.buffer.of_phases for one in self.computes)
        ranges = all(
            own == [*range(own[0], own[-1] + 1)] for _, own in self.touched.values() if own
        )
        return written and ranges and len(buffers) == len({*buffers})

    def _of_another(self, own: Element) -> Iterator[tuple[Element, int]]:
        for first, _ in self.places.values():
            for later in range(-self.steps, self.steps + 1):
                if self.at(first, later) == self.at(own, 0):
                    yield first, later

    def _touched(self, first: Element) -> tuple[list[int], list[int]]:
        """Return what of a window is read before a step writes it, and what is written."""
        loaded, stored = set[int](), set[int]()
        for step in range(self.steps):
            for one in self.computes:
                places = [self.places.get(own, (None, 0)) for own in (*one.reads[1:], one.target)]
                *read, write = [{later + step} if own == first else set() for own, later in places]
                loaded |= set[int]().union(*read) - stored
                stored |= write
        return sorted(loaded), sorted(stored)

    def in_windows(self, loop: For, taken: set[str]) -> For:
        """Return a loop with such steps as one over windows."""
        counter, step = Name(loop.counter), Name(free_name("w", taken))
        homes = dict[Element, tuple[Buffer, int]]()
        for first, found in self.touched.items():
            name = free_name(f"{first.buffer.name}_w", taken)
            least, *_, last = sorted({*found[0], *found[1]})
            homes[first] = first.buffer.registers(name, last + 1 - least), least

        def home(own: Element, more: int = 0) -> Element:
            if own not in self.places:
                return own
            first, later = self.places[own]
            buffer, least = homes[first]
            return buffer.at(step + (later + more - least))

        def copied(which: int) -> Iterator[Node]:
            for first, found in self.touched.items():
                if own := found[which]:
                    here, row = home(first, own[0]), self.at(first, step + own[0])
                    copy = Copy(target=row, source=here) if which else Copy(target=here, source=row)
                    yield counted(step.name, own[-1] + 1 - own[0], (copy,))

        alone = all(one.target in self.places for one in self.computes)
        divided = any(map(_divides, self.computes))
        flag = free_name("exact", taken) if alone and divided else ""
        body = mapped_of(
            with_elements(self.body, home),
            Compute,
            lambda one: replace(one, flag=flag, inverts=bool(flag)),
        )
        stores = tuple(copied(1))
        if flag:
            again = Name(free_name(f"{loop.counter}_w", taken))
            redone = replace(
                loop,
                counter=again.name,
                lower=counter,
                condition=again < counter + self.steps,
                body=substituted(mapped_of(loop.body, Source, lambda _: ()), {loop.counter: again}),
                unroll=1,
            )
            stores = (If(conditions=(equals(Name(flag), 0),), body=(redone,), orelse=stores),)
        return replace(
            loop,
            step=Constant(self.steps),
            body=(
                *(Declare(buffer=one) for one, _ in homes.values()),
                *([Flag(name=flag)] if flag else ()),
                *copied(0),
                counted(step.name, self.steps, substituted(body, {loop.counter: counter + step})),
                *stores,
            ),
            unroll=1,
        )


def _divides(one: Compute) -> bool:
    """Tell whether a statement divides by what is no literal, in a type that has reciprocals."""
    quotients = [
        own.right.operand if isinstance(own.right, Cast) else own.right
        for own in preorder(one.statement.value)
        if isinstance(own, Binary) and own.operator == "/"
    ]
    known = one.target.buffer.element_type.value in FORMATS
    return known and not all(isinstance(own, Literal) for own in quotients)
