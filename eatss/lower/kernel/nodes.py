"""The nouns of generated code: buffers, their elements, and what the threads of a block do.

Integer expressions name sizes, counters and constants of the kernel, and the hardware's
coordinates as CUDA spells them (``threadIdx.x``, ``blockIdx.y``, ``gridDim.z``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Literal, TypeAlias

from eatss.base.frozen import Names, Numbers, fixed, frozen
from eatss.base.text import NamedTexts
from eatss.lower.kernel.copies import BY_THREADS, CopyKind
from eatss.lower.kernel.instruction import Instruction
from eatss.plan.stage import in_shared
from eatss.polyhedral.expression import Combiner, ElementType, Expression
from eatss.polyhedral.scop import Statement
from eatss.program import (
    Constant,
    IntExpr,
    Name,
)
from eatss.program.expression import IntExprs

Space: TypeAlias = Literal["global", "argument", "shared", "register"]
"""Where a buffer lives. An ``argument`` is a scalar that is passed by value."""

Unroll: TypeAlias = Literal["whole"] | int | None
"""Whether a loop is unrolled: as a whole, so many steps, or as the compiler likes."""


@fixed
class Extents:
    """Extents in elements, the slowest first; ``padding`` elements follow each row.

    ``Extents((Constant(32), Constant(32)), padding=1)`` is a tile whose rows are 33 elements apart.
    """

    extents: IntExprs
    padding: int = 0

    @property
    def allocated(self) -> IntExprs:
        """Extents with the padding."""
        if not self.padding:
            return self.extents
        return (*self.extents[:-1], self.extents[-1] + self.padding)

    @property
    def strides(self) -> IntExprs:
        """How far apart neighbours along each dimension are, in elements."""
        found: list[IntExpr] = []
        stride: IntExpr = Constant(1)
        for extent in reversed(self.allocated):
            found.append(stride)
            stride = stride * extent
        return tuple(reversed(found))

    @property
    def elements(self) -> int | None:
        """Elements that are allocated, ``None`` where an extent is not constant."""
        extents = [one.value for one in self.allocated if isinstance(one, Constant)]
        return prod(extents) if len(extents) == len(self.extents) else None

    def address(self, subscripts: Sequence[IntExpr]) -> IntExpr:
        """Return how many elements in front of it an element has."""
        if not subscripts:
            return Constant(0)
        address = subscripts[0]
        for extent, place in zip(self.allocated[1:], subscripts[1:], strict=True):
            address = address * extent + place
        return address


@frozen
class Buffer:
    """Memory with a name: an array of the region, a tile in shared memory, registers of a thread.

    Registers have an extent for each loop of which a thread has several points; a cell of global
    memory has none. Of a tile ``of_phases`` the threads of a phase need as little of each other as
    of arrays: see :class:`Scope`.
    """

    name: str
    space: Space
    element_type: ElementType
    layout: Extents
    of_phases: bool = False

    @property
    def size_bytes(self) -> int:
        """Bytes of a buffer whose extents are constant."""
        elements = self.layout.elements
        assert elements is not None
        return elements * self.element_type.size_bytes

    @classmethod
    def of(
        cls, space: Space, name: str, element_type: ElementType, *extents: IntExpr | int
    ) -> Buffer:
        """Return a buffer of some extents without padding, a cell where there are none."""
        sizes = (Constant(one) if isinstance(one, int) else one for one in extents)
        layout = Extents(tuple(sizes))
        return cls(name=name, space=space, element_type=element_type, layout=layout)

    def registers(self, name: str, *extents: IntExpr | int) -> Buffer:
        """Return registers for elements of it, one where there are no extents."""
        return Buffer.of("register", name, self.element_type, *extents)

    def at(self, *subscripts: IntExpr) -> Element:
        """Return an element."""
        return Element(buffer=self, subscripts=subscripts)


@frozen
class Element:
    """An element of a buffer."""

    buffer: Buffer
    subscripts: IntExprs = ()


@frozen
class Let:
    """A constant with a name. ``narrow`` ones have 32 bits whatever indices have."""

    name: str
    value: IntExpr
    narrow: bool = False


@frozen
class Flag:
    """``name`` is ``first``, until a :class:`Compute` clears it; it may differ between threads."""

    name: str
    first: IntExpr = Constant(1)


@frozen
class Declare:
    """Registers of a thread come to be, without values.

    Those to be ``filled`` get all their values before any is read, whatever tests say.
    """

    buffer: Buffer
    filled: bool = False


@frozen
class Cycle:
    """``name`` is the number of a loop's iteration modulo ``count``.

    ``prefetches`` tells that an iteration loads the operands of a step while it computes the one
    before.
    """

    name: str
    count: int
    prefetches: bool = False


@frozen
class For:
    """``for (counter = lower; condition; counter += step) body``; see :class:`Let` on narrow.

    A ``cycle`` is counted beside it, so that nothing is divided in the loop.
    """

    counter: str
    lower: IntExpr
    condition: IntExpr
    step: IntExpr
    body: Nodes
    unroll: Unroll = None
    narrow: bool = False
    cycle: Cycle | None = None


def counted(counter: str, count: IntExpr | int, body: Nodes, unroll: Unroll = "whole") -> For:
    """Return a loop whose narrow counter numbers its iterations from 0."""
    return For(
        counter=counter,
        lower=Constant(0),
        condition=Name(counter) < count,
        step=Constant(1),
        body=body,
        unroll=unroll,
        narrow=True,
    )


def over_places(buffer: Buffer, counters: Sequence[str], node: Node) -> Node:
    """Return a node in unrolled loops over the places of registers, a counter a dimension."""
    for counter, extent in zip(reversed(counters), reversed(buffer.layout.extents), strict=True):
        node = counted(counter, extent, (node,))
    return node


def filled(buffer: Buffer, counters: Sequence[str], value: float) -> Node:
    """Return what gives all places of registers a number, in such loops."""
    return over_places(buffer, counters, Init(target=buffer.at(*map(Name, counters)), value=value))


@frozen
class If:
    """``body`` where all conditions hold, else ``orelse``."""

    conditions: IntExprs
    body: Nodes
    orelse: Nodes = ()


@frozen
class Scope:
    """Constants in ``body`` are known there only.

    In a named ``phase`` no thread meets another's elements of global memory; those of one phase
    and of another do. In one that is ``apart``, by a name, none does those of shared memory.
    """

    body: Nodes
    phase: str = ""
    apart: str = ""


@frozen
class Way:
    """A way of a :class:`Staging`: of ``elements``, or of ``vectors`` where ``wide`` holds, too.

    Where its ``conditions`` do not hold, the next way is taken. With ``steps`` the tile is not
    whole, but the steps of a loop are. Vectors may pass registers, which are declared first.
    """

    elements: Nodes
    conditions: IntExprs = ()
    wide: IntExprs = ()
    vectors: Nodes = ()
    steps: bool = False

    @property
    def line(self) -> Buffer | None:
        """The registers that vectors pass."""
        first = self.vectors[0] if self.vectors else None
        return first.buffer if isinstance(first, Declare) else None


@frozen
class Staging:
    """All threads of a block fill a tile in shared memory, by one of several :class:`Way`.

    Loops that begin with stages to be filled ``ahead`` copy some iterations ahead, if any are to.
    It is carried out by :mod:`eatss.lower.transform.copy_ways`.
    """

    ways: Nodes
    ahead: bool = False


@frozen
class Steps:
    """``for (counter < count) { loads; products }``: products of warps, of what each step loads.

    ``loads`` begin with the declarations of what they fill. :mod:`eatss.lower.transform.pipeline`
    lets them run ahead of the products, or carries out what is said here.
    """

    counter: str
    count: int
    loads: Nodes
    products: Nodes

    def between(self, first: int, end: int, body: Nodes) -> Nodes:
        """Return some steps that do what ``body`` says; one of them is no loop."""
        if end - first == 1:
            here = Let(name=self.counter, value=Constant(first), narrow=True)
            return (Scope(body=(here, *body)),)
        loop = replace(counted(self.counter, end, body), lower=Constant(first))
        return (loop,) if first < end else ()


@frozen
class Barrier:
    """All threads of a block wait for each other; what they wrote to shared memory is seen."""


@frozen
class Init:
    """An element gets a number of its type, NaN and infinity among them."""

    target: Element
    value: float


@frozen
class Copy:
    """``target = source`` where ``condition`` holds, everywhere if it is ``None``.

    With ``clears`` the target is zero elsewhere. A copy that goes ``ahead``, by a ``kind`` that is
    asynchronous, is done when a :class:`Wait` says so. Of ``width`` elements, these are the first;
    both rows have the others behind them, and lie as :class:`Aligned` says.
    """

    target: Element
    source: Element
    condition: IntExpr | None = None
    clears: bool = False
    ahead: bool = False
    width: int = 1
    kind: CopyKind = BY_THREADS


@frozen
class Aligned:
    """``name`` is 1 where every row of a buffer begins at a multiple of ``width`` elements."""

    name: str
    buffer: Buffer
    width: int

    @property
    def strides(self) -> IntExprs:
        """How far apart rows are, in elements."""
        return self.buffer.layout.strides[:-1]


@frozen
class Share:
    """Elements of which each thread of a block looks at its own: ``counter`` goes through them."""

    count: int
    element: Element


@frozen
class AllFinite:
    """``name`` is 1 where ``unless`` holds, and else where all of some elements are finite.

    A thread looks at its ``shares``: from ``thread`` on, which is its number in the block, in steps
    of ``threads``. Then all threads of a block meet and agree. ``unless`` is the same for all.
    """

    name: str
    unless: IntExpr
    counter: str
    thread: IntExpr
    threads: int
    shares: tuple[Share, ...]


@frozen
class Agreed:
    """``name`` is 1 where a flag is 1 in all threads of a block, which meet there."""

    name: str
    flag: str


@frozen
class PartialSum:
    """Sums in registers of which blocks have parts: ``counters`` go through all ``extents``.

    A block leaves its part at ``left``, and finds that of another block at ``found``.
    """

    counters: Names
    extents: Numbers
    sum: Element
    left: Element
    found: Element


@frozen
class Fixup:
    """Sums of which a ``number`` of blocks have parts come to the one of them that comes last.

    ``name`` is 1 there, and 0 in the others, which leave their parts in memory. The last one waits
    until all are there, and adds them up in the order of the blocks; this block is number ``own``
    of them, ``part`` counts them. ``arrived`` is the first of two counters, which are zero before
    and behind: blocks that have come, and that have left their parts. ``thread`` is the number of a
    thread in its block. All threads of a block meet and agree; the expressions are the same for
    all of them.
    """

    name: str
    number: IntExpr
    own: IntExpr
    part: str
    thread: IntExpr
    arrived: Element
    sums: tuple[PartialSum, ...]


@frozen
class NextTile:
    """A warp takes the next of ``tiles`` of rows, whose number is called ``name``.

    All tiles before are those of warps that have begun. ``taken`` is the number of all that were
    taken, in this run and in those before it, which are so many as ``run`` is called.
    """

    name: str
    run: str
    taken: Element
    tiles: IntExpr


@frozen
class LookBack:
    """What a warp has of its ``tile`` becomes what all of its row before it come to.

    ``value`` is the same for all lanes of the warp, of which all come here; ``first`` is the tile
    that the row begins with. What a tile comes to, or all of its row up to it, is left from
    ``found`` on with the number of the run, which has its name from a :class:`NextTile`.
    """

    value: Element
    found: Element
    run: str
    tile: IntExpr
    first: IntExpr
    combiner: Combiner


@frozen
class Commit:
    """The copies that a thread has sent ahead since the last one are a group."""


@frozen
class Wait:
    """A thread waits for its groups of copies but the last ``pending``."""

    pending: int


@frozen
class Intrinsic:
    """An instruction, with what each operand is and its integers, by their names.

    An operand is an element, or as many as a lane holds of it, its last slot fastest.
    ``computes`` is the statement whose place it took, if any.
    """

    instruction: Instruction
    operands: tuple[tuple[str, tuple[Element, ...]], ...]
    immediates: tuple[tuple[str, IntExpr | int], ...] = ()
    computes: str = ""

    @classmethod
    def of(
        cls, instruction: Instruction, target: Element, value: Element, **immediates: IntExpr | int
    ) -> Intrinsic:
        """Return an instruction that makes a ``target`` of a ``value``, or changes it by one."""
        operands = (("target", (target,)), ("value", (value,)))
        return cls(instruction=instruction, operands=operands, immediates=tuple(immediates.items()))

    def named(self, names: Sequence[str]) -> tuple[Element, ...]:
        """Return the operands of these names."""
        return tuple(one for name, elements in self.operands if name in names for one in elements)


@frozen
class Compute:
    """An instance of a statement: its value goes to ``target``.

    ``reads`` has the element of each access of the statement, the first that of its write.
    ``integers`` are the values of the affine functions in the statement's value, in the order of
    :func:`eatss.lower.kernel.uses.affine_values`. ``types`` are element types of arrays by name.
    A ``flag``, if it has one, is cleared where a quotient is not exact that is fused steps: by a
    literal, or by an access, by number, of which there is a reciprocal; where it ``inverts``, by
    anything.
    """

    statement: Statement
    target: Element
    reads: tuple[Element, ...]
    integers: IntExprs
    types: Mapping[str, ElementType]
    flag: str = ""
    reciprocals: tuple[tuple[int, Element], ...] = ()
    inverts: bool = False


@frozen
class Reciprocal:
    """``target`` is that of ``source``; ``flag`` is cleared where quotients may not be exact."""

    target: Element
    source: Element
    flag: str


@frozen
class Load:
    """A part of a statement's value goes to ``target``; the rest as in :class:`Compute`."""

    statement: Statement
    part: Expression
    target: Element
    reads: tuple[Element, ...]
    types: Mapping[str, ElementType]
    integers: IntExprs = ()


