"""``eatss space``: how many variants there are, and what each filter removes."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from eatss.base.diagnostics import input_error
from eatss.base.options import Asked, option
from eatss.base.streams import echo
from eatss.base.targets import TARGETS, TargetName
from eatss.cli.app import typed
from eatss.cli.options import (
    CARD_HELP,
    card_option,
    of_output,
    show,
    source_argument,
)
from eatss.cli.talk import given_card, report_warnings, working
from eatss.frontend.options import PpcgReadingKeywords, Reading

if TYPE_CHECKING:
    from eatss.tune.bound import BoundSpace
    from eatss.tune.points import Value

EXAMPLES = {
    "space": """
Examples:

    eatss space examples/spaces/beast-dgemm.toml

    eatss space @2mm --gpu h200 --sample 5

    eatss space @2mm --gpu h200 --target ppcg --format toml > 2mm.toml
"""
}


def space(
    *,
    file: Annotated[
        Path,
        source_argument(
            metavar="FILE|@KERNEL",
            help="TOML file of a space, or C or Python whose space is derived (@gemm: a kernel of "
            "eatss).",
        ),
    ],
    gpu: Annotated[
        str | None,
        card_option(help=f"{CARD_HELP} Its figures are constants (card.sm_count)."),
    ] = None,
    target: Annotated[
        TargetName,
        option(help="Whose code a derived space is of: that of eatss (cuda), or PPCG's."),
    ] = "cuda",
    sample: Annotated[
        int, option(metavar="N", min=0, help="Draw N points, each equally likely.")
    ] = 0,
    seed: Annotated[int, option(metavar="N", help="Of the drawing.")] = 0,
    output: Annotated[
        Literal["table", "json", "toml"],
        of_output("--format -f", help="What to print; toml: the space, as a file to start from."),
    ] = "table",
    reading: Asked[PpcgReadingKeywords],
) -> None:
    """Count a search space: raw points, what each filter removes, what is left. Needs no GPU.

    A space is a TOML file, or it is derived from the loops of a C or Python file.
    """
    from eatss.base.codec import encode  # noqa: PLC0415 - keeps --help fast
    from eatss.tune.bound import bind  # noqa: PLC0415
    from eatss.tune.document import read_space, space_text  # noqa: PLC0415
    from eatss.tune.points import card_constants  # noqa: PLC0415

    how = Reading(**reading.fields)
    profile = None if gpu is None else given_card(gpu)
    constants: dict[str, Value] = {} if profile is None else card_constants(profile)
    about = "" if profile is None else profile.name
    if file.suffix == ".toml":
        found = read_space(file)
        constants.update(how.parameters or {})
    else:
        from eatss.session.session import Session  # noqa: PLC0415
        from eatss.tune.derived import space_of  # noqa: PLC0415

        session = Session(file, how, cut=TARGETS[target].cut)
        with working(f"analysing {session.file}"):
            session.try_in_bounds()
            report_warnings(session.warnings)
        with working("deriving the space"):
            found = space_of(session, profile)
        about = ", ".join(filter(None, (about, session.analysed.dtype, f"target {target}")))
    if output == "toml":
        echo(space_text(found), nl=False)
        return
    bound = bind(found, constants)
    if file.suffix == ".toml":
        _check_reading(bound, how)
    with working(f"counting {found.name}"):
        count = bound.count()
        points = bound.sample(sample, seed) if sample and count.kept else []
    if output == "json" and points:
        document = encode(count) | {"sample": list(map(dict, points))}
        echo(json.dumps(document, indent=2))
    else:
        show(count, output, points=points, about=about)
    bound.require_points()


def _check_reading(bound: BoundSpace, how: Reading) -> None:
    """Refuse what is of derived spaces only, and parameters that the file has no use for."""
    read = (one.name for one in fields(PpcgReadingKeywords) if one.name != "parameters")
    if given := typed("target", *read):
        raise input_error(
            "EATSS-C012",
            f"{given[0]} is of a derived space, not of a file of a space",
            hint="leave it out, or name the C or Python file",
        )
    own = {*bound.names, *bound.space.constants}
    for name in how.parameters or {}:
        if name in own or name not in bound.used:
            why = "has its own values of" if name in own else "does not name"
            raise input_error(
                "EATSS-C012",
                f"the space {why} '{name}', which --param fixes",
                hint="leave it out, or check the spelling",
            )
