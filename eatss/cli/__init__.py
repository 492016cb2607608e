"""The command line: a file for each command or few that belong together, no logic of its own.

Data goes to stdout, talk to stderr. Exit codes: 0 fine, 1 no solution or a program that fails, 2
the user's input, 3 a requirement that is not met, 70 our own fault, 130 Ctrl-C.
"""

from __future__ import annotations

import sys

_OBJECTS = 100_000
"""Objects between two rounds of the garbage collector. Imports make many that all stay: with the
usual 700, a tenth of a short command went into looking through them."""


_BOUNDED = ("select", "inspect", "predict", "codegen")
"""Commands that only compute: they run in a process of their own that is bounded."""


def main() -> None:
    """Run the command line and turn every error into words and an exit code.

    Whatever takes time to load is loaded in here, where Ctrl-C ends it without a traceback.
    """
    try:
        sys.exit(_bounded_command() if _command_word() in _BOUNDED else command())
    except KeyboardInterrupt:
        sys.exit(130)


def _command_word() -> str:
    return next((word for word in sys.argv[1:] if not word.startswith("-")), "")


def _bounded_command() -> int:
    import os  # noqa: PLC0415

    # none multiplies matrices: OpenBLAS's threads would only wait, and take time to start
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from eatss.base.diagnostics import InputError  # noqa: PLC0415
    from eatss.base.forked import bounded  # noqa: PLC0415
    from eatss.base.streams import ended_as_interrupted  # noqa: PLC0415

    try:
        with ended_as_interrupted():
            return bounded(command)
    except InputError as error:  # it took too long: other errors are told where they occur
        from eatss.cli.talk import cleared, report_error  # noqa: PLC0415

        cleared()
        report_error(error)
        return error.exit_code


def command() -> int:
    """Run the command of ``sys.argv`` in this process and return its exit code."""
    import gc  # noqa: PLC0415

    gc.set_threshold(_OBJECTS)
    import warnings  # noqa: PLC0415

    from eatss.base.compilers import missing_packages_named  # noqa: PLC0415
    from eatss.base.diagnostics import EatssError, EatssWarning, ExitCode  # noqa: PLC0415
    from eatss.base.streams import ended_as_interrupted, standard_streams  # noqa: PLC0415
    from eatss.cli.talk import (  # noqa: PLC0415
        Talk,
        current,
        internal_fault,
        of_the_system,
        report_error,
        show_warning,
    )

    before = current.set(Talk(debug="--debug" in sys.argv))
    try:
        with standard_streams(), warnings.catch_warnings():
            warnings.showwarning = show_warning
            warnings.simplefilter("always", EatssWarning)
            try:
                with ended_as_interrupted(), missing_packages_named():
                    from eatss.cli.app import run  # noqa: PLC0415 - within Ctrl-C's bounds

                    run(sys.argv[1:])
            except EatssError as error:
                report_error(error)
                return error.exit_code
            except MemoryError:  # where memory is bounded, that is told elsewhere
                raise
            except Exception as error:
                told = of_the_system(error)
                if told is not None:
                    report_error(told)
                    return told.exit_code
                internal_fault(error, current.get())
                return ExitCode.INTERNAL
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    except KeyboardInterrupt:
        return 130
    finally:
        current.reset(before)
    return ExitCode.OK
