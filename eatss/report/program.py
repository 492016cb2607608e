"""What ``eatss codegen`` prints, and a callable in a few lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from math import prod
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from eatss.base.codec import JsonForm, json_text
from eatss.base.diagnostics import Diagnostic
from eatss.base.frozen import frozen
from eatss.base.shown import pairs_text
from eatss.base.text import bytes_text
from eatss.program import KernelCode, Launch, Program, every_step
from eatss.report.expectation import kernel_head
from eatss.report.render import RIGHT, apart, counted, facts, headed, listing, render

if TYPE_CHECKING:
    from eatss.session.jit.callable import JitFunction
    from eatss.verify.ptxas import KernelResources


@frozen
class PrintedPlan(Program):
    """A launch plan, what a run is expected to take, and what was said of the source.

    Attributes:
        expected: What a run is expected to take on the card, and at which sizes; ``None`` where
            nothing was predicted.
        warnings: What was said of the source and of the sizes.
    """

    json_layout = JsonForm(apart=("text",))

    warnings: tuple[Diagnostic, ...] = ()


def render_program(
    program: Program,
    output: str,
    resources: Sequence[KernelResources] | None = None,
    warnings: tuple[Diagnostic, ...] = (),
) -> str:
    """Return a program as ``table`` or ``json`` (a :class:`PrintedPlan`).

    ``resources`` are what the CUDA compiler reports of its kernels, if it was asked.
    """
    if output == "json":
        plan = {one.name: getattr(program, one.name) for one in fields(program)}
        return json_text(PrintedPlan(**plan, warnings=warnings))
    return render(*program_parts(program, resources))


def program_parts(
    program: Program, resources: Sequence[KernelResources] | None = None
) -> list[RenderableType]:
    """Return what is told of a program, part by part."""
    functions = dict.fromkeys(entry.function for entry in program.entries)
    order = ", strict order of operations" if program.strict_fp else ""
    head = headed(
        program.original.file,
        f"  {', '.join(functions)}",
        f"\n{program.gpu}, {program.dtype}, {program.index_bits}-bit indices{order}",
    )
    loops: dict[str, list[str]] = {}
    for entry in program.entries:
        for step, around in every_step(entry.body):
            if isinstance(step, Launch):
                loops.setdefault(step.kernel, [loop.counter for loop in around])
    return apart(
        [head],
        *(_kernel(kernel, loops.get(kernel.name, ())) for kernel in program.kernels),
        [] if resources is None else [_resources(program, resources)],
        [] if program.expected is None else [f"expected: {program.expected}"],
    )


def _kernel(kernel: KernelCode, host_loops: Sequence[str]) -> list[RenderableType]:
    shape = " x ".join(map(str, kernel.block))
    dynamic = ", passed at launch" if kernel.dynamic_shared else ""
    said = facts(
        (
            ("  tiles", Text(pairs_text(kernel.tile_sizes) or "none", style="bold")),
            ("  block", f"{shape} = {counted(prod(kernel.block), 'thread')}"),
            ("  shared", bytes_text(kernel.shared_bytes) + dynamic),
            ("  registers", f"about {kernel.registers} a thread"),
            *(("  note", note) for note in kernel.notes),
        ),
        no_wrap=False,
    )
    return [kernel_head(kernel, host_loops=host_loops), said]


def _resources(program: Program, resources: Sequence[KernelResources]) -> Table:
    rows = []
    for needed in resources:
        kernel = program.kernel(needed.kernel)
        dynamic = kernel.shared_bytes if kernel.dynamic_shared else 0
        spilled = needed.spill_store_bytes + needed.spill_load_bytes
        shared = needed.static_shared_bytes + dynamic
        numbers = (needed.registers, spilled, needed.stack_bytes, shared)
        rows.append((needed.kernel, *map(str, numbers)))
    titles = ("compiled", ">registers", ">spilled bytes", ">stack bytes", ">shared bytes")
    return listing(titles, rows, RIGHT)


def jit_parts(function: JitFunction) -> list[RenderableType]:
    """Return what a callable takes, and how much it has made so far."""
    made = function.info()
    counts = (str(made.programs), str(made.plans), str(made.graphs))
    table = listing((">programs", ">sizes ready", "graphs"), [counts])
    expected = [f"expected: {one}" for one in made.expected]
    return [Text(repr(function)[1:-1], style="bold"), table, *expected]
