"""Variants of code that eatss generates: one session a program, a fork a variant.

Variants of what PPCG generates: the paper's own experiment, tile sizes given by position.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from eatss.base.diagnostics import Diagnostic, EatssError, InputError, input_error
from eatss.base.forked import bounded
from eatss.base.frozen import Numbers, frozen
from eatss.base.text import Texts, equations
from eatss.building import ppcg
from eatss.cards import GpuProfile
from eatss.choose.cuda import expected_of, ranked_cuda
from eatss.choose.options import SelectOptions
from eatss.choose.selection import KernelSelection, Selection
from eatss.lower.recipe import CodeRequest
from eatss.lower.requests import checked_options
from eatss.lower.variants import kernel_variants_for, with_own_sizes
from eatss.measurement.options import TileChoice
from eatss.session.session import Session
from eatss.tune.derived import KernelSpaces, kernel_spaces
from eatss.tune.generation import own_folder, predicted_metrics, predictions
from eatss.tune.jobs import BuiltVariant, MakerJob, VariantJob
from eatss.tune.layouts import selection_at
from eatss.tune.points import SELECTING, Point
from eatss.tune.rows import Metrics

if TYPE_CHECKING:
    from eatss.choose.expectation import ProgramExpectation

DEFAULT_TILE = 32
"""Sizes of every loop where nobody chooses any, as PPCG's."""


@frozen
class Program:
    """A source, analysed: what is selected of it, and what can be decided of its kernels."""

    session: Session
    base: Selection
    spaces: KernelSpaces


class CudaMaker:
    """Generates variants of one program."""

    def __init__(self, job: MakerJob) -> None:
        self._job = job
        self._profile = job.profile
        self._choosing = SelectOptions(target="cuda", objective=job.objective)
        self._bases: dict[SelectOptions, Selection] = {}

    def warm(self) -> None:
        """Analyse the program, select its sizes, and load what every variant's fork would load."""
        import_module("eatss.cuda.generate")
        _ = self.program.session.symbolic

    def make(self, wanted: VariantJob) -> BuiltVariant:
        """Generate a variant into a folder of its own, in a fork.

        Raises:
            EatssError: it cannot be made.
        """
        self._base(wanted)  # once, for all forks
        return bounded(lambda: self._made(wanted))

    def _made(self, wanted: VariantJob) -> BuiltVariant:
        selection, session = self.chosen(wanted), self.program.session
        recipe = session.recipe(selection, self._profile, CodeRequest())
        folder = own_folder(self._job.folder, wanted.variant)
        session.write(session.generate(recipe, self._profile), folder)
        row = replace(
            wanted.row(),
            metrics=predicted_metrics(self._expected(selection)),
            decided="; ".join(map(_kernel_text, selection.kernels)),
        )
        return BuiltVariant(row=row, folder=str(folder))

    def _expected(self, selection: Selection) -> Sequence[KernelSelection]:
        """Return the kernels of a selection with what the model expects of them."""
        if any(kernel.joined for kernel in selection.kernels):
            return selection.kernels
        spaces = [self.program.spaces[kernel.name] for kernel in selection.kernels]
        return [
            replace(
                kernel,
                predicted=expected_of(own.facts, own.variants, self._profile, kernel)[0],
            )
            for kernel, own in zip(selection.kernels, spaces, strict=True)
        ]

    @cached_property
    def program(self) -> Program:
        """The program, analysed."""
        session = Session(self._job.source, self._job.reading, code=True)
        base = session.select(self._profile, self._choosing, fuse_rows=False, tile_time=False)
        session = session.of(base)
        variants = kernel_variants_for(session.analysed, self._profile)
        spaces = kernel_spaces(session.analysed.facts, variants, self._profile)
        return Program(session=session, base=base, spaces=spaces)

    def _base(self, wanted: VariantJob) -> Selection:
        """Return the selection that a variant changes."""
        choosing = {name: own for name, own in wanted.decisions if name in SELECTING}
        if wanted.role == "paper":
            choosing["model"] = "paper"
        if not choosing:
            return self.program.base
        options = SelectOptions(target="cuda", **choosing)  # type: ignore[arg-type]
        if options not in self._bases:
            own = self.program.session
            sized = Session(own.c_source, own.reading, code=True, rewrites=own.rewrites)
            self._bases[options] = sized.select(
                self._profile, options, fuse_rows=False, tile_time=False
            )
        return self._bases[options]

    def chosen(self, wanted: VariantJob) -> Selection:
        """Return what a variant selects.

        Raises:
            EatssError: its decisions make no layout, or nothing fits the card.
        """
        program, base = self.program, self._base(wanted)
        if wanted.role == "default":
            return default_sizes(base, program, self._profile)
        if wanted.role == "ours":  # as users get it: kernels may be one, and steps of time a launch
            return program.session.select(self._profile, self._choosing)
        if wanted.role:
            return base
        limit = self._profile.shared_per_block_optin_bytes
        options = replace(self._choosing.for_card(self._profile), shared_per_block_bytes=limit)
        return selection_at(base, program.spaces, options, dict(wanted.decisions))


