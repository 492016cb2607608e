"""``eatss measure`` and ``eatss compare``: programs or C files in, time and energy out.

Variants of one program are measured by turns, and stand side by side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn

from eatss.base.diagnostics import EatssError, ExitCode, NoSolutionError, input_error
from eatss.base.files import folder_named
from eatss.base.options import Asked, Keywords, Words, option
from eatss.base.streams import echo
from eatss.base.targets import CardNumber
from eatss.cli.options import (
    CARD_HELP,
    Force,
    HiddenCard,
    card_option,
    of_output,
    source_argument,
)
from eatss.cli.talk import Step, given_card, report_warnings, say, working
from eatss.frontend.options import ReadingKeywords
from eatss.measurement.options import MeasureOptions

if TYPE_CHECKING:
    from eatss.measurement.api import Measured
    from eatss.measurement.job import Progress
    from eatss.measurement.measurement import Measurement
    from eatss.measurement.options import TileChoice, Variant


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

    def for_card(self, device: CardNumber) -> Generating:
        """Return this for the card of the profile; which one ``auto`` is, is said once.

        Raises:
            InputError: there is no such profile, or no card in this machine.
        """
        return replace(self, gpu=given_card(self.gpu, device))

    def one(self, source: Path, folder: Path, device: CardNumber) -> Variant:
        """Generate the program of a C file, and print the warnings of reading it.

        Raises:
            InputError: the source, the profile or the folder is wrong.
            NoSolutionError: no tile sizes satisfy the limits of the card.
        """
        from eatss.session.variants import SourceOptions, generate_one  # noqa: PLC0415

        with working(f"generating a program from {source}"):
            variant, warnings = generate_one(source, self.of(SourceOptions), folder, device=device)
        report_warnings(warnings)
        return variant

    def several(
        self, source: Path, choices: Sequence[TileChoice], folder: Path, device: CardNumber
    ) -> Sequence[Variant]:
        """Generate a program for every choice of tile sizes; warnings are printed once.

        Raises:
            InputError: the source, the profile or the words of a choice are wrong.
        """
        from eatss.session.variants import SourceOptions, generate_variants  # noqa: PLC0415

        options = self.of(SourceOptions)
        with working(f"generating {len(choices)} programs from {source}") as step:
            made = generate_variants(
                source, choices, options, folder, device=device, progress=step.at
            )
        report_warnings(made.warnings)
        return made.variants


def measured_with(
    variants: Sequence[Variant], options: MeasureOptions, card: str | None
) -> Measured:
    """Measure variants of one program, and show on a terminal how far it is.

    Raises:
        InputError: they cannot be measured.
    """
    from eatss.measurement.api import (  # noqa: PLC0415 - keeps --help fast
        Measured,
        measured,
        stack_warnings_of,
    )

    try:
        with working("measuring") as step:
            found = measured(variants, options, progress=partial(_tell, step), card=card)
    except KeyboardInterrupt:  # before anything was measured
        return Measured(measurements=(), interrupted=True)
    report_warnings(stack_warnings_of(found.measurements))
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
    from eatss.measurement.options import (  # noqa: PLC0415 - keeps --help fast
        Variant,
        is_program,
        program_variant,
        rejected_variant,
        source_labels,
    )
    from eatss.measuring import keeping, refuse_output  # noqa: PLC0415

    options, generating = measuring.made(), generated.made()
    device = options.device

    def one_of_several(label: str, source: Path, folder: Path) -> Variant:
        """Return a program beside others, which a card too small for it does not stop."""
        if source.is_dir():
            return replace(program_variant(source), label=label)
        try:
            made = generating.one(source, folder / label, device)
        except NoSolutionError as error:
            return rejected_variant(label, error)
        return Variant(label=label, directory=made.directory)

    folders = [is_program(source) for source in sources]
    if all(folders):
        refuse_output(generating.directory)
    else:
        generating = generating.for_card(device)
    with keeping(generating.directory) as folder:
        if len(sources) == 1 and not all(folders):
            variants = [generating.one(sources[0], folder, device)]
        else:
            pairs = zip(source_labels(sources), sources, strict=True)
            variants = [one_of_several(label, source, folder) for label, source in pairs]
        finish(_all_measured(variants, options, card, output), output)


def finish(found: Measured, output: Results) -> None:
    """Print measurements and end with the exit code they call for."""
    if found.measurements or not found.interrupted:
        show(found.measurements, output)
    if found.interrupted:
        stop_interrupted(anything=bool(found.measurements))
    if not all(measurement.status in MEASURED for measurement in found.measurements):
        raise SystemExit(ExitCode.NO_SOLUTION)


def show(measurements: Sequence[Measurement], output: Results) -> None:
    """Print measurements."""
    from eatss.report.measurement import render_measurements  # noqa: PLC0415 - keeps --help fast

    echo(render_measurements(measurements, output), nl=False)


def stop_interrupted(*, anything: bool) -> NoReturn:
    """Say what Ctrl-C left, and end as a shell expects after it."""
    kept = "what was measured until then is kept" if anything else "nothing was measured yet"
    say(f"interrupted: {kept}")
    raise SystemExit(INTERRUPTED)


def _all_measured(
    variants: Sequence[Variant], options: MeasureOptions, card: str | None, output: Results
) -> Measured:
    """Measure programs one after another; Ctrl-C ends the rest as well.

    All are looked at before the first is measured; where one fails later all the same, what was
    measured is printed first.
    """
    from eatss.measurement.api import Measured, check_measurable  # noqa: PLC0415 - keeps --help fast

    check_measurable(variants, options)
    done = Measured(measurements=(), interrupted=False)
    for variant in variants:
        try:
            found = measured_with((variant,), options, card)
        except Exception:
            if done.measurements:
                show(done.measurements, output)
            raise
        done = replace(found, measurements=(*done.measurements, *found.measurements))
        if found.interrupted:
            break
    return done


def _tell(step: Step, progress: Progress) -> None:
    """Say what runs now, ``selected: window 3``, and how long it takes at most."""
    from eatss.report.render import seconds  # noqa: PLC0415 - keeps --help fast

    words = [progress.stage, str(progress.window)] if progress.window else [progress.stage]
    what = f"{progress.variant}: {' '.join(words)}" if progress.variant else " ".join(words)
    left = f"at most {seconds(progress.left_s)} left" if progress.left_s > 0 else ""
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
    from eatss.measurement.api import check_comparable  # noqa: PLC0415 - keeps --help fast
    from eatss.measurement.options import (  # noqa: PLC0415
        baseline_label,
        folder_variants,
        is_program,
        parse_tile_choices,
    )
    from eatss.measuring import DEFAULT_TILES, keeping, refuse_output  # noqa: PLC0415

    options, generating = measuring.made(), generated.made()
    folders = [is_program(source) for source in sources]
    if all(folders):
        if tiles:
            raise input_error(
                "EATSS-E045",
                "--tiles is for C files: the programs in folders have their tile sizes",
                hint="leave --tiles out, or give the C file instead of the folders",
            )
        refuse_output(generating.directory)
        variants: Sequence[Variant] = folder_variants(sources)
        labels = [variant.label for variant in variants]
    else:
        if len(sources) > 1:
            raise input_error(
                "EATSS-E045",
                "several C files, or C files and folders, cannot be compared with each other",
                hint="compare one C file under several --tiles, or folders of eatss codegen",
            )
        choices = parse_tile_choices(tiles or DEFAULT_TILES)
        labels = [choice.label for choice in choices]
    label = baseline_label(baseline, labels)
    with keeping(generating.directory) as folder:
        if not all(folders):
            made = generating.for_card(options.device)
            variants = made.several(sources[0], choices, folder, options.device)
        check_comparable(variants, options)
        finish_comparison(measured_with(variants, options, card), label, output)


def finish_comparison(found: Measured, baseline: str, output: Results) -> None:
    """Print a comparison and end with the exit code it calls for."""
    from eatss.measurement.api import Interrupted, compared  # noqa: PLC0415
    from eatss.report.measurement import render_comparison  # noqa: PLC0415

    try:
        comparison = compared(found, baseline)
    except Interrupted:
        finish(found, output)  # there is nothing to set the others beside
        raise
    except EatssError:
        show(found.measurements, output)  # what was measured is not lost
        raise
    echo(render_comparison(comparison, output), nl=False)
    if found.interrupted:
        stop_interrupted(anything=True)
    statuses = [measurement.status for measurement in found.measurements]
    nothing = not any(status in MEASURED for status in statuses)
    if nothing or any(status not in _HARMLESS for status in statuses):
        raise SystemExit(ExitCode.NO_SOLUTION)
