"""``eatss.ppcg``: a C file and a PPCG in, the CUDA that PPCG generates with selected sizes out.

PPCG runs twice: it saves its schedule, sizes are selected for the kernels of that, and it loads the
schedule again with the sizes. So both have the same kernels by construction.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Literal

from eatss.api import found_selection
from eatss.cache.options import Caching
from eatss.cuda.folder import OriginalFiles, headers_of, program_files
from eatss.diagnostics import (
    Diagnostic,
    InputError,
    NoSolutionError,
    Severity,
)
from eatss.files import folder_named, placed_files
from eatss.forked import in_bounds
from eatss.frontend.options import Reading
from eatss.frozen import frozen
from eatss.gpu import GpuProfile, load_profile
from eatss.gpu.load import profile_file
from eatss.model import Selection
from eatss.model.options import SelectKeywords, SelectOptions
from eatss.model.selection import SELECTION
from eatss.notices import Told, nobody
from eatss.options import Keywords, spelled_out
from eatss.ppcg_build.arguments import PpcgArguments, ppcg_arguments
from eatss.ppcg_build.dependencies import dependency_text
from eatss.ppcg_build.findings import (
    cannot_write,
    cannot_write_file,
    falls_back,
    no_source,
    not_measurable,
    nothing_mapped,
)
from eatss.ppcg_build.host_code import HostRegion, host_regions
from eatss.ppcg_build.kernel_code import KernelFile, kernel_names, read_kernels
from eatss.ppcg_build.mismatches import mismatches
from eatss.ppcg_build.program import PpcgCode, program_of
from eatss.ppcg_build.readme import ppcg_readme
from eatss.ppcg_build.refusal import NotUnderstoodError
from eatss.ppcg_build.run import (
    TIMEOUT_S,
    Generated,
    PpcgError,
    check_timeout,
    find_ppcg,
    generated_files,
    run_ppcg,
)
from eatss.ppcg_build.side_files import check_place, replaced
from eatss.ppcg_build.sizes import UsedSizes, is_dump, used_sizes
from eatss.program import PLAN_FILE, PROGRAM_SUFFIX, Program
from eatss.session.session import Session
from eatss.shipped import MARK
from eatss.shown import Shown

Fallback = Literal["default"]


@frozen
class PpcgBuild(Shown):
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

    shown_by = "eatss.report.selection:build_parts"

    files: tuple[Path, ...]
    program: Path | None
    selection: Selection | None
    commands: tuple[tuple[str, ...], ...]
    warnings: tuple[Diagnostic, ...]
    said: str

    def __repr__(self) -> str:
        files = ", ".join(file.name for file in self.files) or "nothing written"
        sizes = "PPCG's own sizes" if self.selection is None else self.selection.ppcg_sizes
        warned = f"; {len(self.warnings)} warnings" if self.warnings else ""
        return f"<PpcgBuild {files}; {sizes}{warned}>"


@dataclass(frozen=True, kw_only=True)
class _Ppcg(Keywords, SelectKeywords, Caching):
    source: str | PathLike[str] = field(kw_only=False)
    gpu: str | PathLike[str] | GpuProfile
    output: str | PathLike[str] = "."
    ppcg: str | PathLike[str] | None = None
    arguments: Sequence[str] = ()
    selects: bool = True
    fallback: Fallback | None = None
    generated: str | PathLike[str] | None = None
    depfile: str | PathLike[str] | None = None
    record: str | PathLike[str] | None = None
    dry_run: bool = False
    ppcg_timeout_s: float = TIMEOUT_S
    told: Told = nobody


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
        fallback: ``"default"`` lets PPCG take its own sizes where none can be selected, with a
            warning, so that a build goes on.
        generated: A folder with files that PPCG wrote before; PPCG is not run then, and only the
            folder for measuring is written. ``arguments`` must have the ``-D`` that PPCG had.
        depfile: A file that gets what the output depends on, as make reads it; with
            ``generated``, what the launch plan depends on.
        record: A file that gets the selection as JSON; where there is none, it is removed.
        dry_run: Write nothing; ``commands`` tell how PPCG would be run. With ``generated``,
            ``warnings`` tell what would not be measurable.
        ppcg_timeout_s: Seconds that one run of PPCG may take.
        told: Is told what is done now.
        **options: Those of :class:`SelectOptions` and :class:`Caching`.

    Raises:
        InputError: the source, the profile or an option is wrong; ``EATSS-R001`` to ``R006``.
        NoSolutionError: no tile sizes satisfy the limits of the card.
        PpcgError: ``EATSS-R01x`` PPCG fails; ``EATSS-R02x`` it generates something else than it
            was asked for. Then nothing is written.
    """
    words = [_word(asked.source), *asked.arguments]
    given = ppcg_arguments(words, selecting=asked.selects and asked.generated is None)
    folder = folder_named(given.output or asked.output)
    if not given.source.is_file() or given.source.suffix != ".c":
        raise no_source(given.source)
    check_timeout(asked.ppcg_timeout_s)
    profile = load_profile(asked.gpu)
    for option, named in (("--selection", asked.record), ("--depfile", asked.depfile)):
        if named is not None:
            check_place(option, Path(named), folder)
    run = _Run(given, profile, asked)
    with tempfile.TemporaryDirectory(prefix="eatss-ppcg-") as work:
        if asked.generated is not None:
            before = Path(asked.generated)
            found = generated_files(before, given.source.stem, "")
            return run.checked(found) if asked.dry_run else run.finished(found, folder, before)
        run.start(find_ppcg(asked.ppcg), Path(work))
        return run.build((), None) if asked.dry_run else run.finished(run.generate(), folder)


