"""``ScheduledScop`` × ``KernelFacts`` in, the runs of kernels that share rows out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import islpy as isl

from eatss.analysis import KernelFacts
from eatss.analysis.layout import RowBlock
from eatss.analysis.program import AnalysedProgram
from eatss.gpu import GpuProfile
from eatss.lower.row_planning import RowPlanner
from eatss.lower.row_storage import lane_loop, span_of
from eatss.lower.structures import Describing
from eatss.plan.phases import RowPhase, RowRun
from eatss.polyhedral import ScheduledScop
from eatss.polyhedral.isl_limits import at_most, bounded_work, ran_out
from eatss.polyhedral.schedule import default_operations
from eatss.polyhedral.source_lines import source_lines
from eatss.recipe.options import CodegenOptions
from eatss.schedule.names import NameTable
from eatss.schedule.pieces import pieces_of
from eatss.schedule.row_blocks import row_groups

_OPERATIONS = 2_000_000
"""What isl may do for one run of kernels; each of ``kernels/`` takes under a tenth of a second."""

_TRIAL_LANES = 32
"""Shows whether rows can go through several kernels; the number decides nothing."""


def row_runs_for(
    program: AnalysedProgram,
    profile: GpuProfile,
    *,
    strict_fp: bool = False,
    code: Callable[[], Sequence[ScheduledScop]] | None = None,
) -> tuple[RowRun, ...]:
    """Return the runs of kernels of a program that share rows.

    Args:
        program: the kernels.
        profile: the card.
        strict_fp: whether sums keep their order.
        code: gives the schedules of the regions that code is made from. It is called if there are
            such runs at the sizes of the source: rows of code for any size may differ.

    Raises:
        InputError: ``EATSS-P001``, isl needs more than the program's ``max_operations`` for one
            region.
    """
    options = CodegenOptions(strict_fp=strict_fp)

    def found_in(schedules: Sequence[ScheduledScop]) -> tuple[RowRun, ...]:
        found: list[RowRun] = []
        for scheduled, region in zip(schedules, program.scops, strict=True):
            limit = program.max_operations or default_operations(scheduled.scop)
            with source_lines("on what code can be made"), bounded_work(scheduled.scop, limit):
                found += row_runs(scheduled, region.facts, profile, options)
        return tuple(found)

    numeric = found_in([region.scheduled for region in program.scops])
    return found_in(code()) if numeric and code is not None else numeric


def row_runs(
    scheduled: ScheduledScop,
    facts: Sequence[KernelFacts],
    profile: GpuProfile,
    options: CodegenOptions,
) -> Iterator[RowRun]:
    """Yield the runs of kernels of a region that share rows, and in which a row has a sum."""
    names = NameTable((scheduled.scop.function, *scheduled.scop.parameters))
    pieces = pieces_of(scheduled, names)
    planner = RowPlanner(scheduled, facts, profile, options)
    known = {one.statements: one for one in facts}
    for run, depth in row_groups(pieces, scheduled.dependences):
        kernels = [known.get(piece.kernel.statements) for piece in run]
        named = tuple(one.name for one in kernels if one is not None)
        if len(named) < len(run):
            continue
        block = RowBlock(kernels=named, loops=depth, rows=1, lanes=_TRIAL_LANES, tile=_TRIAL_LANES)
        local = names.inner()
        for piece in run:
            local.reserve(*(loop.name for loop in (*piece.band, *piece.inner)))
        try:
            with at_most(scheduled.scop.isl_context, _OPERATIONS):
                units = planner.phases(run, block, local)
        except isl.Error:
            if ran_out(scheduled.scop):
                raise
            units = None
        if units is None or not any(unit.mapping.split is not None for unit in units):
            continue
        phases = []
        for unit in units:
            (kernel,) = (one for one in facts if one.name == unit.kernel)
            piece = next(one for one in run if one.kernel.statements == kernel.statements)
            described = Describing(
                scheduled, tuple(facts), profile, options, "off", piece, kernel, local
            )
            loop = lane_loop(unit)
            span = None if loop is None else span_of(unit.piece, loop)
            phases.append(
                RowPhase(
                    kernel=kernel.name,
                    launch=described.launch(unit),
                    rows=tuple(loop.source_name for loop in unit.mapping.mapped[:depth]),
                    lane_loop=None if loop is None else loop.source_name,
                    length=None if span is None or span[0] < 0 else span[1] + 1,
                )
            )
        parts = [named[start:end] for end in range(len(named) + 1) for start in range(end)]
        storage = (
            (part, planner.storage([one for one in units if one.kernel in part], depth))
            for part in parts
        )
        yield RowRun(kernels=named, phases=tuple(phases), storage=tuple(storage))
