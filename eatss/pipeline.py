"""The way of the data, in one place: each line below is one package.

kernel.c ─frontend→ Scop ─polyhedral→ Kernels ─analysis→ KernelFacts ─model→ Selection
"""

from __future__ import annotations

import linecache
from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import PathLike, fspath
from pathlib import Path

import islpy as isl

from eatss.analysis import KernelFacts, VolumeKind, analyse
from eatss.diagnostics import Diagnostic, InputError, InternalError, input_error
from eatss.frontend import FrontendOptions, FrontendResult, parse_file, parse_source
from eatss.gpu import GpuProfile
from eatss.model import ModelOptions, Selection, select_program
from eatss.polyhedral import ScheduledScop, schedule_scop
from eatss.scop import ElementType, Scop

_ELEMENT_TYPES = {"float": ElementType.FLOAT, "double": ElementType.DOUBLE}


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalysisOptions:
    """How C becomes kernel facts.

    ``dtype`` (``float`` or ``double``) overrides the width of every floating-point
    array; ``None`` takes the types of the source. ``max_operations`` bounds isl's
    work on one region.
    """

    frontend: FrontendOptions = FrontendOptions()  # noqa: RUF009 - frozen
    volume: VolumeKind = VolumeKind.FOOTPRINT
    dtype: str | None = None
    max_operations: int | None = None

    def __post_init__(self) -> None:
        if self.dtype is not None and self.dtype not in _ELEMENT_TYPES:
            raise input_error(
                "EATSS-A001",
                f"unknown dtype '{self.dtype}'",
                hint=f"write one of: {', '.join(_ELEMENT_TYPES)}",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalysedScop:
    """One region with its schedule and the facts of its kernels."""

    scheduled: ScheduledScop
    facts: tuple[KernelFacts, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalysedProgram:
    """All regions of a C file; kernels are numbered through the file.

    ``dtype`` is the element type selected for, in its C spelling.
    """

    file: str
    dtype: str
    scops: tuple[AnalysedScop, ...]
    warnings: tuple[Diagnostic, ...]

    @property
    def facts(self) -> tuple[KernelFacts, ...]:
        """The facts of all kernels of the file, in launch order."""
        return tuple(fact for scop in self.scops for fact in scop.facts)


def parse(source: str | PathLike[str], options: FrontendOptions) -> FrontendResult:
    """Parse a path, or C source text: a ``str`` of more than one line is text."""
    if isinstance(source, str) and "\n" in source:
        return parse_source(source, options=options)
    return parse_file(source, options)


def analyse_program(source: str | PathLike[str], options: AnalysisOptions) -> AnalysedProgram:
    """Take C to kernel facts."""
    parsed = parse(source, options.frontend)
    scops: list[AnalysedScop] = []
    first_index = 0
    for scop in parsed.scops:
        analysed = _analyse_scop(scop, options, first_index)
        first_index += len(analysed.facts)
        scops.append(analysed)
    return AnalysedProgram(
        file=_display_name(source),
        dtype=options.dtype or _widest_type(parsed.scops),
        scops=tuple(scops),
        warnings=parsed.warnings,
    )


def _analyse_scop(scop: Scop, options: AnalysisOptions, first_index: int) -> AnalysedScop:
    element_type = None if options.dtype is None else _ELEMENT_TYPES[options.dtype]
    try:
        scheduled = schedule_scop(scop, max_operations=options.max_operations)
        facts = analyse(
            scheduled,
            volume=options.volume,
            element_type=element_type,
            first_index=first_index,
        )
    except InputError as error:
        raise InputError(*(_with_source_line(finding) for finding in error.diagnostics)) from None
    except isl.Error as error:
        message = f"isl failed on region {scop.index} of '{scop.function}': {error}"
        diagnostic = Diagnostic(code="EATSS-X002", message=message, span=scop.span)
        raise InternalError(diagnostic) from error
    return AnalysedScop(scheduled=scheduled, facts=facts)


def _with_source_line(finding: Diagnostic) -> Diagnostic:
    """Add the text of the line a finding of a later pass points at."""
    if finding.span is None or finding.source_line is not None:
        return finding
    line = linecache.getline(finding.span.file, finding.span.line).rstrip("\r\n")
    return replace(finding, source_line=line or None)


def select_for(program: AnalysedProgram, profile: GpuProfile, options: ModelOptions) -> Selection:
    """Take kernel facts and a card to a selection."""
    return select_program(
        program.facts,
        profile,
        options,
        file=program.file,
        functions=functions_of(program),
        host_statements=host_statements_of(program),
        dtype=program.dtype,
    )


def functions_of(program: AnalysedProgram) -> tuple[str, ...]:
    """Return the functions the regions stand in, each once, in source order."""
    return tuple(dict.fromkeys(scop.scheduled.scop.function for scop in program.scops))


def host_statements_of(program: AnalysedProgram) -> tuple[str, ...]:
    """Return the statements that no kernel has, as ``function: S0``."""
    return tuple(
        f"{scop.scheduled.scop.function}: {name}"
        for scop in program.scops
        for name in scop.scheduled.host_statements
    )


def _widest_type(scops: Sequence[Scop]) -> str:
    """Return the widest element type of the arrays, a floating-point one if there is any."""
    types = {array.element_type for scop in scops for array in scop.arrays if array.n_dims}
    types = types or {array.element_type for scop in scops for array in scop.arrays}
    widest = max(types, key=lambda t: (t.is_floating, t.size_bytes, t.value))
    return widest.value


def _display_name(source: str | PathLike[str]) -> str:
    if isinstance(source, str) and "\n" in source:
        return "<source>"
    return str(Path(fspath(source)))
