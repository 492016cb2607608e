"""Schedules as PPCG finds them, or as it saved them."""

from __future__ import annotations

from os import fspath
from pathlib import Path

import islpy as isl

from eatss.base.diagnostics import (
    Diagnostic,
    Diagnostics,
    InputError,
    InternalError,
    Severity,
    input_error,
)
from eatss.base.files import StrPath
from eatss.base.forked import anew
from eatss.base.frozen import Names
from eatss.polyhedral.dependences import bounded_work, ran_out, refuse_unfit
from eatss.polyhedral.isl_names import among, maps_of, parameter_names, renaming
from eatss.polyhedral.kernel import ScheduledScop
from eatss.polyhedral.ppcg import (
    Carrier,
    Grouping,
    PpcgDependences,
    PpcgRegion,
    UnknownNodeError,
    carried_over,
    expansions,
    group_chains,
    may_mix,
    on_domain,
    ppcg_constraints,
    ppcg_dependences,
    ppcg_domain,
    ppcg_region,
    restricted,
)
from eatss.polyhedral.schedule import (
    schedule_scop,
    with_schedule,
)
from eatss.polyhedral.scheduling import forked_schedule, scheduler_options
from eatss.polyhedral.scop import Scop

# -- ppcg scheduling ---------------------------------------------------------------------------
# A region scheduled and cut as PPCG would, or as a schedule that PPCG saved says.


_MAX_SIZE = 800
"""Pieces of all dependences, each times its dimensions, that isl takes with numbers as sizes.

Its integer programs take seconds for heat-3d (664), minutes for deriche (928) and adi (1780),
the largest of PolyBench.
"""

_OPERATIONS = 1_000_000
_SECONDS = 5.0
"""What isl has for one schedule; heat-3d takes two seconds."""

_HINT = "save PPCG's schedule (ppcg --save-schedule=FILE) and give it with --ppcg-schedule FILE"


_COUNTER_HINT = (
    "declare each counter in its loop, for (int i = 0; ...); "
    "--ppcg-schedule FILE then makes it sure"
)


_WHOLE_HINT = "choose sizes for code of eatss (--target cuda), which takes such statements apart"


def schedule_as_ppcg(scop: Scop) -> tuple[ScheduledScop, Diagnostics]:
    """Schedule a region as PPCG 0.09 does, and cut it into PPCG's kernels.

    isl is given PPCG's own constraints under PPCG's statement names. Where that cannot be done, or
    PPCG is known to see more than this region, a warning (``EATSS-P020``) says why the kernels
    may be others than PPCG's.

    Args:
        scop: the region.

    Returns:
        The scheduled region, without the instances that PPCG drops as dead code, and the warnings.

    Raises:
        InputError: as for ``schedule_scop``.
    """
    refuse_unfit(scop)
    doubts = _doubts(scop)
    found: ScheduledScop | None = None
    try:
        with bounded_work(scop):
            scheduled = _schedule(scop, ppcg_region(scop))
        if isinstance(scheduled, str):
            doubts.append(scheduled)
        else:
            live, schedule, certain = scheduled
            found = with_schedule(live, schedule)
            if not certain:
                doubts.append("the isl of PPCG may run independent parts in another order")
    except InputError:
        doubts.append("isl takes too long for PPCG's constraints")
    except InternalError:
        doubts.append("isl's schedule for PPCG's constraints breaks a dependence")
    except isl.Error:
        if ran_out(scop):
            raise
        doubts.append("isl finds no schedule for PPCG's constraints")
    if found is None:
        anew()
        found = schedule_scop(scop)
    return found, tuple(_unsure(scop, reason) for reason in doubts)


