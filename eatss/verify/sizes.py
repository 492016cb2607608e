"""Which problem sizes to run: nothing, one, less than a tile, partial and full tiles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations
from math import prod

from eatss.program import (
    Entry,
    HostIf,
    HostLoop,
    HostStep,
    Parameter,
    Program,
    evaluate,
)

WORK_LIMIT = 3e7
"""Statement instances of one run, about: 30 ms of the original."""

FIXED_WORK_LIMIT = 2e9
"""The same for a program whose sizes are fixed: a few seconds of the original."""

_WORK_PER_ELEMENT = 4
_PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)
_LARGE = (1000, 46341, 70000, 2**31 - 1)


def choose_sizes(program: Program) -> tuple[Mapping[str, int], ...]:
    """Choose sizes that between them hit every kind of tile, the smallest first.

    For every parameter that is 0 and 1 alone and together with the others, a size smaller than a
    tile, one full tile, a full and a partial one, two full and a partial one, as far as the
    original stays below :data:`WORK_LIMIT`. Sizes differ from parameter to parameter, so that
    exchanged strides show; once they are exchanged and once all equal. None violates an
    assumption of an entry. A program without parameters has one empty choice.
    """
    if not program.parameters:
        return ({},)
    ladders = {p.name: _ladder(p, k) for k, p in enumerate(program.parameters)}
    small = {name: ladder[-1] for name, ladder in ladders.items()}
    wanted: list[dict[str, int]] = []
    for value in (0, 1):
        wanted.append(dict.fromkeys(small, value))
        wanted += [{**small, name: value} for name in small if len(small) > 1]
    if all(p.kind == "argument" and _is_signed(program, p) for p in program.parameters):
        wanted.append(dict.fromkeys(small, -3))
    wanted.append(small)
    depth = max(len(ladder) for ladder in ladders.values())
    steps = [_affordable(program, ladders, step) for step in reversed(range(depth - 1))]
    middle = list(steps[len(steps) // 2].values())
    wanted.append(dict(zip(small, reversed(middle), strict=True)))
    wanted.append(dict.fromkeys(small, min(middle)))
    wanted += steps
    chosen: dict[tuple[int, ...], dict[str, int]] = {}
    for sizes in wanted:
        allowed = _nearest_allowed(program, sizes)
        if allowed is not None:
            chosen.setdefault(tuple(allowed.values()), allowed)
    return tuple(sorted(chosen.values(), key=lambda sizes: estimated_work(program, sizes)))


def _is_signed(program: Program, parameter: Parameter) -> bool:
    """Tell whether a size may be negative: -3 as an unsigned size is a huge one."""
    return not any(
        argument.name == parameter.name and argument.element_type.startswith("unsigned")
        for entry in program.entries
        for argument in entry.arguments
    )


def refused_sizes(program: Program) -> tuple[tuple[Entry, int, Mapping[str, int]], ...]:
    """Find sizes at which entries have to refuse to run.

    Returns:
        Entry, the code its launcher has to return, and sizes; at most one an assumption, none
        for an assumption that holds at all sizes tried.
    """
    found: list[tuple[Entry, int, Mapping[str, int]]] = []
    for entry in program.entries:
        for number in range(len(entry.assumptions)):
            for sizes in _probes(program.parameters):
                if broken_assumption(entry, sizes) == number:
                    found.append((entry, -number - 1, sizes))
                    break
    return tuple(found)


def broken_assumption(entry: Entry, sizes: Mapping[str, int]) -> int | None:
    """Return the number of the first assumption that does not hold."""
    for number, assumption in enumerate(entry.assumptions):
        if not evaluate(assumption.condition, sizes):
            return number
    return None


def estimated_work(program: Program, sizes: Mapping[str, int]) -> float:
    """Estimate the statement instances of a run, roughly and rather too many.

    Host loops are counted, inside a kernel every tiled loop counts as long as the largest sizes
    are, and at least as many loops count as an array has dimensions. Data that have to be made,
    copied and compared count as well.
    """
    data = [
        prod(max(0, evaluate(extent, sizes)) for extent in argument.shape)
        for entry in program.entries
        for argument in entry.arguments
    ]
    dims = max((len(a.shape) for entry in program.entries for a in entry.arguments), default=1)
    longest = sorted((max(1, value) for value in sizes.values()), reverse=True)

    def of_kernel(name: str) -> float:
        kernel = program.kernel(name)
        loops = max(len(kernel.tile_sizes) or 2, dims)
        if not longest:
            return float(prod(size for _, size in kernel.tile_sizes))
        return float(prod(longest[k] if k < len(longest) else longest[0] for k in range(loops)))

    def of_steps(steps: Sequence[HostStep], values: Mapping[str, int]) -> float:
        return sum(of_step(step, values) for step in steps)

    def of_step(step: HostStep, values: Mapping[str, int]) -> float:
        if isinstance(step, HostIf):
            return of_steps(step.body, values) if evaluate(step.condition, values) else 0.0
        if isinstance(step, HostLoop):
            lower, upper = evaluate(step.lower, values), evaluate(step.upper, values)
            count = max(0, (upper - lower) // step.step + 1)
            middle = {**values, step.counter: (lower + upper) // 2}
            return count * (1.0 + of_steps(step.body, middle)) if count else 0.0
        blocks = prod(max(0, evaluate(extent, values)) for extent in step.grid)
        work = of_kernel(step.kernel)
        return work * blocks if not longest else min(1, blocks) * work

    return _WORK_PER_ELEMENT * sum(data) + sum(
        of_steps(entry.body, sizes) for entry in program.entries
    )


def _ladder(parameter: Parameter, number: int) -> tuple[int, ...]:
    """Return sizes of a parameter, the largest first, the last one smaller than a tile."""
    tile = parameter.tile
    shift = _PRIMES[number % len(_PRIMES)]
    if tile <= 1:
        return (11 + shift, 5 + shift, 3, 2 + number % 3)
    below = max((p for p in _PRIMES if p < tile and p <= 5 + 3 * number), default=1)
    inside = [size for size in (101 + shift, 31 + shift) if size < tile]
    return (2 * tile + shift, _prime_above(tile, number), tile, *inside, below)


def _affordable(
    program: Program, ladders: Mapping[str, tuple[int, ...]], step: int
) -> dict[str, int]:
    """Return step ``step`` of all ladders; what is too much goes down, the largest first."""
    places = {name: min(step, len(ladder) - 1) for name, ladder in ladders.items()}
    while True:
        sizes = {name: ladders[name][place] for name, place in places.items()}
        lower = [name for name, place in places.items() if place < len(ladders[name]) - 1]
        if not lower or estimated_work(program, sizes) <= WORK_LIMIT:
            return sizes
        untiled = [p.name for p in program.parameters if p.name in lower and p.tile <= 1]
        first = max(untiled or lower, key=lambda name: sizes[name])
        places[first] += 1


def _nearest_allowed(program: Program, sizes: dict[str, int]) -> dict[str, int] | None:
    """Return sizes that every entry accepts: these, exchanged, or all equal to the largest."""
    names = tuple(sizes)
    orders = permutations(sizes.values()) if len(names) <= 4 else iter([tuple(sizes.values())])
    equal = [(max(sizes.values()),) * len(names), (min(sizes.values()),) * len(names)]
    for values in (*orders, *equal):
        candidate = dict(zip(names, values, strict=True))
        if all(broken_assumption(entry, candidate) is None for entry in program.entries):
            return candidate
    return None


def _probes(parameters: Sequence[Parameter]) -> Iterator[dict[str, int]]:
    """Yield sizes at which an assumption might not hold."""
    names = [p.name for p in parameters]
    for value in (0, 1, 2, 3, 5, *_LARGE):
        yield dict.fromkeys(names, value)
    for name in names:
        for value in (0, 1, 2, *_LARGE):
            for others in (7, 40, 1000):
                yield {**dict.fromkeys(names, others), name: value}


def _prime_above(start: int, skipped: int) -> int:
    """Return a prime number larger than ``start``, ``skipped`` primes between them."""
    number = start
    for _ in range(skipped + 1):
        number += 1
        while any(number % divisor == 0 for divisor in range(2, int(number**0.5) + 1)):
            number += 1
    return number
