"""Products of a class of tiles in one launch: rows of blocks of each behind those of the others.

    const int end = …;                       // rows of blocks of the first kernel
    if (blockIdx.y < end) { if (blockIdx.x < …) { what a block of the first does } }
    else { const int end_1 = end + …; … }    // of the second: its row is blockIdx.y - end

What is left of a step of Floyd-Warshall are four products: on both sides of the pivot's rows and
columns. None needs what another one makes (isl), and no launch of one has as many blocks as the
card. They are alike (:func:`eatss.plan.class_blocks.are_alike`), so that sizes of one do for all.
[Horizontal fusion: Li et al., CGO 2022.]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce
from itertools import groupby, permutations

import islpy as isl

from eatss.analysis.facts import KernelFacts
from eatss.base.frozen import Names, complete, their_names
from eatss.base.targets import CUDA
from eatss.lower.arrays import TRUE, condition_of
from eatss.lower.kernel.nodes import Fixup, If, Let, LookBack, NextTile, Nodes, guarded
from eatss.lower.kernel.uses import every, without_unused
from eatss.lower.loop_blocks import Bodies, joined
from eatss.lower.pieces import Piece
from eatss.lower.references import BuiltKernel
from eatss.lower.units import instances
from eatss.plan.class_blocks import ClassProducts, are_alike
from eatss.polyhedral.isl_names import coalesced
from eatss.polyhedral.kernel import ScheduledScop
from eatss.polyhedral.scop import Dependences
from eatss.program import Apply, Constant, IntExpr, Name, Operator, minimum
from eatss.program.expression import Grid, total
from eatss.program.linear import strict


def products_of(
    scheduled: ScheduledScop, pieces: Sequence[Piece], facts: Sequence[KernelFacts]
) -> Iterator[ClassProducts]:
    """Yield kernels of a class that may be one launch: alike, and none needs what others make."""
    for host, together in groupby(pieces, lambda one: their_names(one.host)):
        own = [*together]
        known = complete(piece.facts_in(facts) for piece in own) or ()
        if (
            scheduled.scop.class_size
            and len(host) == 1
            and len(known) > 1
            and all(are_alike(known[0], one) for one in known)
            and _are_apart(own, scheduled.dependences)
        ):
            yield ClassProducts(kernels=their_names(known))


def _are_apart(pieces: Sequence[Piece], dependences: Dependences) -> bool:
    """Tell whether no piece needs, in a step of the loops on the host, what another one makes."""
    every = dependences.needed
    return all(
        every.intersect_domain(instances(one)).intersect_range(instances(other)).is_empty()
        for one, other in permutations(pieces, 2)
    )


def in_one_launch(
    built: Sequence[BuiltKernel],
    integers: Sequence[str],
    macros: Sequence[str],
    most_bytes: int,
) -> BuiltKernel | None:
    """Return kernels, of blocks of the same threads, as one that is called as the first of them.

    Args:
        built: the kernels, none of which needs what another one makes.
        integers: what kernels may be passed besides arrays, in that order.
        macros: names that kernels know without being passed them.
        most_bytes: shared memory that a block may have.

    Returns:
        ``None`` where a kernel has to have as many blocks as it has, or blocks no room.

    Raises:
        InternalError: ``EATSS-K901``, what comes of it is not well formed.
    """
    kernels = [one.kernel for one in built]
    alike = {(one.threads, one.warps, one.resident) for one in kernels}
    if any(map(_is_bound, built)) or len(alike) > 1:
        return None
    launch = coalesced(reduce(isl.Set.union, (one.launch for one in built)))
    bodies, block = Bodies(kernels, (*macros, *integers)), Name(f"{CUDA.block}y")
    grids = [_grid(one, launch, CUDA.most_blocks["y"] // len(built)) for one in built]
    xs, rows, zs = zip(*grids, strict=True)
    x, z = (reduce(_most, dict.fromkeys(along)) for along in (xs, zs))
    groups = list[Names]()

    def nodes(at: int, begin: IntExpr) -> Nodes:
        """Return what blocks do from a kernel on, whose first row of blocks is number ``begin``."""
        end, own = Name(bodies.names.fresh("end")), grids[at]
        row, count = (Name(bodies.names.fresh(name)) for name in ("row", "rows"))
        values = {
            CUDA.block + "y": row,
            CUDA.blocks + "y": count,
            CUDA.blocks + "x": own[0],
            CUDA.blocks + "z": own[2],
        }
        before = len(bodies.shared)
        body = bodies.of(kernels[at], values)
        groups.append(their_names(bodies.shared[before:]))
        inside = [Name(CUDA.block + "x") < own[0]] * (own[0] != x)
        inside += [Name(CUDA.block + "z") < own[2]] * (own[2] != z)
        first = (block - begin, end - begin) if at else (block, end)
        here = zip((row, count), first, strict=True)
        lets = (Let(name=one.name, value=value) for one, value in here)
        body = (*lets, *guarded(inside, body))
        let = Let(name=end.name, value=total(begin, own[1]))
        if at + 1 == len(built):
            return (let, *body)
        return let, If(conditions=(block < end,), body=body, orelse=nodes(at + 1, end))

    body = without_unused(without_unused(nodes(0, Constant(0))))  # counts, then ends of them
    together = {"overlaid": tuple(groups) if all(groups) else ()}
    kernel = joined(kernels, body, bodies.shared, integers, macros, most_bytes, **together)
    if kernel is None:
        return None
    grid = x, reduce(total, rows), z
    return replace(built[0], kernel=kernel, grid=grid, launch=launch, grid_strides=())


def _most(one: IntExpr, other: IntExpr) -> IntExpr:
    return Apply(Operator.MAX, (one, other))


def _is_bound(one: BuiltKernel) -> bool:
    """Tell whether a kernel has to have as many rows of blocks, or parts that are overlaid."""
    fixed = one.grid[1] != Constant(1) and "y" not in one.grid_strides
    waits = any(isinstance(node, Fixup | NextTile | LookBack) for node in every(one.kernel.body))
    return fixed or waits or bool(one.kernel.overlaid or one.piece.cuts)


def _grid(one: BuiltKernel, launch: isl.Set, most: int) -> Grid:
    """Return the blocks of a kernel along x, y, z in launches of all; none where it has none."""
    x, y, z = one.grid
    condition, y = condition_of(one.launch, launch), minimum(y, most)
    if condition == TRUE:
        return x, y, z
    return x, Apply(Operator.SELECT, (strict(condition), y, Constant(0))), z
