"""How the lanes of a warp meet memory: sectors, lines and banks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from eatss.analysis.work import AccessFacts
from eatss.prediction.demand import Column
from eatss.targets import CUDA

Integers = npt.NDArray[np.int64]

SECTOR_BYTES = 32
LINE_BYTES = 128
BANKS = 32
BANK_BYTES = 4


def lanes_of(threads: Sequence[Column]) -> list[Column]:
    """Return how many lanes of a warp differ along each axis of the block, ``x`` first.

    CUDA numbers the threads of a block along ``x`` first, and 32 in a row are a warp.

    Args:
        threads: threads along each axis, ``x`` first; each an entry a candidate.

    Returns:
        Lanes along each axis, in the same order and shape.
    """
    lanes = []
    left: Column | None = None
    for count in threads:
        if left is None:
            left = np.full(len(count), float(CUDA.lanes))
        along = np.maximum(1.0, np.minimum(count, left))
        lanes.append(along)
        left = np.maximum(1.0, np.floor(left / along))
    return lanes


def sectors(
    lanes: Sequence[Column], steps: Sequence[float], element_bytes: int, offset: int = 0
) -> Column:
    """Return the 32-byte sectors that one request of a warp touches, an entry a candidate.

    A row of lanes that begins inside a sector touches one more than its bytes fill.

    Args:
        lanes: of :func:`lanes_of`.
        steps: bytes between neighbours along each axis, ``x`` first.
        element_bytes: width of an element.
        offset: bytes from the beginning of a sector to that of a row of lanes.
    """
    return _pieces(lanes, steps, element_bytes, SECTOR_BYTES, offset)


def torn_sectors(
    lanes: Sequence[Column], steps: Sequence[float], element_bytes: int, offset: int = 0
) -> Column:
    """Return the sectors of one request that a warp writes in part only, an entry a candidate.

    Lanes beside each other make rows. A row fills the sectors between its ends; where lanes of a
    row have gaps between them it fills none.

    Arguments are those of :func:`sectors`.
    """
    touched = sectors(lanes, steps, element_bytes, offset)
    run = np.full(len(touched), float(element_bytes))  # bytes side by side
    rows, gaps = np.ones(len(touched)), np.zeros(len(touched), dtype=bool)
    for along, step in zip(lanes, steps, strict=True):
        apart = abs(step)
        if apart == 0:
            continue
        beside = run == apart
        if apart < SECTOR_BYTES:
            gaps |= ~beside & (along > 1)
        rows = np.where(beside, rows, rows * along)
        run = np.where(beside, run * along, run)
    inside = run - (-offset % SECTOR_BYTES)  # from the first sector that begins in the row
    whole = np.where(gaps, 0.0, rows * np.maximum(0.0, np.floor(inside / SECTOR_BYTES)))
    return np.asarray(np.maximum(0.0, touched - whole))


def line_wavefronts(
    lanes: Sequence[Column],
    steps: Sequence[float],
    element_bytes: int,
    line_cycles: float,
    offset: int = 0,
) -> Column:
    """Return the cycles that L1 takes for one request of a warp, an entry a candidate.

    It gives 128 bytes to registers in a cycle, so elements of eight bytes take two whatever lanes
    share; each further line takes ``line_cycles``.

    Args:
        lanes: of :func:`lanes_of`.
        steps: bytes between neighbours along each axis, ``x`` first.
        element_bytes: width of an element.
        line_cycles: of :class:`~eatss.prediction.code_constants.CodeConstants`.
        offset: bytes from the beginning of a line to that of a row of lanes.
    """
    least = CUDA.lanes * element_bytes / LINE_BYTES
    lines = _pieces(lanes, steps, element_bytes, LINE_BYTES, offset)
    return np.asarray(least + line_cycles * np.maximum(0.0, lines - least))


def _pieces(
    lanes: Sequence[Column], steps: Sequence[float], element_bytes: int, piece: int, offset: int
) -> Column:
    count = np.ones(len(lanes[0])) if lanes else np.ones(1)
    within = float(element_bytes)  # bytes that lie together so far
    extent = np.full(len(count), within)
    for along, step in zip(lanes, steps, strict=True):
        apart = abs(step)
        if apart == 0:
            continue
        if apart >= piece:
            count = count * along
        else:
            extent = np.maximum(extent, (along - 1) * apart + element_bytes)
    if offset % piece == 0:
        return count * np.ceil(extent / piece)
    # rows of less than a piece lie across two for the share of them that their length says
    return np.asarray(count * (np.ceil(extent / piece) + np.minimum(1.0, extent / piece)))


def bank_wavefronts(
    lanes: Sequence[Column], steps: Sequence[Column | float], element_bytes: int
) -> Column:
    """Return the cycles of one request of a warp to shared memory, an entry a candidate.

    Lanes that want one word share it; different words of one bank wait for each other: 32 banks of
    four bytes [CUDA C++ Programming Guide, shared memory]. Elements of eight bytes go in two halves
    of 16 lanes each, unless no two lanes of the warp want different words of a bank.

    Args:
        lanes: of :func:`lanes_of`.
        steps: elements between neighbours along each axis, ``x`` first.
        element_bytes: width of an element.
    """
    if not lanes:
        return np.ones(1)
    columns = [*lanes, *(np.broadcast_to(step, lanes[0].shape) for step in steps)]
    table = np.stack(columns, axis=1).astype(np.int64)
    unique, back = np.unique(_keys(table), return_index=True, return_inverse=True)[1:]
    return _conflicts(table[unique], len(lanes), element_bytes)[back.reshape(-1)]


def box_wavefronts(
    lanes: Sequence[Column],
    axes: Sequence[str],
    access: AccessFacts,
    sizes: Sequence[Column],
    element_bytes: int,
) -> Column:
    """Return the cycles of one request of a warp to a box in shared memory, an entry a candidate.

    Args:
        lanes: of :func:`lanes_of`.
        axes: the loop along each axis of the block, ``x`` first.
        access: what the lanes read or write of the box.
        sizes: the extents of the box as it is declared, outermost first.
        element_bytes: width of an element.
    """
    steps: dict[str, Column | float] = {}
    apart: Column | float = 1.0
    for (terms, _), size in zip(reversed(access.subscripts), reversed(sizes), strict=True):
        for name, factor in terms:
            steps[name] = steps.get(name, 0.0) + factor * apart
        apart = apart * size
    return bank_wavefronts(lanes, [steps.get(name, 0.0) for name in axes], element_bytes)


def _keys(table: Integers) -> Integers:
    """Return one number a row, equal for equal rows."""
    key = np.zeros(len(table), dtype=np.int64)
    for column in table.T:
        codes = column - column.min()
        width = int(codes.max()) + 1
        if int(key.max()) >= np.iinfo(np.int64).max // width - 1:
            key = np.unique(key, return_inverse=True)[1].reshape(-1)
        key = key * width + codes
    return key


def _conflicts(rows: Integers, axes: int, element_bytes: int) -> Column:
    """Return the cycles of one request for each row of lanes and steps along the axes."""
    left = np.broadcast_to(np.arange(CUDA.lanes), (len(rows), CUDA.lanes))
    address = np.zeros((len(rows), CUDA.lanes), dtype=np.int64)
    for axis in range(axes):
        along, step = rows[:, axis : axis + 1], rows[:, axes + axis : axes + axis + 1]
        address = address + (left % along) * step
        left = left // along
    live = left == 0
    address = np.where(live, address, address[:, :1])  # lanes without work ask for nothing new
    banks = max(1, BANKS * BANK_BYTES // element_bytes)
    together = _most_wanted(address, banks)
    each = CUDA.lanes * BANK_BYTES // max(BANK_BYTES, element_bytes)
    parts = [
        _most_wanted(address[:, at : at + each], banks) * live[:, at : at + each].any(axis=1)
        for at in range(0, CUDA.lanes, each)
    ]
    cycles = np.where(together == 1, 1, np.sum(parts, axis=0))
    return np.asarray(cycles, dtype=np.float64)


def _most_wanted(address: Integers, banks: int) -> Integers:
    """Return how many different elements the bank that most lanes want has, for each row."""
    ordered = np.sort(address, axis=1)
    fresh = np.ones(ordered.shape, dtype=bool)
    fresh[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    numbers = np.broadcast_to(np.arange(len(ordered))[:, None], ordered.shape)
    wanted = np.zeros((len(ordered), banks), dtype=np.int64)
    np.add.at(wanted, (numbers[fresh], (ordered % banks)[fresh]), 1)
    return np.asarray(wanted.max(axis=1))


def lines(lanes: Sequence[Column], steps: Sequence[float], element_bytes: int) -> Column:
    """Return the 128-byte lines that one request of a warp touches, an entry a candidate.

    Args:
        lanes: of :func:`lanes_of`.
        steps: bytes between neighbours along each axis, ``x`` first.
        element_bytes: width of an element.
    """
    return _pieces(lanes, steps, element_bytes, LINE_BYTES, 0)
