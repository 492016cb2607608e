"""Serial loops of a band that run on the host, so that what is left inside is a sum.

Where the parallel loops of a kernel have few points and its serial loops many, each thread walks
a long way alone. A band is permutable, so any loop of it may stand outermost; once it runs on the
host, one launch for each of its iterations, the other serial loop is often a plain
sum that many threads add up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod

from eatss.analysis import KernelFacts
from eatss.codegen.launch_order import never_runs_back
from eatss.codegen.mapping import Mapping
from eatss.codegen.parts import Part
from eatss.codegen.pieces import LoopMember, Piece
from eatss.codegen.splitting import trips
from eatss.polyhedral import Dependences

LAUNCH_S = 3e-6
"""What a launch costs at least, one following another on a stream."""

STEP_S = 20e-9
"""What a step of a serial loop costs at least: the latency of L1, about 35 cycles."""


def hoistable(piece: Piece, mapped: Sequence[str], dependences: Dependences) -> Iterator[Piece]:
    """Yield a piece with each serial loop of its band moved to the host, where that is legal."""
    serial = [loop for loop in piece.band if loop.name not in mapped]
    if len(serial) == 1:  # none would be left to sum over
        return
    for loop in serial:
        if never_runs_back(piece, loop, dependences):
            yield hoisted(piece, loop)


def hoisted(piece: Piece, loop: LoopMember) -> Piece:
    """Return a piece whose band loop ``loop`` runs on the host, inside its other host loops."""
    band = tuple(other for other in piece.band if other is not loop)
    return replace(piece, host=(*piece.host, loop), band=band)


def least_time_s(
    kernels: Sequence[tuple[Mapping, tuple[Part, ...]]], facts: KernelFacts, launched: int
) -> float:
    """Return how long kernels take at least by launches and steps of a thread.

    Args:
        kernels: layout and parts of kernels that run one after another.
        facts: the kernel of the analysis they come from, for trip counts.
        launched: how often each of them is launched.
    """
    return launched * sum(
        LAUNCH_S + STEP_S * sum(_steps(mapping, part, facts) for part in parts)
        for mapping, parts in kernels
    )


def _steps(mapping: Mapping, part: Part, facts: KernelFacts) -> int:
    """Return the steps of a thread's serial loops around a part."""
    names = {tile.name: tile.source_name for tile in mapping.serial}
    steps = prod(trips(facts, names[name]) for name in part.serial)
    split = mapping.split
    if split is not None:
        steps *= -(-trips(facts, split.source_name) // (split.threads * mapping.chunks))
    return steps
