"""Sources and sizes in, programs out: of C or loops in Python, or one that is there already."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeAlias

from eatss.base.cache import Cache, key_of
from eatss.base.diagnostics import InputError
from eatss.base.forked import in_bounds
from eatss.base.frozen import frozen
from eatss.base.notices import warn_caller
from eatss.cards import GpuProfile
from eatss.choose.options import SelectOptions
from eatss.frontend.options import DtypeName, Reading
from eatss.lower.recipe.options import CodeRequest
from eatss.lower.recipe.recipe import Recipe
from eatss.program import Interface, Program
from eatss.session.found import FoundInterface, FoundProgram
from eatss.session.jit.signature import CallSignature, class_of, coarse_class_of, sizes_of
from eatss.session.kept import Kept, kept_interface, kept_program
from eatss.session.source import Source, UnknownFilesError, read_files

if TYPE_CHECKING:
    from eatss.choose.selection import Selection
    from eatss.session.session import Session

_LOOPS_EMPTY = ("EATSS-P006", "EATSS-K011", "EATSS-F049")
"""All or some loops are empty at sizes as small as 0 or 1, and what is left has other kernels, or
C has no arrays of such sizes: there the program for the sizes of the source is as good as any."""


Sizes = tuple[tuple[str, int], ...]
"""Sizes by the names that the C source has for them."""


@frozen
class SourceMaker:
    """Makes programs of a source called ``name``, one for each class of sizes and type."""

    source: Any
    reading: Reading
    choosing: SelectOptions
    wanted: CodeRequest
    cache: Cache | None
    name: str
    exact_sizes: bool = False

    def files(self) -> str:
        """Return what tells the text of the source from any other, headers included."""
        if not isinstance(self.source, str | PathLike):
            return ""  # loops in Python that were read already
        try:
            return key_of(read_files(self.source, self.reading.frontend().include_dirs))
        except (UnknownFilesError, OSError, ValueError):
            return ""  # who reads it says what is wrong

    def interface(self, dtype: DtypeName | None) -> Interface:
        """Return what callers pass, where floating-point numbers are of a type.

        The source is read, nothing is scheduled.

        Raises:
            InputError: the source is refused.
        """
        reading, source = self._reading(dtype), Source.of(self.source)
        kept = kept_interface(self.cache, source, reading)
        return kept.found_or(lambda: _interface(source, reading)).interface

    def class_of(self, signature: CallSignature, sizes: Mapping[str, int]) -> Sizes:
        """Return the sizes that stand for those of a call: the least of the class, or the same."""
        pairs = [(one.name, one.size, sizes[one.size]) for one in sizes_of(signature)]
        if self.exact_sizes:
            return tuple((name, value) for name, _, value in pairs)
        shaping = signature.shaping
        return tuple(
            (name, (class_of if size in shaping else coarse_class_of)(value))
            for name, size, value in pairs
        )

    def job(
        self, dtype: DtypeName | None, sizes: Sizes, profile: GpuProfile | None, *, wide: bool
    ) -> CodeJob:
        """Return all that decides a program; ``wide`` asks for indices of 64 bits."""
        assert profile is not None
        return CodeJob(
            source=self.source,
            reading=self._reading(dtype),
            sizes=sizes,
            profile=profile,
            choosing=self.choosing,
            wanted=replace(self.wanted, index_bits=64) if wide else self.wanted,
        )

    def made(self, job: CodeJob | None) -> Program:
        """Return the program of a job, generated or kept from before; it runs at all sizes.

        Raises:
            InputError: ``EATSS-K0xx``, and what :func:`eatss.codegen` raises.
            NoSolutionError: no tile sizes satisfy the limits of the card.
        """
        assert job is not None
        found = job.kept(self.cache).found_or(lambda: _generated(job))
        warn_caller(found.warnings)
        return found.program

    def _reading(self, dtype: DtypeName | None) -> Reading:
        return self.reading if dtype is None else replace(self.reading, dtype=dtype)


@frozen
class ProgramMaker:
    """Hands out a program that is there already, whatever the sizes: all are one class."""

    program: Program

    @property
    def name(self) -> str:
        """What the program is called."""
        return self.program.name

    def files(self) -> str:
        """Return nothing: it does not change."""
        return ""

    def interface(self, dtype: DtypeName | None) -> Interface:
        """Return what callers pass."""
        return Interface.of(self.program)

    def class_of(self, signature: CallSignature, sizes: Mapping[str, int]) -> Sizes:
        """Return nothing."""
        return ()

    def job(
        self, dtype: DtypeName | None, sizes: Sizes, profile: GpuProfile | None, *, wide: bool
    ) -> None:
        """Return nothing: it is made."""

    def made(self, job: CodeJob | None) -> Program:
        """Return the program."""
        return self.program


Maker: TypeAlias = SourceMaker | ProgramMaker
"""Where the programs of a callable come from."""


@frozen
class CodeJob:
    """All that decides a program that is selected and generated.

    ``sizes`` are those selected for, by their names in C: macros, or parameters of the function.
    """

    source: Any
    reading: Reading
    sizes: Sizes
    profile: GpuProfile
    choosing: SelectOptions
    wanted: CodeRequest
    recipe: Recipe | None = None

    def kept(self, cache: Cache | None) -> Kept[FoundProgram]:
        """Return the place of the program in a cache."""
        return kept_program(
            cache,
            Source.of(self.source),
            self.reading,
            self.profile,
            self.choosing,
            self.wanted,
            self.recipe,
            self.sizes,
        )


@in_bounds
def _interface(source: Source, reading: Reading) -> FoundInterface:
    from eatss.session.session import Session  # noqa: PLC0415 - what is kept needs none

    return FoundInterface(interface=Session(source, reading, code=True).interface)


@in_bounds
def _generated(job: CodeJob) -> FoundProgram:
    """Select for the sizes of a class, and generate code for any sizes."""
    from eatss.session.session import Session  # noqa: PLC0415 - what is kept needs none

    volume = job.choosing.volume_name()
    session = Session(job.source, job.reading, volume=volume, code=True)
    recipe, lasting, told = job.recipe, True, None
    if recipe is None:
        sized = Session(job.source, session.reading_at(job.sizes), volume=volume, code=True)
        try:
            selection, recipe = _decided(sized, session, job)
        except InputError as error:
            if error.code not in _LOOPS_EMPTY:
                raise
            sized = session
            selection, recipe = _decided(session, session, job)
        lasting = selection.optimal == "proven"
        told = sized.expected(selection, recipe, job.profile)
    program = session.generate(recipe, job.profile)
    return FoundProgram.of(program, session.of(recipe).warnings, told, lasting=lasting)


def _decided(sized: Session, session: Session, job: CodeJob) -> tuple[Selection, Recipe]:
    """Select for the sizes of one session, and decide about the code of another."""
    strict, fuse = job.wanted.strict_fp, job.wanted.fuse_rows
    selection = sized.select(job.profile, job.choosing, strict_fp=strict, fuse_rows=fuse)
    if not {*selection.recomputed} <= {*session.recomputable}:  # loops are empty at some sizes
        plain = sized.plain
        selection = plain.select(job.profile, job.choosing, strict_fp=strict, fuse_rows=fuse)
    limit = job.choosing.shared_limit_bytes(job.profile)
    return selection, session.recipe(selection, job.profile, job.wanted, limit)
