"""``eatss characterize``: microbenchmarks on a card in, a calibrated profile out."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from eatss.base.options import option
from eatss.base.streams import echo
from eatss.cli.options import (
    CARD_HELP,
    Format,
    TableOrJson,
    card_option,
    check_writable,
)
from eatss.cli.talk import report_warnings, say, working

if TYPE_CHECKING:
    from eatss.measurement.characterize.benchmark import Record

EXAMPLES = {
    "characterize": """
Examples:

    eatss characterize -o h200.toml

    eatss characterize --record v100.jsonl

    eatss characterize --replay h200.jsonl --replay other.jsonl -o h200.toml

    eatss select gemm.c --gpu h200.toml
"""
}

_LOST = 1


def characterize(
    gpu: Annotated[
        str,
        card_option(help=f"Whose profile is calibrated. {CARD_HELP}"),
    ] = "auto",
    output: Annotated[
        Path | None,
        option(
            "--output -o",
            metavar="FILE",
            help="Write the calibrated profile here. A profile that is there keeps the rest.",
        ),
    ] = None,
    record: Annotated[
        Path | None,
        option(
            metavar="FILE",
            help="Keep every result here as soon as it is there; by default beside -o.",
        ),
    ] = None,
    replay: Annotated[
        list[Path] | None,
        option(
            metavar="RECORD",
            help="Fit again what was recorded; needs no card. Several: of runs or cards of a kind.",
        ),
    ] = None,
    device: Annotated[
        str,
        option(metavar="CARD", help="Number as CUDA counts the cards, or UUID."),
    ] = "0",
    force: Annotated[
        bool, option("--force", help="Run although other programs use the card.")
    ] = False,
    format_: Format = "table",
) -> None:
    """Find a card's own prices, rates and latencies with microbenchmarks, and fit them.

    It takes about eight minutes. What was finished before an interruption is in the record.
    """
    from eatss.measurement.characterize.benchmark import read_record  # noqa: PLC0415 - keeps --help fast

    if output is not None:
        check_writable("-o", output)
    if replay:
        records = tuple(read_record(path) for path in replay)
    else:
        records = (_measured(gpu, output, record, device, force),)
    _report(records, gpu, output, format_)


def _measured(
    gpu: str,
    output: Path | None,
    record: Path | None,
    device: str,
    force: bool,
) -> Record:
    from eatss.cards.this_machine import is_auto  # noqa: PLC0415
    from eatss.measurement.card import LaunchError  # noqa: PLC0415
    from eatss.measurement.characterize.run import characterise_card  # noqa: PLC0415

    path = record or (
        Path("characterize.jsonl") if output is None else output.with_suffix(".jsonl")
    )
    try:
        with working("measuring the card") as step:
            done = characterise_card(
                path,
                device=int(device) if device.isdigit() else device,
                profile="" if is_auto(gpu) else gpu,
                force=force,
                progress=step.at,
            )
    except KeyboardInterrupt:
        say(f"interrupted; what was finished is in {path}")
        raise
    except LaunchError as error:
        echo(f"error: the card is lost: {error} [EATSS-B013]", err=True)
        echo(f"hint: what was finished is in {path}", err=True)
        sys.stdout.flush()
        os._exit(_LOST)  # modules of a lost card cannot be unloaded, each would say so
    report_warnings(done.warnings)
    say(f"recorded {len(done.record.results)} benchmarks in {path}")
    return done.record


def _report(
    records: tuple[Record, ...], gpu: str, output: Path | None, format_: TableOrJson
) -> None:
    """Print the tables of the last record, and write the profile that all of them give."""
    from eatss.measurement.characterize.fit import calibrated, joined, profile_for  # noqa: PLC0415
    from eatss.report.characterization import render_characterisation  # noqa: PLC0415

    with working("fitting"):
        fits = tuple(calibrated(one) for one in records)
        calibration = joined([found for found, _ in fits])
    echo(render_characterisation(records[-1], fits[-1][1], calibration, format_), nl=False)
    if output is not None:
        from eatss.cards.write import write_profile  # noqa: PLC0415

        # as named, as already at ``output``, or that of the card
        profile = profile_for(gpu, records[-1].subject, output)
        write_profile(output, profile, calibration)
        say(f"wrote {output}")
