"""A GPU kernel: one outermost tilable band of the schedule tree."""

from __future__ import annotations

import islpy as isl

from eatss.base.frozen import called, frozen


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
    ``affine`` is false where the subscript is no single affine form (integer
    division, a piecewise bound): then ``coefficients`` and ``symbols`` list what
    is involved, each with coefficient 0, and ``offset`` is 0.
    """

    coefficients: tuple[tuple[str, int], ...]
    symbols: tuple[tuple[str, int], ...]
    offset: int
    affine: bool = True

    @property
    def loops(self) -> tuple[str, ...]:
        """Names of the loops the subscript involves."""
        return tuple(name for name, _ in self.coefficients)


@frozen
class Reference:
    """A distinct array reference of a kernel.

    Accesses of several statements, or the read and the write of one, that touch
    the same element at the same point of the kernel's loops are one reference.
    ``relation`` maps the kernel's space ``kernel[loops…, inner loops…]`` to array
    elements; counters of host loops are parameters of it.
    """

    array: str
    text: str
    statements: tuple[str, ...]
    reads: bool
    writes: bool
    subscripts: tuple[Subscript, ...]
    relation: isl.Map

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
    loops: tuple[str, ...]


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
    index: int
    statements: tuple[str, ...]
    host_loops: tuple[str, ...]
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

    def loop(self, name: str) -> Loop:
        """Return the loop called ``name``; ``KeyError`` if there is none."""
        return called(name, self.loops + self.inner_loops)
