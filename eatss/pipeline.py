"""The way of the data, in one place: each line below is one package.

kernel.c ─frontend→ Scop ─polyhedral→ Kernels ─analysis→ KernelFacts ─model→ Selection
"""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path

from eatss.analysis import KernelFacts, VolumeKind, analyse
from eatss.diagnostics import Diagnostic, input_error
from eatss.frontend import FrontendOptions, FrontendResult, parse_file, parse_source
from eatss.gpu import GpuProfile
from eatss.model import ModelOptions, Selection, select_program
from eatss.polyhedral import ScheduledScop, schedule_scop
from eatss.scop import ElementType

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
    """All regions of a C file; kernels are numbered through the file."""

    file: str
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
    element_type = None if options.dtype is None else _ELEMENT_TYPES[options.dtype]
    scops: list[AnalysedScop] = []
    first_index = 0
    for scop in parsed.scops:
        scheduled = schedule_scop(scop, max_operations=options.max_operations)
        facts = analyse(
            scheduled,
            volume=options.volume,
            element_type=element_type,
            first_index=first_index,
        )
        first_index += len(facts)
        scops.append(AnalysedScop(scheduled=scheduled, facts=facts))
    return AnalysedProgram(file=_display_name(source), scops=tuple(scops), warnings=parsed.warnings)


def select_for(program: AnalysedProgram, profile: GpuProfile, options: ModelOptions) -> Selection:
    """Take kernel facts and a card to a selection."""
    return select_program(
        program.facts, profile, options, file=program.file, functions=functions_of(program)
    )


def functions_of(program: AnalysedProgram) -> tuple[str, ...]:
    """Return the functions the regions stand in, each once, in source order."""
    return tuple(dict.fromkeys(scop.scheduled.scop.function for scop in program.scops))


def _display_name(source: str | PathLike[str]) -> str:
    if isinstance(source, str) and "\n" in source:
        return "<source>"
    return str(Path(fspath(source)))
