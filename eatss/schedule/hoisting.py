"""Serial loops of a band that run on the host, so that what is left inside is a sum.

Where the parallel loops of a kernel have few points and its serial loops many, each thread walks
a long way alone. A band is permutable, so any loop of it may stand outermost; once it runs on the
host, one launch for each of its iterations, the other serial loop is often a plain
sum that many threads add up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from eatss.polyhedral import Dependences
from eatss.schedule.launch_order import never_runs_back
from eatss.schedule.pieces import LoopMember, Piece


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