@frozen
class Loop:
    """What isl makes of a loop: ``for (counter = lower; condition; counter += step) body``.

    ``hint`` is the name of the loop of the schedule that it runs. With ``points`` it is over a
    thread's points: as many trips at most, none of which depends on another. ``exact`` says that it
    runs where the quotient ``lower`` has no rest, once. :mod:`eatss.lower.thread_builder` makes it
    a :class:`For`.
    """

    counter: str
    hint: str
    lower: IntExpr
    condition: IntExpr
    step: int
    body: Nodes
    points: int | None = None
    exact: bool = False


@frozen
class Instance:
    """An instance of a statement, or a transfer of registers, by its name: values of counters.

    :mod:`eatss.lower.thread_builder` makes it what computes or copies.
    """

    name: str
    values: IntExprs


def guarded(tests: Sequence[IntExpr], nodes: Nodes) -> Nodes:
    """Return nodes where all of some conditions hold, which may be none."""
    return (If(conditions=tuple(tests), body=nodes),) if tests and nodes else nodes


@frozen
class Source:
    """What follows comes from this place of the source; no ``file`` means the original in C."""

    line: int
    text: str
    file: str = ""


Meeting: TypeAlias = Barrier | AllFinite | Agreed | Fixup | NextTile | LookBack
"""What all threads of a block have to get to: they meet there."""

