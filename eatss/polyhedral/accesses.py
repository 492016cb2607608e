"""The accesses that can take part in a dependence, each once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import islpy as isl

from eatss.polyhedral.isl_names import coalesced
from eatss.polyhedral.scops import Access, Scop, Statement

Place: TypeAlias = tuple[str, int]
"""An access: the name of its statement, and its number there."""

_MANY = 24
"""Reads of one array in a statement above which those that make few boxes are one for dataflow."""


@dataclass(frozen=True, slots=True)
class NumberedAccess:
    """An access with its number among all accesses of the scop, in source order, and its place.

    ``tag`` is the number that dataflow knows it by, of the first of a group of reads where it is in
    one.
    """

    number: int
    statement: Statement
    access: Access
    place: Place
    tag: int


def tagging(statement: Statement, tag: str) -> isl.Map:
    """Return ``S[i] -> tag[]``, which tells apart by which access instances are meant."""
    name = isl.Set.read_from_str(statement.domain.get_ctx(), f"{{ {tag}[] }}")
    return isl.Map.from_domain_and_range(statement.domain, name)


def with_accesses(
    statement: Statement, places: Collection[Place], changed: Callable[[Access], Access]
) -> Statement:
    """Return a statement with a change made of the accesses at some places.

    A place stands for all accesses that are spelled alike, by the first of them.
    """
    firsts = first_equal(statement.accesses)
    own = [(statement.name, first) in places for first in firsts]
    if not any(own):
        return statement
    pairs = zip(statement.accesses, own, strict=True)
    accesses = tuple(changed(access) if is_own else access for access, is_own in pairs)
    return replace(statement, accesses=accesses)


def dependent_accesses(scop: Scop) -> tuple[NumberedAccess, ...]:
    """Return the accesses to arrays that the region writes, without repetitions.

    Reads of an array that nothing writes depend on nothing, and a statement that reads
    one element twice depends on it once. Leaving both out keeps a sum of thousands
    of terms cheap.
    """
    written = {a.array for s in scop.statements for a in s.accesses if a.is_write}
    found: list[NumberedAccess] = []
    number = 0
    for statement in scop.statements:
        firsts = first_equal(statement.accesses)
        own: list[NumberedAccess] = []
        for position, access in enumerate(statement.accesses):
            if access.array in written and firsts[position] == position:
                place = (statement.name, position)
                own.append(NumberedAccess(number, statement, access, place, number))
            number += 1
        found += _with_groups(statement, own)
    return tuple(found)


def _with_groups(
    statement: Statement, accesses: Sequence[NumberedAccess]
) -> Iterator[NumberedAccess]:
    """Yield accesses of a statement; reads of one array that make few boxes have one tag.

    isl takes long for each tag, and a stencil of a hundred points is one box. What the statement
    writes itself is never among them: whether it is read tells an update.
    """
    groups: dict[str, list[NumberedAccess]] = {}
    for item in accesses:
        if not item.access.is_write:
            groups.setdefault(item.access.array, []).append(item)
    tags: dict[int, int] = {}
    for group in groups.values():
        if len(group) <= _MANY:
            continue
        others = [one for one in group if _is_apart(one.access, statement.write)]
        if not others:
            continue
        boxes = union_of([one.access.relation for one in others])
        if 2 * boxes.n_basic_map() <= len(others):
            tags |= {one.number: others[0].number for one in others}
    for item in accesses:
        yield replace(item, tag=tags.get(item.number, item.number))


def _is_apart(access: Access, write: Access) -> bool:
    return access.array != write.array or access.relation.is_disjoint(write.relation)


def union_of(relations: Sequence[isl.Map]) -> isl.Map:
    """Return all relations as one, of as few pieces as isl finds."""
    found = relations[0]
    for relation in relations[1:]:
        found = found.union(relation)
    return coalesced(found)


def first_equal(accesses: Sequence[Access]) -> tuple[int, ...]:
    """Return, for each access, the position of the first one spelled alike with the same relation.

    Relations are compared as sets: isl simplifies them as they are used, so that two
    equal ones need not print alike.
    """
    seen: dict[tuple[bool, str, str], list[int]] = {}
    firsts = []
    for position, access in enumerate(accesses):
        alike = seen.setdefault((access.is_write, access.array, access.text), [])
        equal = (p for p in alike if accesses[p].relation.is_equal(access.relation))
        first = next(equal, position)
        if first == position:
            alike.append(position)
        firsts.append(first)
    return tuple(firsts)
