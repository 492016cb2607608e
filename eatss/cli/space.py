"""``eatss space``: how many variants there are, and what each filter removes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from eatss.cli.messages import read, working
from eatss.cli.option_groups import takes
from eatss.cli.options import Debug, Diagnostics, TargetChoice, of_output, ppcg_reading_options

if TYPE_CHECKING:
    from eatss.frontend.options import PpcgReadingKeywords
    from eatss.point import Value

EXAMPLES = """
Examples:

    eatss space examples/spaces/beast-dgemm.toml

    eatss space kernels/2mm.c --gpu h200 --sample 5

    eatss space kernels/2mm.c --gpu h200 --target ppcg --format toml > 2mm.toml
"""


@takes(reading=ppcg_reading_options)
def space(
    *,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="TOML file of a space, or C or Python whose space is derived."
        ),
    ],
    gpu: Annotated[
        str | None,
        typer.Option(
            "--gpu",
            "-g",
            metavar="CARD",
            help="Name of a card, or a TOML profile: its figures are constants (card.sm_count).",
        ),
    ] = None,
    target: Annotated[
        TargetChoice,
        typer.Option(help="Whose code a derived space is of: that of eatss (cuda), or PPCG's."),
    ] = "cuda",
    sample: Annotated[
        int, typer.Option(metavar="N", min=0, help="Draw N points, each equally likely.")
    ] = 0,
    seed: Annotated[int, typer.Option(metavar="N", help="Of the drawing.")] = 0,
    output: Annotated[
        Literal["table", "json", "toml"],
        of_output(
            "--format", "-f", help="What to print; toml: the space, as a file to start from."
        ),
    ] = "table",
    reading: PpcgReadingKeywords,
    diagnostics: Diagnostics = "text",
    debug: Debug = False,
) -> None:
    """Count a search space: raw points, what each filter removes, what is left. Needs no GPU.

    A space is a TOML file, or it is derived from the loops of a C or Python file.
    """
    from eatss.gpu import load_profile  # noqa: PLC0415 - keeps --help fast
    from eatss.model.options import check_target  # noqa: PLC0415
    from eatss.report.space import render_space  # noqa: PLC0415
    from eatss.space.bound import bind  # noqa: PLC0415
    from eatss.space.card_constants import card_constants  # noqa: PLC0415
    from eatss.space.document import read_space, space_text  # noqa: PLC0415

    check_target(target, ppcg={"--ppcg-schedule": reading["ppcg_schedule"] is not None}, cuda={})
    profile = None if gpu is None else load_profile(gpu)
    constants: dict[str, Value] = {} if profile is None else card_constants(profile)
    if file.suffix == ".toml":
        found = read_space(file)
        constants.update(reading["parameters"] or {})
    else:
        from eatss.frontend.options import Reading  # noqa: PLC0415
        from eatss.session.analysis import cut_for  # noqa: PLC0415
        from eatss.session.session import Session  # noqa: PLC0415
        from eatss.session.spaces import space_of  # noqa: PLC0415

        session = Session(file, Reading(**reading), cut=cut_for(target))
        read(session, diagnostics)
        with working("deriving the space"):
            found = space_of(session, profile, target)
    if output == "toml":
        typer.echo(space_text(found), nl=False)
        return
    bound = bind(found, constants)
    with working(f"counting {found.name}"):
        count = bound.count()
        points = bound.sample(sample, seed) if sample and count.kept else []
    typer.echo(render_space(count, points, output), nl=False)
    bound.require_points()
