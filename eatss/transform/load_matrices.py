"""Fragments of halves or bytes are loaded as whole matrices, by the lanes of a warp together.

    for (mj < 8)
        fragment_b[mj][0] = sh.B[16 * k_step + 2 * lane_j][8 * warp_j + 64 * mj + lane_i];
        fragment_b[mj][1] = sh.B[16 * k_step + 2 * lane_j + 1][8 * warp_j + 64 * mj + lane_i];
        …8 steps later

becomes, where rows of the box are whole vectors of 8 halves,

    for (mj < 4)
        eatss_load_turned_matrices(fragment_b[2 * mj][0], …, fragment_b[2 * mj + 1][1],
            &sh.B[16 * k_step + lane_j + 4 * (lane_i % 2) + …][8 * warp_j + …]);

Each lane names a row of 16 bytes, and gets words of two halves each, as tensor cores want them. A
matrix lies in the box as lanes hold it, row by row, or turned; where it lies otherwise lanes load
halves one by one. All factors of a kernel come as words, or none does. Bytes are turned by twos: a
lane gets words of two columns, those of matrices that take turns [``point_groups``].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import prod

from eatss.analysis.structure import VECTOR_BYTES
from eatss.frozen import frozen
from eatss.instructions.matrix_loads import LOADS, TURNED_BYTES
from eatss.instructions.products import LANES_OF_A_BOX
from eatss.kernel.barriers import varies, varying_names
from eatss.kernel.instruction import WORD, Instruction, Operand, places
from eatss.kernel.nodes import (
    Buffer,
    Declare,
    Element,
    Evaluate,
    For,
    Kernel,
    Layout,
    Node,
    Perform,
)
from eatss.kernel.uses import accesses, every, mapped, trips_from_zero
from eatss.program import (
    Constant,
    IntExpr,
    Name,
    substitute,
)
from eatss.program.linear import Linear, linear
from eatss.scops import Read
from eatss.transform.index_sums import in_order

_ROWS, _QUADS = 8, 4
"""Lanes of a warp, as they hold a matrix."""

_Place = tuple[Linear, ...]
"""Where a lane loads in a box, in terms that are the same for all lanes of a warp."""


def with_matrices_loaded(kernel: Kernel, instruction: Instruction) -> Kernel:
    """Return a kernel whose fragments are loaded as matrices, if all of an instruction's can be.

    Args:
        kernel: one in which warps use the instruction.
        instruction: what multiplies the fragments.
    """
    narrow = instruction.factor_types
    if not narrow or any(one.size_bytes >= WORD.size_bytes for one in narrow.values()):
        return kernel
    if any(one.size_bytes % VECTOR_BYTES for one in kernel.shared):
        return kernel  # a box behind would begin anywhere
    nodes = list(every(kernel.body))
    wanted = {
        one.buffer
        for node in nodes
        if isinstance(node, Perform) and node.instruction == instruction
        for one in node.named(instruction.read)
        if one.buffer.element_type in narrow.values()
    }
    loader = _Loader(kernel)
    nests = (loader.loads(node) for node in nodes if isinstance(node, For))
    loads = [one for one in nests if one is not None and one.buffer in wanted]
    written = [one.buffer for node in nodes for one in accesses(node)[0] if one.buffer in wanted]
    whole = {one.buffer for one in loads} == wanted
    if not whole or len(written) != sum(one.elements for one in loads):
        return kernel

    def changed(node: Node) -> tuple[Node, ...]:
        if isinstance(node, Declare) and node.buffer in wanted:
            return (Declare(buffer=_in_words(node.buffer)),)
        if isinstance(node, Perform) and node.instruction == instruction:
            operands = ((name, _words(own, wanted)) for name, own in node.operands)
            return (replace(node, operands=tuple(operands)),)
        own = loader.loads(node) if isinstance(node, For) else None
        return (node,) if own is None or own.buffer not in wanted else (own.loop(),)

    return replace(kernel, body=mapped(kernel.body, changed))


def _of_a_word(buffer: Buffer) -> int:
    """Return how many elements of a buffer are a word."""
    return WORD.size_bytes // buffer.element_type.size_bytes


def _in_words(fragment: Buffer) -> Buffer:
    """Return registers of words in the place of those of elements."""
    *outer, count = fragment.layout.extents
    assert isinstance(count, Constant)
    layout = Layout((*outer, Constant(count.value // _of_a_word(fragment))))
    return replace(fragment, element_type=WORD, layout=layout)


def _words(operands: Sequence[Element], fragments: set[Buffer]) -> tuple[Element, ...]:
    """Return the words in which elements of fragments are; other elements stay."""
    found: dict[Element, None] = {}
    for one in operands:
        own = one
        if one.buffer in fragments:
            *outer, slot = one.subscripts
            assert isinstance(slot, Constant)
            word = Constant(slot.value // _of_a_word(one.buffer))
            own = Element(buffer=_in_words(one.buffer), subscripts=(*outer, word))
        found[own] = None
    return tuple(found)


@frozen
class _Loads:
    """A loop whose turns load fragments, some of them by one ``load``: ``words``, by turn and slot.

    ``corner`` is where the first row begins that lanes name, ``bits`` how far away from it rows are
    whose number has one bit.
    """

    nest: For
    buffer: Buffer
    box: Buffer
    load: Instruction
    words: tuple[tuple[int, int], ...]
    corner: _Place
    bits: tuple[tuple[int, ...], ...]
    lanes: tuple[str, str]

    @property
    def elements(self) -> int:
        """Elements of a fragment that a lane loads in a turn of the loop."""
        return len({word for _, word in self.words}) * _of_a_word(self.buffer)

    def loop(self) -> For:
        """Return the loop with one load for all matrices of a turn, or of two."""
        counter, words = Name(self.nest.counter), _in_words(self.buffer)
        trips = trips_from_zero(self.nest)
        assert trips is not None
        turns = len({turn for turn, _ in self.words})
        targets = [
            Element(
                buffer=words,
                subscripts=(
                    turns * counter + turn,
                    Constant(word),
                ),
            )
            for turn, word in self.words
        ]
        row = Element(
            buffer=self.box, subscripts=tuple(map(self._own_row, range(len(self.corner))))
        )
        load = Perform(instruction=self.load, operands=(("d", tuple(targets)), ("rows", (row,))))
        condition = counter < trips // turns
        return replace(self.nest, condition=condition, body=(load,))

    def _own_row(self, dimension: int) -> IntExpr:
        """Return a subscript of the row that a lane names: that with its own number."""
        row, quad = map(Name, self.lanes)
        found = self.corner[dimension].expression()
        first, second, *others = (one[dimension] for one in self.bits)
        if second == 2 * first:
            found = found + first * quad
        else:
            low = quad % 2
            high = quad // 2
            found = found + first * low
            found = found + second * high
        for at, distance in enumerate(others):
            bit: IntExpr = row if at == 0 else row // (1 << at)
            if at == 1 and self.load is TURNED_BYTES:
                bit = bit + row
            if 2 << at < _ROWS:
                bit = bit % 2
            found = found + distance * bit
        return found


class _Loader:
    """Reads loops over fragments of a kernel as loads of matrices."""

    def __init__(self, kernel: Kernel) -> None:
        axes = kernel.warps
        self._lanes = tuple(axis.lane for axis in axes)
        self._inside = {
            axis.thread: Name(axis.lane) + axis.lanes * Name(axis.warp) for axis in axes
        }
        same = {*self._lanes, *self._inside, *(axis.warp for axis in axes)}
        self._apart = varying_names(kernel.body) - same

    def loads(self, loop: For) -> _Loads | None:
        """Return a loop as such loads, ``None`` where lanes do not hold whole matrices."""
        trips, own = trips_from_zero(loop), [one for one in loop.body if isinstance(one, Evaluate)]
        if not own or len(own) < len(loop.body) or not trips:
            return None
        buffer, elements = own[0].target.buffer, list[Element]()
        for number, one in enumerate(own):
            target = Element(buffer=buffer, subscripts=(Name(loop.counter), Constant(number)))
            if one.target != target or not isinstance(one.part, Read):
                return None
            elements.append(one.reads[one.part.access])
        box = elements[0].buffer
        if any(one.buffer != box for one in elements) or not _has_rows(box, buffer):
            return None
        if any(varies(each, self._apart) for one in elements for each in one.subscripts):
            return None
        for load in LOADS.get(buffer.element_type.size_bytes, ()):
            loaded, _ = load.operands
            turns = prod(one.extent for one in loaded.slots(load.lanes)) // len(own)
            if not turns or trips % turns:
                continue
            order = tuple(product(range(turns), range(len(own) // _of_a_word(buffer))))
            if load is TURNED_BYTES and turns == 1:  # its columns are halves of a fragment
                order = order[::2] + order[1::2]
            found = self._rows(loop, elements, loaded, order)
            if found is not None:
                corner, bits = found
                row, quad = self._lanes
                return _Loads(
                    nest=loop, buffer=buffer, box=box, load=load, words=order, corner=corner,
                    bits=bits, lanes=(row, quad),
                )  # fmt: skip
        return None

    def _rows(
        self,
        loop: For,
        elements: Sequence[Element],
        target: Operand,
        words: Sequence[tuple[int, int]],
    ) -> tuple[_Place, tuple[tuple[int, ...], ...]] | None:
        """Return the first row that lanes name, and how far away rows are whose number has one bit.

        ``None`` where lanes hold other elements of the rows than a load gives them, rows do not
        begin where vectors do, or are not as far apart as their bits say.
        """
        turns = len({turn for turn, _ in words})
        counter = turns * Name(loop.counter)
        slots = target.slots(LANES_OF_A_BOX)
        of_a_word = _of_a_word(elements[0].buffer)
        corner: _Place | None = None
        rows: dict[int, tuple[int, ...]] = {}
        for number, values in enumerate(places(slots)):
            turn, word = words[number // of_a_word]
            element = elements[word * of_a_word + number % of_a_word]
            change = {loop.counter: counter + turn}
            for row, quad in product(range(_ROWS), range(_QUADS)):
                named, column = target.held.at({**values, "row": row, "quad": quad})
                if target.held.flips is not None:  # its bit 3 is that of the quad, or not
                    named ^= 2 * (named & 4)
                place = self._place(element, change, row, quad)
                corner = corner or place
                distance = _distance(place, corner)
                if distance is None:
                    return None
                *outer, last = distance
                begin = (*outer, last - column)
                if rows.setdefault(named, begin) != begin:
                    return None
        assert corner is not None
        bits = [rows[1 << at] for at in range((len(rows) - 1).bit_length())]
        long = _long(elements[0].buffer)
        whole = _is_vector(corner, long) and not any(one[-1] % long for one in bits)
        for named, begin in rows.items():
            own = [one for at, one in enumerate(bits) if named >> at & 1]
            whole = whole and begin == tuple(map(sum, zip(*own, [0] * len(begin), strict=True)))
        return (corner, tuple(bits)) if whole else None

    def _place(
        self, element: Element, change: Mapping[str, IntExpr], row: int, quad: int
    ) -> _Place | None:
        """Return where a lane loads an element."""
        lanes = dict(zip(self._lanes, (Constant(row), Constant(quad)), strict=True))
        found: list[Linear] = []
        for one in element.subscripts:
            inside = substitute(substitute(one, self._inside), {**change, **lanes})
            form = linear(in_order(inside))
            if form is None:
                return None
            found.append(form)
        return tuple(found)


def _has_rows(box: Buffer, fragment: Buffer) -> bool:
    """Tell whether a box in shared memory has rows of whole vectors, of a fragment's elements."""
    last = box.layout.allocated[-1] if box.layout.extents else None
    same = box.element_type is fragment.element_type and not box.layout.swizzle
    return (
        box.space == "shared"
        and same
        and isinstance(last, Constant)
        and not last.value % _long(box)
    )


def _long(box: Buffer) -> int:
    """Return the elements of a vector."""
    return VECTOR_BYTES // box.element_type.size_bytes


def _is_vector(place: _Place, long: int) -> bool:
    """Tell whether a place is a whole number of vectors behind the begin of its row."""
    last = place[-1]
    return not last.constant % long and not any(one % long for one in last.terms.values())


def _distance(one: _Place | None, other: _Place | None) -> tuple[int, ...] | None:
    """Return how far a place is from another one, ``None`` where that is not known."""
    if one is None or other is None:
        return None
    apart = [first.plus(second, -1) for first, second in zip(one, other, strict=True)]
    return None if any(each.terms for each in apart) else tuple(each.constant for each in apart)
