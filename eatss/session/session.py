"""The chain from a C file to a folder with CUDA, each line below one package.

kernel.py ─python_source→ C text
kernel.c ─frontend→ Scop ─polyhedral→ Kernels ─analysis→ KernelFacts ─model→ Selection
                                              Selection ─recipe→ Recipe ─lower, cuda→ Program
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from eatss.analysis.analyse import AnalysedProgram, AnalysedScop, SlowLoop
from eatss.analysis.variant import ClassSize, Rewrites
from eatss.base.diagnostics import (
    Diagnostic,
    Diagnostics,
    InputError,
    Progress,
    input_error,
    no_progress,
)
from eatss.base.files import StrPath, folder_named
from eatss.base.forked import anew, in_bounds
from eatss.base.frozen import Names, Numbers, distinct, their_names
from eatss.base.shown import time_text
from eatss.base.targets import FUSIONS, TARGETS, Cut, Fusion
from eatss.cards import GpuProfile, load_profile
from eatss.cards.this_machine import CardLike
from eatss.choose.cuda import Known
from eatss.choose.objectives import NEVER
from eatss.choose.options import (
    PUBLISHED,
    ModelOptions,
    SelectOptions,
    check_target,
    wrong,
)
from eatss.choose.select import DearerError
from eatss.choose.selection import (
    NOT_TILED,
    PPCG_SHARED_BYTES,
    KernelSelection,
    PpcgOptions,
    Selection,
)
from eatss.frontend.options import FrontendOptions, FrontendResult, Reading
from eatss.frontend.parse import parse_file
from eatss.frontend.python import SourceLike
from eatss.frontend.symbolic import SymbolicResult, parse_symbolic, type_macros
from eatss.polyhedral.copied_operands import frees_loops
from eatss.polyhedral.dependences import REFUSALS, with_source_line
from eatss.polyhedral.fused_nests import with_fused_nests
from eatss.polyhedral.kernel import ScheduledScop
from eatss.polyhedral.recomputed_producers import keeps_loops
from eatss.polyhedral.reversed_sums import with_reversed_sums
from eatss.polyhedral.schedule import schedule_as
from eatss.polyhedral.scop import Scop
from eatss.polyhedral.split_sets import frees_parts
from eatss.program import Interface, Program
from eatss.program.expression import SizePairs
from eatss.session.analysis import (
    AnalysisOptions,
    SymbolicProgram,
    analyse_at_values,
    analyse_regions,
    for_any_size,
    needs_anew,
    with_fusion,
)
from eatss.session.source import Source
from eatss.session.steps import (
    CHUNKS_MARGIN,
    CLASS_SIZES,
    PAIRS_MARGIN,
    ROW_SIZES,
    Arrays,
    Chunks,
    Frees,
    Private,
    at_clocks,
    changeable,
    cheaper,
    chunkable,
    expect_code,
    expect_ppcg,
    generate_for,
    in_classes,
    is_far_from_roofline,
    pairable,
    privatisable,
    recomputable,
    regions_with,
    run_cost,
    run_time_s,
    select_for,
    with_few_pieces,
    with_few_sums,
)

if TYPE_CHECKING:
    from eatss.choose.expectation import ProgramExpectation
    from eatss.cuda.folder import OriginalFiles
    from eatss.lower.recipe import CodeRequest, Recipe

_MOST_TRIED = 6
"""Arrays that are tried alone: each takes as long as a selection."""

_MOST_SPLIT = 2
"""Regions whose statements are cut: more take too long together."""

_MOST_ACCESSES = 1200
"""Accesses of all ways together that regions are tried in, each with those of the program.

