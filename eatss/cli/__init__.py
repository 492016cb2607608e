"""The command line: one file a command, no logic of its own.

Data goes to stdout, talk to stderr. Exit codes: 0 fine, 1 no solution or a program that fails, 2
the user's input, 3 a requirement that is not met, 70 our own fault, 130 Ctrl-C.
"""

from __future__ import annotations

import gc
import sys

import typer

from eatss.cli import codegen, compare, doctor, inspect, measure, predict, profiles, select, verify
from eatss.cli.common import internal_fault, report_error
from eatss.diagnostics import EatssError, ExitCode
from eatss.interrupts import ended_as_interrupted

app = typer.Typer(
    name="eatss",
    help="Energy-aware tile sizes for affine loops on GPUs, proven optimal.",
    epilog="Start with: eatss select kernels/gemm.c --gpu a100",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(epilog=select.EXAMPLES)(select.select)
app.command(epilog=predict.EXAMPLES)(predict.predict)
app.command(epilog=codegen.EXAMPLES)(codegen.codegen)
app.command(epilog=verify.EXAMPLES)(verify.verify)
app.command(epilog=measure.EXAMPLES)(measure.measure)
app.command(epilog=compare.EXAMPLES)(compare.compare)
app.command(epilog=inspect.EXAMPLES)(inspect.inspect)
app.command(epilog=profiles.EXAMPLES)(profiles.profiles)
app.command(epilog=doctor.EXAMPLES)(doctor.doctor)


@app.callback(invoke_without_command=True)
def root(
    version: bool = typer.Option(False, "--version", help="Print the version and exit."),
) -> None:
    """Energy-aware tile sizes for affine C loops on GPUs."""
    if version:
        from eatss import __version__  # noqa: PLC0415

        typer.echo(f"eatss {__version__}")
        raise typer.Exit


_OBJECTS = 100_000
"""Objects between two rounds of the garbage collector. Imports make many that all stay: with the
usual 700, a tenth of a short command went into looking through them."""


def main() -> None:
    """Run the command line and turn every error into words and an exit code."""
    json_wanted = _wants_json_diagnostics(sys.argv[1:])
    gc.set_threshold(_OBJECTS)
    try:
        with ended_as_interrupted():
            app()
    except EatssError as error:
        report_error(error, as_json=json_wanted)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(ExitCode.OK)
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        internal_fault(error, as_json=json_wanted, traceback="--debug" in sys.argv)
        sys.exit(ExitCode.INTERNAL)


def _wants_json_diagnostics(arguments: list[str]) -> bool:
    joined = " ".join(arguments)
    return "--diagnostics json" in joined or "--diagnostics=json" in joined
