"""The pieces of a scheduled region that become CUDA kernels, with their loops by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import islpy as isl

from eatss.base.frozen import called, frozen
from eatss.lower.schedule.names import NameTable
from eatss.polyhedral import Kernel, ScheduledScop
from eatss.polyhedral.isl_names import bound_domain, function_on, without_parameters
from eatss.polyhedral.kernels import build_kernels
from eatss.polyhedral.scop import Scop, Statement
from eatss.polyhedral.tree import KernelTree, Member, cut_tree


@frozen
class LoopMember:
    """A loop of a piece: its C name, and the schedule function it is."""

    name: str
    source_name: str
    member: Member


@frozen
class Piece:
    """A subtree of the schedule that is launched as one kernel, or as one after another.

    ``kernel`` is the noun of the analysis; ``selected`` says that sizes are selected for it
    (what PPCG would leave on the host has none and runs in one thread). ``placed``
    pairs each statement with its domain, in which a parameter of the loop's name stands for
    every host and band loop. ``assumes`` are the sizes that the schedule is right for, ``None`` for
    all.
    """

    kernel: Kernel
    selected: bool
    tree: KernelTree
    host: tuple[LoopMember, ...]
    band: tuple[LoopMember, ...]
    inner: tuple[LoopMember, ...]
    statements: tuple[Statement, ...]
    placed: tuple[isl.Set, ...]
    assumes: isl.Set | None = None

    def instances(self, statement: Statement) -> isl.Set:
        """Return the instances of a statement for the sizes that the schedule assumes."""
        if self.assumes is None:
            return statement.domain
        return statement.domain.intersect_params(self.assumes)

    def domain_of(self, name: str) -> isl.Set:
        """Return the placed domain of a statement."""
        names = (statement.name for statement in self.statements)
        return dict(zip(names, self.placed, strict=True))[name]

    def statement(self, name: str) -> Statement:
        """Return a statement by name."""
        return called(name, self.statements)

    def unbound(self, domain: isl.Set) -> isl.Set:
        """Project the parameters of band loops out of a placed domain."""
        return without_parameters(domain, [loop.name for loop in self.band])

    @property
    def host_names(self) -> tuple[str, ...]:
        """C names of the host loops, outermost first."""
        return tuple(loop.name for loop in self.host)


def pieces_of(scheduled: ScheduledScop, names: NameTable) -> tuple[Piece, ...]:
    """Return the pieces of a region in the order in which they run.

    Host loops that two pieces share have one name; ``names`` gives out the names.
    """
    scop = scheduled.scop
    trees = cut_tree(scheduled.schedule).pieces
    kernels = build_kernels(scop, scheduled.dependences, trees)
    host_names: dict[tuple[int, int], str] = {}
    pieces = []
    for tree, kernel in zip(trees, kernels, strict=True):
        for member, source_name in zip(tree.host, kernel.host_loops, strict=True):
            if member.key not in host_names:
                host_names[member.key] = names.fresh(source_name)
        pieces.append(_piece(scop, tree, kernel, host_names, names, scheduled.assumes))
    return tuple(pieces)


def _piece(
    scop: Scop,
    tree: KernelTree,
    kernel: Kernel,
    host_names: Mapping[tuple[int, int], str],
    names: NameTable,
    assumes: isl.Set | None,
) -> Piece:
    local = names.inner()
    host = tuple(
        LoopMember(name=host_names[member.key], source_name=source, member=member)
        for member, source in zip(tree.host, kernel.host_loops, strict=True)
    )
    band, inner = (
        tuple(
            LoopMember(name=local.fresh(loop.name), source_name=loop.name, member=member)
            for member, loop in zip(members, loops, strict=True)
        )
        for members, loops in ((tree.band, kernel.loops), (tree.inner, kernel.inner_loops))
    )
    statements = tuple(scop.statement(name) for name in kernel.statements)
    return Piece(
        kernel=kernel,
        selected=not tree.on_host and bool(tree.band),
        tree=tree,
        host=host,
        band=band,
        inner=inner,
        statements=statements,
        placed=tuple(_placed(statement, (*host, *band), assumes) for statement in statements),
        assumes=assumes,
    )


def _placed(statement: Statement, loops: Sequence[LoopMember], assumes: isl.Set | None) -> isl.Set:
    domain = statement.domain
    if assumes is not None:
        domain = domain.intersect_params(assumes)
    functions = [function_on(loop.member.function, domain) for loop in loops]
    return bound_domain(domain, functions, [loop.name for loop in loops])
