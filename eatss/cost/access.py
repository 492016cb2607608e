"""How the lanes of a warp meet memory: sectors, lines and banks.

Numbers have an entry a candidate. ``lanes`` are those of a warp along each axis of the block, ``x``
first [:func:`eatss.plan.launch.lanes_of`]; ``steps`` are the bytes between neighbours along them.

The arithmetic of a statement: instructions, and cycles until a result is there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from eatss.analysis.facts import AccessFacts, StatementFacts
from eatss.base.quotients import STEPS
from eatss.base.tape import whole
from eatss.base.targets import CUDA
from eatss.cost.card import SCHEDULERS, Card, CodeConstants
from eatss.plan.intervals import Interval, at_least, beyond
from eatss.plan.numbers import Flag, Number, no

Integers = npt.NDArray[np.int64]

SECTOR_BYTES = 32
LINE_BYTES = 128
BANKS = 32
BANK_BYTES = 4


def sectors(
    lanes: Sequence[Number],
    steps: Sequence[float],
    element_bytes: int,
    offset: int = 0,
    working: Number = 1.0,
) -> Number:
    """Return the 32-byte sectors that one request of a warp touches.

    A row of lanes that begins inside a sector, by ``offset`` bytes, touches one more than its bytes
    fill. Of all lanes so many are known to be ``working``, at least.
    """
    return _pieces(lanes, steps, element_bytes, SECTOR_BYTES, offset, working)


def lines(
    lanes: Sequence[Number],
    steps: Sequence[float],
    element_bytes: int,
    offset: int = 0,
    working: Number = 1.0,
) -> Number:
    """Return the 128-byte lines that one request of a warp touches."""
    return _pieces(lanes, steps, element_bytes, LINE_BYTES, offset, working)


def torn_sectors(
    lanes: Sequence[Number], steps: Sequence[float], element_bytes: int, offset: int = 0
) -> Number:
    """Return the sectors of one request that a warp writes in part only.

    Lanes beside each other make rows. A row fills the sectors between its ends; where lanes of a
    row have gaps between them it fills none.
    """
    run: Number = float(element_bytes)  # bytes side by side
    rows: Number = 1.0
    gaps: Flag = False
    for along, step in zip(lanes, steps, strict=True):
        apart = abs(step)
        if apart == 0:
            continue
        beside = run == apart
        if apart < SECTOR_BYTES:
            gaps = gaps | (no(beside) & (along > 1))
        rows = np.where(beside, rows, rows * along)
        run = np.where(beside, run * along, run)
    inside = run - (-offset % SECTOR_BYTES)  # from the first sector that begins in the row
    whole = np.where(gaps, 0.0, rows * np.maximum(0.0, np.floor(inside / SECTOR_BYTES)))
    return beyond(sectors(lanes, steps, element_bytes, offset), whole)


def _pieces(
    lanes: Sequence[Number],
    steps: Sequence[float],
    element_bytes: int,
    piece: int,
    offset: int,
    working: Number,
) -> Number:
    count: Number = 1.0
    beside: Number = 1.0
    extent: Number = float(element_bytes)  # bytes that lie together so far
    for along, step in zip(lanes, steps, strict=True):
        apart = abs(step)
        if apart >= piece:
            count = count * along
            continue
        beside = beside * along
        if apart:
            extent = np.maximum(extent, (along - 1) * apart + element_bytes)
    count = at_least(count, working / beside)
    # rows that begin inside a piece lie across one more for the share that their length says
    more = np.minimum(1.0, extent / piece) if offset % piece else 0.0
    return count * (np.ceil(extent / piece) + more)


def bank_wavefronts(lanes: Sequence[Number], steps: Sequence[Number], element_bytes: int) -> Number:
    """Return the cycles of one request of a warp to shared memory.

    Lanes that want one word share it; different words of one bank wait for each other: 32 banks of
    four bytes [CUDA C++ Programming Guide, shared memory]. Elements of eight bytes go in two halves
    of 16 lanes each, unless no two lanes of the warp want different words of a bank. Here ``steps``
    are elements.
    """
    if not lanes:
        return 1.0
    numbers = *lanes, *steps
    if not any(isinstance(one, Interval) for one in numbers):
        return whole(_wavefronts_of, element_bytes, *numbers)
    ends = [(one.low, one.high) if isinstance(one, Interval) else (one, one) for one in numbers]
    return Interval(whole(_least_wavefronts, element_bytes, *chain(*ends)), float(CUDA.lanes))


def _wavefronts_of(element_bytes: int, *numbers: Any) -> npt.NDArray[np.float64]:
    table = _table(numbers)
    return _wavefronts(table.reshape(-1, len(numbers)), element_bytes).reshape(table.shape[:-1])


def _least_wavefronts(element_bytes: int, *ends: Any) -> npt.NDArray[np.float64]:
    """Return the least cycles of all requests of boxes, each of whose ends are two columns."""
    least, most = _table(ends[::2]), _table(ends[1::2])
    counts = np.minimum(most - least, _MOST_OF_BOX) + 1
    cases = counts.prod(axis=1)
    found, few = np.ones(len(least)), cases <= _MOST_OF_BOX
    if few.any():
        begins = cases[few].cumsum() - cases[few]
        rows, every = (np.repeat(own[few], cases[few], axis=0) for own in (least, counts))
        number = np.arange(len(rows)) - np.repeat(begins, cases[few])
        for at, count in enumerate(every.T):
            rows[:, at] += number % count
            number //= count
        found[few] = np.minimum.reduceat(_wavefronts(rows, element_bytes), begins)
    return found


_MOST_OF_BOX = 32
"""Requests that a box of them is looked through for."""


def _table(columns: Sequence[Number]) -> Integers:
    return np.stack(np.broadcast_arrays(*columns), axis=-1).astype(np.int64)


def _wavefronts(table: Integers, element_bytes: int) -> npt.NDArray[np.float64]:
    """Return the cycles of requests, for each row of lanes and steps along as many axes.

    Where steps along one axis go further than all lanes along the other reach, elements differ,
    and only the remainders of steps by the number of banks count. What was asked for is kept then.
    """
    banks, axes = max(1, BANKS * BANK_BYTES // element_bytes), table.shape[1] // 2
    if axes > len(("x", "y")):
        return _each_once(table, element_bytes)
    lanes, steps = np.split(np.ascontiguousarray(table.T), 2)
    steps = steps * (lanes > 1)
    lengths: Any = np.abs(steps)
    reach = (lanes - 1) * lengths
    apart = (lengths[-1] > reach[0]) | (lengths[0] > reach[-1]) | (lengths.min(axis=0) == 0)
    apart = (apart | (axes == 1)) & (lanes.max(axis=0) <= CUDA.lanes)
    known = _known(element_bytes, banks, axes)
    remainders = np.where(steps == 0, 0, 1 + (steps - 1) % banks)
    place = np.ravel_multi_index((*lanes, *remainders), known.shape, mode="clip")
    found = np.where(apart, known.ravel()[place], 0.0)
    new = found == 0
    if new.any():
        found[new] = _each_once(table[new], element_bytes)
        kept = new & apart
        known.ravel()[place[kept]] = found[kept]
    return found


@lru_cache
def _known(element_bytes: int, banks: int, axes: int) -> npt.NDArray[np.int8]:
    """Return the cycles that are kept, by lanes and remainders of steps; of others 0."""
    return np.zeros([*[CUDA.lanes + 1] * axes, *[banks + 1] * axes], dtype=np.int8)


def _each_once(rows: Integers, element_bytes: int) -> npt.NDArray[np.float64]:
    unique, back = np.unique(_keys(rows), return_index=True, return_inverse=True)[1:]
    return _conflicts(rows[unique], rows.shape[1] // 2, element_bytes)[back.reshape(-1)]


def box_wavefronts(
    lanes: Sequence[Number],
    axes: Sequence[str],
    access: AccessFacts,
    sizes: Sequence[Number],
    element_bytes: int,
    together: int = 1,
) -> Number:
    """Return the cycles of one request of a warp to a tile in shared memory.

    Args:
        lanes: of a warp along each axis.
        axes: the loop along each axis of the block, ``x`` first.
        access: what the lanes read or write of the tile.
        sizes: the extents of the tile as it is declared, outermost first.
        element_bytes: width of an element.
        together: elements that lie beside each other and that a lane asks for.
    """
    steps: dict[str, Number] = {}
    apart: Number = 1.0
    for terms, size in zip(reversed(access.terms), reversed(sizes), strict=True):
        for name, factor in terms:
            steps[name] = steps.get(name, 0.0) + factor * apart
        apart = apart * size
    apart_by = [steps.get(name, 0.0) / together for name in axes]
    return bank_wavefronts(lanes, apart_by, element_bytes * together)


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


def _conflicts(rows: Integers, axes: int, element_bytes: int) -> npt.NDArray[np.float64]:
    """Return the cycles of one request for each row of lanes and steps along the axes."""
    most = np.abs(rows[:, axes:]).max(initial=0) * CUDA.lanes * axes
    kind: Any = np.int32 if most < np.iinfo(np.int32).max else np.int64  # half the bytes to sort
    rows = rows.astype(kind)
    left = np.broadcast_to(np.arange(CUDA.lanes, dtype=kind), (len(rows), CUDA.lanes))
    address = np.zeros((len(rows), CUDA.lanes), dtype=kind)
    for axis in range(axes):
        along, step = rows[:, axis : axis + 1], rows[:, axes + axis : axes + axis + 1]
        address = address + (left % along) * step
        left = left // along
    live = left == 0
    address = np.where(live, address, address[:, :1])  # lanes without work ask for nothing new
    banks = max(1, BANKS * BANK_BYTES // element_bytes)
    cycles = np.ones(len(rows))
    met = _most_wanted(address, banks) > 1
    address, live = address[met], live[met]
    each = CUDA.lanes * BANK_BYTES // max(BANK_BYTES, element_bytes)
    cycles[met] = sum(
        _most_wanted(address[:, at : at + each], banks) * live[:, at : at + each].any(axis=1)
        for at in range(0, CUDA.lanes, each)
    )
    return cycles


def _most_wanted(address: Integers, banks: int) -> Integers:
    """Return how many different elements the bank that most lanes want has, for each row."""
    ordered = np.sort(address, axis=1)
    fresh = np.ones(ordered.shape, dtype=bool)
    fresh[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    places = ordered % banks + banks * np.arange(len(ordered))[:, None]
    wanted = np.bincount(places[fresh], minlength=banks * len(ordered))
    return np.asarray(wanted.reshape(-1, banks).max(axis=1))


_WIDE_BYTES = 8
INTEGER_PRODUCT = 2.0
"""Instructions of units for floats whose time a multiply-add of integers takes: 64 of an SM in a
cycle, of cards with 128 such units [CUDA C++ Programming Guide, arithmetic instructions]."""

_OF_UNITS = 0.35
"""Share of a 64-bit division or root that units for doubles run: 9 of 20 instructions in machine
code; this is from what two stencils took on an H200."""

_SLOW = ("divide", "square root", "function")
_QUOTIENT = "quotient"


def is_wide(statement: StatementFacts) -> bool:
    """Tell whether a statement computes in double precision."""
    return statement.element_bytes >= _WIDE_BYTES


def instructions_of(statement: StatementFacts, constants: CodeConstants) -> float:
    """Return the floating-point instructions of an instance, and as many as products of integers.

    A product and a sum are one where they meet; a division is as many as its iteration takes.
    """
    return _instructions(statement, dict(statement.operations), constants) + _integers(statement)


def slow_instructions(statement: StatementFacts, constants: CodeConstants) -> float:
    """Return the instructions of 64-bit divisions, roots and functions that other units run."""
    share = (1.0 - _OF_UNITS) * is_wide(statement)
    return _slow(dict(statement.operations)) * constants.division64 * share


def unrolled_instructions(
    statement: StatementFacts, constants: CodeConstants, steps: Mapping[str, Number]
) -> Number:
    """Return the same where a thread runs steps of loops at a time: some operations serve several.

    ``alpha * A[i][k]`` runs once for all points of a thread along ``j``.

    Args:
        statement: the statement.
        constants: what a division takes.
        steps: of each loop those that the compiler sees at a time, an entry a candidate.
    """
    left = Counter(dict(statement.operations))
    total: Number = 0.0
    for loops, kinds in statement.repeated:
        left.subtract(dict(kinds))
        own = _instructions(statement, dict(kinds), constants)
        same = [n for n in statement.loops if n in steps and n not in loops]
        total = total + own / prod((steps[name] for name in same), start=np.float64(1.0))
    return total + _instructions(statement, left, constants) + _integers(statement)


def issue_cycles(statement: StatementFacts, card: Card, instructions: Number) -> Number:
    """Return the cycles in which the units of a scheduler run floating-point instructions."""
    rate = card.fp64_per_cycle if is_wide(statement) else card.fp32_per_cycle
    return instructions * card.warp * SCHEDULERS / rate


def result_cycles(statement: StatementFacts, card: Card, constants: CodeConstants) -> float:
    """Return the cycles from one result of a statement to the next that needs it."""
    fast = card.fp64_cycles if is_wide(statement) else card.fp32_cycles
    return constants.result_wait * fast + slow_cycles(statement, card, constants)


def slow_cycles(statement: StatementFacts, card: Card, constants: CodeConstants) -> float:
    """Return the part of :func:`result_cycles` that divisions, roots and functions take."""
    wide, counts = is_wide(statement), dict(statement.operations)
    each = card.fp64_div_cycles if wide else card.fp32_div_cycles
    steps = STEPS * (card.fp64_cycles if wide else card.fp32_cycles)
    quotient = steps if constants.quotient else each
    return division_cycles(statement, card) + counts.get(_QUOTIENT, 0) * quotient


def division_cycles(statement: StatementFacts, card: Card) -> float:
    """Return the same of those that are no quotients by literals."""
    each = card.fp64_div_cycles if is_wide(statement) else card.fp32_div_cycles
    return _slow(dict(statement.operations)) * each


def with_fused_quotients(statement: StatementFacts, number: int) -> StatementFacts:
    """Return a statement of whose divisions a number are quotients with a reciprocal.

    All that are counted, where others do not always run.
    """
    counts = Counter(dict(statement.operations))
    number = min(number, counts["divide"])
    counts.subtract({"divide": number})
    counts[_QUOTIENT] += number
    return replace(statement, operations=tuple((kind, own) for kind, own in counts.items() if own))


def _instructions(
    statement: StatementFacts, counts: Mapping[str, int], constants: CodeConstants
) -> float:
    fused = max(counts.get("add", 0), counts.get("multiply", 0)) + counts.get("compare", 0)
    each = constants.division64 if is_wide(statement) else constants.division32
    quotient = constants.quotient or each
    return fused + _slow(counts) * each + counts.get(_QUOTIENT, 0) * quotient


def _integers(statement: StatementFacts) -> float:
    return INTEGER_PRODUCT * statement.integer_products


def _slow(counts: Mapping[str, int]) -> int:
    return sum(counts.get(kind, 0) for kind in _SLOW)
