"""What a verification found and covered, and what passes between it and its worker.

Found are kernels and branches that nobody ran; a worker gets jobs and tells of events.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from eatss.base.codec import BY_NAME
from eatss.base.diagnostics import EatssError, ExitCode
from eatss.base.frozen import Names, Numbers, frozen, their_names
from eatss.base.shown import Shown
from eatss.base.text import Texts
from eatss.program import Entry, Program
from eatss.program.expression import SizePairs
from eatss.verify.data import Flavour

Device: TypeAlias = Literal["cpu", "gpu"]

Status: TypeAlias = Literal[
    "ok",
    "wrong result",
    "out of bounds",
    "not refused",
    "compile error",
    "launch error",
    "barrier",
    "shared memory",
    "race",
    "crash",
    "timeout",
    "left out",
    "nothing compared",
    "incomplete",
    "refused",
]
"""``out of bounds``: memory beside an array was read or written; ``not refused``: the entry ran, or
gave another code, at sizes that one of its assumptions excludes; ``race``: threads use an element
in an order that nothing settles; ``left out``: the original is too slow or has no meaning at sizes
of our choice, which is no failure; ``nothing compared``: of a whole verification, all runs are
right, and none compared anything; ``incomplete``: all are right, and some code of the kernels never
ran; ``refused``: of one of several, its folder cannot be verified."""

OF_THE_WHOLE = frozenset(("nothing compared", "incomplete", "refused"))
"""What no run has, but a whole verification: its message stands beside."""


@frozen
class Difference:
    """The first element, in row-major order, that is not what the original computes.

    Values are decimal text that names the floating-point number exactly.
    """

    array: str
    indices: Numbers
    expected: str
    actual: str


@frozen
class SizeResult:
    """What happened at one choice of sizes.

    ``worst_error`` is the largest absolute difference from the original, ``bound`` what rounding
    allows for that element (0 where every bit has to be equal). ``compared`` counts elements,
    ``not_finite`` those of them that the original leaves infinite or not a number, ``loose`` those
    whose bound exceeds their own value, so that the comparison says little of them. ``changed``
    counts those that the original changed. ``refused`` tells that the entry refused to run, as it
    has to. ``data`` says what is special of the arguments: where they start, signs, infinities.
    """

    launcher: str
    sizes: Annotated[SizePairs, BY_NAME]
    status: Status
    message: str = ""
    worst_error: float = 0.0
    bound: float = 0.0
    compared: int = 0
    not_finite: int = 0
    loose: int = 0
    changed: int = 0
    refused: bool = False
    data: str = ""
    difference: Difference | None = None

    @property
    def failed(self) -> bool:
        """Whether something is wrong here."""
        return self.status not in ("ok", "left out")


@frozen
class Untaken:
    """A branch that no run took: where it stands, what never was, and whether code never ran."""

    function: str
    line: int
    condition: str
    never: Literal["true", "false", "reached"]
    unrun: bool


@frozen
class Coverage:
    """What all runs together have covered.

    ``elements`` were compared, ``changed`` of them the original had changed; ``runs`` compared
    some, ``refusals`` are sizes that a launcher refused as it has to. ``idle`` are the kernels
    that never ran. ``branches`` counts conditions of the kernels and the launchers; it is ``None``,
    and ``idle`` and ``untaken`` are empty, where nothing counts them: on a card, and where the
    program ended early.
    """

    runs: int
    elements: int
    changed: int
    refusals: int
    idle: Names
    branches: int | None
    untaken: tuple[Untaken, ...]


@frozen
class Verification(Shown):
    """A generated program compared with the C it was made from.

    Attributes:
        program: Name of the program.
        device: ``"cpu"`` or ``"gpu"``.
        status: That of the first size that failed, ``"ok"`` if none did.
        message: What happened there.
        bit_equal: Whether floating-point results had to agree in every bit.
        results: What happened at each choice of sizes.
        coverage: What all runs covered, those that ``results`` does not list included.
    """

    shown_by = "verification"

    program: str
    device: Device
    status: Status
    message: str
    bit_equal: bool
    results: tuple[SizeResult, ...]
    coverage: Coverage | None = None

    def __repr__(self) -> str:
        where = "CPU" if self.device == "cpu" else "GPU"
        compared = sum(result.compared for result in self.results)
        told = f", {self.message}" if self.message else ""
        return (
            f"<Verification {self.program}: {self.status} on the {where}{told}; "
            f"{len(self.results)} choices of sizes, {compared} elements compared>"
        )

    @property
    def ok(self) -> bool:
        """Whether the program does what the original does."""
        return self.status == "ok"

    @property
    def exit_code(self) -> ExitCode:
        """What a command that verifies this program alone exits with."""
        if self.status == "incomplete":
            return ExitCode.INCOMPLETE
        return ExitCode.OK if self.ok else ExitCode.NO_SOLUTION


@frozen
class Verifications(Shown):
    """What ``eatss verify --format json`` prints: a verification for each folder."""

    shown_by = "verifications"

    verifications: tuple[Verification, ...]


def must_be_bit_equal(program: Program, device: Device) -> bool:
    """Return whether floating-point results have to agree in every bit.

    On a CPU they do unless a kernel splits sums or rounds by an instruction, or operations are
    approximate; on a card, where the compiler contracts products and sums, only under
    ``strict_fp``.
    """
    if program.strict_fp:
        return True
    return (
        device == "cpu"
        and not program.fast_math
        and all(kernel.bit_exact for kernel in program.kernels)
    )


def refused(directory: Path, device: Device, error: EatssError) -> Verification:
    """Return what stands for a folder that cannot be verified, beside the others."""
    return Verification(
        program=directory.absolute().name,
        device=device,
        status="refused",
        message=" ".join(f"{one.message} [{one.code}]" for one in error.diagnostics),
        bit_equal=False,
        results=(),
    )


_GRAVEST_FIRST = (
    ExitCode.INTERNAL,
    ExitCode.NO_SOLUTION,
    ExitCode.USER_INPUT,
    ExitCode.INCOMPLETE,
)


def exit_code(found: Sequence[Verification], errors: Sequence[EatssError]) -> ExitCode:
    """Return what a command exits with: the gravest of what its folders have come to."""
    codes = {error.exit_code for error in errors}
    codes |= {one.exit_code for one in found if one.status != "refused"}
    return next((code for code in _GRAVEST_FIRST if code in codes), ExitCode.OK)


Stage: TypeAlias = Literal["compile", "original", "generated", "bounds"]


@frozen
class Run:
    """A launch: an entry by number, and sizes; its results are compared, of a ``probe`` its code.

    ``limit_s`` is the processor time the original may take: where it takes longer, or where C has
    no meaning, the run is left out; ``None`` if the run is wanted whatever it takes. What is
    ``spare`` may take longer than others before it counts as one that does not end. ``flavour`` is
    that of the data, or the first that is tried.
    The arguments of the numbers ``shifted`` start where only single elements can be moved, and that
    of number ``endless`` is an infinite number.
    """

    entry: int
    sizes: SizePairs
    probe: bool = False
    limit_s: float | None = None
    spare: bool = False
    flavour: Flavour = "uniform"
    shifted: Numbers = ()
    endless: int | None = None

    @property
    def has_to_be(self) -> bool:
        """Whether it is no search's, which may be left out."""
        return self.limit_s is None or not self.spare

    def data(self, entry: Entry) -> str:
        """Return what is special of its arguments, or nothing."""
        names = their_names(entry.arguments)
        found = [] if self.flavour == "uniform" else [f"{self.flavour} data"]
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
    that no run before took; so are those that a worker that ``searches`` looks for by itself.
    With ``first_failure`` the first result that is not ok is the last one.
    ``machine`` is empty, or names what runs the program instead: ``MODULE:FUNCTION``, a function
    of the program and sizes that returns a ``Machine``, and further arguments of it. ``compilers``
    are those to use.
    """

    directory: str
    work: str
    device: Device
    seed: int
    runs: tuple[Run, ...]
    machine: Texts = ()
    further: tuple[Run, ...] = ()
    searches: bool = False
    first_failure: bool = False
    compilers: Compilers = DEFAULT_COMPILERS


@frozen
class Entered:
    """A stage of a run begins; ``number`` runs came before it."""

    stage: Stage
    run: Run
    number: int = 0


@frozen
class Compared:
    """A run is done; it is ``told`` of by itself, or it is right and one of many."""

    result: SizeResult
    told: bool


@frozen
class Done:
    """All runs are done; fields as in :class:`Coverage`."""

    idle: Names = ()
    branches: int | None = None
    untaken: tuple[Untaken, ...] = ()


Event: TypeAlias = Entered | Compared | Done | EatssError


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


OnProgress: TypeAlias = Callable[[Progress], None] | None
"""Is called with it, if anything is."""
