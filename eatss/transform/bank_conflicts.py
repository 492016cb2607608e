"""Rows of boxes in shared memory lie so that lanes meet different banks.

They are padded where lanes load fragments of them. With the transformation ``swizzle`` boxes have
no padding: columns are exchanged, so that rows and columns lie in all banks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import prod

import numpy as np
import numpy.typing as npt

from eatss.analysis.banks import bank_cycles, best_padding
from eatss.analysis.structure import VECTOR_BYTES
from eatss.kernel.nodes import Buffer, Element, Evaluate, Kernel, Layout, Perform
from eatss.kernel.uses import elements, every, with_buffers
from eatss.program import Constant, IntExpr, names_in
from eatss.program.columns import evaluate_columns


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
        rows = [one for one in _named_rows(kernel) if one.buffer == buffer]
        if not (loads or rows) or buffer.layout.swizzle:
            continue
        row = buffer.layout.extents[-1]
        if not isinstance(row, Constant):
            continue
        size = buffer.element_type.size_bytes
        best = best_padding(partial(_all_waves, kernel, loads, rows), row.value, size)
        other = replace(buffer, layout=replace(buffer.layout, padding=best))
        changed = replace(
            kernel,
            shared=tuple(other if one == buffer else one for one in kernel.shared),
            body=with_buffers(kernel.body, {buffer: other}),
        )
        if changed.shared_bytes <= most_shared_bytes:
            kernel = changed
    return kernel


def _named_rows(kernel: Kernel) -> Iterator[Element]:
    """Yield the first elements of rows that lanes name, of matrices that a warp loads."""
    for node in every(kernel.body):
        if isinstance(node, Perform):
            rows = [one.name for one in node.instruction.operands if one.beside > 1]
            yield from node.named(rows)


def _all_waves(
    kernel: Kernel, loads: Sequence[Element], rows: Sequence[Element], padding: int
) -> int:
    """Return how often the banks are asked for loads of a warp, and for rows of matrices."""
    own = _waves(kernel, loads, padding) if loads else 0
    addresses = {
        replace(one.buffer.layout, padding=padding).address(one.subscripts): one for one in rows
    }
    for address, one in addresses.items():
        size = one.buffer.element_type.size_bytes
        places = _places(kernel, address, {})
        own += bank_cycles([place * size // VECTOR_BYTES for place in places], VECTOR_BYTES)
    return own


def _waves(kernel: Kernel, loads: Sequence[Element], padding: int) -> int:
    """Return how often the banks are asked for all loads of a warp.

    Elements beside each other that a lane loads are loaded as one: those of turns of a loop, else
    those of two loads.
    """
    addresses = {
        replace(one.buffer.layout, padding=padding).address(one.subscripts): None for one in loads
    }
    size = loads[0].buffer.element_type.size_bytes
    found, paired = 0, set[tuple[int, ...]]()
    every = {address: tuple(_places(kernel, address, {})) for address in addresses}
    for address, places in every.items():
        width = _in_turns(kernel, address, VECTOR_BYTES // size)
        beside = tuple(place + 1 for place in places)
        if width == 1 and beside in every.values() and not any(place % 2 for place in places):
            width = 2
            paired.add(beside)
        if places not in paired:
            found += bank_cycles([place // width for place in places], width * size)
    return found


def _in_turns(kernel: Kernel, address: IntExpr, most: int) -> int:
    """Return how many turns of some loop load elements beside each other, whole vectors of them."""
    for counter in dict.fromkeys(names_in(address)):
        turns = [_places(kernel, address, {counter: turn}) for turn in range(most)]
        width = most
        while width > 1:
            whole = [width * (place // width) for place in turns[0]]
            if all(turns[turn] == [place + turn for place in whole] for turn in range(width)):
                return width
            width //= 2
    return 1


def _places(kernel: Kernel, address: IntExpr, turns: Mapping[str, int]) -> list[int]:
    """Return where each lane of the first warp loads, in these turns and the first of others."""
    lanes = _lanes(kernel)
    known = {name: lanes.get(name, turns.get(name, 0)) for name in names_in(address)}
    count = prod(axis.lanes for axis in kernel.warps)
    places: list[int] = np.broadcast_to(evaluate_columns(address, known), count).tolist()
    return places


def _lanes(kernel: Kernel) -> dict[str, npt.NDArray[np.int64]]:
    """Return what each lane of the first warp calls its place, in their order."""
    places = np.indices([axis.lanes for axis in kernel.warps]).reshape(len(kernel.warps), -1)
    return {
        name: own
        for axis, own in zip(kernel.warps, places, strict=True)
        for name in (axis.lane, axis.thread)
    }


_BANKS_BYTES = 128
"""Bytes that the banks of shared memory give at once."""


def swizzle(kernel: Kernel) -> Kernel:
    """Return a kernel whose padded boxes are swizzled instead.

    A box stays padded where its rows are no power of two long, or do not fill the banks.
    """
    found = dict(_swizzled(kernel.shared))
    return replace(
        kernel,
        shared=tuple(found.get(buffer, buffer) for buffer in kernel.shared),
        body=with_buffers(kernel.body, found),
    )


def _swizzled(buffers: tuple[Buffer, ...]) -> Iterator[tuple[Buffer, Buffer]]:
    for buffer in buffers:
        extents, padding = buffer.layout.extents, buffer.layout.padding
        last = extents[-1] if padding and len(extents) > 1 else None
        if not isinstance(last, Constant) or last.value & (last.value - 1):
            continue
        rows = _BANKS_BYTES // buffer.element_type.size_bytes
        if last.value < rows:
            continue
        yield buffer, replace(buffer, layout=Layout(extents, swizzle=rows))
