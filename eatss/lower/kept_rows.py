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
from dataclasses import dataclass, replace

from eatss.analysis.structure import MOST_POINTS, held_words
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
    union_of,
)
from eatss.program import Constant, IntExpr, Name
from eatss.schedule.names import NameTable


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
    front: list[Node] = []
    notes: list[str] = []
    left = held_words(registers)
    for array, accesses in accesses_by_array(phases).items():
        kept = _kept(array, accesses, phases)
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

    form: Form
    slots: int
    load_in: int | None
    stores: tuple[bool, ...]


def _kept(
    array: Buffer, accesses: Sequence[Access], phases: Sequence[LoweredPhase]
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
        if not one.writes and not is_covered(one.image, own, before=one.phase)
    ]
    load_in = None
    if uncovered:
        needed = union_of(uncovered)
        load_in = next(
            (
                number
                for number in range(len(phases))
                if (read := [o.image for o in own if o.phase == number and not o.writes])
                and needed.is_subset(union_of(read))
            ),
            None,
        )
        if load_in is None:
            return None
    stores = tuple(
        not all(
            is_covered(one.image, own, behind=number)
            for one in own
            if one.phase == number and one.writes
        )
        for number in range(len(phases))
    )
    return _Kept(form, slots, load_in, stores)


def _is_own(form: Form, threads: int, slots: int) -> bool:
    """Tell whether every slot of every thread of a row has an element of its own."""
    if any(name.startswith(TURN) for terms, _ in form for name, _ in terms):
        return False
    moving = [(dict(terms).get("threadIdx.x", 0), dict(terms).get(SLOT, 0)) for terms, _ in form]
    return any(
        lane != 0 and (slot == lane * threads or slots == 1) for lane, slot in moving
    ) and all(slot == lane * threads or slots == 1 for lane, slot in moving)


def _loads(phase: LoweredPhase, array: Buffer, form: Form, home: Buffer) -> tuple[Node, ...]:
    """Return the loops of a phase with loads in the place of what it computes."""

    def loaded(nodes: Sequence[Node], env: Mapping[str, IntExpr]) -> tuple[Node, ...]:
        found: list[Node] = []
        here = dict(env)
        for node in nodes:
            if isinstance(node, Let):
                here = defined(here, node)
                found.append(node)
            elif isinstance(node, For):
                body = loaded(node.body, inside(here, node, phase.lane_loop))
                if any(not isinstance(one, Let) for one in body):
                    found.append(replace(node, body=body, unroll="whole"))
            elif isinstance(node, If):
                body, orelse = loaded(node.body, here), loaded(node.orelse, here)
                if any(not isinstance(one, Let) for one in (*body, *orelse)):
                    found.append(replace(node, body=body, orelse=orelse))
            elif isinstance(node, Scope):
                found.append(replace(node, body=loaded(node.body, here)))
            elif isinstance(node, Compute | Copy):
                found += _load(node, array, form, here, _register(home, phase))
        return tuple(found)

    return loaded(phase.nodes, {})


def _load(
    node: Compute | Copy, array: Buffer, form: Form, env: Mapping[str, IntExpr], target: Element
) -> tuple[Copy, ...]:
    """Return the load of what a node reads of an array in a form, if it does."""
    read = (node.source,) if isinstance(node, Copy) else node.reads[1:]
    own = [one for one in read if one.buffer == array and form_of(one, env) == form]
    if isinstance(node, Copy):
        return tuple(replace(node, target=target) for _ in own)
    return tuple(Copy(target=target, source=one) for one in own[:1])


def _register(home: Buffer, phase: LoweredPhase) -> Element:
    loop = phase.lane_loop
    assert loop is not None
    return Element(buffer=home, subscripts=(Name(loop.point),) if home.layout.extents else ())


@dataclass(frozen=True, slots=True)
class _Change:
    """Puts registers in the place of an array's elements of one form."""

    array: Buffer
    form: Form
    home: Buffer
    phase: LoweredPhase
    stores: bool

    def nodes(self, nodes: Sequence[Node], env: Mapping[str, IntExpr]) -> tuple[Node, ...]:
        """Return nodes with registers."""
        found: list[Node] = []
        here = dict(env)
        for node in nodes:
            if isinstance(node, Let):
                here = defined(here, node)
                found.append(node)
            elif isinstance(node, For):
                there = inside(here, node, self.phase.lane_loop)
                body = self.nodes(node.body, there)
                own = (
                    self.phase.lane_loop is not None and node.counter == self.phase.lane_loop.point
                )
                found.append(replace(node, body=body, unroll="whole" if own else node.unroll))
            elif isinstance(node, Scope):
                found.append(replace(node, body=self.nodes(node.body, here)))
            elif isinstance(node, If):
                body, orelse = self.nodes(node.body, here), self.nodes(node.orelse, here)
                found.append(replace(node, body=body, orelse=orelse))
            elif isinstance(node, Compute | Copy):
                found += self._computed(node, here)
            else:
                found.append(node)
        return tuple(found)

    def _computed(self, node: Compute | Copy, env: Mapping[str, IntExpr]) -> Iterator[Node]:
        def home(one: Element) -> Element:
            if one.buffer != self.array or form_of(one, env) != self.form:
                return one
            return _register(self.home, self.phase)

        target = home(node.target)
        if isinstance(node, Copy):
            yield replace(node, target=target, source=home(node.source))
        else:
            yield replace(node, target=target, reads=tuple(map(home, node.reads)))
        if target != node.target and self.stores:
            yield Copy(target=node.target, source=target)
