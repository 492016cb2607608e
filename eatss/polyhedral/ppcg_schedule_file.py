"""The schedule files of PPCG (``--save-schedule``, ``--load-schedule``), read and written.

PPCG prints isl's schedule tree under its own names, groups of statements included, and takes what
it loads as it is. So what is read is matched with the region, and what is written names every
instance that PPCG schedules, and no other.
"""

from __future__ import annotations

import re
from os import PathLike, fspath
from pathlib import Path

import islpy as isl

from eatss.base.diagnostics import InputError, InternalError, input_error
from eatss.polyhedral.isl_limits import bounded_work, refuse_too_hard
from eatss.polyhedral.isl_names import parameter_names, set_names, universes
from eatss.polyhedral.ppcg_constraints import ppcg_dependences
from eatss.polyhedral.ppcg_region import PpcgRegion, ppcg_region, restricted
from eatss.polyhedral.ppcg_tree import Carrier, UnknownNodeError, carried_over, expansions
from eatss.polyhedral.program import ScheduledScop
from eatss.polyhedral.schedule import with_schedule
from eatss.polyhedral.schedule_file import is_too_deep
from eatss.polyhedral.scops import Scop

_MAX_CHARACTERS = 4 * 1024 * 1024
_AGAIN = "save it again with ppcg --save-schedule from this file, with the same -D and -I"


def read_ppcg_schedule(path: str | PathLike[str]) -> str:
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


def load_ppcg_schedule(
    scop: Scop, text: str, *, max_operations: int | None = None
) -> ScheduledScop:
    """Schedule a region as PPCG did, by the schedule that it saved, and cut it into its kernels.

    Args:
        scop: the region.
        text: the file that ``ppcg --save-schedule`` wrote.
        max_operations: bound on isl's work; ``None`` for the default of the scheduler.

    Raises:
        InputError: ``EATSS-P021`` the text is no schedule of PPCG, ``EATSS-P022`` its statements
            are not those of this region, ``EATSS-P023`` it breaks a dependence of this region.
            Else as for ``schedule_scop``.
    """
    refuse_too_hard(scop)
    with bounded_work(scop, max_operations):
        region = ppcg_region(scop)
        theirs = _read(scop, text)
        names = region.names
        known = _expanded_domain(theirs)
        _check_domain(scop, region, known)
        live = known.preimage_union_pw_multi_aff(names)
        carrier = Carrier(domain=live, names=names, members=region.members)
        try:
            schedule = carried_over(theirs, carrier)
        except UnknownNodeError:
            raise _error(
                "EATSS-P021", "the PPCG schedule has nodes that no saved schedule has", _AGAIN, scop
            ) from None
    try:
        return with_schedule(restricted(scop, live), schedule, max_operations=max_operations)
    except InternalError as error:
        problem = error.diagnostics[0].message.removeprefix("internal error: ")
        raise _error(
            "EATSS-P023", f"the PPCG schedule does not fit this region: {problem}", _AGAIN, scop
        ) from None


def save_ppcg_schedule(scheduled: ScheduledScop, whole: Scop) -> str:
    """Return the schedule of a region for ``ppcg --load-schedule``.

    Args:
        scheduled: the region as scheduled.
        whole: the region as read; what PPCG drops as dead code is found in it.

    Raises:
        InputError: ``EATSS-P024`` PPCG schedules what this region does not have, or other
            instances.
    """
    region = ppcg_region(whole)
    live = ppcg_dependences(region).live
    if whole.ppcg_counters:
        names = ", ".join(f"'{name}'" for name in whole.ppcg_counters)
        raise _error(
            "EATSS-P024",
            f"PPCG also schedules what sets {names}, whose value it takes for a result",
            "declare the counter in the loop: for (int i = 0; ...)",
            whole,
        )
    mine = scheduled.scop.domain
    if not live.preimage_union_pw_multi_aff(region.names).is_subset(mine):
        raise _error(
            "EATSS-P024", "PPCG schedules instances that this schedule lacks", _AGAIN, whole
        )
    firsts = {inside[0] for inside in region.members}
    back = isl.UnionMap.from_union_pw_multi_aff(region.names).reverse()
    own = (one.domain for one in whole.statements if one.name in firsts)
    chosen = universes(whole.no_points, own)
    to_ours = isl.UnionPwMultiAff.from_union_map(back.intersect_range(chosen))
    schedule = carried_over(scheduled.schedule, Carrier(domain=live, names=to_ours))
    printer = isl.Printer.to_str(whole.isl_context)
    return str(printer.print_schedule(schedule).get_str()) + "\n"


def _read(scop: Scop, text: str) -> isl.Schedule:
    problem = "the file is not a schedule that PPCG saved"
    if len(text) > _MAX_CHARACTERS or not text.isascii() or is_too_deep(text):
        raise _error("EATSS-P021", problem, _AGAIN, scop)
    if re.match(r"[\s{\"]*domain", text) is None:
        raise _error("EATSS-P021", problem, _AGAIN, scop)
    try:
        schedule = isl.Schedule.read_from_str(scop.isl_context, text)
        whole = schedule.get_root().n_children() == 1
    except isl.Error as error:
        raise _error("EATSS-P021", f"{problem}: {error}", _AGAIN, scop) from None
    if not whole:
        raise _error("EATSS-P021", problem, _AGAIN, scop)
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
    foreign = sorted(set(parameter_names(known.params())) - set(scop.parameters))
    if foreign:
        names = ", ".join(foreign)
        raise _error(
            "EATSS-P022",
            f"the PPCG schedule has parameters that this region has not: {names}",
            "give both tools the same -D",
            scop,
        )
    known = known.intersect_params(scop.context)
    ours = region.scop.domain
    live = ppcg_dependences(region).live.intersect_params(scop.context)
    if known.is_subset(ours) and live.is_subset(known):
        return
    own = {statement.name for statement in region.scop.statements}
    others = [name for name in set_names(known) if name not in own]
    if others:
        detail = f"it has {_listed(others)}, which this region has not"
    else:
        differ = [s.name for s in region.scop.statements if _differs(s.domain, known)]
        detail = f"{_listed(differ)} runs for other values of its counters"
    hint = _AGAIN
    if scop.ppcg_counters:
        hint = "declare each counter in its loop, for (int i = 0; ...), and save it again"
    raise _error("EATSS-P022", f"the PPCG schedule is of another region: {detail}", hint, scop)


def _differs(domain: isl.Set, known: isl.UnionSet) -> bool:
    return not known.extract_set(domain.get_space()).is_equal(domain)


def _listed(names: list[str]) -> str:
    return ", ".join(names[:5]) + (", …" if len(names) > 5 else "")


def _error(code: str, message: str, hint: str, scop: Scop) -> InputError:
    return input_error(code, message, hint=hint, span=scop.span)
