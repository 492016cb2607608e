"""Fragments of halves are loaded as whole matrices, which the lanes of a warp do together.

    for (mj < 8)
        fragment_b[mj][0] = sh.B[16 * k_step + 2 * lane_j][8 * warp_j + 64 * mj + lane_i];
        fragment_b[mj][1] = sh.B[16 * k_step + 2 * lane_j + 1][8 * warp_j + 64 * mj + lane_i];
        …8 steps later

becomes, where rows of the box are whole vectors of 8 halves,

    for (mj < 4)
        eatss_load_turned_matrices(fragment_b[2 * mj][0], …, fragment_b[2 * mj + 1][1],
            &sh.B[16 * k_step + lane_j + 4 * (lane_i % 2) + …][8 * warp_j + …]);

Each lane names a row of 8 halves, and gets words of two halves each, as tensor cores want them. A
matrix lies in the box as lanes hold it, row by row, or turned; where it lies otherwise lanes load
halves one by one. All factors of a kernel come as words, or none does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from eatss.analysis.structure import VECTOR_BYTES
from eatss.instructions.matrix_loads import MATRIX_LOADS, ROW
from eatss.kernel.barriers import varies, varying_names
from eatss.kernel.instruction import WORD, Instruction
from eatss.kernel.layout import Layout
from eatss.kernel.nodes import (
    Buffer,
    Declare,
    Element,
    Evaluate,
    For,
    Kernel,
    Node,
    Perform,
)
from eatss.kernel.trips import trips_from_zero
from eatss.kernel.uses import accesses, every, mapped
from eatss.program import Apply, Constant, IntExpr, Name, Operator, multiplied, substitute, total
from eatss.program.linear import Linear, linear
from eatss.scops import Read
from eatss.transform.index_sums import in_order

_PAIR = 2
"""Halves of a word."""

_MOST = 4
"""Matrices that are loaded at a time."""

_HALVES = (4, 8)
"""What a lane may have of a fragment: two matrices, or four."""

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
    narrow = instruction.factor_type
    if narrow is None or narrow.size_bytes * _PAIR != WORD.size_bytes:
        return kernel
    if any(one.size_bytes % VECTOR_BYTES for one in kernel.shared):
        return kernel  # a box behind would begin anywhere
    nodes = list(every(kernel.body))
    wanted = {
        one.buffer
        for node in nodes
        if isinstance(node, Perform) and node.instruction == instruction
        for one in node.named(instruction.read)
        if one.buffer.element_type is narrow
    }
    loader = _Loader(kernel)
    nests = (loader.loads(node) for node in nodes if isinstance(node, For))
    loads = [one for one in nests if one is not None and one.buffer in wanted]
    written = [one.buffer for node in nodes for one in accesses(node)[0] if one.buffer in wanted]
    whole = {one.buffer for one in loads} == wanted
    if not whole or len(written) != sum(one.halves for one in loads):
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


def _in_words(fragment: Buffer) -> Buffer:
    """Return registers of words in the place of those of halves."""
    *outer, halves = fragment.layout.extents
    assert isinstance(halves, Constant)
    layout = Layout((*outer, Constant(halves.value // _PAIR)))
    return replace(fragment, element_type=WORD, layout=layout)


def _words(operands: Sequence[Element], fragments: set[Buffer]) -> tuple[Element, ...]:
    """Return the words in which elements of fragments are; other elements stay."""
    found: dict[Element, None] = {}
    for one in operands:
        own = one
        if one.buffer in fragments:
            *outer, half = one.subscripts
            assert isinstance(half, Constant)
            word = Constant(half.value // _PAIR)
            own = Element(buffer=_in_words(one.buffer), subscripts=(*outer, word))
        found[own] = None
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Loads:
    """A loop in which a lane loads ``halves`` of each of some matrices, of 8 x 8 each two.

    ``corners`` are the first elements of those, of as many turns of the loop as are loaded at a
    time; from row to row of them is ``apart``.
    """

    nest: For
    buffer: Buffer
    box: Buffer
    halves: int
    turned: bool
    corners: tuple[_Place, ...]
    apart: tuple[int, ...]
    lanes: tuple[str, str]

    @property
    def turns(self) -> int:
        """Turns of the loop that are loaded at a time."""
        return len(self.corners) * _PAIR // self.halves

    def loop(self) -> For:
        """Return the loop with one load for all matrices of a turn, or of two."""
        counter, words = Name(self.nest.counter), _in_words(self.buffer)
        trips = trips_from_zero(self.nest)
        assert trips is not None
        targets = [
            Element(
                buffer=words,
                subscripts=(
                    total(multiplied(Constant(self.turns), counter), Constant(turn)),
                    Constant(word),
                ),
            )
            for turn in range(self.turns)
            for word in range(self.halves // _PAIR)
        ]
        row = Element(buffer=self.box, subscripts=tuple(map(self._own_row, range(len(self.apart)))))
        load = Perform(
            instruction=MATRIX_LOADS[len(self.corners), self.turned],
            operands=(("d", tuple(targets)), ("rows", (row,))),
        )
        condition = Apply(Operator.LT, (counter, Constant(trips // self.turns)))
        return replace(self.nest, condition=condition, body=(load,))

    def _own_row(self, dimension: int) -> IntExpr:
        """Return a subscript of the row that a lane names.

        The first eight lanes name the rows of the first matrix, the next eight those of the second.
        """
        row, quad = map(Name, self.lanes)
        first = self.corners[0][dimension]
        others = [one[dimension].plus(first, -1).constant for one in self.corners[1:]]
        half = Apply(Operator.REMAINDER, (row, Constant(2)))
        matrix = Apply(Operator.QUOTIENT, (row, Constant(2)))
        numbers = [
            Apply(Operator.REMAINDER, (matrix, Constant(2))),
            Apply(Operator.QUOTIENT, (row, Constant(4))),
        ]
        found = total(
            first.expression(),
            multiplied(
                Constant(self.apart[dimension]), total(quad, multiplied(Constant(_QUADS), half))
            ),
        )
        for distance, number in zip(others[:2], numbers, strict=False):
            found = total(found, multiplied(Constant(distance), number))
        return found


class _Loader:
    """Reads loops over fragments of a kernel as loads of matrices."""

    def __init__(self, kernel: Kernel) -> None:
        axes = kernel.warps
        self._lanes = tuple(axis.lane for axis in axes)
        self._inside = {
            axis.thread: total(Name(axis.lane), multiplied(Constant(axis.lanes), Name(axis.warp)))
            for axis in axes
        }
        same = {*self._lanes, *self._inside, *(axis.warp for axis in axes)}
        self._apart = varying_names(kernel.body) - same

    def loads(self, loop: For) -> _Loads | None:
        """Return a loop as such loads, ``None`` where lanes do not hold whole matrices."""
        trips, own = trips_from_zero(loop), [one for one in loop.body if isinstance(one, Evaluate)]
        if len(own) < len(loop.body) or not trips or len(own) not in _HALVES:
            return None
        buffer, places = own[0].target.buffer, []
        for number, one in enumerate(own):
            target = Element(buffer=buffer, subscripts=(Name(loop.counter), Constant(number)))
            if one.target != target or not isinstance(one.part, Read):
                return None
            places.append(one.reads[one.part.access])
        box = places[0].buffer
        if any(one.buffer != box for one in places) or not _has_rows(box, buffer):
            return None
        if any(varies(each, self._apart) for one in places for each in one.subscripts):
            return None
        turns = min(trips, _MOST * _PAIR // len(own))
        while trips % turns:
            turns -= 1
        for turned in (False, True):
            found = self._matrices(loop, places, turns, turned=turned)
            if found is not None:
                corners, apart = found
                row, quad = self._lanes
                return _Loads(
                    nest=loop, buffer=buffer, box=box, halves=len(own), turned=turned,
                    corners=corners, apart=apart, lanes=(row, quad),
                )  # fmt: skip
        return None

    def _matrices(
        self, loop: For, places: Sequence[Element], turns: int, *, turned: bool
    ) -> tuple[tuple[_Place, ...], tuple[int, ...]] | None:
        """Return the corners of matrices and how rows of them are apart, if lanes hold them so."""
        counter = Name(loop.counter)
        corners: list[_Place] = []
        apart: tuple[int, ...] = ()
        for turn in range(turns):
            change = {loop.counter: total(multiplied(Constant(turns), counter), Constant(turn))}
            for first, second in zip(places[::_PAIR], places[1::_PAIR], strict=True):
                corner = self._place(first, change, 0, 0)
                next_row = self._place(
                    *((second, change, 0, 0) if turned else (first, change, 1, 0))
                )
                step = _distance(next_row, corner)
                if corner is None or step is None or not _is_vector(corner):
                    return None
                apart = apart or step
                if step != apart or step[-1] % ROW:
                    return None
                for row, quad, pair in product(range(_ROWS), range(_QUADS), range(_PAIR)):
                    element = (first, second)[pair]
                    near = _PAIR * quad + pair
                    down, along = (near, row) if turned else (row, near)
                    *outer, last = (down * one for one in apart)
                    there = _distance(self._place(element, change, row, quad), corner)
                    if there != (*outer, last + along):
                        return None
                corners.append(corner)
        return (tuple(corners), apart) if _are_a_grid(corners) else None

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


def _are_a_grid(corners: Sequence[_Place]) -> bool:
    """Tell whether two matrices are known to be apart, and four in two ways."""
    distances = [_distance(one, corners[0]) for one in corners]
    known = [one for one in distances if one is not None]
    if len(known) < len(distances) or len(known) < _MOST:
        return len(known) == len(distances)
    _, low, high, both = known
    return both == tuple(one + other for one, other in zip(low, high, strict=True))


def _has_rows(box: Buffer, fragment: Buffer) -> bool:
    """Tell whether a box in shared memory has rows of whole vectors, of a fragment's elements."""
    last = box.layout.allocated[-1] if box.layout.extents else None
    same = box.element_type is fragment.element_type and not box.layout.swizzle
    return box.space == "shared" and same and isinstance(last, Constant) and not last.value % ROW


def _is_vector(place: _Place) -> bool:
    """Tell whether a place is a whole number of vectors behind the begin of its row."""
    last = place[-1]
    return not last.constant % ROW and not any(one % ROW for one in last.terms.values())


def _distance(one: _Place | None, other: _Place | None) -> tuple[int, ...] | None:
    """Return how far a place is from another one, ``None`` where that is not known."""
    if one is None or other is None:
        return None
    apart = [first.plus(second, -1) for first, second in zip(one, other, strict=True)]
    return None if any(each.terms for each in apart) else tuple(each.constant for each in apart)
