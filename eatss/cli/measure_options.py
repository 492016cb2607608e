"""Options that ``eatss measure`` and ``eatss compare`` share, and what they mean."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from eatss.cli.cards import given_card
from eatss.cli.measure_progress import showing
from eatss.cli.messages import report_warnings
from eatss.cli.option_groups import takes
from eatss.cli.options import (
    CARD_HELP,
    CompilerChoice,
    Diagnostics,
    FindingsFormat,
    Force,
    card_option,
    compiler_option,
    meter_option,
    named_nvcc,
    nvcc_option,
    of_output,
    reading_options,
)
from eatss.cli.progress import working
from eatss.diagnostics import input_error
from eatss.files import folder_named

if TYPE_CHECKING:
    from eatss.frontend.options import ReadingKeywords
    from eatss.gpu import GpuProfile
    from eatss.measurement.measured import Measured
    from eatss.measurement.options import MeasureOptions, Variant
    from eatss.measurement.tile_choice import TileChoice
    from eatss.session.variants import SourceOptions

_PANEL = "Measuring"
_of_measuring = partial(typer.Option, rich_help_panel=_PANEL)

DEVICE_HELP = (
    "Which card: its number as CUDA counts the cards it sees (CUDA_VISIBLE_DEVICES changes that), "
    "or its UUID (nvidia-smi -L)."
)

Results = Annotated[
    Literal["table", "json", "csv"], of_output("--format", "-f", help="What to print.")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measuring:
    """How to measure, and what stands in for the card, if anything."""

    options: MeasureOptions
    card: str | None

    def measured(self, variants: Sequence[Variant]) -> Measured:
        """Measure variants of one program, and show on a terminal how far it is.

        Raises:
            InputError: they cannot be measured.
            KeyboardInterrupt: the user interrupted before anything was measured.
        """
        from eatss.measurement.measured import (  # noqa: PLC0415 - keeps --help fast
            measured,
            stack_warnings_of,
        )

        with showing() as progress:
            found = measured(variants, self.options, progress=progress, card=self.card)
        report_warnings(stack_warnings_of(found.measurements), "text")
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Generating:
    """How programs are generated from C files: for which card, how C is read, and where to.

    ``force`` replaces files in ``directory`` that eatss did not write.
    """

    gpu: str | GpuProfile
    directory: Path | None
    force: bool
    reading: ReadingKeywords
    diagnostics: FindingsFormat

    def for_card(self, device: int | str) -> Generating:
        """Return this for the card of the profile; which one ``auto`` is, is said once.

        Raises:
            InputError: there is no such profile, or no card in this machine.
        """
        if not isinstance(self.gpu, str):
            return self
        return replace(self, gpu=given_card(self.gpu, self.diagnostics, device))

    def one(self, source: Path, folder: Path, device: int | str) -> Variant:
        """Generate the program of a C file, and print the warnings of reading it.

        Raises:
            InputError: the source, the profile or the folder is wrong.
            NoSolutionError: no tile sizes satisfy the limits of the card.
        """
        from eatss.session.variants import generate_one  # noqa: PLC0415 - folders need none

        with working(f"generating a program from {source}"):
            variant, warnings = generate_one(source, self._options(), folder, device=device)
        report_warnings(warnings, self.diagnostics)
        return variant

    def several(
        self, source: Path, choices: Sequence[TileChoice], folder: Path, device: int | str
    ) -> Sequence[Variant]:
        """Generate a program for every choice of tile sizes; warnings are printed once.

        Raises:
            InputError: the source, the profile or the words of a choice are wrong.
        """
        from eatss.session.variants import generate_variants  # noqa: PLC0415 - folders need none

        with working(f"generating {len(choices)} programs from {source}") as step:
            made = generate_variants(
                source, choices, self._options(), folder, device=device, told=step.at
            )
        report_warnings(made.warnings, self.diagnostics)
        return made.variants

    def _options(self) -> SourceOptions:
        from eatss.session.variants import SourceOptions  # noqa: PLC0415 - folders need none

        return SourceOptions(gpu=self.gpu, force=self.force, **self.reading)


@takes(reading=reading_options)
def generating_options(
    *,
    gpu: Annotated[
        str,
        card_option(help=f"What FILE.c is compiled for. {CARD_HELP}", rich_help_panel="Source"),
    ] = "auto",
    directory: Annotated[
        Path | None,
        of_output(
            "--output",
            "-o",
            metavar="DIR",
            parser=folder_named,
            help="Keep what is generated from FILE.c in this folder.",
        ),
    ] = None,
    force: Force = False,
    diagnostics: Diagnostics = "text",
    reading: ReadingKeywords,
) -> Generating:
    """Return how programs are generated."""
    return Generating(
        gpu=gpu, directory=directory, force=force, reading=reading, diagnostics=diagnostics
    )


def measuring_options(
    *,
    size: Annotated[
        list[str] | None,
        _of_measuring(
            "--size", metavar="NAME=VALUE,...", help="Problem sizes instead of the program's own."
        ),
    ] = None,
    seed: Annotated[int, _of_measuring(metavar="N", min=0, help="Seed of the random data.")] = 0,
    meter: Annotated[str, meter_option(rich_help_panel=_PANEL)] = "auto",
    compiler: Annotated[CompilerChoice, compiler_option(rich_help_panel=_PANEL)] = "auto",
    nvcc: Annotated[str | None, nvcc_option(rich_help_panel=_PANEL)] = None,
    device: Annotated[str, _of_measuring(metavar="N|UUID", help=DEVICE_HELP)] = "0",
    window: Annotated[
        float,
        _of_measuring(
            metavar="SECONDS",
            min=0.001,
            help="Shortest stretch of repeated runs that energy is read over.",
        ),
    ] = 2.0,
    updates: Annotated[
        int, _of_measuring(metavar="N", min=2, help="Fewest values of the sensor in a window.")
    ] = 20,
    windows: Annotated[int, _of_measuring(metavar="N", min=1, help="Fewest windows.")] = 3,
    target: Annotated[
        str,
        _of_measuring(
            metavar="PERCENT",
            help="Measure until the 95 % interval is this narrow (half of it over the mean), ...",
        ),
    ] = "1%",
    budget: Annotated[
        float,
        _of_measuring(
            metavar="SECONDS", min=0.0, help="... or until so much time went into a variant."
        ),
    ] = 60.0,
    timeout: Annotated[
        float, _of_measuring(metavar="SECONDS", min=0.01, help="Limit of one run.")
    ] = 60.0,
    no_check: Annotated[
        bool,
        _of_measuring("--no-check", help="Do not compare results with the original C first."),
    ] = False,
    counters: Annotated[
        bool,
        _of_measuring(
            "--counters",
            help="Add DRAM bytes, L2 sectors, occupancy and instructions (needs Nsight Compute).",
        ),
    ] = False,
    card: Annotated[
        str | None,
        typer.Option("--card", metavar="MODULE:CLASS", hidden=True, help="Stands in for the card."),
    ] = None,
) -> Measuring:
    """Return how to measure.

    Raises:
        InputError: ``EATSS-V013`` sizes, ``EATSS-E048`` a target, ``EATSS-E049`` a card or
            ``EATSS-X005`` a meter that are none.
    """
    from eatss.measurement.meters import METERS  # noqa: PLC0415 - keeps --help fast
    from eatss.measurement.options import MeasureOptions  # noqa: PLC0415
    from eatss.verify.plain_text import parse_sizes  # noqa: PLC0415

    METERS.get(meter)
    sizes = {name: value for part in parse_sizes(size or ()) or () for name, value in part.items()}
    options = MeasureOptions(
        sizes=sizes,
        seed=seed,
        meter=meter,
        compiler=compiler,
        nvcc=named_nvcc(nvcc),
        device=parse_device(device),
        least_window_s=window,
        least_updates=updates,
        least_windows=windows,
        target=parse_target(target),
        budget_s=budget,
        timeout_s=timeout,
        check=not no_check,
        counters=counters,
    )
    return Measuring(options=options, card=card)


measuring_command = takes(measuring=measuring_options, generating=generating_options)
"""Gives a command how to measure (``measuring``) and how to generate (``generating``)."""


def parse_device(text: str, *, option: str = "--device") -> int | str:
    """Read ``0`` or ``GPU-…``.

    Raises:
        InputError: ``EATSS-E049``.
    """
    word = text.strip()
    if word.isascii() and word.isdigit():
        return int(word)
    if re.fullmatch(r"(GPU|MIG)-[0-9A-Za-z/-]+", word):
        return word
    raise input_error(
        "EATSS-E049",
        f"{option} is '{text}'",
        hint="give the card's number as CUDA counts, from 0, or its UUID as nvidia-smi -L lists it",
    )


def parse_target(text: str) -> float:
    """Read ``1%`` or ``0.01``; a fraction.

    Raises:
        InputError: ``EATSS-E048``.
    """
    number = text.strip()
    try:
        share = float(number[:-1]) / 100 if number.endswith("%") else float(number)
    except ValueError:
        share = 0.0
    if 0 < share < 1:
        return share
    raise input_error(
        "EATSS-E048",
        f"--target is '{text}'",
        hint="write a percentage like 1%, or the same as a fraction: 0.01",
    )
