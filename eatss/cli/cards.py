"""``eatss profiles`` and ``eatss roofline``: figures of cards, and where they bind programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from eatss.base.diagnostics import input_error
from eatss.base.options import argument, option
from eatss.base.streams import echo
from eatss.cli.options import (
    CARD_HELP,
    CARD_METAVAR,
    Format,
    of_output,
)
from eatss.cli.talk import given_card

EXAMPLES = {
    "profiles": """
Examples:

    eatss profiles

    eatss profiles h200

    eatss profiles auto

    eatss profiles a100 --format toml > mycard.toml

    eatss profiles ./mycard.toml --format json
""",
    "roofline": """
Examples:

    eatss roofline h200

    eatss roofline h200 --dtype double --program build/gemm --plot gemm.png

    eatss measure build/gemm --format json > gemm.json

    eatss roofline h200 --program gemm.json

    eatss roofline ./mycard.toml --record mycard.jsonl --plot mycard.svg
""",
}

DataType: TypeAlias = Literal["float", "double"]


def profiles(
    name: Annotated[
        str | None,
        argument(metavar=CARD_METAVAR, help=f"{CARD_HELP} Default: all known cards."),
    ] = None,
    output: Annotated[
        Literal["table", "json", "toml"],
        of_output(
            "--format -f", help="What to print; toml: one card's profile, to edit and give back."
        ),
    ] = "table",
) -> None:
    """List the known cards, or one card's figures with their sources."""
    from eatss.cards import list_profiles  # noqa: PLC0415 - keeps --help fast
    from eatss.report.cards import render_profile, render_profiles  # noqa: PLC0415

    if name is not None:
        echo(render_profile(given_card(name), output), nl=False)
        return
    if output == "toml":
        raise input_error(
            "EATSS-C012",
            "a TOML file is of one card",
            hint="name it: eatss profiles a100 --format toml",
        )
    echo(render_profiles(list_profiles(), output), nl=False)


def roofline(
    profile: Annotated[str, argument(metavar=CARD_METAVAR, help=CARD_HELP)],
    record: Annotated[
        Path | None,
        option(metavar="RECORD.jsonl", help="Set measured intensities beside the model's lines."),
    ] = None,
    program: Annotated[
        list[Path] | None,
        option(
            metavar="DIR|FILE.json",
            help="Place a program of eatss codegen at its intensity; or what eatss measure "
            "--format json wrote, with the share of the roofs that it reached.",
        ),
    ] = None,
    dtype: Annotated[
        DataType | None, option(help="Only the roofs of this type; default: both.")
    ] = None,
    plot: Annotated[
        Path | None,
        option(
            metavar="FILE",
            help="Draw roofline, arch line and power line into a PNG, SVG or PDF.",
            panel="Output",
        ),
    ] = None,
    output: Format = "table",
) -> None:
    """Show where a card is bound by memory or arithmetic, in time and in energy. Needs no GPU.

    A program that stands left of a balance saves most by moving fewer bytes, right of it by doing
    fewer operations.
    """
    from eatss.measurement.characterize.benchmark import read_record  # noqa: PLC0415
    from eatss.measurement.characterize.fit import same_kind  # noqa: PLC0415
    from eatss.measurement.characterize.roofline import (  # noqa: PLC0415
        WIDTH_OF_DTYPE,
        WIDTHS,
        roofline_points_of,
    )
    from eatss.report.characterization import CardRoofline, render_roofline  # noqa: PLC0415
    from eatss.report.plots import check_plot_file  # noqa: PLC0415

    if plot is not None:
        check_plot_file(plot)
    found = given_card(profile)
    measured = None if record is None else read_record(record)
    if measured is not None:
        same_kind(found, measured.subject)
    card = CardRoofline(
        profile=found,
        widths=WIDTHS if dtype is None else (WIDTH_OF_DTYPE[dtype],),
        programs=tuple(one for path in program or () for one in roofline_points_of(path, found)),
        record=measured,
    )
    echo(render_roofline(card, output), nl=False)
    if plot is not None:
        from eatss.report.card_plots import roofline_figure  # noqa: PLC0415
        from eatss.report.plots import save_figure  # noqa: PLC0415

        save_figure(roofline_figure(card.roofs(), card.title), plot)
