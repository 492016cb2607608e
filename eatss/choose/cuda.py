"""The layout that generated code is predicted to run best with.

A kernel is chosen alone: of every layout of every variant that the generator offers, the one with
the least cost. A layout that would not launch, or whose sums do not fit registers, is not offered.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain
from math import prod
from operator import itemgetter
from typing import Any, TypeAlias

import numpy as np

from eatss.analysis.facts import KernelFacts
from eatss.analysis.layout import APART, Candidates, Layout, mapped, mapped_loops
from eatss.analysis.variant import KernelVariant
from eatss.base.diagnostics import Diagnostic, NoSolutionError
from eatss.base.frozen import frozen
from eatss.base.targets import AXES, MEASURES
from eatss.cards.profile import GpuProfile
from eatss.choose.cuda_candidates import MOST_LAYOUTS, Integers, every_candidate
from eatss.choose.cuda_space import STREAM_MARGIN, CudaSpace, shared_limit
from eatss.choose.objectives import (
    NEVER,
    OBJECTIVES,
    costs,
    first_least,
    nothing_allowed,
    ranked,
    summed_cost,
)
from eatss.choose.options import ModelOptions, ObjectiveName
from eatss.choose.search import IRREGULAR_MARGIN, Effort, Search, efforts_of, prove
from eatss.choose.selection import KernelSelection, ReferenceSelection, Usage
from eatss.cost.cuda_model import CudaModel, CudaPrediction
from eatss.cost.expected import Prediction
from eatss.cost.terms import too_large
from eatss.plan.contract import ROOM_BESIDE_SUMS
from eatss.plan.launch import plan
from eatss.plan.numbers import Flag, Number, largest
from eatss.plan.stage import element_words
from eatss.program.expression import Sizes


def predicted_kernel(
    facts: KernelFacts,
    profile: GpuProfile,
    objective: ObjectiveName,
    /,
    *,
    layout: Layout,
    private: Collection[int] = (),
    shared: Collection[int] = (),
    shared_limit_bytes: int,
    prediction: Prediction | None = None,
    **found: Any,
) -> KernelSelection:
    """Return the selection of sizes.

    Args:
        facts: the kernel.
        profile: the card.
        objective: what was least.
        layout: what was chosen; it has no sizes where the kernel runs in one thread.
        private: the references that registers have, by position; L1 has those that none has.
        shared: those that shared memory has.
        shared_limit_bytes: shared memory that a block may have.
        prediction: what is expected of the sizes.
        found: how they were found.
    """
    return KernelSelection.of(
        facts,
        layout,
        objective_formula=OBJECTIVES.get(objective).formula,
        shared_limit_bytes=shared_limit_bytes,
        references=tuple(
            ReferenceSelection.at(
                one, "private" if at in private else "shared" if at in shared else "l1"
            )
            for at, one in enumerate(facts.references)
        ),
        usage=_usage(prediction, profile, shared_limit_bytes),
        predicted=prediction,
        **found,
    )


def _usage(
    prediction: Prediction | None, profile: GpuProfile, shared_limit_bytes: int
) -> tuple[Usage, ...]:
    """Return what a prediction expects a kernel to use of the limits of a card."""
    if prediction is None or not prediction.threads:
        return ()
    warps = -(-prediction.threads // profile.threads_per_warp)
    per_sm = prediction.resident_blocks * warps * profile.threads_per_warp
    limits = (
        ("threads", "threads of a block", prediction.threads, profile.threads_per_block, "threads"),
        ("occupancy", "threads of an SM", per_sm, profile.max_threads_per_sm, "threads"),
        ("registers_thread", "registers of a thread (estimate)", prediction.registers,
         profile.registers_per_thread, "registers"),
        ("shared_per_block", "shared memory of a block", prediction.shared_bytes,
         shared_limit_bytes, "bytes"),
    )  # fmt: skip
    return tuple(
        Usage(name=n, title=t, used=used, available=most, unit=unit, binding=10 * used > 9 * most)
        for n, t, used, most, unit in limits
    )


ONE_THREAD = "it runs in one thread, for which nothing is predicted"
FAR_FACTORS = "its warps load factors of products from memory, and what that does is not predicted"


def kernel_variant_of(variants: Sequence[KernelVariant], kernel: Layout) -> KernelVariant | None:
    """Return how a selected kernel is cut; ``None`` for one without launches to choose sizes of."""
    if kernel.spread is None and not kernel.tile_sizes:
        return None
    return next((one for one in variants if one.cut == kernel.cut), None)


def in_warps(variant: KernelVariant, tiles: Sizes, threads: Sizes) -> bool:
    """Tell whether warps can use a variant's instruction for all of its products."""
    own = variant.instruction
    return own is not None and all(
        own.fits((one.rows, one.columns), (one.sum_loop,), tiles, threads)
        for one in variant.products
    )


