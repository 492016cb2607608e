"""``eatss measure`` and ``eatss compare``: programs or C files in, time and energy out.

Variants of one program are measured by turns, and stand side by side.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn

from eatss.base.diagnostics import EatssError, ExitCode, NoSolutionError, input_error
from eatss.base.files import folder_named
from eatss.base.options import Asked, Keywords, Words, option
from eatss.base.shown import time_text
from eatss.base.streams import echo
from eatss.cli.options import (
    CARD_HELP,
    Force,
    HiddenCard,
    card_option,
    of_output,
    source_argument,
)
from eatss.cli.talk import Step, say, working
from eatss.frontend.options import ReadingKeywords
from eatss.measurement.options import MeasureOptions

if TYPE_CHECKING:
    from eatss.measurement.job import Progress
    from eatss.measurement.measurement import Measurement


EXAMPLES = {
    "measure": """
Examples:

    eatss measure build/gemm

    eatss measure @gemm --gpu auto

    eatss measure build/gemm --size NI=2000,NJ=2000 --target 0.5% --format json

    eatss measure @gemm kernels/atax.c -o build --counters
""",
    "compare": """
Examples:

    eatss compare @gemm --tiles selected --tiles 32,32,32 --baseline 32,32,32

    eatss compare @gemm --tiles selected --tiles i=32,j=64

    eatss compare build/ours build/theirs --baseline theirs --format csv