def at_values(scop: Scop, unvalued: ScheduledScop) -> ScheduledScop:
    """Return a region whose parameters have values, cut as it is without them.

    Args:
        scop: the region with values of parameters.
        unvalued: the region without them, as PPCG schedules it; of any isl context.

    Raises:
        InputError: ``EATSS-P020``, some kernel has nothing to do at these values. Else as for
            ``schedule_scop``.
    """
    of_statement = dict(zip(_places(unvalued.scop), unvalued.scop.statements, strict=True))
    names = renaming(
        [
            (statement.domain, of_statement[place].name)
            for place, statement in zip(_places(scop), scop.statements, strict=True)
            if place in of_statement
        ]
    )
    theirs = isl.Schedule.read_from_str(scop.isl_context, str(unvalued.schedule))
    live = theirs.get_domain().preimage_union_pw_multi_aff(names).intersect(scop.domain)
    schedule = carried_over(theirs, Carrier(domain=live, names=names))
    found = with_schedule(restricted(scop, live), schedule)
    if len(found.kernels) != len(unvalued.kernels):
        raise input_error(
            "EATSS-P020",
            "a kernel that PPCG makes of this region has nothing to do at these values "
            "of parameters",
            span=scop.span,
            hint="give values at which all loops run",
        )
    return found


def _places(scop: Scop) -> list[tuple[str, int]]:
    """Return what tells the statements of a region apart, whatever others it has."""
    names = [statement.ppcg_name for statement in scop.statements]
    return [(name, names[:k].count(name)) for k, name in enumerate(names)]


def _doubts(scop: Scop) -> list[str]:
    doubts = []
    if scop.ppcg_counters:
        names = ", ".join(f"'{name}'" for name in scop.ppcg_counters)
        doubts.append(f"PPCG keeps the last value of {names}, which the function names again later")
    if scop.ppcg_wholes:
        doubts.append(f"PPCG takes {scop.ppcg_wholes[0]} with all below it for one statement")
    return doubts


def _unsure(scop: Scop, reason: str) -> Diagnostic:
    return Diagnostic(
        code="EATSS-P020",
        severity=Severity.WARNING,
        message=f"PPCG may cut this region into other kernels than those sizes are for: {reason}",
        span=scop.span,
        hint=_WHOLE_HINT if scop.ppcg_wholes else _COUNTER_HINT if scop.ppcg_counters else _HINT,
    )


def _schedule(scop: Scop, region: PpcgRegion) -> tuple[Scop, isl.Schedule, bool] | str:
    """Return the live part of a region, its schedule, and whether its order is certain.

    Or why there is none.
    """
    found = ppcg_dependences(region)
    if found.live.is_empty():
        return "it drops all of the region as dead code"
    constraints, grouping = group_chains(region, found, ppcg_constraints(region, found))
    if _size(constraints) > _MAX_SIZE:
        return "it has too many dependences for isl with numbers as sizes"
    live = restricted(scop, _ours(region, found.live))
    computed = _computed(scop, region, constraints, grouping, found)
    return "isl takes too long for PPCG's constraints" if computed is None else (live, *computed)


def _computed(
    scop: Scop,
    region: PpcgRegion,
    constraints: isl.ScheduleConstraints,
    grouping: Grouping | None,
    found: PpcgDependences,
) -> tuple[isl.Schedule, bool] | None:
    """Let isl schedule the region; return the schedule under our names, and if it is certain.

    Or ``None`` where isl comes to no end.
    """
    domain = ppcg_domain(region, found.live, grouping)
    context = region.scop.isl_context
    # isl goes through sets and relations in an order that their history decides; that of the
    # domain is PPCG's, and orders independent statements; relations become text, which has none
    constraints = isl.ScheduleConstraints.read_from_str(context, str(constraints))
    constraints = on_domain(constraints, domain)
    with scheduler_options(context):
        theirs = forked_schedule(constraints, _OPERATIONS, seconds=_SECONDS)
    if theirs is None:
        return None
    above = region.names
    members: tuple[Names, ...] = ()
    if grouping is not None:
        above = grouping.contraction.pullback_union_pw_multi_aff(above)
        ours = {
            a.name: b.name for a, b in zip(region.scop.statements, scop.statements, strict=True)
        }
        members = tuple(tuple(map(ours.__getitem__, names)) for _, names in grouping.members)
    live = _ours(region, found.live)
    carrier = Carrier(domain=live, names=above, members=members, in_sequence=True)
    return carried_over(theirs, carrier), not may_mix(theirs.get_root().get_child(0))


