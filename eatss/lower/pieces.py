"""The pieces of a scheduled region that become CUDA kernels, their loops by name, and their parts.

A part are statements that share the serial loops inside a block. An initialisation or a finish that
the schedule puts at one iteration of a serial loop runs before or after that loop instead of behind
a guard in it. Statements are only parted where no dependence at a point runs backwards, so parts
one after another compute the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, reduce
from typing import TypeAlias, TypeVar

import islpy as isl

from eatss.analysis.analyse import AnalysedProgram, AnalysedScop
from eatss.analysis.facts import KernelFacts
from eatss.base.frozen import Names, called, frozen, frozen_part, their_names
from eatss.base.memo import Memo
from eatss.polyhedral.dependences import bounded_work, source_lines
from eatss.polyhedral.isl_names import (
    bound_domain,
    function_on,
    output_affs,
    parameters_as_dims,
    parameters_set,
    without_parameters,
)
from eatss.polyhedral.kernel import Kernel, ScheduledScop
from eatss.polyhedral.schedule import launching_all
from eatss.polyhedral.scop import Access, Dependences, Place, Scop, Statement
from eatss.polyhedral.tree import KernelTree, Member, alone, cut_tree
from eatss.program.tokens import RESERVED_FORM, is_reserved

_Found = TypeVar("_Found")

CodeSchedules: TypeAlias = Callable[[], Sequence[ScheduledScop]]
"""Gives the schedules of the regions that code is made from."""

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def identifier(text: str) -> str:
    """Return ``text`` with what no C identifier may hold replaced by underscores."""
    cleaned = re.sub(r"_{2,}", "_", re.sub(r"\W", "_", text, flags=re.ASCII))
    return cleaned if _IDENTIFIER.fullmatch(cleaned) else f"v{cleaned}"


class NameTable:
    """The names taken in a scope of the text; it gives out others.

    The same requests in the same order give the same names.
    """

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._outer: NameTable | None = None

    def fresh(self, wish: str) -> str:
        """Return ``wish`` if it is free, else ``wish_1``, ``wish_2``, …, and take it."""
        stem = identifier(wish)
        numbered = f"{stem.rstrip('_')}_1"  # of eatss, which is no such form, it is one
        if any(map(RESERVED_FORM.fullmatch, (stem, numbered))):
            stem = f"v_{stem.strip('_')}"  # no number makes a reserved prefix free
        name, number = stem, 0
        while not self.is_free(name):
            number += 1
            name = f"{stem.rstrip('_') or 'v'}_{number}"
        self._taken.add(name)
        return name

    def reserve(self, *names: str) -> None:
        """Take names as they are."""
        self._taken.update(names)

    def is_free(self, name: str) -> bool:
        """Return whether a name has no meaning yet, here and in the scopes around."""
        if is_reserved(name) or name in self._taken:
            return False
        return self._outer is None or self._outer.is_free(name)

    def inner(self) -> NameTable:
        """Return a table of a scope inside this one; names it gives out are not taken here."""
        table = NameTable()
        table._outer = self
        return table


@frozen
class LoopMember:
    """A loop of a piece: its C name, and the schedule function it is."""

    name: str
    source_name: str
    member: Member


def their_loops(members: Iterable[LoopMember]) -> tuple[tuple[int, int], ...]:
    """Return which loops of the schedule some are."""
    return tuple(one.member.key for one in members)


@frozen_part
class Piece:
    """A subtree of the schedule that is launched as one kernel, or as one after another.

    ``kernel`` is the noun of the analysis; ``selected`` says that sizes are selected for it
    (what PPCG would leave on the host has none and runs in one thread). ``placed``
    pairs each statement with its domain, in which a parameter of the loop's name stands for
    every host and band loop. ``scheduled`` is its region. ``cuts`` are loops of which the host
    loops have one tile, each with its number's name and its size: the last loop of the host, and
    those of the band that are parallel.
    """

    kernel: Kernel
    selected: bool
    tree: KernelTree
    host: tuple[LoopMember, ...]
    band: tuple[LoopMember, ...]
    inner: tuple[LoopMember, ...]
    statements: tuple[Statement, ...]
    placed: tuple[isl.Set, ...]
    scheduled: ScheduledScop
    cuts: tuple[tuple[str, str, int], ...] = ()

    @cached_property
    def once(self) -> Memo:
        """What was made of it."""
        return Memo()

    @property
    def scop(self) -> Scop:
        """Its region."""
        return self.scheduled.scop

    @property
    def dependences(self) -> Dependences:
        """Those of its region."""
        return self.scheduled.dependences

    def instances(self, statement: Statement) -> isl.Set:
        """Return the instances of a statement for the sizes that the schedule assumes."""
        return _assumed(statement, self.scheduled)

    def domain_of(self, name: str) -> isl.Set:
        """Return the placed domain of a statement."""
        return next(domain for one, domain in self.placed_statements if one.name == name)

    def domains_of(self, part: Part) -> tuple[isl.Set, ...]:
        """Return the placed domains of the statements of a part."""
        return tuple(map(self.domain_of, part.statements))

    def statement(self, name: str) -> Statement:
        """Return a statement by name."""
        return called(name, self.statements)

    def access(self, place: Place) -> Access:
        """Return the access at a place."""
        statement, number = place
        return self.statement(statement).accesses[number]

    @property
    def placed_statements(self) -> Iterator[tuple[Statement, isl.Set]]:
        """The statements, each with its placed domain."""
        return zip(self.statements, self.placed, strict=True)

    def within_tile(self, loops: Collection[str]) -> isl.Set:
        """Return the sizes with instances, and values of loops as in their tiles."""
        found = union_of_sizes(self.placed, (*self.host_names, *self.bound))
        for loop, tile, size in self.cuts:
            if loop in loops:
                text = f"{size} * {tile} <= {loop} <= {size} * {tile} + {size - 1}"
                found = found.intersect(parameters_set(found.get_ctx(), (loop, tile), text))
        return found

    def unbound(self, domain: isl.Set) -> isl.Set:
        """Project the parameters of band loops out of a placed domain."""
        return without_parameters(domain, self.bound)

    def inner_names(self, names: NameTable) -> NameTable:
        """Return a table of names inside the loops of the piece."""
        local = names.inner()
        local.reserve(*their_names(self.loops))
        return local

    def facts_in(self, facts: Iterable[KernelFacts]) -> KernelFacts | None:
        """Return the facts of the same statements, if there are any."""
        names = their_names(self.statements)
        return next((one for one in facts if one.statements == names), None)

    def others(self, loops: Collection[str]) -> list[str]:
        """Return the loops of the band but some, by their C names."""
        return [name for name in self.bound if name not in loops]

    def tied(self, mapped: Collection[str]) -> dict[str, isl.Set]:
        """Return the instances of each statement at one point of the mapped loops of a launch."""
        others = self.others(mapped)
        return {
            one.name: without_parameters(placed, others) for one, placed in self.placed_statements
        }

    @property
    def combines(self) -> bool:
        """Whether points of parallel loops have parts of what some statement updates."""
        return any(one.combined for one in self.statements)

    @property
    def loops(self) -> tuple[LoopMember, ...]:
        """The loops of the kernel, outermost first, without those of the host."""
        return self.band + self.inner

    @property
    def bound(self) -> Names:
        """C names of the loops of the band, outermost first."""
        return their_names(self.band)

    @property
    def host_names(self) -> Names:
        """C names of the host loops, outermost first."""
        return their_names(self.host)


def union_of_sizes(placed: Iterable[isl.Set], names: Sequence[str]) -> isl.Set:
    """Return a convex set around the sizes for which there is an instance, without some loops."""
    sizes = (without_parameters(domain.params(), names).remove_divs() for domain in placed)
    return isl.Set.from_basic_set(reduce(isl.Set.union, sizes).coalesce().simple_hull())


def in_regions(
    program: AnalysedProgram,
    find: Callable[[ScheduledScop, AnalysedScop], Iterable[_Found]],
    code: CodeSchedules | None = None,
) -> tuple[_Found, ...]:
    """Return what is found in each region of a program.

    Args:
        program: the regions.
        find: looks into one that is scheduled, with the facts of its kernels.
        code: gives the schedules that code is made from, where they may be others.

    Raises:
        InputError: ``EATSS-P001``, a region is too much work for isl.
    """
    schedules = [one.scheduled for one in program.scops] if code is None else code()
    found: list[_Found] = []
    for scheduled, region in zip(schedules, program.scops, strict=True):
        with source_lines("on what code can be made"), bounded_work(scheduled.scop):
            found += find(scheduled, region)
    return tuple(found)


def pieces_of(scheduled: ScheduledScop, names: NameTable) -> tuple[Piece, ...]:
    """Return the pieces of a region in the order in which they run.

    Host loops that two pieces share have one name; ``names`` gives out the names.
    """
    scop = scheduled.scop
    trees = cut_tree(scheduled.schedule)
    kernels = launching_all(scheduled).kernels
    host_names: dict[tuple[int, int], str] = {}
    pieces = []
    for tree, kernel in zip(trees, kernels, strict=True):
        for member, source_name in zip(tree.host, kernel.host_loops, strict=True):
            if member.key not in host_names:
                host_names[member.key] = names.fresh(source_name)
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
        statements = tuple(map(scop.statement, kernel.statements))
        pieces.append(
            Piece(
                kernel=kernel,
                selected=not tree.on_host and bool(tree.band),
                tree=tree,
                host=host,
                band=band,
                inner=inner,
                statements=statements,
                placed=tuple(_placed(one, (*host, *band), scheduled) for one in statements),
                scheduled=scheduled,
            )
        )
    return tuple(pieces)


def own_pieces(scheduled: ScheduledScop) -> tuple[tuple[Piece, ...], NameTable]:
    """Return the pieces of a region that nothing else is made with, and the names taken there."""

    def made() -> tuple[tuple[Piece, ...], NameTable]:
        names = NameTable((scheduled.scop.function, *scheduled.scop.parameters))
        return pieces_of(scheduled, names), names

    return scheduled.once(made, "pieces")


def _assumed(statement: Statement, scheduled: ScheduledScop) -> isl.Set:
    domain, assumes = statement.domain, scheduled.assumes
    return domain if assumes is None else domain.intersect_params(assumes)


def _placed(statement: Statement, loops: Sequence[LoopMember], scheduled: ScheduledScop) -> isl.Set:
    domain = _assumed(statement, scheduled)
    return bound_domain(domain, functions_of(loops, domain), their_names(loops))


def functions_of(loops: Iterable[LoopMember], domain: isl.Set) -> list[isl.PwAff]:
    """Return the values of loops at the instances of a domain."""
    return [function_on(loop.member.function, domain) for loop in loops]


@frozen
class Part:
    """Statements in source order and the serial band loops that run around them."""

    statements: Names
    serial: Names


def parts_of(piece: Piece, mapped: Sequence[str], serial: Sequence[str]) -> tuple[Part, ...]:
    """Cut a piece whose loops ``mapped`` go to threads into parts, in the order they run."""
    names = their_names(piece.statements)
    moving = {name: _moving(piece, name, mapped, serial) for name in names}
    if not any(moving.values()):
        return (Part(statements=tuple(names), serial=()),)
    tied = tied_instances(piece, mapped)
    reached = {name: {name} for name in names}
    for source, sink in edges(tied, piece.dependences):
        reached[source].add(sink)
    for users in _users_of_one_place(piece, moving, tied, _backwards(piece, serial)):
        for name in users:
            reached[name].update(users)
    for through in names:
        for own in reached.values():
            if through in own:
                own.update(reached[through])
    back = {name: {other for other in names if name in reached[other]} for name in names}
    tight = (reached[name] & back[name] for name in names)
    parts, left = [], [*dict.fromkeys(tuple(sorted(own, key=names.index)) for own in tight)]
    while left:
        ready = [one for one in left if sum(own[0] in back[one[0]] for own in left) == 1]
        around = {one: frozenset().union(*(moving[name] for name in one)) for one in ready}
        loops = {one: tuple(name for name in serial if name in around[one]) for one in ready}
        still = [one for one in ready if not loops[one]]
        chosen = still or [
            one
            for one in ready
            if loops[one] == loops[ready[0]] and not are_apart(tied, one, ready[0])
        ]
        left = [one for one in left if one not in chosen]
        statements = tuple(sorted((name for one in chosen for name in one), key=names.index))
        parts.append(Part(statements=statements, serial=loops[chosen[0]]))
    return tuple(_merged(parts, reached))


def _users_of_one_place(
    piece: Piece,
    moving: Mapping[str, frozenset[str]],
    tied: Mapping[str, isl.UnionSet],
    backwards: isl.UnionMap,
) -> Iterator[Names]:
    """Yield the statements that share a place which serial iterations set anew.

    They stay together. Of scalars, dependences lead from a read to the next write of the original
    order, which may be another thread's, while here each thread has a scalar of its own. Writes
    that change places in the schedule do so around what reads the last of them, which has to stay
    among them: ``for (j = m; j-- > 0;) …; out[i] = j;``.
    """
    for array in dict.fromkeys(s.write.array for s in piece.statements):
        users = [s.name for s in piece.statements if s.uses(array)]
        writers = [s for s in piece.statements if s.write.array == array and moving[s.name]]
        if any(
            not output_affs(s.write.relation)
            or not backwards.intersect_domain(tied[s.name]).intersect_range(tied[s.name]).is_empty()
            for s in writers
        ):
            yield tuple(users)


def _backwards(piece: Piece, serial: Sequence[str]) -> isl.UnionMap:
    """Return the writes of one place that change their order in the serial loops."""
    functions = (alone(loop.member.function) for loop in piece.band if loop.name in serial)
    time = reduce(isl.MultiUnionPwAff.flat_range_product, functions)
    return piece.dependences.output.lex_gt_at_multi_union_pw_aff(time)


def _merged(parts: Sequence[Part], reached: Mapping[str, set[str]]) -> list[Part]:
    """Join neighbours that run in no serial loop and do not depend on each other.

    Inside a part the schedule decides the order, and it may have told dependent statements apart
    by the serial loop only.
    """
    joined: list[Part] = []
    for part in parts:
        last = joined[-1] if joined else None
        if (
            last is not None
            and not part.serial
            and not last.serial
            and all(reached[own].isdisjoint(part.statements) for own in last.statements)
        ):
            joined[-1] = Part(statements=last.statements + part.statements, serial=())
        else:
            joined.append(part)
    return joined


def _moving(
    piece: Piece, statement: str, mapped: Sequence[str], serial: Sequence[str]
) -> frozenset[str]:
    """Return the serial loops of which a statement has several iterations at one point."""
    domain = piece.domain_of(statement)
    domain = without_parameters(domain, piece.others((*mapped, *serial)))
    moving = set()
    for name in serial:
        rest = [other for other in serial if other != name]
        line = parameters_as_dims(without_parameters(domain.params(), rest), (name,), "line")
        if not isl.Map.from_range(line).is_single_valued():
            moving.add(name)
    return frozenset(moving)


def tied_instances(piece: Piece, mapped: Sequence[str]) -> dict[str, isl.UnionSet]:
    """Return the instances of each statement at one point of a launch."""
    return {name: instances.to_union_set() for name, instances in piece.tied(mapped).items()}


def are_apart(tied: Mapping[str, isl.UnionSet], some: Names, others: Names) -> bool:
    """Tell whether no point of a launch has instances of both."""
    one, other = (reduce(isl.Set.union, (tied[o].params() for o in own)) for own in (some, others))
    return bool(one.is_disjoint(other))


def edges(tied: Mapping[str, isl.UnionSet], dependences: Dependences) -> Iterator[tuple[str, str]]:
    """Yield the dependences between different statements at one point of a launch."""
    for source, at_source in tied.items():
        leaving = dependences.memory_based.intersect_domain(at_source)
        for sink, at_sink in tied.items():
            if source != sink and not leaving.intersect_range(at_sink).is_empty():
                yield source, sink
