"""Rows of boxes padded so that lanes that load fragments of them meet different banks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product

from eatss.analysis.banks import bank_cycles, best_padding
from eatss.kernel.nodes import Element, Evaluate, Kernel
from eatss.kernel.uses import elements, every, with_buffers
from eatss.program import Constant, IntExpr, evaluate, names_in


def padded_for_lanes(kernel: Kernel, most_shared_bytes: int) -> Kernel:
    """Return a kernel whose boxes have the padding with the fewest conflicts between lanes.

    Only boxes that fragments are loaded from change, and only as far as shared memory is left.
    """
    for buffer in kernel.shared:
        loads = [
            one
            for node in every(kernel.body)
            if isinstance(node, Evaluate)
            for one in elements(node)
            if one.buffer == buffer
        ]
        if not loads or buffer.layout.swizzle:
            continue
        row = buffer.layout.extents[-1]
        if not isinstance(row, Constant):
            continue
        size = buffer.element_type.size_bytes
        best = best_padding(partial(_waves, kernel, loads), row.value, size)
        other = replace(buffer, layout=replace(buffer.layout, padding=best))
        changed = replace(
            kernel,
            shared=tuple(other if one == buffer else one for one in kernel.shared),
            body=with_buffers(kernel.body, {buffer: other}),
        )
        if changed.shared_bytes <= most_shared_bytes:
            kernel = changed
    return kernel


def _waves(kernel: Kernel, loads: Sequence[Element], padding: int) -> int:
    """Return how often the banks are asked for all loads of a warp.

    Elements beside each other that turns of a loop load are loaded as one.
    """
    return sum(_waves_of(kernel, one, padding) for one in dict.fromkeys(loads))


def _waves_of(kernel: Kernel, load: Element, padding: int) -> int:
    layout = replace(load.buffer.layout, padding=padding)
    address = layout.address(load.subscripts)
    size = load.buffer.element_type.size_bytes
    places = _places(kernel, address, "")
    for counter in dict.fromkeys(names_in(address)):
        beside = [2 * (place // 2) + 1 for place in places]
        if _places(kernel, address, counter) == beside != places:
            return bank_cycles([place // 2 for place in places], 2 * size)
    return bank_cycles(places, size)


def _places(kernel: Kernel, address: IntExpr, later: str) -> list[int]:
    """Return where each lane of the first warp loads, in the turn after the first of a counter."""
    return [
        evaluate(address, _others(names_in(address), {later: 1, **lane})) for lane in _lanes(kernel)
    ]


def _others(names: Iterator[str] | Sequence[str], lane: Mapping[str, int]) -> dict[str, int]:
    """Return values of all names: those of a lane, and zero for what all lanes have."""
    return {name: lane.get(name, 0) for name in names}


def _lanes(kernel: Kernel) -> Iterator[dict[str, int]]:
    """Yield what each lane of the first warp calls its place, in their order."""
    for values in product(*(range(axis.lanes) for axis in kernel.warps)):
        named: dict[str, int] = {}
        for axis, value in zip(kernel.warps, values, strict=True):
            named |= {axis.lane: value, axis.thread: value}
        yield named
