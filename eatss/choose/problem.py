"""The integer problem of a kernel, or of a program with one vector, as data; and its answers.

It says what to solve and knows nothing of a solver. What comes out passes a check here, or is a
conflict, said in the user's terms. :func:`build_problem` is the paper's model [EATSS, Sec. IV].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from enum import Enum
from fractions import Fraction
from itertools import product, takewhile
from math import inf, prod

from eatss.analysis.facts import KernelFacts, Memory, ReferenceFacts
from eatss.base.diagnostics import Diagnostic, InternalError
from eatss.base.frozen import Names, frozen
from eatss.base.polynomial import Polynomial
from eatss.base.text import bytes_text, counted, equations
from eatss.cards.profile import GpuProfile
from eatss.choose.options import Cell, ModelOptions, exact
from eatss.polyhedral.kernel import Loop
from eatss.program.expression import OwnSizes, SizePairs, Sizes


class Direction(Enum):
    """Which of two values of a variable is preferred among equal objectives."""

    LARGER = "larger"
    SMALLER = "smaller"


@frozen
class Variable:
    """A tile size: a multiple of ``step`` in ``[lower, upper]``.

    ``lower == upper`` is a fixed size (a loop left untiled); it need not be a
    multiple of anything, and then ``step`` equals it.
    """

    name: str
    step: int
    lower: int
    upper: int

    @property
    def values(self) -> range:
        """All values the variable may take, ascending."""
        return range(self.lower, self.upper + 1, self.step)


@frozen
class Constraint:
    """``expression <= limit``, both in ``unit``.

    ``name`` is a stable identifier (``shared_per_sm``); ``title`` and ``detail`` say in the
    user's terms what is limited and by what; ``subject`` is what uses it up.
    ``element_bytes`` is set where ``unit`` is elements: one of them has so many bytes.
    """

    name: str
    title: str
    expression: Polynomial
    limit: int
    unit: str
    detail: str
    subject: str = "the tile"
    element_bytes: int | None = None

    def sentence(self, sizes: Sizes) -> str:
        """Return that so large a tile is the least, and needs too much."""
        amount = self.expression.evaluate(sizes)
        size = self.element_bytes
        least = f"{amount} {self.unit}" if size is None else bytes_text(amount * size)
        verb = "needs" if self.subject.startswith(("1 ", "the ")) else "need"
        return f"{self.title}: {self.subject} {verb} at least {least}, {self.detail}"


@frozen
class Problem:
    """Maximise ``objective`` over ``variables`` under ``constraints``.

    Equal objectives are decided by ``preference``,
    first entry first; it names every variable, so the optimum is unique.
    Where ``steps`` is not empty, the search ends short of that: an objective that is so many
    times the last one is demanded until it is refuted, by one step after the other.
    """

    kernel: str
    variables: tuple[Variable, ...]
    constraints: tuple[Constraint, ...]
    objective: Polynomial
    preference: tuple[tuple[str, Direction], ...]
    steps: tuple[Fraction, ...] = ()


@frozen
class Solution:
    """Values for all variables of a problem, in their order.

    ``proven`` says that the solver refuted every better vector. ``solve_time_s`` is a
    measurement and takes no part in comparison.
    """

    values: SizePairs
    objective: int
    proven: bool
    solver_calls: int
    solve_time_s: float = field(compare=False)


@frozen
class Conflict:
    """A problem without a solution.

    ``constraints`` names the one that the smallest tile exceeds most, by the factor ``excess``, or
    all where none does alone; ``message`` says it in the user's terms.
    """

    constraints: Names
    message: str
    excess: float
    solver_calls: int
    solve_time_s: float = field(compare=False)


def smallest(problem: Problem) -> OwnSizes:
    """Return the smallest vector."""
    return {variable.name: variable.lower for variable in problem.variables}


def fits(problem: Problem, sizes: Sizes) -> bool:
    """Whether ``sizes`` are within bounds and keep all constraints, in exact integers."""
    return all(sizes[v.name] in v.values for v in problem.variables) and all(
        c.expression.evaluate(sizes) <= c.limit for c in problem.constraints
    )


def require_fit(problem: Problem, sizes: Sizes) -> None:
    """Check an answer independently of what produced it.

    Raises:
        InternalError: the answer breaks a bound or a constraint.
    """
    if not fits(problem, sizes):
        text = equations(sizes.items())
        message = f"the solver gave {text} for {problem.kernel}, which breaks the problem"
        raise InternalError(Diagnostic(code="EATSS-M900", message=message))


def rank(problem: Problem, sizes: Sizes) -> tuple[int, ...]:
    """Return a key that orders vectors: a greater key is a better vector."""
    return (
        problem.objective.evaluate(sizes),
        *(
            sizes[name] if direction is Direction.LARGER else -sizes[name]
            for name, direction in problem.preference
        ),
    )


def too_small(problem: Problem) -> list[tuple[float, Constraint]]:
    """Return the constraints that the smallest tile breaks, by how many times, the most first."""
    sizes = smallest(problem)
    needs = ((one.expression.evaluate(sizes), one) for one in problem.constraints)
    broken = [(need / c.limit if c.limit > 0 else inf, c) for need, c in needs if need > c.limit]
    return sorted(broken, key=lambda one: -one[0])


MAX_BLOCK_LOOPS = 3
"""Parallel loops that make up a thread block [EATSS, Sec. IV-F]."""

_SINGLE_BYTES = 4


_STEPS_OF_SCRIPTS = (Fraction(2), Fraction(3, 2), Fraction(4, 3))


def by_scripts(options: ModelOptions) -> bool:
    """Whether the published scripts are followed, not the text of the paper."""
    return options.model == "artifact"


def as_modelled(
    kernels: Sequence[KernelFacts], profile: GpuProfile, options: ModelOptions
) -> tuple[tuple[KernelFacts, ...], GpuProfile]:
    """Return kernels and card as the model sees them: unchanged, but for the scripts.

    The scripts [github.com/mkongiv/eatss, ``gpu-tss-energy.py``] divide what a card has of warps,
    threads and registers by the registers of an element. No trip count bounds a size. The CMA loop
    is the first of those, serial ones included, that are fastest in the most references of two
    and more dimensions; these references use L1, all others shared memory.
    """
    if not by_scripts(options):
        return tuple(kernels), profile
    factor = max((precision_factor(element_bytes(one, options)) for one in kernels), default=1)
    card = replace(
        profile,
        threads_per_warp=profile.threads_per_warp // factor,
        threads_per_block=profile.threads_per_block // factor,
        registers_per_sm=profile.registers_per_sm // factor,
    )
    return tuple(map(_as_in_scripts, kernels)), card


def _as_in_scripts(facts: KernelFacts) -> KernelFacts:
    fastest = [one.spatial if one.access.count("[") > 1 else () for one in facts.references]
    scores = {loop.name: sum(loop.name in one for one in fastest) for loop in facts.loops}
    cma = max(scores, key=lambda name: scores[name], default=None)
    if cma is not None and not scores[cma]:
        cma = None
    memory = [Memory.L1 if cma in one else Memory.SHARED for one in fastest]
    return replace(
        facts,
        loops=tuple(replace(loop, trip_count=None) for loop in facts.loops),
        cma_loop=cma,
        references=tuple(
            replace(one, memory=where, cma=where is Memory.L1)
            for one, where in zip(facts.references, memory, strict=True)
        ),
        stride_one=tuple(scores.items()),
        distinct_references=len(facts.references),
    )


def build_problem(
    kernels: Sequence[KernelFacts], profile: GpuProfile, cell: Cell, options: ModelOptions
) -> Problem:
    """Build the problem of a kernel, or one problem for several that share a vector of sizes.

    The variables are the entries of the vector, outermost first, by the loops of a lone kernel,
    else ``d0``, ``d1`` and so on; a kernel uses as many of them as its band has loops. All kernels'
    constraints hold, and the objective is the sum of theirs. An entry is at most the trip count of
    every loop it sizes, but for loops shorter than the alignment: those stay untiled, their kernel
    counts them with their trip count, and they do not bound the entry. Sizes are in iterations,
    memory in elements of a kernel's widest type. Kernels and card are those of
    :func:`as_modelled`.

    Raises:
        InputError: the options do not fit the profile.
    """
    waf, alone = cell.alignment(profile), len(kernels) == 1
    depth = max(len(facts.loops) for facts in kernels)
    names = [kernels[0].loops[at].name if alone else f"d{at}" for at in range(depth)]
    constraints = []
    goal = Polynomial.constant(0)
    for facts in kernels:
        unique = [other.name for other in kernels].count(facts.name) == 1
        label = facts.name if unique else f"{facts.name}#{facts.index}"
        fixed = _fixed(facts, waf)
        terms = {loop.name: name for loop, name in zip(facts.loops, names, strict=False)}
        goal = goal + _renamed(objective(facts, waf, options), terms, fixed)
        constraints += [
            replace(
                one,
                name=one.name if alone else f"{label}.{one.name}",
                title=one.title if alone else f"{label}: {one.title}",
                expression=_renamed(one.expression, terms, fixed),
            )
            for one in limits(facts, profile, cell, options)
        ]
    return Problem(
        kernel=kernels[0].name if alone else "the program",
        variables=tuple(
            _entry(name, _loops_at(kernels, at), waf, profile) for at, name in enumerate(names)
        ),
        constraints=tuple(constraints),
        objective=goal,
        preference=_preference(kernels, names),
        steps=_STEPS_OF_SCRIPTS if by_scripts(options) else (),
    )


def is_untiled(loop: Loop, waf: int) -> bool:
    """Whether a tile loop is shorter than the alignment and so stays untiled."""
    return loop.trip_count is not None and loop.trip_count < waf


def inner_extent(loop: Loop, waf: int) -> int:
    """Return how many iterations of an inner loop one tile holds at a time.

    Inner loops lie below the tile band and are not tiled. A short one (a filter
    tap, a small reduction) is swept again and again while its data stay, so all
    of it counts. A long one, or one of unknown length, streams: one iteration of
    it is live at a time.
    """
    trips = loop.trip_count
    return trips if trips is not None and 1 <= trips <= waf else 1


def block_loops(facts: KernelFacts, options: ModelOptions) -> tuple[Loop, ...]:
    """Return the parallel loops that make up a thread block [EATSS, Sec. IV-F]; in scripts all."""
    return facts.parallel_loops[: None if by_scripts(options) else MAX_BLOCK_LOOPS]


def element_bytes(facts: KernelFacts, options: ModelOptions) -> int:
    """Return the bytes of one element."""
    return facts.element_bytes if options.element_bytes is None else options.element_bytes


def precision_factor(size_bytes: int) -> int:
    """Return ``FP_factor``: 32-bit registers an element takes [EATSS, Sec. IV-I]."""
    return -(-size_bytes // _SINGLE_BYTES)


def memory_of(memory: Memory, cell: Cell, options: ModelOptions) -> Memory:
    """Return where a reference is kept in ``cell``.

    At split 0 there is no shared memory at all and every reference goes through L1,
    which is what PPCG does under ``--max-shared-memory=0`` [EATSS, Fig. 8, 0 %]. In the scripts
    nothing limits the others then.
    """
    return Memory.L1 if cell.split == 0 and not by_scripts(options) else memory


def shared_budget_bytes(profile: GpuProfile, cell: Cell) -> int:
    """Return the shared memory of an SM at the cell's split [EATSS, Sec. IV-J]."""
    share = int(exact(cell.split) * profile.l1_shared_bytes)
    return min(share, profile.shared_per_sm_bytes)


