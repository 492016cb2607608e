"""``eatss meter``: any program in, its time, energy and power out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Annotated

from eatss.base.diagnostics import InputError, input_error
from eatss.base.options import Asked, argument, option
from eatss.base.streams import echo
from eatss.cli.options import (
    TableOrJson,
    check_writable,
    of_output,
    write_text,
)
from eatss.cli.talk import report_error
from eatss.measurement.options import MeterOptions

if TYPE_CHECKING:
    from eatss.measurement.foreign import ProgramEnergy

EXAMPLES = {
    "meter": """
Examples:

    eatss meter -- ./gemm 4000

    eatss meter --repeat 50 -- ./short

    eatss meter --gpus all -- python3 train.py

    eatss meter --gpus 0,1 --trace power.csv --plot power.svg -- ./gemm 4000

    eatss meter --format json -o gemm.json -- ./gemm 4000
"""
}


def meter(
    *,
    command: Annotated[
        list[str],
        argument(metavar="-- PROGRAM [ARGUMENTS]", help="What to run.", show_default=False),
    ],
    metering: Asked[MeterOptions],
    trace: Annotated[
        Path | None, of_output(metavar="FILE", help="Write the power over time as CSV.")
    ] = None,
    plot: Annotated[
        Path | None,
        of_output(metavar="FILE", help="Draw the power over time: .svg, .png or .pdf."),
    ] = None,
    file: Annotated[
        Path | None,
        of_output("--output -o", metavar="FILE", help="Write results there, not on stderr."),
    ] = None,
    output: Annotated[TableOrJson, of_output("--format -f", help="What to write.")] = "table",
    nvml: Annotated[
        str | None,
        option("--nvml", metavar="MODULE:NAME", hidden=True, help="Stands in for NVML."),
    ] = None,
) -> None:
    """Run any program and tell its time, and the energy and power of cards meanwhile.

    The program's standard streams, signals and exit code are its own: results go to standard
    error, or to a file (-o). Exits with 127 if there is no such program.
    """
    from eatss.report.plots import check_plot_file  # noqa: PLC0415 - keeps --help fast
    from eatss.report.render import printed  # noqa: PLC0415

    _check_files((("--output", file), ("--trace", trace), ("--plot", plot)))
    if plot is not None:
        check_plot_file(plot)
    found = _metered(command, metering.made(), nvml)
    text = printed(found, output)
    written = _written(found, text, trace=trace, plot=plot, file=file)
    if file is None or not written:
        echo(text, err=True, nl=False)
    if found.exit_code or not written:
        raise SystemExit(found.exit_code or InputError.exit_code)


def _metered(command: Sequence[str], options: MeterOptions, nvml: str | None) -> ProgramEnergy:
    """Run the program; one that cannot be started ends the command as a shell would."""
    from eatss.measurement.foreign import NotStartedError, meter_program  # noqa: PLC0415

    module = None if nvml is None else resolve_name(nvml)
    try:
        return meter_program(command, options, module=module)
    except NotStartedError as error:
        report_error(error)
        raise SystemExit(error.status) from None


def _written(
    found: ProgramEnergy, text: str, *, trace: Path | None, plot: Path | None, file: Path | None
) -> bool:
    """Write the files that are asked for, and tell whether all could be: each is tried."""
    from eatss.report.measurement import power_csv  # noqa: PLC0415
    from eatss.report.plots import plot_program  # noqa: PLC0415

    writing: list[tuple[Path | None, Callable[[Path], None]]] = [
        (trace, lambda path: write_text("--trace", path, power_csv(found))),
        (plot, lambda path: plot_program(found, path)),
        (file, lambda path: write_text("--output", path, text)),
    ]
    failed = False
    for path, write in writing:
        try:
            if path is not None:
                write(path)
        except InputError as error:
            report_error(error)
            failed = True
    return not failed


def _check_files(named: Sequence[tuple[str, Path | None]]) -> None:
    """Refuse files that cannot be written before a program runs, maybe for hours."""
    known: dict[Path, str] = {}
    for word, path in named:
        if path is None:
            continue
        first = known.setdefault(path.resolve(), word)
        if first != word:
            raise input_error(
                "EATSS-C008", f"{first} and {word} both name '{path}'", hint="name two files"
            )
    for word, path in reversed(named):
        if path is not None:
            check_writable(word, path)