Node: TypeAlias = (
    Let
    | Flag
    | Declare
    | For
    | If
    | Scope
    | Way
    | Staging
    | Steps
    | Meeting
    | Init
    | Copy
    | Aligned
    | Commit
    | Wait
    | Intrinsic
    | Compute
    | Reciprocal
    | Load
    | Loop
    | Instance
    | Source
)

Nodes: TypeAlias = tuple[Node, ...]
"""Nodes one after another: a body."""


@frozen
class Argument:
    """What a kernel is passed: a size or counter, or a buffer that it may only read.

    Through one that is ``passed_on`` threads of a block pass values to each other. Compilers must
    not be told then that nothing but the pointer changes it (``__restrict__``): they would keep
    values of it over a barrier.
    """

    name: str
    buffer: Buffer | None = None
    read_only: bool = False
    passed_on: bool = False


@frozen
class WarpAxis:
    """How the threads along a loop are lanes of warps: ``thread = lane + lanes * warp``.

    All are names of the kernel: ``point`` counts the thread's points along the loop, ``loop`` is
    what the loop's own value is called. There are so many ``lanes``, and ``warps`` of a block. So
    many matrices as ``turns`` says take turns in what a
    thread has: point after point is of another of them. It is 0 where points are as far apart as
    there are threads.
    """

    loop: str
    thread: str
    lane: str
    warp: str
    lanes: int
    warps: int
    point: str
    turns: int = 0


