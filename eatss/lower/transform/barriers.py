"""Barriers where threads of a block meet in shared memory: between definitions and uses.

Nodes are gone through in order, with what is written and read since the last barrier. Before a
node that would meet it a barrier is put; where the next turn of a loop would, at the end of its
body. What comes of it is judged by :mod:`eatss.lower.kernel.barriers`, which knows nothing of how
barriers are put: they are enough, and with one fewer they would not be.
"""

from __future__ import annotations

from collections.abc import Sequence

from eatss.lower.kernel.barriers import (
    NOTHING,
    Follower,
    Overlaid,
    Pending,
    behind_barrier,
    needed_barriers_only,
    varying_names,
)
from eatss.lower.kernel.nodes import Barrier, For, Node, Nodes
from eatss.lower.kernel.uses import with_bodies


def with_barriers(body: Sequence[Node], overlaid: Overlaid = ()) -> Nodes:
    """Return nodes of a kernel with barriers where they are needed, and nowhere else.

    Groups of boxes that are ``overlaid`` are the same memory.
    """
    found, _ = _through(body, Follower(varying_names(body), overlaid))
    return needed_barriers_only(found, overlaid)


def _through(nodes: Sequence[Node], follower: Follower) -> tuple[Nodes, Pending]:
    """Return nodes with barriers between them and in them, and what is pending behind them."""
    found: list[Node] = []
    state = NOTHING
    for node in nodes:
        inner = _inside(node, follower)
        behind, faults = follower.followed((inner,), state)
        if _conflict((inner,), faults, follower):
            found.append(Barrier())
            behind, _ = follower.followed((inner,), behind_barrier(state))
        found.append(inner)
        state = behind
    return tuple(found), state


def _inside(node: Node, follower: Follower) -> Node:
    """Return a node whose bodies have the barriers that they need by themselves."""

    def through(nodes: Nodes) -> Nodes:
        body, state = _through(nodes, follower)
        loops = isinstance(node, For) and _conflict(
            body, follower.followed(body, state)[1], follower
        )
        return (*body, Barrier()) if loops else body

    return with_bodies(node, through)


def _conflict(nodes: Sequence[Node], faults: Sequence[str], follower: Follower) -> bool:
    """Tell whether nodes meet what threads did before, apart from what they do to themselves."""
    return bool(faults) and not set(faults) <= set(follower.followed(nodes, NOTHING)[1])
