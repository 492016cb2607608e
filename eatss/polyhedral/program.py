"""A scop after scheduling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields

import islpy as isl

from eatss.base.frozen import frozen
from eatss.polyhedral.kernel import Kernel
from eatss.polyhedral.scops import Scop


@frozen
class Dependences:
    """Memory-based and value-based dependences between statement instances.

    ``flow`` is value-based (isl dataflow): from the last write of an element to each
    read of it. ``anti`` runs from reads to the next write, ``output`` from writes
    to the next write of the same element. ``order`` are the order dependences
    between live ranges; they and ``tagged_flow`` carry access ids on both ends and serve
    as conditional validity and its condition. ``forced`` keeps reads of live-in
    values before any write, and writes of live-out values after any other.
    """

    flow: isl.UnionMap
    anti: isl.UnionMap
    output: isl.UnionMap
    forced: isl.UnionMap
    tagged_flow: isl.UnionMap
    order: isl.UnionMap

    @property
    def memory_based(self) -> isl.UnionMap:
        """All between instances that use one element, whatever becomes of values."""
        return self.flow.union(self.anti).union(self.output)

    @property
    def validity(self) -> isl.UnionMap:
        """What holds always."""
        return self.flow.union(self.forced)

    def within(self, context: isl.Set) -> Dependences:
        """Return the dependences there are for some sizes: a set of parameters."""
        return self.each(lambda relation: relation.intersect_params(context))

    def each(self, change: Callable[[isl.UnionMap], isl.UnionMap]) -> Dependences:
        """Return them with a change made of each relation."""
        return Dependences(**{one.name: change(getattr(self, one.name)) for one in fields(self)})


@frozen
class StatementGraph:
    """The statement graph (networkx) in plain tuples.

    ``edges`` are dependences between statements; ``components`` are the strongly
    connected components in a topological order; ``fusable`` are the pairs of
    components that may share a band without breaking a dependence.
    """

    edges: tuple[tuple[str, str], ...]
    components: tuple[tuple[str, ...], ...]
    fusable: tuple[tuple[int, int], ...]


@frozen
class General:
    """A scop with parameters for its sizes, and its dependences whatever they are."""

    scop: Scop
    dependences: Dependences


@frozen
class ScheduledScop:
    """A scop with its dependences, its new schedule tree and its kernels.

    ``general`` is the scop for any sizes; ``eatss.polyhedral.graph`` draws its statement graph.
    ``kernels`` stand in the order in which the schedule launches them.
    ``host_statements`` are in no kernel: no loop of theirs is parallel and they come
    before the first kernel, after the last, or stand beside the kernels, so they run on the host,
    as in PPCG. ``assumes`` are the sizes that the schedule is right for, where it is not for all
    that run anything; ``dependences`` are those for them. ``source_order`` says that no other
    order was found in the time there is, so ``schedule`` is that of the source.
    """

    scop: Scop
    dependences: Dependences
    general: General
    schedule: isl.Schedule
    kernels: tuple[Kernel, ...]
    host_statements: tuple[str, ...] = ()
    assumes: isl.Set | None = None
    source_order: bool = False
