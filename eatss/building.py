"""``eatss.ppcg``: a C file and a PPCG in, the CUDA that PPCG generates with selected sizes out.

PPCG runs twice: it saves its schedule, sizes are selected for the kernels of that, and it loads the
schedule again with the sizes. So both have the same kernels by construction.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from os import PathLike
from pathlib import Path

from eatss.base.cache import Caching
from eatss.base.diagnostics import (
    Diagnostic,
    Diagnostics,
    InputError,
    Progress,
    Severity,
    no_progress,
)
from eatss.base.files import StrPath, folder_named, place_files
from eatss.base.forked import in_bounds
from eatss.base.frozen import frozen
from eatss.base.options import Keywords, spelled_out
from eatss.base.shipped import MARK
from eatss.base.text import Texts
from eatss.cards import GpuProfile, load_profile
from eatss.cards.this_machine import CardLike
from eatss.choose.options import SelectKeywords, SelectOptions
from eatss.choose.selection import Selection
from eatss.cuda.folder import OriginalFiles, program_files
from eatss.frontend.options import Reading
from eatss.ppcg_build.host_code import HostRegion, NotUnderstoodError, host_regions
from eatss.ppcg_build.program import (
    KernelFile,
    PpcgCode,
    kernel_names,
    mismatches,
    program_of,
    read_kernels,
)
from eatss.ppcg_build.run import (
    TIMEOUT_S,
    Generated,
    PpcgArguments,
    PpcgError,
    cannot_write,
    find_ppcg,
    generated_files,
    is_dump,
    no_source,
    not_measurable,
    nothing_mapped,
    ppcg_arguments,
    run_ppcg,
    used_tiles,
)
from eatss.program import PLAN_FILE, PROGRAM_SUFFIX, Program
from eatss.session.found import find_selection
from eatss.session.kept import kept
from eatss.session.session import Session
from eatss.session.source import Source


@frozen
class PpcgBuild:
    """What PPCG generated.

    Attributes:
        files: PPCG's files: header, kernels, host code.
        program: The folder that ``eatss verify``, ``measure`` and ``compare`` take; ``None`` where
            what PPCG generated cannot be measured, which ``warnings`` explain.
        selection: The sizes, ``None`` where PPCG chose them itself.
        commands: How PPCG was run, each with its arguments; in a folder of its own.
        warnings: What is to be said of the source and of what PPCG generated.
        said: What PPCG printed.
    """

    files: tuple[Path, ...]
    program: Path | None
    selection: Selection | None
    commands: tuple[Texts, ...]
    warnings: Diagnostics
    said: str

    def __repr__(self) -> str:
        files = ", ".join(file.name for file in self.files) or "nothing written"
        sizes = "PPCG's own sizes" if self.selection is None else self.selection.ppcg_sizes
        warned = f"; {len(self.warnings)} warnings" if self.warnings else ""
        return f"<PpcgBuild {files}; {sizes}{warned}>"


@dataclass(frozen=True, kw_only=True)
class _Ppcg(Keywords, SelectKeywords, Caching):
    source: StrPath = field(kw_only=False)
    gpu: CardLike
    output: StrPath = "."
    ppcg: StrPath | None = None
    arguments: Sequence[str] = ()
    selects: bool = True
    ppcg_timeout_s: float = TIMEOUT_S
    progress: Progress = no_progress


@spelled_out(_Ppcg, SelectKeywords, Caching)
def ppcg(asked: _Ppcg) -> PpcgBuild:
    """Run PPCG on a C file with the sizes that are selected for a card.

    Safe to call from several threads and processes at once, also with one output folder.

    Args:
        source: Path of a C file, or a kernel of eatss (``"@gemm"``).
        gpu: Name of a card (``"h200"``), ``"auto"`` for the one in this machine, path of a TOML
            profile, or a profile.
        output: The folder that PPCG's files are written to, all or none.
        ppcg: PPCG, a command or a path; by default ``ppcg`` on the path.
        arguments: Further arguments of PPCG: ``("-DN=1000", "-Iinclude")``.
        selects: Whether sizes are selected; otherwise PPCG takes its own, or those among
            ``arguments``: something to compare with.
        ppcg_timeout_s: Seconds that one run of PPCG may take.
        progress: Hears what is done now.
        **options: Those of :class:`SelectOptions` and :class:`Caching`.

    Raises:
        InputError: the source, the profile or an option is wrong; ``EATSS-R001`` to ``R005``.
        NoSolutionError: no tile sizes satisfy the limits of the card.
        PpcgError: ``EATSS-R01x`` PPCG fails; ``EATSS-R02x`` it generates something else than it
            was asked for. Then nothing is written.
    """
    word = os.fspath(asked.source)
    if isinstance(asked.source, PathLike) and word.startswith(MARK):  # else it is a kernel of eatss
        word = os.path.join(os.curdir, word)  # noqa: PTH118 - Path drops the dot
    given = ppcg_arguments([word, *asked.arguments], selecting=asked.selects)
    folder = folder_named(given.output or asked.output)
    if not given.source.is_file() or given.source.suffix != ".c":
        raise no_source(given.source)
    profile = load_profile(asked.gpu)
    run = _Run(given, profile, asked)
    with tempfile.TemporaryDirectory(prefix="eatss-ppcg-") as work:
        found = run.generate(find_ppcg(asked.ppcg), Path(work))
        return run.write(found, run.checked(found), folder)


class _Run:
    """One build: what was run, and what is known so far."""

    def __init__(self, given: PpcgArguments, profile: GpuProfile, asked: _Ppcg) -> None:
        self._given, self._profile, self._asked = given, profile, asked
        self._source, self._stem = given.source, given.source.stem
        self._schedule: Path | None = None
        self._selection: Selection | None = None
        self._commands: list[Texts] = []
        self._warnings: list[Diagnostic] = []
        self._source_warnings: Diagnostics = ()
        self._work = Path()

    # -- running PPCG -------------------------------------------------------------------------

    def generate(self, program: str, work: Path) -> Generated:
        """Select sizes for the schedule that PPCG saves, and run it with them."""
        self._work = work
        schedule = f"{self._stem}.schedule"
        common = (program, "--target=cuda", *self._given.options)
        saving, last = f"--save-schedule={schedule}", ("--dump-sizes", str(self._source.absolute()))
        if not self._asked.selects:
            return self._mapped(self._ran((*common, saving, *last)))
        said = self._ran((*common, saving, last[-1]))
        if not (work / schedule).is_file():
            self._mapped(said)
        kept = self._select()
        sizes = () if self._selection is None else self._selection.ppcg_arguments
        loading = (f"--load-schedule={schedule}",) if kept else ()
        for name in ("host.cu", "kernel.cu", "kernel.hu"):
            (work / f"{self._stem}_{name}").unlink(missing_ok=True)
        return self._mapped(self._ran((*common, *loading, *sizes, *last)))

    def _ran(self, command: Texts) -> str:
        self._commands.append(command)
        self._asked.progress(f"running PPCG on {self._source}")
        said = run_ppcg(command, self._work, self._asked.ppcg_timeout_s)
        schedule = self._work / f"{self._stem}.schedule"
        self._schedule = schedule if schedule.is_file() else self._schedule
        return said

    def _mapped(self, said: str) -> Generated:
        """Return what PPCG wrote, if any of it is on the card."""
        found = generated_files(self._work, self._stem, said)
        if "__global__" not in found.kernels:
            raise nothing_mapped(self._source, said)
        return found

    def _select(self) -> bool:
        """Select sizes, and tell whether they are for the schedule that PPCG saved.

        PPCG saves one schedule a file; with several regions the kernels are those that eatss
        expects, and are compared with PPCG's at the end.
        """
        self._asked.progress(f"selecting for {self._profile.title}")
        for schedule in (self._schedule, None):
            try:
                source, reading = Source.of(self._source), self._reading(schedule)
                given = source, reading, self._profile, self._asked.of(SelectOptions, target="ppcg")
                cache = self._asked.of(Caching).chosen()
                found = kept(cache, "select", partial(find_selection, *given), *given)
            except InputError as error:
                if error.code != "EATSS-P025" or schedule is None:
                    raise
            else:
                break
        self._source_warnings, self._selection = found.warnings, found.noun
        return schedule == self._schedule

    def _reading(self, schedule: Path | None) -> Reading:
        given = self._given
        return Reading(
            defines=given.defines, include_dirs=given.include_dirs, ppcg_schedule=schedule
        )

    # -- what was generated -------------------------------------------------------------------

    def checked(self, found: Generated) -> tuple[Program, OriginalFiles] | None:
        """Compare with what was asked for; return the program, ``None`` where it is not read.

        What was generated is compared as far as it is understood.
        """
        self._asked.progress("checking what PPCG generated")
        tiles = _used(found.said)
        kernels: KernelFile | None = None
        regions: tuple[HostRegion, ...] = ()
        reasons = {}
        try:
            kernels = read_kernels(found.kernels)
        except NotUnderstoodError as error:
            reasons["bytes of shared memory"] = str(error)
        try:
            regions = host_regions(found.host)
        except NotUnderstoodError as error:
            reasons["blocks of threads as they are launched"] = str(error)
        if self._selection is not None:
            problems = mismatches(
                self._selection,
                kernel_names(found.kernels),
                [launch for region in regions for launch in region.launches],
                () if kernels is None else kernels.kernels,
                tiles,
            )
            if any(problem.severity is Severity.ERROR for problem in problems):
                raise PpcgError(*problems)
            self._warnings += problems
        if kernels is None or reasons:
            compared = "" if self._selection is None else " and ".join(reversed(reasons))
            self._warnings.append(not_measurable(next(iter(reasons.values())), compared))
            return None
        if not kernels.kernels:
            return None
        code = PpcgCode(regions=regions, kernels=kernels, tiles=tiles)
        try:
            program = _program(self._source, self._reading(self._schedule), self._profile, code)
        except InputError as error:
            program = error.message
        if isinstance(program, str):
            self._warnings.append(not_measurable(program))
            return None
        return program

    def write(
        self, found: Generated, checked: tuple[Program, OriginalFiles] | None, folder: Path
    ) -> PpcgBuild:
        """Write what PPCG generated, and return what is known of it."""
        files = dict(found.files)
        written, home, folders = dict(files), f"{self._stem}{PROGRAM_SUFFIX}", []
        if checked is not None:
            program, originals = checked
            texts = program_files(program, originals)
            written |= {f"{home}/{name}": data for name, data in texts.items()}
            folders = [f"{home}/{name}" for name in originals.original.include_dirs]
        target = Path(os.path.realpath(folder))
        try:
            place_files(target, written, folders=folders, last=[*files][-1])
            if checked is None:  # what may be there is of a build before
                (target / home / PLAN_FILE).unlink(missing_ok=True)
        except OSError as error:
            raise cannot_write(error, folder) from None
        doubts = () if self._selection is None else self._selection.warnings
        known = self._source_warnings
        return PpcgBuild(
            files=tuple(folder / name for name in files),
            program=None if checked is None else folder / home,
            selection=self._selection,
            commands=tuple(self._commands),
            warnings=(*known, *(one for one in doubts if one not in known), *self._warnings),
            said="".join(f"{line}\n" for line in found.said.splitlines() if not is_dump(line)),
        )


_used = in_bounds(used_tiles)


@in_bounds
def _program(
    source: Path, reading: Reading, profile: GpuProfile, code: PpcgCode
) -> tuple[Program, OriginalFiles] | str:
    """Return the program of what PPCG generated, or why there is none."""
    session = Session(source, reading, cut="ppcg")
    try:
        analysed = session.analysed
    except InputError as error:
        if error.code not in ("EATSS-P025", "EATSS-P021"):
            raise
        session = Session(source, replace(reading, ppcg_schedule=None), cut="ppcg")
        analysed = session.analysed
    original = session.originals.original
    try:
        program = program_of(code, analysed, profile, name=session.name, original=original)
    except NotUnderstoodError as error:
        return str(error)
    return program, session.originals
