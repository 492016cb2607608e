"""What phases of a kernel do with arrays: which elements, and which thread has which of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import islpy as isl

from eatss.isl_names import without_parameters
from eatss.kernel.nodes import Buffer, Compute, Element, For, If, Let, Node, Scope
from eatss.kernel.uses import accesses
from eatss.lower.planning import Unit
from eatss.program import IntExpr, Name, c_text, substitute
from eatss.program.linear import linear
from eatss.schedule.mapping import MappedLoop
from eatss.scops import Access as ScopAccess

SLOT = "slot"
"""What the point of a thread is called in every phase."""

TURN = "turn of "
"""With the name of its counter, what the turn of any other loop is called."""

Form = tuple[tuple[frozenset[tuple[str, int]], int], ...]
"""Subscripts as sums, by the block, the thread and the slot."""


@dataclass(frozen=True, slots=True)
class LoweredPhase:
    """The nodes of a phase, and the unit that they come from."""

    unit: Unit
    nodes: tuple[Node, ...]

    @property
    def lane_loop(self) -> MappedLoop | None:
        """The loop whose points go to the threads of a row."""
        along_x = [loop for loop in self.unit.mapping.spread if loop.axis == "x"]
        return along_x[-1] if along_x else None


@dataclass(frozen=True, slots=True)
class Access:
    """An element of an array at a node of a phase; ``images`` are all that it touches."""

    phase: int
    element: Element
    form: Form | None
    writes: bool
    image: isl.Set | None


def is_covered(
    image: isl.Set | None,
    own: Sequence[Access],
    *,
    before: int | None = None,
    behind: int | None = None,
) -> bool:
    """Tell whether phases before one, or behind one, write all elements of a set."""
    written = [
        one.image
        for one in own
        if one.writes
        and (before is None or one.phase < before)
        and (behind is None or one.phase > behind)
    ]
    return bool(written) and image is not None and bool(image.is_subset(union_of(written)))


def union_of(images: Sequence[isl.Set | None]) -> isl.Set:
    """Return the union of sets, all of which are there."""
    found: isl.Set | None = None
    for image in images:
        assert image is not None
        found = image if found is None else found.union(image)
    assert found is not None
    return found


def accesses_by_array(phases: Sequence[LoweredPhase]) -> dict[Buffer, list[Access]]:
    """Return all that phases do with each array in global memory, in their order."""
    found: dict[Buffer, list[Access]] = {}
    for number, phase in enumerate(phases):
        for access in accesses_of(number, phase):
            found.setdefault(access.element.buffer, []).append(access)
    return found


def accesses_of(number: int, phase: LoweredPhase) -> Iterator[Access]:
    """Yield every element of global memory that a phase names."""
    for node, env in walked(phase.nodes, {}, phase.lane_loop):
        written, read = accesses(node)
        if isinstance(node, Compute):
            own = node.statement.accesses
            touched = [(node.target, True, own[0]), *_reads_of(node)]
            here = instances_of(phase.unit, node.statement.name)
            for element, writes, access in touched:
                if element.buffer.space == "global":
                    form = form_of(element, env)
                    yield Access(number, element, form, writes, here.apply(access.relation))
            continue
        for element, writes in (*((e, True) for e in written), *((e, False) for e in read)):
            if element.buffer.space == "global":
                image = _transferred(phase.unit, element.buffer, writes=writes)
                yield Access(number, element, form_of(element, env), writes, image)


def _reads_of(node: Compute) -> Iterator[tuple[Element, bool, ScopAccess]]:
    """Yield what an instance reads; the first access of a statement is its write."""
    for element, access in zip(node.reads[1:], node.statement.accesses[1:], strict=True):
        yield element, False, access


def _transferred(unit: Unit, array: Buffer, *, writes: bool) -> isl.Set | None:
    """Return the elements that registers of a unit are stored to, or loaded from."""
    own = [held for held in unit.storage.registers if held.array == array.name]
    if len(own) != 1:
        return None
    points = own[0].store if writes or unit.mapping.split is not None else own[0].load
    return points.apply(own[0].relation)


def instances_of(unit: Unit, statement: str) -> isl.Set:
    """Return the instances of a statement in one launch."""
    bound = [loop.name for loop in unit.piece.band]
    return without_parameters(unit.piece.domain_of(statement), bound)


def walked(
    nodes: Sequence[Node], env: Mapping[str, IntExpr], lane_loop: MappedLoop | None
) -> Iterator[tuple[Node, Mapping[str, IntExpr]]]:
    """Yield nodes, and what the names of constants stand for where they are."""
    here = dict(env)
    for node in nodes:
        yield node, here
        if isinstance(node, Let):
            here = defined(here, node)
        elif isinstance(node, For):
            yield from walked(node.body, inside(here, node, lane_loop), lane_loop)
        elif isinstance(node, Scope):
            yield from walked(node.body, here, lane_loop)
        elif isinstance(node, If):
            yield from walked(node.body, here, lane_loop)
            yield from walked(node.orelse, here, lane_loop)


def defined(env: Mapping[str, IntExpr], node: Let) -> dict[str, IntExpr]:
    """Return names with a constant; what is no sum is known by its text."""
    value = substitute(node.value, env)
    return {**env, node.name: value if linear(value) is not None else Name(c_text(value))}


def inside(
    env: Mapping[str, IntExpr], node: For, lane_loop: MappedLoop | None
) -> dict[str, IntExpr]:
    """Return names inside a loop: of points it is the slot, others are as they are."""
    slot = lane_loop is not None and node.counter == lane_loop.point
    return {**env, node.counter: Name(SLOT if slot else TURN + node.counter)}


def form_of(element: Element, env: Mapping[str, IntExpr]) -> Form | None:
    """Return the subscripts of an element as sums, ``None`` where one is none.

    ``env`` is what names stand for.
    """
    sums = [linear(substitute(one, env)) for one in element.subscripts]
    if any(one is None for one in sums):
        return None
    return tuple((frozenset(one.terms.items()), one.constant) for one in sums if one is not None)
