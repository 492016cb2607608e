"""Rows of boxes in shared memory lie so that lanes meet different banks.

They are padded where lanes load fragments of them. With the transformation ``swizzle`` boxes have
no padding: columns are exchanged, so that rows and columns lie in all banks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeAlias

from eatss.lower.kernel.instruction import Instruction
from eatss.lower.kernel.nodes import Buffer, Extents, Kernel, Perform, Steps
from eatss.lower.kernel.uses import every_of, read, with_buffers
from eatss.program import Constant

Padding: TypeAlias = Callable[[Buffer, Instruction, int], int]
"""The elements that rows of a box are padded by so that lanes load fragments of it.

The last argument is how many matrices' columns take turns.
"""


def as_declared(buffer: Buffer, _instruction: Instruction, _turns: int) -> int:
    """Return the padding that a box has."""
    return buffer.layout.padding


def padded_for_lanes(kernel: Kernel, padding: Padding, most_shared_bytes: int) -> Kernel:
    """Return a kernel whose boxes have the padding with the fewest conflicts between lanes.

    Only boxes that fragments are loaded from change, and only as far as shared memory is left.
    """
    steps = [*every_of(kernel.body, Steps)]
    loaded = read(node for one in steps for node in one.loads)
    *_, columns = kernel.warps
    for buffer in kernel.shared:
        if buffer not in loaded or buffer.layout.swizzle:
            continue
        by = next(every_of(steps[0].products, Perform)).instruction
        own = replace(buffer.layout, padding=padding(buffer, by, columns.turns))
        other = replace(buffer, layout=own)
        changed = replace(
            kernel,
            shared=tuple(other if one == buffer else one for one in kernel.shared),
            body=with_buffers(kernel.body, {buffer: other}),
        )
        if changed.shared_bytes <= most_shared_bytes:
            kernel = changed
    return kernel


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
        yield buffer, replace(buffer, layout=Extents(extents, swizzle=rows))
