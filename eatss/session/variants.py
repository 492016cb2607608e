"""From a C file to folders of generated programs that can be measured.

``FILE.c`` is analysed once, selected for once, and generated for every choice of tile sizes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from eatss.base.diagnostics import Diagnostic, InputError, NoSolutionError, Progress, no_progress
from eatss.base.frozen import frozen
from eatss.base.options import shows_types
from eatss.cards import GpuProfile, load_profile
from eatss.cards.this_machine import AUTO
from eatss.choose import Selection
from eatss.choose.options import SelectOptions
from eatss.frontend.options import Reading
from eatss.frontend.python import PythonScop
from eatss.lower.recipe import CodeRequest
from eatss.measurement.options import SELECTED, TileChoice, Variant, rejected_variant
from eatss.session.session import Session

_MISTAKES = frozenset({"EATSS-C008", "EATSS-E040", "EATSS-K001"})
"""What is wrong with the words of a choice or its folder, and not with its sizes on this card."""

_UNUSUAL = re.compile(r"[^A-Za-z0-9_.=-]+")


@shows_types
@frozen
class SourceOptions(Reading):
    """How C is read, for which card sizes are selected, and what becomes of files in the way.

    Attributes:
        gpu: ``"auto"`` for the card in this machine, the name of a shipped profile, the path of
            a TOML profile, or a profile.
        force: Replace files in the folder that eatss did not write.
    """

    gpu: str | PathLike[str] | GpuProfile = AUTO
    force: bool = False


@frozen
class GeneratedVariants:
    """Variants of one C file, and the warnings of reading it."""

    variants: tuple[Variant, ...]
    warnings: tuple[Diagnostic, ...]


@frozen
class _Generator:
    """A C file for a card."""

    session: Session
    profile: GpuProfile
    force: bool

    @classmethod
    def of(
        cls,
        source: str | PathLike[str] | PythonScop,
        options: SourceOptions | None,
        device: int | str,
    ) -> _Generator:
        reading = options or SourceOptions()
        profile = load_profile(reading.gpu, device)
        session = Session(source, reading, code=True)
        return cls(session=session, profile=profile, force=reading.force)

    def select(self) -> Selection:
        return self.session.select(self.profile, SelectOptions(target="cuda"))

    def write(self, selection: Selection, choice: TileChoice, folder: Path) -> None:
        kernels = [
            (kernel.name, tuple(loop.name for loop in kernel.loops))
            for kernel in self.session.of(selection).analysed.facts
        ]
        wanted = CodeRequest(tiles=choice.tiles(kernels))
        recipe = self.session.recipe(selection, self.profile, wanted)
        program = self.session.generate(recipe, self.profile)
        self.session.write(program, folder, force=self.force)

    def variant(self, selection: Selection, choice: TileChoice, folder: Path) -> Variant:
        directory = folder / (_UNUSUAL.sub("-", choice.label).strip("-.") or "variant")
        try:
            self.write(selection, choice, directory)
        except (InputError, NoSolutionError) as error:
            if error.code in _MISTAKES:
                raise
            return rejected_variant(choice.label, error)
        return Variant(label=choice.label, directory=directory)


def generate_variants(
    source: str | PathLike[str] | PythonScop,
    choices: Sequence[TileChoice],
    options: SourceOptions | None,
    folder: Path,
    *,
    device: int | str = 0,
    progress: Progress = no_progress,
) -> GeneratedVariants:
    """Generate a program for every choice of tile sizes, each into a folder of its own.

    Sizes that the model, the card or the generator refuses give a variant with a ``rejection``.

    Raises:
        InputError: the source, the profile or the words of a choice are wrong.
    """
    generator = _Generator.of(source, options, device)
    progress(f"analysing {generator.session.file}")
    warnings = generator.session.symbolic.warnings
    progress(f"solving for {generator.profile.title}")
    try:
        selection = generator.select()
    except NoSolutionError as error:
        variants = [rejected_variant(choice.label, error) for choice in choices]
    else:
        variants = []
        for number, choice in enumerate(choices):
            progress(f"generating {choice.label}", number, len(choices))
            variants.append(generator.variant(selection, choice, folder))
    return GeneratedVariants(variants=tuple(variants), warnings=warnings)


def generate_one(
    source: str | PathLike[str] | PythonScop,
    options: SourceOptions | None,
    folder: Path,
    *,
    device: int | str = 0,
) -> tuple[Variant, tuple[Diagnostic, ...]]:
    """Select for a C file and generate its program into a folder; return it with the warnings.

    Raises:
        InputError: the source, the profile or the folder is wrong.
        NoSolutionError: no tile sizes satisfy the limits of the card.
    """
    generator = _Generator.of(source, options, device)
    generator.write(generator.select(), TileChoice(label=SELECTED), folder)
    warnings = generator.session.symbolic.warnings
    return Variant(label=SELECTED, directory=folder), warnings
