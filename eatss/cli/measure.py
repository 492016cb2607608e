"""``eatss measure``: generated programs or C files in, time and energy out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from eatss.cli.measure_options import Generating, Measuring, Results, measuring_command
from eatss.cli.messages import say
from eatss.cli.options import Debug, source_argument
from eatss.diagnostics import ExitCode, NoSolutionError

if TYPE_CHECKING:
    from eatss.measurement.measured import Measured
    from eatss.measurement.measurement import Measurement
    from eatss.measurement.options import Variant

EXAMPLES = """
Examples:

    eatss measure build/gemm

    eatss measure @gemm --gpu auto

    eatss measure build/gemm --size NI=2000,NJ=2000 --target 0.5% --format json

    eatss measure @gemm kernels/atax.c -o build --counters
"""

INTERRUPTED = 130
"""Exit code after Ctrl-C, as of a shell."""

MEASURED = ("ok", "unstable")
"""Statuses of programs that are right and were measured."""


@measuring_command
def measure(
    *,
    sources: Annotated[
        list[Path],
        source_argument(
            metavar="DIR|FILE.c|@KERNEL",
            help="Folders of eatss codegen, measured as they are, or C files (@gemm: a kernel of "
            "eatss).",
        ),
    ],
    measuring: Measuring,
    generating: Generating,
    output: Results = "table",
    debug: Debug = False,
) -> None:
    """Measure time and energy of generated programs on the card of this machine.

    Exits with 0 if all were measured and are right (unstable ones are), with 1 if one failed,
    with 130 after Ctrl-C, which keeps what was measured.
    """
    from eatss.measurement.labels import (  # noqa: PLC0415 - keeps --help fast
        is_program,
        program_variant,
        rejected_variant,
        source_labels,
    )
    from eatss.measurement.options import Variant  # noqa: PLC0415
    from eatss.measuring import keeping, refuse_output  # noqa: PLC0415

    device = measuring.options.device

    def one_of_several(label: str, source: Path, folder: Path) -> Variant:
        """Return a program beside others, which a card too small for it does not stop."""
        if source.is_dir():
            return replace(program_variant(source), label=label)
        try:
            made = generating.one(source, folder / label, device)
        except NoSolutionError as error:
            return rejected_variant(label, error)
        return Variant(label=label, directory=made.directory)

    folders = [is_program(source) for source in sources]
    if all(folders):
        refuse_output(generating.directory)
    else:
        generating = generating.for_card(device)
    with keeping(generating.directory) as folder:
        if len(sources) == 1 and not all(folders):
            variants = [generating.one(sources[0], folder, device)]
        else:
            pairs = zip(source_labels(sources), sources, strict=True)
            variants = [one_of_several(label, source, folder) for label, source in pairs]
        finish(_all_measured(variants, measuring, output), output)


def finish(found: Measured, output: Results) -> None:
    """Print measurements and end with the exit code they call for."""
    if found.measurements or not found.interrupted:
        show(found.measurements, output)
    if found.interrupted:
        stop_interrupted(anything=bool(found.measurements))
    if not all(measurement.status in MEASURED for measurement in found.measurements):
        raise typer.Exit(ExitCode.NO_SOLUTION)


def show(measurements: Sequence[Measurement], output: Results) -> None:
    """Print measurements."""
    from eatss.report.measurement import render_measurements  # noqa: PLC0415 - keeps --help fast

    typer.echo(render_measurements(measurements, output), nl=False)


def stop_interrupted(*, anything: bool) -> NoReturn:
    """Say what Ctrl-C left, and end as a shell expects after it."""
    kept = "what was measured until then is kept" if anything else "nothing was measured yet"
    say(f"interrupted: {kept}")
    raise typer.Exit(INTERRUPTED)


def _all_measured(variants: Sequence[Variant], measuring: Measuring, output: Results) -> Measured:
    """Measure programs one after another; Ctrl-C ends the rest as well.

    All are looked at before the first is measured; where one fails later all the same, what was
    measured is printed first.
    """
    from eatss.measurement.comparable import check_measurable  # noqa: PLC0415 - keeps --help fast
    from eatss.measurement.measured import Measured  # noqa: PLC0415

    check_measurable(variants, measuring.options)
    done: list[Measurement] = []
    for variant in variants:
        try:
            found = measuring.measured((variant,))
        except KeyboardInterrupt:
            return Measured(measurements=tuple(done), interrupted=True)
        except Exception:
            if done:
                show(done, output)
            raise
        done += found.measurements
        if found.interrupted:
            return Measured(measurements=tuple(done), interrupted=True)
    return Measured(measurements=tuple(done), interrupted=False)