def limits(
    facts: KernelFacts, profile: GpuProfile, cell: Cell, options: ModelOptions
) -> tuple[Constraint, ...]:
    """Return the resource limits of a tile [EATSS, Sec. IV-G to IV-J].

    Where no L1 is left an SM's share of L2 stands for it; in the scripts nothing does, they have
    L2 hold what goes through L1 alone, and refuse a split of more than a block may have.
    ``B × references × FP_factor <= R_P_S`` counts the points of a tile, not threads: a thread
    computes several of them, so the threads of a block do not bound it (the paper's own example
    has 6144).
    """
    size, at_split = element_bytes(facts, options), f"an SM at split {cell.split:g}"
    block = options.shared_per_block(profile)
    own: dict[Memory, list[ReferenceFacts]] = {Memory.L1: [], Memory.SHARED: []}
    for one in facts.references:
        own[memory_of(one.memory, cell, options)].append(one)
    cached, shared = own.values()
    limited: list[tuple[str, str, Sequence[ReferenceFacts], int, str]] = []

    def limit(
        name: str, title: str, volumes: Sequence[ReferenceFacts], most: int, where: str
    ) -> None:
        text = f"the card has {bytes_text(most)}{where and f' {where}'}"
        limited.append((name, title, volumes, most, text))

    scripts = by_scripts(options)
    if cell.split == 1 and not scripts:
        share = profile.l2_bytes // profile.sm_count
        detail = f"an SM's share of L2 is {bytes_text(share)}, and split 1 leaves no L1"
        limited.append(("l2_share", "L2 cache of an SM", cached, share, detail))
    elif cell.split < 1:
        budget = int((1 - exact(cell.split)) * Fraction(profile.l1_shared_bytes))
        limit("l1", "L1 cache", cached, budget, at_split)
    if cell.split > 0:
        limit(
            "shared_per_sm", "shared memory", shared, shared_budget_bytes(profile, cell), at_split
        )
        limit("shared_per_block", "shared memory", shared, block, "a block")
    limit("l2", "L2 cache", cached if scripts else facts.references, profile.l2_bytes, "")
    points = Polynomial.product(loop.name for loop in block_loops(facts, options))
    factor, distinct = precision_factor(size), facts.distinct_references
    asked = int(exact(cell.split) * profile.l1_shared_bytes)
    return (
        *(
            Constraint(
                name="split",
                title="shared memory",
                expression=Polynomial.constant(asked),
                limit=block,
                unit="bytes",
                detail=f"the card has {bytes_text(block)} a block",
                subject="the split",
                element_bytes=1,
            )
            for _ in range(scripts and asked > block)
        ),
        *(
            Constraint(
                name=name,
                title=title,
                expression=sum((v.elements for v in volumes), start=Polynomial.constant(0)),
                limit=most // size,
                unit="elements",
                detail=detail,
                subject=counted(len(volumes), "reference"),
                element_bytes=size,
            )
            for name, title, volumes, most, detail in limited
        ),
        Constraint(
            name="registers",
            title="registers",
            expression=points * Polynomial.constant(distinct * factor),
            limit=profile.registers_per_sm,
            unit="registers",
            detail=f"the card has {profile.registers_per_sm} an SM",
            subject=f"{counted(distinct, 'reference')} at {factor} for each point",
        ),
    )


