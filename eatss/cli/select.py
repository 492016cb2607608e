"""``eatss select``: a C file in, tile sizes out."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eatss.cli import completion
from eatss.cli.cards import given_card
from eatss.cli.messages import read, report_warnings
from eatss.cli.option_groups import takes
from eatss.cli.option_values import write_text
from eatss.cli.options import (
    Card,
    Debug,
    Diagnostics,
    FindingsFormat,
    SourceFile,
    TargetChoice,
    cache_options,
    of_model,
    of_output,
    ppcg_reading_options,
    select_options,
)
from eatss.cli.progress import working
from eatss.diagnostics import input_error

if TYPE_CHECKING:
    from eatss.cache.options import CachingKeywords
    from eatss.frontend.options import PpcgReadingKeywords
    from eatss.gpu import GpuProfile
    from eatss.model.options import SelectKeywords, SelectOptions
    from eatss.session.kept import FoundSelection, Kept
    from eatss.session.session import Session

EXAMPLES = """
Examples:

    eatss select @gemm --gpu a100

    eatss select gemm.c --gpu h200 -D NI=4000 --dtype float --explain

    eatss select gemm.c --gpu ./mycard.toml --split 0.5 --format json

    ppcg --sizes="$(eatss select gemm.c --gpu a100 --format ppcg)" gemm.c
"""


@takes(choosing=select_options, reading=ppcg_reading_options, caching=cache_options)
def select(
    *,
    file: SourceFile,
    gpu: Card,
    output: Annotated[
        str,
        of_output(
            "--format",
            "-f",
            metavar="FORMAT",
            autocompletion=completion.registered("eatss.formats"),
            help="What to print: table, json, ppcg, ppcg-args, smt2, or a format of a package.",
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
        TargetChoice,
        of_model(help="What makes code from the sizes: PPCG, or eatss codegen (cuda)."),
    ] = "ppcg",
    choosing: SelectKeywords,
    reading: PpcgReadingKeywords,
    save_ppcg_schedule: Annotated[
        Path | None,
        of_output(
            metavar="FILE",
            help="Write the schedule of these kernels for ppcg --load-schedule=FILE.",
        ),
    ] = None,
    caching: CachingKeywords,
    diagnostics: Diagnostics = "text",
    debug: Debug = False,
) -> None:
    """Select energy-aware tile sizes for every kernel of a C file."""
    from eatss.cache.options import Caching  # noqa: PLC0415 - keeps --help fast
    from eatss.frontend.options import Reading  # noqa: PLC0415
    from eatss.model import sizes_alone  # noqa: PLC0415
    from eatss.model.options import SelectOptions, check_target  # noqa: PLC0415
    from eatss.report.formats import FORMATS, Selected  # noqa: PLC0415
    from eatss.session.kept import kept_selection  # noqa: PLC0415

    render = FORMATS.get(output)
    check_target(
        target,
        ppcg={
            f"--format {output}": output in {"ppcg", "ppcg-args"},
            "--ppcg-schedule": reading["ppcg_schedule"] is not None,
            "--save-ppcg-schedule": save_ppcg_schedule is not None,
        },
        cuda={"--recompute": reading["recompute"] != "auto"},
    )
    profile = given_card(gpu, diagnostics)
    options = SelectOptions(target=target, **choosing)

    @cache
    def session() -> Session:
        from eatss.session.analysis import cut_for  # noqa: PLC0415 - it needs isl
        from eatss.session.session import Session  # noqa: PLC0415

        volume = options.volume_name()
        return Session(file, Reading(**reading), cut=cut_for(target), volume=volume)

    kept = kept_selection(Caching(**caching).chosen(), file, Reading(**reading), profile, options)
    found = _found(kept, session, profile, options, diagnostics)
    if output == "ppcg":
        report_warnings(sizes_alone(found.selection), diagnostics)
    shown = Selected(
        selection=found.selection,
        analysed=lambda: session().analysed,
        profile=profile,
        explain=explain,
    )
    text = render(shown)
    if not isinstance(text, str):
        raise input_error("EATSS-X006", f"the format '{output}' returned no text")
    if save_ppcg_schedule is not None:
        _save_schedule(save_ppcg_schedule, session())
    typer.echo(text, nl=False)


def _found(
    kept: Kept[FoundSelection],
    session: Callable[[], Session],
    profile: GpuProfile,
    options: SelectOptions,
    diagnostics: FindingsFormat,
) -> FoundSelection:
    """Take what was found before, else solve; print the warnings of either."""
    from eatss.session.kept import FoundSelection  # noqa: PLC0415 - keeps --help fast

    found = kept.get()
    if found is not None:
        report_warnings(found.warnings, diagnostics)
        return found
    read(session(), diagnostics)
    with working(f"solving for {profile.title}") as step:
        selection = session().select(profile, options, told=step.at)
    said = session().warnings
    found = FoundSelection.of(selection, said)
    report_warnings(found.warnings[len(said) :], diagnostics)
    kept.put(found)
    return found


def _save_schedule(path: Path, session: Session) -> None:
    from eatss.session.steps import ppcg_schedule_of  # noqa: PLC0415 - it needs isl

    write_text("--save-ppcg-schedule", path, ppcg_schedule_of(session.without_values.analysed))