A way takes about 0.05 s of the processor an access, all a minute. No time is asked: what is
selected is the same on a machine that does other work.
"""

_NO_ROOM = "whether arrays are better computed anew is not tried to the end: the program is large"

_IN_ORDER = "sums keep their order: in one pass, and any order, they are expected to take less"

_SPELL_TYPE = (
    "spell the type by a macro: #ifndef DATA_TYPE, #define DATA_TYPE double, #endif; or give the "
    "macro that chooses it with -D"
)
_ANNOTATE_TYPE = "types are those of the annotations: write eatss.f16, eatss.f32 or eatss.f64 there"
_DEFAULT = Reading()
_SELECTION = SelectOptions()


_TURNED_MARGIN = 1.1
"""How many times cheaper nests with their loops in another order have to be expected."""

_LEAST_SAVED = 0.01
"""Of the time of a run, what other kernels have to promise at most to be looked at."""


_STEPS_MARGIN = 1.2
"""How many times faster what runs in steps of recurrences has to be expected: sweeps that wait for
each other leave memory idle. deriche of 4096 x 2160 doubles with its sums in sweeps was expected to
take 1.02 times as long on an H200, and took 1.20 times, with 0.92 of the energy."""

_PHASES_MARGIN = 1.25
"""How much more blocks that take rows through phases have to cost than one nest in their place: of
two complex products of a matrix and a vector it was expected to be 1.19 and was 0.94."""


class Session:
    """A C file and what is found out about it: every step is done once, when it is asked for.

    Loops written in Python are read as the C with the same loops, ``c_source``. All that is said of
    it is said of the Python.

    The isl objects of a session belong to one isl context: use it in one thread at a time.

    Args:
        source: what :meth:`Source.of` takes.
        reading: how it is read.
        cut: whose kernels are wanted: PPCG's, or those that eatss generates code for.
        code: whether code is generated: ``analysed`` then is of the kernels for any size, and
            the source is read in the type of ``reading``.
        rewrites: how regions are changed; ``None`` where ``reading`` says which arrays are computed
            anew, none where that leaves it to the prediction.
        like: a session of the same source that has read it.

    Raises:
        InputError: ``EATSS-C012``, how it is read belongs to the other target.
    """

    def __init__(
        self,
        source: SourceLike | Source,
        reading: Reading = _DEFAULT,
        *,
        cut: Cut = "eatss",
        code: bool = False,
        rewrites: Rewrites | None = None,
        like: Session | None = None,
    ) -> None:
        self.source = Source.of(source)
        self.python, self.c_source = self.source.python, self.source.c
        self.source.check(reading)
        check_target(
            "ppcg" if cut == "ppcg" else "cuda",
            ppcg={"ppcg_schedule": reading.ppcg_schedule is not None},
            cuda={"recompute": reading.recompute != "auto"},
        )
        self.reading = reading
        self.cut = cut
        self.code = code
        self._asked = rewrites
        self._like = like
        self._others: dict[Rewrites, Session] = {}
        self._known: Known = {} if like is None else like._known

    @property
    def file(self) -> str:
        """What the source is called in messages."""
        return self.source.file

    @cached_property
    def frontend(self) -> FrontendOptions:
        """What the front end is asked; for code the macros that name the type are defined.

        For halves always: they are no narrower floats, sums of them stay in their order.
        """
        options = self.reading.frontend()
        if self.reading.dtype is None or not (self.code or self.reading.type_name == "_Float16"):
            return options
        macros = type_macros(self.c_source, options)
        types = (f"{macro}={self.reading.type_name}" for macro in macros)
        return replace(options, defines=(*options.defines, *types))

    @cached_property
    def parsed(self) -> FrontendResult:
        """The regions, changed as ``rewrites`` says.

        Raises:
            InputError: with all findings, if the source is refused.
        """
        if self._apart is not self:
            return self._apart.parsed
        if self.rewrites.classes:
            return replace(self._written, scops=self._in_blocks[0])
        return replace(self._written, scops=regions_with(self._written.scops, self.rewrites))

    @cached_property
    def parsed_symbolic(self) -> SymbolicResult:
        """The same with the sizes that macros name as parameters."""
        if self._apart is not self:
            return self._apart.parsed_symbolic
        written = self._written_symbolic
        if self.rewrites.classes:
            return replace(written, scops=self._in_blocks[1], numeric=self.parsed)
        numeric = self._written.scops
        same = dict(zip(map(id, numeric), self.parsed.scops, strict=True))
        scops = regions_with(written.scops, self.rewrites)
        scops = tuple(
            same.get(id(before), after) for before, after in zip(written.scops, scops, strict=True)
        )
        return replace(written, scops=scops, numeric=self.parsed)

    @cached_property
    def _in_blocks(self) -> tuple[tuple[Scop, ...], tuple[Scop, ...]]:
        """The regions over numbers and for any size, some in blocks of steps."""
        before = self._with(replace(self.rewrites, classes=()))
        symbolic = before.parsed_symbolic
        sizes = {one.region: one.size for one in self.rewrites.classes}
        pairs = [
            in_classes(*pair, sizes[pair[0].index], symbolic.values)
            if pair[0].index in sizes
            else pair
            for pair in zip(before.parsed.scops, symbolic.scops, strict=True)
        ]
        return tuple(one for one, _ in pairs), tuple(other for _, other in pairs)

    @cached_property
    def rewrites(self) -> Rewrites:
        """How the regions are changed."""
        if self._asked is not None:
            return self._asked
        return Rewrites(recomputed=self.recomputable if self.reading.recompute == "all" else ())

    @property
    def _apart(self) -> Session:
        """The session with each nest by itself: which are one is of schedules alone."""
        return self._with(replace(self.rewrites, fused="none"))

    @cached_property
    def recomputable(self) -> Arrays:
        """The arrays that code of eatss may compute anew where they are read."""
        return recomputable(self._written.scops, lambda: self._written_symbolic.scops)

    @cached_property
    def privatisable(self) -> Private:
        """The regions whose arrays code of eatss may give elements for each iteration."""
        return privatisable(self._written.scops, lambda: self._written_symbolic.scops)

    @cached_property
    def splittable(self) -> Numbers:
        """The regions whose statements code of eatss may cut where they meet what they read."""
        return self._changed_by(with_few_pieces)[:_MOST_SPLIT]

    @cached_property
    def factorable(self) -> Numbers:
        """The regions of which code of eatss may take factors out of sums."""
        return self._changed_by(with_few_sums)

    @cached_property
    def reversible(self) -> Numbers:
        """The regions of which code of eatss may add up sums from their ends."""
        return self._changed_by(with_reversed_sums)

    @cached_property
    def in_classes(self) -> Numbers:
        """The regions whose loops code of eatss may have in blocks of steps."""
        symbolic = self.parsed_symbolic
        general = dict(zip(map(id, self.parsed.scops), symbolic.scops, strict=True))

        def change(scop: Scop) -> Scop:
            own = general.get(id(scop), scop)
            return in_classes(scop, own, CLASS_SIZES[0], symbolic.values)[0]

        return self._changed_by(change)

    def before_classes(self, decided: Selection) -> Session:
        """Return the session of the regions, changed as decided, whose loops may be in blocks."""
        names = ("recomputed", "factored", "reverse", "private")
        return self._with(Rewrites(**{one: decided.rewriting()[one] for one in names}))

    def _changed_by(self, change: Callable[[Scop], Scop]) -> Numbers:
        return changeable(self.parsed.scops, lambda: self.parsed_symbolic.scops, change)

    def chunkable(self, profile: GpuProfile, *, strict_fp: bool) -> Chunks:
        """Return the recurrences that code of eatss may cut into chunks, as long as suits a card.

        With ``strict_fp`` those that come to the same value in any order.
        """
        return chunkable(self._written.scops, profile, strict_fp=strict_fp)

    @cached_property
    def pairable(self) -> Chunks:
        """The sums that code of eatss may add up in the pass of others that they need."""
        return pairable(self._written.scops)

    def has(self, chunks: Chunks) -> bool:
        """Tell whether the regions have all of some recurrences."""
        with suppress(InputError):
            _ = self._with(replace(self.rewrites, chunks=chunks, fused="none"))
            return True
        return False

    def of(self, decided: Selection | Recipe) -> Session:
        """Return the session of the program with its regions changed as was decided.

        Raises:
            InputError: ``EATSS-P026``, the program cannot.
        """
        return self._with(Rewrites(**decided.rewriting()))

    @property
    def plain(self) -> Session:
        """The session of the program as it is written, whatever is expected of another."""
        return self._with(Rewrites(), chooses=(self._like or self)._asked is None)

    @cached_property
    def without_values(self) -> Session:
        """The session of the source as PPCG gets it: parameters have no values there.

        Raises:
            InputError: ``EATSS-P020``, without values the source is refused.
        """
        if self.cut != "ppcg" or not self.reading.parameters:
            return self
        session = self._like_this(replace(self.reading, parameters=None))
        _ = self.parsed  # what is wrong with the values as well comes first
        try:
            _ = session.parsed
        except InputError as error:
            unknown = Diagnostic(
                code="EATSS-P020",
                message="PPCG gets no values of parameters, and without them the source is refused",
                span=self.parsed.scops[0].span,
                hint="spell these sizes as macros and give -D, to PPCG, too",
            )
            raise InputError(unknown, *error.diagnostics) from None
        return session

    def _like_this(self, reading: Reading, **changed: Any) -> Session:
        return Session(self.source, reading, cut=self.cut, code=self.code, **changed)

    def _with(self, rewrites: Rewrites, *, chooses: bool = False) -> Session:
        """Return the session with regions changed so: this one if it is, unless it chooses."""
        if rewrites == self.rewrites and not chooses:
            return self
        if self._like is not None:  # what one session of a source made is there for all
            return self._like._with(rewrites, chooses=chooses)
        if rewrites not in self._others:
            other = self._like_this(self.reading, rewrites=rewrites, like=self)
            _ = other.parsed
            self._others[rewrites] = other
        return self._others[rewrites]

    @cached_property
    def analysed(self) -> AnalysedProgram:
        """Domains, dependences, schedule, kernels and facts of the source.

        Code of eatss is for any size where it can be: kernels are those that it has then.

        Raises:
            InputError: the source is refused.
        """
        return self._numeric if self.cut == "ppcg" else self.symbolic.program

    @cached_property
    def symbolic(self) -> SymbolicProgram:
        """The kernels for the sizes of the source and for any size.

        Raises:
            InputError: the source is refused, or ``EATSS-K010``: its type cannot be changed. What
                only the symbolic reading cannot do is a warning, and the region keeps its numbers.
        """
        parsed, options = self.parsed_symbolic, self._options
        if (fusion := self.rewrites.fused) != "none":
            apart = self._apart
            fused = with_fusion(apart.symbolic, apart.parsed, options, apart.fuse(fusion))
            return apart.symbolic if fused is None else fused
        found = for_any_size(parsed, self._numeric)
        for temporaries in (True, False):
            if found is None:  # for its numbers alone, some region is cut otherwise
                plain = replace(options, tiles_sums=False, temporaries=temporaries)
                program = analyse_regions(self.file, self.parsed, plain, {})
                found = for_any_size(parsed, program)
        assert found is not None
        if self.code and self.reading.dtype is not None:
            hint = _SPELL_TYPE if self.python is None else _ANNOTATE_TYPE
            _check_type(found, self.reading, hint)
        return found

    def fuse(self, fusion: Fusion) -> Callable[[ScheduledScop], ScheduledScop]:
        """Return what makes nests of a region of this session share bands, once for each."""
        return lambda one: with_fused_nests(one, fusion)

    def try_in_bounds(self) -> None:
        """Analyse the source in a process of its own.

        What is too deep for libclang ends it, and not all of isl's work is counted.

        Raises:
            InputError: something is wrong with it, or ``EATSS-P001``, it took too long, too much.
        """
        in_bounds(lambda: bool(self.warnings))()

    @cached_property
    def warnings(self) -> Diagnostics:
        """What is to be said of the source and its kernels."""
        return (self.symbolic if self.code else self.analysed).warnings + self.notes

    @cached_property
    def notes(self) -> Diagnostics:
        """What is to be said of loops that code of eatss runs slowly."""
        loops = (one for region in self.slow_loops for one in region)
        return tuple(with_source_line(one.note) for one in loops)

    @cached_property
    def slow_loops(self) -> tuple[tuple[SlowLoop, ...], ...]:
        """For each region the loops that code of eatss runs slowly."""
        if self.cut != "eatss":
            return ()
        from eatss.session.notes import slow_loops  # noqa: PLC0415 - PPCG's target needs none

        return slow_loops(self.analysed)

    def has_kernels(self, selection: Selection) -> bool:
        """Return whether the kernels of the program are those of a selection."""
        return [one.statements for one in self.analysed.facts] == [
            one.statements for one in selection.kernels
        ]

    def select(
        self,
        gpu: CardLike,
        options: SelectOptions = _SELECTION,
        *,
        strict_fp: bool = False,
        fuse_rows: bool = True,
        tile_time: bool = True,
        progress: Progress = no_progress,
    ) -> Selection:
        """Select tile sizes for a card: once analysed, for many.

        Args:
            gpu: name of a card, ``auto``, path of a profile, or a profile.
            options: what is best.
            strict_fp: whether generated code keeps the order of all operations.
            fuse_rows: whether kernels of generated code that share rows, or a loop on the host,
                may become one.
            tile_time: whether several steps of a loop over time, or of a factorisation, may.
            progress: hears which kernel it is at.

        Raises:
            InputError: the profile or an option is wrong.
            NoSolutionError: no tile sizes satisfy the limits of the card.
        """
        profile = load_profile(gpu)
        asked = options.for_card(profile)
        how = {"strict_fp": strict_fp, "fuse_rows": fuse_rows, "tile_time": tile_time}
        if not self._chooses(asked):
            return self._selected(profile, asked, **how, progress=progress)
        chosen = replace(asked, gap=None, timeout_s=None)
        best = _RewriteSearch(self, profile, chosen, how, progress).best()
        if chosen == asked:
            return best
        anew()  # only what is taken is bounded
        found = self.of(best)._selected(profile, asked, **how, progress=progress)
        pairs = zip(found.kernels, best.kernels, strict=True)
        return replace(found, kernels=tuple(replace(one, note=own.note) for one, own in pairs))

    def is_for_any_size_as(self, other: Session) -> bool:
        """Tell whether code of all regions is for any size that is so in another session."""
        pairs = zip(other.symbolic.regions, self.symbolic.regions, strict=True)
        return all(one.generic <= own.generic for one, own in pairs)

    def needs_anew(self, arrays: Arrays) -> bool:
        """Tell whether a card is only full because values of some arrays are computed anew."""
        scops = [one.scheduled for one in self.analysed.scops]
        regions = [{own.array for own in arrays if own.region == one.scop.index} for one in scops]
        return any(map(needs_anew, scops, regions))

    def predict(
        self,
        gpu: CardLike,
        wanted: CodeRequest,
        *,
        max_shared_memory: int | None = None,
        unroll_gpu_tile: bool = False,
        over_clock: bool = False,
    ) -> ProgramExpectation:
        """Predict time and energy at sizes of the user's: of PPCG's code, or of that of eatss.

        Args:
            gpu: as for :meth:`select`.
            wanted: tile sizes, blocks and, for code of eatss, placements.
            max_shared_memory: bytes of shared memory that PPCG may use for a block.
            unroll_gpu_tile: whether PPCG unrolls the points of a thread.
            over_clock: whether to predict these sizes at lower clocks, too.

        Raises:
            InputError: the profile, sizes or placements are wrong.
            NoSolutionError: for code of eatss, no sizes satisfy the limits of the card.
        """
        profile = load_profile(gpu)
        if self.cut == "eatss":
            from eatss.lower.requests import checked_options  # noqa: PLC0415 - PPCG needs none

            chosen = SelectOptions(target="cuda")
            rows, time = wanted.joins.values()
            selection = self.select(profile, chosen, fuse_rows=rows, tile_time=time)
            program = self.of(selection).analysed
            own = checked_options(program.facts, [scop.scop for scop in program.scops], wanted)
            return at_clocks(
                lambda card: expect_code(program, card, own, selection), profile, over_clock
            )
        limit = PPCG_SHARED_BYTES if max_shared_memory is None else max_shared_memory
        if limit < 0:
            raise wrong("max_shared_memory", limit, "a number of bytes, or 0")
        options = PpcgOptions(max_shared_memory=limit, unroll_gpu_tile=unroll_gpu_tile)
        return at_clocks(
            lambda card: expect_ppcg(self.analysed, card, wanted, options), profile, over_clock
        )

    def recipe(
        self,
        selection: Selection,
        profile: GpuProfile,
        wanted: CodeRequest,
        shared_limit_bytes: int | None = None,
    ) -> Recipe:
        """Return what a selection and the user decide about the code.

        Args:
            selection: sizes.
            profile: the card.
            wanted: wishes of the user.
            shared_limit_bytes: bound on the shared memory of a block; ``None`` for the card's.

        Raises:
            InputError: ``EATSS-K0xx``, they do not fit the program.
        """
        from eatss.lower.recipe import recipe_of  # noqa: PLC0415 - select needs none
        from eatss.lower.requests import check_decided, checked_options  # noqa: PLC0415

        if (changed := self.of(selection)) is not self:
            return changed.recipe(selection, profile, wanted, shared_limit_bytes)
        program = self.analysed
        check_decided(selection, program.facts, profile, program.dtype)
        options = checked_options(program.facts, self.scops, wanted, shared_limit_bytes)
        if selection.options.model in PUBLISHED and not wanted.strict_fp:
            selection = self._with_cuts(selection, profile)
        return recipe_of(selection, options)

    def expected(
        self, selection: Selection, recipe: Recipe, profile: GpuProfile
    ) -> Selection | ProgramExpectation:
        """Return what is told of the time and energy of code: a selection, where it is carried out.

        Where a recipe has sizes or places of the user, or what is selected predicts nothing, it is
        what is expected of those.
        """
        options = recipe.options
        if selection.options.model == "prediction" and not options.changes_layout:
            return selection
        kernels = tuple(
            replace(kernel, **decided.chosen())
            for kernel, decided in zip(selection.kernels, recipe.kernels, strict=True)
        )
        program = self.of(selection).analysed
        return expect_code(program, profile, options, replace(selection, kernels=kernels))

    def generate(
        self, recipe: Recipe, profile: GpuProfile, selection: Selection | None = None
    ) -> Program:
        """Generate CUDA: what a recipe says; kernels have the notes of a selection, too.

        Raises:
            InputError: ``EATSS-K011``, the recipe is for another program; ``EATSS-K0xx``, sizes or
                placements that cannot be.
        """
        from eatss.lower.requests import check_decided  # noqa: PLC0415 - select needs none

        if (changed := self.of(recipe)) is not self:
            return changed.generate(recipe, profile, selection)
        check_decided(recipe, self.analysed.facts, profile, self.analysed.dtype)
        program = generate_for(
            self.symbolic,
            recipe,
            profile,
            name=self.name,
            original=self.originals.original,
            slow=self.slow_loops,
        )
        return program if selection is None else _with_notes(program, selection)

    def write(self, program: Program, folder: StrPath, *, force: bool = False) -> Names:
        """Write the folder of a program; return its files, as ``write_program``."""
        from eatss.cuda.folder import write_program  # noqa: PLC0415 - select needs none

        return write_program(program, self.originals, folder_named(folder), force=force)

    def reading_at(self, sizes: SizePairs) -> Reading:
        """Return how the source is read at some sizes: macros defined, parameters given."""
        macros = dict(self.parsed_symbolic.values)
        given = {name: value for name, value in sizes if name not in macros}
        defines = [
            one for one in self.reading.frontend().defines if one.split("=")[0] not in macros
        ]
        defines += [f"{name}={value}" for name, value in sizes if name in macros]
        return replace(
            self.reading,
            defines=tuple(defines),
            parameters={**given, **(self.reading.parameters or {})} or None,
        )

    @cached_property
    def scops(self) -> tuple[Scop, ...]:
        """The regions that code is generated for."""
        return tuple(region.scheduled.scop for region in self.symbolic.regions)

    @cached_property
    def interface(self) -> Interface:
        """What callers of the program pass: found by reading alone, nothing is scheduled.

        Raises:
            InputError: the source is refused.
        """
        from eatss.cuda.host import interface_of  # noqa: PLC0415 - select needs none

        return interface_of(self.parsed_symbolic.scops, self.parsed_symbolic.values)

    @cached_property
    def name(self) -> str:
        """What the program is called."""
        from eatss.cuda.folder import program_name  # noqa: PLC0415 - select needs none

        return program_name(self.c_source, self.parsed.scops[0].function)

    @cached_property
    def originals(self) -> OriginalFiles:
        """The files that the source was read from."""
        from eatss.cuda.folder import original_files  # noqa: PLC0415 - select needs none

        return original_files(
            self.c_source,
            self.name,
            defines=self.frontend.defines,
            include_dirs=self.frontend.include_dirs,
        )

    def _selected(
        self,
        profile: GpuProfile,
        options: ModelOptions,
        *,
        strict_fp: bool,
        fuse_rows: bool,
        tile_time: bool,
        below: int = NEVER,
        progress: Progress = no_progress,
    ) -> Selection:
        found = select_for(
            self.analysed,
            profile,
            options,
            strict_fp=strict_fp,
            fuse_rows=fuse_rows,
            tile_time=tile_time,
            code=self._code,
            below=below,
            known=self._known,
            progress=progress,
        )
        warnings = found.warnings + self.notes
        return replace(found, warnings=warnings, **self.rewrites.rewriting())

    def _chooses(self, options: ModelOptions) -> bool:
        """Tell whether the prediction says which arrays are computed anew, or what is split."""
        predicts = TARGETS[options.target].own and options.model == "prediction"
        return self._asked is None and predicts

    @cached_property
    def _written(self) -> FrontendResult:
        """The regions of the source as it has them."""
        if self._like is not None:
            return self._like._written
        if self.python is not None:
            return self.python.read(self.frontend)
        return parse_file(self.c_source, self.frontend)

    @cached_property
    def _written_symbolic(self) -> SymbolicResult:
        """The same with the sizes that macros name as parameters; Python has none."""
        if self._like is not None:
            return self._like._written_symbolic
        if self.python is not None:
            return SymbolicResult(scops=self._written.scops, values=(), numeric=self._written)
        return parse_symbolic(self.c_source, self.frontend, self._written)

    @cached_property
    def _options(self) -> AnalysisOptions:
        schedule = self.reading.ppcg_schedule
        if schedule is not None:
            from eatss.polyhedral.ppcg_scheduling import read_ppcg_schedule  # noqa: PLC0415

            schedule = read_ppcg_schedule(schedule)
        return AnalysisOptions(
            cut=self.cut,
            dtype=self.reading.type_name,
            ppcg_schedule=schedule,
        )

    @cached_property
    def _numeric(self) -> AnalysedProgram:
        """The kernels for the sizes of the source."""
        options = self._options
        if self.without_values is self or options.ppcg_schedule is not None:
            return analyse_regions(self.file, self.parsed, options, self._classes)
        return analyse_at_values(self.parsed, options, self.without_values.analysed)

    def _code(self) -> list[ScheduledScop]:
        """Return the schedules of the regions that code is made from."""
        return [region.scheduled for region in self.symbolic.regions]

    def has_short_classes(self, size: int) -> bool:
        """Tell whether classes of tiles that are one launch would be with so many steps."""
        from eatss.lower.class_blocks import class_runs_for  # noqa: PLC0415 - PPCG needs none
        from eatss.plan.class_blocks import ClassRun  # noqa: PLC0415

        found = class_runs_for(self.analysed, self._code)
        parts = (part for one in found if isinstance(one, ClassRun) for part in one.parts)
        return all(part.is_short(size) for part in parts)

    @property
    def _classes(self) -> dict[int, ScheduledScop]:
        """The regions in classes, each scheduled as for any size, by number."""
        found = dict[int, ScheduledScop]()
        if not self.rewrites.classes:
            return found
        for scop, general in zip(self.parsed.scops, self.parsed_symbolic.scops, strict=True):
            if scop.class_size and scop is not general:
                with suppress(*REFUSALS):
                    found[scop.index] = schedule_as(general, scop, self.parsed_symbolic.values)
        return found

    def _with_cuts(self, selection: Selection, profile: GpuProfile) -> Selection:
        """Return sizes of a published model with what it has no variables for, as predicted.

        That is how sums are spread.
        """
        predicted = select_for(self.analysed, profile, ModelOptions(target="cuda"), fuse_rows=False)
        kernels = tuple(
            replace(
                kernel,
                spread=cut.spread,
                sum_loops=cut.sum_loops,
                sum_kinds=cut.sum_kinds,
                shared_sum=None if cut.shared_sum and cut.shared_sum.streamed else cut.shared_sum,
            )
            for kernel, cut in zip(selection.kernels, predicted.kernels, strict=True)
        )
        return replace(selection, kernels=kernels)


class _RewriteSearch:
    """Ways to change the regions of a session: what is expected of them for a card.

    As many are tried as there is room for.
    """

    def __init__(
        self,
        session: Session,
        profile: GpuProfile,
        options: ModelOptions,
        how: dict[str, bool],
        progress: Progress,
    ) -> None:
        self.session, self.profile, self.options = session, profile, options
        self.how, self.progress = how, progress
        accesses = sum(len(one.accesses) for own in session.parsed.scops for one in own.statements)
        self._left = iter(range(_MOST_ACCESSES // max(accesses, 1)))

    def _has_room(self) -> bool:
        return next(self._left, None) is not None

    def _selected(
        self, changed: Session, below: int = NEVER, progress: Progress = no_progress, **how: bool
    ) -> Selection:
        own = self.how | how
        return changed._selected(self.profile, self.options, **own, below=below, progress=progress)

    def best(self) -> Selection:
        """Return the selection that costs least."""
        session, strict_fp = self.session, self.how["strict_fp"]
        best = self._with_arrays_anew()
        chunks = session.chunkable(self.profile, strict_fp=strict_fp)
        anew()
        held = is_far_from_roofline(best) and any(
            kernel.host_loops or not kernel.parallel_loops
            for region in session.of(best).analysed.scops
            for kernel in region.scheduled.kernels
        )
        frees_thread = partial(frees_loops, one_thread=True)
        cuts: tuple[tuple[str, str, tuple[Any, ...], float, Frees], ...] = (
            (
                "factors taken out of sums",
                "factored",
                () if strict_fp else session.factorable,
                0.0,
                lambda *_: True,
            ),
            (
                "sums from what is computed first",
                "reverse",
                session.reversible if held and not strict_fp else (),
                0.0,
                frees_thread,
            ),
            (
                "arrays with elements for each iteration",
                "private",
                session.privatisable if held else (),
                0.0,
                frees_thread,
            ),
            (
                "statements cut where they meet what they read",
                "split",
                session.splittable,
                0.0,
                frees_parts,
            ),
            ("recurrences cut into chunks", "chunks", chunks, CHUNKS_MARGIN, frees_parts),
            ("sums of one pass", "chunks", session.pairable, PAIRS_MARGIN, lambda *_: True),
        )
        for what, name, wanted, margin, frees in cuts:
            if not wanted or run_cost(best) == NEVER or not self._has_room():
                continue
            self.progress(f"with {what}")
            with suppress(*REFUSALS):
                whole, keeps_order = session.of(best), strict_fp and wanted != session.pairable
                change = {name: distinct(getattr(best, name) + wanted)}
                cut = session._with(Rewrites(**best.rewriting() | change))
                pairs = zip(whole.analysed.scops, cut.analysed.scops, strict=True)
                if any(frees(one.scheduled, its.scheduled) for one, its in pairs) and (
                    cut.is_for_any_size_as(whole)
                ):
                    same = keeps_order == strict_fp
                    below = run_cost(best) if same else NEVER
                    found = self._selected(cut, below, strict_fp=keeps_order)
                    if margin * run_time_s(found) <= run_time_s(best):
                        costs = time_text(run_time_s(found))
                        best = (
                            cheaper(best, found)
                            if same
                            else _with_note(best, f"{_IN_ORDER}, {costs} a run")
                        )
            anew()
        if self.how["fuse_rows"] and run_cost(best) != NEVER:
            best = self._with_fused_nests(best)
        return self._in_classes(best)

    def _with_arrays_anew(self) -> Selection:
        """Return the best selection, with arrays computed anew where that costs less.

        All of them first: what that costs may be less than a few kernels do without. Then each by
        itself is left out or taken, but for those without which a card would not be full.
        """
        session = self.session

        def found(wanted: Arrays, below: int) -> Selection | None:
            self.progress(
                f"with {', '.join(one.array for one in wanted) or 'nothing'} computed anew"
            )
            with suppress(*REFUSALS):
                other = session._with(Rewrites(recomputed=wanted))
                pairs = zip(session.analysed.scops, other.analysed.scops, strict=True)
                if all(keeps_loops(one.scheduled, its.scheduled) for one, its in pairs):
                    return self._selected(other, below)
            return None

        arrays = session.recomputable if session.reading.recompute == "auto" else ()
        room = not arrays or self._has_room()
        best = found(arrays, NEVER) if arrays and room else None
        anew()
        below = NEVER if best is None else run_cost(best)
        with suppress(DearerError):
            plain = self._selected(session, below, self.progress)
            best = plain if best is None else cheaper(plain, best)
        assert best is not None
        if not room:
            return _with_note(best, _NO_ROOM)
        tried = [(), arrays]
        for changed in arrays if len(arrays) <= _MOST_TRIED else ():
            wanted = tuple(one for one in arrays if (one in best.recomputed) != (one == changed))
            left_out = tuple(one for one in best.recomputed if one not in wanted)
            of_best = session.of(best)
            if wanted in tried or run_cost(best) == NEVER or of_best.needs_anew(left_out):
                continue
            if not self._has_room():
                return _with_note(best, _NO_ROOM)
            tried.append(wanted)
            anew()
            other = found(wanted, run_cost(best))
            best = best if other is None else cheaper(best, other)
        return best

    def _with_fused_nests(self, best: Selection) -> Selection:
        """Return a selection with nests as one where that is expected to cost less."""
        whole, strict_fp = self.session.of(best), self.how["strict_fp"]
        plain = [one.scheduled for one in whole.analysed.scops]
        first, cuts = best, [_kernels(plain)]
        told = len(plain) == 1  # statements of several regions have the same names
        for fusion in (one for one in FUSIONS if not (strict_fp and one == "sums")):
            if fusion == "source" and not is_far_from_roofline(best):
                continue
            if not self._has_room():
                break
            with suppress(*REFUSALS):
                regions = [*map(whole.fuse(fusion), plain)]
                cut, turned = _kernels(regions), any(map(_turned, plain, regions))
                if cut in cuts and not turned:
                    continue
                steps = fusion == "source" or turned  # as many kernels, which then share rows
                cuts.append(cut)
                least_s = _LEAST_SAVED * sum(map(_cost_s, best.kernels))
                if not steps and _most_saved(best, cut) < least_s:
                    continue
                sure = steps or _most_saved(best, cut, phases=False) >= least_s
                margin = _TURNED_MARGIN if turned else 1.0 if sure else _PHASES_MARGIN
                self.progress("with nests as one that use what others make")
                rewrites = Rewrites(**best.rewriting() | {"fused": fusion})
                found = self._selected(self.session._with(rewrites))
                slow_s = run_time_s(found) * (_STEPS_MARGIN if fusion == "steps" else 0.0)
                fine = margin == 1.0 or margin * run_cost(found) <= run_cost(best)
                if fine and slow_s <= run_time_s(best):
                    best = cheaper(best, found)
                    if best is first and told:
                        first = best = _noted(best, found)
            anew()
        return best if best is first or not told else _noted_as_one(best, first)

    def _in_classes(self, best: Selection) -> Selection:
        """Return the best selection, loops in blocks of steps or as they are in ``best``."""
        far = self.how["tile_time"] and run_cost(best) != NEVER and is_far_from_roofline(best)
        plain = self.session.before_classes(best)
        if far and not plain.in_classes and not self.how["strict_fp"]:
            plain = plain._with(replace(plain.rewrites, reverse=self.session.reversible))
        if not (far and plain.in_classes):
            return best
        whole = self.session.of(best)
        _ = whole.symbolic
        anew()

        def in_blocks(size: int) -> Session:
            classes = tuple(ClassSize(region=at, size=size) for at in plain.in_classes)
            return self.session._with(replace(plain.rewrites, classes=classes))

        sizes = CLASS_SIZES
        with suppress(*REFUSALS):
            if any(map(_adds_in_steps, in_blocks(sizes[0]).analysed.scops)):
                sizes = ROW_SIZES
        tried: dict[int, Session] = {}
        for size in sizes:
            beside = {one.size for one in best.classes} & {size // 2, size * 2}
            if size in CLASS_SIZES[2:] and not beside:
                continue
            if not all(own.has_short_classes(size) for one, own in tried.items() if one < size):
                continue
            if not self._has_room():
                break
            self.progress(f"with loops in blocks of {size} steps")
            with suppress(*REFUSALS):
                cut = in_blocks(size)
                if cut.is_for_any_size_as(whole):
                    tried[size] = cut
                    best = cheaper(best, self._selected(cut, run_cost(best)))
            anew()
        return best


def _adds_in_steps(region: AnalysedScop) -> bool:
    """Tell whether rows of a region that is in blocks of steps are added up in one step."""
    kernels = region.scheduled.kernels
    return any(one.reductions and len(one.host_loops) > 1 for one in kernels)


def _most_saved(
    selection: Selection, regions: Sequence[Sequence[Names]], *, phases: bool = True
) -> float:
    """Return how many seconds at most a run takes less where kernels have other statements.

    Kernels that are one take as long as the longest of them, at least. Of one that is several, all
    may be saved, and of phases of blocks, of which only all together have a time.
    """
    cut = [{*names} for region in regions for names in region]
    first = {
        name: k
        for k in selection.kernels
        if phases and k.row_block is not None
        for name in k.row_block.kernels
    }
    saved = 0.0
    for one in cut:
        inside = [k for k in selection.kernels if {*k.statements} < one]
        least = max((_cost_s(k) for k in inside if k.name not in first), default=0.0)
        every = {first.get(k.name, k).name: _cost_s(first.get(k.name, k)) for k in inside}
        saved += sum(every.values()) - least
    parted = (k for k in selection.kernels if any(one < {*k.statements} for one in cut))
    return saved + sum(map(_cost_s, parted))


def _cost_s(kernel: KernelSelection) -> float:
    return math.inf if kernel.predicted is None else kernel.predicted.time_s


def _noted(apart: Selection, found: Selection) -> Selection:
    """Return a selection with a note on kernels that would be one in another, which costs more."""
    notes: dict[str, str] = {}
    for one in found.kernels:
        own = [k for k in apart.kernels if {*k.statements} < {*one.statements}]
        if len(own) > 1:
            others = ", ".join(name for kernel in own[1:] for name in kernel.statements)
            notes[own[0].name] = f"apart from {others}: one kernel of all is expected to cost more"
    return _with_further_notes(apart, notes)


def _noted_as_one(found: Selection, apart: Selection) -> Selection:
    """Return a selection with a note on kernels that are several where nests stay apart.

    Sums that threads or blocks share are launches of their own all the same.
    """
    notes: dict[str, str] = {}
    for one in found.kernels:
        inside = [k.statements for k in apart.kernels if {*k.statements} < {*one.statements}]
        own = [", ".join(names) for names in sorted(inside)]
        if len(own) > 1 and one.spread is None and one.shared_sum is None:
            notes[one.name] = f"one kernel of {len(own)}: {'; '.join(own)}"
    return _with_further_notes(found, notes)


def _with_further_notes(selection: Selection, notes: Mapping[str, str]) -> Selection:
    """Return a selection with notes on kernels behind those that they have."""
    kernels = tuple(
        replace(one, note="; ".join(filter(None, (one.note, notes[one.name]))))
        if one.name in notes and notes[one.name] not in (one.note or "")
        else one
        for one in selection.kernels
    )
    return replace(selection, kernels=kernels)


def _kernels(regions: Iterable[ScheduledScop]) -> list[list[Names]]:
    """Return the statements of each kernel, region by region."""
    return [[one.statements for one in region.kernels] for region in regions]


def _turned(before: ScheduledScop, after: ScheduledScop) -> bool:
    """Tell whether a statement has its loops in another order."""
    pairs = [
        [{name: their_names(one.loops) for name in one.statements} for one in region.kernels]
        for region in (before, after)
    ]
    known, own = (dict(chain(*(one.items() for one in kernels))) for kernels in pairs)
    both = ((own.get(name, loops), loops) for name, loops in known.items())
    return any(one != other and {*one} == {*other} for one, other in both)


def _with_notes(program: Program, selection: Selection) -> Program:
    """Return a program whose kernels have the notes of those that sizes were selected for."""
    kernels = []
    for kernel in program.kernels:
        notes = []
        for one in selection.kernels:
            if one.note is not None and {*kernel.statements} <= {*one.statements}:
                further = one.note.partition(f"{NOT_TILED}; ")[2]
                notes += [one.note] if one.tile_sizes else [further] if further else []
        kernels.append(replace(kernel, notes=(*kernel.notes, *notes)) if notes else kernel)
    return replace(program, kernels=tuple(kernels))


def _with_note(selection: Selection, note: str) -> Selection:
    """Return a selection with something to be said of its first kernel."""
    return _with_further_notes(selection, {selection.kernels[0].name: note})


def _check_type(program: SymbolicProgram, reading: Reading, hint: str) -> None:
    """Refuse arrays and numbers that are not of the type asked for."""
    floating = [
        (array, region.scheduled.scop)
        for region in program.regions
        for array in region.scheduled.scop.arrays
        if array.element_type.is_floating
    ]
    for array, scop in floating:
        if array.element_type.value != reading.type_name:
            raise InputError(
                Diagnostic(
                    code="EATSS-K010",
                    message=f"'{array.name}' is of type {array.element_type.value}, which --dtype "
                    f"{reading.dtype} cannot change",
                    span=scop.span,
                    hint=hint,
                )
            )
    if not floating:
        raise input_error(
            "EATSS-K010",
            f"nothing in the source is of a floating-point type that --dtype {reading.dtype} "
            "could change",
            hint="leave --dtype out",
        )
