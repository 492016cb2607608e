"""The search space of an affine program, and the points of selections in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from eatss.analysis.facts import KernelFacts
from eatss.analysis.structure import Structure
from eatss.diagnostics import Diagnostic, NoSolutionError
from eatss.gpu.profile import GpuProfile
from eatss.model.cuda_lattice import reach
from eatss.model.cuda_layout import streams_of
from eatss.model.options import TargetName
from eatss.model.selection import KernelSelection, Selection
from eatss.point import Value
from eatss.space.nouns import Filter, Iterator, Listed, Space
from eatss.tile_space.cuda import NONE, CudaVariables

PPCG_TILES = (4, 8, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 128, 192, 256)
"""Tile sizes for PPCG: 15, so that three loops have the 3375 variants of EATSS, Sec. II."""

Structures = Mapping[str, Sequence[Structure]]


def derived_space(
    facts: Sequence[KernelFacts],
    structures: Structures,
    profile: GpuProfile | None,
    target: TargetName,
    *,
    name: str = "derived",
) -> Space:
    """Return the space of a program.

    For ``cuda`` each kernel has threads and points of a thread along its parallel loops, tiles of
    its serial loops, what is staged in shared memory, what warps compute products by, and how sums
    are spread; with several kernels names begin with ``k0.``. For ``ppcg`` there is a tile size for
    each position, the same for all kernels.

    Args:
        facts: the kernels.
        structures: for ``cuda`` how each kernel can be cut, by its name.
        profile: the card; for ``ppcg`` none is needed.
        target: who generates the code.
        name: what the space is called.

    Raises:
        NoSolutionError: ``EATSS-S021``, no kernel has sizes to choose.
    """
    if target == "ppcg":
        iterators, filters = _ppcg(facts)
    else:
        assert profile is not None, "generated code is for a card"
        variables = cuda_variables(facts, structures, profile)
        iterators = [one for own in variables.values() for one in own.iterators()]
        filters = [one for own in variables.values() for one in own.filters()]
    if not iterators:
        raise NoSolutionError(
            Diagnostic(
                code="EATSS-S021",
                message=f"{name} has no kernel with sizes to choose: all run in one thread",
            )
        )
    return Space(name=name, iterators=tuple(iterators), filters=tuple(filters))


def cuda_variables(
    facts: Sequence[KernelFacts], structures: Structures, profile: GpuProfile
) -> dict[str, CudaVariables]:
    """Return the variables of each kernel, by its name, in generated code."""
    found = {}
    for one in facts:
        prefix = f"k{one.index}." if len(facts) > 1 else ""
        found[one.name] = CudaVariables.of(one, structures.get(one.name, ()), profile, prefix)
    return found


def point_of(
    selection: Selection,
    facts: Sequence[KernelFacts],
    structures: Structures,
    profile: GpuProfile,
) -> dict[str, Value]:
    """Return the point of a selection for generated code in the space of :func:`derived_space`.

    Args:
        selection: selected for ``cuda``, or with kernels whose sizes are replaced.
        facts: the kernels.
        structures: how each can be cut.
        profile: the card.
    """
    variables = cuda_variables(facts, structures, profile)
    point: dict[str, Value] = {}
    for kernel in selection.kernels:
        point |= kernel_point(variables[kernel.name], kernel)
    return point


def kernel_point(variables: CudaVariables, kernel: KernelSelection) -> dict[str, Value]:
    """Return the values of one kernel's variables in a selection."""
    if not variables.lattices:
        return {}
    sizes, block = dict(kernel.tile_sizes), dict(kernel.block)
    shared = {at for at, own in enumerate(kernel.references) if own.placement == "shared"}
    name = variables.name
    point: dict[str, Value] = {name("threads", n): block.get(n, 1) for n in variables.mapped}
    if variables.products:
        warps = kernel.warps
        point[name("warps")] = NONE if warps is None else warps.instruction
    if variables.stages != (1,):
        own = kernel.stages if kernel.warps is None else kernel.warps.stages
        point[name("stages")] = own
    point |= {name("points", n): sizes[n] // block.get(n, 1) for n in variables.mapped}
    point |= {name("tile", n): sizes[n] for n in variables.serial}
    point |= {own: int(set(group) <= shared) for group, own in variables.staged.items()}
    if len(variables.hosts) > 1:
        point[name("host")] = kernel.host_loop or NONE
    if variables.sharing:
        summed = kernel.shared_sum
        point[name("share")] = 1 if summed is None or summed.streamed else summed.blocks
    if variables.streaming:
        point[name("stream")] = streams_of(kernel)
    if variables.spreads:
        spread = kernel.spread
        point[name("lanes")] = 1 if spread is None else spread.lanes
        point[name("steps")] = 1 if spread is None else spread.tile
        point[name("chunks")] = 1 if spread is None else spread.chunks
    return point


def _ppcg(facts: Sequence[KernelFacts]) -> tuple[list[Iterator], list[Filter]]:
    """Return the tile sizes by position, for the kernel with the most loops."""
    depth = max((len(one.loops) for one in facts), default=0)
    iterators, filters = [], []
    for at in range(depth):
        name = f"tile_{at}"
        most = max(reach(one.loops[at].trip_count) for one in facts if at < len(one.loops))
        iterators.append(Iterator(name=name, over=Listed(values=PPCG_TILES)))
        condition = f"{name} <= {max(most, PPCG_TILES[0])}"
        filters.append(Filter(name=f"tiles of loop {at} no longer than it", condition=condition))
    return iterators, filters