def candidate_of(facts: KernelFacts, variant: KernelVariant, kernel: KernelSelection) -> Candidates:
    """Return the layout of a selected kernel as the prediction takes it, the only candidate."""
    groups = (group for launch in variant.launches for group in launch.stageable)
    block = tuple((loop.name, kernel.threads.get(loop.name, 1)) for loop in mapped_loops(facts))
    own = kernel.chosen() | {"block": block, **APART}
    staged = {group: int(kernel.shared.issuperset(group)) for group in groups}
    return Candidates(**own, variant=variant, staged=staged).map(lambda one: np.array([one]))


def with_room(
    facts: KernelFacts,
    variants: Sequence[KernelVariant],
    profile: GpuProfile,
    kernel: KernelSelection,
) -> KernelSelection:
    """Return a kernel with what code keeps elsewhere where a block has no room for its tiles.

    Threads compute alone then what warps would have computed from them.
    """
    variant = kernel_variant_of(variants, kernel)
    if variant is None:
        return kernel
    layout, card = candidate_of(facts, variant, kernel), CudaModel.of(facts, profile).card
    missing = {
        at
        for launch in plan(facts, layout, card)
        for at in launch.without_room(card.shared_optin_bytes)
    }
    references = tuple(
        replace(one, placement="l1") if at in missing else one
        for at, one in enumerate(kernel.references)
    )
    alone = any(missing & {*one.references} for one in variant.products)
    return replace(kernel, references=references, warps=None if alone else kernel.warps)


def expected_of(
    facts: KernelFacts,
    variants: Sequence[KernelVariant],
    profile: GpuProfile,
    kernel: KernelSelection,
) -> tuple[Prediction | None, str | None]:
    """Return what is expected of a selected kernel, or why nothing is."""
    variant = kernel_variant_of(variants, kernel)
    if variant is None and not facts.loops:  # one thread, nothing to choose
        variant = next((one for one in variants if not one.spreads), None)
    if variant is None:
        return None, ONE_THREAD
    stageable = [(own, {*group}) for own in variant.launches for group in own.stageable]
    factors = {at for one in variant.products for at in one.references}
    if not all(factors & group <= kernel.shared for _, group in stageable):
        return None, FAR_FACTORS
    model, layout = CudaModel.of(facts, profile), candidate_of(facts, variant, kernel)
    for launch in plan(facts, layout, model.card):
        if not np.all(launch.fits):
            return None, launch.misfit
    found = model.columns(layout)
    prediction = found.at(0)
    if prediction is None:
        each = (
            too_large(one, model.card, 0)
            for one, own in found.launches
            if not own.resident_blocks[0]
        )
        return None, next(each)
    return prediction, None


KernelVariants = Mapping[str, tuple[KernelVariant, ...]]
"""The variants of each kernel, by its name."""

ALIKE = 2
"""Candidates that differ in nothing but what is staged, or how sums are spread."""

FULL_SPEED = 1.15
"""So many times the time of the fastest layout may be taken: energy is saved at full speed."""

FULL_SPEED_AHEAD = 1.05
"""The same where the fastest layout fills boxes ahead and waits for no loads from them. Such
products are predicted better: on an H100 layouts between the two took 7 to 35 % more time, and
saved 2 to 10 % of the energy (five programs, docs/design-findings.md)."""

FEWER = (
    "its loops leave more layouts than can be compared: "
    "tiles and threads differ along fewer of them"
)

