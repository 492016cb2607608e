"""``eatss measure``: generated programs or C files in, time and energy out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from eatss.cli.common import (
    Debug,
    Defines,
    Diagnostics,
    DiagnosticsFormat,
    Dtype,
    Function,
    IncludeDirs,
    MaxOperations,
    Parameters,
    ScopIndex,
    report_warnings,
    working,
)
from eatss.cli.measure_options import (
    Budget,
    CardClass,
    Compiler,
    CompilerName,
    Counters,
    Device,
    Force,
    Format,
    Gpu,
    KeepIn,
    Meter,
    NoCheck,
    ResultFormat,
    Seed,
    Sizes,
    Target,
    Timeout,
    Updates,
    Windows,
    WindowSeconds,
    measure_options,
    source_options,
)
from eatss.cli.measure_progress import showing
from eatss.diagnostics import ExitCode, NoSolutionError

if TYPE_CHECKING:
    from eatss.measurement.measurement import Measurement
    from eatss.measurement.options import MeasureOptions, Variant
    from eatss.measuring import Measured
    from eatss.variants import SourceOptions

EXAMPLES = """
Examples:

    eatss measure build/gemm

    eatss measure kernels/gemm.c --gpu auto

    eatss measure build/gemm --size NI=2000,NJ=2000,NK=2000 --target 0.5% --format json

    eatss measure kernels/gemm.c kernels/atax.c -o build --counters
"""

INTERRUPTED = 130
"""Exit code after Ctrl-C, as of a shell."""

MEASURED = ("ok", "unstable")
"""Statuses of programs that are right and were measured."""


def measure(
    sources: Annotated[
        list[Path],
        typer.Argument(
            metavar="DIR|FILE.c...",
            help="Folders of eatss codegen, measured as they are, or C files.",
        ),
    ],
    gpu: Gpu = "auto",
    size: Sizes = None,
    seed: Seed = 0,
    meter: Meter = "auto",
    compiler: Compiler = CompilerName.AUTO,
    device: Device = "0",
    window: WindowSeconds = 2.0,
    updates: Updates = 20,
    windows: Windows = 3,
    target: Target = "1%",
    budget: Budget = 60.0,
    timeout: Timeout = 60.0,
    no_check: NoCheck = False,
    counters: Counters = False,
    directory: KeepIn = None,
    force: Force = False,
    output: Format = ResultFormat.TABLE,
    dtype: Dtype = None,
    define: Defines = None,
    include: IncludeDirs = None,
    param: Parameters = None,
    function: Function = None,
    scop: ScopIndex = None,
    max_operations: MaxOperations = None,
    diagnostics: Diagnostics = DiagnosticsFormat.TEXT,
    debug: Debug = False,
    card: CardClass = None,
) -> None:
    """Measure time and energy of generated programs on the card of this machine.

    Exits with 0 if all were measured and are right (unstable ones are), with 1 if one failed,
    with 130 after Ctrl-C, which keeps what was measured.
    """
    options = measure_options(
        size=size,
        seed=seed,
        meter=meter,
        compiler=compiler,
        device=device,
        window=window,
        updates=updates,
        windows=windows,
        target=target,
        budget=budget,
        timeout=timeout,
        no_check=no_check,
        counters=counters,
    )
    from eatss import measuring  # noqa: PLC0415 - keeps --help fast
    from eatss.measurement.options import Variant  # noqa: PLC0415

    folders = [measuring.is_program(source) for source in sources]
    if all(folders):
        measuring.refuse_output(directory)
        labels = measuring.source_labels(sources)
        variants = [
            Variant(label=label, directory=source)
            for label, source in zip(labels, sources, strict=True)
        ]
        finish(_all_measured(variants, options, card, output), output)
        return
    reading = source_options(
        gpu=gpu,
        dtype=dtype,
        define=define,
        include=include,
        param=param,
        function=function,
        scop=scop,
        max_operations=max_operations,
        force=force,
    )
    with measuring.keeping(directory) as folder:
        if len(sources) == 1:
            variants = [_generated(sources[0], reading, folder, options.device, diagnostics)]
        else:
            variants = [
                Variant(label=label, directory=source)
                if is_folder
                else _one_of_several(
                    label, source, reading, folder / label, options.device, diagnostics
                )
                for label, source, is_folder in zip(
                    measuring.source_labels(sources), sources, folders, strict=True
                )
            ]
        finish(_all_measured(variants, options, card, output), output)


def finish(found: Measured, output: ResultFormat) -> None:
    """Print measurements and end with the exit code they call for."""
    if found.measurements or not found.interrupted:
        show(found.measurements, output)
    if found.interrupted:
        stop_interrupted(anything=bool(found.measurements))
    if not all(measurement.status in MEASURED for measurement in found.measurements):
        raise typer.Exit(ExitCode.NO_SOLUTION)


def show(measurements: Sequence[Measurement], output: ResultFormat) -> None:
    """Print measurements."""
    from eatss.report.measurement import render_measurements  # noqa: PLC0415 - keeps --help fast

    typer.echo(render_measurements(measurements, output.value), nl=False)


def stop_interrupted(*, anything: bool) -> NoReturn:
    """Say what Ctrl-C left, and end as a shell expects after it."""
    kept = "what was measured until then is kept" if anything else "nothing was measured yet"
    typer.echo(f"interrupted: {kept}", err=True)
    raise typer.Exit(INTERRUPTED)


def _generated(
    source: Path,
    reading: SourceOptions,
    folder: Path,
    device: int | str,
    diagnostics: DiagnosticsFormat,
) -> Variant:
    from eatss.variants import generate_one  # noqa: PLC0415 - folders need no generator

    with working(f"generating a program from {source}"):
        variant, warnings = generate_one(source, reading, folder, device=device)
    report_warnings(warnings, diagnostics)
    return variant


def _one_of_several(
    label: str,
    source: Path,
    reading: SourceOptions,
    folder: Path,
    device: int | str,
    diagnostics: DiagnosticsFormat,
) -> Variant:
    """Return a program generated beside others, which a card too small for it does not stop."""
    from eatss.measurement.options import Variant  # noqa: PLC0415 - keeps --help fast

    try:
        made = _generated(source, reading, folder, device, diagnostics)
    except NoSolutionError as error:
        reason = "; ".join(found.message for found in error.diagnostics)
        return Variant(label=label, directory=None, rejection=reason)
    return Variant(label=label, directory=made.directory)


def _all_measured(
    variants: Sequence[Variant], options: MeasureOptions, card: str | None, output: ResultFormat
) -> Measured:
    """Measure programs one after another; Ctrl-C ends the rest as well.

    All are looked at before the first is measured; where one fails later all the same, what was
    measured is printed first.
    """
    from eatss.measurement.comparable import check_measurable  # noqa: PLC0415 - keeps --help fast
    from eatss.measuring import Measured, measured  # noqa: PLC0415

    check_measurable(variants, options)
    done: list[Measurement] = []
    for variant in variants:
        try:
            with showing() as progress:
                found = measured((variant,), options, progress=progress, card=card)
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