def default_sizes(base: Selection, program: Program, profile: GpuProfile) -> Selection:
    """Return a selection with tiles of 32 for every loop, and what else is selected as it is.

    What is selected has no tensor cores: their tiles are no sizes that nobody chose.
    """
    loops = {loop: DEFAULT_TILE for kernel in base.kernels for loop in kernel.loops}
    facts = program.session.analysed.facts
    options = checked_options(facts, program.session.scops, CodeRequest(tiles=loops))
    alone = {
        name: tuple(one for one in space.variants if one.instruction is None)
        for name, space in program.spaces.items()
    }
    kernels = []
    for kernel in base.kernels:
        found: tuple[KernelSelection, ...] = ()
        if kernel.warps is not None:
            own = program.spaces[kernel.name].facts
            found = ranked_cuda(own, alone[kernel.name], profile, base.options, 1)
        kernels.append(found[0] if found else replace(kernel, warps=None))
    return with_own_sizes(replace(base, kernels=tuple(kernels)), facts, alone, profile, options)


def _kernel_text(kernel: KernelSelection) -> str:
    """Return tile sizes and threads in words: ``kernel0: i=64 j=64 k=16, 16×16 threads``."""
    if not kernel.tile_sizes:
        return f"{kernel.name}: one thread"
    words = [equations(kernel.tile_sizes, " "), _threads(kernel.threads.values())]
    words += [] if kernel.instruction is None else [kernel.instruction]
    return f"{kernel.name}: {', '.join(words)}"


def _threads(sizes: Iterable[int]) -> str:
    return f"{'×'.join(map(str, sizes))} threads"


class PpcgMaker:
    """Runs PPCG for each variant of one program."""

    def __init__(self, job: MakerJob) -> None:
        self._job = job
        self._profile = job.profile
        self.session = Session(job.source, job.reading, cut="ppcg")

    def warm(self) -> None:
        """Analyse the source, for what is expected of variants."""
        _ = self.session.analysed

    def make(self, wanted: VariantJob) -> BuiltVariant:
        """Let PPCG generate a variant into a folder of its own.

        Raises:
            EatssError: it cannot be made, or what PPCG generates cannot be measured.
        """
        words, decided, metrics = self._chosen(wanted)
        reading = self._job.reading.frontend()
        built = ppcg(
            Path(self._job.source),
            gpu=self._profile,
            output=own_folder(self._job.folder, wanted.variant),
            ppcg=self._job.ppcg,
            arguments=(
                *(f"-D{one}" for one in reading.defines),
                *(f"-I{one}" for one in reading.include_dirs),
                *words,
                *self._job.ppcg_arguments,
            ),
            selects=False,
        )
        if built.program is None:
            raise InputError(*(built.warnings or (_UNKNOWN,)))
        row = replace(wanted.row(), metrics=metrics, decided=decided)
        return BuiltVariant(row=row, folder=str(built.program))

    def _chosen(self, wanted: VariantJob) -> tuple[Texts, str, Metrics]:
        """Return PPCG's arguments, what they decide in words, and what is expected."""
        if wanted.role in ("ours", "paper"):
            options = SelectOptions(target="ppcg", objective=self._job.objective)
            if wanted.role == "paper":
                options = SelectOptions(target="ppcg", model="paper")
            session = Session(self._job.source, self._job.reading, cut="ppcg")
            chosen = session.select(self._profile, options)
            said = OWN_SIZES if chosen.keeps_default else chosen.ppcg_sizes
            return chosen.ppcg_arguments, said, predicted_metrics(chosen.kernels)
        decisions: Point = dict(wanted.decisions)
        tiles, threads = positions(decisions, "tile"), positions(decisions, "threads")
        sizes = "; ".join(
            f"kernel[i] -> {kind}[{', '.join(map(str, own))}]"
            for kind, own in (("tile", tiles), ("block", threads))
            if own
        )
        words = [f"--sizes={{ {sizes} }}"] if sizes else []
        if "max_shared_memory" in decisions:
            words.append(f"--max-shared-memory={int(decisions['max_shared_memory'])}")
        if decisions.get("unroll_gpu_tile"):
            words.append("--unroll-gpu-tile")
        text = f"tile {'×'.join(map(str, tiles))}" if tiles else OWN_SIZES
        metrics: Metrics = ()
        with suppress(EatssError):  # the model cannot say
            found = self.predicted(decisions)
            if found.time_s is not None and found.energy_j is not None:
                metrics = predictions(found.time_s, found.energy_j)
        return tuple(words), ", ".join([text, *[_threads(threads)] * bool(threads)]), metrics

    def predicted(self, decisions: Point) -> ProgramExpectation:
        """Return what the model expects of sizes.

        Raises:
            EatssError: it cannot say.
        """
        choice = TileChoice(label="", positions=positions(decisions, "tile"))
        kernels = [
            (kernel.name, tuple(loop.name for loop in kernel.loops))
            for kernel in self.session.analysed.facts
        ]
        limit = decisions.get("max_shared_memory")
        return self.session.predict(
            self._profile,
            CodeRequest(tiles=choice.tiles(kernels), block=positions(decisions, "threads")),
            max_shared_memory=None if limit is None else int(limit),
            unroll_gpu_tile=bool(decisions.get("unroll_gpu_tile")),
        )


OWN_SIZES = "PPCG's own sizes"
_UNKNOWN = Diagnostic(code="EATSS-W010", message="what PPCG generated cannot be measured")


def positions(decisions: Point, kind: str) -> Numbers:
    """Return sizes by position, without gaps.

    Raises:
        InputError: ``EATSS-W010``, one is missing.
    """
    names = [name for name in decisions if re.fullmatch(rf"{kind}_\d+", name)]
    places = [f"{kind}_{at}" for at in range(len(names))]
    if {*names} != {*places}:
        raise input_error(
            "EATSS-W010",
            f"{kind} sizes are given as {', '.join(sorted(names))} only",
            hint=f"PPCG takes them by position: {kind}_0, {kind}_1, … without a gap",
        )
    return tuple(int(decisions[name]) for name in places)