@frozen
class Streamed:
    """How ``blocks`` take equal shares of the steps of all tiles of a kernel.

    ``parts`` is memory for parts of sums, ``arrived`` has two counters for each tile, which are
    zero when no block runs. ``counts`` are tiles along x, y and z, and the steps of a tile.
    """

    blocks: int
    parts: Buffer
    arrived: Buffer
    counts: IntExprs


@frozen
class Kernel:
    """A kernel: what each thread of each block does.

    ``warps`` are the loops, rows first, whose threads are boxes of lanes; mostly none. Compilers
    are to keep registers so few that ``resident`` blocks fit an SM. ``regroups`` says that
    factors of its products are multiplied, or products added, in another order than in the source.
    Sums in some registers are ``continued`` in those of another one each, by their names.

    ``threads`` are those of a block, ``shared`` what a block has in shared memory, which is passed
    at launch if it is more than ``static_shared_bytes``. Indices have ``index_bits``. Tiles of a
    group of ``overlaid``, by name, lie where those of the other groups do: a block uses them one
    group after another [:mod:`eatss.lower.kernel.checks`]. Where it is ``streamed``, blocks do not
    have tiles of their own [:mod:`eatss.lower.transform.stream_k`].
    """

    name: str
    threads: int
    arguments: tuple[Argument, ...]
    shared: tuple[Buffer, ...]
    static_shared_bytes: int
    index_bits: Literal[32, 64]
    body: Nodes
    warps: tuple[WarpAxis, ...] = ()
    resident: int = 1
    regroups: bool = False
    continued: NamedTexts = ()
    overlaid: tuple[Names, ...] = ()
    streamed: Streamed | None = None

    @property
    def shared_bytes(self) -> int:
        """Bytes of shared memory of a block. Of groups that are overlaid the largest counts."""
        most = max(map(_bytes_of, self.overlaid_tiles), default=0)
        return most + _bytes_of(self.separate_tiles)

    @property
    def overlaid_tiles(self) -> tuple[tuple[Buffer, ...], ...]:
        """The tiles of each group that lies where others do, in the order of ``shared``."""
        return tuple(
            tuple(one for one in self.shared if one.name in group) for group in self.overlaid
        )

    @property
    def separate_tiles(self) -> tuple[Buffer, ...]:
        """The tiles that have their memory for themselves."""
        overlaid = {name for group in self.overlaid for name in group}
        return tuple(one for one in self.shared if one.name not in overlaid)

    @property
    def dynamic_shared(self) -> bool:
        """Whether shared memory is passed at launch."""
        return self.shared_bytes > self.static_shared_bytes


def _bytes_of(boxes: Sequence[Buffer]) -> int:
    return sum(int(in_shared(one.size_bytes)) for one in boxes)
