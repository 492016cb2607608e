"""Variants that are generated on one machine and measured on another.

The folder has a program for each variant and ``sweep.json``, which says what they are. It can be
measured where there is neither isl nor Z3 nor PPCG.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from eatss.base.codec import Document
from eatss.base.diagnostics import input_error
from eatss.base.frozen import frozen
from eatss.base.targets import SweepTarget
from eatss.tune.explore.campaign import WAIT_S
from eatss.tune.explore.lab import Lab, Work
from eatss.tune.explore.nouns import Care, Made, SourceText, Wanted
from eatss.tune.store.nouns import Role

MANIFEST_FILE = "sweep.json"


@frozen
class PreparedVariant:
    """A variant, and what was made of it; its folder is named from the manifest's."""

    wanted: Wanted
    made: Made


@frozen
class Prepared:
    """What a folder of prepared variants holds.

    Attributes:
        source: The program, as it was read.
        target: Who generated.
        generator: Version of that.
        gpu: The card that was generated for, by the name of its profile.
        space: The space, as TOML.
        names: Its iterators.
        varied: Parameters of the program that it varies.
        variants: In the order in which they were proposed, choices with a role first.
    """

    source: SourceText
    target: SweepTarget
    generator: str
    gpu: str
    space: str
    names: tuple[str, ...]
    varied: tuple[str, ...]
    variants: tuple[PreparedVariant, ...]
    schema_version: int = 1

    @property
    def roles(self) -> tuple[Role, ...]:
        """The choices that variants are set beside."""
        return tuple(one.wanted.role for one in self.variants if one.wanted.role)

    @property
    def left_out(self) -> tuple[tuple[str, int], ...]:
        """Why variants could not be made, and how many for each reason, the most frequent first."""
        reasons = Counter(one.made.reason for one in self.variants if one.made.folder is None)
        return tuple(reasons.most_common())


PREPARED = Document(
    title="list of prepared variants",
    kind=Prepared,
    other_version="EATSS-W020",
    damaged="EATSS-W021",
    hint="make it anew: eatss sweep FILE.c --gpu CARD --prepare DIR",
)


def is_prepared(path: str | os.PathLike[str]) -> bool:
    """Tell whether a path is that of a folder with prepared variants."""
    return (Path(path) / MANIFEST_FILE).is_file()


def load_prepared(folder: Path) -> Prepared:
    """Read what a folder of prepared variants holds; folders of programs are whole paths then.

    Raises:
        InputError: ``EATSS-W020`` it is of another version, ``EATSS-W021`` damaged.
    """
    try:
        document = json.loads((folder / MANIFEST_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise PREPARED.damage(str(error)) from None
    return _placed(PREPARED.from_dict(document), lambda own: str(folder.absolute() / own))


def _placed(prepared: Prepared, place: Callable[[str], str]) -> Prepared:
    """Return a list of variants with other paths of folders."""
    variants = (
        one
        if one.made.folder is None
        else replace(one, made=replace(one.made, folder=place(one.made.folder)))
        for one in prepared.variants
    )
    return replace(prepared, variants=tuple(variants))


def make_all(
    lab: Lab, wanted: Sequence[Wanted], care: Care, told: Callable[[int], None]
) -> tuple[PreparedVariant, ...]:
    """Make variants in a lab without cards; return them in their order.

    Args:
        lab: makes them.
        wanted: the variants.
        care: is not used, since nothing is measured.
        told: is told how many are made.
    """
    found: dict[str, PreparedVariant] = {}
    waiting = list(wanted)
    on_the_way = 0
    while waiting or on_the_way:
        while waiting and lab.room > 0:
            lab.submit(Work(wanted=waiting.pop(0), care=care))
            on_the_way += 1
        done = lab.done(WAIT_S)
        if done is not None:
            on_the_way -= 1
            one = done.work.wanted
            found[one.variant] = PreparedVariant(wanted=one, made=done.made)
            told(len(found))
    return tuple(found[one.variant] for one in wanted)


def write_prepared(folder: Path, prepared: Prepared) -> None:
    """Write the list of a folder's variants, with paths from the folder on.

    Raises:
        InputError: ``EATSS-W022``, it cannot be written.
    """
    own = _placed(prepared, lambda path: os.path.relpath(path, folder))
    try:
        (folder / MANIFEST_FILE).write_text(PREPARED.to_text(own), encoding="utf-8")
    except OSError as error:
        raise input_error(
            "EATSS-W022",
            f"'{folder / MANIFEST_FILE}' cannot be written: {error.strerror}",
            hint="name another folder",
        ) from None
