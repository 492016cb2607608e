"""A C file with the facts of all its kernels: what sizes are selected for."""

from __future__ import annotations

from eatss.analysis.facts import KernelFacts
from eatss.analysis.sizes import bytes_of_arrays, parameter_values, sizes_of
from eatss.analysis.work import bytes_of, instances_of
from eatss.base.diagnostics import Diagnostic
from eatss.base.expected_run import ProgramSize
from eatss.base.frozen import frozen
from eatss.polyhedral.kernel import ScheduledScop
from eatss.polyhedral.scop import Scop


@frozen
class AnalysedScop:
    """One region with its schedule and the facts of its kernels.

    ``scop`` is the region as read; what is scheduled may lack its dead code. ``warnings`` say why
    the kernels may be others than PPCG's.
    """

    scop: Scop
    scheduled: ScheduledScop
    facts: tuple[KernelFacts, ...]
    warnings: tuple[Diagnostic, ...] = ()


@frozen
class AnalysedProgram:
    """All regions of a C file; kernels are numbered through the file.

    ``dtype`` is the element type selected for, in its C spelling. ``max_operations`` bounds isl's
    work on one region, ``None`` for the default.
    """

    file: str
    dtype: str
    scops: tuple[AnalysedScop, ...]
    warnings: tuple[Diagnostic, ...]
    max_operations: int | None = None

    @property
    def facts(self) -> tuple[KernelFacts, ...]:
        """The facts of all kernels of the file, in launch order."""
        return tuple(fact for scop in self.scops for fact in scop.facts)

    @property
    def sizes(self) -> tuple[ProgramSize, ...]:
        """The sizes that counts of all kernels are for."""
        return sizes_of(scop.scop for scop in self.scops)

    @property
    def doubts(self) -> tuple[Diagnostic, ...]:
        """Why the kernels may be others than PPCG's."""
        return tuple(warning for scop in self.scops for warning in scop.warnings)

    @property
    def functions(self) -> tuple[str, ...]:
        """The functions the regions stand in, each once, in source order."""
        return tuple(dict.fromkeys(scop.scheduled.scop.function for scop in self.scops))

    @property
    def host_statements(self) -> tuple[str, ...]:
        """The statements that no kernel has, as ``function: S0``."""
        return tuple(
            f"{scop.scheduled.scop.function}: {name}"
            for scop in self.scops
            for name in scop.scheduled.host_statements
        )

    @property
    def host_instances(self) -> int | None:
        """How many instances those statements have, ``None`` where they cannot be counted."""
        found = [
            instances_of(scop.scheduled.scop, scop.scheduled.host_statements) for scop in self.scops
        ]
        instances = [one for one in found if one is not None]
        return sum(instances) if len(instances) == len(found) else None

    @property
    def host_bytes(self) -> dict[str, int]:
        """How many bytes of each array those statements touch, as far as they can be counted."""
        found: dict[str, int] = {}
        for scop in self.scops:
            found |= bytes_of(scop.scheduled.scop, scop.scheduled.host_statements)
        return found

    @property
    def array_bytes(self) -> int:
        """How many bytes all arrays take at the sizes; those of several regions count once."""
        found: dict[tuple[str, str], int] = {}
        for region in self.scops:
            scop = region.scheduled.scop
            for name, own in bytes_of_arrays(scop, parameter_values(scop)).items():
                place = scop.function, name
                found[place] = max(own, found.get(place, 0))
        return sum(found.values())
