"""``Scop`` × ``Recipe`` in, ``Program`` out: region by region, unit by unit."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from itertools import groupby
from typing import Any, Literal

import islpy as isl

from eatss.analysis.analyse import SlowLoop
from eatss.analysis.facts import KernelFacts
from eatss.analysis.layout import ClassBlock, FusedRows, GridSplitK, Layout, LoopBlock, TimeTile
from eatss.analysis.operations import work_of
from eatss.base.diagnostics import input_error
from eatss.base.frozen import Names, called, distinct, frozen, their_names
from eatss.base.targets import CUDA
from eatss.cards import GpuProfile
from eatss.cuda.host import (
    bounds_of_loops,
    entry_arguments,
    host_steps,
    names_of,
    outside_arrays,
    parameters_of,
    taken_names,
    temporaries_of,
)
from eatss.cuda.main_text import file_text
from eatss.lower.arrays import Arrays, TooManyCasesError, device_arrays
from eatss.lower.assumptions import (
    assumptions_of,
    fixed_sizes,
    given_sizes,
    implied_sizes,
    index_bits_of,
    stated_conditions,
    within,
)
from eatss.lower.checks import keep_order
from eatss.lower.class_blocks import ClassBuilder, Part, class_of
from eatss.lower.class_products import in_one_launch
from eatss.lower.index_range import (
    INT_MAX,
    Indices,
    Sizes,
    common_sizes,
    shared_tile,
    work_written_out,
    written_out,
)
from eatss.lower.instructions import ATOMICS, SHUFFLES
from eatss.lower.kernel.nodes import Buffer, Kernel, Let, LookBack, Streamed
from eatss.lower.kernel.uses import (
    computed_by,
    every_of,
    grid_strides,
    inexact_instructions,
    instruction_notes,
    instructions_in,
    rounded_sums,
)
from eatss.lower.kernel.uses import taken_names as taken_names_in
from eatss.lower.kernel_builder import KernelBuilder
from eatss.lower.launch_plans import (
    launch_plan_of,
    left_out,
    neighbours_of,
    planned_padding,
    planned_reads,
    promoted_candidates,
    unpromoted_notes,
    with_vectors,
)
from eatss.lower.loop_blocks import PhaseKernel, in_one_block
from eatss.lower.pieces import NameTable, Piece, pieces_of
from eatss.lower.planning import Unit, UnitPlanner
from eatss.lower.recipe import Recipe, recipe_to_dict
from eatss.lower.references import BuiltKernel, KernelContext
from eatss.lower.row_planning import RowPlanner
from eatss.lower.time_tiles import TiledSteps, chain_of, taken_in_turns, tiled_steps
from eatss.lower.transform.chain import transformed
from eatss.lower.transform.point_groups import InterleavedPoints, with_blocks_backwards
from eatss.lower.transform.stream_k import Stream
from eatss.lower.variants import stream_loop
from eatss.lower.wavefronts import no_block, pieces_in_tiles, scheduled_in_tiles, tile_launches
from eatss.plan.class_blocks import ClassProducts
from eatss.plan.numbers import nowhere
from eatss.plan.order import backwards
from eatss.polyhedral.dependences import (
    bounded_work,
    compute_dependences,
    default_operations,
    tried,
)
from eatss.polyhedral.expression import with_reciprocals
from eatss.polyhedral.kernel import ScheduledScop
from eatss.polyhedral.scop import Scop
from eatss.polyhedral.time_chains import TimeChain
from eatss.program import (
    Assumption,
    Constant,
    Entry,
    HostIf,
    HostLoop,
    HostStep,
    KernelCode,
    Launch,
    Name,
    Original,
    Program,
    Temporary,
    every_step,
    minimum,
    multiplied,
)
from eatss.program.expression import IntExprs, OwnSizes, SizePairs
from eatss.program.linear import strict
from eatss.program.plan import FAST_MATH, with_loop

KERNEL_OPERATIONS = 6_000_000
"""What isl may do for one kernel before it becomes one of a single thread, twice as much for sizes
of the user's: seidel-2d with a small tile in shared memory needs more than half of that."""


class WideIndicesError(Exception):
    """Indices of 32 bits do not hold what a region computes ``what`` for."""

    def __init__(self, scop: Scop, what: str) -> None:
        """Note the region and the sizes."""
        super().__init__(what)
        self.scop = scop
        self.what = what


@frozen
class RegionInput:
    """A region to generate code for: its schedule, and the facts its sizes were selected from.

    ``generic`` says that the schedule is over symbolic sizes; otherwise code made from it is for
    the sizes of the source only, and its entry insists on them. ``slow`` are the loops
    that kernels tell to be slow.
    """

    scheduled: ScheduledScop
    facts: tuple[KernelFacts, ...]
    generic: bool = True
    slow: tuple[SlowLoop, ...] = ()


