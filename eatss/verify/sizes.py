"""Which problem sizes to run: nothing, one, less than a tile, partial and full tiles."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, lru_cache
from itertools import islice, pairwise, permutations, product
from math import inf, prod
from pathlib import Path
from random import Random
from typing import TypeAlias

from eatss.base.diagnostics import input_error
from eatss.program import (
    Apply,
    Constant,
    Entry,
    HostIf,
    HostLoop,
    HostStep,
    IntExpr,
    Launch,
    Name,
    Operator,
    Parameter,
    Program,
    evaluate,
)
from eatss.program.expression import Sizes
from eatss.verify.element_types import limits_of

WORK_LIMIT = 3e7
"""Statement instances of one run, about: 30 ms of the original."""

FIXED_WORK_LIMIT = 2e9
"""The same for a program whose sizes are fixed: a few seconds of the original."""

MEMORY_LIMIT_BYTES = 2**28
"""Memory of one run: every argument three times, with error bounds and what watches it."""

AIMED_MEMORY_LIMIT_BYTES, _FREE = (2**30, 11 * 2**28), 2
"""The same at sizes that conditions of kernels ask for: two matrices of 2048 rows; and of 4096,
where so many times as much is free."""

FIXED_MEMORY_LIMIT_BYTES = 2**32
"""The same for a program whose sizes are fixed."""

THREADS_LIMIT = 3e7
"""Threads of all launches of a run: about a second on a CPU."""

_MOST_ALWAYS_BYTES = 2**30
"""The same where arrays are large whatever the sizes are."""

_ASKS_START = re.compile(r"\beatss_is_aligned\((\w+)\)")
_ROWS_IN_GROUPS = re.compile(r"\(int\)blockIdx\.y / (\d+)|\btile / [^;]*? / (\d+)\) \+ block")
_TILE_AHEAD = re.compile(r"\b(\d+) \+ (\d+) <= (\w+)")
_BYTES_PER_ELEMENT = 80
_WORK_PER_ELEMENT = 4
_PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)
_VALUES = (0, 1, 2, 3, 5, 8, 1000, 32768, 46341, 65536, 70000, 2**31 - 1)
_OTHERS = (0, 1, 7, 40, 1000)
_MOST_BOUNDARY, _MOST_MIXED, _MOST_SEARCHED = 16, 24, 4000
_MOST_LAUNCHES = 1e5
_MOST_AROUND = 12
_SEVERAL = (3, 6, 2, 1)
_UNTILED = 16
_MOVED = 8
_MANY, _MOST_MANY = 64, 6e6
_FEW = 0.05

OwnSizes: TypeAlias = dict[str, int]
"""Sizes that may be changed."""

Probe: TypeAlias = tuple[Entry, int, Sizes]
"""An entry, the code its launcher has to return, and sizes."""


def parse_sizes(texts: Sequence[str]) -> tuple[dict[str, int], ...] | None:
    """Turn ``N=37,M=5`` strings into one mapping each; ``None`` if there are none.

    Raises:
        InputError: a text is no list of names with integers.
    """
    found: list[dict[str, int]] = []
    for text in texts:
        sizes: dict[str, int] = {}
        for part in filter(None, text.split(",")):
            name, _, value = part.partition("=")
            try:
                sizes[name.strip()] = int(value)
            except ValueError:
                raise input_error(
                    "EATSS-V008",
                    f"'{text}' gives no sizes",
                    hint="write names and integers, like --size N=37,M=5",
                ) from None
        found.append(sizes)
    return tuple(found) or None


@lru_cache(maxsize=4)
def choose_sizes(program: Program) -> tuple[Sizes, ...]:
    """Choose sizes that between them hit every kind of tile, the smallest first.

    For every parameter that is 0 and 1 alone and together with the others, 2, 3, a size smaller
    than a tile, one less than a tile, a tile, one more, one less than two, and two full tiles and a
    partial one, as far as the original stays below :data:`WORK_LIMIT` and the data below
    :data:`MEMORY_LIMIT_BYTES`. Sizes differ from parameter to parameter, so that exchanged
    strides show; once they are exchanged and once all equal, and once those are small that make
    arrays smaller, and once they are whole tiles where copies of 16 bytes are for such rows. None
    violates an assumption of an entry; parameters that the assumptions fix have their values. A
    program without parameters has one empty choice. There is none where the sizes that are allowed
    are too large.
    """
    fixed, limits = fixed_parameters(program), _limits(program)
    if has_fixed_sizes(program):
        return (fixed,) if _fits(program, fixed, estimated=True) else ()
    ladders = {
        p.name: (fixed[p.name],) if p.name in fixed else _ladder(p, k)
        for k, p in enumerate(program.parameters)
    }
    small = {name: ladder[-1] for name, ladder in ladders.items()}
    wanted: list[OwnSizes] = []
    for value in (0, 1):
        wanted.append(dict.fromkeys(small, value))
        wanted += [{**small, name: value} for name in small if len(small) > 1]
    wanted += [dict.fromkeys(small, value) for value in (2, 3)]
    if all(p.kind == "argument" and limits[p.name][0] < 0 for p in program.parameters):
        negative = dict.fromkeys(small, -3)
        wanted += [negative] if _rows_exist(program, negative) else []
    wanted.append(small)
    depth = max(len(ladder) for ladder in ladders.values())
    steps = [_affordable(program, ladders, step) for step in reversed(range(depth - 1))]
    if steps:
        middle = list(steps[len(steps) // 2].values())
        wanted.append(dict(zip(small, reversed(middle), strict=True)))
        wanted.append(dict.fromkeys(small, min(middle)))
    wanted += steps
    if "eatss_is_aligned" in program.text:
        wanted.append(_whole_vectors(program))
    wanted += islice(_mixed(program, estimated=True), 1)
    chosen = _allowed(program, wanted, exchange=True, estimated=True)
    if not chosen:
        chosen = _allowed(program, _searched(program, ladders), exchange=True, estimated=True)[:1]
    return tuple(sorted(chosen, key=lambda sizes: estimated_work(program, sizes)))


def fixed_parameters(program: Program) -> OwnSizes:
    """Return the parameters that assumptions fix, with their values."""
    names = [parameter.name for parameter in program.parameters]
    fixed: OwnSizes = {}
    for entry in program.entries:
        for assumption in entry.assumptions:
            condition = assumption.condition
            if isinstance(condition, Apply) and condition.operator is Operator.EQ:
                left, right = condition.operands
                if isinstance(left, Name) and left.name in names and isinstance(right, Constant):
                    fixed.setdefault(left.name, right.value)
    return fixed


def has_fixed_sizes(program: Program) -> bool:
    """Tell whether assumptions fix all parameters."""
    return len(fixed_parameters(program)) == len(program.parameters)


def boundary_sizes(program: Program) -> tuple[Sizes, ...]:
    """Choose sizes from 1 to 4, in the same order every time: where conditions change."""
    names = [p.name for p in _free(program)]
    random = Random(len(names))  # noqa: S311 - not for secrets
    every = [{name: random.randint(1, 4) for name in names} for _ in range(4 * _MOST_BOUNDARY)]
    chosen = _allowed(program, every, estimated=True)
    return tuple(chosen[:_MOST_BOUNDARY]) if names else ()


def skewed_sizes(program: Program) -> tuple[Sizes, ...]:
    """Choose sizes one less than two tiles where that needs few threads, whatever work they are.

    There a skewed tile that starts inside is cut off by one.
    """
    free, value = _free(program), 2 * _largest_tile(program) - 1
    chosen = _allowed(program, [{p.name: value for p in free}] if free else [])
    few = _FEW * THREADS_LIMIT
    return tuple(sizes for sizes in chosen if estimated_threads(program, sizes) <= few)


def sizes_around_tiles(program: Program, *, apart: bool) -> tuple[Sizes, ...]:
    """Choose sizes one below a tile of each kernel, or at it where there is one size alone.

    Code for full tiles that runs too soon then reads beyond rows. All sizes are so at once, or
    ``apart`` one after the other, the others whole tiles: where a tile has to be full in several.
    One less than the largest tile of a size is one less than a multiple of each tile that divides
    it. Once all sizes are whole tiles: rows begin where several elements can be moved at a time.
    """
    free, tiles = _free(program), _tiles(program)
    whole = {p.name: p.tile if p.tile > 1 else _UNTILED for p in free}
    below = {p.name: p.tile - 1 for p in free if p.tile > 1}
    wanted = [{**whole, **below}] if below and not apart else []
    if apart:
        wanted = [
            {**whole, p.name: tile - 1}
            for p in free
            for tile in (*(t for t in tiles if t < p.tile and p.tile % t), p.tile)
            if tile > 1
        ]
    if len(free) == 1:
        wanted += [{**whole, free[0].name: tile} for tile in tiles]
    chosen = _allowed(program, wanted)
    even = _allowed(program, [whole] if any(p.tile > 1 for p in free) else [])
    found = (*even, *sorted(chosen, key=_magnitude)[: _MOST_AROUND - len(even)])
    return tuple(sorted({tuple(sizes.items()): sizes for sizes in found}.values(), key=_magnitude))


def steady_sizes(program: Program) -> tuple[Sizes, ...]:
    """Choose sizes of which one is several tiles of some loop, and the others are small.

    A loop over tiles then comes to its steady state at little cost: what it loads ahead it uses.
    The others are once less than a tile, once such that rows begin where several elements can be
    moved at a time (also rows that are one longer), and once one or two whole tiles. Each is 1
    once beside whole tiles: sums of one term, variances that are 0.
    """
    free = _free(program)
    several = {p.name: max(p.tile, _UNTILED) for p in free}
    patterns = (
        (3, _few(free)),
        (_UNTILED, dict.fromkeys(several, _UNTILED)),
        (_UNTILED, several),
        (_UNTILED, {name: 2 * tile for name, tile in several.items()}),
        (_UNTILED, {name: 2 * tile + _UNTILED for name, tile in several.items()}),
        (_UNTILED - 1, dict.fromkeys(several, _UNTILED - 1)),
        (0, {name: tile + _UNTILED for name, tile in several.items()}),
        (3, {name: tile + 1 for name, tile in several.items()}),
    )
    wanted: list[OwnSizes] = []
    if free:  # whole tiles before and behind others, and a loop that is long where tiles are small
        p = min(reversed(free), key=lambda one: several[one.name])
        long = _SEVERAL[0] * several[p.name] + _UNTILED
        wanted.append({**patterns[3][1], p.name: long})
        wanted += [{**several, p.name: 1} for p in free if len(free) > 1]
    for times, (rest, others), p in product(_SEVERAL, patterns, free):
        taken = {other.tile for other in free if other is not p} - {p.tile}
        own = [t for t in _tiles(program) if t <= p.tile and t not in taken] or [_UNTILED // 2]
        wanted += [
            {**others, p.name: times * tile + rest} for tile in dict.fromkeys((own[0], own[-1]))
        ]
    return tuple(_allowed(program, wanted))


def sizes_above_tiles(program: Program, known: Sequence[Sizes]) -> tuple[Sizes, ...]:
    """Choose sizes one above a tile, the others small, for each size of which none is known.

    Once sizes without tiles are many: each element of a row is the largest of some row. Where
    blocks take tiles in groups of rows, there is one group and a row more of them, with as many
    sizes of 0 as leave the kernels something to do. Where a tile is loaded ahead (``k0 + 96 + 32 <=
    N``), once it lacks one element.
    """
    fixed, free = fixed_parameters(program), _free(program)
    few = {**_few(free), **fixed}
    wanted = [
        {**few, p.name: p.tile + 1}
        for p in free
        if p.tile > 1 and all(sizes[p.name] <= p.tile for sizes in known)
    ]
    many = {**{p.name: p.tile - 1 if p.tile > 1 else _MANY for p in free}, **fixed}
    if _MANY in many.values() and estimated_points(program, many) <= _MOST_MANY:
        wanted.append(many)
    wanted += [
        {**few, name: int(ahead) + int(tile) - 1}
        for ahead, tile, name in sorted(set(_TILE_AHEAD.findall(program.text)))
        if name in few and name not in fixed and ahead != "0"
    ]
    for rows, streamed in set(_ROWS_IN_GROUPS.findall(program.text)):
        for p in free:
            sizes = {**few, p.name: int(rows or streamed) * p.tile + 1}
            if streamed or _most_rows(program, sizes) > int(rows):
                wanted.append(_emptied(program, sizes, p.name))
    return tuple(_allowed(program, wanted))


def _few(free: Sequence[Parameter]) -> OwnSizes:
    return {p.name: 3 + k % 3 for k, p in enumerate(free)}


def _most_rows(program: Program, sizes: Sizes) -> int:
    """Return the most rows of blocks that a launch has."""
    rows: list[int] = []

    def note(launch: Launch, blocks: int) -> float:
        rows.append(evaluate(launch.grid[1], sizes) if blocks else 0)
        return 0.0

    _of_launches(program, sizes, note)
    return max(rows, default=0)


def _emptied(program: Program, sizes: OwnSizes, kept: str) -> OwnSizes:
    """Return sizes of which all are 0 but one and those that launches need."""

    def launched(some: Sizes) -> list[frozenset[str]]:
        return [launched_kernels(entry, some) for entry in program.entries]

    for name in sizes:
        fewer = {**sizes, name: 0}
        if name != kept and launched(fewer) == launched(sizes):
            sizes = fewer
    return sizes


def sizes_from(program: Program, least: Sizes, *, affordable: bool = True) -> tuple[Sizes, ...]:
    """Choose sizes of which some are at least so large, and the others small, or a tile.

    They are as large, a little larger, the next multiple of what is moved at a time, two, three and
    six times so large: for loops over tiles, one before and one behind, and those loaded ahead. The
    others are a few elements, what is moved at a time, or almost a tile, of which a block uses all
    threads: once one less, and once by what is moved at a time. Those that are not ``affordable``
    may need any memory and any number of threads.
    """
    free = _free(program)
    few = _few(free)
    patterns = (
        few,
        dict.fromkeys(few, _UNTILED),
        {p.name: p.tile - 1 if p.tile > 3 else 1 for p in free},
        {p.name: p.tile - _MOVED if p.tile > _UNTILED else max(p.tile, 2) for p in free},
    )
    wanted: list[OwnSizes] = []
    for times, rest, others in product((1, 2, 3, 6), (0, 3, _UNTILED), patterns):
        large = {
            name: times * value + rest if rest <= 3 else -(-times * value // rest) * rest + rest
            for name, value in least.items()
            if value > others.get(name, 0)
        }
        wanted.append({**others, **large})
    return tuple(_allowed(program, wanted, memory=_aimed_memory_bytes() if affordable else inf))


def fits(program: Program, sizes: Sizes) -> bool:
    """Tell whether every entry accepts sizes that conditions ask for, and a run has the memory."""
    return _accepted(program, sizes) and _fits(program, sizes, memory=_aimed_memory_bytes())


def _accepted(program: Program, sizes: Sizes) -> bool:
    return all(broken_assumption(entry, sizes) is None for entry in program.entries)


@cache
def _aimed_memory_bytes() -> int:
    """Return the memory of a run at sizes that conditions ask for; much only where it is free."""
    least, most = AIMED_MEMORY_LIMIT_BYTES
    with suppress(OSError):
        free = re.search(r"MemAvailable:\s*(\d+) kB", Path("/proc/meminfo").read_text())
        return most if free and int(free[1]) * 1024 >= _FREE * most else least
    return least


@lru_cache(maxsize=1)
def _asked_for_start(text: str) -> frozenset[str]:
    """Return the arrays of which a text asks where they start."""
    return frozenset(_ASKS_START.findall(text))


def moved_by_vectors(program: Program, entry: Entry) -> list[int]:
    """Return the numbers of the arrays of which a kernel asks where they start."""
    names = _asked_for_start(program.text)
    return [k for k, one in enumerate(entry.arguments) if one.role == "array" and one.name in names]


def _free(program: Program) -> list[Parameter]:
    """Return the parameters that no assumption fixes."""
    fixed = fixed_parameters(program)
    return [p for p in program.parameters if p.name not in fixed]


def _tiles(program: Program) -> list[int]:
    """Return the different tile sizes of all kernels."""
    return sorted({size for kernel in program.kernels for _, size in kernel.tile_sizes} - {1})


def mixed_sizes(program: Program) -> tuple[Sizes, ...]:
    """Choose sizes of which some are above a tile and others small, those of the largest arrays.

    Their work is not estimated, only memory and threads are: whoever runs them has to stop the
    original where it takes too long.
    """
    found = islice(_mixed(program, estimated=False), _MOST_MIXED)
    return tuple(sorted(found, key=lambda sizes: estimated_points(program, sizes)))


def _mixed(program: Program, *, estimated: bool) -> Iterator[OwnSizes]:
    fixed = fixed_parameters(program)
    free = [(k, p) for k, p in enumerate(program.parameters) if p.name not in fixed]
    if not free:
        return
    largest = _largest_tile(program)
    above = [times * largest + 3 for times in (1, 2, 4)]  # skewed tiles are full from there on
    most = 6 if len(free) <= 4 else 4
    values = [
        tuple(dict.fromkeys((_ladder(p, k)[0], max(1, p.tile), 3 + k % 3, *above)))[:most]
        for k, p in free
    ]
    found = [
        dict(zip((p.name for _, p in free), chosen, strict=True))
        for chosen in islice(product(*values), _MOST_SEARCHED)
    ]
    fitting = _allowed(program, found, estimated=estimated)
    yield from sorted(
        fitting, key=lambda sizes: (-_least_array(program, sizes), sum(sizes.values()))
    )


def _largest_tile(program: Program) -> int:
    return max((size for kernel in program.kernels for _, size in kernel.tile_sizes), default=1)


def _least_array(program: Program, sizes: Sizes) -> int:
    """Return the smallest extent of the arrays that are written."""
    extents = [
        evaluate(extent, sizes)
        for entry in program.entries
        for argument in entry.arguments
        if argument.writes
        for extent in argument.shape
    ]
    return min(extents, default=1)


def _allowed(
    program: Program,
    wanted: Sequence[OwnSizes],
    *,
    exchange: bool = False,
    estimated: bool = False,
    memory: float = MEMORY_LIMIT_BYTES,
) -> list[OwnSizes]:
    """Return sizes that every entry accepts and that fit, each once; near ones for others.

    Those that assumptions fix are put in. Where there is ``memory`` without end, all fit.
    """
    chosen: dict[tuple[int, ...], OwnSizes] = {}
    limits, fixed = _limits(program), fixed_parameters(program)
    for sizes in ({**one, **fixed} for one in wanted):
        ordered = {p.name: _nearest(sizes[p.name], *limits[p.name]) for p in program.parameters}
        near = _nearest_allowed(program, ordered) if exchange else ordered
        if near is None or not _accepted(program, near):
            continue
        if memory == inf or _fits(program, near, estimated=estimated, memory=memory):
            chosen.setdefault(tuple(near.values()), near)
    return list(chosen.values())


def _searched(program: Program, ladders: Mapping[str, tuple[int, ...]]) -> list[OwnSizes]:
    """Return many sizes, for programs that accept none of the usual ones."""
    values: list[list[int]] = []
    for parameter, ladder in zip(program.parameters, ladders.values(), strict=True):
        own = () if parameter.default is None else (parameter.default,)
        values.append(list(ladder) if len(ladder) == 1 else sorted({*range(1, 9), *ladder, *own}))
    every = islice(product(*values), _MOST_SEARCHED)
    return [dict(zip(ladders, each, strict=True)) for each in every]


def _fits(
    program: Program,
    sizes: Sizes,
    *,
    estimated: bool = False,
    memory: float = MEMORY_LIMIT_BYTES,
) -> bool:
    """Tell whether a run at these sizes is within the limits.

    What arrays have at any sizes (``A[1024][1024]``) counts as those of fixed programs do.
    """
    fixed = has_fixed_sizes(program)
    work, memory = (FIXED_WORK_LIMIT, FIXED_MEMORY_LIMIT_BYTES) if fixed else (WORK_LIMIT, memory)
    always = sum(_elements(program, dict.fromkeys(sizes, 0)))
    elements = sum(_elements(program, sizes))
    if not fixed and _BYTES_PER_ELEMENT * elements > max(memory, _MOST_ALWAYS_BYTES):
        return False
    if _BYTES_PER_ELEMENT * (elements if fixed else elements - always) > memory:
        return False
    if estimated:
        return estimated_work(program, sizes) - (0 if fixed else _WORK_PER_ELEMENT * always) <= work
    return estimated_threads(program, sizes) <= THREADS_LIMIT


def _elements(program: Program, sizes: Sizes) -> list[int]:
    """Return how many elements each array of each entry has, its own ones included."""
    shapes: list[tuple[IntExpr, ...]] = []
    for entry in program.entries:
        shapes += [argument.shape for argument in entry.arguments]
        shapes += [temporary.shape for temporary in entry.temporaries]
    return [prod(max(0, evaluate(extent, sizes)) for extent in shape) for shape in shapes]


def _rows_exist(program: Program, sizes: Sizes) -> bool:
    """Tell whether no row of an array has a negative length, for which C has no meaning."""
    return all(
        evaluate(extent, sizes) >= 0
        for entry in program.entries
        for argument in entry.arguments
        for extent in argument.shape[1:]
    )


def _limits(program: Program) -> dict[str, tuple[int, int]]:
    """Return the least and the greatest value of each size; that of no argument is an ``int``."""
    given = {a.name for entry in program.entries for a in entry.arguments if a.role == "parameter"}
    found = {
        p.name: (-(2**31), 2**31 - 1)
        for p in program.parameters
        if p.kind == "macro" or p.name not in given
    }
    for entry in program.entries:
        for argument in entry.arguments:
            if argument.role == "parameter":
                least, most = limits_of(argument)
                known = found.get(argument.name, (least, most))
                found[argument.name] = max(least, known[0]), min(most, known[1])
    return found


def _nearest(value: int, least: int, most: int) -> int:
    """Return the value of a type that stands for a number: both of ``bool`` are tried."""
    return abs(value) % 2 if most == 1 else min(max(value, least), most)


def refused_sizes(program: Program) -> tuple[Probe, ...]:
    """Find sizes at which entries have to refuse to run.

    Returns:
        Entry, the code its launcher has to return, and sizes; at most one an assumption, none
        for an assumption that holds at all sizes tried. Where one size alone breaks an
        assumption, it breaks it by one; of such sizes these are the smallest.
    """
    return tuple(_smallest(_edges(program)).values())


def edge_sizes(program: Program) -> tuple[Probe, ...]:
    """Find more sizes on both sides of where an entry begins to refuse, as few launches take."""
    refused = refused_sizes(program)
    return tuple(
        probe
        for probe in _edges(program)
        if probe not in refused and (probe[1] or _launches(probe[0], probe[2]) <= _MOST_LAUNCHES)
    )


def _smallest(probes: Sequence[Probe]) -> dict[tuple[str, int], Probe]:
    """Return, of each code with which an entry refuses, the probe of the smallest sizes."""
    found: dict[tuple[str, int], Probe] = {}
    for entry, code, sizes in sorted(probes, key=lambda probe: (-probe[1], _magnitude(probe[2]))):
        if code:
            found.setdefault((entry.launcher, code), (entry, code, sizes))
    return found


@lru_cache(maxsize=1)
def _edges(program: Program) -> tuple[Probe, ...]:
    """Return sizes on both sides of where the code of an entry changes along one of them.

    The others are alike but for one, or what assumptions fix. Of a code that no such change leads
    to there are some sizes, too.
    """
    limits = _limits(program)
    found: list[Probe] = []
    for entry in program.entries:
        edges: list[Probe] = []
        tried: list[Probe] = []
        for name, base in _bases(program, limits):
            least, most = limits[name]
            around = (base[name] - 1, base[name], base[name] + 1)
            values = sorted({value for value in (*_VALUES, *around) if least <= value <= most})
            line = [_probe(entry, {**base, name: value}) for value in values]
            tried += line
            for low, high in pairwise(line):
                if low[1] != high[1]:
                    edges += _edge(entry, name, low, high)
        seen = _smallest(edges)
        edges += [probe for at, probe in _smallest(tried).items() if at not in seen]
        found += {tuple(sizes.items()): (entry, code, sizes) for _, code, sizes in edges}.values()
    return tuple(found)


def _bases(
    program: Program, limits: Mapping[str, tuple[int, int]]
) -> Iterator[tuple[str, OwnSizes]]:
    """Yield sizes and which of them is to change: the others are alike, or one is large."""
    names, fixed = [parameter.name for parameter in program.parameters], fixed_parameters(program)
    bases = [dict.fromkeys(names, value) for value in _OTHERS]
    bases += [{**dict.fromkeys(names, 1), large: _VALUES[-3]} for large in names]
    for name, base in product(names, bases):
        yield name, {one: _nearest(base[one], *limits[one]) for one in names} | fixed


def _edge(entry: Entry, name: str, low: Probe, high: Probe) -> tuple[Probe, Probe]:
    """Return neighbours between two probes that differ in one size, with different codes."""
    while high[2][name] - low[2][name] > 1:
        middle = _probe(entry, {**low[2], name: (low[2][name] + high[2][name]) // 2})
        low, high = (middle, high) if middle[1] == low[1] else (low, middle)
    return low, high


def _probe(entry: Entry, sizes: Sizes) -> Probe:
    return entry, expected_code(entry, sizes), sizes


def expected_code(entry: Entry, sizes: Sizes) -> int:
    """Return the code with which an entry has to refuse sizes; 0 if it has to run."""
    broken = broken_assumption(entry, sizes)
    return 0 if broken is None else -broken - 1


def _magnitude(sizes: Sizes) -> int:
    return sum(abs(value) for value in sizes.values())


def _launches(entry: Entry, sizes: Sizes) -> float:
    """Return how many launches an entry has, and rounds of its loops."""
    return _of_steps(entry.body, sizes, lambda _, __: 1.0)


def broken_assumption(entry: Entry, sizes: Sizes) -> int | None:
    """Return the number of the first assumption that does not hold."""
    for number, assumption in enumerate(entry.assumptions):
        if not evaluate(assumption.condition, sizes):
            return number
    return None


def estimated_work(program: Program, sizes: Sizes) -> float:
    """Estimate the statement instances of a run, roughly and rather too many.

    Host loops are counted, inside a kernel every tiled loop counts as long as the largest sizes
    are, and at least as many loops count as an array has dimensions. Data that have to be made,
    copied and compared count as well.
    """
    dims = _dimensions(program)
    longest = sorted((max(1, value) for value in sizes.values()), reverse=True)

    def of_kernel(name: str) -> float:
        kernel = program.kernel(name)
        loops = max(len(kernel.tile_sizes) or 2, dims)
        if not longest:
            return float(prod(size for _, size in kernel.tile_sizes))
        return float(prod(longest[k] if k < len(longest) else longest[0] for k in range(loops)))

    def of_launch(launch: Launch, blocks: int) -> float:
        return of_kernel(launch.kernel) * (min(1, blocks) if longest else blocks)

    of_data = _WORK_PER_ELEMENT * sum(_elements(program, sizes))
    return of_data + _of_launches(program, sizes, of_launch)


def _dimensions(program: Program) -> int:
    """Return the most dimensions that an array has."""
    return max((len(a.shape) for entry in program.entries for a in entry.arguments), default=1)


def estimated_points(program: Program, sizes: Sizes, *, tiles_only: bool = False) -> float:
    """Estimate the points of a run's tiles, partial ones counted whole: its time in proportion.

    A loop is taken to run over the sizes that have its tile, or over the largest of all. Elements
    of arrays count as well, unless tiles are asked for only.
    """
    longest = max((1, *sizes.values()))
    dims = _dimensions(program)

    def of_launch(launch: Launch, blocks: int) -> float:
        kernel = program.kernel(launch.kernel)
        tiles = [max(1, size) for _, size in kernel.tile_sizes]
        tiles += [1] * ((dims if tiles else max(2, dims)) - len(tiles))
        whole = 1.0
        for tile in tiles:
            own = [sizes[p.name] for p in program.parameters if p.tile == tile]
            whole *= -(-max(1, max(own, default=longest)) // tile)
        points = max(prod(tiles), prod(kernel.block))
        return points * max(blocks, whole) if blocks else 0.0

    return _of_launches(program, sizes, of_launch) + (
        0.0 if tiles_only else 1.0 + sum(_elements(program, sizes))
    )


def estimated_threads(program: Program, sizes: Sizes) -> float:
    """Return how many threads all launches of a run have; a host loop's rounds are alike."""
    return _of_launches(
        program, sizes, lambda launch, blocks: blocks * prod(program.kernel(launch.kernel).block)
    )


