"""From a C file to folders of generated programs that can be measured.

``FILE.c`` is analysed once, selected for once, and generated for every choice of tile sizes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from eatss.base.diagnostics import Diagnostics, InputError, NoSolutionError
from eatss.base.options import shows_types
from eatss.base.targets import CardNumber
from eatss.cards import load_profile
from eatss.cards.this_machine import AUTO, CardLike
from eatss.choose.options import SelectOptions
from eatss.frontend.options import Reading
from eatss.frontend.python import SourceLike
from eatss.lower.recipe import CodeRequest
from eatss.measurement.options import SELECTED, TileChoice, Variant, rejected_variant
from eatss.session.found import find_program
from eatss.session.kept import write_kept
from eatss.session.session import Session
from eatss.session.source import Source

_MISTAKES = frozenset({"EATSS-C008", "EATSS-E040", "EATSS-K001"})
"""What is wrong with the words of a choice or its folder, and not with its sizes on this card."""

_UNUSUAL = re.compile(r"[^A-Za-z0-9_.=-]+")


@shows_types
@dataclass(frozen=True, kw_only=True)
class SourceOptions(Reading):
    """How C is read, for which card sizes are selected, and what becomes of files in the way.

    Attributes:
        gpu: ``"auto"`` for the card in this machine, the name of a shipped profile, the path of
            a TOML profile, or a profile.
        force: Replace files in the folder that eatss did not write.
    """

    gpu: CardLike = AUTO
    force: bool = False


def generate_variants(
    source: SourceLike,
    choices: Sequence[TileChoice],
    options: SourceOptions | None,
    folder: Path,
    *,
    device: CardNumber = 0,
) -> tuple[tuple[Variant, ...], Diagnostics]:
    """Generate a program for every choice of tile sizes; return them with the warnings.

    Each is in a folder of its own.

    Sizes that the model, the card or the generator refuses give a variant with a ``rejection``.

    Raises:
        InputError: the source, the profile or the words of a choice are wrong.
    """
    reading = options or SourceOptions()
    profile = load_profile(reading.gpu, device)
    session = Session(source, reading, code=True)
    session.try_in_bounds()
    warnings = session.symbolic.warnings
    try:
        selection = session.select(profile, SelectOptions(target="cuda"))
    except NoSolutionError as error:
        return tuple(rejected_variant(choice.label, error) for choice in choices), warnings
    kernels = [
        (kernel.name, tuple(loop.name for loop in kernel.loops))
        for kernel in session.of(selection).analysed.facts
    ]
    variants = []
    for choice in choices:
        place = folder / (_UNUSUAL.sub("-", choice.label).strip("-.") or "variant")
        try:
            wanted = CodeRequest(tiles=choice.tiles(kernels))
            program = session.generate(session.recipe(selection, profile, wanted), profile)
            session.write(program, place, force=reading.force)
        except (InputError, NoSolutionError) as error:
            if error.code in _MISTAKES:
                raise
            variants.append(rejected_variant(choice.label, error))
        else:
            variants.append(Variant(label=choice.label, directory=place))
    return tuple(variants), warnings


def generate_one(
    source: SourceLike,
    options: SourceOptions | None,
    folder: Path,
    *,
    device: CardNumber = 0,
) -> tuple[Variant, Diagnostics]:
    """Select for a C file and generate its program into a folder; return it with the warnings.

    Raises:
        InputError: the source, the profile or the folder is wrong.
        NoSolutionError: no tile sizes satisfy the limits of the card.
    """
    reading = options or SourceOptions()
    profile = load_profile(reading.gpu, device)
    given = Source.of(source), reading, profile, SelectOptions(target="cuda"), CodeRequest(), None
    found = find_program(*given)
    write_kept(found.noun, given[0], reading, folder, force=reading.force)
    return Variant(label=SELECTED, directory=folder), found.warnings
