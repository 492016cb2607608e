"""What a sweep is of, found out before anything is made: its space, and where choices stand."""

from __future__ import annotations

from collections.abc import Callable, Set
from contextlib import suppress
from math import inf

from eatss.base.diagnostics import EatssError, did_you_mean, input_error
from eatss.base.forked import allow_more, in_bounds
from eatss.base.targets import MEASURES, TARGETS
from eatss.cards import GpuProfile
from eatss.choose.cuda import ranked_cuda
from eatss.choose.options import ModelOptions, SelectOptions
from eatss.session.session import Session
from eatss.tune.bound import BoundSpace, bind
from eatss.tune.derived import KernelSpaces, derived_space, point_of, ppcg_space
from eatss.tune.document import space_text
from eatss.tune.generation import predicted_metrics
from eatss.tune.jobs import MakerJob, Outline, Ranked, RolePoint, VariantJob
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


def check_decisions(bound: BoundSpace, known: Set[str]) -> None:
    """Refuse a space that decides what the program does not have, or has idle iterators.

    Args:
        bound: the space.
        known: what can be decided.

    Raises:
        InputError: ``EATSS-W010``.
    """
    for name in (*bound.names, *bound.variant):
        is_meant = is_decision(name) or name in (*bound.constants, *bound.variant)
        if name not in known and (is_meant or name not in bound.used):
            raise input_error(
                "EATSS-W010",
                f"'{name}' in the space decides nothing that the program has",
                hint=did_you_mean(name, sorted(known), "there are"),
            )


def cuda_names(spaces: KernelSpaces) -> set[str]:
    """Return what variants of generated code can decide."""
    found = {*SELECTING}
    for space in spaces.values():
        kernel = space.facts
        own = {*CUTS, *space.staged.values()}
        own |= {f"staged_{reference.array}" for reference in kernel.references}
        own |= {f"tile_{loop.name}" for loop in kernel.loops}
        own |= {f"{kind}_{loop}" for kind in ("threads", "points") for loop in space.mapped}
        found |= own | {f"{short_name(kernel.name)}.{name}" for name in own}
    return found


RANKING_S = 120.0
"""Seconds of the processor that ranking layouts may take beside analysis."""

ROLES: tuple[Role, ...] = ("ours", "default", "paper")

MOST_LOOPS = 16
"""So many sizes can be given by position."""

PREDICTED_POINTS = 1500
"""Points of a space of somebody's own that the model puts in order."""


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
    return (_cuda if TARGETS[job.target].own else _ppcg)(job, space, rank)


def _cuda(job: MakerJob, space: Space | None, rank: int) -> Outline:
    maker, profile = CudaMaker(job), job.profile
    program = maker.program
    spaces = program.spaces
    options = SelectOptions(target="cuda", objective=job.objective).for_card(profile)
    bound = _bound(program.session, profile, space or derived_space(spaces), cuda_names(spaces))

    def predicted(decisions: Point) -> float:
        at = selection_at(program.base, spaces, options, decisions)
        return predicted_cost(predicted_metrics(at.kernels), job.objective)

    roles: list[RolePoint] = []
    for role in ROLES:
        with suppress(EatssError):  # sizes of the paper's model may not fit the card
            wanted = VariantJob(variant="", values=(), decisions=(), role=role)
            point = point_of(maker.chosen(wanted).kernels, spaces)
            known = set(point) == set(bound.names) and point not in [one for _, one in roles]
            roles.append((role, point if known else None))
    if space is None:
        layouts = _ranked_layouts(program, options, rank)
        ranked = tuple(point for point in layouts if bound.allows(point) is None)
    else:
        ranked = _in_order(bound, predicted, rank)
    warnings = program.session.warnings
    text = space_text(bound.space)
    return Outline(
        space=bound, space_text=text, ranked=ranked, roles=tuple(roles), warnings=warnings
    )


def _ppcg(job: MakerJob, space: Space | None, rank: int) -> Outline:
    del rank  # a prediction takes long
    maker, profile = PpcgMaker(job), job.profile
    whole = space or ppcg_space(maker.session.analysed.facts)
    placed = {f"{kind}_{at}" for kind in ("tile", "threads") for at in range(MOST_LOOPS)}
    bound = _bound(maker.session, profile, whole, {*OF_PPCG, *placed})

    def predicted(decisions: Point) -> float:
        found = maker.predicted(decisions)
        return MEASURES[job.objective].of(found.time_s, found.energy_j)

    return Outline(
        space=bound,
        space_text=space_text(bound.space),
        ranked=_in_order(bound, predicted, PREDICTED_POINTS),
        roles=tuple((role, None) for role in ROLES),
        warnings=maker.session.warnings,
    )


def _bound(session: Session, profile: GpuProfile, space: Space, names: Set[str]) -> BoundSpace:
    """Return a space of a program, which has points and decides what the program has."""
    found = session.interface.parameters
    parameters = {one.name: one.default for one in found if one.default is not None}
    bound = bind(space, {**card_constants(profile), **parameters})
    bound.require_points()
    check_decisions(bound, names)
    return bound


def _ranked_layouts(program: Program, options: ModelOptions, rank: int) -> Ranked:
    """Return points of the model's best layouts: the best of each kernel, the second, and so on."""
    own = []
    for kernel in program.base.kernels:
        space = program.spaces[kernel.name]
        found = ranked_cuda(space.facts, space.variants, space.profile, options, rank)
        own.append(found or (kernel,))
    points: dict[str, Configuration] = {}
    for at in range(max(map(len, own))):
        point = point_of((one[min(at, len(one) - 1)] for one in own), program.spaces)
        points.setdefault(variant_key(point), point)
    return tuple(points.values())


def _in_order(bound: BoundSpace, predicted: Callable[[Point], float], rank: int) -> Ranked:
    """Return points in the order of their predictions: all of a small space, some of a large."""
    everything = bound.count().kept <= PREDICTED_POINTS
    points = list(bound.points()) if everything else bound.sample(PREDICTED_POINTS, 0)
    costs: dict[int, float] = {}
    for at, point in enumerate(points):
        with suppress(EatssError):  # nothing can be made of it
            costs[at] = predicted(bound.decisions(point))
    order = sorted(costs, key=costs.__getitem__)
    return tuple(points[at] for at in order[:rank] if costs[at] < inf)