def weights(facts: KernelFacts, waf: int, options: ModelOptions) -> SizePairs:
    """Return ``H_i`` of every tile loop [EATSS, Sec. IV-K].

    In the scripts a count is multiplied by itself, less one where the loop is parallel, and no
    loop is left out.
    """
    depth = len(facts.loops)
    counts = dict(facts.stride_one)
    result = []
    for loop in facts.loops:
        weight = counts.get(loop.name, 0)
        if by_scripts(options):
            weight *= weight - loop.parallel
        if loop.name == facts.cma_loop:
            weight *= waf
        left_out = not loop.parallel if depth >= 3 else loop.parallel and depth == 2
        if left_out and not by_scripts(options):
            weight = 0
        result.append((loop.name, weight))
    return tuple(result)


def objective(facts: KernelFacts, waf: int, options: ModelOptions) -> Polynomial:
    """Return ``OBJ`` [EATSS, Eq. 2]; 0 for a kernel with no parallel loop and no weight."""
    loops = block_loops(facts, options)
    parallelism = Polynomial.product(loop.name for loop in loops) if loops else Polynomial.of([])
    return parallelism + Polynomial.of((w, (name,)) for name, w in weights(facts, waf, options))


_REGISTER_UNIT = 8  # registers are allotted to threads in multiples of eight


