"""The process that makes variants: it may crash or run out of memory, its parent does not.

It takes a :class:`MakerJob`, then variants as they come, and tells of each that is made. What is
found out about the program stays in it; each variant is made in a fork of it, since isl's bindings
keep what they are given.
"""

from __future__ import annotations

import resource
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from eatss.base.diagnostics import EatssError
from eatss.base.supervisor import connect, end_at_sigterm
from eatss.base.targets import TARGETS
from eatss.measurement.card import CompileError
from eatss.measurement.compile import CompileTarget, compile_target
from eatss.program import load_program
from eatss.tune.jobs import BuiltVariant, MakerJob, VariantJob
from eatss.tune.makers import CudaMaker, PpcgMaker
from eatss.verify.sizes import complete_sizes


def main() -> None:
    """Make what standard input asks for, until it ends."""
    end_at_sigterm()
    job, orders, emit = connect(MakerJob, VariantJob)
    maker = (CudaMaker if TARGETS[job.target].own else PpcgMaker)(job)
    with suppress(EatssError):  # who asks for a variant is told of it
        maker.warm()
    compiler = compile_target(job.capability, job.compiler, job.nvcc) if job.capability else None
    for wanted in orders:
        before_s = _spent_s()
        built = _made(maker, compiler, wanted)
        emit(replace(built, row=replace(built.row, made_s=_spent_s() - before_s)))


def _made(
    maker: CudaMaker | PpcgMaker, compiler: CompileTarget | None, wanted: VariantJob
) -> BuiltVariant:
    """Return a variant, compiled into the cache where something compiles, or why there is none."""
    try:
        built = maker.make(wanted)
        if compiler is not None:
            program = load_program(Path(built.folder or ""))
            compiler.compile(program, complete_sizes(program, {}))
    except CompileError as error:
        return BuiltVariant(row=replace(built.row, status="compile error", reason=str(error)))
    except EatssError as error:
        reason = "; ".join(found.message for found in error.diagnostics)
        return BuiltVariant(row=wanted.row("rejected by the model", reason))
    return built


def _spent_s() -> float:
    """Return the seconds of the processor that this process and what it started have taken."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


if __name__ == "__main__":
    main()
