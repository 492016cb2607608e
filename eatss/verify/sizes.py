"""Which problem sizes to run: nothing, one, less than a tile, partial and full tiles."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import islice, pairwise, product
from math import inf, prod
from random import Random
from typing import TypeAlias

from eatss.base.diagnostics import input_error
from eatss.base.frozen import Numbers, their_names
from eatss.base.options import parse_numbers
from eatss.program import (
    Apply,
    Constant,
    Entry,
    HostIf,
    HostLoop,
    HostStep,
    IntExpr,
    KernelCode,
    Name,
    Operator,
    Parameter,
    Program,
    evaluate,
)
from eatss.program.expression import OwnSizes, Sizes
from eatss.verify.conditions import Conditions
from eatss.verify.data import limits_of, shape_at
from eatss.verify.instrumentation import Branch

WORK_LIMIT = 3e7
"""Statement instances of one run, about: 30 ms of the original."""

FIXED_WORK_LIMIT = 2e9
"""The same for a program whose sizes are fixed: a few seconds of the original."""

MEMORY_LIMIT_BYTES = 2**28
"""Memory of one run: every argument three times, with error bounds and what watches it."""

AIMED_MEMORY_LIMIT_BYTES = 2**30
"""The same at sizes that conditions of kernels ask for: two matrices of 2048 rows."""

FIXED_MEMORY_LIMIT_BYTES = 2**32
"""The same for a program whose sizes are fixed."""

POINTS_LIMIT = 1e9
"""Points of all tiles of a run whose work is not estimated."""

_MOST_ALWAYS_BYTES = 2**30
"""The same where arrays are large whatever the sizes are."""

TESTS_VALUES = "eatss_is_finite("
"""What code calls that looks for infinite values."""

TESTS_QUOTIENTS = "eatss_quotient<"
"""What code calls that looks for quotients that are infinite, no numbers or subnormal."""

ASKS_QUOTIENTS = re.compile(r"\bexact\w* == 0")
"""A condition that asks what that has found."""

QUOTIENTS_OF_TILES = re.compile(r"__syncthreads_and\(exact|\beatss_divided<")
"""What code does that computes steps of whole tiles again for one of them."""

ASKS_START = re.compile(r"\beatss_is_aligned\((\w+)\)")
"""A call that asks where an array starts."""

_BYTES_PER_ELEMENT = 80
_WORK_PER_ELEMENT = 4.0
_PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)
_VALUES = (0, 1, 2, 3, 5, 8, 1000, 32768, 46341, 65536, 70000, 2**31 - 1)
_OTHERS = (0, 1, 7, 40, 1000)
_MOST_BOUNDARY, _MOST_SEARCHED = 16, 4000
_MOST_AROUND, _MOST_AT_CONDITIONS = 32, 8
_MOST_LAUNCHES = 1e5
_MOST_TIMES = 6
_GROUPS = 16  # tiles: two groups of those whose blocks run together
_TIMES, _BEYOND = (1, 2, 3, _MOST_TIMES), (0, 3, 16)
_UNTILED, _SMALL_TILE = 16, 8
_MOVED = 8
_INT = (-(2**31), 2**31 - 1)


Probe: TypeAlias = tuple[Entry, int, Sizes]
"""An entry, the code its launcher has to return, and sizes."""


Ranges: TypeAlias = dict[str, tuple[int, int]]
"""The least and the most value of each size."""


def parse_sizes(texts: Sequence[str]) -> tuple[OwnSizes, ...] | None:
    """Turn ``N=37,M=5`` strings into one mapping each; ``None`` if there are none.

    Raises:
        InputError: ``EATSS-C004``, a text is no list of names with integers.
    """
    return tuple(parse_numbers("--size", "N=37,M=5", [text]) for text in texts) or None


@lru_cache(maxsize=4)
def choose_sizes(program: Program) -> tuple[Sizes, ...]:
    """Choose sizes that between them hit every kind of tile, the smallest first.

    For every parameter that is 0 and 1 alone and together with the others, 2, 3, a size smaller
    than a tile, one less than a tile, a tile, one more, one less than two, and two full tiles and a
    partial one, as far as the original stays below :data:`WORK_LIMIT` and the data below
    :data:`MEMORY_LIMIT_BYTES`. Sizes differ from parameter to parameter, so that exchanged
    strides show; once they are exchanged, once all equal, and twice all whole tiles and multiples
    of what is moved at a time. None violates an assumption of an entry; parameters that the
    assumptions fix have their values. A program without parameters has one empty choice. There is
    none where the sizes that are allowed are too large.
    """
    fixed, ranges = fixed_parameters(program), limits(program)
    if has_fixed_sizes(program):
        return (fixed,) if _fits(program, fixed, estimated=True) else ()
    ladders = {p.name: _ladder(p, k) for k, p in enumerate(program.parameters)}
    small = {name: ladder[0] for name, ladder in ladders.items()}
    wanted = [dict.fromkeys(small, value) for value in range(4)]
    wanted += [{**small, name: value} for value in (0, 1) for name in small]
    if all(p.kind == "argument" and ranges[p.name][0] < 0 for p in program.parameters):
        negative = dict.fromkeys(small, -3)
        wanted += [negative] if _rows_exist(program, negative) else []
    steps = [dict(zip(small, step, strict=True)) for step in zip(*ladders.values(), strict=True)]
    for step in steps:  # what is too much at once goes one by one
        fits = _fits(program, {**step, **fixed}, estimated=True)
        wanted += [step] if fits else [{**small, name: value} for name, value in step.items()]
    middle = [*steps[len(steps) // 2].values()]
    wanted += [dict(zip(small, middle[::-1], strict=True)), dict.fromkeys(small, min(middle))]
    whole = {p.name: -(-max(1, p.tile) // _UNTILED) * _UNTILED for p in program.parameters}
    wanted += [{name: times * tile for name, tile in whole.items()} for times in (2, 3)]
    chosen = _allowed(program, wanted, exchange=True, estimated=True)
    if not chosen:
        values = [sorted({*range(1, 9), *ladder}) for ladder in ladders.values()]
        every = islice(product(*values), _MOST_SEARCHED)
        searched = [dict(zip(small, each, strict=True)) for each in every]
        chosen = _allowed(program, searched, exchange=True, estimated=True)[:1]
    return tuple(sorted(chosen, key=lambda sizes: estimated_work(program, sizes)))


def fixed_parameters(program: Program) -> OwnSizes:
    """Return the parameters that assumptions fix, with their values."""
    names = [parameter.name for parameter in program.parameters]
    fixed: OwnSizes = {}
    for assumption in (one for entry in program.entries for one in entry.assumptions):
        match assumption.condition:
            case Apply(Operator.EQ, (Name(name), Constant(value))) if name in names:
                fixed.setdefault(name, value)
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


def sizes_around_tiles(program: Program) -> tuple[Sizes, ...]:
    """Choose whole tiles, sizes one below and one above one, and several, the others small.

    Code for full tiles that runs too soon then reads beyond rows. One less than the largest tile of
    a size is one less than a multiple of each tile that divides it. Where a size is several tiles,
    a loop over them comes to its steady state: what it loads ahead it uses, of whole vectors too.
    Of two tiles the second is cut off, and of many each block of a group of them that runs together
    finds its own.
    """
    free, tiles = _free(program), _tiles(program)
    whole = {p.name: p.tile if p.tile > 1 else _UNTILED for p in free}
    tiled = [p for p in free if p.tile > 1]
    few = _few(free)
    cut = {**few, **{p.name: p.tile + 1 for p in tiled}}
    wanted = [whole, {**whole, **{p.name: p.tile - 1 for p in tiled}}]
    for p in tiled:
        own = [tile for tile in tiles if tile <= p.tile]
        ends = (p.tile + 1, _MOST_TIMES * p.tile + 3, 2 * p.tile - 1)
        wanted += [{**whole, p.name: tile - 1} for tile in own]
        wanted += [{**few, p.name: end} for end in (*ends, *(_GROUPS * tile + 1 for tile in own))]
        wanted += [{**cut, p.name: 3 * p.tile + 1}]
        if ASKS_START.search(program.text):
            wanted += [{**cut, p.name: 3 * tile + _UNTILED} for tile in own]
    return tuple(sorted(_allowed(program, wanted), key=_magnitude)[:_MOST_AROUND])


def sizes_at_conditions(program: Program, branches: Sequence[Branch]) -> tuple[Sizes, ...]:
    """Choose the least sizes at which conditions of kernels may hold, and one less of each."""
    conditions = Conditions(program, branches)
    few = _few(_free(program))
    wanted = []
    for number in range(len(branches)):
        found = conditions.least_sizes(number, True)
        large = {name: value for name, value in found.items() if value > few.get(name, value)}
        if large:
            wanted.append({**few, **large})
            wanted += [{**few, **large, name: value - 1} for name, value in large.items()]
    return tuple(sorted(_allowed(program, wanted), key=_magnitude)[:_MOST_AT_CONDITIONS])


def _few(free: Sequence[Parameter]) -> OwnSizes:
    return {p.name: 3 + k % 3 for k, p in enumerate(free)}


def varied_sizes(
    program: Program, least: Sizes | None = None, *, affordable: bool = True
) -> tuple[Sizes, ...]:
    """Choose sizes of which some are at least so large, and the others small, or about a tile.

    They are as large, a little larger, the next multiple of what is moved at a time, two, three and
    six times so large: for loops over tiles, one before and one behind, and those loaded ahead. The
    others are a few elements, what is moved at a time, or a tile and almost one, of which a block
    uses all threads: once one less, and once by what is moved at a time. Those that are not
    ``affordable`` may need any memory and be any work. Without ``least``, each size in turn is as
    large as a tile, and once all are.
    """
    free, tiles = _free(program), _tiles(program)
    whole = {p.name: max(p.tile, _UNTILED) for p in free}
    starts = [least] if least is not None else [whole, dict.fromkeys(whole, max(tiles, default=1))]
    if least is None:
        untiled = min(tiles, default=_UNTILED // 2)
        starts += [{p.name: p.tile if p.tile > 1 else untiled} for p in free]
    few = _few(free)
    patterns = (
        few,
        dict.fromkeys(few, _UNTILED),
        {p.name: p.tile - 1 if p.tile > 3 else 1 for p in free},
        {p.name: p.tile - _MOVED if p.tile > _UNTILED else max(p.tile, 2) for p in free},
        whole,
    )
    wanted = []
    for start, times, rest, others in product(starts, _TIMES, _BEYOND, patterns):
        large = {
            name: times * value + rest if rest <= 3 else -(-times * value // rest) * rest + rest
            for name, value in start.items()
            if value > others.get(name, 0) or least is None
        }
        wanted.append({**others, **large})
    return tuple(_allowed(program, wanted, memory=AIMED_MEMORY_LIMIT_BYTES if affordable else inf))


def _accepted(program: Program, sizes: Sizes) -> bool:
    return not any(expected_code(entry, sizes) for entry in program.entries)


def _free(program: Program) -> list[Parameter]:
    """Return the parameters that no assumption fixes."""
    fixed = fixed_parameters(program)
    return [p for p in program.parameters if p.name not in fixed]


def _tiles(program: Program) -> list[int]:
    """Return the different tile sizes of all kernels."""
    return sorted({size for kernel in program.kernels for _, size in kernel.tile_sizes} - {1})


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
    chosen: dict[Numbers, OwnSizes] = {}
    ranges, fixed = limits(program), fixed_parameters(program)
    for sizes in ({**one, **fixed} for one in wanted):
        ordered = {p.name: _nearest(sizes[p.name], *ranges[p.name]) for p in program.parameters}
        near = _nearest_allowed(program, ordered) if exchange else ordered
        if near is None or not _accepted(program, near):
            continue
        if memory == inf or _fits(program, near, estimated=estimated, memory=memory):
            chosen.setdefault(tuple(near.values()), near)
    return list(chosen.values())


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
    always = 0 if fixed else sum(_elements(program, dict.fromkeys(sizes, 0)))
    elements = sum(_elements(program, sizes))
    if _BYTES_PER_ELEMENT * elements > max(memory, _MOST_ALWAYS_BYTES):
        return False
    if _BYTES_PER_ELEMENT * (elements - always) > memory:
        return False
    if estimated:
        return estimated_work(program, sizes) - _WORK_PER_ELEMENT * always <= work
    return estimated_points(program, sizes) <= POINTS_LIMIT


def _elements(program: Program, sizes: Sizes) -> list[int]:
    """Return how many elements each array of each entry has, its own ones included."""
    shapes: list[tuple[IntExpr, ...]] = []
    for entry in program.entries:
        shapes += [argument.shape for argument in entry.arguments]
        shapes += [temporary.shape for temporary in entry.temporaries]
    return [prod(shape_at(shape, sizes)) for shape in shapes]


def _rows_exist(program: Program, sizes: Sizes) -> bool:
    """Tell whether no row of an array has a negative length, for which C has no meaning."""
    return all(
        evaluate(extent, sizes) >= 0
        for entry in program.entries
        for argument in entry.arguments
        for extent in argument.shape[1:]
    )


def limits(program: Program) -> Ranges:
    """Return the least and the greatest value of each size; that of no argument is an ``int``."""
    arguments = [a for one in program.entries for a in one.arguments if a.role == "parameter"]
    given = their_names(arguments)
    macros = (p.name for p in program.parameters if p.kind == "macro" or p.name not in given)
    found = dict.fromkeys(macros, _INT)
    for argument in arguments:
        least, most = limits_of(argument)
        known = found.get(argument.name, (least, most))
        found[argument.name] = max(least, known[0]), min(most, known[1])
    return found


def complete_sizes(program: Program, given: Sizes) -> OwnSizes:
    """Return values of all parameters, defaults where none is given.

    Raises:
        InputError: ``EATSS-V008``, one is none of the program, is missing, or beyond its C type;
            that of a macro is ``int``.
    """
    names = their_names(program.parameters)
    values = {one.name: one.default for one in program.parameters} | {**given}
    ranges = limits(program)
    found = {}
    for name, value in values.items():
        least, most = ranges.get(name, (0, 0))
        hint = f"its sizes are {', '.join(names)}" if names else "all its sizes are fixed"
        if name not in names:
            what = f"'{program.name}' has no size '{name}'"
        elif value is None:
            what = f"size '{name}' has no value"
        elif not least <= value <= most:
            what = f"size '{name}' is {value}, which its type in C does not have"
            hint = f"give a number from {least} to {most}"
        else:
            found[name] = value
            continue
        raise input_error("EATSS-V008", what, hint=hint)
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
    found: dict[tuple[str, int], Probe] = {}
    for one in sorted(_edges(program), key=lambda one: _magnitude(one[2])):
        found.setdefault((one[0].launcher, one[1]), one)
    return tuple(found[at] for at in sorted(found, key=lambda at: (at[0], -at[1])) if at[1])


def edge_sizes(program: Program) -> tuple[Probe, ...]:
    """Find more sizes on both sides of where the code of an entry changes, as few launches take."""
    refused = refused_sizes(program)
    return tuple(
        one
        for one in _edges(program)
        if one not in refused
        and (one[1] or sum(times for *_, times in launches(one[0].body, one[2])) <= _MOST_LAUNCHES)
    )


@lru_cache(maxsize=1)
def _edges(program: Program) -> Sequence[Probe]:
    """Return sizes beside which, but for one alike, the code of an entry is another."""
    ranges = limits(program)
    found: dict[tuple[object, ...], Probe] = {}
    for entry in program.entries:
        for name, base in _bases(program, ranges):
            code = partial(_code_at, entry, base, name)
            least, most = ranges[name]
            values = {*_VALUES, base[name] - 1, base[name], base[name] + 1}
            for low, high in pairwise(sorted(one for one in values if least <= one <= most)):
                for value in _edge(code, low, high) if code(low) != code(high) else ():
                    sizes = {**base, name: value}
                    found[entry.launcher, *sizes.items()] = entry, code(value), sizes
    return [*found.values()]


def _bases(program: Program, ranges: Ranges) -> Iterator[tuple[str, OwnSizes]]:
    """Yield sizes and which of them is to change: the others are alike, or one is large."""
    names, fixed = their_names(program.parameters), fixed_parameters(program)
    bases = [dict.fromkeys(names, value) for value in _OTHERS]
    bases += [{**dict.fromkeys(names, 1), large: _VALUES[-3]} for large in names]
    for name, base in product(names, bases):
        yield name, {one: _nearest(base[one], *ranges[one]) for one in names} | fixed


def _code_at(entry: Entry, base: Sizes, name: str, value: int) -> int:
    return expected_code(entry, {**base, name: value})


def _edge(code: Callable[[int], int], low: int, high: int) -> tuple[int, int]:
    """Return neighbours between two values at which codes differ."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if code(middle) == code(low) else (low, middle)
    return low, high


