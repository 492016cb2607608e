"""``eatss select``: a C file in, tile sizes out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from eatss.base.cache import Caching
from eatss.base.options import Asked
from eatss.base.streams import echo
from eatss.base.targets import TargetName
from eatss.choose.options import PUBLISHED, SelectKeywords, SelectOptions, check_target
from eatss.cli.options import Card, SourceFile, of_model, of_output
from eatss.cli.talk import given_card, report_warnings, working
from eatss.frontend.options import PpcgReadingKeywords, Reading

if TYPE_CHECKING:
    from eatss.choose.selection import Selection

EXAMPLES = {
    "select": """
Examples:

    eatss select @gemm --gpu a100

    eatss select gemm.c --gpu h200 -D NI=4000 --dtype float --explain

    eatss select gemm.c --gpu ./mycard.toml --split 0.5 --format json

    ppcg --sizes="$(eatss select gemm.c --gpu a100 --format ppcg)" gemm.c
"""
}


def select(
    *,
    file: SourceFile,
    gpu: Card,
    output: Annotated[
        Literal["table", "json", "ppcg", "ppcg-args", "smt2"],
        of_output(
            "--format -f",
            help="What to print; ppcg, ppcg-args: what PPCG takes; smt2: the question for better "
            "sizes, which z3 and cvc5 answer with unsat (predictions: for ppcg only).",
        ),
    ] = "table",
    explain: Annotated[
        bool,
        of_output(
            "--explain",
            help="Add the objective, the alignment and why settings of the grid were dropped.",
        ),
    ] = False,
    target: Annotated[
        TargetName,
        of_model(help="What makes code from the sizes: PPCG, or eatss codegen (cuda)."),
    ] = "ppcg",
    choosing: Asked[SelectKeywords],
    reading: Asked[PpcgReadingKeywords],
    caching: Asked[Caching],
) -> None:
    """Select energy-aware tile sizes for every kernel of a C file."""
    import eatss  # noqa: PLC0415 - keeps --help fast
    from eatss.choose.selection import sizes_alone  # noqa: PLC0415

    check_target(target, ppcg={f"--format {output}": output in ("ppcg", "ppcg-args")}, cuda={})
    profile, options = given_card(gpu), SelectOptions(target=target, **choosing.fields)
    proof = output == "smt2"
    if proof and options.resolved()[0] not in PUBLISHED:
        check_target(target, ppcg={"--format smt2": True}, cuda={})
    asked = {**choosing.fields, **reading.fields, **caching.fields}
    with working(f"selecting for {profile.title}") as step:
        selection = eatss.select(file, gpu=profile, target=target, progress=step.at, **asked)
    if proof:
        from eatss.session.found import find_proof  # noqa: PLC0415
        from eatss.session.source import Source  # noqa: PLC0415

        given = Source.of(file), Reading(**reading.fields)
        text = find_proof(*given, profile, options, selection)
    else:
        text = _text(selection, output, explain)
    if output == "ppcg":
        report_warnings(sizes_alone(selection))
    echo(text, nl=False)


def _text(selection: Selection, output: str, explain: bool) -> str:
    if output == "ppcg":
        return f"{selection.ppcg_sizes}\n"
    if output == "ppcg-args":
        return "".join(f"{argument}\n" for argument in selection.ppcg_arguments)
    if output == "json":
        from eatss.base.codec import json_text  # noqa: PLC0415

        return json_text(selection)
    from eatss.report.selection import selection_table  # noqa: PLC0415 - Rich loads slowly

    return selection_table(selection, explain=explain)
