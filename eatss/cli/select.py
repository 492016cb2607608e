"""``eatss select``: a C file in, tile sizes out."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Annotated

from eatss.base.cache import Caching
from eatss.base.diagnostics import input_error
from eatss.base.options import Asked
from eatss.base.streams import echo
from eatss.base.targets import TARGETS, TargetName
from eatss.choose.options import SelectKeywords, SelectOptions, check_target
from eatss.cli.options import (
    Card,
    SourceFile,
    of_model,
    of_output,
)
from eatss.cli.talk import given_card, read, report_warnings, working
from eatss.frontend.options import PpcgReadingKeywords, Reading

if TYPE_CHECKING:
    from eatss.cards import GpuProfile
    from eatss.session.found import FoundSelection
    from eatss.session.session import Session

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
        str,
        of_output(
            "--format -f",
            metavar="FORMAT",
            help="What to print: table, json, ppcg, ppcg-args, or a format of a package.",
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
    from eatss.report.formats import FORMATS, Selected  # noqa: PLC0415 - keeps --help fast
    from eatss.session.kept import Printed, kept_selection  # noqa: PLC0415
    from eatss.session.source import Source  # noqa: PLC0415

    FORMATS.get(output)  # there is one of this name
    how = Reading(**reading.fields)
    check_target(
        target,
        ppcg={
            f"--format {output}": output in {"ppcg", "ppcg-args"},
            "--ppcg-schedule": how.ppcg_schedule is not None,
        },
        cuda={"--recompute": how.recompute != "auto"},
    )
    profile, source = given_card(gpu), Source.of(file)
    options = SelectOptions(target=target, **choosing.fields)

    @cache
    def session() -> Session:
        from eatss.session.session import Session  # noqa: PLC0415

        volume = options.volume_name()
        return Session(source, how, cut=TARGETS[target].cut, volume=volume)

    kept = kept_selection(caching.made().chosen(), source, how, profile, options)
    shown_as = (output, explain, FORMATS.version(output))
    printed = kept.printed(*shown_as)
    if printed is not None:
        report_warnings(printed.warnings)
    else:
        found = kept.get()
        if found is not None:
            report_warnings(found.warnings)
        else:
            found = _solved(session(), profile, options)
            kept.put(found)
        selected = Selected(
            selection=found.selection,
            analysed=lambda: session().analysed,
            profile=profile,
            explain=explain,
        )
        text = FORMATS.get(output)(selected)
        if not isinstance(text, str):
            raise input_error("EATSS-X003", f"the format '{output}' returned no text")
        from eatss.choose.selection import sizes_alone  # noqa: PLC0415 - what is kept needs none

        alone = sizes_alone(found.selection) if output == "ppcg" else ()
        report_warnings(alone)
        printed = Printed(text=text, warnings=found.warnings + alone)
        kept.put_printed(printed, *shown_as)
    echo(printed.text, nl=False)


def _solved(session: Session, profile: GpuProfile, options: SelectOptions) -> FoundSelection:
    """Select sizes; print what is to be said of the source, and of them."""
    from eatss.session.found import FoundSelection  # noqa: PLC0415 - keeps --help fast

    read(session)
    with working(f"solving for {profile.title}") as step:
        selection = session.select(profile, options, progress=step.at)
    found = FoundSelection.of(selection, session.warnings)
    report_warnings(found.warnings[len(session.warnings) :])
    return found