def _word(source: str | PathLike[str]) -> str:
    """Return a source as a word of PPCG's command line, where ``@name`` is a kernel of eatss."""
    word = os.fspath(source)
    is_file = isinstance(source, PathLike) and word.startswith(MARK)
    return os.path.join(os.curdir, word) if is_file else word  # noqa: PTH118 - Path drops the dot


class _Run:
    """One build: what was run, and what is known so far."""

    def __init__(self, given: PpcgArguments, profile: GpuProfile, asked: _Ppcg) -> None:
        self._told = asked.told
        self._given = given
        self._profile = profile
        self._asked = asked
        self._stem = given.source.stem
        self._schedule: Path | None = None
        self._selection: Selection | None = None
        self._commands: list[tuple[str, ...]] = []
        self._warnings: list[Diagnostic] = []
        self._source_warnings: tuple[Diagnostic, ...] = ()
        self._work = Path()

    # -- running PPCG -------------------------------------------------------------------------

    def start(self, program: str, work: Path) -> None:
        """Find the sizes, and what PPCG is run with at last."""
        self._work = work
        schedule = f"{self._stem}.schedule"
        common = (program, "--target=cuda", *self._given.options)
        source = str(self._given.source.absolute())
        saving = (*common, f"--save-schedule={schedule}", source)
        if not self._asked.selects:
            self._commands.append((*saving[:-1], "--dump-sizes", source))
            return
        said = self._ran(saving)
        if (work / schedule).is_file():
            self._schedule = work / schedule
        elif not _mapped(generated_files(work, self._stem, said)):
            raise nothing_mapped(self._given.source, said)
        loading: tuple[str, ...] = (f"--load-schedule={schedule}",)
        try:
            self._selection, kept = self._selected()
        except (InputError, NoSolutionError) as error:
            if self._asked.fallback is None:
                raise
            self._warnings.append(falls_back(error))
            kept = False
        sizes = self._selection.ppcg_arguments if self._selection is not None else ()
        loading = loading if kept else ()
        self._commands.append((*common, *loading, *sizes, "--dump-sizes", source))

    def generate(self) -> Generated:
        """Run PPCG for the last time, and read what it wrote."""
        for name in ("host.cu", "kernel.cu", "kernel.hu"):
            (self._work / f"{self._stem}_{name}").unlink(missing_ok=True)
        said = self._ran(self._commands.pop())
        schedule = self._work / f"{self._stem}.schedule"
        if schedule.is_file():
            self._schedule = schedule
        found = generated_files(self._work, self._stem, said)
        if not _mapped(found):
            if self._selection is not None or not self._warnings:
                raise nothing_mapped(self._given.source, said)
            self._warnings.append(nothing_mapped(self._given.source, said).diagnostics[0])
        return found

    def _ran(self, command: tuple[str, ...]) -> str:
        self._commands.append(command)
        self._told(f"running PPCG on {self._given.source}")
        return run_ppcg(command, self._work, self._asked.ppcg_timeout_s)

    def _selected(self) -> tuple[Selection, bool]:
        """Return sizes, and whether they are for the schedule that PPCG saved.

        PPCG saves one schedule a file; with several regions the kernels are those that eatss
        expects, and are compared with PPCG's at the end.
        """
        self._told(f"selecting for {self._profile.title}")
        try:
            return self._select(self._schedule), True
        except InputError as error:
            if error.code != "EATSS-P025":
                raise
        return self._select(None), False

    def _select(self, schedule: Path | None) -> Selection:
        found = found_selection(
            self._given.source,
            self._profile,
            reading=replace(self._reading(), ppcg_schedule=schedule),
            wanted=self._asked.of(SelectOptions, target="ppcg"),
            caching=self._asked.of(Caching),
        )
        self._source_warnings = found.warnings
        return found.selection

    def _reading(self) -> Reading:
        return Reading(
            defines=self._given.defines,
            include_dirs=self._given.include_dirs,
            ppcg_schedule=self._schedule,
        )

    # -- what was generated -------------------------------------------------------------------

    def checked(self, found: Generated) -> PpcgBuild:
        """Check what PPCG generated, and write nothing."""
        self._checked(found)
        return self.build((), None)

    def finished(self, found: Generated, folder: Path, generated: Path | None = None) -> PpcgBuild:
        """Check what PPCG generated, and write it, all or nothing.

        Files that were in the folder ``generated`` before are not written again.
        """
        self._told("checking what PPCG generated")
        checked = self._checked(found)
        written = dict(found.files) if generated is None else {}
        home = f"{self._stem}{PROGRAM_SUFFIX}"
        if checked is not None:
            program, originals = checked
            for name, data in program_files(
                program, originals, readme=ppcg_readme(program)
            ).items():
                written[f"{home}/{name}"] = data
        folders = [] if checked is None else [f"{home}/{name}" for name in checked[1].folders]
        own = [name for name, _ in found.files] if generated is None else []
        target, last = Path(os.path.realpath(folder)), own[-1] if own else ""
        targets = [str(folder / name) for name in reversed(own or [f"{home}/{PLAN_FILE}"])]
        needed = self._needed(found, generated)
        try:
            with placed_files(target, written, folders=folders, last=last), ExitStack() as undo:
                if checked is None:  # what may be there is of a build before
                    replaced(target / home / PLAN_FILE, None, undo)
                for option, path, text in self._beside(targets, needed):
                    try:
                        replaced(Path(path), text, undo)
                    except OSError as error:
                        raise cannot_write_file(option, path, error) from None
                undo.pop_all()
        except OSError as error:
            raise cannot_write(error, folder) from None
        files = tuple(folder / name for name in own)
        return self.build(files, folder / home if checked is not None else None, found.said)

    def _beside(
        self, targets: Sequence[str], needed: Sequence[str]
    ) -> Iterator[tuple[str, str | PathLike[str], bytes | None]]:
        """Yield options, the files they name and what these hold; ``None`` where one goes."""
        record, depfile = self._asked.record, self._asked.depfile
        if record is not None:
            chosen = self._selection
            text = None if chosen is None else SELECTION.to_text(chosen).encode()
            yield "--selection", record, text
        if depfile is not None:
            rules = dependency_text(targets, needed)
            yield "--depfile", depfile, rules.encode("utf-8", "surrogateescape")

    def build(self, files: tuple[Path, ...], program: Path | None, said: str = "") -> PpcgBuild:
        """Return what is known now."""
        doubts = () if self._selection is None else self._selection.warnings
        doubts = tuple(one for one in doubts if one not in self._source_warnings)
        lines = (line for line in said.splitlines() if not is_dump(line))
        return PpcgBuild(
            files=files,
            program=program,
            selection=self._selection,
            commands=tuple(self._commands),
            warnings=(*self._source_warnings, *doubts, *self._warnings),
            said="".join(f"{line}\n" for line in lines),
        )

    def _checked(self, found: Generated) -> tuple[Program, OriginalFiles] | None:
        """Compare with what was asked for; return the program, ``None`` where it is not read."""
        used = _used(found.said)
        kernels: KernelFile | None = None
        regions: tuple[HostRegion, ...] = ()
        reasons: list[str] = []
        unchecked: list[str] = []
        try:
            regions = host_regions(found.host)
        except NotUnderstoodError as error:
            reasons.append(str(error))
            unchecked.append("blocks of threads as they are launched")
        try:
            kernels = read_kernels(found.kernels)
        except NotUnderstoodError as error:
            reasons.insert(0, str(error))
            unchecked.append("bytes of shared memory")
        if self._selection is not None:
            self._compare(self._selection, found, regions, kernels, used)
        else:
            unchecked = []
        if kernels is None or reasons:
            self._warnings.append(not_measurable(reasons[0], " and ".join(unchecked)))
            return None
        if not kernels.kernels:
            return None
        program = self._read(regions, kernels, used)
        if isinstance(program, str):
            self._warnings.append(not_measurable(program))
            return None
        return program

    def _compare(
        self,
        selection: Selection,
        found: Generated,
        regions: tuple[HostRegion, ...],
        kernels: KernelFile | None,
        used: UsedSizes,
    ) -> None:
        """Compare what was generated with what was asked for, as far as it is understood."""
        problems = mismatches(
            selection,
            kernel_names(found.kernels),
            [launch for region in regions for launch in region.launches],
            () if kernels is None else kernels.kernels,
            used,
        )
        if any(problem.severity is Severity.ERROR for problem in problems):
            raise PpcgError(*problems)
        self._warnings += problems

    def _read(
        self, regions: tuple[HostRegion, ...], kernels: KernelFile, used: UsedSizes
    ) -> tuple[Program, OriginalFiles] | str:
        """Return the program that was generated, or why there is none."""
        source, reading = self._given.source, self._reading()
        try:
            return _program(source, reading, self._profile, regions, kernels, used)
        except InputError as error:
            return error.diagnostics[0].message

    def _needed(self, found: Generated, generated: Path | None) -> list[str]:
        """Return what the output depends on, spelled from where the source is spelled."""
        source = self._given.source
        headers = headers_of(source, self._given.include_dirs)
        profile = profile_file(self._asked.gpu)
        spelled = [str(h) if source.is_absolute() else os.path.relpath(h) for h in headers]
        before = () if generated is None else (str(generated / name) for name, _ in found.files)
        return [str(source), *spelled, *before, *(() if profile is None else (str(profile),))]


@in_bounds
def _used(said: str) -> UsedSizes:
    return used_sizes(said)


@in_bounds
def _program(
    source: Path,
    reading: Reading,
    profile: GpuProfile,
    regions: tuple[HostRegion, ...],
    kernels: KernelFile,
    used: UsedSizes,
) -> tuple[Program, OriginalFiles] | str:
    """Return the program of what PPCG generated, or why there is none."""
    session = Session(source, reading, cut="ppcg")
    try:
        analysed = session.analysed
    except InputError as error:
        if error.code not in ("EATSS-P025", "EATSS-P021", "EATSS-P022", "EATSS-P023"):
            raise
        session = Session(source, replace(reading, ppcg_schedule=None), cut="ppcg")
        analysed = session.analysed
    code = PpcgCode(regions=regions, kernels=kernels, tiles=used.tiles)
    try:
        program = program_of(
            code, analysed, profile, name=session.name, original=session.originals.original
        )
    except NotUnderstoodError as error:
        return str(error)
    return program, session.originals


def _mapped(found: Generated) -> bool:
    return "__global__" in found.kernels
