"""What a sweep is of, found out before anything is made: its space, and where choices stand."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from math import inf
from typing import TypeAlias

from eatss.analysis.facts import KernelFacts
from eatss.analysis.layout import mapped_loops
from eatss.base.diagnostics import Diagnostics, EatssError, did_you_mean, input_error
from eatss.base.forked import allow_more, in_bounds
from eatss.base.frozen import frozen
from eatss.base.targets import MEASURES, TARGETS
from eatss.cards import GpuProfile
from eatss.choose.cuda import ranked_cuda
from eatss.choose.options import ModelOptions, SelectOptions
from eatss.session.session import Session
from eatss.tune.bound import BoundSpace, bind
from eatss.tune.derived import KernelSpace, derived_space, kernel_spaces, point_of
from eatss.tune.document import parsed_space
from eatss.tune.generation import predicted_metrics
from eatss.tune.jobs import MakerJob, RolePoint, VariantJob
from eatss.tune.layouts import selection_at, short_name
from eatss.tune.makers import CudaMaker, PpcgMaker, Program
from eatss.tune.points import (
    CUTS,
    OF_PPCG,
    SELECTING,
    Configuration,
    Point,
    Space,
    card_constants,
    is_decision,
    variant_key,
)
from eatss.tune.rows import Role, predicted_cost

_PLACED = re.compile(r"(tile|threads)_\d+")


def check_decisions(bound: BoundSpace, known: Iterable[str], *, ppcg: bool = False) -> None:
    """Refuse a space that decides what the program does not have, or has idle iterators.

    Args:
        bound: the space.
        known: what can be decided.
        ppcg: whether sizes may be given by position.

    Raises:
        InputError: ``EATSS-W010``.
    """
    names = sorted(known)
    expressions = parsed_space(bound.space).expressions()
    used = {name for expression in expressions for name in expression.names}
    decided = [one for one in bound.names if is_decision(one) or one in bound.constants]
    whys = dict.fromkeys(
        (*decided, *bound.variant), "the program has nothing that is decided by it"
    )
    for name in bound.names:
        if name not in used:
            whys.setdefault(name, "it decides nothing, and nothing uses it")
    for name, why in whys.items():
        if name not in names and not (ppcg and _PLACED.fullmatch(name)):
            hint = did_you_mean(name, names, "there are")
            raise input_error("EATSS-W010", f"'{name}' in the space: {why}", hint=hint)


def cuda_names(facts: Sequence[KernelFacts], spaces: Mapping[str, KernelSpace]) -> set[str]:
    """Return what variants of generated code can decide."""
    found = {*SELECTING}
    for kernel in facts:
        own = set(CUTS)
        own |= {f"tile_{loop.name}" for loop in kernel.loops}
        for loop in mapped_loops(kernel):
            own |= {f"threads_{loop.name}", f"points_{loop.name}"}
        own |= {f"staged_{reference.array}" for reference in kernel.references}
        prefix = f"{short_name(kernel.name)}."
        own |= {*spaces[kernel.name].staged.values()}
        found |= own | {f"{prefix}{name}" for name in own}
    return found


RANKING_S = 120.0
"""Seconds of the processor that ranking layouts may take beside analysis."""

ROLES: tuple[Role, ...] = ("ours", "default", "paper")

PREDICTED_POINTS = 1500
"""Points of a space of somebody's own that the model puts in order."""


Points: TypeAlias = tuple[Configuration, ...]
"""Points, the best first."""


@frozen
class Outline:
    """What a sweep is of.

    Attributes:
        space: The space, given or derived; it may name figures of the card and parameters of the
            program.
        ranked: Points in the model's order, the best first; ``None`` where it has none.
        roles: Points of the choices that variants are set beside; a choice that is no point of the
            space has none.
        warnings: What is to be said of the source.
    """

    space: BoundSpace
    ranked: Points | None
    roles: tuple[RolePoint, ...]
    warnings: Diagnostics = ()


@in_bounds
def outlined(job: MakerJob, space: Space | None, *, rank: int) -> Outline:
    """Find out what a sweep is of.

    Args:
        job: the program, its target and its card.
        space: the space, ``None`` to derive one.
        rank: how many points the model is to put in order.

    Raises:
        InputError: the source or the space is wrong.
        NoSolutionError: no tile sizes satisfy the limits of the card.
    """
    allow_more(RANKING_S)
    if not TARGETS[job.target].own:
        return _ppcg(job, space)
    return _cuda(job, space, rank)


