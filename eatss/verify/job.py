"""What the process that verifies gives a worker to do, and the events the worker tells of."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from eatss.base.frozen import frozen
from eatss.base.supervisor import Refused
from eatss.program import Entry, Program
from eatss.program.expression import SizePairs
from eatss.verify.result import Counts, Device, Further, SizeResult

Stage: TypeAlias = Literal["compile", "original", "generated", "bounds"]


@frozen
class Run:
    """A launch: an entry by number, sizes, and the code its launcher has to return.

    ``limit_s`` is the processor time the original may take: where it takes longer, or where C has
    no meaning, the run is left out; ``None`` if the run is wanted whatever it takes. With
    ``code_only`` the code is all there is to compare. A run may take ``patience`` times as long as
    others before it counts as one that does not end. What is ``spare`` is left out where it costs
    much and comes to no code that no other came to. ``signed`` asks for data of both signs first,
    ``infinite`` for data with infinities, of which one that is not finite is as good as another.
    The arguments of the numbers ``shifted`` start where only single elements can be moved, and that
    of number ``endless`` is an infinite number.
    """

    entry: int
    sizes: SizePairs
    code: int = 0
    limit_s: float | None = None
    code_only: bool = False
    patience: float = 1.0
    spare: bool = False
    signed: bool = False
    infinite: bool = False
    shifted: tuple[int, ...] = ()
    endless: int | None = None

    def data(self, entry: Entry) -> str:
        """Return what is special of its arguments, or nothing."""
        names = [argument.name for argument in entry.arguments]
        found = ["data of both signs"] if self.signed else []
        found += ["infinite data"] if self.infinite else []
        found += [] if self.endless is None else [f"{names[self.endless]} infinite"]
        found += [f"{names[number]} starts one element later" for number in self.shifted]
        return ", ".join(found)


@frozen
class Compilers:
    """The commands or paths of GCC's C compiler, GCC's C++ compiler, and nvcc."""

    cc: str = "gcc"
    cxx: str = "g++"
    nvcc: str = "nvcc"


DEFAULT_COMPILERS = Compilers()


@frozen
class Job:
    """Runs of the program in ``directory``; ``work`` is a folder for what is compiled.

    Results of ``runs`` are told one by one, those of ``further`` only if they fail or take branches
    that no run before took.
    With ``first_failure`` the first result that is not ok is the last one. Libraries of the
    original are kept in the folder ``kept``, if one is named, and taken from there.
    ``machine`` is empty, or names what runs the program instead: ``MODULE:FUNCTION``, a function
    of the program and sizes that returns a ``Machine``, and further arguments of it. ``compilers``
    are those to use.
    """

    directory: str
    work: str
    device: Device
    seed: int
    runs: tuple[Run, ...]
    machine: tuple[str, ...] = ()
    further: tuple[Run, ...] = ()
    first_failure: bool = False
    kept: str = ""
    compilers: Compilers = DEFAULT_COMPILERS


@frozen
class Entered:
    """A stage of a run begins; ``number`` runs came before it."""

    stage: Stage
    run: Run
    number: int = 0


@frozen
class Compared:
    """A run is done."""

    result: SizeResult


@frozen
class Done:
    """All runs are done; ``counts`` is ``None`` on a card, where nothing counts.

    ``reachable`` are ways out of branches, by number, that no run took, and to which conditions say
    that some sizes come.
    """

    compile_time_s: float
    further: Further
    counts: Counts | None
    reachable: tuple[tuple[int, bool], ...] = ()


Event: TypeAlias = Entered | Compared | Done | Refused

EVENTS: tuple[type[Any], ...] = Event.__args__


@frozen
class Progress:
    """What runs now.

    ``launcher`` is the function that runs, at ``sizes``. ``done`` counts runs, ``total`` those
    that are planned, of which some may be left out.
    """

    launcher: str
    sizes: SizePairs
    stage: Stage
    done: int
    total: int


def progress_of(program: Program, job: Job, event: Entered) -> Progress:
    """Return how far a job is when a stage begins."""
    return Progress(
        launcher=program.entries[event.run.entry].launcher,
        sizes=event.run.sizes,
        stage=event.stage,
        done=event.number,
        total=len(job.runs) + len(job.further),
    )
