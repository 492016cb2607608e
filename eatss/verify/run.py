"""``verify``: a folder with a generated program in, ``Verification`` out."""

from __future__ import annotations

import ctypes
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from eatss.base.diagnostics import Diagnostic, EatssError, InternalError, input_error
from eatss.base.files import StrPath
from eatss.base.frozen import their_names
from eatss.base.supervisor import Worker, supervise
from eatss.base.text import equations
from eatss.program import Program, load_program, program_folder
from eatss.program.expression import Sizes
from eatss.verify.data import EXTREME, INFINITE, SIGNED, Flavour, numpy_name
from eatss.verify.instrumentation import instrumented_text
from eatss.verify.result import (
    DEFAULT_COMPILERS,
    Compared,
    Compilers,
    Coverage,
    Device,
    Done,
    Entered,
    Event,
    Job,
    OnProgress,
    Progress,
    Run,
    SizeResult,
    Status,
    Verification,
    must_be_bit_equal,
)
from eatss.verify.sizes import (
    QUOTIENTS_OF_TILES,
    TESTS_QUOTIENTS,
    TESTS_VALUES,
    Probe,
    boundary_sizes,
    choose_sizes,
    complete_sizes,
    edge_sizes,
    estimated_points,
    has_fixed_sizes,
    refused_sizes,
    sizes_around_tiles,
    sizes_at_conditions,
)

_COMPILE_LIMIT_S = 900.0
_ORIGINAL_LIMIT_S = 0.2
_FEW = 2
_FEW_POINTS, _MOST_POINTS, _MOST_AIMED = 1e6, 6e6, 1e8
_PATIENCE = 5.0
_WANTED = Run(entry=0, sizes=())
_LIMITED = replace(_WANTED, limit_s=_ORIGINAL_LIMIT_S)


def verify(
    directory: StrPath,
    *,
    device: Literal["cpu", "gpu", "auto"] = "auto",
    sizes: Sequence[Sizes] | None = None,
    seed: int = 0,
    timeout_s: float = 60.0,
    machine: Sequence[str] = (),
    first_failure: bool = False,
    compilers: Compilers = DEFAULT_COMPILERS,
    progress: OnProgress = None,
) -> Verification:
    """Run a generated program and the original on the same random data and compare.

    Args:
        directory: folder of ``plan.json``, the ``.cu`` text and the original C.
        device: where the generated program runs; ``auto`` takes a GPU if there is one and nvcc.
        sizes: values of the parameters, one mapping a run; those of :func:`choose_sizes` if
            ``None``. A parameter that is not in a mapping has its default.
        seed: of the data.
        timeout_s: limit of one run of either program at one choice of sizes; of those at the sizes
            of a program that is for no others, and of those that look for code that no other run
            came to, five times as much.
        machine: what compiles and runs the generated program on the device instead of nvcc and
            the CUDA runtime; see :class:`eatss.verify.result.Job`.
        first_failure: whether to stop at the first failure.
        compilers: commands or paths of those to use.
        progress: is told of each run that begins.

    Returns:
        What was found; failures of the generated program are statuses, not exceptions.

    Raises:
        InputError: ``EATSS-V0xx``, the folder holds no program, the original cannot be called
            or compiled, or the sizes are not the program's.
    """
    directory = program_folder(Path(directory))
    program = load_program(directory)
    _check_callable(program)
    chosen = _auto_device() if device == "auto" else device
    runs = _runs(program, sizes)
    with_shim = chosen == "cpu" and not machine and sizes is None
    with tempfile.TemporaryDirectory(prefix="eatss-verify-") as work:
        job = Job(
            directory=str(_for_compilers(directory, Path(work))),
            work=work,
            device=chosen,
            seed=seed,
            runs=runs,
            machine=tuple(machine),
            further=_further(program) if with_shim else (),
            searches=with_shim,
            first_failure=first_failure,
            compilers=compilers,
        )
        report = _Report(program=program, limit_s=timeout_s, job=job, progress=progress)
        _run_worker(job, report)
    failed = next((result for result in report.results if result.failed), None)
    done = report.done or Done()
    coverage = report.coverage(done)
    status: Status = "ok"
    message = ""
    if failed is not None:
        status, message = failed.status, failed.message
    elif coverage.elements == 0:
        status = "nothing compared"
        message = "no run compared an element; give other sizes with --size"
    elif sizes is None:
        status, message = _what_is_missing(program, coverage)
    return Verification(
        program=program.name,
        device=chosen,
        status=status,
        message=message,
        bit_equal=must_be_bit_equal(program, chosen),
        results=tuple(report.results),
        coverage=coverage,
    )


