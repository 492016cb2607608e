"""What all lanes of a row have of it in a register, each by itself: its maximum, its sum.

    if (threadIdx.x == 0) most[i] = in[i][0];    most_v = in[i][0];
    … barrier …                                  …
    … exp(in[i][j] - most[i]) …                  … exp(in[i][j] - most_v) …

A sum over the lanes comes to all of them. So each of them goes on with it, and none waits for
another to leave it in memory. One of them stores what no later phase overwrites.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from eatss.kernel.layout import Layout
from eatss.kernel.nodes import (
    Buffer,
    Compute,
    Copy,
    Declare,
    Element,
    For,
    If,
    Let,
    Node,
    Perform,
    Scope,
)
from eatss.kernel.uses import accesses
from eatss.lower.phase_accesses import (
    SLOT,
    TURN,
    Access,
    Form,
    LoweredPhase,
    accesses_by_array,
    defined,
    form_of,
    inside,
    is_covered,
)
from eatss.program import Apply, Constant, IntExpr, Name, Operator
from eatss.schedule.names import NameTable

_LANE = "threadIdx.x"
_FIRST_LANE = Apply(Operator.EQ, (Name(_LANE), Constant(0)))


@dataclass(frozen=True, slots=True)
class _Value:
    """An element of an array for each row, in the register ``home`` of all lanes.

    ``stores`` says for each phase whether memory gets what it writes.
    """

    form: Form
    home: Element
    stores: tuple[bool, ...]


def with_row_values(
    phases: Sequence[LoweredPhase], lanes: int, names: NameTable
) -> tuple[tuple[Declare, ...], tuple[LoweredPhase, ...], tuple[str, ...]]:
    """Return what is declared, phases that are right for all lanes of a row, and notes.

    Args:
        phases: some without a loop for lanes: what they do the first lane does alone, but for
            what each of them has for itself.
        lanes: of a row.
        names: gives out the names of the registers.
    """
    values: dict[Buffer, _Value] = {}
    notes: list[str] = []
    for array, own in accesses_by_array(phases).items():
        form = _row_form(array, own)
        if form is None or lanes == 1:
            continue
        home = Buffer(
            name=names.fresh(f"{array.name}_v"),
            space="register",
            element_type=array.element_type,
            layout=Layout(()),
        )
        stores = tuple(
            not all(
                is_covered(one.image, own, behind=number)
                for one in own
                if one.phase == number and one.writes
            )
            for number in range(len(phases))
        )
        values[array] = _Value(form, Element(buffer=home), stores)
        notes.append(f"{array.name}: a value of a row in a register of each of its threads")
    changed = tuple(
        LoweredPhase(phase.unit, _Change(number, phase, lanes, values).all(phase.nodes))
        for number, phase in enumerate(phases)
    )
    return tuple(Declare(buffer=one.home.buffer) for one in values.values()), changed, tuple(notes)


def _row_form(array: Buffer, own: Sequence[Access]) -> Form | None:
    """Return what all elements of an array are by the row, if registers can have them.

    Each has to be written before it is read, and used in another phase than it is written in.
    """
    forms = {one.form for one in own}
    form = next(iter(forms))
    if len(forms) > 1 or form is None or array.space != "global":
        return None
    names = {name for terms, _ in form for name, _ in terms}
    if _LANE in names or SLOT in names or any(name.startswith(TURN) for name in names):
        return None
    if any(one.image is None for one in own) or len({one.phase for one in own}) < 2:
        return None
    written = all(one.writes or is_covered(one.image, own, before=one.phase) for one in own)
    return form if written and any(one.writes for one in own) else None


@dataclass(frozen=True, slots=True)
class _Change:
    """Makes one phase right for all lanes of a row."""

    number: int
    phase: LoweredPhase
    lanes: int
    values: Mapping[Buffer, _Value]

    def all(self, nodes: Sequence[Node]) -> tuple[Node, ...]:
        """Return the nodes of the phase."""
        alone = self.phase.lane_loop is None and self.lanes > 1
        return tuple(self._changed(nodes, {}, alone=alone))

    def _changed(
        self, nodes: Sequence[Node], env: Mapping[str, IntExpr], *, alone: bool
    ) -> Iterator[Node]:
        """Yield nodes; what is ``alone`` only the first lane is to do, but for its registers."""
        here = dict(env)
        for node in nodes:
            if isinstance(node, Let):
                here = defined(here, node)
                yield node
            elif isinstance(node, For):
                there = inside(here, node, self.phase.lane_loop)
                yield replace(node, body=tuple(self._changed(node.body, there, alone=alone)))
            elif isinstance(node, Scope):
                yield replace(node, body=tuple(self._changed(node.body, here, alone=alone)))
            elif isinstance(node, If) and self._is_first(node):
                yield from self._changed(node.body, here, alone=True)
            elif isinstance(node, If):
                body = tuple(self._changed(node.body, here, alone=alone))
                orelse = tuple(self._changed(node.orelse, here, alone=alone))
                yield replace(node, body=body, orelse=orelse)
            else:
                yield from self._leaf(node, here, alone=alone)

    def _is_first(self, node: If) -> bool:
        """Tell whether a node is for the first lane, which has what the lanes add up."""
        loop = self.phase.lane_loop
        if loop is None or self.phase.unit.mapping.split is None or node.orelse:
            return False
        return node.conditions == (Apply(Operator.EQ, (Name(loop.thread), Constant(0))),)

    def _leaf(self, node: Node, env: Mapping[str, IntExpr], *, alone: bool) -> Iterator[Node]:
        """Yield a node with registers of rows, and what is stored of them."""

        def home(one: Element) -> Element:
            value = self.values.get(one.buffer)
            return one if value is None or form_of(one, env) != value.form else value.home

        written, _ = accesses(node)
        if isinstance(node, Compute):
            found: Node = replace(
                node, target=home(node.target), reads=tuple(map(home, node.reads))
            )
        elif isinstance(node, Copy):
            found = replace(node, target=home(node.target), source=home(node.source))
        elif isinstance(node, Perform):
            operands = tuple((name, tuple(map(home, own))) for name, own in node.operands)
            found = replace(node, operands=operands)
        else:
            found = node
        kept = [one for one in written if home(one) is not one]
        if alone and len(kept) < len(written):
            yield If(conditions=(_FIRST_LANE,), body=(found,))
        else:
            yield found
        stored = tuple(
            Copy(target=one, source=home(one))
            for one in kept
            if self.values[one.buffer].stores[self.number]
        )
        if stored:
            yield If(conditions=(_FIRST_LANE,), body=stored)
