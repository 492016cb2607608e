"""PPCG's defaults, and what is lost where it is told less than was selected."""

from __future__ import annotations

from eatss.diagnostics import Diagnostic, Severity
from eatss.model.selection import Selection

PPCG_SHARED_BYTES = 8192
"""PPCG's ``--max-shared-memory`` where it is told nothing."""


def sizes_alone(selection: Selection) -> tuple[Diagnostic, ...]:
    """Return a warning where ``--sizes`` is not all that a predicted selection asks of PPCG."""
    options = selection.ppcg_options
    if options is None or selection.keeps_default:
        return ()
    if options.max_shared_memory == PPCG_SHARED_BYTES and not options.unroll_gpu_tile:
        return ()
    return (
        Diagnostic(
            code="EATSS-M015",
            severity=Severity.WARNING,
            message="these sizes were chosen together with --max-shared-memory="
            f"{options.max_shared_memory}, which PPCG is not told by --sizes",
            hint="take --format ppcg-args, which prints both",
        ),
    )
