"""Does a tile of time compute what the loop does? Asked of every plan, before it is carried out.

- **Operands.** What each update reads is the instance that the source's dataflow names, computed
  before in the same tile, or what was there when the tile began (isl).
- **Windows.** Rows are gone through, and each slot holds the row that is read of it.
- **Halos.** Of every version those cells are known that cells which are stored come from.
- **Planes.** Fields are the planes of arrays that the source names, at every step (isl).
- **Memory.** The last version of every field that steps write is stored, and of what a launch reads
  from memory beside its fields no step writes anything (isl).

The plan is taken as it is: how lags, slots and halos were found is not asked again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import islpy as isl

from eatss.analysis.layout import TimeTile
from eatss.base.targets import CUDA
from eatss.lower.arrays import union_of
from eatss.plan.time_tiles import Level, Source, TimeTilePlan, Version, beside, sources_of
from eatss.polyhedral.isl_names import (
    OUT,
    PARAM,
    SET,
    big_value,
    output_affs,
    with_parameters,
)
from eatss.polyhedral.scop import Dependences, Scop
from eatss.polyhedral.time_chains import TimeChain, plane_at

_BEGIN = "tile_begin"
"""The first step of a tile, a parameter."""


def tile_faults(
    chain: TimeChain, plan: TimeTilePlan, tile: TimeTile, scop: Scop, dependences: Dependences
) -> Iterator[str]:
    """Yield what a tile would compute otherwise than the loop, in words; nothing if it is right."""
    yield from _wrong_operands(chain, plan, scop, dependences)
    yield from _wrong_planes(chain, plan)
    yield from _wrong_slots(chain, plan)
    yield from _unknown_cells(chain, plan, tile)
    yield from _wrong_results(plan)
    yield from _met_in_memory(chain, plan)


# -- operands ------------------------------------------------------------------------------------


def _wrong_operands(
    chain: TimeChain, plan: TimeTilePlan, scop: Scop, dependences: Dependences
) -> Iterator[str]:
    makers = {one.version: one for one in plan.levels}
    for level in plan.levels:
        update = chain.updates[level.update]
        here = _instances(chain, level)
        found = scop.no_relation
        for access, source in zip(update.statement.reads, level.sources, strict=True):
            if source is None:
                continue
            cells = _cells(chain, access.relation.intersect_domain(here))
            found = found.union(_makers(chain, makers, source.version, cells))
        named = dependences.flow.intersect_range(here.to_union_set())
        since = (_from_begin(one.statement.domain, isl.Aff.ge_set) for one in chain.updates)
        inside = union_of(one.to_union_set() for one in since)
        if not named.intersect_domain(inside).is_equal(found):
            statement = update.statement.name
            yield f"{statement} at step {level.step} of a tile has other operands than in the loop"


def _wrong_planes(chain: TimeChain, plan: TimeTilePlan) -> Iterator[str]:
    """Look whether fields are the planes of their arrays that the source names, at every step."""
    for level in plan.levels:
        update = chain.updates[level.update]
        here = _instances(chain, level)
        sources = [None if one is None else one.version for one in level.sources]
        versions = (level.version, *sources)
        for access, version in zip(update.statement.accesses, versions, strict=True):
            if version is None:
                continue
            field = plan.versions[version].field
            leading = output_affs(access.relation)[: -chain.dims]
            for function, own in zip(leading, field.plane, strict=True):
                expected = (
                    plane_at(here, field.turn, chain.period, _BEGIN)
                    if own is None
                    else isl.PwAff.val_on_domain(here, big_value(here.get_ctx(), own))
                )
                if not function.ne_set(expected).intersect(here).is_empty():
                    yield f"{access.text} is another plane than {field.array} has {field.turn} on"


def _makers(
    chain: TimeChain, makers: dict[int, Level], version: int | None, reads: isl.Map
) -> isl.UnionMap:
    """Return which instances make a version at the cells that others read.

    Args:
        chain: the loop.
        makers: the levels that make versions.
        version: what is read.
        reads: from instances to cells.
    """
    found = isl.UnionMap.empty(reads.get_space().params())
    while version is not None and version in makers:
        level = makers[version]
        writes = chain.updates[level.update].statement.write.relation
        writes = _cells(chain, writes.intersect_domain(_instances(chain, level)))
        found = found.union(writes.apply_range(reads.reverse()).to_union_map())
        reads = reads.subtract_range(writes.range())
        version = level.before
    return found


def _cells(chain: TimeChain, elements: isl.Map) -> isl.Map:
    """Return the cells of elements, whatever plane they are on."""
    return elements.project_out(OUT, 0, elements.dim(OUT) - chain.dims).reset_tuple_id(OUT)


def _instances(chain: TimeChain, level: Level) -> isl.Set:
    """Return the instances of a level, the first step of the tile a parameter."""
    return _from_begin(chain.updates[level.update].statement.domain, isl.Aff.eq_set, level.step)


def _from_begin(
    domain: isl.Set, relation: Callable[[isl.Aff, isl.Aff], isl.Set], step: int = 0
) -> isl.Set:
    """Return the instances whose time has a relation to a step of the tile."""
    domain = with_parameters(domain, (_BEGIN,))
    space = isl.LocalSpace.from_space(domain.get_space())
    begin = isl.Aff.var_on_domain(space, PARAM, domain.find_dim_by_name(PARAM, _BEGIN))
    begin = begin.add_constant_val(big_value(domain.get_ctx(), step))
    return domain.intersect(relation(isl.Aff.var_on_domain(space, SET, 0), begin))


# -- windows -------------------------------------------------------------------------------------


def _wrong_slots(chain: TimeChain, plan: TimeTilePlan) -> Iterator[str]:
    """Go through rows as code does, and look which row each slot has when it is read.

    What other warps left at their edges is there one row later, and the slot of the newest row may
    be written while others are read.
    """
    if chain.dims < 2:
        return
    held: _Held = {}
    levels = {one.version: one for one in plan.levels}
    used = [number for number, one in enumerate(plan.versions) if one.halo is not None]
    for turn in range(2 * plan.unroll + plan.ahead + plan.behind + 1):
        for number in (*plan.loaded, *levels):
            if number not in used:
                continue
            version = plan.versions[number]
            for source in sources_of(levels[number], chain.dims) if number in levels else ():
                if not _is_held(held, plan, turn, version, source):
                    yield f"version {number} reads a row of version {source.version} too late"
                    return
            held["own", number, turn % version.slots] = turn - version.lag
        for number in used:
            version = plan.versions[number]
            if version.shared_slots:
                held["edge", number, turn % version.shared_slots] = turn - version.lag


_Held = dict[tuple[str, int, int], int]
"""Which row each slot of each version has: in registers, and at the edges of warps."""


def _is_held(held: _Held, plan: TimeTilePlan, turn: int, version: Version, source: Source) -> bool:
    """Tell whether the row is there that a version reads of a source."""
    own = plan.versions[source.version]
    row = turn - version.lag + source.offset[0]
    age = version.lag - own.lag - source.offset[0]
    if row + own.lag < 0:
        return True  # in front of all rows that a tile has
    if age < 0 or held.get(("own", source.version, (turn - age) % own.slots)) != row:
        return False
    if len(source.offset) < 3 or source.offset[1] == 0:
        return True
    slots = own.shared_slots
    there = slots > 0 and age % slots != 0
    return there and held.get(("edge", source.version, (turn - age) % slots)) == row


# -- halos ---------------------------------------------------------------------------------------


def _unknown_cells(chain: TimeChain, plan: TimeTilePlan, tile: TimeTile) -> Iterator[str]:
    """Follow the cells of a tile that are known, and look whether those that are stored are."""
    dims, beyond = chain.dims, plan.ahead + plan.behind if chain.dims > 1 else 0
    every = tile.length + beyond, tile.warps * tile.rows, CUDA.lanes * tile.columns
    sizes = every if dims > 2 else (every[0], every[2])[2 - dims :]

    def computed(number: int) -> list[tuple[int, int]]:
        """Return the cells that turns come to, along each dimension."""
        lag = plan.versions[number].lag if dims > 1 else 0
        return [(-lag, sizes[0] - lag), *((0, size) for size in sizes[1:])]

    known = {number: computed(number) for number in plan.loaded}
    for level in plan.levels:
        if plan.versions[level.version].halo is not None:
            cells = computed(level.version)
            for source in sources_of(level, dims):  # all operands are to be known
                there = zip(cells, known[source.version], source.offset, strict=True)
                cells = [
                    (max(low, first - far), min(high, end - far))
                    for (low, high), (first, end), far in there
                ]
            known[level.version] = cells
    kept = [
        (front, size - back) for (front, back), size in zip(beside(plan, tile), sizes, strict=True)
    ]
    if dims > 1:
        kept[0] = plan.ahead, plan.ahead + tile.length
    for number in (*plan.stored, *plan.left):
        for (low, high), (first, end) in zip(known[number], kept, strict=True):
            if low > first or high < end:
                yield f"version {number} is stored at cells that the tile does not know"


# -- memory --------------------------------------------------------------------------------------


def _wrong_results(plan: TimeTilePlan) -> Iterator[str]:
    """Yield which fields are handed on, or left at the end, other than as the last update made."""
    last = {plan.versions[one.version].field: one.version for one in plan.levels}
    loaded = {plan.versions[number].field for number in plan.loaded}
    handed_on = [number for field, number in last.items() if field in loaded]
    left = [number for field, number in last.items() if field not in loaded]
    if not loaded <= {*last}:
        yield "tiles take over fields that no step writes"
    if sorted(plan.stored) != sorted(handed_on) or sorted(plan.left) != sorted(left):
        yield "tiles hand on other versions than the last ones of what steps write"


def _met_in_memory(chain: TimeChain, plan: TimeTilePlan) -> Iterator[str]:
    """Yield what tiles take from memory that other tiles may have written."""
    loaded = {plan.versions[number].field for number in plan.loaded}
    for level in plan.levels:
        field = plan.versions[level.version].field
        if level.before is None and (field in loaded or field.array not in chain.settled):
            yield f"what {field.array} has beside its cells is read where steps write it"
    written = [one.statement.write for one in chain.updates]
    elements = union_of(one.relation.range().to_union_set() for one in written)
    for update in chain.updates:
        for access, read in zip(update.statement.reads, update.reads, strict=True):
            met = access.relation.range().to_union_set().intersect(elements)
            if read is None and not met.is_empty():
                yield f"{access.text} is read from memory, and steps write it"
