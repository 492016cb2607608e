"""What is selected, predicted, generated or read of a source, as it is kept for the next time.

Each takes a process of its own that is bounded, unless this one is.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from eatss.base.codec import decode, encode
from eatss.base.diagnostics import (
    Diagnostics,
    EatssError,
    InputError,
    Progress,
    no_progress,
)
from eatss.base.forked import allow_more, in_bounds
from eatss.base.frozen import frozen
from eatss.base.targets import TARGETS, TargetName
from eatss.cards import GpuProfile
from eatss.choose.options import SelectOptions, longest_s
from eatss.choose.selection import Selection
from eatss.frontend.options import Reading
from eatss.program import Interface, Program
from eatss.program.expression import SizePairs

if TYPE_CHECKING:
    from eatss.choose.expectation import ProgramExpectation
    from eatss.lower.recipe import CodeRequest, Recipe
    from eatss.session.session import Session
    from eatss.session.source import Source

Noun = TypeVar("Noun")


@frozen
class Found(Generic[Noun]):
    """A selection, a program or its interface, and what was said of its source.

    ``lasting`` tells whether more time would not find better.
    """

    noun: Noun
    warnings: Diagnostics = ()
    lasting: bool = True


_NOUNS: dict[str, Any] = {"select": Selection, "codegen": Program, "interface": Interface}


def found_bytes(found: Found[Any]) -> bytes:
    """Return a result as bytes."""
    plain, noun = encode(found), found.noun
    if isinstance(noun, Program):
        plain["noun"]["text"] = noun.text  # stands in a file of its own elsewhere
        plain["noun"]["expected"] = encode(noun.expected)
    return json.dumps(plain).encode("ascii")


def found_of(kind: str, data: bytes) -> Found[Any] | None:
    """Return a result that was bytes; ``None`` where they are none of it.

    Args:
        kind: what the cache calls such results.
        data: what :func:`found_bytes` made.
    """
    try:
        plain = json.loads(data)
        noun: Any = decode(_NOUNS[kind], plain["noun"])
        return Found(noun=noun, warnings=decode(Diagnostics, plain["warnings"]))
    except (ValueError, TypeError, LookupError, RecursionError, EatssError):
        return None


def _and_more(known: Diagnostics, warnings: Diagnostics) -> Diagnostics:
    return (*known, *(one for one in warnings if one not in known))


def _session(source: Source, reading: Reading, options: SelectOptions) -> Session:
    from eatss.session.session import Session  # noqa: PLC0415 - what is kept needs none

    cut = TARGETS[options.target].cut
    return Session(source, reading, cut=cut)


def find_selection(
    source: Source,
    reading: Reading,
    profile: GpuProfile,
    options: SelectOptions,
    progress: Progress = no_progress,
) -> Found[Selection]:
    """Select tile sizes, as :func:`eatss.select` does."""

    def found() -> Found[Selection]:
        session = _session(source, reading, options)
        progress(f"analysing {session.file}")
        _ = session.analysed
        progress(f"solving for {profile.title}")
        selection = session.select(profile, options, progress=progress)
        every = _and_more(session.of(selection).warnings, selection.warnings)
        return Found(noun=selection, warnings=every, lasting=selection.lasts)

    return in_bounds(found, generates=False, cuts=TARGETS[options.target].own)()


@in_bounds
def find_proof(
    source: Source,
    reading: Reading,
    profile: GpuProfile,
    options: SelectOptions,
    selection: Selection,
) -> str:
    """Return SMT-LIB text that asks for better sizes than those of a published model."""
    from eatss.choose.select import proofs  # noqa: PLC0415 - what is kept needs none
    from eatss.choose.smt import scripts_text  # noqa: PLC0415

    session = _session(source, reading, options).of(selection)
    allow_more(longest_s(selection.options))
    return scripts_text(proofs(session.analysed.facts, profile, selection))


@in_bounds
def find_expectation(
    source: Source,
    reading: Reading,
    profile: GpuProfile,
    target: TargetName,
    wanted: CodeRequest,
    max_shared_memory: int | None,
    unroll_gpu_tile: bool,
    over_clock: bool = False,
) -> tuple[ProgramExpectation, Diagnostics]:
    """Predict, as :func:`eatss.predict` does; return the warnings with it."""
    from eatss.session.session import Session  # noqa: PLC0415

    session = Session(source, reading, cut=TARGETS[target].cut)
    found = session.predict(
        profile,
        wanted,
        max_shared_memory=max_shared_memory,
        unroll_gpu_tile=unroll_gpu_tile,
        over_clock=over_clock,
    )
    return found, _and_more(session.warnings, found.warnings)


@in_bounds
def find_interface(source: Source, reading: Reading) -> Found[Interface]:
    """Find what callers of a program pass; nothing is scheduled."""
    from eatss.session.session import Session  # noqa: PLC0415 - what is kept needs none

    return Found(noun=Session(source, reading, code=True).interface)


_OFFERED = {
    "recomputed": "recomputable",
    "factored": "factorable",
    "reverse": "reversible",
    "private": "privatisable",
    "split": "splittable",
}
"""Where a session has what may be changed of regions, by what is decided."""

_LOOPS_EMPTY = ("EATSS-P006", "EATSS-K011", "EATSS-F050")
"""All or some loops are empty at sizes as small as 0 or 1, and what is left has other kernels, or
C has no arrays of such sizes: there the program for the sizes of the source is as good as any."""


@in_bounds
def find_program(
    source: Source,
    reading: Reading,
    profile: GpuProfile,
    choosing: SelectOptions,
    wanted: CodeRequest,
    decided: Selection | Recipe | None,
    sizes: SizePairs | None = None,
    progress: Progress = no_progress,
) -> Found[Program]:
    """Generate code, as :func:`eatss.codegen` does.

    Args:
        source: what code is of.
        reading: how it is read.
        profile: the card.
        choosing: what sizes are selected for.
        wanted: wishes of the user.
        decided: sizes, or all that is decided; ``None`` to select.
        sizes: sizes to select for, where they are not those of the source.
        progress: hears what is done now.
    """
    from eatss.session.session import Session  # noqa: PLC0415 - what is kept needs none

    def opened(reading: Reading) -> Session:
        return Session(source, reading, code=True)

    def decide(sized: Session) -> tuple[Selection, Recipe]:
        selection = decided
        if not isinstance(selection, Selection):
            how = {"strict_fp": wanted.strict_fp, **wanted.joins}
            selection = sized.select(profile, choosing, **how, progress=progress)
            own = session.before_classes(selection)
            kept = all(
                {*getattr(selection, name)} <= {*getattr(session, offered)}
                for name, offered in _OFFERED.items()
                if getattr(selection, name)
            )
            classes = {one.region for one in selection.classes}
            kept = kept and (not classes or classes <= {*own.in_classes})
            kept = kept and session.has(selection.chunks)
            if not kept or not session.of(selection).has_kernels(selection):  # loops are empty here
                selection = sized.plain.select(profile, choosing, **how, progress=progress)
        limit = choosing.shared_limit_bytes(profile)
        return selection, session.recipe(selection, profile, wanted, limit)

    session = opened(reading)
    progress(f"analysing {session.file}")
    if decided is not None and not isinstance(decided, Selection):
        program = session.generate(decided, profile)
        return Found(noun=program, warnings=session.of(decided).warnings)
    progress(f"solving for {profile.title}")
    sized = session if sizes is None else opened(session.reading_at(sizes))
    try:
        selection, recipe = decide(sized)
    except InputError as error:
        if error.code not in _LOOPS_EMPTY or sized is session:
            raise
        sized = session
        selection, recipe = decide(sized)
    told = sized.expected(selection, recipe, profile)
    progress(f"generating code for {profile.title}")
    program = replace(session.generate(recipe, profile, selection), expected=told.expected)
    return Found(
        noun=program,
        warnings=_and_more(session.of(recipe).warnings, told.warnings),
        lasting=decided is not None or selection.lasts,
    )
