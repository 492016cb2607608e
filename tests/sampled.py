"""Of tests with many dear cases some run by default: those that ``samples(n)`` keeps."""

from __future__ import annotations

from collections.abc import Iterable

import pytest


def kept_of(count: int, wanted: int) -> list[int]:
    """Return which of ``count`` cases are kept: as many as wanted, spread over all of them.

    The first one is among them, and so is the last one where more than one is wanted.
    """
    if wanted < 1:
        raise ValueError(f"at least one case is kept, not {wanted}")
    if wanted >= count:
        return list(range(count))
    if wanted == 1:
        return [0]
    return [place * (count - 1) // (wanted - 1) for place in range(wanted)]


def make_others_long(items: Iterable[pytest.Item]) -> None:
    """Mark as long what ``samples`` does not keep of the cases that are not long anyway.

    Only the order of collection decides, so every process of a run keeps the same. A case that is
    selected alone is the only one of its test, and is kept.
    """
    families: dict[str, list[pytest.Item]] = {}
    for item in items:
        sampled = item.get_closest_marker("samples") is not None
        if sampled and item.get_closest_marker("long") is None:
            families.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for cases in families.values():
        kept = set(kept_of(len(cases), _wanted(cases[0])))
        for place, case in enumerate(cases):
            if place not in kept:
                case.add_marker(pytest.mark.long)


def _wanted(case: pytest.Item) -> int:
    marker = case.get_closest_marker("samples")
    assert marker is not None
    (wanted,) = marker.args
    return int(wanted)