def _ours(region: PpcgRegion, theirs: isl.UnionSet) -> isl.UnionSet:
    return theirs.preimage_union_pw_multi_aff(region.names)


def _size(constraints: isl.ScheduleConstraints) -> int:
    domain = constraints.get_domain()
    relations = (
        constraints.get_validity(),
        constraints.get_coincidence(),
        constraints.get_proximity(),
    )
    return sum(
        relation.n_basic_map() * (relation.domain().n_dim() + relation.range().n_dim())
        for union in relations
        for relation in maps_of(among(union, domain))
    )


# -- ppcg schedule file ------------------------------------------------------------------------
# The schedule files of PPCG (``--save-schedule``): isl's schedule tree under names of PPCG,
# groups of statements included, is matched with the region.


_AGAIN = "save it again with ppcg --save-schedule from this file, with the same -D and -I"


def read_ppcg_schedule(path: StrPath) -> str:
    """Return the text of a schedule file.

    Raises:
        InputError: ``EATSS-P021``, it cannot be read.
    """
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise input_error(
            "EATSS-P021",
            f"cannot read the PPCG schedule '{fspath(path)}': {reason}",
            hint="write one with ppcg --save-schedule=FILE",
        ) from None


def load_ppcg_schedule(scop: Scop, text: str) -> ScheduledScop:
    """Schedule a region as PPCG did, by the schedule that it saved, and cut it into its kernels.

    Args:
        scop: the region.
        text: the file that ``ppcg --save-schedule`` wrote.

    Raises:
        InputError: ``EATSS-P021`` the text is no schedule of PPCG, its statements are not those of
            this region, or it breaks a dependence of it.
            Else as for ``schedule_scop``.
    """
    refuse_unfit(scop)
    with bounded_work(scop):
        region = ppcg_region(scop)
        theirs = _read(scop, text)
        names = region.names
        known = _expanded_domain(theirs)
        _check_domain(scop, region, known)
        live = known.preimage_union_pw_multi_aff(names)
        carrier = Carrier(domain=live, names=names)
        try:
            schedule = carried_over(theirs, carrier)
        except UnknownNodeError:
            raise _error("the PPCG schedule has nodes that no saved schedule has", scop) from None
    try:
        return with_schedule(restricted(scop, live), schedule)
    except InternalError as error:
        problem = error.diagnostics[0].message.removeprefix("internal error: ")
        raise _error(f"the PPCG schedule does not fit this region: {problem}", scop) from None


def _read(scop: Scop, text: str) -> isl.Schedule:
    problem = "the file is not a schedule that PPCG saved"
    try:
        schedule = isl.Schedule.read_from_str(scop.isl_context, text)
        whole = schedule.get_root().n_children() == 1
    except isl.Error as error:
        raise _error(f"{problem}: {error}", scop) from None
    if not whole:
        raise _error(problem, scop)
    return schedule


def _expanded_domain(schedule: isl.Schedule) -> isl.UnionSet:
    """Return the instances of statements, with groups replaced by their members."""
    domain = schedule.get_domain()
    for node in expansions(schedule.get_root().get_child(0)):
        relation = node.expansion_get_expansion()
        groups = relation.domain().universe()
        domain = domain.subtract(groups).union(domain.intersect(groups).apply(relation))
    return domain


def _check_domain(scop: Scop, region: PpcgRegion, known: isl.UnionSet) -> None:
    """Refuse a schedule of other instances than those this region has and PPCG keeps."""
    foreign = set(parameter_names(known.params())) - set(scop.parameters)
    known = known.intersect_params(scop.context)
    live = ppcg_dependences(region).live.intersect_params(scop.context)
    if not foreign and known.is_subset(region.scop.domain) and live.is_subset(known):
        return
    hint = f"give both tools the same -D, and {_AGAIN}"
    if scop.ppcg_counters:
        hint = "declare each counter in its loop, for (int i = 0; ...), and save it again"
    message = "the PPCG schedule is of another region: its parameters, statements or instances"
    raise _error(message, scop, hint)


def _error(message: str, scop: Scop, hint: str = _AGAIN) -> InputError:
    return input_error("EATSS-P021", message, hint=hint, span=scop.span)