def max_launchable_threads(profile: GpuProfile) -> int:
    """Return the threads of a block that launch whatever the compiler does.

    Even with the most registers a thread may have, so many threads fit the registers of a
    block. A whole number of warps.
    """
    per_thread = -(-profile.registers_per_thread // _REGISTER_UNIT) * _REGISTER_UNIT
    threads = min(profile.registers_per_block // per_thread, profile.threads_per_block)
    warp = profile.threads_per_warp
    return max(1, threads - threads % warp if threads >= warp else threads)


def choose_block(facts: KernelFacts, sizes: Sizes, profile: GpuProfile) -> SizePairs:
    """Return the block size of each loop that maps to threads, the last one to ``x``.

    The leading parallel loops of the band map to threads, three at most, as PPCG has it.
    Each size divides its tile, so no thread idles. Among the choices that launch:
    first a full warp along ``x`` (neighbours in memory are loaded together), then
    the most threads, then the squarest share of points a thread, which reuses
    operands most, then the widest ``x``.
    """
    leading = takewhile(lambda loop: loop.parallel, facts.loops[:MAX_BLOCK_LOOPS])
    loops = [loop.name for loop in leading]
    if not loops:
        return ()
    budget = max_launchable_threads(profile)
    tiles = [sizes[name] for name in loops]
    divisors = [[d for d in range(1, tile + 1) if tile % d == 0] for tile in tiles]

    def merit(choice: tuple[int, ...]) -> tuple[int, ...]:
        points = sum(tile // size for tile, size in zip(tiles, choice, strict=True))
        along_x = min(choice[-1], profile.threads_per_warp)
        return (along_x, prod(choice), -points, *reversed(choice))

    best = max((one for one in product(*divisors) if prod(one) <= budget), key=merit)
    return tuple(zip(loops, best, strict=True))


def kernel_sizes(facts: KernelFacts, waf: int, vector: Sequence[int]) -> OwnSizes:
    """Return the sizes of a kernel's loops under a vector of them, of inner loops their extents.

    A loop shorter than the alignment is one tile, so its size is its trip count.
    """
    names = (loop.name for loop in facts.loops)
    return dict(zip(names, vector, strict=False)) | _fixed(facts, waf)


def _loops_at(kernels: Sequence[KernelFacts], position: int) -> list[Loop]:
    return [facts.loops[position] for facts in kernels if position < len(facts.loops)]


def _entry(name: str, loops: Sequence[Loop], waf: int, profile: GpuProfile) -> Variable:
    """Return an entry with the bounds that all its loops agree on [EATSS, Sec. IV-B]."""
    counts = [loop.trip_count for loop in loops if not is_untiled(loop, waf)]
    if counts:
        highest = min([profile.threads_per_block, *(one for one in counts if one is not None)])
        return Variable(name=name, step=waf, lower=waf, upper=max(waf, highest - highest % waf))
    # where every loop is short, the longest decides: each of the others is one tile as well
    size = max(1, *(loop.trip_count or 1 for loop in loops))
    return Variable(name=name, step=size, lower=size, upper=size)


def _fixed(facts: KernelFacts, waf: int) -> OwnSizes:
    """Return the extents of loops that are no variables."""
    short = (loop for loop in facts.loops if is_untiled(loop, waf))
    return {loop.name: max(1, loop.trip_count or 1) for loop in short} | {
        loop.name: inner_extent(loop, waf) for loop in facts.inner_loops
    }


def _renamed(polynomial: Polynomial, names: dict[str, str], constants: OwnSizes) -> Polynomial:
    return Polynomial.of(
        (
            factor * prod(constants.get(loop, 1) for loop in loops),
            [names[loop] for loop in loops if loop not in constants],
        )
        for loops, factor in polynomial.terms.items()
    )


def _preference(
    kernels: Sequence[KernelFacts], names: Sequence[str]
) -> tuple[tuple[str, Direction], ...]:
    """Return how equal objectives are decided, every variable named.

    First the larger size where most CMA loops stand, then smaller serial sizes, outermost first,
    then smaller parallel ones.
    """
    loops = [_loops_at(kernels, at) for at in range(len(names))]
    votes = [sum(f.cma_loop == f.loops[at].name for f in kernels if at < len(f.loops))
             for at in range(len(names))]  # fmt: skip
    cma = votes.index(max(votes)) if any(votes) else -1
    rest = sorted(range(len(names)), key=lambda at: any(loop.parallel for loop in loops[at]))
    return tuple(
        [(names[cma], Direction.LARGER)] * (cma >= 0)
        + [(names[at], Direction.SMALLER) for at in rest if at != cma]
    )
