"""The ways of a copy into shared memory, of which a loop that copies ahead takes one.

Tiles at the edge of an array are copied as whole ones are, each element or vector with a test.

    if (tile is whole) …copy…
    else if (its steps are) { for (e < 4) copy row e where that row is there }
    else { copy element by element, each where it is there }

The second way needs no more than a test that no step of a loop changes, such as ``i < N``. Where a
loop over steps of products has one text for whole tiles, it takes all that the first does, and
blocks at an edge are as fast as others; elsewhere that test only costs registers. So loops that
load operands a step ahead take the second and third way, and all others the first and third.

Transposed tiles are filled through registers, where there are products to do meanwhile.

A tile whose rows lie along another dimension than those of its array can be copied in two ways:

    if (wide_A && …) {
        float A_line[2][4];
        for (e < 2) { load A_line[e] from four neighbours of a row of A }
        for (e < 2) for (q < 4) sh.A[4 * (thread % 2) + q][thread / 2] = A_line[e][q];
    } else { copy A element by element, without registers }

The first takes a quarter of the loads and fewer turns of the ways into shared memory, but a thread
would wait for what it loads. So it stays only where :mod:`eatss.lower.transform.pipeline` can part
it: loads stand in front of a turn's products, stores behind them. And all tiles of the turn have to
come so: beside copies that are waited for, it took as long or longer when it was measured.
Elsewhere the second stays.

Halves that are copied one by one come through registers, while there are products to do.

    if (tile is whole) { for (e < 8) sh.A[…] = A[…]; } else { for (e < 8) sh.A[…] = … ? A[…] : 0; }

becomes what fills registers and what fills the tile from them:

    half A_line[8];
    if (tile is whole) { for (e < 8) A_line[e] = A[…]; } else { for (e < 8) A_line[e] = … }
    …
    for (e < 8) sh.A[…] = A_line[e];

No card copies two bytes to shared memory without registers. A row of halves that is of odd length
begins anywhere, so vectors of it cannot be loaded. :mod:`eatss.lower.transform.pipeline` puts the
loads in front of a turn's products and the stores behind them.

Rows of registers go to memory 16 bytes at a time.

    for (rj = 0; rj < 8; ++rj) {
        const int j = j0 + 4 * tj + 64 * (rj / 4) + rj % 4;
        if (j < N) C[i][j] = C_r[ri][rj];
    }

becomes, where rows of ``C`` begin at multiples of 16 bytes,

    if (wide_C && j0 % 4 == 0 && (j of the last point) < N)
        for (rj = 0; rj < 2; ++rj) {
            const int j = j0 + 4 * tj + 64 * rj;
            eatss_store_wide(&C[i][j], &C_r[ri][4 * rj]);
        }
    else …as before…

Threads that follow each other have vectors that follow each other. One by one, each of their stores
would write a part of every sector only. What threads add up of rows of memory comes to registers
likewise. Where results are added to what memory had, it stays as it was: with two ways to load rows
some compilers keep so many of them that they spill the sums.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from eatss.analysis.variant import COPIED_BYTES, WORD_BYTES
from eatss.base.frozen import complete, frozen
from eatss.base.trees import free_name
from eatss.lower.kernel.nodes import (
    Aligned,
    Buffer,
    Compute,
    Copy,
    Declare,
    Element,
    For,
    If,
    Kernel,
    Let,
    Node,
    Nodes,
    Scope,
    Source,
    Staging,
    Steps,
    Way,
    counted,
)
from eatss.lower.kernel.uses import (
    elements,
    every,
    every_of,
    mapped,
    mapped_of,
    outermost,
    own_names,
    trips_from_zero,
    with_elements,
    with_expressions,
)
from eatss.lower.transform.use_instruction import in_order
from eatss.program import (
    Apply,
    Constant,
    IntExpr,
    Name,
    Operator,
    difference,
    equals,
    names_in,
    substitute,
)
from eatss.program.expression import IntExprs
from eatss.program.linear import Linear, linear


@frozen
class Copying:
    """How stages are carried out: which way whole ``steps`` take, and whether ``lines`` are used.

    Lines are registers that vectors of transposed tiles pass.
    """

    steps: bool = False
    lines: bool = False

    def ways(self, stage: Staging) -> tuple[Way, ...]:
        """Return the ways of a stage, each taken where those before it are not."""
        ways = [way for way in stage.ways if isinstance(way, Way)]
        known = any(way.steps for way in ways) and self.steps
        *first, edge = ways
        found = (*(way for way in first if way.steps == known), edge)
        always = next((at for at, way in enumerate(found) if not way.conditions), len(found))
        return found[: always + 1]

    def nodes(self, nodes: Sequence[Node]) -> Nodes:
        """Return nodes whose stages and steps are carried out."""

        def changed(node: Node) -> Nodes:
            if isinstance(node, Steps):
                return node.between(0, node.count, (*node.loads, *node.products))
            return self._copied(self.ways(node)) if isinstance(node, Staging) else (node,)

        return mapped(nodes, changed)

    def _copied(self, ways: Sequence[Way]) -> Nodes:
        first, *others = ways
        nodes = first.elements
        if self._vectors(first):
            nodes = (If(conditions=first.wide, body=first.vectors, orelse=nodes),)
        if not first.conditions:
            return nodes
        return (If(conditions=first.conditions, body=nodes, orelse=self._copied(others)),)

    def _vectors(self, way: Way) -> bool:
        return bool(way.vectors) and (self.lines or way.line is None)

    def plain(self, stages: Sequence[Staging]) -> tuple[IntExprs, Nodes]:
        """Return when the first way of all stages is taken, in vectors, and what it does."""
        ways = [self.ways(stage)[0] for stage in stages]
        tests = [
            test
            for way in ways
            for test in (*way.conditions, *(way.wide if self._vectors(way) else ()))
        ]
        nodes = (way.vectors if self._vectors(way) else way.elements for way in ways)
        return tuple(tests), tuple(node for own in nodes for node in own)


def all_of(conditions: Sequence[IntExpr]) -> IntExprs:
    """Return the conditions that have to hold for all of these to hold, each once."""
    found: dict[IntExpr, None] = {}
    for one in conditions:
        several = isinstance(one, Apply) and one.operator is Operator.AND
        found |= dict.fromkeys(
            all_of(one.operands) if isinstance(one, Apply) and several else (one,)
        )
    return tuple(found)


def is_line_store(node: Node) -> bool:
    """Tell whether a node fills tiles from registers."""
    return any(one.source.buffer.space == "register" for one in every_of((node,), Copy))


@frozen
class RegisterStagedCopies:
    """Copies in two parts: ``loads`` fill registers, or tiles without them; ``stores`` tiles."""

    declared: tuple[Buffer, ...]
    loads: Nodes
    stores: Nodes

    @property
    def words(self) -> int:
        """Registers for what is on its way: each half has one."""
        return sum(one.layout.elements or 0 for one in self.declared)

    @classmethod
    def of(cls, stages: Sequence[Staging], taken: set[str]) -> RegisterStagedCopies | None:
        """Return stages in two parts, ``None`` where no tile is filled by narrow copies alone.

        Args:
            stages: what fills tiles, one after the other.
            taken: names that are not free.
        """
        declared, loads, stores = list[Buffer](), list[Node](), list[Node]()
        free = set(taken)
        for stage in stages:
            walk = _walk(stage)
            if walk is None:
                loads.append(stage)
                continue
            copy = next(every_of((walk,), Copy))
            box = copy.target.buffer
            line = box.registers(free_name(f"{box.name}_line", free), trips_from_zero(walk) or 0)
            element = line.at(Name(walk.counter))
            declared.append(line)
            loads += _into(stage, element)
            stores.append(replace(walk, body=(Copy(target=copy.target, source=element),)))
        if not declared:
            return None
        return cls(declared=tuple(declared), loads=tuple(loads), stores=tuple(stores))


def is_register_staged(stage: Staging) -> bool:
    """Tell whether single halves or bytes are copied, which pass through registers."""
    ways = [way for way in stage.ways if isinstance(way, Way)]
    copies = every_of((node for way in ways for node in way.elements), Copy)
    bytes_ = {copy.target.buffer.element_type.size_bytes for copy in copies}
    vectors = any(way.vectors and way.line is None for way in ways)
    return max(bytes_) < WORD_BYTES and not vectors


def _walk(stage: Staging) -> For | None:
    """Return the unrolled loop over what a thread copies of a narrow stage."""
    (walk,) = (way.elements[0] for way in stage.ways[-1:] if isinstance(way, Way))
    unrolled = isinstance(walk, For) and walk.unroll == "whole"
    return walk if isinstance(walk, For) and unrolled and is_register_staged(stage) else None


def _into(stage: Staging, line: Element) -> Nodes:
    """Return a stage whose elements go to registers, which are cleared where none is read."""
    return mapped_of(
        (stage,), Copy, lambda one: replace(one, target=line, clears=one.condition is not None)
    )


_BELOW = {Operator.LT: 1, Operator.LE: 1, Operator.GT: -1, Operator.GE: -1}
"""Comparisons that hold for all of a row where they hold at one end, by the sign of the other."""


def with_rows_in_registers(
    kernel: Kernel, point: str, arrays: Collection[str], taken: set[str]
) -> tuple[Kernel, frozenset[Buffer]]:
    """Return a kernel whose threads load rows of some arrays before they compute, and where to.

        for (ri = 0; ri < 8; ++ri) { const int i = …; s_r += x[i] * y[i]; }

    becomes three loops: two that load rows of ``x`` and ``y``, and one that computes with them.
    Rows that are computed are stored by a loop behind.

    Args:
        kernel: the kernel.
        point: the counter of the points along rows.
        arrays: of which rows are loaded or stored, by name, and not both.
        taken: names that are not free; those that come to be are added.
    """
    rows: set[Buffer] = set()

    def loaded(loop: Node) -> Nodes:
        count = trips_from_zero(loop) if isinstance(loop, For) and loop.counter == point else None
        if not isinstance(loop, For) or count is None:
            return ()
        values = [one for one in loop.body if isinstance(one, Let)]
        if len(values) != 1 or not all(isinstance(o, Let | Source | Compute) for o in loop.body):
            return ()
        (value,), front, homes = values, list[Node](), dict[Element, Element]()
        behind, stored = list[Node](), {o.target for o in loop.body if isinstance(o, Compute)}
        for one in dict.fromkeys(read for node in loop.body for read in elements(node)):
            others = {value.name, loop.counter} & {*names_in(*one.subscripts[:-1])}
            if one.buffer.name in arrays and one.subscripts[-1:] == (Name(value.name),):
                if others:
                    continue
                row = one.buffer.registers(free_name(f"{one.buffer.name}_row", taken), count)
                rows.add(row)
                homes[one] = row.at(Name(point))
                front.append(Declare(buffer=row))
                if one in stored:
                    copy = Copy(target=one, source=homes[one])
                    behind.append(counted(point, count, (value, copy)))
                else:
                    copy = Copy(target=homes[one], source=one)
                    front.append(counted(point, count, (value, copy)))
        body = with_elements(loop.body, lambda one: homes.get(one, one))
        return (*front, replace(loop, body=body), *behind) if front else ()

    return replace(kernel, body=outermost(kernel.body, loaded)), frozenset(rows)


def with_vectorised_stores(
    kernel: Kernel, taken: set[str], rows: Collection[Buffer] = ()
) -> Kernel:
    """Return a kernel that stores rows of registers in vectors where those lie beside each other.

    It loads some ``rows`` so. Names that are ``taken`` stay what they are.
    """
    known = {(node.buffer, node.width): node for node in kernel.body if isinstance(node, Aligned)}
    loaded = {(one.source.buffer, one.target.buffer) for one in every_of(kernel.body, Copy)}
    new = []

    def aligned(row: _Row) -> Name:
        buffer, width = row.memory, row.copy.width
        if (buffer, width) not in known:
            name = free_name(f"wide_{buffer.name}", taken)
            new.append(Aligned(name=name, buffer=buffer, width=width))
            known[buffer, width] = new[-1]
        return Name(known[buffer, width].name)

    def both(loop: Node) -> Nodes:
        """Return an unrolled loop with and without vectors, the outermost that has the same tests.

        So what one row waits for does not hold up the next.
        """
        if not isinstance(loop, For) or loop.unroll != "whole":
            return ()
        found = [row for one in every_of((loop,), For) if (row := _in_vectors(one, rows))]
        own = {name for node in every((loop,)) for name in own_names(node)}
        tests = [test for row in found for test in row.tests]
        if not found or own & set(names_in(*tests)):
            return ()
        copies = [(one.copy.source.buffer, one.copy.target.buffer) for one in found]
        both_ways = [one for one in copies if not {*one} & {*rows}]
        if any((target, source) in loaded for source, target in both_ways):
            return ()
        conditions = dict.fromkeys((*map(aligned, found), *tests))

        def in_vectors(node: Node) -> Nodes:
            return next(((row.vectors,) for row in found if row.loop == node), (node,))

        body = mapped((loop,), in_vectors)
        return (If(conditions=tuple(conditions), body=body, orelse=(loop,)),)

    body = outermost(kernel.body, both)
    used = {*names_in(*(stride for one in new for stride in one.buffer.layout.strides))}
    values = [at for at, one in enumerate(body, 1) if isinstance(one, Let) and one.name in used]
    at = max(values, default=0)
    return replace(kernel, body=(*body[:at], *new, *body[at:])) if body != kernel.body else kernel


@frozen
class _Row:
    """A loop over points of a thread, and the same in ``vectors`` where ``tests`` hold."""

    loop: For
    vectors: Node
    copy: Copy
    memory: Buffer
    tests: IntExprs


def _in_vectors(loop: For, rows: Collection[Buffer]) -> _Row | None:
    """Return a loop that copies a row of registers to memory, ``None`` if it has no vectors.

    Or one that gets some ``rows`` from there.
    """
    points = trips_from_zero(loop)
    if not points or loop.unroll != "whole" or len(loop.body) != len(("value", "copy")):
        return None
    value, copy = loop.body
    conditions: IntExprs = ()
    if isinstance(copy, If) and not copy.orelse and len(copy.body) == 1:
        conditions, (copy,) = copy.conditions, copy.body
    if not isinstance(value, Let) or not isinstance(copy, Copy) or copy.condition is not None:
        return None
    loads = copy.target.buffer in rows
    memory, register = (copy.source, copy.target) if loads else (copy.target, copy.source)
    width = COPIED_BYTES // memory.buffer.element_type.size_bytes
    spaces, counter = (memory.buffer.space, register.buffer.space), Name(loop.counter)
    (slot,) = register.subscripts[-1:] or (Constant(0),)
    first_slot = substitute(slot, {loop.counter: Constant(0)})
    along = memory.subscripts[-1:] == (Name(value.name),) and in_order(slot - first_slot) == counter
    if spaces != ("global", "register") or not along:
        return None
    others = names_in(*memory.subscripts[:-1], *register.subscripts[:-1])
    strides = [one for one in memory.buffer.layout.strides[:-1] if isinstance(one, Constant)]
    if (
        width == 1
        or not memory.buffer.element_type.is_floating
        or {value.name, loop.counter} & {*others}
        or any(one.value % width for one in strides)
        or _not_whole(first_slot, width) != Constant(0)
    ):
        return None

    def at(point: int) -> IntExpr:
        return substitute(value.value, {loop.counter: Constant(point)})

    first = at(0)
    begins = _not_whole(first, width)
    ends: IntExprs | None = complete(
        at_worst(one, loop, value.name, first, at(points - 1)) for one in conditions
    )
    places = [in_order(at(point) - first) for point in range(points)]
    if not _are_vectors(places, width) or begins is None or ends is None:
        return None
    tests = [] if begins == Constant(0) else [equals(begins % width, 0)]
    change = {loop.counter: width * counter}

    def of_vector(one: Element) -> Element:
        return replace(one, subscripts=tuple(substitute(s, change) for s in one.subscripts))

    target, source = of_vector(copy.target), of_vector(copy.source)
    moved = replace(copy, target=target, source=source, width=width)
    place = replace(value, value=in_order(substitute(value.value, change)))
    vectors: Node = replace(loop, condition=counter < points // width, body=(place, moved))
    if points == width:
        first_vector = {loop.counter: Constant(0)}
        only = with_expressions((place, moved), lambda one: in_order(substitute(one, first_vector)))
        vectors = Scope(body=only)
    return _Row(loop=loop, vectors=vectors, copy=moved, memory=memory.buffer, tests=(*tests, *ends))


def at_worst(
    condition: IntExpr, loop: For, value: str, first: IntExpr, last: IntExpr
) -> IntExpr | None:
    """Return a condition at the point where it fails first, ``None`` where that is not known.

    Values grow from the ``first`` point to the ``last``.
    """
    if not {value, loop.counter} & set(names_in(condition)):
        return condition
    if not isinstance(condition, Apply) or condition.operator not in _BELOW:
        return None
    form = linear(difference(*condition.operands))
    if form is None or loop.counter in form.terms or value not in form.terms:
        return None
    grows = form.terms[value] * _BELOW[condition.operator] > 0
    return substitute(condition, {value: in_order(last if grows else first)})


def _are_vectors(places: Sequence[IntExpr], width: int) -> bool:
    """Tell whether points are whole vectors, one behind the other."""
    values = [one.value for one in places if isinstance(one, Constant)]
    begins = values[::width]
    whole = [one + at for one in begins for at in range(width)]
    aligned = not any(one % width for one in begins) and begins == sorted({*begins})
    return len(values) == len(places) and values == whole and aligned


def _not_whole(value: IntExpr, by: int) -> IntExpr | None:
    """Return what of a sum is not known to be whole multiples of a number."""
    form = linear(in_order(value))
    if form is None:
        return None
    terms = {name: factor for name, factor in form.terms.items() if factor % by}
    return Linear(terms, form.constant % by).expression()