@dataclass(slots=True)
class Made:
    """The kernels, each with its code, and the entries of regions; the largest tile of each size.

    So many ``numbers`` are taken by names of kernels, some of which may be in others now.
    """

    kernels: list[tuple[KernelCode, Kernel]] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    numbers: int = 0
    tiles: OwnSizes = field(default_factory=dict)


class RegionBuilder:
    """Builds the kernels and the entry of one region; the kernels are added to what is ``made``.

    Once it is built ``outside`` are arrays of callers.
    """

    def __init__(
        self,
        region: RegionInput,
        recipe: Recipe,
        profile: GpuProfile,
        bits: Literal[32, 64],
        made: Made,
    ) -> None:
        self._facts = region.facts
        self._recipe = recipe
        self._scheduled = region.scheduled
        decided = [recipe.wanted(one.name) for one in region.facts]
        self._time_tiles = [one.time_tile for one in decided if one.time_tile is not None]
        self._loop_blocks = [one.loop_block for one in decided if one.loop_block is not None]
        self._cuts = {
            called(block.kernels[0], region.facts).statements: block
            for block in self._loop_blocks
            if block.tiles
        }
        for statements, block in self._cuts.items():
            self._scheduled = scheduled_in_tiles(self._scheduled, statements, block)
        self._whole = region.scheduled
        self._generic = region.generic
        self._scop = region.scheduled.scop
        self._slow = region.slow
        self._profile = profile
        self._options = recipe.options
        self._index_bits = bits
        self._planner = UnitPlanner(
            self._scheduled, region.facts, recipe.wanted, profile, recipe.options
        )
        self._made, self._first = made, len(made.kernels)
        self._beside: list[Names] = []
        self._workspaces: list[Temporary] = []
        self._of_streams: list[Assumption] = []
        self._host = Indices(bits)
        self.outside: Names = ()

    def build(self, *, single: bool, macros: OwnSizes) -> Entry:
        """Build all kernels, and return the entry that launches them."""
        scop = self._scop
        names = names_of(scop, macros)
        arrays = device_arrays(scop, names)
        names.reserve(*taken_names(scop))
        self.outside = outside_arrays(scop, arrays)
        context = self._context(arrays, names, macros)
        pieces = pieces_of(self._scheduled, names)
        if self._cuts:
            pieces = pieces_in_tiles(pieces, self._whole, self._cuts)
        placed: list[BuiltKernel] = []
        at = 0
        while at < len(pieces):
            count, built = self._built(pieces, at, context)
            placed += built
            at += count
        if not (self._time_tiles or self._loop_blocks):
            self._to_and_fro(placed, [*context.parameters, *macros])
        # what the source implies of sizes is tested, not believed: callers may pass any
        anything = isl.Set.universe(scop.context.get_space())
        kernels = self._with_products(self._in_tile_launches(placed, context), context)
        steps = host_steps([*kernels], anything)
        for tile in self._time_tiles:
            steps = self._in_tiles(steps, tile, pieces, placed, context)
        launched = steps
        for block in self._loop_blocks:
            if not block.tiles:
                steps = self._in_one_block(steps, block, pieces, context)
        sizes = self._sizes(pieces, placed, (*launched, *steps), macros)
        made = self._made.kernels[self._first :]
        passed = {name for kernel, _ in made for name in kernel.arguments}
        used = {n: a for n, a in arrays.items() if a.name in passed or not a.array.is_local}
        function = scop.function
        launcher = f"{function}_cuda" if single else f"{function}_{scop.index}_cuda"
        return Entry(
            launcher=launcher,
            function=function,
            region=scop.index,
            whole_function=scop.whole_function,
            arguments=entry_arguments(scop, arrays, scop.written_arrays),
            temporaries=(*temporaries_of(scop, used), *self._workspaces),
            assumptions=(
                *(() if self._generic else fixed_sizes(macros)),
                *given_sizes(scop),
                *stated_conditions(scop),
                *assumptions_of(scop, used, sizes=sizes),
                *implied_sizes(self._scheduled.assumes),
                *self._launchable(placed),
                *self._of_streams,
            ),
            body=steps,
        )

    def _to_and_fro(self, placed: Sequence[BuiltKernel], sizes: Sequence[str]) -> None:
        """Let launches take their blocks from the last one where :func:`backwards` says so."""
        facts = {one.name: one for own in self._facts for one in own.work.statements}
        launches = (
            ([facts[own.name] for own in one.piece.statements if own.name in facts], one.slowest)
            for one in placed
        )
        turned = backwards(launches, self._profile.l2_bytes)
        turns = {one.kernel.name for one, back in zip(placed, turned, strict=True) if back}
        note = "blocks begin with the last one: L2 has what the launch before it left there"
        for at, (noted, code) in enumerate(self._made.kernels[self._first :], self._first):
            if code.name in turns:
                code_turned = with_blocks_backwards(code, taken_names_in(code, sizes))
                self._made.kernels[at] = replace(noted, notes=(*noted.notes, note)), code_turned

    @property
    def _name(self) -> str:
        """What the next kernel is called."""
        return f"{self._scop.function}_k{self._made.numbers}"

    def _built(
        self, pieces: Sequence[Piece], at: int, context: KernelContext
    ) -> tuple[int, list[BuiltKernel]]:
        """Return how many pieces from one on become kernels together, and these."""
        facts = pieces[at].facts_in(self._facts)
        decided = None if facts is None else self._recipe.wanted(facts.name)
        if decided is not None and (block := decided.class_block) is not None:
            return len(block.kernels), self._class(pieces, at, block, context)
        if decided is not None and (rows := decided.row_block) is not None:
            end = at + len(rows.kernels)
            step = their_names(pieces[at].host[-1:])
            beside = {name for one in (*pieces[:at], *pieces[end:]) for name in one.host_names}
            apart = rows.steps and not beside.isdisjoint(step)  # more is in the loop of its steps
            own = None if apart else self._in_one(pieces[at:end], rows, context)
            if own is not None:
                return len(rows.kernels), [own]
        return 1, self._piece(pieces[at], context)

    def _in_tiles(
        self,
        steps: tuple[HostStep, ...],
        tile: TimeTile,
        pieces: Sequence[Piece],
        placed: Sequence[BuiltKernel],
        context: KernelContext,
    ) -> tuple[HostStep, ...]:
        """Return steps of the host of which a loop takes several steps of time at once.

        What is left of them, fewer than two launches take, runs as it would without.
        """
        chain = chain_of(self._scheduled, tile, pieces, self._facts)
        piece = next(one for one in pieces if one.statements[0].name in chain.statements)
        (time,) = piece.host_names
        first = self._made.numbers
        names = (f"{self._scop.function}_k{first}", f"{self._scop.function}_k{first + 1}")

        def tiled(step: HostLoop) -> Iterable[HostStep]:
            dependences = self._scheduled.dependences
            made = tiled_steps(names, chain, tile, context, time, step.upper, dependences)
            like = next(one for one in placed if one.piece.statements[0] in piece.statements)
            self._note_tiles(made, chain, tile, piece, like)
            return taken_in_turns(step, made)

        found = with_loop(steps, time, tiled)
        assert self._made.numbers == first + len(names)  # the loop is there, once
        return found

    def _note_tiles(
        self, made: TiledSteps, chain: TimeChain, tile: TimeTile, piece: Piece, like: BuiltKernel
    ) -> None:
        """Note the kernels that take several steps, and their memory."""
        self._workspaces += made.twins
        statements = tuple(one.statement for one in chain.updates)
        piece = replace(piece, statements=statements)
        note = f"time tile: {tile.depth} steps of {chain.loop}, {tile.cells} cells in registers"
        for kernel in made.kernels:
            built = replace(
                like,
                kernel=kernel,
                piece=piece,
                parameter_tiles=made.parameter_tiles,
                grid_strides=(),
                notes=(),
            )
            self._note(built, piece, made.block, made.cells, (note,), True)

    def _in_one_block(
        self,
        steps: Sequence[HostStep],
        block: LoopBlock,
        pieces: Sequence[Piece],
        context: KernelContext,
    ) -> tuple[HostStep, ...]:
        """Return steps of the host of which one block runs a loop, where it can."""
        first = called(block.kernels[0], self._facts).statements
        (loop,) = {one.host_names[:1] for one in pieces if their_names(one.statements) == first}
        inside = [one.facts_in(self._facts) for one in pieces if one.host_names[:1] == loop]
        if not loop or tuple(one.name for one in inside if one is not None) != block.kernels:
            raise no_block(block, "the host runs no loop around these, or others in it")
        (counter,) = loop
        return with_loop(
            steps, counter, lambda step: (self._as_launch((step,), block, context) or step,)
        )

    def _in_tile_launches(
        self, placed: Sequence[BuiltKernel], context: KernelContext
    ) -> Iterator[BuiltKernel]:
        """Yield kernels, those of tiles as one that a loop over wavefronts launches."""
        anything = isl.Set.universe(self._scop.context.get_space())
        for cut, group in groupby(placed, lambda one: one.piece.cuts):
            own = list(group)
            if not cut:
                yield from own
                continue
            piece = own[0].piece
            for loop, tile, size in cut:
                for index in (self._host, *(one.index for one in own)):
                    index.define(tile, Name(loop) // size)
            wave = replace(piece.host[0], name=context.names.fresh("wave"))
            tiles = tile_launches(own, wave)
            block = self._cuts[their_names(piece.statements)]
            steps = host_steps(own, anything, len(cut))
            passed = (wave.name,)
            launch = self._as_launch(steps, block, context, passed, tiles.front, tiles.tests)
            if launch is None:
                raise no_block(block, "a step of a tile has other threads")
            self._host.note(*(one.value for one in tiles.front), *tiles.tests)
            self._host.define(wave.name, reduce(operator.add, (Name(tile) for _, tile, _ in cut)))
            for axis, limit in tiles.limits:
                most = CUDA.most_blocks[axis]
                message = f"{launch.kernel} would need more than {most} blocks along {axis}"
                self._of_streams.append(Assumption(condition=limit, message=message))
            kernel = replace(tiles.kernel.kernel, name=launch.kernel)
            yield replace(tiles.kernel, kernel=kernel)

    def _as_launch(
        self,
        steps: Sequence[HostStep],
        block: LoopBlock,
        context: KernelContext,
        passed: Names = (),
        front: Sequence[Let] = (),
        tests: IntExprs = (),
    ) -> Launch | None:
        """Return the launch of one block that runs loops, its kernel noted instead of others."""
        made = self._made
        inside = [one.kernel for one, _ in every_step(steps) if isinstance(one, Launch)]
        loop = next(one.counter for one, _ in every_step(steps) if isinstance(one, HostLoop))
        phases = {
            code.name: PhaseKernel(kernel=code, block=noted.block)
            for noted, code in made.kernels
            if code.name in inside
        }
        integers = (*context.parameters, *passed)
        kernel = in_one_block(
            steps,
            phases,
            block,
            integers,
            context.macros,
            context.shared_limit_bytes,
            front,
            tests,
        )
        if kernel is None:
            return None
        cells = " × ".join(map(str, block.tiles))
        how = f"blocks run tiles of {cells} values of" if block.tiles else "one block runs"
        self._note_as_one(
            kernel, [*phases], (block.threads, 1, 1), f"{how} the loop {loop}, in phases"
        )
        return Launch(kernel=kernel.name, grid=(Constant(1),) * 3)

    def _with_products(
        self, kernels: Iterable[BuiltKernel], context: KernelContext
    ) -> Iterator[BuiltKernel]:
        """Yield kernels, products of a class as one where one launch can have their blocks."""
        group_of = {name: group for group in self._beside for name in group}
        for group, together in groupby(kernels, lambda one: group_of.get(one.kernel.name)):
            own, one = list(together), None
            blocks = [
                noted.block for noted, code in self._made.kernels if code.name in (group or ())
            ]
            if group is not None and len({*blocks}) == 1:
                integers = (*context.parameters, *own[0].piece.host_names)
                one = in_one_launch(own, integers, context.macros, context.shared_limit_bytes)
            if group is None or one is None:
                yield from own
                continue
            self._host.note(*one.grid)
            self._note_as_one(one.kernel, group, blocks[0], "blocks side by side")
            yield one

    def _note_as_one(
        self,
        kernel: Kernel,
        names: Sequence[str],
        block: tuple[int, int, int],
        how: str,
    ) -> None:
        """Note a kernel in the place of those of which it does what they do."""
        made = self._made
        codes = [noted for noted, code in made.kernels if code.name in names]
        of_phases = "; ".join(", ".join(one.statements) for one in codes)
        own = self._code(
            kernel,
            statements=tuple(name for one in codes for name in one.statements),
            block=block,
            tile_sizes=tuple(dict(pair for one in codes for pair in one.tile_sizes).items()),
            lengths=codes[0].lengths,
            notes=distinct((f"{how}: {of_phases}", *(note for one in codes for note in one.notes))),
            reassociates=any(one.reassociates for one in codes),
            regroups=any(one.regroups for one in codes),
        )
        at = next(at for at, (_, code) in enumerate(made.kernels) if code.name in names)
        made.kernels = [one for one in made.kernels if one[1].name not in names]
        made.kernels.insert(at, (own, kernel))

    def _sizes(
        self,
        pieces: Sequence[Piece],
        placed: Sequence[BuiltKernel],
        steps: Sequence[HostStep],
        macros: Mapping[str, int],
    ) -> Sizes | None:
        """Return the sizes for which 32-bit indices hold, ``None`` for indices of 64 bits.

        Raises:
            WideIndicesError: they do not hold at the sizes of the source, or hardly anywhere.
        """
        if self._index_bits != 32:
            return None
        host = self._host
        host.note(*bounds_of_loops(steps))
        if self._loop_blocks:  # kernels have their conditions and numbers of blocks, too
            for step, _ in every_step(steps):
                host.note(*([strict(step.condition)] if isinstance(step, HostIf) else ()))
                host.note(*(step.grid if isinstance(step, Launch) else ()))
        texts = [(host, pieces), *((item.index, [item.piece]) for item in placed)]
        sizes = common_sizes(texts, self._scop.parameters)
        if sizes is None:
            raise WideIndicesError(self._scop, "sizes of a few millions")
        for name, value in self._scop.with_products(macros).items():
            if name in self._scop.parameters and abs(value) > sizes.largest:
                raise WideIndicesError(self._scop, f"{name} = {value}")
        return sizes

    def _launchable(self, placed: Sequence[BuiltKernel]) -> Iterator[Assumption]:
        """Yield what must hold of the sizes for the grids to launch.

        Raises:
            InputError: ``EATSS-K015``: a grid has too many blocks, whatever the sizes.
        """
        for item in placed:
            condition = item.most_blocks
            message = f"{item.kernel.name} would need more than 2^31 - 1 blocks along x"
            if isinstance(condition, Constant):
                raise input_error(
                    "EATSS-K015",
                    message,
                    span=item.piece.statements[0].span,
                    hint="give larger tiles with --tile",
                )
            if condition is not None:
                yield Assumption(condition=condition, message=message)

    def _context(self, arrays: Arrays, names: NameTable, macros: OwnSizes) -> KernelContext:
        passed = tuple(
            declaration.name
            for declaration in self._scop.parameter_declarations
            if declaration.name not in macros
        )
        limit = self._options.shared_limit_bytes
        return KernelContext(
            scop=self._scop,
            arrays=arrays,
            names=names,
            index_bits=self._index_bits,
            line_info=self._options.line_info,
            parameters=passed,
            shared_limit_bytes=self._profile.shared_per_block_optin_bytes
            if limit is None
            else limit,
            static_shared_bytes=self._profile.shared_per_block_bytes,
            strict_fp=self._options.strict_fp,
        )

    def _piece(self, piece: Piece, context: KernelContext) -> list[BuiltKernel]:
        """Return the kernels of a piece, its texts and nouns noted."""
        local = piece.inner_names(context.names)
        placed = []
        own = self._options.tile_sizes or self._options.placements
        limit = 2 * KERNEL_OPERATIONS if own else KERNEL_OPERATIONS
        for unit in self._planner.units(piece, local):
            make = partial(self._kernel, unit, context)
            kernel = tried(self._scop, limit, make, TooManyCasesError)
            if kernel is None:
                simple = self._planner.one_thread(unit.piece, local, "isl fails on its tiles")
                kernel = self._kernel(simple, context)
            placed.append(kernel)
        return placed

    def _class(
        self, pieces: Sequence[Piece], at: int, block: ClassBlock, context: KernelContext
    ) -> list[BuiltKernel]:
        """Return the kernel of a class of tiles, or those of its products, from a piece on.

        Raises:
            InputError: ``EATSS-K011``, it is planned and there is none, no room for it, or its
                products have other threads.
        """
        found = class_of(self._scheduled, block, pieces, self._facts)
        if isinstance(found, ClassProducts):
            own = pieces[at : at + len(block.kernels)]
            built = [one for piece in own for one in self._piece(piece, context)]
            if any((one.kernel.threads, 1) != (block.threads, block.width) for one in built):
                raise input_error(
                    "EATSS-K011",
                    f"class_block says {block.threads} threads and width {block.width}: products "
                    "have the threads of their block, and width 1",
                    hint="change the block of their kernels, and class_block alike",
                )
        else:
            has = self._profile.compute_capability >= CUDA.copies_ahead
            context = replace(context, copies_ahead=has)
            built = [self._class_part(part, block, context) for part in found]
        count = len(found) if isinstance(found, tuple) else len(block.kernels)
        if 1 < len(built) == count:  # a piece of several kernels runs them in order
            self._beside += [their_names(one.kernel for one in built)]
        return built

    def _class_part(self, part: Part, block: ClassBlock, context: KernelContext) -> BuiltKernel:
        """Return the kernel of a part of a class, noted."""
        built = ClassBuilder(self._name, part, block, context).build()
        tiles = () if part.plan.wide is None else ((part.plan.wide, int(block.width)),)
        in_order = keep_order(self._scop, part.statements, strict=self._options.strict_fp)
        self._note(built, built.piece, (block.threads, 1, 1), tiles, built.notes, in_order)
        return built

    def _in_one(
        self, pieces: Sequence[Piece], block: FusedRows, context: KernelContext
    ) -> BuiltKernel | None:
        """Return the kernel whose blocks take rows through all pieces, if there is one."""
        planner = RowPlanner(self._scheduled, self._facts, self._profile, self._options)
        made = tried(
            self._scop,
            KERNEL_OPERATIONS,
            lambda: planner.in_one(self._name, pieces, block, context),
            TooManyCasesError,
        )
        if made is None:
            return None
        code = self._transformed(
            made.kernel,
            made.kernel.piece,
            self._options.instructions,
            context,
            made.kernel.kernel.resident,
            row_vectors=made.vectors,
        )
        kernel = replace(made.kernel, kernel=code)
        told = instruction_notes(code, self._options.instructions)
        notes = (*made.kernel.notes, *told)
        self._note(kernel, kernel.piece, block.extents, made.tiles, notes, made.in_order)
        return kernel

    def _kernel(self, unit: Unit, context: KernelContext) -> BuiltKernel:
        """Write the kernel of a unit and note it."""
        in_order = self._planner.in_order(unit)
        decided = None if unit.kernel is None else self._recipe.wanted(unit.kernel)
        layout = decided or self._options.changed(Layout(tile_sizes=(), block=()), "")
        layout = layout if unit.mapping.warps else replace(layout, warps=None)
        facts = next((one for one in self._facts if one.name == unit.kernel), None)
        staged = promoted_candidates(unit, decided, facts, self._options)
        warps, plan = layout.warps, None
        neighbours: tuple[InterleavedPoints, ...] = ()
        reads = {}
        wished = None if unit.mapping.split is not None or not layout.streams else layout.shared_sum
        stages = (
            layout.pipeline_stages if self._profile.compute_capability >= CUDA.copies_ahead else 1
        )
        if decided is not None and facts is not None:
            planned = replace(layout, stages=stages) if warps is None else layout
            plan = launch_plan_of(unit, facts, planned, staged, self._profile, self._options)
            unit = replace(unit, mapping=with_vectors(unit.mapping, plan))
            reads = planned_reads(plan, staged, unit, facts)
            neighbours = neighbours_of(unit.mapping, reads, self._scop, plan)
        together = plan is not None and not nowhere(plan.copies_together)
        stages = 1 if together else stages
        context = replace(context, copies_ahead=stages > 1, copies_together=together)
        tiling = None if plan is None else plan.tiling
        kernel = KernelBuilder(self._name, unit, context, reads, tiling).build()
        selected = () if warps is None else (warps.instruction,)
        instructions = distinct((*self._options.instructions, *selected))
        resident = layout.blocks_at_once
        if wished is not None:
            resident = max(resident, -(-wished.blocks // self._profile.sm_count))
        paddings = {
            one.name: planned_padding(plan, one, unit, facts)
            for one in kernel.staged
            if plan is not None and facts is not None and unit.mapping.warps
        }
        code = self._transformed(
            kernel,
            unit.piece,
            instructions,
            context,
            resident,
            neighbours=neighbours,
            stages=stages,
            stream=None if wished is None else self._stream(unit, wished, kernel),
            paddings=paddings,
            points=tuple(one.point for one in unit.mapping.mapped),
            row_windows=plan is not None and not nowhere(plan.row_windows),
        )
        if warps is None or computed_by(code, warps.instruction) or code.streamed is not None:
            code = replace(code, resident=resident)
        not_done = [] if plan is None else left_out(plan, code)
        strides = grid_strides(kernel.kernel)
        kernel = replace(kernel, kernel=code, grid_strides=strides)
        if code.streamed is not None:
            kernel = self._streamed(kernel, code.streamed)
        for one in every_of(code.body, LookBack):
            self._works_in(one.found.buffer, zeroed=True)
        notes = (
            *unit.notes,
            *_streaming_notes(wished, code),
            *(f"not as predicted: {one}" for one in not_done),
            *kernel.notes,
            *instruction_notes(code, self._told(code, instructions)),
            *map(str, rounded_sums(code)),
            *unpromoted_notes(unit, decided, self._options),
        )
        self._note(kernel, unit.piece, unit.mapping.block, unit.mapping.tiles, notes, in_order)
        return kernel

    def _transformed(
        self,
        kernel: BuiltKernel,
        piece: Piece,
        instructions: Names,
        context: KernelContext,
        resident: int,
        **passes: Any,
    ) -> Kernel:
        return transformed(
            kernel.kernel,
            instructions=instructions,
            macros=context.macros,
            integers=(*context.parameters, *piece.host_names),
            strict_fp=self._options.strict_fp,
            most_shared_bytes=context.shared_limit_bytes,
            registers=self._most_registers(replace(kernel.kernel, resident=resident)),
            **passes,
        )

    def _stream(self, unit: Unit, wished: GridSplitK, kernel: BuiltKernel) -> Stream | None:
        """Return what is known of a kernel whose blocks are to take steps of all tiles."""
        facts = called(unit.kernel or "", self._facts)
        if stream_loop(unit, facts) != wished.loop:
            return None
        origins = [tile.origin for tile in unit.mapping.serial if tile.source_name == wished.loop]
        return Stream(
            blocks=wished.blocks,
            loop=origins[0],
            tiles=kernel.tiles,
            thread=unit.mapping.thread,
        )

    def _streamed(self, kernel: BuiltKernel, streamed: Streamed) -> BuiltKernel:
        """Return a kernel launched as so many blocks, and note what that takes.

        That is memory, and that the number of all steps fits an index.
        """
        name, most = kernel.kernel.name, INT_MAX - 2 * streamed.blocks
        condition = within(streamed.counts, most) if self._index_bits == 32 else None
        if condition == Constant(0):
            raise WideIndicesError(self._scop, "the steps of its tiles")
        if condition is not None:
            message = f"indices are 32 bits wide: {name} must have less than 2^31 steps of tiles"
            self._of_streams.append(Assumption(condition=condition, message=message))
        steps = reduce(multiplied, streamed.counts)
        for buffer, zeroed in ((streamed.parts, False), (streamed.arrived, True)):
            kernel.index.note(reduce(multiplied, buffer.layout.extents))
            self._works_in(buffer, zeroed=zeroed)
        grid = (minimum(steps, streamed.blocks), Constant(1), Constant(1))
        return replace(kernel, grid=grid, grid_strides=("x",), most_blocks=None, slowest=None)

    def _works_in(self, buffer: Buffer, *, zeroed: bool) -> None:
        """Note an array through which blocks of a kernel pass what they have."""
        self._workspaces.append(
            Temporary(
                name=buffer.name,
                element_type=buffer.element_type.value,
                shape=buffer.layout.extents,
                zeroed=zeroed,
            )
        )

    def _note(
        self,
        kernel: BuiltKernel,
        piece: Piece,
        block: tuple[int, int, int],
        tiles: SizePairs,
        notes: Names,
        in_order: bool,
    ) -> None:
        """Note a kernel, as it is printed, and what its launch and its reader need to know."""
        code = kernel.kernel
        own = {statement.name for statement in piece.statements}
        written = (self._scop.array(one.write.array) for one in piece.statements)
        rounds = any(array.element_type.is_floating for array in written)
        slow = (one.text for one in self._slow if not own.isdisjoint(one.statements))
        made = self._made
        made.numbers += 1
        for parameter, tile in self._tiles_of_sizes(kernel.parameter_tiles):
            made.tiles[parameter] = max(tile, made.tiles.get(parameter, 0))
        noted = self._code(
            code,
            statements=their_names(piece.statements),
            block=block,
            tile_sizes=tiles,
            lengths=kernel.lengths,
            notes=(*notes, *slow),
            reassociates=not in_order,
            regroups=code.regroups and rounds,
            grid_strides=kernel.grid_strides,
        )
        made.kernels.append((noted, code))

    def _code(self, code: Kernel, **decided: Any) -> KernelCode:
        """Return what a kernel's launch and its reader need to know."""
        return KernelCode(
            name=code.name,
            shared_bytes=code.shared_bytes,
            dynamic_shared=code.dynamic_shared,
            arguments=their_names(code.arguments),
            inexact_instructions=inexact_instructions(code),
            rounded_sums=rounded_sums(code),
            **decided,
        )

    def _tiles_of_sizes(self, tiles: SizePairs) -> Iterator[tuple[str, int]]:
        """Yield tiles along sizes that callers pass; factors of a product share one."""
        products = {product.name: product for product in self._scop.products}
        for name, tile in tiles:
            if name in products:
                yield from shared_tile(products[name], tile).items()
            else:
                yield name, tile

    def _told(self, code: Kernel, instructions: Sequence[str]) -> list[str]:
        """Return what notes tell of: what the user wants, used or not, and what is used."""
        asked = self._options.instructions
        return [name for name in instructions if name in asked or computed_by(code, name)]

    def _most_registers(self, code: Kernel) -> int:
        """Return the registers that a compiler may give a thread."""
        each = self._profile.registers_per_sm // (code.threads * code.resident)
        return min(self._profile.registers_per_thread, each)


def _streaming_notes(wished: GridSplitK | None, code: Kernel) -> Iterator[str]:
    """Say how blocks share the iterations of a loop, or that they cannot."""
    if wished is None:
        return
    if code.streamed is None:
        yield f"no stream-K over {wished.loop}: its sums cannot be split"
    else:
        blocks = wished.blocks
        yield f"stream-K: {blocks} blocks share the k-tiles over {wished.loop} evenly"


_OF_SUMS = (*ATOMICS.values(), *SHUFFLES.values())


def check_capability(kernels: Sequence[Kernel], profile: GpuProfile) -> None:
    """Refuse a card that lacks what kernels use.

    Raises:
        InputError: ``EATSS-K012``.
    """
    used = {one for kernel in kernels for one in instructions_in(kernel)}
    has = profile.compute_capability
    for instruction, element_type in sorted(used, key=lambda one: one[0].name):
        needed = instruction.least(element_type)
        if has < needed.least:
            what = instruction.what
            if needed.element_type is not None:
                what += f" on {element_type.value}"
            major, minor = needed.least
            raise input_error(
                "EATSS-K012",
                f"the code needs compute capability {major}.{minor} for {what}, and "
                f"{profile.title} has {has[0]}.{has[1]}",
                hint="--strict-fp keeps sums of floating-point numbers whole and needs neither "
                "atomics nor shuffles for them; or choose another card with --gpu"
                if instruction in _OF_SUMS
                else "leave the instruction out, or choose another card with --gpu",
            )


GENERATION_FACTOR = 4
"""How much more isl may do for code than for the schedule by default; PolyBench needs less."""


def generate(
    regions: Sequence[RegionInput],
    recipe: Recipe,
    profile: GpuProfile,
    *,
    name: str,
    original: Original,
    parameters: SizePairs,
) -> Program:
    """Generate CUDA for every region of a file.

    Args:
        regions: the regions in source order, scheduled over symbolic sizes.
        recipe: what was decided about every kernel, numbered through the file.
        profile: the card that it is for.
        name: name of the program and of its ``.cu`` file.
        original: where the C is.
        parameters: macro sizes with the values they have in the source.

    Returns:
        The program; its text compiles as CUDA and, with a shim, as C++ for the CPU.

    Raises:
        InputError: ``EATSS-K0xx``, sizes or placements that cannot be; ``EATSS-K012``, the card
            lacks what kernels use; ``EATSS-P001`` where isl has too much work;
            ``EATSS-K015``: 32-bit indices were asked for and do not hold.
        InternalError: ``EATSS-K901``, a check of the generated code failed.
    """
    macros, options = dict(parameters), recipe.options
    if options.fast_math:
        regions = [*map(_with_reciprocals, regions)]
    bits = options.index_bits or max(
        index_bits_of(region.scheduled.scop, macros) for region in regions
    )
    try:
        made = _regions(regions, recipe, profile, bits, macros)
    except WideIndicesError as need:
        if options.index_bits is not None:
            raise input_error(
                "EATSS-K015",
                f"indices of 32 bits do not hold what is computed for {need.what}",
                span=need.scop.span,
                hint="leave --index away, or give --index 64",
            ) from None
        bits = 64
        made = _regions(regions, recipe, profile, bits, macros)
    program = Program(
        name=name,
        file=f"{name}.cu",
        text="",
        original=original,
        gpu=profile.name,
        compute_capability=profile.sm,
        dtype=recipe.dtype,
        strict_fp=options.strict_fp,
        index_bits=bits,
        flags=("-fmad=false",) if options.strict_fp else FAST_MATH * options.fast_math,
        parameters=parameters_of(
            [(region.scheduled.scop, region.generic) for region in regions], macros, made.tiles
        ),
        kernels=tuple(noted for noted, _ in made.kernels),
        entries=tuple(made.entries),
        recipe=recipe_to_dict(recipe),
    )
    code = [one for _, one in made.kernels]
    check_capability(code, profile)
    return file_text(program, code, line_info=options.line_info)


def _with_reciprocals(region: RegionInput) -> RegionInput:
    scop = region.scheduled.scop
    statements = tuple(replace(one, value=with_reciprocals(one.value)) for one in scop.statements)
    scop = replace(scop, statements=statements)
    return replace(region, scheduled=replace(region.scheduled, scop=scop))


def _regions(
    regions: Sequence[RegionInput],
    recipe: Recipe,
    profile: GpuProfile,
    bits: Literal[32, 64],
    macros: OwnSizes,
) -> Made:
    """Make the code of all regions with indices of some width.

    Raises:
        WideIndicesError: 32 bits do not hold them.
    """
    made = Made()
    for region in regions:
        scop = region.scheduled.scop
        dependences = region.scheduled.dependences
        with bounded_work(scop, GENERATION_FACTOR * default_operations(scop)):
            builder = RegionBuilder(region, recipe, profile, bits, made)
            entry = builder.build(single=len(regions) == 1, macros=macros)
            if scop.written is not None:
                dependences = compute_dependences(scop.written)
        work = work_of(scop.written or scop, dependences, builder.outside)
        work = work_written_out(work, scop.products)
        made.entries.append(replace(written_out(entry, scop.products), work=work))
    return made