AT_ONCE = 1 << 16
"""Layouts that are predicted at a time: of each there are a hundred numbers meanwhile."""


def _at_once(own: Candidates) -> Iterator[Candidates]:
    """Yield some layouts after the other.

    Most are a product: each pair of threads and points with the same choices of all else. Columns
    then are those of one factor, along an axis of its own: what follows of one factor is computed
    for that alone.
    """
    names = [name for name, _ in own.block]
    pairs = [one for name, one in (*own.block, *own.tile_sizes) if name in names]
    changes = np.flatnonzero(np.any([one[1:] != one[:-1] for one in pairs], axis=0))
    inner, rows = int(changes[0]) + 1 if len(changes) else 1, len(own)
    count = rows
    if inner > 1 and rows % inner == 0:
        factors = [_factor(one.reshape(-1, inner)) for one in own.columns]
        if all(one is not None for one in factors):
            left, count = iter(factors), rows // inner
            own = own.map(lambda _: next(left))
    each = max(1, AT_ONCE * count // rows)
    for first in range(0, count, each):
        some = slice(first, first + each)
        yield own.map(lambda one: one[some] if len(one) == count else one)  # noqa: B023


def _factor(table: Integers) -> Integers | None:
    """Return the row, or the column, that a table repeats, ``None`` where it repeats neither."""
    return next((own for own in (table[:, :1], table[:1]) if (table == own).all()), None)


@frozen
class Cheapest:
    """Of all layouts of a kernel: the least cost, the time that may be taken, the best of a cut."""

    cost: int
    slowest_s: float
    of_cuts: Mapping[object, int]


class CudaChoice:
    """A kernel on a card, and all of its layouts, variant by variant.

    About ``most`` layouts of each variant are looked at.
    """

    def __init__(
        self,
        facts: KernelFacts,
        variants: Sequence[KernelVariant],
        profile: GpuProfile,
        options: ModelOptions,
        most: int = MOST_LAYOUTS,
    ) -> None:
        self.facts, self.profile, self.options = facts, profile, options
        self.model = CudaModel.of(facts, profile)
        self.every = every_candidate(facts, variants, profile, most)
        self.variants, self.can_launch, self.slowest_s = variants, False, np.inf
        self.known: dict[int, CudaPrediction] = {}

    @cached_property
    def costs(self) -> Integers:
        """What all layouts cost, those left out that take much longer than others."""
        parts, places = list[tuple[Number, Flag, Integers]](), 0
        for some in chain.from_iterable(map(_at_once, self.every)):
            parts.append(self._priced(some, places))
            places += len(parts[-1][0])
        if not parts:
            return np.zeros(0, dtype=np.int64)
        times_s, ahead, value = (np.concatenate(one) for one in zip(*parts, strict=True))
        times_s = np.where(value < NEVER, times_s, np.inf)
        fastest_s = float(times_s.min())
        full = FULL_SPEED_AHEAD if ahead[times_s == fastest_s].any() else FULL_SPEED
        self.slowest_s = full * fastest_s
        return np.where(times_s <= self.slowest_s, value, NEVER)

    def _priced(self, own: Candidates, places: int) -> tuple[Number, Flag, Integers]:
        """Return times of layouts, which fill buffers ahead and wait for none, costs.

        They are those behind so many ``places``. What is expected of the best of them is kept.
        """
        prediction = self.model.columns(own)
        limit = shared_limit(own, self.profile, self.options)
        late = largest(demand.late for demand, _ in prediction.launches)
        shape = np.broadcast_shapes(*(one.shape for one in own.columns))

        def every(column: Number) -> Any:
            return np.broadcast_to(column, shape).ravel()

        total = mapped(every, prediction.total)
        fits = every(prediction.fits & (prediction.shared_bytes <= limit))
        fits = fits & np.isfinite(total.time_s)
        self.can_launch |= bool(fits.any())
        value = np.where(fits, costs(total, self.options.objective), NEVER)
        streamed = every(own.streams > 0) & (value < NEVER)
        value[streamed] = np.rint(value[streamed] * STREAM_MARGIN).astype(np.int64)
        best = first_least(value)
        alone = slice(best, best + 1)
        self.known[places + best] = mapped(
            lambda one: np.broadcast_to(one, shape).flat[alone], prediction
        )
        return total.time_s, every((own.pipeline_stages > 1) & (late == 0)), value

    @cached_property
    def cheapest(self) -> Cheapest:
        """What is kept of the costs of all layouts."""
        ends = np.cumsum([len(own) for own in self.every])[:-1]
        of_cuts: dict[object, list[Integers]] = {}
        for own, value in zip(self.every, np.split(self.costs, ends), strict=True):
            if not own.copies:
                of_cuts.setdefault(own.variant.cut, []).append(value)
        places = {cut: first_least(np.concatenate(own)) for cut, own in of_cuts.items()}
        return Cheapest(cost=int(self.costs.min()), slowest_s=self.slowest_s, of_cuts=places)

    def searches(self, effort: Effort, cost: float, *, in_graph: bool = False) -> list[Search]:
        """Return what looks for layouts that cost less than what is taken, by a margin.

        All between those that are offered are looked through, variant by variant.
        """
        enough = cost / IRREGULAR_MARGIN
        of_cuts: dict[object, list[Candidates]] = {}
        for own in self.every:
            if not own.copies:
                of_cuts.setdefault(own.variant.cut, []).append(own)
        most = effort.most_boxes // len(of_cuts)
        effort = replace(effort, most_boxes=most, children=0, enough=enough)
        found = []
        for cut, offered in of_cuts.items():
            best, slowest_s = self.cheapest.of_cuts[cut], self.cheapest.slowest_s
            space = CudaSpace(
                self.model, offered, self.profile, self.options, slowest_s, in_graph=in_graph
            )
            found.append(Search(space, space.points[best : best + 1], effort))
        return found

    def at(self, place: int) -> tuple[Candidates, int]:
        """Return the candidates among which a layout is, and its row there."""
        for own in self.every:
            if place < len(own):
                return own, place
            place -= len(own)
        raise IndexError(place)

    def described(
        self, own: Candidates, row: int, expected: CudaPrediction | None = None, **found: Any
    ) -> KernelSelection:
        """Return the selection of a layout, of which something is ``expected`` if it is known."""
        variant = own.variant
        own, chosen = own.map(itemgetter(slice(row, row + 1))), own.at(row)
        expected = self.model.columns(own) if expected is None else expected
        prediction = expected.at(0)
        staged = {at for group, on in chosen.staged.items() if on for at in group}
        held = {at for cut in variant.launches for one in cut.held for at in one.references}
        if chosen.warps is not None and prediction is not None:
            resident = prediction.resident_blocks
            chosen = replace(chosen, warps=replace(chosen.warps, resident=resident))
        if chosen.warps is None and chosen.spread is None and chosen.stages > 1:
            chosen = replace(chosen, resident=self._resident(own, expected))
        if chosen.shared_sum is not None or chosen.spread is not None:
            found["sum_kinds"] = variant.sum_kinds
        if chosen.spread is not None:
            sums = (one.sum_loop for one in variant.launches if one.sum_loop is not None)
            found = {"note": None} | found | {"sum_loops": tuple(dict.fromkeys(sums))}
        return predicted_kernel(
            self.facts,
            self.profile,
            self.options.objective,
            layout=chosen,
            private=held - staged,
            shared=staged,
            shared_limit_bytes=int(shared_limit(own, self.profile, self.options)[0]),
            prediction=prediction,
            **found,
        )

    def _resident(self, alone: Candidates, expected: CudaPrediction) -> int:
        """Return the blocks of an SM that registers are to leave room for, of the only layout.

        They are those expected where no load is waited for, and sums have ``ROOM_BESIDE_SUMS``.
        """
        tiles, along = alone.tiles, alone.threads
        threads = prod(int(count[0]) for count in along.values())
        points = prod(-(-int(tiles[name][0]) // int(count[0])) for name, count in along.items())
        blocks = max(1, int(expected.total.resident_blocks[0]))
        words = points * element_words(self.facts.element_bytes)
        room = self.profile.registers_per_sm // (threads * blocks) - words
        waits = any(demand.late[0] > 0 for demand, _ in expected.launches)
        return 1 if waits or room < ROOM_BESIDE_SUMS else blocks


def select_cuda(choice: CudaChoice) -> KernelSelection:
    """Select cuts, threads, points, tiles and places of one kernel, and prove nothing yet.

    Raises:
        NoSolutionError: ``EATSS-M020``, no layout of it can launch on the card, or
            ``EATSS-M020``, the objective allows none of those that can.
    """
    began = time.perf_counter()
    facts, options = choice.facts, choice.options
    if not choice.every and mapped_loops(facts) and choice.variants:
        raise _no_solution(facts)
    if not choice.every:  # it runs in one thread
        return predicted_kernel(
            facts,
            choice.profile,
            options.objective,
            layout=Layout(tile_sizes=(), block=()),
            shared_limit_bytes=options.shared_per_block(choice.profile),
        )
    best = first_least(choice.costs)
    least = int(choice.costs[best])
    if least == NEVER:
        nothing = nothing_allowed(facts.name, options.objective)
        raise NoSolutionError(nothing) if choice.can_launch else _no_solution(facts)
    extra: dict[str, Any] = {"note": FEWER} if any(own.fewer for own in choice.every) else {}
    return choice.described(
        *choice.at(best),
        choice.known.get(best),
        objective=least,
        optimal="best found",
        solve_time_s=time.perf_counter() - began,
        compared=len(choice.costs),
        **extra,
    )


Known: TypeAlias = dict[Hashable, tuple[KernelSelection, Cheapest | None]]
"""What was selected and priced of kernels, by all that it follows from."""


def select_once(choice: CudaChoice, known: Known) -> KernelSelection:
    """Select as :func:`select_cuda` does, each kernel once: ways to cut a program share many."""
    facts, offered = choice.facts, tuple((len(own), own.fewer) for own in choice.every)
    same = replace(facts, name="", index=0), tuple(choice.variants), choice.profile
    key = same, replace(choice.options, gap=None, timeout_s=None), offered
    if key not in known:
        known[key] = select_cuda(choice), choice.cheapest if choice.every else None
    found, cheapest = known[key]
    if cheapest is not None:
        choice.cheapest = cheapest
    return replace(found, name=facts.name, index=facts.index)


def with_costs(
    selections: Sequence[KernelSelection], options: ModelOptions
) -> tuple[KernelSelection, ...]:
    """Return selections of which the objective of kernels that are one is of their launch.

    The first of them has what is expected of it, the others have nothing.
    """
    others = {name for one in selections for name in one.joined[1:]}
    return tuple(
        replace(one, objective=summed_cost([one.predicted], options.objective))
        if one.joined and one.predicted is not None
        else replace(one, objective=0)
        if one.name in others
        else one
        for one in selections
    )


def with_bounds(
    selections: Sequence[KernelSelection],
    choices: Mapping[str, CudaChoice],
    options: ModelOptions,
    began: float,
) -> tuple[KernelSelection, ...]:
    """Return selections with what nothing else that may be taken costs less than.

    That takes a sixth of a second for each variant at least, so it is looked for where a gap or a
    time is asked for. A layout that is not offered is taken where it is expected to be
    ``IRREGULAR_MARGIN`` times better than all that are. Kernels that are one launch are compared
    with all layouts of each of them apart: of blocks for all of them every one that is offered was.
    Those of a loop that one block runs are replayed as a graph then.
    """
    if options.gap is None and options.timeout_s is None:
        return tuple(selections)
    joined = {name for one in selections for name in one.joined[1:]}
    taken = {one.name: _taken(one, choices) for one in selections if one.name not in joined}
    graphs = {name for one in selections if one.loop_block is not None for name in one.joined}
    costs_of = {name: own for kernels in taken.values() for name, own in kernels.items()}
    efforts = efforts_of(options, [*costs_of.values()], began)
    searched = {
        name: choices[name].searches(effort, cost, in_graph=name in graphs)
        for (name, cost), effort in zip(costs_of.items(), efforts, strict=True)
    }
    prove([own for every in searched.values() for own in every])
    return tuple(
        _bounded(one, choices[one.name], [searched[name] for name in taken[one.name]], options)
        if taken.get(one.name)
        else one
        for one in selections
    )


def _taken(one: KernelSelection, choices: Mapping[str, CudaChoice]) -> dict[str, float]:
    """Return what each of the kernels of a launch costs, of several its share, if it is known."""
    names = one.joined or (one.name,)
    if one.predicted is None or not all(choices[name].every for name in names):
        return {}
    apart = [float(choices[name].cheapest.cost) for name in names]
    every = sum(apart) or 1.0  # what takes less than one unit costs nothing
    return {name: one.objective * own / every for name, own in zip(names, apart, strict=True)}


def _bounded(
    selection: KernelSelection,
    choice: CudaChoice,
    searched: Sequence[Sequence[Search]],
    options: ModelOptions,
) -> KernelSelection:
    """Return a selection with what was proven, or what was found in its place."""
    every = [own for several in searched for own in several]
    best = min(every, key=lambda own: own.found.cost)
    better = not selection.joined and IRREGULAR_MARGIN * best.found.cost < selection.objective
    if better and len(selection.block) <= len(AXES):  # of more loops not all blocks launch
        assert isinstance(best.space, CudaSpace)
        selection = choice.described(
            best.space.layouts(best.found.good[:1]),
            0,
            objective=round(best.found.cost),
            solve_time_s=selection.solve_time_s,
            compared=selection.compared,
        )
    add = sum if options.objective in MEASURES else max  # what others cost may not add up
    least = add(min(own.found.bound for own in several) for several in searched)
    bound = int(min(selection.objective, IRREGULAR_MARGIN * least))
    return replace(
        selection,
        bound=bound,
        optimal="proven"
        if bound >= (1.0 - every[0].effort.gap) * selection.objective
        else "best found",
        boxes=sum(own.found.boxes for own in every),
        compared=selection.compared + sum(own.found.points for own in every),
        solve_time_s=selection.solve_time_s + sum(own.found.seconds for own in every),
    )


def ranked_cuda(
    facts: KernelFacts,
    variants: Sequence[KernelVariant],
    profile: GpuProfile,
    options: ModelOptions,
    count: int,
) -> tuple[KernelSelection, ...]:
    """Return layouts of one kernel in the order of their cost, the least first.

    At most ``ALIKE`` of them have the same tiles and threads, so that a few differ enough to be
    worth measuring. None is proven; a kernel without layouts has none.

    Args:
        facts: the kernel.
        variants: how it can be cut.
        profile: the card.
        options: what is best.
        count: how many are wanted.
    """
    choice = CudaChoice(facts, variants, profile, options)
    found: list[KernelSelection] = []
    alike: Counter[tuple[object, ...]] = Counter()
    for place in ranked(choice.costs):
        if len(found) == count or choice.costs[place] == NEVER:
            break
        own, row = choice.at(place)
        chosen = own.at(row)
        shape = chosen.tile_sizes, chosen.block
        alike[shape] += 1
        if alike[shape] <= ALIKE:
            found.append(choice.described(own, row))
    return tuple(found)


def cuda_at(
    facts: KernelFacts, layout: Candidates, profile: GpuProfile, options: ModelOptions
) -> KernelSelection:
    """Return a kernel with a layout of somebody's own; nothing is chosen or proven.

    ``predicted`` is ``None`` where it is not expected to fit registers or the card.

    Args:
        facts: the kernel.
        layout: the layout, the only row.
        profile: the card.
        options: what is predicted for.
    """
    choice = CudaChoice(facts, (), profile, options)
    made = choice.described(layout, 0)
    return made if np.all(choice.model.columns(layout).fits) else replace(made, predicted=None)


def _no_solution(facts: KernelFacts) -> NoSolutionError:
    return NoSolutionError(
        Diagnostic(
            code="EATSS-M020",
            message=f"no layout of kernel {facts.name} stays within the limits of a block: "
            "threads, registers and shared memory",
            hint="a narrower element type or a card with more of it would help",
        )
    )