""",
}

INTERRUPTED = 130
"""Exit code after Ctrl-C, as of a shell."""

MEASURED = ("ok", "unstable")
"""Statuses of programs that are right and were measured."""


Results = Annotated[
    Literal["table", "json", "csv"], of_output("--format -f", help="What to print.")
]


@dataclass(frozen=True, kw_only=True)
class Generating(Keywords, ReadingKeywords):
    """How programs are generated from C files: for which card, how C is read, and where to.

    ``force`` replaces files in ``directory`` that eatss did not write.
    """

    gpu: Annotated[
        Any,
        card_option(kind=str, help=f"What FILE.c is compiled for. {CARD_HELP}", panel="Source"),
    ] = "auto"
    directory: Annotated[
        Path | None,
        of_output(
            "--output -o",
            metavar="DIR",
            parser=folder_named,
            help="Keep what is generated from FILE.c in this folder.",
        ),
    ] = None
    force: Force = False

    def arguments(self, sources: Sequence[Path]) -> dict[str, Any]:
        """Return what functions get; how C is read only where something is C."""
        from eatss.measurement.options import is_program  # noqa: PLC0415 - keeps --help fast

        found: dict[str, Any] = {"output": self.directory}
        if not all(map(is_program, sources)):
            from eatss.session.variants import SourceOptions  # noqa: PLC0415 - folders need none

            found["reading"] = self.of(SourceOptions)
        return found


def measure(
    *,
    sources: Annotated[
        list[Path],
        source_argument(
            metavar="DIR|FILE.c|@KERNEL",
            help="Folders of eatss codegen, measured as they are, or C files (@gemm: a kernel of "
            "eatss).",
        ),
    ],
    measuring: Asked[MeasureOptions],
    card: HiddenCard = None,
    generated: Asked[Generating],
    output: Results = "table",
) -> None:
    """Measure time and energy of generated programs on the card of this machine.

    Exits with 0 if all were measured and are right (unstable ones are), with 1 if one failed,
    with 130 after Ctrl-C, which keeps what was measured.
    """
    done: list[Measurement] = []
    try:
        for found in _each(sources, measuring.made(), generated.made(), card):
            done.append(found)
            if _interrupted(done):
                _stop(done, output)
    except KeyboardInterrupt:
        _stop(done, output)
    except EatssError:  # what was measured is not lost
        if done:
            _show(done, output)
        raise
    _show(done, output)
    if not all(measurement.status in MEASURED for measurement in done):
        raise SystemExit(ExitCode.NO_SOLUTION)


def _each(
    sources: Sequence[Path], options: MeasureOptions, generating: Generating, card: str | None
) -> Iterator[Measurement]:
    """Yield a measurement a source; of several one that the card is too small for ends nothing."""
    import eatss  # noqa: PLC0415 - keeps --help fast
    from eatss.measurement.api import check_measurable, measured  # noqa: PLC0415
    from eatss.measurement.options import (  # noqa: PLC0415
        is_program,
        program_variant,
        rejected_variant,
        source_labels,
    )

    how = generating.arguments(sources) | {"options": options, "card": card}
    check_measurable([program_variant(one) for one in sources if is_program(one)], options)
    if len(sources) == 1:
        with working(f"measuring {sources[0]}") as step:
            yield eatss.measure(sources[0], **how, progress=partial(_tell, step))
        return
    for label, source in zip(source_labels(sources), sources, strict=True):
        if generating.directory is not None and not is_program(source):
            how["output"] = generating.directory / label
        with working(f"measuring {source}") as step:
            try:
                found = eatss.measure(source, **how, progress=partial(_tell, step))
            except NoSolutionError as error:
                rejected = (rejected_variant(label, error),)
                (found,) = measured(rejected, options, card=card).measurements
        yield replace(found, variant=label)


def _interrupted(found: Sequence[Measurement]) -> bool:
    return any(measurement.method.ended == "interrupted" for measurement in found)


def _show(measurements: Sequence[Measurement], output: Results) -> None:
    from eatss.report.measurement import render_measurements  # noqa: PLC0415 - keeps --help fast

    echo(render_measurements(measurements, output), nl=False)


def _stop(measurements: Sequence[Measurement], output: Results) -> NoReturn:
    """Print what Ctrl-C left, and end as a shell expects after it."""
    if measurements:
        _show(measurements, output)
    kept = "what was measured until then is kept" if measurements else "nothing was measured yet"
    say(f"interrupted: {kept}")
    raise SystemExit(INTERRUPTED)


def _tell(step: Step, progress: Progress) -> None:
    """Say what runs now, ``selected: window 3``, and how long it takes at most."""
    words = [progress.stage, str(progress.window)] if progress.window else [progress.stage]
    what = f"{progress.variant}: {' '.join(words)}" if progress.variant else " ".join(words)
    left = f"at most {time_text(progress.left_s)} left" if progress.left_s > 0 else ""
    step.at(what, progress.variants_done, progress.variants, note=left)


_HARMLESS = (*MEASURED, "rejected by the model")


def compare(
    *,
    sources: Annotated[
        list[Path],
        source_argument(
            metavar="FILE.c|@KERNEL|DIR",
            help="A C file or kernel of eatss, generated once for each --tiles, or folders of "
            "eatss codegen.",
        ),
    ],
    tiles: Annotated[
        Words,
        option(
            metavar="selected|SIZES",
            help="A variant of FILE.c: what eatss selects; sizes in the order of the loops "
            "(32,64,16; a kernel with fewer loops takes the first; 32 is for every loop); or by "
            "loop (i=32,j=64). Default: selected and 32.",
        ),
    ] = None,
    baseline: Annotated[
        str | None,
        option(
            metavar="VARIANT",
            help="What the others are compared with; default: the first that is not selected, of "
            "folders the last.",
        ),
    ] = None,
    measuring: Asked[MeasureOptions],
    card: HiddenCard = None,
    generated: Asked[Generating],
    output: Results = "table",
) -> None:
    """Measure variants of one program by turns and compare time, energy and PPW.

    Exits with 0, with 1 if a program failed or none was measured, with 130 after Ctrl-C, which
    keeps what was measured.
    """
    import eatss  # noqa: PLC0415 - keeps --help fast
    from eatss.measurement.api import Interrupted  # noqa: PLC0415
    from eatss.measuring import DEFAULT_TILES  # noqa: PLC0415
    from eatss.report.measurement import render_comparison  # noqa: PLC0415

    how = generated.made().arguments(sources)
    folders = "reading" not in how
    if folders and tiles:
        raise input_error(
            "EATSS-E045",
            "--tiles is for C files: the programs in folders have their tile sizes",
            hint="leave --tiles out, or give the C file instead of the folders",
        )
    if not folders and len(sources) > 1:
        raise input_error(
            "EATSS-E045",
            "several C files, or C files and folders, cannot be compared with each other",
            hint="compare one C file under several --tiles, or folders of eatss codegen",
        )
    try:
        with working("measuring") as step:
            found = eatss.compare(
                sources if folders else sources[0],
                tiles=tiles or DEFAULT_TILES,
                baseline=baseline,
                **how,
                options=measuring.made(),
                card=card,
                progress=partial(_tell, step),
            )
    except Interrupted as error:
        _stop(error.measurements, output)
    except KeyboardInterrupt:
        _stop((), output)
    echo(render_comparison(found, output), nl=False)
    measurements = [row.measurement for row in found.rows]
    if _interrupted(measurements):
        say("interrupted: what was measured until then is kept")
        raise SystemExit(INTERRUPTED)
    statuses = {measurement.status for measurement in measurements}
    if not statuses <= {*_HARMLESS} or statuses.isdisjoint(MEASURED):
        raise SystemExit(ExitCode.NO_SOLUTION)