def _cuda(job: MakerJob, space: Space | None, rank: int) -> Outline:
    maker, profile = CudaMaker(job), job.profile
    program = maker.program
    facts, variants = program.session.analysed.facts, program.variants
    spaces = kernel_spaces(facts, variants, profile)
    options = SelectOptions(target="cuda", objective=job.objective).for_card(profile)

    def roles(bound: BoundSpace) -> tuple[RolePoint, ...]:
        found: list[RolePoint] = []
        for role in ROLES:
            with suppress(EatssError):  # sizes of the paper's model may not fit the card
                wanted = VariantJob(variant="", values=(), decisions=(), role=role)
                point = point_of(maker.chosen(wanted).kernels, spaces)
                known = set(point) == set(bound.names) and point not in [one for _, one in found]
                found.append((role, point if known else None))
        return tuple(found)

    def ranked(bound: BoundSpace) -> Points:
        if space is None:
            layouts = _ranked_layouts(program, profile, spaces, options, rank)
            return tuple(point for point in layouts if bound.allows(point) is None)

        def predicted(decisions: Point) -> float:
            at = selection_at(program.base, facts, variants, profile, options, decisions)
            return predicted_cost(predicted_metrics(at.kernels), job.objective)

        return _in_order(bound, predicted, rank)

    whole = space or derived_space(facts, variants, profile, "cuda")
    names = cuda_names(facts, spaces)
    return _outline(program.session, profile, whole, names, ranked, roles)


def _ppcg(job: MakerJob, space: Space | None) -> Outline:
    maker, profile = PpcgMaker(job), job.profile
    session = maker.session

    def predicted(decisions: Point) -> float:
        found = maker.predicted(decisions)
        return MEASURES[job.objective].of(found.time_s, found.energy_j)

    return _outline(
        session,
        profile,
        space or derived_space(session.analysed.facts, {}, profile, "ppcg"),
        {*OF_PPCG},
        lambda bound: _in_order(bound, predicted, PREDICTED_POINTS),
        lambda _: tuple((role, None) for role in ROLES),
        ppcg=True,
    )


def _outline(
    session: Session,
    profile: GpuProfile,
    space: Space,
    names: set[str],
    ranked: Callable[[BoundSpace], Points],
    roles: Callable[[BoundSpace], tuple[RolePoint, ...]],
    *,
    ppcg: bool = False,
) -> Outline:
    found = session.interface.parameters
    parameters = {one.name: one.default for one in found if one.default is not None}
    bound = bind(space, {**card_constants(profile), **parameters})
    bound.require_points()
    check_decisions(bound, names, ppcg=ppcg)
    return Outline(
        space=bound,
        ranked=ranked(bound),
        roles=roles(bound),
        warnings=session.warnings,
    )


def _ranked_layouts(
    program: Program,
    profile: GpuProfile,
    spaces: Mapping[str, KernelSpace],
    options: ModelOptions,
    rank: int,
) -> Points:
    """Return points of the model's best layouts: the best of each kernel, the second, and so on."""
    pairs = zip(program.base.kernels, program.session.analysed.facts, strict=True)
    own = [
        ranked_cuda(fact, program.variants.get(fact.name, ()), profile, options, rank) or (kernel,)
        for kernel, fact in pairs
    ]
    points: dict[str, Configuration] = {}
    for at in range(max(map(len, own))):
        point = point_of((one[min(at, len(one) - 1)] for one in own), spaces)
        points.setdefault(variant_key(point), point)
    return tuple(points.values())


def _in_order(bound: BoundSpace, predicted: Callable[[Point], float], rank: int) -> Points:
    """Return points in the order of their predictions: all of a small space, some of a large."""
    everything = bound.count().kept <= PREDICTED_POINTS
    points = list(bound.points()) if everything else bound.sample(PREDICTED_POINTS, 0)
    costs = []
    for at, point in enumerate(points):
        try:
            costs.append((predicted(bound.decisions(point)), at))
        except EatssError:  # nothing can be made of it
            costs.append((inf, at))
    return tuple(points[at] for cost, at in sorted(costs)[:rank] if cost < inf)