def expected_code(entry: Entry, sizes: Sizes) -> int:
    """Return the code with which an entry has to refuse sizes; 0 if it has to run."""
    holding = (evaluate(one.condition, sizes) for one in entry.assumptions)
    return next((-number for number, holds in enumerate(holding, 1) if not holds), 0)


def _magnitude(sizes: Sizes) -> int:
    return sum(abs(value) for value in sizes.values())


def estimated_work(program: Program, sizes: Sizes) -> float:
    """Estimate the statement instances of a run, roughly and rather too many.

    Data that have to be made, copied and compared count as well.
    """
    return _estimated(program, sizes, whole_tiles=False, per_element=_WORK_PER_ELEMENT)


def estimated_points(program: Program, sizes: Sizes, *, tiles_only: bool = False) -> float:
    """Estimate the points of a run's tiles, partial ones counted whole: its time in proportion.

    Elements of arrays count as well, unless tiles are asked for only.
    """
    return _estimated(program, sizes, whole_tiles=True, per_element=0.0 if tiles_only else 1.0)


def _estimated(program: Program, sizes: Sizes, *, whole_tiles: bool, per_element: float) -> float:
    """Estimate the points of all launches.

    A loop is taken to run over the sizes that have its tile, or over the largest that is left of
    all, each of them once; at least as many loops count as an array has dimensions.
    """
    tiles_of = {p.name: p.tile for p in program.parameters}
    dims = max((len(a.shape) for entry in program.entries for a in entry.arguments), default=1)
    in_tiles = whole_tiles or not sizes

    def points(kernel: KernelCode, blocks: int) -> float:
        loops = [(loop, max(1, size)) for loop, size in kernel.tile_sizes]
        loops += [("", 1)] * ((dims if loops else max(2, dims)) - len(loops))
        tiles = [tile for _, tile in loops]
        known = {loop: evaluate(length, sizes) for loop, length in kernel.lengths}
        left = sorted(size for name, size in sizes.items() if tiles_of.get(name) not in tiles)
        found = 1
        for loop, tile in loops:
            own = [size for name, size in sizes.items() if tiles_of.get(name) == tile]
            if loop in known:
                own = [known[loop]]
            elif not own:
                own = [left.pop() if left else max((1, *sizes.values()))]
            found *= -(-max(1, *own) // tile) if in_tiles else max(1, *own)
        if in_tiles:
            return max(prod(tiles), prod(kernel.block)) * max(blocks, found)
        return found

    return (
        1.0
        + per_element * sum(_elements(program, sizes))
        + sum(
            times * (points(program.kernel(name), blocks) if name else 1.0)
            for entry in program.entries
            for name, blocks, times in launches(entry.body, sizes)
            if blocks or not name
        )
    )


def launched_kernels(entry: Entry, sizes: Sizes) -> frozenset[str]:
    """Return the kernels that an entry launches at some sizes; a host loop's rounds are alike."""
    return frozenset(name for name, blocks, _ in launches(entry.body, sizes) if blocks)


def launches(steps: Sequence[HostStep], sizes: Sizes) -> Iterator[tuple[str, int, float]]:
    """Yield the kernel of each launch, its blocks, and how often; the rounds of a loop are alike.

    What has no kernel are the rounds of a loop themselves.
    """
    for step in steps:
        if isinstance(step, HostIf):
            if evaluate(step.condition, sizes):
                yield from launches(step.body, sizes)
        elif isinstance(step, HostLoop):
            lower, upper = evaluate(step.lower, sizes), evaluate(step.upper, sizes)
            if (count := (upper - lower) // step.step + 1) > 0:
                yield "", 0, count
                middle = {**sizes, step.counter: (lower + upper) // 2}
                for name, blocks, times in launches(step.body, middle):
                    yield name, blocks, count * times
        else:
            yield step.kernel, prod(shape_at(step.grid, sizes)), 1


def _ladder(parameter: Parameter, number: int) -> Numbers:
    """Return sizes of a parameter, the first one smaller than a tile."""
    tile, shift = max(parameter.tile, _SMALL_TILE), _PRIMES[number % len(_PRIMES)]
    inside = [min(tile - 1, size) for size in (5 + 3 * number, 31 + shift)]
    return (*inside, tile - 1, tile, tile + 1, tile + 1 + shift, 2 * tile - 1, 2 * tile + shift)


def _nearest_allowed(program: Program, sizes: OwnSizes) -> OwnSizes | None:
    """Return sizes that every entry accepts: these, exchanged, or all equal."""
    own = [*sizes.values()]
    orders = (own, sorted(own), sorted(own)[::-1], [max(own)] * len(own), [min(own)] * len(own))
    candidates = (dict(zip(sizes, values, strict=True)) for values in orders)
    return next((one for one in candidates if _accepted(program, one)), None)