def _for_compilers(directory: Path, work: Path) -> Path:
    """Return a path of the folder that is no option, and can stand in an ``#include``."""
    absolute = directory.absolute()
    if str(absolute).isprintable() and '"' not in str(absolute):
        return absolute
    link = work / "program"
    link.symlink_to(absolute, target_is_directory=True)
    return link


def _what_is_missing(program: Program, coverage: Coverage) -> tuple[Status, str]:
    """Return why a verification at sizes of our choice without failures is none, if it is none."""
    if coverage.idle and coverage.idle == their_names(program.kernels):
        why = "no kernel ran at any size that was tried; give other sizes with --size"
        return "nothing compared", why
    unrun = [one for one in coverage.untaken if one.unrun and one.never != "reached"]
    if has_fixed_sizes(program) or not unrun:
        return "ok", ""
    places = f"{len(unrun)} places" if len(unrun) > 1 else "a place"
    first = unrun[0]
    return "incomplete", (
        f"no size that was tried runs the code at {places} of the kernels, the first in line "
        f"{first.line} of {first.function}: ({first.condition}) was never {first.never}; "
        "give sizes that do with --size"
    )


def _check_callable(program: Program) -> None:
    """Raise if the original cannot be run by calling its functions."""
    for entry in program.entries:
        for argument in entry.arguments:
            if argument.source == "local" and argument.role == "parameter":
                raise input_error(
                    "EATSS-V005",
                    f"size '{argument.source_name}' is a local variable of '{entry.function}', "
                    "which nobody outside can choose",
                    hint="make it a parameter of the function",
                )


def _auto_device() -> Device:
    with suppress(OSError):
        driver = ctypes.CDLL("libcuda.so.1")
        count = ctypes.c_int()
        if driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0:
            return "gpu" if count.value else "cpu"
    return "cpu"


def _runs(program: Program, sizes: Sequence[Sizes] | None) -> tuple[Run, ...]:
    if sizes is not None:
        return tuple(
            _runs_at(program, [complete_sizes(program, given) for given in sizes], _WANTED)
        )
    wanted = choose_sizes(program)
    if not wanted:
        raise input_error(
            "EATSS-V005",
            f"the sizes of '{program.name}' are fixed, and so large that the original takes "
            "too long, or too much memory, to compare with",
            hint="give --size to run it anyway, or generate it again with smaller sizes: -DN=37 "
            "for a macro N between #ifndef and #endif, or without -D",
        )
    if has_fixed_sizes(program):
        runs = _runs_at(program, wanted, replace(_WANTED, spare=True))
    else:
        runs = _runs_at(program, _needed(program, wanted), _LIMITED)
    return (*runs, *_probed(program, refused_sizes(program)))


def _runs_at(program: Program, every: Sequence[Sizes], like: Run) -> list[Run]:
    """Return runs of all entries; those whose assumptions do not hold have to be refused."""
    return [
        replace(like, entry=number, sizes=tuple(given.items()))
        for given in every
        for number in range(len(program.entries))
    ]


def _probed(program: Program, probes: Sequence[Probe]) -> list[Run]:
    return [
        Run(entry=program.entries.index(entry), sizes=tuple(given.items()), probe=True)
        for entry, _, given in probes
    ]


def _needed(program: Program, wanted: Sequence[Sizes]) -> Sequence[Sizes]:
    """Return sizes that differ in how many tiles they need: of those alike, the first and last."""
    alike: dict[int, list[Sizes]] = {}
    for given in wanted:
        points = int(estimated_points(program, given, tiles_only=True))
        if points <= _MOST_POINTS:
            alike.setdefault(points.bit_length(), []).append(given)
    found = []
    for bits, group in alike.items():
        found += [*group[:2], *group[2:][-2:]] if 2**bits <= _FEW_POINTS else group[:1]
    return found


