"""What a machine does at once: instructions as data, with what they compute.

    Instruction(
        name="fma",
        operands=(Operand(name="d", role="inout"), Operand(name="a"), Operand(name="b")),
        target="d",
        value="a * b",
        adds=True,
        cuda="{d} = __fma_rn({a}, {b}, {d});",
        ...,
    )

Points are spread over blocks, warps, lanes and slots by affine maps of their coordinates:
``origin + thread + 4 * slot`` gives a thread of four every fourth point of a tile;
``origin + 4 * thread + slot`` gives it four neighbours. An instruction whose operands many lanes
hold together says likewise which lane has which element, and in which of its slots.

An instruction runs a box of instances. Each of them computes ``value`` of what the operands hold
before, and stores or adds it to ``target``. So what an instruction means can be run without a card
(:func:`run`), and compared with the text that a CPU gets.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from operator import add, and_, eq, floordiv, ge, gt, le, lt, mod, mul, or_, sub, truediv, xor
from typing import Any, Literal, TypeAlias

from eatss.analysis.variant import TensorFormat
from eatss.base.frozen import frozen
from eatss.base.targets import CUDA
from eatss.polyhedral.expression import ElementType
from eatss.program.linear import Linear

Role: TypeAlias = Literal["in", "out", "inout"]


FLOATING = (ElementType.FLOAT, ElementType.DOUBLE)

WORD = ElementType.UINT32
"""What registers are that hold several elements of a narrower type."""

Values: TypeAlias = dict[tuple[int, ...], float]
"""What an operand holds, by the index of the element."""

_OPERATORS: Mapping[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: add, ast.Sub: sub, ast.Mult: mul, ast.Div: truediv, ast.Mod: mod,
    ast.FloorDiv: floordiv, ast.Lt: lt, ast.LtE: le, ast.Gt: gt, ast.GtE: ge, ast.Eq: eq,
    ast.BitAnd: and_, ast.BitOr: or_, ast.BitXor: xor,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Coordinate:
    """A coordinate that counts from 0 to below ``extent``: a thread, a lane, a slot of one."""

    name: str
    extent: int


def places(coordinates: Sequence[Coordinate]) -> Iterator[dict[str, int]]:
    """Yield the values of coordinates, by name, the last one fastest."""
    for values in product(*(range(one.extent) for one in coordinates)):
        yield dict(zip((one.name for one in coordinates), values, strict=True))


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

    def at(self, values: Mapping[str, int]) -> tuple[int, ...]:
        """Return the point at coordinates; ``KeyError`` for a name without a value."""
        if self.flips is not None:
            name, other = self.flips
            values = {**values, name: values[name] ^ (2 * values[other.name] // other.extent)}
        return tuple(
            function.constant + sum(c * values[name] for name, c in function.terms.items())
            for function in self.points
        )

    def everywhere(self, others: Mapping[str, int] | None = None) -> Iterator[tuple[int, ...]]:
        """Yield the point at each coordinates, the last coordinate fastest.

        Args:
            others: values of the names that are no coordinates.
        """
        for values in places(self.coordinates):
            yield self.at({**(others or {}), **values})


ALONE = Distribution(coordinates=(), points=())
"""One value, which a thread has to itself."""

ONE_A_LANE = Distribution(
    coordinates=(Coordinate("lane", CUDA.lanes),), points=(Linear({"lane": 1}, 0),)
)
"""An element on each lane of a warp."""


@frozen
class Operand:
    """A value, or a box of values, that an instruction reads (``in``), writes (``out``) or both.

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
    immediates: tuple[str, ...] = ()
    instances: tuple[tuple[str, int], ...] = ()
    element_types: tuple[ElementType, ...] = FLOATING
    exact: bool = False
    rounding: Rounding = Rounding()
    multiplying: Multiplying = Multiplying()
    atomic: bool = False
    together: bool = False
    lanes: tuple[Coordinate, ...] = ()
    helpers: tuple[str, ...] = ()
    definitions: str = ""
    cpu_definitions: str = ""
    capabilities: tuple[Capability, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what does not go together.

        Raises:
            ValueError: the target is no operand that is written, the value mentions an unknown
                name, or an instance touches an element that no thread holds.
        """
        name, _ = self._place(self._target)
        if name not in self.written:
            raise ValueError(f"{self.name}: its target {self.target} is no operand that it writes")
        known = {one.name for one in self.operands} | {n for n, _ in self.instances}
        mentioned = {n.id for n in ast.walk(self.expression) if isinstance(n, ast.Name)}
        for unknown in sorted(mentioned - known - set(self.immediates)):
            raise ValueError(f"{self.name}: its value mentions {unknown}, which is no operand")
        for operand in self.operands:
            if operand.name == name and not self._holds(operand):
                raise ValueError(f"{self.name}: no thread holds some element of {name}")
        names = [*(one.name for one in self.operands), *self.immediates]
        try:
            self.cuda.format(**dict.fromkeys(names, ""))
        except (KeyError, IndexError, ValueError) as error:
            raise ValueError(
                f"{self.name}: its text has {error}, which is no operand; write {{{{ for a brace"
            ) from None

    def __hash__(self) -> int:
        return hash(self.name)

    @cached_property
    def expression(self) -> ast.expr:
        """The value, parsed."""
        return ast.parse(self.value, mode="eval").body

    @cached_property
    def _target(self) -> ast.expr:
        return ast.parse(self.target, mode="eval").body

    @property
    def factor_types(self) -> dict[str, ElementType]:
        """The types of the operands that it multiplies, where they are not that of the target."""
        return {
            one.name: one.element_type
            for one in self.operands
            if one.role == "in" and one.element_type is not None
        }

    @property
    def written(self) -> tuple[str, ...]:
        """The operands that it writes."""
        return tuple(one.name for one in self.operands if one.role != "in")

    @property
    def read(self) -> tuple[str, ...]:
        """The operands that it reads."""
        return tuple(one.name for one in self.operands if one.role != "out")

    def least(self, element_type: ElementType) -> Capability:
        """Return what a card needs to run it on values of a type."""
        fitting = [c for c in self.capabilities if c.element_type in (None, element_type)]
        return max(fitting, key=lambda one: one.least, default=Capability(least=(0, 0)))

    def counters(self) -> Iterator[dict[str, int]]:
        """Yield the counters of each instance."""
        names = [name for name, _ in self.instances]
        for values in product(*(range(extent) for _, extent in self.instances)):
            yield dict(zip(names, values, strict=True))

    def _holds(self, operand: Operand) -> bool:
        """Tell whether threads hold what instances write of an operand."""
        held = set(operand.held.everywhere())
        return all(_place_of(self._target, values)[1] in held for values in self.counters())

    @staticmethod
    def _place(node: ast.expr) -> tuple[str, ast.expr | None]:
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
            return node.value.id, node.slice
        return (node.id if isinstance(node, ast.Name) else ""), None


def run(
    instruction: Instruction,
    operands: Mapping[str, Values],
    immediates: Mapping[str, int] | None = None,
) -> dict[str, Values]:
    """Return what the operands hold after an instruction, by its meaning alone.

    Args:
        instruction: the instruction.
        operands: what they hold before; that of a single value has the index ``()``.
        immediates: its integers.
    """
    after = {name: dict(values) for name, values in operands.items()}
    target = ast.parse(instruction.target, mode="eval").body
    for counters in instruction.counters():
        names = {**(immediates or {}), **counters}
        name, index = _place_of(target, names)
        value = _value(instruction.expression, names, operands)
        after[name][index] = after[name][index] + value if instruction.adds else value
    return after


def _place_of(node: ast.expr, names: Mapping[str, int]) -> tuple[str, tuple[int, ...]]:
    """Return the operand and the index that text like ``d[i, j]`` means."""
    if isinstance(node, ast.Name):
        return node.id, ()
    assert isinstance(node, ast.Subscript)
    assert isinstance(node.value, ast.Name)
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    return node.value.id, tuple(int(_value(part, names, {})) for part in parts)


def _value(node: ast.expr, names: Mapping[str, int], operands: Mapping[str, Values]) -> float:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return node.value
    if isinstance(node, ast.Name) and node.id in names:
        return names[node.id]
    if isinstance(node, ast.Name | ast.Subscript):
        name, index = _place_of(node, names)
        return operands[name][index]
    if isinstance(node, ast.BinOp):
        left, right = (_value(side, names, operands) for side in (node.left, node.right))
        return _apply(node.op, left, right)
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        left, right = (_value(s, names, operands) for s in (node.left, node.comparators[0]))
        return _apply(node.ops[0], left, right)
    if isinstance(node, ast.IfExp):
        chosen = node.body if _value(node.test, names, operands) else node.orelse
        return _value(chosen, names, operands)
    raise ValueError(f"an instruction's value cannot have {ast.unparse(node)}")


def _apply(operator: ast.AST, left: float, right: float) -> float:
    found: float = _OPERATORS[type(operator)](left, right)
    return found
