"""What a machine does at once: instructions as data, with what they compute.

    Instruction(
        name="atomic_add",
        operands=(Operand(name="target", role="inout"), Operand(name="value")),
        target="target",
        value="value",
        adds=True,
        cuda="eatss_atomic_add(&{target}, {value});",
        ...,
    )

Points are spread over blocks, warps, lanes and slots by affine maps of their coordinates:
``origin + thread + 4 * slot`` gives a thread of four every fourth point of a tile;
``origin + 4 * thread + slot`` gives it four neighbours. An instruction whose operands many lanes
hold together says likewise which lane has which element, and in which of its slots.

An instruction runs as many instances as its counters have values. Each of them computes ``value``
of what the operands hold before, and stores or adds it to ``target``. Both are Python, so tests run
what an instruction means and compare it with the text that a CPU gets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal, TypeAlias

from eatss.analysis.variant import TensorFormat
from eatss.base.frozen import Names, Numbers, fixed, frozen, their_names
from eatss.base.targets import CUDA
from eatss.polyhedral.expression import ElementType
from eatss.program.expression import OwnSizes, SizePairs, Sizes
from eatss.program.linear import Linear

Role: TypeAlias = Literal["in", "out", "inout"]


FLOATING = (ElementType.FLOAT, ElementType.DOUBLE)

WORD = ElementType.UINT32
"""What registers are that hold several elements of a narrower type."""


@fixed
class Coordinate:
    """A coordinate that counts from 0 to below ``extent``: a thread, a lane, a slot of one."""

    name: str
    extent: int


def places(coordinates: Sequence[Coordinate]) -> Iterator[OwnSizes]:
    """Yield the values of coordinates, by name, the last one fastest."""
    for values in product(*(range(one.extent) for one in coordinates)):
        yield dict(zip(their_names(coordinates), values, strict=True))


@frozen
class Distribution:
    """Which point is where: ``points`` are affine functions of coordinates, one a dimension.

    Functions may mention other names too, which are the same wherever one is (an origin).
    ``flips`` names a coordinate of two that counts backwards in the second half of another one.
    """

    coordinates: tuple[Coordinate, ...]
    points: tuple[Linear, ...]
    flips: tuple[str, Coordinate] | None = None

    def stride(self, name: str, dimension: int = 0) -> int:
        """Return by how much a point moves along a dimension where a coordinate grows by one."""
        return self.points[dimension].terms.get(name, 0)

    def at(self, values: Sizes) -> Numbers:
        """Return the point at coordinates; ``KeyError`` for a name without a value."""
        if self.flips is not None:
            name, other = self.flips
            values = {**values, name: values[name] ^ (2 * values[other.name] // other.extent)}
        return tuple(
            function.constant + sum(c * values[name] for name, c in function.terms.items())
            for function in self.points
        )


ALONE = Distribution(coordinates=(), points=())
"""One value, which a thread has to itself."""

ONE_A_LANE = Distribution(
    coordinates=(Coordinate("lane", CUDA.lanes),), points=(Linear({"lane": 1}, 0),)
)
"""An element on each lane of a warp."""


@frozen
class Operand:
    """A value, or a tile of values, that an instruction reads (``in``), writes (``out``) or both.

    ``held`` says which thread has which of its elements. Of elements in memory an instruction may
    be told the first of each ``beside`` that follow each other. ``element_type`` is theirs, where
    it is not that of the target: a factor is then a value of this type, converted. Registers may be
    words, each of which holds as many slots that follow each other.
    """

    name: str
    role: Role = "in"
    held: Distribution = ALONE
    beside: int = 1
    element_type: ElementType | None = None

    def slots(self, lanes: Sequence[Coordinate]) -> tuple[Coordinate, ...]:
        """Return the coordinates that count the elements of one lane, the last one fastest."""
        names = {lane.name for lane in lanes}
        return tuple(one for one in self.held.coordinates if one.name not in names)

    def slots_in(self, element_type: ElementType) -> int:
        """Return how many slots an element of a type is: a word may hold several."""
        if self.element_type is None or element_type is not WORD:
            return 1
        return WORD.size_bytes // self.element_type.size_bytes


@frozen
class Capability:
    """The least compute capability for an instruction on values of a type, ``None`` for any."""

    least: tuple[int, int]
    element_type: ElementType | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rounding:
    """How far the sums of an instruction may be from exact ones.

    Each of its products may be wrong by ``product_error`` of itself, because factors are rounded
    first. A sum of n of them has at most ``sum_roundings`` × n roundings of its type, each of half
    the distance of 1 to the next number, of all that was added up. 1 is what C's operations have.
    ``least`` is how far a rounded factor may be from what it was where that is subnormal.
    """

    product_error: float = 0.0
    sum_roundings: float = 1.0
    least: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Multiplying:
    """What tensor cores do for an instruction.

    ``format`` is what they multiply, which says whose rate and price it has. They do ``products``
    for each one of the instruction. Its factors are loaded as they are; then each takes
    ``conversions`` instructions and is ``parts`` registers of that format.
    """

    format: TensorFormat = "fp64"
    products: int = 1
    parts: int = 1
    conversions: int = 0


@dataclass(frozen=True, kw_only=True)
class Instruction:
    """One row of the table of instructions.

    Attributes:
        name: what it is called in a recipe.
        what: what it is called in messages, ``"atomicAdd"``.
        operands: what it works on; ``target`` names one that it writes.
        immediates: integers that are part of the instruction.
        instances: the counters of its instances and their extents, ``(("lane", 32),)``.
        target: the element that an instance writes, ``"d"`` or ``"d[i, j]"``.
        value: what is stored there, as an expression of operands, counters and immediates.
        adds: whether values are added to the target instead.
        element_types: the types it is for.
        exact: whether results equal those of C's operations in every bit.
        rounding: how far results may be from exact ones; eatss chooses none that rounds factors by
            itself.
        multiplying: what tensor cores do for it.
        atomic: whether other threads may do the same to the same element at the time.
        together: whether all lanes of a warp run it together.
        lanes: the coordinates of a lane in operands that many lanes hold, the last one fastest.
        cuda: a statement of CUDA; ``{name}`` stands for an operand or immediate.
        helpers: what ``definitions`` and ``cuda`` use that other instructions use as well.
        definitions: what ``cuda`` uses, for the top of the file where a GPU compiles it.
        cpu_definitions: the same for a CPU; empty where the header that verification brings has it.
        capabilities: what a card needs for it.
    """

    name: str
    what: str
    operands: tuple[Operand, ...]
    target: str
    value: str
    cuda: str
    adds: bool = False
    immediates: Names = ()
    instances: SizePairs = ()
    element_types: tuple[ElementType, ...] = FLOATING
    exact: bool = False
    rounding: Rounding = Rounding()
    multiplying: Multiplying = Multiplying()
    atomic: bool = False
    together: bool = False
    lanes: tuple[Coordinate, ...] = ()
    helpers: Names = ()
    definitions: str = ""
    cpu_definitions: str = ""
    capabilities: tuple[Capability, ...] = ()

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def factor_types(self) -> dict[str, ElementType]:
        """The types of the operands that it multiplies, where they are not that of the target."""
        return {
            one.name: one.element_type
            for one in self.operands
            if one.role == "in" and one.element_type is not None
        }

    @property
    def written(self) -> Names:
        """The operands that it writes."""
        return tuple(one.name for one in self.operands if one.role != "in")

    @property
    def read(self) -> Names:
        """The operands that it reads."""
        return tuple(one.name for one in self.operands if one.role != "out")

    def least(self, element_type: ElementType) -> Capability:
        """Return what a card needs to run it on values of a type."""
        fitting = [c for c in self.capabilities if c.element_type in (None, element_type)]
        return max(fitting, key=lambda one: one.least, default=Capability(least=(0, 0)))