def _further(program: Program) -> tuple[Run, ...]:
    """Return runs that need not be told one by one."""
    small, tiles = boundary_sizes(program)[:_FEW], sizes_around_tiles(program)
    at_conditions = sizes_at_conditions(program, instrumented_text(program)[1])
    wanted = (*tiles, *at_conditions)
    aimed = [one for one in wanted if estimated_points(program, one) <= _MOST_AIMED]
    near = [*small, *tiles[:_FEW]]
    every: list[tuple[Flavour, Sequence[Sizes]]] = [(SIGNED, small)]
    if TESTS_VALUES in program.text:  # what runs where some value is infinite
        every.append((INFINITE, near))
    if TESTS_QUOTIENTS in program.text:  # what runs where a quotient is subnormal or no number
        again = wanted if QUOTIENTS_OF_TILES.search(program.text) else at_conditions
        every.append((EXTREME, [*near, *(one for one in again if one in aimed)]))
    every.append(("uniform", aimed))
    found = [
        run
        for flavour, sizes in every
        for run in _runs_at(program, sizes, replace(_LIMITED, flavour=flavour))
    ]
    empty = [one for one in choose_sizes(program) if [*one.values()].count(0) == 1]
    found += [
        replace(run, endless=number)  # times a sum without terms
        for run in _runs_at(program, empty, _LIMITED)
        for number, one in enumerate(program.entries[run.entry].arguments)
        if one.role == "scalar" and numpy_name(one).startswith("f")
    ]
    return (*found, *_probed(program, edge_sizes(program)))


@dataclass(slots=True)
class _Report:
    """What the worker has told so far."""

    program: Program
    limit_s: float
    job: Job
    progress: OnProgress = None
    results: list[SizeResult] = field(default_factory=list)
    others: list[SizeResult] = field(default_factory=list)
    entered: Entered | None = None
    done: Done | None = None

    def coverage(self, done: Done) -> Coverage:
        """Return what has been covered so far."""
        every = (*self.results, *self.others)
        return Coverage(
            runs=sum(one.compared > 0 for one in every),
            elements=sum(one.compared for one in every),
            changed=sum(one.changed for one in every),
            refusals=sum(one.refused for one in every),
            idle=done.idle,
            branches=done.branches,
            untaken=done.untaken,
        )

    @property
    def stage_limit_s(self) -> float:
        """How long the stage that runs may take."""
        if self.entered is None or self.entered.stage == "compile":
            return max(self.limit_s, _COMPILE_LIMIT_S)
        return self.limit_s * (_PATIENCE if self.entered.run.spare else 1.0)

    def take(self, event: Event) -> float | None:
        """Note an event of the worker; return the limit of the stage that it begins, if any."""
        match event:
            case Compared():
                (self.results if event.told else self.others).append(event.result)
            case Done():
                self.done = event
            case EatssError():
                raise event
            case Entered(run=run, stage=stage):
                self.entered = event
                total = len(self.job.runs) + len(self.job.further)
                if self.progress is not None:
                    now = Progress(
                        launcher=self.program.entries[run.entry].launcher,
                        sizes=run.sizes,
                        stage=stage,
                        done=min(event.number, total),
                        total=total,
                    )
                    self.progress(now)
                return self.stage_limit_s
        return None


def _run_worker(job: Job, report: _Report) -> None:
    """Run the worker and note what it tells, how it ends or that it does not."""
    outcome = supervise(
        Worker(
            module="eatss.verify.worker",
            job=job,
            start_limit_s=report.stage_limit_s,
            environment={"TMPDIR": job.work},  # compilers that are killed leave files behind
        ),
        report.take,
    )
    compiling = report.entered is None or report.entered.stage == "compile"
    if not outcome.in_time and not compiling:
        _note(report, "timeout", f"did not finish within {report.stage_limit_s:g} s")
    elif outcome.in_time and report.done is not None:
        return
    elif outcome.in_time and outcome.exit_code < 0 and not compiling:
        _note(report, "crash", outcome.how)
    else:
        how = outcome.how if outcome.in_time else "did not finish compiling"
        last = outcome.said[-1] if outcome.said else "it said nothing"
        raise InternalError(
            Diagnostic(
                code="EATSS-V900",
                message=f"the verifying process {how}: {last}",
                hint="please report this with the folder of the program",
            )
        )


def _note(report: _Report, status: Status, what: str) -> None:
    """Add a result for the run that did not end by itself.

    Raises:
        InputError: it was the original that did not.
    """
    assert report.entered is not None
    run = report.entered.run
    entry = report.program.entries[run.entry]
    if report.entered.stage != "generated":
        at = equations(run.sizes)
        raise input_error(
            "EATSS-V005",
            f"the original function '{entry.function}' {what} at {at or 'its fixed sizes'}",
            hint="choose other sizes with --size, or generate the program again with smaller ones",
        )
    result = SizeResult(
        launcher=entry.launcher,
        sizes=run.sizes,
        status=status,
        message=f"{entry.launcher} {what}",
        data=run.data(entry),
    )
    report.results.append(result)
