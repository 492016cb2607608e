"""What a point decides about each kernel, as a layout of the generator's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from eatss.analysis.facts import KernelFacts
from eatss.analysis.mapping import mapped_loops
from eatss.analysis.structure import MAX_STAGES, Structure
from eatss.diagnostics import InputError, input_error
from eatss.gpu import GpuProfile
from eatss.model.cuda_lattice import PLAIN_TILE, CudaLattice, Integers
from eatss.model.cuda_layout import in_warps, streams_of, structure_of
from eatss.model.options import ModelOptions
from eatss.model.predicted_cuda import cuda_at
from eatss.model.selection import KernelSelection, Selection
from eatss.point import Point, Value
from eatss.tile_space.cuda import NONE, CudaVariables

_BY_LOOP = ("tile", "threads", "points")
_SPREAD = ("lanes", "steps", "chunks")


@dataclass(slots=True)
class Decided:
    """What a point says of one kernel: by loop, by array, how sums are spread, what warps do."""

    tile: dict[str, int] = field(default_factory=dict)
    threads: dict[str, int] = field(default_factory=dict)
    points: dict[str, int] = field(default_factory=dict)
    host: str | None = None
    warps: str | None = None
    stages: int | None = None
    share: int | None = None
    stream: int | None = None
    staged: dict[str, bool] = field(default_factory=dict)
    spread: dict[str, int] = field(default_factory=dict)

    @property
    def anything(self) -> bool:
        """Whether anything is said."""
        found = (self.tile, self.threads, self.points, self.staged, self.spread)
        own = (self.host, self.warps, self.stages, self.share, self.stream)
        return any(found) or any(one is not None for one in own)


def short_name(kernel: str) -> str:
    """Return what a kernel is called in a point: ``k0`` for ``kernel0``."""
    return "k" + kernel.removeprefix("kernel")


def decided_of(decisions: Point, facts: KernelFacts) -> Decided:
    """Return what decisions say of a kernel.

    Those with its name before them count more than those without.
    """
    found = Decided()
    own = f"{short_name(facts.name)}."
    named = sorted(decisions.items(), key=lambda one: one[0].startswith(own))
    for name, value in named:
        if "." in name and not name.startswith(own):
            continue
        _take(found, name.removeprefix(own), value)
    return found


def _take(found: Decided, name: str, value: Value) -> None:
    kind, _, rest = name.partition("_")
    if kind in _BY_LOOP and rest:
        getattr(found, kind)[rest] = _whole(name, value)
    elif kind == "staged" and rest:
        found.staged[rest] = bool(value)
    elif name in ("host", "warps"):
        setattr(found, name, str(value))
    elif name == "stages":
        found.stages = _whole(name, value)
    elif name in ("share", "stream"):
        setattr(found, name, _whole(name, value))
    elif name in _SPREAD:
        found.spread[name] = _whole(name, value)


def _whole(name: str, value: Value) -> int:
    if isinstance(value, bool) or int(value) != value:
        raise _refused(f"{name} is {value!r}, which is no whole number")
    return int(value)


def selection_at(
    base: Selection,
    facts: Sequence[KernelFacts],
    structures: Mapping[str, tuple[Structure, ...]],
    profile: GpuProfile,
    options: ModelOptions,
    decisions: Point,
) -> Selection:
    """Return a selection whose kernels have the layouts that a point decides.

    Args:
        base: what stands where nothing is decided.
        facts: the kernels.
        structures: how each can be cut.
        profile: the card.
        options: what is predicted for.
        decisions: ``tile_i``, ``threads_i``, ``points_i`` by loop, ``staged_A`` by array,
            ``lanes``, ``steps`` and ``chunks`` of spread sums, ``host``, the loop that the host
            runs, ``warps``, the instruction that warps compute products by, ``stages``, the boxes
            in use at once, ``share``, the blocks that share a sum, ``stream``, those that take
            equal shares of all steps; with ``k0.`` before it, of one kernel.

    Raises:
        InputError: ``EATSS-W010``, they make no layout.
    """
    kernels = []
    for kernel, own in zip(base.kernels, facts, strict=True):
        decided = decided_of(decisions, own)
        cuts = structures.get(own.name, ())
        if decided.anything and cuts:
            kernels.append(_at(kernel, own, cuts, profile, options, decided))
        else:
            kernels.append(kernel)
    return replace(base, kernels=tuple(kernels))


def _at(
    kernel: KernelSelection,
    facts: KernelFacts,
    structures: Sequence[Structure],
    profile: GpuProfile,
    options: ModelOptions,
    decided: Decided,
) -> KernelSelection:
    structure = _structure(kernel, facts, structures, decided)
    layout = _layout(kernel, facts, structure, structures, profile, decided)
    if structure.instruction is not None and not _by_warps(layout):
        if decided.warps is not None:
            raise _refused(
                f"the threads and tiles of {facts.name} are not those of {decided.warps}"
            )
        structure = _structure(kernel, facts, structures, replace(decided, warps=NONE))
        layout = replace(layout, structure=structure, stages=_row(1))
    if structure.instruction is None and not any(on[0] for on in layout.staged.values()):
        if (decided.stages or 1) > 1:
            raise _refused(f"boxes of {facts.name} are filled ahead only where something is staged")
        layout = replace(layout, stages=_row(1))
    return cuda_at(facts, layout, profile, options)


def _by_warps(layout: CudaLattice) -> bool:
    """Tell whether warps can compute products in a layout."""
    tiles, threads = (
        {name: int(column[0]) for name, column in table.items()}
        for table in (layout.tiles, layout.threads)
    )
    return in_warps(layout.structure, tiles, threads)


def _structure(
    kernel: KernelSelection,
    facts: KernelFacts,
    structures: Sequence[Structure],
    decided: Decided,
) -> Structure:
    base = structure_of(structures, kernel)
    spreads = base is not None and base.spreads
    selected = None if kernel.warps is None else kernel.warps.instruction
    warps = (selected or NONE) if decided.warps is None else decided.warps
    host = kernel.host_loop
    if decided.spread:
        spreads = decided.spread.get("lanes", 1) * decided.spread.get("chunks", 1) > 1
        host = host if spreads else None
    if decided.host is not None:
        host = None if decided.host == NONE else decided.host
    shares = not spreads and host is None and _blocks(kernel, decided) > 1
    for structure in structures:
        own = NONE if structure.instruction is None else structure.instruction.name
        alone = spreads or host is not None
        cut = (structure.spreads, structure.shared_loop is not None, structure.host_loop)
        if cut == (spreads, shares, host) and (own == warps or (alone and decided.warps is None)):
            return structure
    if shares:
        raise _refused(f"blocks cannot share the sums of {facts.name}")
    if warps != NONE:
        raise _refused(f"warps cannot compute what {facts.name} does by {warps}")
    raise _refused(
        f"the sums of {facts.name} cannot be {'spread' if spreads else 'kept together'}"
        + ("" if host is None else f" with its loop {host} on the host")
    )


def _layout(
    kernel: KernelSelection,
    facts: KernelFacts,
    structure: Structure,
    structures: Sequence[Structure],
    profile: GpuProfile,
    decided: Decided,
) -> CudaLattice:
    tiles, block = dict(kernel.tile_sizes), dict(kernel.block)
    loops = [loop.name for loop in facts.loops if loop.name != structure.host_loop]
    mapped = [loop.name for loop in mapped_loops(facts) if loop.name in loops]
    threads: dict[str, int] = {}
    for name in mapped:
        threads[name], tiles[name] = _along(name, decided, block.get(name, 1), tiles.get(name, 1))
    for name in loops:
        if name not in mapped:
            tiles[name] = decided.tile.get(name, tiles.get(name, PLAIN_TILE))
    shared = {at for at, reference in enumerate(kernel.references) if _is_shared(kernel, at)}
    groups = dict.fromkeys(group for launch in structure.launches for group in launch.stageable)
    names = CudaVariables.of(facts, structures, profile).staged
    staged = {
        group: _staged(group, names.get(group, ""), facts, shared, decided) for group in groups
    }
    lanes, steps, chunks = _spread(kernel, decided) if structure.spreads else (1, 1, 1)
    if structure.shared_loop is not None:
        chunks = _blocks(kernel, decided)
    return CudaLattice(
        structure=structure,
        tiles={name: _row(tiles[name]) for name in loops},
        threads={name: _row(threads[name]) for name in mapped},
        staged={group: _row(on) for group, on in staged.items()},
        lanes=_row(lanes),
        sum_tile=_row(steps),
        chunks=_row(chunks),
        stages=_row(_stages(kernel, structure, decided)),
        streams=_row(_streams(kernel, structure, decided)),
    )


def _along(name: str, decided: Decided, threads: int, tile: int) -> tuple[int, int]:
    """Return threads and tile along a mapped loop."""
    own_threads, points, own_tile = (
        table.get(name) for table in (decided.threads, decided.points, decided.tile)
    )
    if own_tile is not None and points is not None:
        if points < 1 or own_tile % points or own_threads not in (None, own_tile // points):
            raise _refused(f"a tile of {own_tile} along {name} is not threads times {points}")
        return own_tile // points, own_tile
    if own_tile is not None:
        if own_threads is not None and own_threads > own_tile:
            raise _refused(
                f"a tile of {own_tile} along {name} has no work for {own_threads} threads"
            )
        return own_threads or min(threads, own_tile), own_tile
    threads, before = own_threads or threads, max(1, tile // max(1, threads))
    return threads, threads * (before if points is None else points)


def _spread(kernel: KernelSelection, decided: Decided) -> tuple[int, int, int]:
    base = kernel.spread
    lanes = decided.spread.get("lanes", 1 if base is None else base.lanes)
    steps = decided.spread.get("steps", PLAIN_TILE if base is None else base.tile)
    return lanes, steps, decided.spread.get("chunks", 1 if base is None else base.chunks)


def _blocks(kernel: KernelSelection, decided: Decided) -> int:
    """Return how many blocks share a sum."""
    if decided.share is not None:
        return decided.share
    own = kernel.shared_sum
    return 1 if own is None or own.streamed else own.blocks


def _streams(kernel: KernelSelection, structure: Structure, decided: Decided) -> int:
    """Return how many blocks take equal shares of all steps, 0 where they do not."""
    blocks = streams_of(kernel) if decided.stream is None else decided.stream
    if blocks and structure.stream_loop is None and decided.stream is not None:
        raise _refused(f"blocks cannot take equal shares of the steps of {kernel.name}")
    return 0 if structure.stream_loop is None else blocks


def _stages(kernel: KernelSelection, structure: Structure, decided: Decided) -> int:
    """Return the boxes in use at once."""
    stages = kernel.stages if kernel.warps is None else kernel.warps.stages
    stages = stages if decided.stages is None else decided.stages
    if not 1 <= stages <= MAX_STAGES:
        raise _refused(f"stages is {stages}, not 1 to {MAX_STAGES}")
    return stages


def _staged(
    group: Sequence[int], name: str, facts: KernelFacts, shared: set[int], decided: Decided
) -> bool:
    """Tell whether a group is staged: by its own name, by its array, or as it was."""
    own = decided.staged.get(name.removeprefix("staged_"))
    if own is not None:
        return own
    arrays = {facts.references[at].array for at in group}
    wanted = [on for array, on in decided.staged.items() if array in arrays]
    return wanted[-1] if wanted else set(group) <= shared


def _is_shared(kernel: KernelSelection, at: int) -> bool:
    return kernel.references[at].placement == "shared"


def _row(value: int | bool) -> Integers:
    return np.array([int(value)], dtype=np.int64)


def _refused(message: str) -> InputError:
    return input_error("EATSS-W010", message, hint="a filter of the space can leave it out")
