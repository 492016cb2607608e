"""What ``eatss codegen`` prints, and a callable in a few lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from math import prod
from typing import TYPE_CHECKING

from rich.console import JustifyMethod, RenderableType
from rich.table import Table
from rich.text import Text

from eatss.codec import JsonForm, json_text
from eatss.diagnostics import Diagnostic
from eatss.frozen import frozen
from eatss.program import (
    KernelCode,
    Launch,
    Program,
    every_step,
)
from eatss.report.render import indented_table, render
from eatss.text import bytes_text

if TYPE_CHECKING:
    from eatss.calls.callable import JitFunction
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
    return program_table(program, resources)


def program_table(program: Program, resources: Sequence[KernelResources] | None = None) -> str:
    """Return a program for people."""
    return render(*program_parts(program, resources))


def program_parts(
    program: Program, resources: Sequence[KernelResources] | None = None
) -> list[RenderableType]:
    """Return what is told of a program, part by part."""
    functions = dict.fromkeys(entry.function for entry in program.entries)
    head = Text(program.original.file, style="bold")
    head.append(f"  {', '.join(functions)}", style="not bold")
    order = ", strict order of operations" if program.strict_fp else ""
    head.append(
        f"\n{program.gpu}, {program.dtype}, {program.index_bits}-bit indices{order}",
        style="not bold",
    )
    loops = _host_loops(program)
    parts: list[RenderableType] = [head]
    for kernel in program.kernels:
        parts += ["", *_kernel(kernel, loops.get(kernel.name, ()))]
    if resources is not None:
        parts += ["", _resources(program, resources)]
    if program.expected is not None:
        parts += ["", f"expected: {program.expected}"]
    return parts


def _kernel(kernel: KernelCode, host_loops: tuple[str, ...]) -> list[RenderableType]:
    head = Text(kernel.name, style="bold cyan")
    head.append(f"  {', '.join(kernel.statements)}", style="default")
    if host_loops:
        head.append(f"  inside host loops {', '.join(host_loops)}", style="default")
    threads = prod(kernel.block)
    facts = Table.grid(padding=(0, 2, 0, 0))
    facts.add_column(style="dim")
    facts.add_column(overflow="fold")
    tiles = ", ".join(f"{loop} {size}" for loop, size in kernel.tile_sizes)
    facts.add_row("  tiles", Text(tiles or "none", style="bold"))
    shape = " x ".join(map(str, kernel.block))
    facts.add_row("  block", f"{shape} = {threads} thread{'s' * (threads > 1)}")
    dynamic = ", passed at launch" if kernel.dynamic_shared else ""
    facts.add_row("  shared", bytes_text(kernel.shared_bytes) + dynamic)
    facts.add_row("  registers", f"about {kernel.registers} a thread")
    for note in kernel.notes:
        facts.add_row("  note", note)
    return [head, facts]


def _resources(program: Program, resources: Sequence[KernelResources]) -> Table:
    names = ("registers", "spilled bytes", "stack bytes", "shared bytes")
    table = _table("compiled", *names, numbers=names)
    for needed in resources:
        kernel = program.kernel(needed.kernel)
        dynamic = kernel.shared_bytes if kernel.dynamic_shared else 0
        table.add_row(
            needed.kernel,
            str(needed.registers),
            str(needed.spill_store_bytes + needed.spill_load_bytes),
            str(needed.stack_bytes),
            str(needed.static_shared_bytes + dynamic),
        )
    return table


def _host_loops(program: Program) -> dict[str, tuple[str, ...]]:
    """Return the counters of the host loops around each kernel."""
    found: dict[str, tuple[str, ...]] = {}
    for entry in program.entries:
        for step, around in every_step(entry.body):
            if isinstance(step, Launch):
                found.setdefault(step.kernel, tuple(loop.counter for loop in around))
    return found


def _table(*columns: str, numbers: tuple[str, ...] = ()) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in columns:
        justify: JustifyMethod = "right" if column in numbers else "left"
        table.add_column(column, justify=justify, header_style="dim", overflow="fold")
    return table


def jit_parts(function: JitFunction) -> list[RenderableType]:
    """Return what a callable takes, and how much it has made so far."""
    made = function.info()
    table = indented_table("programs", "sizes ready", "graphs", numbers=("programs", "sizes ready"))
    table.add_row(str(made.programs), str(made.plans), str(made.graphs))
    head = Text(repr(function)[1:-1], style="bold")
    expected = [f"expected: {one}" for one in made.expected]
    return [head, table, *expected]
