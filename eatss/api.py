"""The Python API: ``eatss.select``, ``eatss.predict``, ``eatss.inspect``, ``eatss.codegen``."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from eatss.base.cache import Caching
from eatss.base.diagnostics import Progress, input_error, no_progress, warn_caller
from eatss.base.files import StrPath
from eatss.base.frozen import Names
from eatss.base.options import Keywords, spelled_out
from eatss.base.targets import Cut, TargetName
from eatss.cards import load_profile
from eatss.cards.this_machine import CardLike
from eatss.choose.options import SelectKeywords, SelectOptions, check_target, one_of
from eatss.choose.selection import Selection
from eatss.frontend.options import PpcgReadingKeywords, Reading, ReadingKeywords
from eatss.lower.recipe import CodeRequest, Recipe, SizeKeywords, read_recipe
from eatss.lower.requests import check_alone, choices
from eatss.program import Program
from eatss.session.found import Found, find_expectation, find_program, find_selection
from eatss.session.kept import kept, write_kept
from eatss.session.source import Source

if TYPE_CHECKING:
    from eatss.analysis.analyse import AnalysedProgram
    from eatss.choose.expectation import ProgramExpectation
    from eatss.frontend.python import SourceLike


@dataclass(frozen=True, kw_only=True)
class _Select(Keywords, SelectKeywords, PpcgReadingKeywords, Caching):
    source: SourceLike = field(kw_only=False)
    gpu: CardLike
    target: TargetName = "ppcg"
    progress: Progress = no_progress


@dataclass(frozen=True, kw_only=True)
class _Predict(Keywords, SizeKeywords, PpcgReadingKeywords):
    source: SourceLike = field(kw_only=False)
    gpu: CardLike
    target: TargetName = "ppcg"
    max_shared_memory: int | None = None
    unroll_gpu_tile: bool = False
    over_clock: bool = False


@dataclass(frozen=True, kw_only=True)
class _Inspect(Keywords, PpcgReadingKeywords):
    source: SourceLike = field(kw_only=False)
    cut: Cut = "ppcg"


@dataclass(frozen=True, kw_only=True)
class Codegen(Keywords, CodeRequest, SelectKeywords, ReadingKeywords, Caching):
    """The arguments of :func:`codegen`."""

    source: SourceLike = field(kw_only=False)
    gpu: CardLike
    output: StrPath | None = None
    force: bool = False
    selection: Selection | None = None
    recipe: StrPath | Recipe | None = None
    progress: Progress = no_progress


@spelled_out(_Select, SelectKeywords, PpcgReadingKeywords, Caching)
def select(asked: _Select) -> Selection:
    """Select tile sizes for every kernel of a C file or of C source text.

    Safe to call from several threads at once; equal input gives equal output.

    Args:
        source: Path of a C file, a kernel of eatss (``"@gemm"``), C source text (a ``str`` with
            several lines or the body of a function), or loops in Python: what ``eatss.scop``
            made, ``"FILE.py"`` or ``"FILE.py:NAME"``.
        gpu: Name of a card (``"a100"``), ``"auto"`` for the one in this machine, path of a TOML
            profile, or a profile.
        target: What makes code from the sizes: ``"ppcg"``, or ``"cuda"`` for eatss itself.
        progress: Hears what is done now.
        **options: Those of :class:`SelectOptions`, :class:`Reading` and :class:`Caching`.

    Warns:
        EatssWarning: what is hardly meant so, such as a ``-D`` that changes nothing.

    Raises:
        InputError: the source, the profile or an option is wrong; carries all
            findings.
        NoSolutionError: no tile sizes satisfy the limits of the card.
    """
    given = (
        Source.of(asked.source),
        asked.of(Reading),
        load_profile(asked.gpu),
        asked.of(SelectOptions),
    )
    cache = asked.of(Caching).chosen()
    found = kept(cache, "select", lambda: find_selection(*given, asked.progress), *given)
    warn_caller(found.warnings)
    return found.noun


@spelled_out(_Predict, SizeKeywords, PpcgReadingKeywords)
def predict(asked: _Predict) -> ProgramExpectation:
    """Predict time and energy of the code for a C file at given sizes.

    What is not given is PPCG's default, or for the target ``"cuda"`` what :func:`select` selects
    for the energy objective.

    Args:
        source: Path of a C file, a kernel of eatss (``"@gemm"``), C source text (a ``str`` with
            several lines or the body of a function), or loops in Python: what ``eatss.scop``
            made, ``"FILE.py"`` or ``"FILE.py:NAME"``.
        gpu: Name of a card, ``"auto"`` for the one in this machine, path of a TOML profile, or a
            profile.
        target: Whose code: ``"ppcg"``, or ``"cuda"`` for that of :func:`codegen`.
        max_shared_memory: Bytes of shared memory that PPCG may use for a block, 8192 by default.
        unroll_gpu_tile: Whether PPCG unrolls the points of a thread.
        over_clock: Whether to predict these sizes at lower clocks of the SMs, too (``clocks``).
        **options: Those of :class:`CodeRequest` and :class:`Reading`.

    Warns:
        EatssWarning: what is hardly meant so, such as a ``-D`` that changes nothing.

    Raises:
        InputError: the source, the profile or a size is wrong; ``EATSS-C012`` an option does not
            belong to the target.
        NoSolutionError: for the target cuda, no sizes satisfy the limits of the card.
    """
    wanted, reading = asked.of(CodeRequest), asked.of(Reading)
    most = asked.max_shared_memory
    check_target(
        asked.target,
        ppcg={
            "max_shared_memory": most is not None,
            "unroll_gpu_tile": asked.unroll_gpu_tile,
        },
        cuda={"placements": bool(wanted.placements)},
    )
    if most is not None and not isinstance(most, int):
        raise input_error(
            "EATSS-C004", f"max_shared_memory is {most!r}", hint="give a number of bytes"
        )
    profile, unroll = load_profile(asked.gpu), asked.unroll_gpu_tile
    found, warnings = find_expectation(
        Source.of(asked.source),
        reading,
        profile,
        asked.target,
        wanted,
        most,
        unroll,
        asked.over_clock,
    )
    warn_caller(warnings)
    return found


@spelled_out(_Inspect, PpcgReadingKeywords)
def inspect(asked: _Inspect) -> AnalysedProgram:
    """Return domains, accesses, dependences, schedule, kernels and facts of a C file.

    The isl objects of the result belong to one isl context: use a result in one thread at a time.

    Args:
        source: Path of a C file, a kernel of eatss (``"@gemm"``), C source text (a ``str`` with
            several lines or the body of a function), or loops in Python: what ``eatss.scop``
            made, ``"FILE.py"`` or ``"FILE.py:NAME"``.
        cut: Whose kernels: PPCG's (``"ppcg"``), or those that :func:`codegen` makes (``"eatss"``).
        **options: Those of :class:`Reading`.

    Warns:
        EatssWarning: what is hardly meant so, such as a ``-D`` that changes nothing.

    Raises:
        InputError: the source or an option is wrong; carries all findings.
    """
    from eatss.session.session import Session  # noqa: PLC0415

    one_of("cut", asked.cut, get_args(Cut))
    reading = asked.of(Reading)
    session = Session(asked.source, reading, cut=asked.cut)
    session.try_in_bounds()
    warn_caller(session.warnings)
    return session.analysed


@spelled_out(Codegen, CodeRequest, SelectKeywords, ReadingKeywords, Caching)
def codegen(asked: Codegen) -> Program:
    """Generate CUDA for every kernel of a C file or of C source text.

    Safe to call from several threads at once; equal input gives equal text. Arguments from
    ``objective`` on are those of :func:`select` with ``target="cuda"``, which chooses the sizes.
    With ``dtype`` the macro that names the type in the source is defined.

    Args:
        source: Path of a C file, a kernel of eatss (``"@gemm"``), C source text (a ``str`` with
            several lines or the body of a function), or loops in Python: what ``eatss.scop``
            made, ``"FILE.py"`` or ``"FILE.py:NAME"``.
        gpu: Name of a card (``"h200"``), ``"auto"`` for the one in this machine, path of a TOML
            profile, or a profile.
        output: A folder to write the program to, with its launch plan and the C it was
            made from.
        force: Replace files in ``output`` that eatss did not write.
        selection: Sizes that :func:`select` found before, for the same kernels and card.
        recipe: Everything that was decided before: a file of ``eatss codegen --save-recipe``, a
            folder that ``eatss codegen`` wrote, or a recipe. It stands instead of all arguments
            that choose something.
        progress: Hears what is done now.
        **options: Those of :class:`CodeRequest`, :class:`SelectOptions`, :class:`Reading` and
            :class:`Caching`.

    Warns:
        EatssWarning: what is hardly meant so, such as a ``-D`` that changes nothing.

    Raises:
        InputError: the source, the profile or an option is wrong; carries all
            findings.
        NoSolutionError: no tile sizes satisfy the limits of the card.
    """
    found = generated(asked)
    warn_caller(found.warnings)
    if asked.output is not None:
        write_generated(asked, found.noun)
    return found.noun


def generated(asked: Codegen) -> Found[Program]:
    """Return a program with what is to be said of its source."""
    selection, recipe = asked.selection, asked.recipe
    profile = load_profile(asked.gpu)
    decided = read_recipe(Path(recipe)) if isinstance(recipe, str | PathLike) else recipe
    choosing = asked.of(SelectOptions, target="cuda")
    wanted, reading = asked.of(CodeRequest), asked.of(Reading)
    check_alone(decided, choices(wanted, choosing, selection, reading))
    given = Source.of(asked.source), reading, profile, choosing, wanted, decided or selection
    find = partial(find_program, *given, progress=asked.progress)
    return kept(asked.of(Caching).chosen(), "codegen", find, *given)


def write_generated(asked: Codegen, program: Program) -> Names:
    """Write the folder of a program; return its files."""
    source, reading = Source.of(asked.source), asked.of(Reading)
    assert asked.output is not None
    return write_kept(program, source, reading, asked.output, force=asked.force)
