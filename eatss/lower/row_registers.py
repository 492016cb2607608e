"""Registers in the place of elements of rows, as :mod:`eatss.plan.phases` says.

    if (threadIdx.x == 0) most[i] = in[i][0];    most_v = in[i][0];
    … barrier …                                  …
    … exp(in[i][j] - most[i]) …                  … exp(in_k[rj] - most_v) …

A sum over the lanes comes to all of them. So each of them goes on with it, and none waits for
another to leave it in memory. One of them stores what no later phase overwrites.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from eatss.base.targets import CUDA
from eatss.lower.kernel.nodes import (
    Buffer,
    Compute,
    Copy,
    Declare,
    Element,
    Extents,
    For,
    If,
    Let,
    Node,
    Nodes,
    Scope,
)
from eatss.lower.kernel.uses import accesses, mapped, with_elements
from eatss.lower.planning import Unit
from eatss.lower.row_storage import lane_loop
from eatss.lower.schedule.mapping import MappedLoop
from eatss.lower.schedule.names import NameTable
from eatss.plan.phases import KeptRow, RowValue
from eatss.program import Constant, Name, equals

_FIRST_LANE = equals(Name(f"{CUDA.thread}x"), 0)


@dataclass(frozen=True, slots=True)
class LoweredPhase:
    """The nodes of a phase, and the unit that they come from."""

    unit: Unit
    nodes: Nodes

    @property
    def lane_loop(self) -> MappedLoop | None:
        """The loop whose points go to the threads of a row."""
        return lane_loop(self.unit)


def with_row_values(
    phases: Sequence[LoweredPhase], values: Sequence[tuple[RowValue, Buffer]], names: NameTable
) -> tuple[tuple[Declare, ...], tuple[LoweredPhase, ...], tuple[str, ...]]:
    """Return what is declared, phases that are right for all lanes of a row, and notes.

    Args:
        phases: some without a loop for lanes: what they do the first lane does alone, but for
            what each of them has for itself. A row has several lanes.
        values: what all lanes have in registers, with the array of each.
        names: gives out the names of the registers.
    """
    homes = {array: _home(array, f"{array.name}_v", (), names) for _, array in values}
    changed = []
    for number, phase in enumerate(phases):
        stored = {array for value, array in values if number in value.stores}
        nodes = phase.nodes
        if phase.unit.mapping.split is not None and phase.lane_loop is not None:
            nodes = mapped(nodes, _combined(phase.lane_loop, homes, stored))
        own = _leaf(homes, stored, alone=phase.lane_loop is None)
        changed.append(replace(phase, nodes=mapped(nodes, own)))
    notes = (f"{one.name}: a value of a row in a register of each of its threads" for one in homes)
    return tuple(Declare(buffer=one) for one in homes.values()), tuple(changed), tuple(notes)


def _home(array: Buffer, name: str, extents: tuple[int, ...], names: NameTable) -> Buffer:
    return Buffer(
        name=names.fresh(name),
        space="register",
        element_type=array.element_type,
        layout=Extents(tuple(map(Constant, extents))),
    )


def _combined(
    loop: MappedLoop, homes: dict[Buffer, Buffer], stored: set[Buffer]
) -> Callable[[Node], Nodes]:
    """Return the change of what the first lane does with what the lanes add up."""
    first = (equals(Name(loop.thread), 0),)
    alone = _leaf(homes, stored, alone=True)

    def changed(node: Node) -> Nodes:
        if isinstance(node, If) and not node.orelse and node.conditions == first:
            return mapped(node.body, alone)
        return (node,)

    return changed


def _leaf(
    homes: dict[Buffer, Buffer], stored: set[Buffer], *, alone: bool
) -> Callable[[Node], Nodes]:
    """Return the change of nodes to registers of rows, with what is stored of them.

    What is ``alone`` only the first lane is to do, but for its registers.
    """

    def home(one: Element) -> Element:
        return Element(buffer=homes[one.buffer]) if one.buffer in homes else one

    def changed(node: Node) -> Nodes:
        written, read = accesses(node)
        if not written or any(one.buffer in homes.values() for one in read):
            return (node,)  # what is stored of registers is there already
        kept = [one for one in written if one.buffer in homes]
        found = with_elements((node,), home)
        if alone and len(kept) < len(written):
            found = (If(conditions=(_FIRST_LANE,), body=found),)
        stores = tuple(Copy(target=one, source=home(one)) for one in kept if one.buffer in stored)
        return (*found, If(conditions=(_FIRST_LANE,), body=stores)) if stores else found

    return changed


def with_rows_kept(
    phases: Sequence[LoweredPhase],
    kept: Sequence[tuple[KeptRow, Buffer]],
    slots: int,
    names: NameTable,
) -> tuple[Nodes, tuple[Nodes, ...], tuple[str, ...]]:
    """Return what is declared and loaded in front, the nodes of each phase, and notes.

    Args:
        phases: whose tiles hold whole rows along the loop of their lanes.
        kept: what threads keep of rows, with the array of each.
        slots: elements of a row that a thread has.
        names: gives out the names of the registers.
    """
    nodes = [phase.nodes for phase in phases]
    front: list[Node] = []
    several = f"{slots} elements" if slots > 1 else "an element"
    for row, array in kept:
        home = _home(array, f"{array.name}_k", (slots,) if slots > 1 else (), names)
        rows = [
            _Row(row, array, home, number, phase.lane_loop) for number, phase in enumerate(phases)
        ]
        front.append(Declare(buffer=home))
        if row.load_in is not None:
            loads = mapped(phases[row.load_in].nodes, rows[row.load_in].loaded)
            front.append(Scope(body=loads, phase=f"load {array.name}"))
        nodes = [mapped(own, one.changed) for own, one in zip(nodes, rows, strict=True)]
    notes = (
        f"{array.name}: {several} of a row in registers of a thread, for all phases"
        for _, array in kept
    )
    return tuple(front), tuple(nodes), tuple(notes)


@dataclass(frozen=True, slots=True)
class _Row:
    """An array of which one phase has elements of rows in the registers ``home``."""

    row: KeptRow
    array: Buffer
    home: Buffer
    number: int
    loop: MappedLoop | None

    def loaded(self, node: Node) -> Nodes:
        """Return the loads in the place of a node that reads elements, and the loops of them."""
        if isinstance(node, Compute | Copy):
            own = zip(_elements(node)[1:], self._homes(node)[1:], strict=True)
            read = [one for one, there in own if there][:1]
            load = node if isinstance(node, Copy) else Copy(target=node.target, source=node.target)
            return tuple(replace(load, target=self._register(), source=one) for one in read)
        if isinstance(node, For | If):
            bodies = (*node.body, *(node.orelse if isinstance(node, If) else ()))
            if all(isinstance(one, Let) for one in bodies):
                return ()
            return (replace(node, unroll="whole") if isinstance(node, For) else node,)
        return (node,) if isinstance(node, Let | Scope) else ()

    def changed(self, node: Node) -> Nodes:
        """Return a node with registers, and what is stored of them."""
        if isinstance(node, For) and self.loop is not None and node.counter == self.loop.point:
            return (replace(node, unroll="whole"),)
        if not isinstance(node, Compute | Copy):
            return (node,)
        own = self._homes(node)
        target, *reads = (
            self._register() if there else one
            for one, there in zip(_elements(node), own, strict=True)
        )
        if isinstance(node, Copy):
            found: Node = replace(node, target=target, source=reads[0])
        else:
            found = replace(node, target=target, reads=(target, *reads))
        stored = own[0] and self.number in self.row.stores
        return (found, Copy(target=node.target, source=target)) if stored else (found,)

    def _homes(self, node: Compute | Copy) -> list[bool]:
        """Tell which elements of a node are in registers: its target, and what it reads."""
        there = [one.buffer == self.array for one in _elements(node)]
        if isinstance(node, Copy):
            return there
        places = self.row.places[self.number]
        name = node.statement.name
        return [own and (name, at) in places for at, own in enumerate(there)]

    def _register(self) -> Element:
        assert self.loop is not None
        return Element(
            buffer=self.home,
            subscripts=(Name(self.loop.point),) if self.home.layout.extents else (),
        )


def _elements(node: Compute | Copy) -> tuple[Element, ...]:
    """Return the target of a node and what it reads, in the order of the accesses."""
    if isinstance(node, Copy):
        return node.target, node.source
    return node.target, *node.reads[1:]
