"""The text of one CUDA kernel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Mapping as Dictionary
from contextlib import ExitStack

import islpy as isl

from eatss.analysis.mapping import AXES, MAX_BLOCKS_X, MAX_BLOCKS_YZ, Axis
from eatss.analysis.structure import MOST_POINTS
from eatss.codegen.assumptions import within
from eatss.codegen.bounds import TileRange, full_tiles, guard, tile_range, union_of
from eatss.codegen.checks import check_ranges
from eatss.codegen.coverage import check_coverage_of
from eatss.codegen.digits import digits
from eatss.codegen.index_range import IndexText
from eatss.codegen.isl_text import FALSE, TRUE, minimum, multiplied, start_plus
from eatss.codegen.kernel_context import KernelContext, KernelText
from eatss.codegen.kernel_frame import framed, kernel_arguments, without_unused
from eatss.codegen.linear import strict
from eatss.codegen.lines import Lines
from eatss.codegen.mapping import MappedLoop, Mapping, SerialTile
from eatss.codegen.names import NameTable
from eatss.codegen.nodes import Node, names_in
from eatss.codegen.parts import Part
from eatss.codegen.pieces import Piece
from eatss.codegen.references import References
from eatss.codegen.staging import SharedTile
from eatss.codegen.staging_text import StagingWriter
from eatss.codegen.storage import Candidate, StoragePlan
from eatss.codegen.thread_code import Phase, subtree_of, thread_code, thread_range, tile_set
from eatss.codegen.thread_text import ThreadPrinter, first_point
from eatss.isl_names import (
    coalesced,
    without_parameters,
)
from eatss.polyhedral.bounded import at_most
from eatss.program import Apply, Constant, IntExpr, Name, Operator, c_text

_PROJECTION = 50_000
"""What isl may do to find exactly the values of one loop."""


class KernelWriter:
    """Writes one kernel: tiles to blocks, parts one after another, phases of a thread."""

    def __init__(
        self,
        name: str,
        piece: Piece,
        mapping: Mapping,
        parts: Sequence[Part],
        storage: StoragePlan,
        staged: frozenset[Candidate],
        context: KernelContext,
        names: NameTable,
    ) -> None:
        self._name = name
        self._piece = piece
        self._mapping = mapping
        self._parts = parts
        self._context = context
        self._storage = storage
        self._isl = context.scop.isl_context
        self._index = IndexText(context.index_type)
        self._index.note_mapping(mapping)
        self._names = names
        self._bound = tuple(loop.name for loop in piece.band)
        self._references = References(
            piece=piece,
            storage=storage,
            mapping=mapping,
            arrays=context.arrays,
            names=self._names,
            index=self._index,
        )
        self._parameter_tiles: dict[str, int] = {}
        self._ranges: dict[str, TileRange] = {}  # by the name of the origin
        self._digits: dict[str, IntExpr] = {}  # of loops that share the blocks along x
        self._span = piece.statements[0].span
        self._lines = Lines(1)
        self._staging = StagingWriter(
            piece=piece,
            mapping=mapping,
            candidates=[c for c in storage.candidates if c in staged],
            references=self._references,
            arrays=context.arrays,
            lines=self._lines,
            names=self._names,
            index=self._index,
            limit_bytes=context.shared_limit_bytes,
        )
        self._printer = ThreadPrinter(
            lines=self._lines,
            references=self._references,
            piece=piece,
            names=self._names,
            file=context.file,
            index=self._index,
            line_info=context.line_info,
            unrolled=mapping.points <= MOST_POINTS,
            mapping=mapping,
        )

    def write(self) -> KernelText:
        """Return the kernel."""
        launch = self._launch_params()
        ranges, known = self._block_ranges(launch)
        self._body(ranges, known)
        shared_bytes = sum(-(-tile.shared_bytes // 8) * 8 for tile in self._staging.tiles)
        dynamic = shared_bytes > self._context.static_shared_bytes
        body = without_unused(self._lines.text())
        context = self._context
        counters = [(context.index_type, counter) for counter in self._piece.host_names]
        arguments = kernel_arguments(
            body, [*context.parameters, *counters], context.arrays, self._storage.read_only
        )
        return KernelText(
            name=self._name,
            text=framed(
                self._name,
                body,
                arguments,
                self._staging.tiles,
                self._mapping.threads,
                dynamic_shared=dynamic,
            ),
            grid=self._grid(ranges),
            launch=launch,
            arguments=tuple(argument.name for argument in arguments),
            shared_bytes=shared_bytes,
            dynamic_shared=dynamic,
            register_words=self._references.register_words,
            parameter_tiles=tuple(sorted(self._parameter_tiles.items())),
            most_blocks=self._most_blocks(launch),
            notes=(*self._sharing(), *self._references.notes, *self._staging.notes),
            index=self._index,
        )

    # What is known at each level ---------------------------------------------------------

    def _launch_params(self) -> isl.Set:
        """Return the sizes and host counters for which there is an instance."""
        params = union_of(
            [without_parameters(domain, self._bound).params() for domain in self._piece.placed]
        )
        return coalesced(params)

    def _block_ranges(self, launch: isl.Set) -> tuple[dict[str, TileRange], isl.Set]:
        known = launch
        ranges: dict[str, TileRange] = {}
        for loop in self._mapping.spread:
            others = [name for name in self._bound if name != loop.name]
            values = union_of(
                [without_parameters(domain, others).params() for domain in self._piece.placed]
            )
            ranges[loop.name] = tile_range(coalesced(values), loop, launch)
            self._note_tile(ranges[loop.name], loop)
            self._ranges[loop.origin] = ranges[loop.name]
            if loop is not self._mapping.split:
                known = known.intersect(ranges[loop.name].known)
        return ranges, coalesced(known)

    def _note_tile(self, tiles: TileRange, loop: MappedLoop | SerialTile) -> None:
        """Remember which sizes bound a tiled loop."""
        for name in (*names_in(tiles.last), *names_in(tiles.first)):
            if name in self._context.scop.parameters:
                known = self._parameter_tiles.get(name, 0)
                self._parameter_tiles[name] = max(known, loop.tile)

    def _grid(self, ranges: Dictionary[str, TileRange]) -> tuple[IntExpr, IntExpr, IntExpr]:
        grid: dict[Axis, IntExpr] = dict.fromkeys(AXES, Constant(1))
        for axis in AXES:
            for loop in self._mapping.blocks_along(axis):
                self._index.note(ranges[loop.name].count)
                grid[axis] = multiplied(grid[axis], ranges[loop.name].count)
            if axis != "x":  # the kernel strides over what exceeds the limit of a grid
                grid[axis] = minimum(grid[axis], MAX_BLOCKS_YZ)
        split = self._mapping.split
        if split is not None:
            grid[split.grid] = minimum(ranges[split.name].count, self._mapping.chunks)
        return grid["x"], grid["y"], grid["z"]

    def _most_blocks(self, launch: isl.Set) -> IntExpr | None:
        """Return the condition that blocks along x are not too many, where loops share them.

        A bound of one loop keeps the blocks of that loop within the limit; a product may pass it.
        Host loops take all their values at once.
        """
        sharing = self._mapping.blocks_along("x")
        if len(sharing) < 2:
            return None
        known = without_parameters(launch, self._piece.host_names)
        counts: list[IntExpr] = []
        for loop in sharing:
            others = [*self._piece.host_names, *(o for o in self._bound if o != loop.name)]
            values = union_of(
                [without_parameters(domain, others).params() for domain in self._piece.placed]
            )
            counts.append(tile_range(coalesced(values), loop, known).count)
        return within(counts, MAX_BLOCKS_X)

    # The body ----------------------------------------------------------------------------

    def _body(self, ranges: Dictionary[str, TileRange], known: isl.Set) -> None:
        lines, index = self._lines, self._index.c_type
        threads = self._threads()
        for loop in self._mapping.spread:
            if loop.threads > 1:
                lines.add(f"const {index} {loop.thread} = {c_text(threads[loop.name])};")
        lines.add(self._staging.declaration())
        self._number_blocks(ranges)
        with ExitStack() as stack:
            for loop in self._mapping.mapped:
                if loop.grid == "x":
                    start = self._start(loop, ranges)
                    lines.add(f"const {index} {loop.origin} = {start};")
                else:
                    stack.enter_context(lines.block(self._stride(loop, ranges)))
            self._single_points(self._mapping.mapped)
            for declaration in self._references.declarations():
                lines.add(declaration)
            if self._mapping.split is not None:
                self._split_sum(self._mapping.split, ranges, known)
                return
            for name, points in self._references.loads():
                self._transfer(name, points, known)
            for part in self._parts:
                self._part(part, known)
            for name, points in self._references.stores():
                self._transfer(name, points, known)

    def _sharing(self) -> Iterator[str]:
        """Say which loops share an axis."""
        for axis in AXES:
            if len(loops := self._mapping.blocks_along(axis)) > 1:
                yield f"{_listed(loops)} share the blocks along {axis}"
            if len(loops := self._mapping.threads_along(axis)) > 1:
                yield f"{_listed(loops)} share the threads along {axis}"

    def _threads(self) -> dict[str, IntExpr]:
        """Return each loop's coordinate of a thread; loops that share an axis take it apart."""
        found: dict[str, IntExpr] = {}
        for axis in AXES:
            loops = self._mapping.threads_along(axis)
            extents = [Constant(loop.threads) for loop in loops]
            places = digits(Name(f"threadIdx.{axis}"), extents, self._span)
            found.update(zip((loop.name for loop in loops), places, strict=True))
        return found

    def _number_blocks(self, ranges: Dictionary[str, TileRange]) -> None:
        """Declare the block's number along x where loops share it, and note each loop's digit."""
        loops = self._mapping.blocks_along("x")
        if len(loops) < 2:
            return
        index, number = self._index.c_type, self._names.fresh("block")
        self._lines.add(f"const {index} {number} = ({index})blockIdx.x;")
        counts = [ranges[loop.name].count for loop in loops]
        self._index.note(*counts)
        places = digits(Name(number), counts, self._span)
        self._digits.update(zip((loop.name for loop in loops), places, strict=True))

    def _start(self, loop: MappedLoop, ranges: Dictionary[str, TileRange]) -> str:
        digit = self._digits.get(loop.name)
        if digit is None:
            index = self._index.c_type
            digit = Name(f"({index})blockIdx.{loop.grid}")
        first = ranges[loop.name].first
        self._index.note(first)
        # the block's own share is within the values of the loop
        return start_plus(first, c_text(multiplied(Constant(loop.tile), digit)))

    def _stride(self, loop: MappedLoop, ranges: Dictionary[str, TileRange]) -> str:
        """Return the head of a loop over the tiles of a block."""
        index = self._index.c_type
        last = self._until(loop.origin, ranges[loop.name].last)
        step = f"{loop.tile} * ({index})gridDim.{loop.grid}"
        start = self._start(loop, ranges)
        return f"for ({index} {loop.origin} = {start}; {last}; {loop.origin} += {step})"

    def _until(self, counter: str, last: IntExpr) -> str:
        """Return the condition of a loop that runs to ``last``."""
        return self._index(strict(Apply(Operator.LE, (Name(counter), last))))

    def _single_points(self, loops: Sequence[MappedLoop]) -> None:
        """Declare the loops of which a thread has one point."""
        for loop in loops:
            if loop.points == 1 and (loop.threads > 1 or loop.tile > 1):
                value = self._index(first_point(loop).expression())
                self._lines.add(f"const {self._index.c_type} {loop.name} = {value};")

    def _split_sum(
        self, loop: MappedLoop, ranges: Dictionary[str, TileRange], known: isl.Set
    ) -> None:
        """Emit sums whose loop is spread over threads and blocks, and their combination."""
        self._at_points(self._references.zeros())
        with self._lines.block(self._stride(loop, ranges)):
            self._single_points([loop])
            inside = known.intersect(ranges[loop.name].known)
            for part in self._parts:
                self._part(part, coalesced(inside))
        self._at_points(
            [
                f"{name} += eatss_shuffle_down({name}, {loop.threads >> step}, {loop.threads});"
                for name in self._references.register_elements()
                for step in range(1, loop.threads.bit_length())
            ]
        )
        with ExitStack() as stack:
            if loop.threads > 1:
                stack.enter_context(self._lines.block(f"if ({loop.thread} == 0)"))
            self._references.combine_atomically = self._mapping.chunks > 1
            for name, points in self._references.stores():
                self._transfer(name, points, known)

    def _at_points(self, texts: Sequence[str]) -> None:
        """Emit lines for each of the thread's points, inside the domain or not."""
        if not texts:
            return
        with ExitStack() as stack:
            for loop in self._mapping.mapped:
                if loop.points > 1:
                    self._lines.add("#pragma unroll")
                    head = (
                        f"for (int {loop.point} = 0; {loop.point} < {loop.points}; ++{loop.point})"
                    )
                    stack.enter_context(self._lines.block(head))
            self._lines.add(*texts)

    def _transfer(self, name: str, points: isl.Set, known: isl.Set) -> None:
        """Emit the loads or stores of registers at ``points``."""
        instance = self._references.transfer_instance(name, points)
        phase = Phase(
            instances=(instance,),
            bound=self._bound,
            mapped=self._mapping.mapped,
            serial=(),
            below=None,
        )
        self._phase(phase, known, separate=False)

    def _part(self, part: Part, known: isl.Set) -> None:
        """Emit the statements of a part, the serial tiles around them."""
        serial = tuple(tile for tile in self._mapping.serial if tile.name in part.serial)
        instances = tuple(self._piece.domain_of(name) for name in part.statements)
        tile = tile_set(self._isl, self._mapping.spread)
        inside = coalesced(union_of([i.params().intersect(tile) for i in instances]))
        staged = self._staging.stage(part.statements, serial)
        with ExitStack() as stack:
            if serial or staged:  # what runs in no loop has its own guards
                here = coalesced(without_parameters(inside, self._bound))
                condition = guard(here, known)
                if condition == FALSE:
                    return
                if condition != TRUE:
                    stack.enter_context(self._lines.block(f"if ({self._index(strict(condition))})"))
                    known = coalesced(known.intersect(here))
            self._level(part, serial, 0, inside, staged, known)

    def _level(
        self,
        part: Part,
        serial: tuple[SerialTile, ...],
        depth: int,
        inside: isl.Set,
        staged: Sequence[SharedTile],
        known: isl.Set,
    ) -> None:
        """Emit what stands inside ``depth`` serial loops of a part."""
        copies = [tile for tile in staged if tile.depth == depth]
        for tile in copies:
            self._staging.copy(tile, known)
        if copies:
            self._lines.add("__syncthreads();")
        if depth == len(serial):
            self._compute(part, serial, known)
        else:
            loop = serial[depth]
            values = inside.intersect(tile_set(self._isl, serial[:depth]))
            others = [name for name in self._bound if name != loop.name]
            tiles = tile_range(_projected(values, others), loop, known)
            self._note_tile(tiles, loop)
            self._ranges[loop.origin] = tiles
            head = (
                f"for ({self._index.c_type} {loop.origin} = {self._index(tiles.first)}; "
                f"{self._until(loop.origin, tiles.last)}; {loop.origin} += {loop.tile})"
            )
            with self._lines.block(head):
                self._level(part, serial, depth + 1, inside, staged, tiles.known)
        again = depth > 0 or any(loop.grid != "x" for loop in self._mapping.spread)
        if copies and again:
            self._lines.add("__syncthreads();")

    def _compute(self, part: Part, serial: tuple[SerialTile, ...], known: isl.Set) -> None:
        phase = Phase(
            instances=tuple(self._piece.domain_of(name) for name in part.statements),
            bound=self._bound,
            mapped=self._mapping.spread,
            serial=serial,
            below=subtree_of(self._piece, self._mapping),
        )
        looped = any(other.serial for other in self._parts) and self._mapping.split is None
        self._phase(phase, known, separate=bool(serial) or not looped)

    def _phase(self, phase: Phase, known: isl.Set, *, separate: bool) -> None:
        """Emit the code of a thread; where ``separate``, whole tiles apart from partial ones."""
        threads = thread_range(self._isl, self._mapping.spread)
        loops: list[MappedLoop | SerialTile] = [*phase.mapped, *phase.serial]
        names = {loop.name for loop in loops}
        others = [name for name in phase.bound if name not in names]
        instances = [without_parameters(instance, others) for instance in phase.instances]
        printed = [self._ranges[loop.origin] for loop in loops]
        check_ranges(instances, phase.bound, loops, printed, known, self._span)
        general = self._checked_code(phase, known.intersect(threads))
        if general is None:
            return
        full = full_tiles(instances, loops, known) if separate else None
        if full is None or full.is_equal(known):
            self._printer.emit(general)
            return
        fast = self._checked_code(phase, full.intersect(threads))
        condition = guard(full, known)
        if fast is None or fast == general:
            self._printer.emit(general)
            return
        with self._lines.block(f"if ({self._index(strict(condition))})", " else {"):
            self._printer.emit(fast)
        with self._lines.indented():
            self._printer.emit(general)
        self._lines.add("}")

    def _checked_code(self, phase: Phase, known: isl.Set) -> Node | None:
        """Generate the code of a thread, and check that it runs what it is to run as printed."""
        code = thread_code(phase, known)
        lowered = None if code is None else self._printer.lowered(code)
        meaning = None if lowered is None else self._printer.meaning(lowered)
        check_coverage_of(phase, meaning, known, self._span)
        return lowered


def _projected(values: isl.Set, others: Sequence[str]) -> isl.Set:
    """Return the values of a loop, the other parameters projected out.

    Where that takes isl too long, it is done for a convex set around them without integer
    divisions, which may add tiles in which nothing is to be done.
    """
    try:
        with at_most(values.get_ctx(), _PROJECTION):
            return coalesced(without_parameters(values, others))
    except isl.Error:
        hull = isl.Set.from_basic_set(values.simple_hull().remove_divs())
        return without_parameters(hull, others)


def _listed(loops: Sequence[MappedLoop]) -> str:
    """Return the names of loops in the source, in words."""
    *first, last = (loop.source_name for loop in loops)
    return f"{', '.join(first)} and {last}"
