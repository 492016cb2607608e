"""``eatss results``: what sweeps measured, shown and exported."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from eatss.base.options import option
from eatss.base.streams import echo
from eatss.base.targets import Order, meant
from eatss.base.text import counted
from eatss.cli.options import STORE_HELP, Format, store_argument
from eatss.cli.talk import say, working

EXAMPLES = {
    "results": """
Examples:

    eatss results show @gemm --top 5

    eatss results show 2mm.db --by energy --top 10

    eatss results export 2mm.db -o 2mm.csv
"""
}

StoreFile = Annotated[str, store_argument(help=f"File {STORE_HELP}")]
By = Annotated[Order, option(help=f"What is best; {meant()}.")]
HELP = {"results": "Show and export what sweeps measured."}


def results_show(
    store: StoreFile,
    by: By = "energy",
    top: Annotated[int, option(metavar="N", min=1, help="How many rows to show.")] = 20,
    every: Annotated[
        bool,
        option("--every", help="Each measurement: repeated ones, too."),
    ] = False,
    output: Format = "table",
) -> None:
    """Show variants, the best first.

    Each stands with its most careful measurement. Each card has a list of its own.
    """
    from dataclasses import replace  # noqa: PLC0415 - keeps --help fast

    from eatss.report.results import render_rows  # noqa: PLC0415
    from eatss.tune.rows import latest_of, with_counters  # noqa: PLC0415
    from eatss.tune.store import read_sweep  # noqa: PLC0415

    with working(f"reading {store}"):
        sweep = read_sweep(store, measurements=output == "json")
        sweep = replace(sweep, rows=with_counters(sweep.rows) if every else latest_of(sweep.rows))
    echo(render_rows(sweep, output, by=by, top=top), nl=False)


def results_export(
    store: StoreFile,
    output: Annotated[
        Path,
        option("--output -o", metavar="FILE", help="File to write; - is standard output."),
    ],
) -> None:
    """Write a store as CSV with a line a measurement."""
    from eatss.cli.options import check_writable, write_file  # noqa: PLC0415
    from eatss.tune.exchange import sweep_csv  # noqa: PLC0415
    from eatss.tune.store import check_no_store, read_sweep  # noqa: PLC0415

    to_stdout = str(output) == "-"
    if not to_stdout:
        check_no_store(output, [store])
        check_writable("-o", output)
    with working(f"exporting {store}"):
        sweep = read_sweep(store, measurements=False)
        text = sweep_csv(sweep)
    if to_stdout:
        echo(text, nl=False)
        return
    write_file("-o", output, text)
    say(f"wrote {counted(len(sweep.rows), 'row')} to {output}")
