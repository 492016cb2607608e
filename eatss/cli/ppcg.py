"""``eatss ppcg``: PPCG run with selected sizes, for builds."""

from __future__ import annotations

from typing import Annotated

from eatss.base.cache import Caching
from eatss.base.options import Asked, argument
from eatss.choose.options import SelectKeywords
from eatss.cli.options import (
    Card,
    PpcgPath,
    of_source,
)
from eatss.cli.talk import current, given_card, report_warnings, say, working

EXAMPLES = {
    "ppcg": """
Examples:

    eatss ppcg --gpu h200 -- gemm.c -o build -DNI=2000

    eatss ppcg --gpu h200 --no-select -- gemm.c -o build/default

    eatss ppcg --gpu h200 --verbose -- gemm.c -o build
"""
}


def ppcg(
    *,
    words: Annotated[
        list[str],
        argument(
            metavar="-- FILE.c|@KERNEL [-o DIR] [PPCG OPTIONS]",
            help="PPCG's command line: a C file or kernel of eatss, the folder to write to, -D, "
            "-I, other options.",
            show_default=False,
        ),
    ],
    gpu: Card,
    program: PpcgPath = None,
    selects: Annotated[
        bool,
        of_source(
            "--select/--no-select",
            help="Select sizes, or let PPCG take its own (or those among its options), "
            "to compare with.",
        ),
    ] = True,
    ppcg_timeout: Annotated[
        float, of_source(metavar="SECONDS", min=0.01, help="Limit of one run of PPCG.")
    ] = 300.0,
    choosing: Asked[SelectKeywords],
    caching: Asked[Caching],
) -> None:
    """Run PPCG on a C file with the sizes that are selected for a card.

    PPCG's files are written to DIR (-o; default: here), all or none, and beside them a folder
    that eatss verify, measure and compare take. Exits with 1 if PPCG fails or generates something
    else than it was asked for.
    """
    import eatss  # noqa: PLC0415 - keeps --help fast
    from eatss.ppcg_build.run import command_text  # noqa: PLC0415

    first, *others = words
    with working("running PPCG") as step:
        made = eatss.ppcg(
            first,
            arguments=others,
            gpu=given_card(gpu),
            ppcg=program,
            selects=selects,
            ppcg_timeout_s=ppcg_timeout,
            progress=step.at,
            **choosing.fields,
            **caching.fields,
        )
    if current.get().verbose:
        for command in made.commands:
            say(command_text(command))
    say(made.said, nl=False)
    say(f"wrote {', '.join(map(str, made.files))}")
    report_warnings(made.warnings)
