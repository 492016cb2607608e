"""The variants of each kernel: which cuts the generator can make of it, and what they have.

A selection with the sizes and places of a user is fitted to one of them. The loop of whose
iterations blocks may take equal shares is found here for code, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, Literal

from eatss.analysis.analyse import AnalysedProgram, AnalysedScop
from eatss.analysis.facts import KernelFacts
from eatss.analysis.layout import GridSplitK, Layout, SplitK, mapped_loops
from eatss.analysis.variant import (
    KernelVariant,
    LaunchFacts,
    PartFacts,
    PrivateTileFacts,
    ProductFacts,
    RegisterTileFacts,
)
from eatss.base.frozen import Numbers, frozen, their_names
from eatss.cards.profile import GpuProfile, Tf32
from eatss.choose.cuda import in_warps, kernel_variant_of
from eatss.choose.selection import KernelSelection, Selection
from eatss.lower.instructions import of_warps
from eatss.lower.mapping import sizes_of
from eatss.lower.pieces import (
    NameTable,
    Piece,
    are_apart,
    in_regions,
    own_pieces,
    tied_instances,
)
from eatss.lower.planning import Unit, UnitPlanner
from eatss.lower.products import WarpProducts, product_loops, references_at, warp_instructions
from eatss.lower.recipe import CodegenOptions
from eatss.lower.scans import looks_back
from eatss.lower.storage import Registers
from eatss.lower.units import LEAST_TRIPS, adds_only, combiner_in, sums_of, trips
from eatss.lower.whole_tiles import runs_whole_if_finite
from eatss.plan.shares import block_along
from eatss.polyhedral.expression import SUMS, ElementType
from eatss.polyhedral.kernel import ScheduledScop
from eatss.polyhedral.scop import Place


def with_own_sizes(
    selection: Selection,
    facts: Sequence[KernelFacts],
    variants: Mapping[str, tuple[KernelVariant, ...]],
    profile: GpuProfile,
    options: CodegenOptions,
) -> Selection:
    """Return a selection with the sizes, threads and places of ``options``.

    Warps compute products by an instruction where they still can.

    Raises:
        InputError: as ``eatss.lower.mapping.layout``.
    """
    kernels = tuple(
        _with_own(kernel, own, variants.get(own.name, ()), profile, options)
        for kernel, own in zip(selection.kernels, facts, strict=True)
    )
    return replace(selection, kernels=kernels)


def _with_own(
    kernel: KernelSelection,
    facts: KernelFacts,
    variants: Sequence[KernelVariant],
    profile: GpuProfile,
    options: CodegenOptions,
) -> KernelSelection:
    kernel = _with_shared_sum(options.changed(kernel, kernel.name), variants, options)
    variant = kernel_variant_of(variants, kernel)
    if variant is None:
        return kernel
    tiles, block = sizes_of(facts, kernel, profile, options)
    spread = kernel.spread
    if spread is not None:
        sums = {launch.sum_loop for launch in variant.launches}
        asked = [size for loop, size in options.tiles_of(facts.name).items() if loop in sums]
        spread = replace(spread, tile=[spread.tile, *asked][-1])
    places: dict[int, Literal["l1", "shared"]] = {}
    for launch in variant.launches:
        for group in launch.stageable:
            own = [facts.references[at] for at in group]
            memory = options.placed(name for one in own for name in (one.array, one.access))
            if memory is not None:
                places.update(dict.fromkeys(group, memory))
    threads = {
        loop: block_along(count, tiles[loop], len(block), spread=spread is not None)
        for loop, count in block
    }
    return replace(
        kernel,
        tile_sizes=tuple((loop, tiles[loop]) for loop, _ in kernel.tile_sizes),
        block=tuple(threads.items()),
        spread=spread,
        sum_kinds=variant.sum_kinds,
        warps=kernel.warps if in_warps(variant, tiles, threads) else None,
        references=tuple(
            replace(reference, placement=places.get(at, reference.placement))
            for at, reference in enumerate(kernel.references)
        ),
    )


def _with_shared_sum(
    kernel: KernelSelection, variants: Sequence[KernelVariant], options: CodegenOptions
) -> KernelSelection:
    """Return a kernel with the blocks that the user lets share its sum, where they can."""
    own = kernel.shared_sum
    if own is None or kernel.name not in (name for name, _ in options.shared_sums):
        return kernel
    found = kernel if own.streamed else replace(kernel, spread=None, sum_loops=())
    cut = kernel_variant_of(variants, found)
    if cut is None or (own.streamed and cut.stream_loop != own.loop):
        return replace(kernel, shared_sum=None)
    return found


_TRIAL = SplitK(lanes=32, tile=32, chunks=2, outer=2)
"""Shows whether sums can be spread; its numbers decide nothing."""


def kernel_variants_for(
    program: AnalysedProgram,
    profile: GpuProfile,
    *,
    strict_fp: bool = False,
    tf32: Tf32 = "off",
) -> dict[str, tuple[KernelVariant, ...]]:
    """Return how the generator can cut each kernel of a program, by the kernel's name.

    The first is without spread sums, if there is any such: a kernel without a parallel loop runs in
    one thread then and has no launches to choose sizes for.

    Args:
        program: the kernels.
        profile: the card.
        strict_fp: whether the order of all operations is kept.
        tf32: whether tensor cores may multiply floats.

    Raises:
        InputError: ``EATSS-P001``, a region is too much work for isl.
    """
    options = CodegenOptions(strict_fp=strict_fp)

    def found(
        scheduled: ScheduledScop, region: AnalysedScop
    ) -> Iterator[tuple[str, tuple[KernelVariant, ...]]]:
        pieces, names = own_pieces(scheduled)
        for piece in pieces:
            kernel = piece.facts_in(region.facts)
            if kernel is None:
                continue
            described = Describing(
                facts=region.facts,
                profile=profile,
                options=options,
                tf32=tf32,
                piece=piece,
                kernel=kernel,
                names=piece.inner_names(names),
            )
            yield kernel.name, tuple(described.variants())

    return dict(in_regions(program, found))


@frozen
class Describing:
    """Tries the cuts of one piece and says what comes of them; ``names`` are taken where it is."""

    facts: tuple[KernelFacts, ...]
    profile: GpuProfile
    options: CodegenOptions
    tf32: Tf32
    piece: Piece
    kernel: KernelFacts
    names: NameTable

    def variants(self) -> Iterator[KernelVariant]:
        """Yield the cuts, the one without spread sums first."""
        units = self._units()
        plain = self._kernel_variant(units)
        yield plain
        if not self.options.strict_fp:
            yield from self._with_products(units, plain)
            yield from self._with_shared_sum(units)
        units = self._units(spread=_TRIAL)
        if any(unit.mapping.split is not None for unit in units):
            yield self._kernel_variant(units)

    def _with_shared_sum(self, plain: Sequence[Unit]) -> Iterator[KernelVariant]:
        """Yield the variants of which blocks share a long loop of the sums, outermost first."""
        serial = {tile.source_name for unit in plain for tile in unit.mapping.serial}
        for loop in self.kernel.loops:
            if loop.name not in serial or trips(self.kernel, loop.name) < LEAST_TRIPS:
                continue
            units = self._units(shared_sum=GridSplitK(loop=loop.name, blocks=_TRIAL.chunks))
            if any(unit.mapping.shared is not None for unit in units):
                shared = self._kernel_variant(units)
                yield shared
                yield from self._with_products(units, shared)

    def _units(self, **chosen: Any) -> list[Unit]:
        """Return the units of a layout of which nothing is chosen but this."""
        sizes = Layout(
            tile_sizes=tuple((loop.name, 1) for loop in self.kernel.loops),
            block=tuple((loop.name, 1) for loop in mapped_loops(self.kernel)),
            **chosen,
        )

        planner = UnitPlanner(
            self.piece.scheduled, self.facts, lambda _: sizes, self.profile, self.options
        )
        return planner.units(self.piece, self.names.inner())

    def _kernel_variant(self, units: Sequence[Unit]) -> KernelVariant:
        strict = self.options.strict_fp
        launches = (launch_of(unit, self.kernel, strict_fp=strict) for unit in units)
        return KernelVariant(launches=tuple(launches), in_order=strict)

    def _with_products(
        self, units: Sequence[Unit], plain: KernelVariant
    ) -> Iterator[KernelVariant]:
        """Yield the variant with an instruction of warps, for the first loops that it fits."""
        if self.piece.combines:
            return
        for instruction in warp_instructions(self.profile, self.tf32):
            for loops in product_loops(their_names(self.kernel.parallel_loops)):
                launches = tuple(
                    replace(
                        cut,
                        products=products_of(unit, self.kernel, cut, loops, instruction.name)
                        if {*loops} <= {*cut.mapped}
                        else (),
                    )
                    for unit, cut in zip(units, plain.launches, strict=True)
                )
                if any(cut.products for cut in launches):
                    yield replace(plain, launches=launches, instruction=instruction)
                    break


def products_of(
    unit: Unit,
    kernel: KernelFacts,
    cut: LaunchFacts,
    loops: tuple[str, str],
    name: str,
) -> tuple[ProductFacts, ...]:
    """Return the products of a launch over ``loops`` that the instruction of a name computes."""
    found = WarpProducts(
        piece=unit.piece,
        facts=kernel,
        cut=cut,
        loops=loops,
        instruction=of_warps(name),
        types=unit.piece.scop.types,
    )
    return tuple(one for part in unit.parts for one in found.of_part(part))


def launch_of(unit: Unit, kernel: KernelFacts, *, strict_fp: bool) -> LaunchFacts:
    """Return what the model has to know of the launch of a unit."""
    facts = launch_facts(unit, kernel)
    if strict_fp:
        return facts
    return replace(
        facts,
        whole_if_finite=tuple(_whole_if_finite(unit, kernel)),
        stream_loop=stream_loop(unit, kernel),
    )


def _whole_if_finite(unit: Unit, kernel: KernelFacts) -> Iterator[str]:
    """Yield the statements of which a tile that a bound cuts may run as a full one does."""
    if unit.mapping.split is not None:
        return
    staged = {place for one in unit.storage.candidates if not one.private for place in one.places}
    held = unit.storage.held
    mapped = their_names(unit.mapping.mapped)
    piece, types = unit.piece, unit.piece.scop.types
    for name in (name for part in unit.parts if part.serial for name in part.statements):
        floating = types[piece.statement(name).write.array].is_floating
        if (
            floating
            and name in kernel.work.coupled
            and runs_whole_if_finite(piece, name, staged, held, mapped, types)
        ):
            yield name


def launch_facts(unit: Unit, kernel: KernelFacts) -> LaunchFacts:
    """Return what a plan has to know of the launch of a unit."""
    mapping = unit.mapping
    sources = mapping.sources
    in_order = sorted(mapping.mapped, key=lambda loop: loop.order)
    split = mapping.split
    shared = None if mapping.shared is None else mapping.shared.source_name
    groups: dict[Numbers, list[int]] = {}
    private: dict[Numbers, PrivateTileFacts] = {}
    for candidate in unit.storage.candidates:
        if references := references_at(kernel, unit.piece, candidate.places):
            if candidate.private:
                parts = enumerate(unit.parts)
                private[references] = PrivateTileFacts(
                    references=references,
                    filled=candidate.filled,
                    stored_in=tuple(
                        at for at, part in parts if candidate.written_in(part.statements)
                    ),
                    apart=candidate.apart,
                )
            readers = _readers(kernel, unit, candidate.places, references)
            groups.setdefault(references, []).extend(
                at for at, part in enumerate(unit.parts) if readers & {*part.statements}
            )
    kinds = [unit.piece.scop.types[one.array] for one in unit.storage.registers if one.are_written]
    long = [part.statements for part in unit.parts if part.serial]
    tied = tied_instances(unit.piece, their_names(in_order)) if len(long) > 1 else {}
    return LaunchFacts(
        mapped=tuple(loop.source_name for loop in in_order),
        parts=tuple(
            PartFacts(
                statements=part.statements,
                serial=tuple(sources[name] for name in part.serial if name in sources),
            )
            for part in unit.parts
        ),
        held=tuple(_held(unit, held, kernel) for held in unit.storage.registers if held.places),
        stageable=tuple(groups),
        copied_in=tuple(map(tuple, groups.values())),
        sum_loop=None if split is None else split.source_name,
        outer_loop=shared if split is not None else None,
        scans=mapping.scan is not None,
        looks_back=mapping.scan is not None and looks_back(unit.piece, kinds),
        shared_loop=shared if split is None else None,
        private=tuple(private.values()),
        apart=bool(tied) and all(are_apart(tied, *two) for two in combinations(long, 2)),
    )


def _held(unit: Unit, held: Registers, kernel: KernelFacts) -> RegisterTileFacts:
    """Return what is to be known of an array that registers keep."""
    mapping = unit.mapping
    widths = {array.name: array.element_bytes for array in kernel.work.arrays}
    combiner = mapping.scan or combiner_in(unit.piece, {name for name, _ in held.places})
    element_type = unit.piece.scop.array(held.array).element_type
    return RegisterTileFacts(
        array=held.array,
        references=references_at(kernel, unit.piece, held.places),
        # of the types that sizes are selected for, which may be others than the source has;
        # a scalar has no references and the type that it has there
        element_bytes=widths.get(held.array, element_type.size_bytes),
        loads=_loads(unit, held),
        what=combiner.what if mapping.shares_sums and combiner is not None else "",
        exchanges=(mapping.shares_sums or bool(held.across))
        and mapping.scan is None
        and combiner is not None
        and element_type not in combiner.single,
        continued=held.array in unit.continued,
        stored=(mapping.shares_sums and mapping.scan is None) or not held.store.is_empty(),
        across=tuple(one.source_name for one in mapping.mapped if one.name in held.across),
    )


def _loads(unit: Unit, held: Registers) -> bool:
    """Tell whether a thread reads from memory what it then keeps: a running sum the old values."""
    mapping = unit.mapping
    if mapping.scan is not None:
        return held.are_written and any(
            one.array == held.array and (own.name, at) not in unit.storage.held
            for own in unit.piece.statements
            for at, one in enumerate(own.accesses)
        )
    return (mapping.shared is None or mapping.split is not None) and not held.load.is_empty()


def _readers(
    kernel: KernelFacts, unit: Unit, places: Iterable[Place], references: Sequence[int]
) -> set[str]:
    """Return the statements that read what is staged, moving as one of the references does.

    With sizes as numbers ``A[i + 1]`` may be the same as ``A[N]``; in code for any size it is
    not, and has no copy. Statements may call a loop by other names.
    """
    texts = {kernel.references[at].access for at in references}
    forms = {
        name: {access.terms for access in work.accesses if access.reference in references}
        for work in kernel.work.statements
        for name in [work.name]
    }
    named = {name for name, at in places if unit.piece.access((name, at)).text in texts}
    known = {form for name in named for form in forms[name]}
    alike = {name for name, _ in places if forms[name] & known}
    return alike or {name for name, _ in places}


def stream_loop(unit: Unit, kernel: KernelFacts) -> str | None:
    """Return the loop of whose iterations blocks may take equal shares, ``None`` if there is none.

    It is the only serial loop around what is added up in registers, has as many iterations in each
    tile, and no other statement of the launch comes before it that writes something else.

    Args:
        unit: what is launched.
        kernel: the kernel that it is of.
    """
    long = [part for part in unit.parts if part.serial]
    if unit.mapping.shares_sums or unit.piece.combines or len(long) != 1:
        return None
    (part,) = long
    piece, held = unit.piece, unit.storage.held
    arrays = {statement.name: statement.write.array for statement in piece.statements}
    sums = {arrays[name] for name in part.statements}
    others = unit.parts[: unit.parts.index(part)]
    before = [name for other in others for name in other.statements]
    added = {one.statement for one in piece.kernel.reductions if one.operator in SUMS}
    alone = (
        len(part.serial) == 1
        and len(sums) == 1
        and {piece.scop.array(name).element_type for name in sums} <= _STREAMED_TYPES
        and kernel.work.coupled.isdisjoint(part.statements)
        and added.issuperset(part.statements)
        and all((name, 0) in held for name in (*before, *part.statements))
        and all(arrays[name] in sums for name in before)
        and adds_only(piece, part.statements, part.serial[0], sums_of(piece))
    )
    return unit.mapping.sources.get(part.serial[0]) if alone else None


_STREAMED_TYPES = {ElementType.FLOAT, ElementType.DOUBLE}
"""Types of sums whose parts blocks may hand on."""
