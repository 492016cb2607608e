"""What ``eatss select`` and ``codegen`` print of kernels."""

from __future__ import annotations

from dataclasses import fields

from eatss.base.codec import JsonForm, json_text
from eatss.base.diagnostics import Diagnostics
from eatss.base.frozen import frozen
from eatss.choose.selection import Selection
from eatss.program import Launch, Program, every_step
from eatss.report.pages import parts_of
from eatss.report.render import render


def selection_table(selection: Selection, *, explain: bool = False) -> str:
    """Return a selection for people; ``explain`` adds the grid and the objective."""
    return render(*parts_of(selection, explain=explain))


@frozen
class PrintedPlan(Program):
    """A launch plan, what a run is expected to take, and what was said of the source.

    Attributes:
        expected: What a run is expected to take on the card, and at which sizes; ``None`` where
            nothing was predicted.
        warnings: What was said of the source and of the sizes.
    """

    json_layout = JsonForm(apart=("text",))

    warnings: Diagnostics = ()


def render_program(program: Program, output: str, warnings: Diagnostics = ()) -> str:
    """Return a program as ``table`` or ``json`` (a :class:`PrintedPlan`)."""
    if output == "json":
        plan = {one.name: getattr(program, one.name) for one in fields(program)}
        return json_text(PrintedPlan(**plan, warnings=warnings))
    return render(*parts_of(program))


def host_loops(program: Program) -> dict[str, list[str]]:
    """Return the loops on the host around each kernel."""
    found: dict[str, list[str]] = {}
    for entry in program.entries:
        for step, around in every_step(entry.body):
            if isinstance(step, Launch):
                found.setdefault(step.kernel, [loop.counter for loop in around])
    return found
