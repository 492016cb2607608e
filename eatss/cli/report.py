"""``eatss report``: what stores of sweeps say, as text, JSON, CSV or one HTML page with figures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from eatss.base.diagnostics import input_error
from eatss.base.streams import echo
from eatss.cli.options import StoreFiles, of_output
from eatss.cli.talk import working

EXAMPLES = {
    "report": """
Examples:

    eatss report 2mm.db

    eatss report @gemm

    eatss report 2mm.db -o 2mm.html

    eatss report gemm.db 2mm.db atax.db -o all.html

    eatss report 2mm.db --figures figures --figures-as pdf

    eatss report 2mm.db -o 2mm.csv

    eatss report 2mm.db --format json | jq '.sweeps[0].trade_off'
"""
}

_Format: TypeAlias = Literal["html", "text", "json", "csv"]
_Figures: TypeAlias = Literal["png", "svg", "pdf"]


def report(
    stores: StoreFiles,
    output: Annotated[
        Path | None,
        of_output(
            "--output -o",
            metavar="FILE",
            help="A page FILE.html; or FILE.json, FILE.txt, FILE.csv.",
        ),
    ] = None,
    output_format: Annotated[
        _Format | None,
        of_output(
            "--format -f",
            help="Default: by the name of FILE; text without one. csv: a line a measurement.",
        ),
    ] = None,
    figures: Annotated[
        Path | None, of_output(metavar="DIR", help="Write each figure to a file of its own in DIR.")
    ] = None,
    figures_as: Annotated[
        _Figures | None, of_output("--figures-as", help="Kind of these files; default: png.")
    ] = None,
) -> None:
    """Report sweeps: the best by time and energy, trade-offs, ranks, correlations. Needs no GPU.

    A page is one file that needs nothing else: figures, tables that sort by a click, data as CSV.
    Of a store with several cards the rows of one count. Prints the
    names of the files that it writes: to stderr where the report goes to stdout.
    """
    from eatss.report.plots import write_bytes  # noqa: PLC0415 - keeps --help fast
    from eatss.reporting import (  # noqa: PLC0415
        checked_output,
        evaluated,
        rendered,
        write_figures,
    )
    from eatss.tune.store import check_no_store  # noqa: PLC0415

    if figures_as is not None and figures is None:
        raise input_error(
            "EATSS-C012",
            "--figures-as is of files that --figures writes",
            hint="name a folder for them: --figures DIR",
        )
    chosen = output_format or "text"
    if output is not None:
        check_no_store(output, stores)
        chosen = checked_output(output, output_format)
    wants_text = output is not None or figures is None or output_format is not None
    with working("evaluating"):
        found = evaluated(stores)
    with working("writing the report"):
        text = rendered(found, chosen) if wants_text else ""
    if output is None:
        echo(text, nl=False)
    else:
        write_bytes(output, text.encode())
        echo(output)
    if figures is not None:
        with working("drawing"):
            files = write_figures(found, figures, figures_as or "png")
        names = "\n".join(map(str, files))
        echo(names, err=output is None and bool(text))
