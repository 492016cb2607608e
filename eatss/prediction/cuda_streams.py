"""Blocks that take equal shares of the steps of all tiles: what each has, and what it costs.

Blocks take whole tiles as long as there are twice as many left as blocks, and then as many steps
each as others (stream-K).
"""

from __future__ import annotations

import numpy as np

from eatss.frozen import frozen
from eatss.plan.stream import rounded_up, shared_steps, whole_waves
from eatss.prediction.cuda_launch import CudaLaunch
from eatss.prediction.demand import Column
from eatss.prediction.demand_builder import DemandBuilder

_MOVES = 3.0
"""Instructions for an element of a part: it is stored, loaded and added."""

_WAITS = 20.0
"""Loads from L2, one after the other, in the time that putting tiles together takes a block of an
SM: it leaves a part, passes a fence and says so, takes a ticket, waits and loads. From gemm of 1111
floats on an H100, against layouts without streams (``library-streams-by-hand``)."""


@frozen
class Stream:
    """What blocks of a launch have that take shares of steps; 0 where they do not.

    ``each`` are the blocks of an SM, ``tiles`` what such an SM has of tiles, ``turns`` how many
    tiles a block begins, whole or not. ``cuts`` are the tiles of the launch that go on in another
    block, ``streamed`` is the share of all steps that blocks share.
    """

    each: Column
    tiles: Column
    turns: Column
    cuts: Column
    streamed: Column


def stream_of(of: CudaLaunch) -> Stream:
    """Return what the blocks of a launch have."""
    blocks = of.streams
    on = blocks > 0
    count = np.maximum(1.0, blocks)
    steps = of.ones if of.cut.stream_loop is None else of.shape.steps[of.cut.stream_loop]
    each = np.ceil(count / of.card.sms)
    waves = whole_waves(of.active, count)
    left = shared_steps(of.active, waves, count, steps)
    share = rounded_up(left, count)
    cut = (np.mod(share, steps) > 0) & (left > 0)
    return Stream(
        each=np.where(on, each, 0.0),
        tiles=np.where(on, each * (waves + share / steps), 0.0),
        turns=np.where(on, waves + share / steps + cut, 0.0),
        cuts=np.where(on & cut, np.minimum(count, left / np.maximum(1.0, share)) - 1.0, 0.0),
        streamed=np.where(on, left / steps / of.active, 0.0),
    )


def add_parts(of: CudaLaunch, stream: Stream, demand: DemandBuilder) -> Column:
    """Add what parts of sums take that blocks leave and find; return the cycles of a block.

    Parts go to L2 and come from there, a line of each register of a warp. Blocks do so at the same
    time, as they have equal shares, and nothing is computed meanwhile.
    """
    if of.cut.stream_loop is None:
        return of.zeros
    words = of.points()
    often = words * stream.cuts / of.active
    sectors = of.facts.element_bytes
    demand.add_instructions(often * _MOVES)
    demand.add_global(2.0 * often, of.ones * np.ceil(sectors / 4.0), of.ones * sectors)
    each_way = words * of.shape.block_threads * of.facts.element_bytes * stream.each
    moved = 2.0 * each_way / (of.card.l2_bytes_s / of.card.sms / of.card.clock_hz)
    waits = _WAITS * stream.each * of.far_cycles
    return np.where(stream.cuts > 0, waits + moved, 0.0)
