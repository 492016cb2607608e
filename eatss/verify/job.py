"""What the process that asks for a verification tells the one that runs foreign code."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

from eatss.verify.result import Device

Stage: TypeAlias = Literal["compile", "original", "generated", "bounds"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A launch: an entry by number, sizes, and the code its launcher has to return."""

    entry: int
    sizes: tuple[tuple[str, int], ...]
    code: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Runs of the program in ``directory``; ``work`` is a folder for what is compiled.

    ``machine`` is empty, or names what runs the program instead: ``MODULE:FUNCTION``, a function
    of the program and sizes that returns a ``Machine``, and further arguments of it.
    """

    directory: str
    work: str
    device: Device
    seed: int
    runs: tuple[Run, ...]
    machine: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the job as plain JSON types."""
        return asdict(self)


def job_from_dict(document: dict[str, Any]) -> Job:
    """Read what :meth:`Job.to_dict` and JSON made of a job."""
    runs = tuple(
        Run(
            entry=run["entry"],
            sizes=tuple((name, value) for name, value in run["sizes"]),
            code=run["code"],
        )
        for run in document["runs"]
    )
    return Job(**{**document, "runs": runs, "machine": tuple(document["machine"])})
