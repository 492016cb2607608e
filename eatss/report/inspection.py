"""What ``eatss inspect`` prints; sets, relations and schedules are in the notation of isl."""

from __future__ import annotations

import islpy as isl

from eatss.analysis.analyse import AnalysedProgram
from eatss.report.pages import page
from eatss.report.render import render


def render_inspection(program: AnalysedProgram) -> str:
    """Return what is known of a program."""
    return render(*page("inspection", it=program))


def maps_of(relation: isl.UnionMap) -> list[str]:
    """Return the parts of a relation."""
    maps = relation.get_map_list()
    return sorted(str(maps.get_at(position)) for position in range(maps.n_map()))


def schedule_lines(schedule: isl.Schedule) -> list[str]:
    """Return the lines of a schedule tree."""
    printer = isl.Printer.to_str(schedule.get_ctx()).set_yaml_style(isl.yaml_style.BLOCK)
    lines: list[str] = printer.print_schedule(schedule).get_str().splitlines()
    return lines
