"""Elements of a row that a thread keeps in registers from phase to phase.

    out[i][j] = exp(in[i][j] - most[i]);    out_k[rj] = exp(in[i][j] - most[i]);
    … barrier …                             …
    sum_r += out[i][j];                     sum_r += out_k[rj];

Where one tile holds a whole row, a thread has the same elements of it in every phase. A register
in the place of such an element has at each moment what the element would have in memory. It is
loaded in front where a value from before is read. Memory gets what no later phase overwrites.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import islpy as isl

from eatss.analysis.structure import MOST_POINTS, held_words
from eatss.isl_names import without_parameters
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
    Scope,
)
from eatss.kernel.uses import elements
from eatss.lower.planning import Unit
from eatss.program import Constant, IntExpr, Name, c_text, substitute
from eatss.program.linear import linear
from eatss.schedule.mapping import MappedLoop
from eatss.schedule.names import NameTable

_SLOT = "slot"
"""What the point of a thread is called in every phase."""

_TURN = "turn of "
"""With the name of its counter, what the turn of any other loop is called."""

_Form = tuple[tuple[frozenset[tuple[str, int]], int], ...]
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
class _Access:
    """An element of an array at a node of a phase; ``images`` are all that it touches."""

    phase: int
    element: Element
    form: _Form | None
    writes: bool
    image: isl.Set | None


@dataclass(slots=True)
class _Found:
    """What phases do with an array."""

    accesses: list[_Access] = field(default_factory=list)


def with_rows_kept(
    phases: Sequence[LoweredPhase], registers: int, names: NameTable
) -> tuple[tuple[Node, ...], tuple[tuple[Node, ...], ...], tuple[str, ...]]:
    """Return what is declared and loaded in front, the nodes of each phase, and notes.

    Args:
        phases: whose tiles hold whole rows along the loop of their lanes.
        registers: what a compiler may give a thread.
        names: gives out the names of the registers.
    """
    nodes = [phase.nodes for phase in phases]
    found: dict[Buffer, _Found] = {}
    for number, phase in enumerate(phases):
        for access in _accesses(number, phase):
            found.setdefault(access.element.buffer, _Found()).accesses.append(access)
    front: list[Node] = []
    notes: list[str] = []
    left = held_words(registers)
    for array, own in found.items():
        kept = _kept(array, own.accesses, phases)
        if kept is None:
            continue
        words = kept.slots * max(1, array.element_type.size_bytes // 4)
        if kept.slots > MOST_POINTS or words > left:
            continue
        left -= words
        layout = Layout((Constant(kept.slots),) if kept.slots > 1 else ())
        home = Buffer(
            name=names.fresh(f"{array.name}_k"),
            space="register",
            element_type=array.element_type,
            layout=layout,
        )
        front.append(Declare(buffer=home))
        if kept.load_in is not None:
            loads = _loads(phases[kept.load_in], array, kept.form, home)
            front.append(Scope(body=loads, phase=f"load {array.name}"))
        for number, phase in enumerate(phases):
            change = _Change(array, kept.form, home, phase, kept.stores[number])
            nodes[number] = change.nodes(nodes[number], {})
        several = f"{kept.slots} elements" if kept.slots > 1 else "an element"
        notes.append(f"{array.name}: {several} of a row in registers of a thread, for all phases")
    return tuple(front), tuple(nodes), tuple(notes)


@dataclass(frozen=True, slots=True)
class _Kept:
    """How an array is kept: as elements of a ``form``, ``slots`` of them a thread.

    They are loaded where phase ``load_in`` reads them; ``stores`` says for each phase whether
    memory gets what it writes.
    """

    form: _Form
    slots: int
    load_in: int | None
    stores: tuple[bool, ...]


def _kept(
    array: Buffer, accesses: Sequence[_Access], phases: Sequence[LoweredPhase]
) -> _Kept | None:
    """Return how an array is kept, ``None`` if it is not, or if that saves nothing."""
    lanes = {loop.threads: loop.points for phase in phases if (loop := phase.lane_loop)}
    if array.space != "global" or len(lanes) != 1:
        return None
    ((threads, slots),) = lanes.items()
    forms = [a.form for a in accesses if a.form is not None and _is_own(a.form, threads, slots)]
    if not forms:
        return None
    form = max(set(forms), key=lambda one: (forms.count(one), -forms.index(one)))
    writes = any(one.writes for one in accesses)
    own = [one for one in accesses if one.form == form and one.image is not None]
    if (writes and len(own) < len(accesses)) or len({one.phase for one in own}) < 2:
        return None
    if not any(not one.writes and one.phase > min(o.phase for o in own) for one in own):
        return None
    uncovered = [
        one.image
        for one in own
        if not one.writes and not _covered(one.image, own, before=one.phase)
    ]
    load_in = None
    if uncovered:
        needed = _union(uncovered)
        load_in = next(
            (
                number
                for number in range(len(phases))
                if (read := [o.image for o in own if o.phase == number and not o.writes])
                and needed.is_subset(_union(read))
            ),
            None,
        )
        if load_in is None:
            return None
    stores = tuple(
        not all(
            _covered(one.image, own, behind=number)
            for one in own
            if one.phase == number and one.writes
        )
        for number in range(len(phases))
    )
    return _Kept(form, slots, load_in, stores)


def _is_own(form: _Form, threads: int, slots: int) -> bool:
    """Tell whether every slot of every thread of a row has an element of its own."""
    if any(name.startswith(_TURN) for terms, _ in form for name, _ in terms):
        return False
    moving = [(dict(terms).get("threadIdx.x", 0), dict(terms).get(_SLOT, 0)) for terms, _ in form]
    return any(
        lane != 0 and (slot == lane * threads or slots == 1) for lane, slot in moving
    ) and all(slot == lane * threads or slots == 1 for lane, slot in moving)


def _covered(
    image: isl.Set | None,
    own: Sequence[_Access],
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
    return bool(written) and image is not None and bool(image.is_subset(_union(written)))


def _union(images: Sequence[isl.Set | None]) -> isl.Set:
    found: isl.Set | None = None
    for image in images:
        assert image is not None
        found = image if found is None else found.union(image)
    assert found is not None
    return found


def _accesses(number: int, phase: LoweredPhase) -> Iterator[_Access]:
    """Yield every element of global memory that a phase names."""
    for node, env in _walked(phase.nodes, {}, phase.lane_loop):
        for at, element in enumerate(elements(node)):
            if element.buffer.space != "global":
                continue
            image = None
            if isinstance(node, Compute):
                # the target is the write; reads have it first
                access = node.statement.accesses[max(0, at - 1)]
                image = _instances(phase.unit, node.statement.name).apply(access.relation)
                if at == 1:
                    continue
            form = _form(element, env)
            yield _Access(number, element, form, at == 0, image)


def _instances(unit: Unit, statement: str) -> isl.Set:
    bound = [loop.name for loop in unit.piece.band]
    return without_parameters(unit.piece.domain_of(statement), bound)


def _walked(
    nodes: Sequence[Node], env: Mapping[str, IntExpr], lane_loop: MappedLoop | None
) -> Iterator[tuple[Node, Mapping[str, IntExpr]]]:
    """Yield nodes, and what the names of constants stand for where they are."""
    here = dict(env)
    for node in nodes:
        yield node, here
        if isinstance(node, Let):
            here = _defined(here, node)
        elif isinstance(node, For):
            yield from _walked(node.body, _inside(here, node, lane_loop), lane_loop)
        elif isinstance(node, Scope):
            yield from _walked(node.body, here, lane_loop)
        elif isinstance(node, If):
            yield from _walked(node.body, here, lane_loop)
            yield from _walked(node.orelse, here, lane_loop)


def _defined(env: Mapping[str, IntExpr], node: Let) -> dict[str, IntExpr]:
    """Return names with a constant; what is no sum is known by its text."""
    value = substitute(node.value, env)
    return {**env, node.name: value if linear(value) is not None else Name(c_text(value))}


def _inside(
    env: Mapping[str, IntExpr], node: For, lane_loop: MappedLoop | None
) -> dict[str, IntExpr]:
    """Return names inside a loop: of points it is the slot, others are as they are."""
    slot = lane_loop is not None and node.counter == lane_loop.point
    return {**env, node.counter: Name(_SLOT if slot else _TURN + node.counter)}


def _form(element: Element, env: Mapping[str, IntExpr]) -> _Form | None:
    sums = [linear(substitute(one, env)) for one in element.subscripts]
    if any(one is None for one in sums):
        return None
    return tuple((frozenset(one.terms.items()), one.constant) for one in sums if one is not None)


def _loads(phase: LoweredPhase, array: Buffer, form: _Form, home: Buffer) -> tuple[Node, ...]:
    """Return the loops of a phase with loads in the place of what it computes."""

    def loaded(nodes: Sequence[Node], env: Mapping[str, IntExpr]) -> tuple[Node, ...]:
        found: list[Node] = []
        here = dict(env)
        for node in nodes:
            if isinstance(node, Let):
                here = _defined(here, node)
                found.append(node)
            elif isinstance(node, For):
                body = loaded(node.body, _inside(here, node, phase.lane_loop))
                if any(not isinstance(one, Let) for one in body):
                    found.append(replace(node, body=body, unroll="whole"))
            elif isinstance(node, If):
                body, orelse = loaded(node.body, here), loaded(node.orelse, here)
                if any(not isinstance(one, Let) for one in (*body, *orelse)):
                    found.append(replace(node, body=body, orelse=orelse))
            elif isinstance(node, Scope):
                found.append(replace(node, body=loaded(node.body, here)))
            elif isinstance(node, Compute):
                own = [one for one in node.reads[1:] if _form(one, here) == form]
                own = [one for one in own if one.buffer == array]
                found += [Copy(target=_register(home, phase), source=one) for one in own[:1]]
        return tuple(found)

    return loaded(phase.nodes, {})


def _register(home: Buffer, phase: LoweredPhase) -> Element:
    loop = phase.lane_loop
    assert loop is not None
    return Element(buffer=home, subscripts=(Name(loop.point),) if home.layout.extents else ())


@dataclass(frozen=True, slots=True)
class _Change:
    """Puts registers in the place of an array's elements of one form."""

    array: Buffer
    form: _Form
    home: Buffer
    phase: LoweredPhase
    stores: bool

    def nodes(self, nodes: Sequence[Node], env: Mapping[str, IntExpr]) -> tuple[Node, ...]:
        """Return nodes with registers."""
        found: list[Node] = []
        here = dict(env)
        for node in nodes:
            if isinstance(node, Let):
                here = _defined(here, node)
                found.append(node)
            elif isinstance(node, For):
                inside = _inside(here, node, self.phase.lane_loop)
                body = self.nodes(node.body, inside)
                own = (
                    self.phase.lane_loop is not None and node.counter == self.phase.lane_loop.point
                )
                found.append(replace(node, body=body, unroll="whole" if own else node.unroll))
            elif isinstance(node, Scope):
                found.append(replace(node, body=self.nodes(node.body, here)))
            elif isinstance(node, If):
                body, orelse = self.nodes(node.body, here), self.nodes(node.orelse, here)
                found.append(replace(node, body=body, orelse=orelse))
            elif isinstance(node, Compute):
                found += self._computed(node, here)
            else:
                found.append(node)
        return tuple(found)

    def _computed(self, node: Compute, env: Mapping[str, IntExpr]) -> Iterator[Node]:
        def home(one: Element) -> Element:
            if one.buffer != self.array or _form(one, env) != self.form:
                return one
            return _register(self.home, self.phase)

        target = home(node.target)
        yield replace(node, target=target, reads=tuple(map(home, node.reads)))
        if target != node.target and self.stores:
            yield Copy(target=node.target, source=target)
