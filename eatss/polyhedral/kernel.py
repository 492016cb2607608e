"""Kernels and scheduled programs."""

from __future__ import annotations

from dataclasses import field

import islpy as isl

from eatss.base.frozen import Names, frozen
from eatss.base.memo import Memo
from eatss.polyhedral.scop import Dependences, Place, Scop
from eatss.program.linear import Coefficients

# -- kernel ------------------------------------------------------------------------------------
# A GPU kernel: one outermost tilable band of the schedule tree.


@frozen
class Loop:
    """A loop of a kernel.

    ``parallel`` is isl's *coincident*: no dependence is carried, so iterations may
    run on different threads. ``trip_count`` is the exact number of values the loop
    takes over the whole kernel, ``None`` where it depends on a parameter.
    """

    name: str
    parallel: bool
    trip_count: int | None

    def __str__(self) -> str:
        kind = "parallel" if self.parallel else "serial"
        trips = "?" if self.trip_count is None else str(self.trip_count)
        return f"{self.name} ({kind}, {trips} trips)"


@frozen
class Subscript:
    """One subscript of a reference as an affine form of the kernel's loops.

    ``coefficients`` lists the kernel's loops with a non-zero coefficient, outermost
    first; ``symbols`` the counters of host loops and the parameters with a
    non-zero coefficient, by name in alphabetical order; ``offset`` is the constant.
    Where the subscript is no single affine form (integer division, a piecewise bound),
    ``function`` is its text: then ``coefficients`` and ``symbols`` list what is
    involved, each with coefficient 0, and ``offset`` is 0.
    """

    coefficients: Coefficients
    symbols: Coefficients
    offset: int
    function: str = ""

    @property
    def affine(self) -> bool:
        """Whether it is one affine form."""
        return not self.function

    @property
    def loops(self) -> Names:
        """Names of the loops the subscript involves."""
        return tuple(name for name, _ in self.coefficients)

    @property
    def direction(self) -> tuple[object, ...]:
        """What it is but for its constant."""
        return self.coefficients, self.symbols, self.function

    def distance(self, other: Subscript) -> int | None:
        """Return how far apart two subscripts are, ``None`` where that is no known constant."""
        return abs(self.offset - other.offset) if self.direction == other.direction else None


@frozen
class Reference:
    """A distinct array reference of a kernel.

    Accesses of several statements, or the read and the write of one, that touch
    the same element at the same point of the kernel's loops are one reference: those of its
    ``places``, statements and numbers of their accesses.
    ``relation`` maps the kernel's space ``kernel[loops…, inner loops…]`` to array
    elements; counters of host loops are parameters of it.
    """

    array: str
    text: str
    statements: Names
    reads: bool
    writes: bool
    subscripts: tuple[Subscript, ...]
    relation: isl.Map
    places: frozenset[Place] = frozenset()

    @property
    def loops(self) -> frozenset[str]:
        """Names of all loops the reference depends on."""
        return frozenset(name for subscript in self.subscripts for name in subscript.loops)


@frozen
class Reduction:
    """An update ``target = target operator value`` carried by ``loops``.

    ``operator`` is the associative, commutative C operator or function (``+``,
    ``*``, ``fmax``); ``loops`` are the kernel's loops along which the target does
    not move.
    """

    statement: str
    array: str
    operator: str
    loops: Names


@frozen
class Kernel:
    """One GPU kernel: a tile band below host loops, inner loops below the band.

    ``loops`` are the members of the band, outermost first: what is tiled. A
    kernel without a band (no loop of it is parallel) has none and runs in one
    thread. ``host_loops`` run on the host around the launch; ``inner_loops`` run
    inside a tile and are not tiled. ``schedule`` maps statement instances to
    ``kernel[loops…, inner loops…]``. ``launch_domain`` are the values of the host loops for
    which it is launched.
    """

    name: str
    statements: Names
    host_loops: Names
    loops: tuple[Loop, ...]
    inner_loops: tuple[Loop, ...]
    permutable: bool
    schedule: isl.UnionMap
    launch_domain: isl.Set
    references: tuple[Reference, ...]
    reductions: tuple[Reduction, ...]

    @property
    def parallel_loops(self) -> tuple[Loop, ...]:
        """The parallel members of the band, outermost first."""
        return tuple(loop for loop in self.loops if loop.parallel)


# -- program -----------------------------------------------------------------------------------
# A scop after scheduling.


@frozen
class ScheduledScop:
    """A scop with its dependences, its new schedule tree and its kernels.

    ``kernels`` stand in the order in which the schedule launches them.
    ``host_statements`` are in no kernel: no loop of theirs is parallel and they come
    before the first kernel, after the last, or stand beside the kernels, so they run on the host,
    as in PPCG. ``assumes`` are the sizes that the schedule is right for, where it is not for all
    that run anything; ``dependences`` are those for them. ``source_order`` says that no other
    order was found in the time there is, so ``schedule`` is that of the source. ``general`` is the
    region for any size that it is one of, where it was scheduled as that. ``once`` has what later
    passes found.
    """

    scop: Scop
    dependences: Dependences
    schedule: isl.Schedule
    kernels: tuple[Kernel, ...]
    host_statements: Names = ()
    assumes: isl.Set | None = None
    source_order: bool = False
    general: ScheduledScop | None = None
    once: Memo = field(default_factory=Memo, init=False, compare=False, repr=False)

    @property
    def kernel_of(self) -> dict[str, Kernel]:
        """The kernel of each statement that is in one."""
        return {name: kernel for kernel in self.kernels for name in kernel.statements}