def launched_kernels(entry: Entry, sizes: Sizes) -> frozenset[str]:
    """Return the kernels that an entry launches at some sizes; a host loop's rounds are alike."""
    names: set[str] = set()

    def note(launch: Launch, blocks: int) -> float:
        names.update((launch.kernel,) if blocks else ())
        return 0.0

    _of_steps(entry.body, sizes, note)
    return frozenset(names)


def _of_launches(
    program: Program, sizes: Sizes, of_launch: Callable[[Launch, int], float]
) -> float:
    """Add up what :func:`_of_steps` says of all entries."""
    return sum(_of_steps(entry.body, sizes, of_launch) for entry in program.entries)


def _of_steps(
    steps: Sequence[HostStep],
    values: Sizes,
    of_launch: Callable[[Launch, int], float],
) -> float:
    """Add up what ``of_launch`` says of each launch and its blocks; a round of a loop is 1 more."""
    total = 0.0
    for step in steps:
        if isinstance(step, HostIf):
            if evaluate(step.condition, values):
                total += _of_steps(step.body, values, of_launch)
        elif isinstance(step, HostLoop):
            lower, upper = evaluate(step.lower, values), evaluate(step.upper, values)
            count = max(0, (upper - lower) // step.step + 1)
            middle = {**values, step.counter: (lower + upper) // 2}
            total += count * (1.0 + _of_steps(step.body, middle, of_launch)) if count else 0.0
        else:
            blocks = prod(max(0, evaluate(extent, values)) for extent in step.grid)
            total += of_launch(step, blocks)
    return total


def _whole_vectors(program: Program) -> OwnSizes:
    """Return sizes of which all are multiples of 16, some tiles long."""
    tiled = {p.name: -(-max(1, p.tile) // _UNTILED) * _UNTILED for p in program.parameters}
    for times in (4, 3, 2):
        sizes = {name: times * tile for name, tile in tiled.items()}
        if _fits(program, sizes, estimated=True):
            return sizes
    return tiled


def _ladder(parameter: Parameter, number: int) -> tuple[int, ...]:
    """Return sizes of a parameter, the largest first, the last one smaller than a tile."""
    tile = parameter.tile
    shift = _PRIMES[number % len(_PRIMES)]
    if tile <= 1:
        return (11 + shift, 5 + shift, 3, 2 + number % 3)
    below = max((p for p in _PRIMES if p < tile and p <= 5 + 3 * number), default=1)
    inside = [size for size in (101 + shift, 31 + shift) if size < tile]
    around = (tile + 1, tile, tile - 1) if tile > 2 else (tile + 1, tile)
    above = (2 * tile + shift, 2 * tile - 1, _prime_above(tile + 1, number))
    return (*above, *around, *inside, below)


def _affordable(program: Program, ladders: Mapping[str, tuple[int, ...]], step: int) -> OwnSizes:
    """Return step ``step`` of all ladders; what is too much goes down, the largest first."""
    places = {name: min(step, len(ladder) - 1) for name, ladder in ladders.items()}
    while True:
        sizes = {name: ladders[name][place] for name, place in places.items()}
        lower = [name for name, place in places.items() if place < len(ladders[name]) - 1]
        if not lower or _fits(program, sizes, estimated=True):
            return sizes
        untiled = [p.name for p in program.parameters if p.name in lower and p.tile <= 1]
        first = max(untiled or lower, key=lambda name: sizes[name])
        places[first] += 1


def _nearest_allowed(program: Program, sizes: OwnSizes) -> OwnSizes | None:
    """Return sizes that every entry accepts: these, exchanged, or all equal to the largest."""
    names = tuple(sizes)
    orders = permutations(sizes.values()) if len(names) <= 4 else iter([tuple(sizes.values())])
    equal = [(max(sizes.values()),) * len(names), (min(sizes.values()),) * len(names)]
    for values in (*orders, *equal):
        candidate = dict(zip(names, values, strict=True))
        if _accepted(program, candidate):
            return candidate
    return None


def _prime_above(start: int, skipped: int) -> int:
    """Return a prime number larger than ``start``, ``skipped`` primes between them."""
    number = start
    for _ in range(skipped + 1):
        number += 1
        while any(number % divisor == 0 for divisor in range(2, int(number**0.5) + 1)):
            number += 1
    return number
