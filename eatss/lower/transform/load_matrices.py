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
matrix lies in the tile as lanes hold it, row by row, or transposed; where it lies otherwise lanes
load halves one by one. All factors of a kernel come as words, or none does. Bytes are transposed by
twos: a lane gets words of two columns, those of interleaved fragments [``point_groups``].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import prod

from eatss.analysis.variant import VECTOR_BYTES
from eatss.base.frozen import Numbers, frozen
from eatss.lower.instructions.products import LANES_OF_A_BOX, LOADS, TRANSPOSED_BYTES
from eatss.lower.kernel.barriers import varies, varying_names
from eatss.lower.kernel.instruction import WORD, Instruction, Operand, places
from eatss.lower.kernel.nodes import (
    Buffer,
    Declare,
    Element,
    Extents,
    For,
    Intrinsic,
    Kernel,
    Load,
    Node,
    Nodes,
    Steps,
)
from eatss.lower.kernel.uses import every_of, mapped, trips_from_zero
from eatss.lower.transform.use_instruction import in_order
from eatss.polyhedral.expression import Read
from eatss.program import (
    Constant,
    IntExpr,
    Name,
    substitute,
)
from eatss.program.linear import Linear, linear

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
    loader = _Loader(kernel)

    def is_own(node: Node) -> bool:
        return isinstance(node, Intrinsic) and node.instruction == instruction

    steps = [
        one for one in every_of(kernel.body, Steps) if any(map(is_own, every_of((one,), Intrinsic)))
    ]
    loops = [one for own in steps for one in own.loads if isinstance(one, For)]
    found = {id(one): loader.loads(one) for one in loops}
    if None in found.values():
        return kernel

    def in_words(node: Node) -> Node:
        if isinstance(node, Declare):
            return Declare(buffer=_in_words(node.buffer))
        load = found[id(node)]
        assert load is not None
        return load

    def changed(node: Node) -> Nodes:
        if is_own(node) and isinstance(node, Intrinsic):
            read = instruction.read
            operands = (
                (name, _words(own) if name in read and name not in instruction.written else own)
                for name, own in node.operands
            )
            return (replace(node, operands=tuple(operands)),)
        if isinstance(node, Steps) and any(id(one) in found for one in node.loads):
            return (replace(node, loads=tuple(map(in_words, node.loads))),)
        return (node,)

    return replace(kernel, body=mapped(kernel.body, changed))


def _of_a_word(buffer: Buffer) -> int:
    """Return how many elements of a buffer are a word."""
    return WORD.size_bytes // buffer.element_type.size_bytes


def _in_words(fragment: Buffer) -> Buffer:
    """Return registers of words in the place of those of elements."""
    *outer, count = fragment.layout.extents
    assert isinstance(count, Constant)
    layout = Extents((*outer, Constant(count.value // _of_a_word(fragment))))
    return replace(fragment, element_type=WORD, layout=layout)


def _words(operands: Sequence[Element]) -> tuple[Element, ...]:
    """Return the words in which elements of fragments are."""
    found: dict[Element, None] = {}
    for one in operands:
        *outer, slot = one.subscripts
        assert isinstance(slot, Constant)
        word = Constant(slot.value // _of_a_word(one.buffer))
        found[_in_words(one.buffer).at(*outer, word)] = None
    return tuple(found)


@frozen
class _Rows:
    """Rows that lanes name: where the first one begins, and how far away those of one bit are."""

    corner: _Place
    bits: tuple[Numbers, ...]

    def own(self, dimension: int, row: IntExpr, quad: IntExpr, load: Instruction) -> IntExpr:
        """Return a subscript of the row that a lane names: that with its own number."""
        found = self.corner[dimension].expression()
        first, second, *others = (one[dimension] for one in self.bits)
        if second == 2 * first:
            found = found + first * quad
        else:
            found = found + first * (quad % 2) + second * (quad // 2)
        for at, distance in enumerate(others):
            bit = row if at == 0 else row // (1 << at)
            if at == 1 and load is TRANSPOSED_BYTES:
                bit = bit + row
            if 2 << at < _ROWS:
                bit = bit % 2
            found = found + distance * bit
        return found


class _Loader:
    """Makes loads of matrices of loops over fragments of a kernel."""

    def __init__(self, kernel: Kernel) -> None:
        axes = kernel.warps
        self._lanes = tuple(axis.lane for axis in axes)
        self._inside = {
            axis.thread: Name(axis.lane) + axis.lanes * Name(axis.warp) for axis in axes
        }
        same = {*self._lanes, *self._inside, *(axis.warp for axis in axes)}
        self._apart = varying_names(kernel.body) - same

    def loads(self, loop: For) -> For | None:
        """Return a loop with loads of matrices, ``None`` where lanes do not hold whole ones."""
        trips, own = trips_from_zero(loop) or 0, [*every_of(loop.body, Load)]
        elements = [one.reads[one.part.access] for one in own if isinstance(one.part, Read)]
        buffer = own[0].target.buffer
        if len(elements) < len(own) or not all(
            one.buffer == elements[0].buffer
            and _has_rows(one.buffer, buffer)
            and not any(varies(each, self._apart) for each in one.subscripts)
            for one in elements
        ):
            return None
        words = _in_words(buffer)
        for load in LOADS.get(buffer.element_type.size_bytes, ()):
            loaded, _ = load.operands
            turns = prod(one.extent for one in loaded.slots(load.lanes)) // len(own)
            if not turns or trips % turns:
                continue
            order = tuple(product(range(turns), range(len(own) // _of_a_word(buffer))))
            if load is TRANSPOSED_BYTES and turns == 1:  # its columns are halves of a fragment
                order = order[::2] + order[1::2]
            rows = self._rows(loop, elements, loaded, order, turns)
            if rows is None:
                continue
            counter = Name(loop.counter)
            targets = tuple(
                words.at(turns * counter + turn, Constant(word)) for turn, word in order
            )
            row, quad = map(Name, self._lanes)
            at = tuple(rows.own(one, row, quad, load) for one in range(len(rows.corner)))
            named = elements[0].buffer.at(*at)
            perform = Intrinsic(instruction=load, operands=(("d", targets), ("rows", (named,))))
            return replace(loop, condition=counter < trips // turns, body=(perform,))
        return None

    def _rows(
        self,
        loop: For,
        elements: Sequence[Element],
        target: Operand,
        words: Sequence[tuple[int, int]],
        turns: int,
    ) -> _Rows | None:
        """Return the rows that lanes name, for the words of so many turns of a loop.

        ``None`` where lanes hold other elements of the rows than a load gives them, rows do not
        begin where vectors do, or are not as far apart as their bits say.
        """
        counter = turns * Name(loop.counter)
        of_a_word = _of_a_word(elements[0].buffer)
        corner: _Place | None = None
        rows: dict[int, Numbers] = {}
        for number, values in enumerate(places(target.slots(LANES_OF_A_BOX))):
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
        return _Rows(corner=corner, bits=tuple(bits)) if whole else None

    def _place(
        self, element: Element, change: Mapping[str, IntExpr], row: int, quad: int
    ) -> _Place | None:
        """Return where a lane loads an element."""
        lanes = dict(zip(self._lanes, (Constant(row), Constant(quad)), strict=True))
        found = []
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
    same = box.element_type is fragment.element_type
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


def _distance(one: _Place | None, other: _Place | None) -> Numbers | None:
    """Return how far a place is from another one, ``None`` where that is not known."""
    if one is None or other is None:
        return None
    apart = [first.plus(second, -1) for first, second in zip(one, other, strict=True)]
    return None if any(each.terms for each in apart) else tuple(each.constant for each in apart)
