"""Shared boxes without padding: columns exchanged, so that rows and columns lie in all banks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from eatss.kernel.nodes import Buffer, Kernel, Layout
from eatss.kernel.uses import with_buffers
from eatss.program import Constant

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
