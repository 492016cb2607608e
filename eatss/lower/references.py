"""What a kernel is made of besides its piece, and where its references live: registers, memory."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from math import prod
from typing import Literal

import islpy as isl

from eatss.base.frozen import Names, distinct, frozen, their_names
from eatss.base.targets import Axis
from eatss.lower.arrays import Arrays, DeviceArray, affine_text, subscripts_of, value_of
from eatss.lower.index_range import Indices
from eatss.lower.instructions import ATOMICS, COMBINES, IMPROVEMENTS, PEEK
from eatss.lower.kernel.nodes import (
    Buffer,
    Copy,
    Declare,
    Element,
    Init,
    Intrinsic,
    Kernel,
)
from eatss.lower.mapping import MappedLoop, Mapping
from eatss.lower.pieces import NameTable, Piece
from eatss.lower.planning import Unit
from eatss.lower.promotion import SharedTile
from eatss.lower.storage import Registers
from eatss.lower.units import combiner_in
from eatss.lower.whole_tiles import Places
from eatss.polyhedral.expression import Combiner
from eatss.polyhedral.isl_names import dim_names, output_affs
from eatss.polyhedral.scop import Place, Scop
from eatss.program import Constant, IntExpr, Name
from eatss.program.expression import Environment, Grid, IntExprs, Lengths, SizePairs


@frozen
class KernelContext:
    """What a kernel is made of, besides its piece.

    ``parameters`` are the integer parameters that are passed. Loops may fill tiles ahead of
    themselves where ``copies_ahead`` says so, or send all copies of a turn at once where
    ``copies_together`` does. With ``strict_fp`` zeros are added to no sum.
    """

    scop: Scop
    arrays: Arrays
    names: NameTable
    index_bits: Literal[32, 64]
    line_info: bool
    parameters: Names
    shared_limit_bytes: int
    static_shared_bytes: int
    copies_ahead: bool = False
    copies_together: bool = False
    strict_fp: bool = False

    @property
    def macros(self) -> Names:
        """The sizes that kernels know without being passed them."""
        return tuple(name for name in self.scop.sizes if name not in self.parameters)


@frozen
class KernelInput:
    """What the builders of one kernel share: its unit, the region, and indices that it prints."""

    unit: Unit
    context: KernelContext
    index: Indices

    @property
    def piece(self) -> Piece:
        """The statements."""
        return self.unit.piece

    @property
    def mapping(self) -> Mapping:
        """Where its loops go."""
        return self.unit.mapping

    @property
    def names(self) -> NameTable:
        """Gives out names that are free."""
        return self.unit.names


@frozen
class BuiltKernel:
    """A kernel, and what launching it takes.

    ``grid`` are the numbers of blocks along x, y, z; ``launch`` are the sizes and host counters
    for which there is anything to run. ``parameter_tiles`` are for sizes that bound tiled loops the
    largest tile. ``most_blocks`` is what must hold of the sizes for the grid to launch, ``None``
    for nothing. ``index`` has what the kernel and its grid compute of indices. ``origins``
    are where tiles of blocks along x begin, by the loops of the mapping. ``grid_strides`` are the
    axes along which a block may take several tiles; ``tiles`` are those along x, y and z.
    ``staged`` are the tiles in shared memory. Blocks go along the loop that is ``slowest`` in the
    source last. ``piece`` has its statements. ``lengths`` are how long tiled loops are, of those
    that are no size long.
    """

    piece: Piece
    kernel: Kernel
    grid: Grid
    launch: isl.Set
    parameter_tiles: SizePairs
    most_blocks: IntExpr | None
    notes: Names
    index: Indices
    origins: IntExprs = ()
    grid_strides: tuple[Axis, ...] = ()
    tiles: Grid = (Constant(1), Constant(1), Constant(1))
    staged: tuple[SharedTile, ...] = ()
    slowest: str | None = None
    lengths: Lengths = ()


@frozen
class RegisterArray:
    """Registers of a thread: an element for each of its points.

    ``point`` is the place of the point that a thread is at. ``combiner`` is what makes one value of
    the parts that several threads have, where they may. Of extrema that are compared and exchanged
    a thread has ``seen`` before what memory has.
    """

    item: Registers
    buffer: Buffer
    array: DeviceArray
    point: IntExprs
    combiner: Combiner | None
    seen: Buffer | None = None

    @property
    def element(self) -> Element:
        """The register of the point that a thread is at."""
        return self.buffer.at(*self.point)


class References:
    """Knows where every reference of a kernel lives."""

    def __init__(self, own: KernelInput) -> None:
        self._piece, self._mapping = own.piece, own.mapping
        self._arrays, self._index = own.context.arrays, own.index
        self._registers: list[RegisterArray] = []
        self._at: dict[Place, RegisterArray | SharedTile] = {}
        self._escaping: dict[str, isl.Set] = {}
        self.notes: list[str] = []
        self.combine_atomically: bool | None = None
        storage = own.unit.storage
        for item in storage.registers:
            self._declare(item, own.names, "registers")
        for item in storage.scalars:
            self._declare(item, own.names, "a scalar of its own")

    def _declare(self, item: Registers, names: NameTable, what: str) -> None:
        array = self._arrays[item.array]
        mapping = self._mapping
        several = [m for m in mapping.loops_of(item.along, item.across) if m.points > 1]
        combiner = mapping.scan or combiner_in(self._piece, {name for name, _ in item.places})

        def own(suffix: str) -> Buffer:
            name, kind = names.fresh(f"{array.name}_{suffix}"), array.array.element_type
            return Buffer.of("register", name, kind, *(m.points for m in several))

        improves = combiner is not None and combiner.name in IMPROVEMENTS
        compared = item.across and improves and array.array.element_type.is_floating
        registers = RegisterArray(
            item=item,
            buffer=own("r"),
            array=array,
            point=tuple(Name(m.point) for m in several),
            combiner=combiner,
            seen=own("seen") if compared else None,
        )
        self._registers.append(registers)
        self._at |= dict.fromkeys(item.places, registers)
        self._escaping |= dict(item.escaping)
        points = prod(m.points for m in several)
        self.notes += [f"{array.name}: {what}, {points} a thread"] if item.places else []

    @property
    def registers(self) -> dict[str, str]:
        """Return what registers are called, by their arrays."""
        return {one.array.array.name: one.buffer.name for one in self._registers}

    @property
    def own_names(self) -> frozenset[str]:
        """Return the names of arrays and of what is kept in registers."""
        arrays = frozenset(their_names(self._arrays.values()))
        return arrays.union(registers.buffer.name for registers in self._registers)

    def share(self, tile: SharedTile, places: Sequence[Place]) -> None:
        """Let references live in a shared tile."""
        for place in places:
            self._at[place] = tile
        sizes = " x ".join(map(str, tile.extents))
        how = ", transposed" if tile.transposed else ""
        self.notes.append(f"{tile.candidate.text}: shared memory, {sizes} elements{how}")

    def staged(self) -> dict[Place, SharedTile]:
        """Return the references that are staged, with their tiles."""
        return {p: home for p, home in self._at.items() if isinstance(home, SharedTile)}

    def places(self, staged: Collection[Place]) -> Places:
        """Return where references live if some are staged."""
        held = frozenset(p for p, home in self._at.items() if isinstance(home, RegisterArray))
        passed = frozenset(
            (statement.name, number)
            for statement in self._piece.statements
            for number, access in enumerate(statement.accesses)
            if self._arrays[access.array].buffer.space == "argument"
        )
        return Places(staged=staged, held=held, passed=passed, types=self._piece.scop.types)

    def declarations(self) -> tuple[Declare, ...]:
        """Return the declarations of the registers."""
        return tuple(Declare(buffer=r.buffer) for r in self._registers)

    def seen(self, across: Names) -> tuple[Declare, ...]:
        """Return the declarations of what is seen of memory before parts are put there."""
        own = (one.seen for one in self._registers if one.item.across == across)
        return tuple(Declare(buffer=one) for one in own if one is not None)

    def transfers(
        self, kind: Literal["load", "store", "peek"], across: Names = ()
    ) -> Iterator[tuple[isl.Set, tuple[MappedLoop, ...]]]:
        """Yield the domains of transfers into registers, or out of them, with their loops.

        These are bound to parameters. They are of what points along loops ``across`` have parts of,
        of all others where there are none. To ``peek`` is to load what a store may leave as it is.
        """
        for number, registers in enumerate(self._registers):
            if across != registers.item.across:
                continue
            name = f"{kind}_{number}"
            points = registers.item.load if kind == "load" else registers.item.store
            if not points.is_empty() and (kind != "peek" or registers.seen is not None):
                own = self._mapping.loops_of(registers.item.along, registers.item.across)
                loops = their_names(own)
                dims = [f"{loop}'" for loop in loops]  # which no C can name
                equal = " and ".join(f"{d} = {loop}" for d, loop in zip(dims, loops, strict=True))
                text = f"[{', '.join(loops)}] -> {{ {name}[{', '.join(dims)}] : {equal} }}"
                bound = isl.Set.read_from_str(points.get_ctx(), text)
                yield points.set_tuple_name(name).intersect(bound), own

    def transfer(self, name: str, values: Sequence[IntExpr]) -> Copy | Intrinsic:
        """Return what a transfer does at a point."""
        kind, number = name.split("_")
        registers = self._registers[int(number)]
        relation, own = registers.item.relation, registers.element
        env = dict(zip(dim_names(relation.domain()), values, strict=True))
        subscripts = [affine_text(function, env) for function in output_affs(relation)]
        element = self._element(registers.array, subscripts)
        if kind == "load":
            return Copy(target=own, source=element)
        seen = None if registers.seen is None else registers.seen.at(*registers.point)
        if seen is not None and kind == "peek":
            return Intrinsic.of(PEEK, seen, element)
        if seen is not None and registers.combiner is not None:
            row = IMPROVEMENTS[registers.combiner.name]
            operands = zip(("target", "value", "seen"), (element, own, seen), strict=True)
            return Intrinsic(instruction=row, operands=tuple((k, (v,)) for k, v in operands))
        atomically = True if registers.item.across else self.combine_atomically
        if atomically is None:
            return Copy(target=element, source=own)
        assert registers.combiner is not None
        rows = ATOMICS if atomically else COMBINES
        return Intrinsic.of(rows[registers.combiner.name], element, own)

    def neutral(self, across: Names = ()) -> tuple[Init, ...]:
        """Return assignments to registers that change nothing of what is combined with them."""
        return tuple(
            Init(target=own, value=combiner.neutral(own.buffer.element_type))
            for own, combiner in self.combined(across)
        )

    def combined(self, across: Names = ()) -> Iterator[tuple[Element, Combiner]]:
        """Yield the registers of the point that a thread is at, and what combines their parts.

        Those of which points along loops ``across`` have parts, others where there are none.
        """
        for registers in self._registers:
            if registers.item.across == across:
                assert registers.combiner is not None
                yield registers.element, registers.combiner

    @property
    def across(self) -> tuple[Names, ...]:
        """The loops along which points have parts of elements, each choice once."""
        return distinct(one.item.across for one in self._registers if one.item.across)

    def is_transfer(self, name: str) -> bool:
        """Tell whether an instance is a transfer of registers."""
        return name.startswith(("load_", "store_", "peek_"))

    def element(self, place: Place, values: Environment) -> Element:
        """Return what a reference is where the counters have ``values``."""
        home = self._at.get(place)
        if isinstance(home, RegisterArray):
            return home.element
        access = self._piece.access(place)
        subscripts = subscripts_of(access, values)
        if isinstance(home, SharedTile):
            places = tuple(
                self._index(subscript - value_of(offset, offset.domain()))
                for subscript, offset in zip(subscripts, home.offsets, strict=True)
            )
            return home.buffer.at(*home.in_tile(places))
        return self._element(self._arrays[access.array], subscripts)

    def _element(self, array: DeviceArray, subscripts: Sequence[IntExpr]) -> Element:
        """Return an element; that its place fits an index is asked of the sizes."""
        self._index.note(*subscripts)
        return array.element(subscripts)

    def write_through(self, statement: str) -> tuple[isl.Set, Element] | None:
        """Return the instances of a scalar's write that others see, and the scalar's cell."""
        escape = self._escaping.get(statement)
        if escape is None:
            return None
        array = self._piece.statement(statement).write.array
        return escape, self._arrays[array].element(())
