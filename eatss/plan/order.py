"""Where launches begin: to and fro through arrays of which L2 has a part only.

    k0: blocks 0, 1, …, n    write all of S, and the end of it is in L2
    k1: blocks n, …, 1, 0    begin with that

Blocks start in the order of their numbers. A launch that takes them from the last one finds what L2
has of an array before it is replaced; what it writes there need not have gone to memory before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from eatss.analysis.facts import StatementFacts, touched_bytes

_LEAST_SHARE = 0.5
"""Share of L2 that a launch touches of an array at least: of less all may be there anyway."""


def backwards(
    launches: Iterable[tuple[Sequence[StatementFacts], str | None]], l2_bytes: int
) -> list[bool]:
    """Tell which launches take their blocks from the last one.

    A launch does if it goes along the array that both touch most of as the launch before did, and
    uses each element of it once: products wait for arithmetic, not for memory. A launch that fills
    L2 replaces what was there before.

    Args:
        launches: in their order, what each runs, and the loop that blocks go along most slowly.
        l2_bytes: of the card.
    """
    found: list[bool] = []
    last: dict[str, tuple[float, object, bool]] = {}
    for statements, loop in launches:
        walks: dict[str, tuple[float, object, bool]] = {}
        for own, access in ((one, use) for one in statements for use in one.accesses):
            touched = 0.0 if access.touched is None else touched_bytes([access.touched])
            steps = enumerate(dict(terms).get(loop or "", 0) for terms in access.terms)
            along: object = next(((dim, by > 0) for dim, by in steps if by), None)
            if touched > walks.get(access.array, (0.0,))[0]:
                walks[access.array] = touched, along, {*own.loops} <= {*access.moving}
        known = ((*walk, *last[name]) for name, walk in walks.items() if name in last)
        default = 0.0, None, False, 0.0, None, True
        moved, way, once, other, before, turned = max(
            known, key=lambda one: one[0], default=default
        )
        large = min(moved, other) > _LEAST_SHARE * l2_bytes
        found.append(large and once and way == before is not None and not turned)
        here = {name: (touched, way, found[-1]) for name, (touched, way, _) in walks.items()}
        fills = any(touched > _LEAST_SHARE * l2_bytes for touched, _, _ in walks.values())
        last = here if fills else last | here
    return found
