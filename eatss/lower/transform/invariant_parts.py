"""Loop-invariant code motion: roots, quotients and functions that compilers leave in a loop.

    for (rj = 0; rj < 16; ++rj) Y[i][j] = X_k[rj] / sqrtf(s_v / M + 1e-5f) * g[j];

becomes

    float sqrtf_v = sqrtf(s_v / M + 1e-5f);
    for (rj = 0; rj < 16; ++rj) Y[i][j] = X_k[rj] / sqrtf_v * g[j];

Roots, divisions and most functions have a branch for numbers that are rare, and compilers move no
branch: each point has its own root then, and each waits for the one before it. What such a part
reads a thread has in registers in front of the loop already, and the loop writes none of it. So
it may be computed where a test inside the loop would not have come to it, unless it divides
integers, of which 0 may be one; what only some of the arms of a choice compute stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from eatss.base.frozen import distinct
from eatss.base.trees import free_name
from eatss.lower.kernel.nodes import (
    Buffer,
    Compute,
    Declare,
    Element,
    For,
    Kernel,
    Load,
    Node,
    Nodes,
)
from eatss.lower.kernel.uses import (
    affine_values,
    every,
    mapped_of,
    own_names,
    with_bodies,
    written,
)
from eatss.polyhedral.expression import (
    AffineValue,
    Binary,
    Call,
    ElementType,
    Expression,
    Read,
    always,
    branches,
    floating_type,
    label,
    preorder,
    reads_in,
    rebuilt,
)
from eatss.polyhedral.scop import AccessKind
from eatss.program import IntExpr, names_in
from eatss.program.expression import IntExprs


def with_invariant_parts(kernel: Kernel, taken: set[str]) -> Kernel:
    """Return a kernel whose loops compute no root, division or function that is always the same.

    Args:
        kernel: before barriers are put.
        taken: names that are not free; those that come to be are added.
    """
    return replace(kernel, body=_moved(kernel.body, taken))


def _moved(nodes: Nodes, taken: set[str]) -> Nodes:
    found: list[Node] = []
    for node in nodes:
        front, rest = _in_front(node, taken) if isinstance(node, For) else ((), node)
        found += [*front, with_bodies(rest, partial(_moved, taken=taken))]
    return tuple(found)


_Part: TypeAlias = tuple[Expression | Element | IntExpr, ...]
"""A part of a value by its nodes: elements where it reads, values of its affine functions."""


def _in_front(loop: For, taken: set[str]) -> tuple[Nodes, For]:
    """Return what comes in front of a loop, and the loop with registers in its place."""
    inside = {name for one in every((loop,)) for name in own_names(one)}
    changing, front, homes = written((loop,)), list[Node](), dict[_Part, Buffer]()

    def stays(one: Compute, part: Expression) -> bool:
        read = [one.reads[number] for number in reads_in(part)]
        names = names_in(*_integers(one, part), *(at for own in read for at in own.subscripts))
        known = all(own.buffer.space in ("register", "argument") for own in read)
        fixed = changing.isdisjoint(own.buffer for own in read) and inside.isdisjoint(names)
        safe = not any(_divides_integers(one, own) for own in preorder(part))
        return bool(read) and known and fixed and safe and any(map(branches, preorder(part)))

    def home_of(one: Compute, part: Expression) -> Buffer | None:
        kind = _floating_type(one, part)
        same = _nodes(one, part)
        if kind is not None and same not in homes:
            home = Buffer.of("register", free_name(_called(one, part), taken), kind)
            homes[same] = home
            load = Load(
                statement=one.statement,
                part=part,
                target=home.at(),
                reads=one.reads,
                types=one.types,
                integers=_integers(one, part),
            )
            front.extend((Declare(buffer=home), load))
        return None if kind is None else homes[same]

    def changed(one: Compute) -> Compute:
        value, ends = one.statement.value, partial(stays, one)
        if one.flag or one.reciprocals or one.inverts or not any(map(branches, preorder(value))):
            return one
        parts = [part for part in always(value, ends) if ends(part)]
        found = {id(part): home for part in parts if (home := home_of(one, part)) is not None}
        return _reading(one, found) if found else one

    (found,) = mapped_of((loop,), Compute, changed)
    return tuple(front), found if isinstance(found, For) else loop


def _floating_type(one: Compute, part: Expression) -> ElementType | None:
    return floating_type(part, lambda number: one.reads[number].buffer.element_type)


def _divides_integers(one: Compute, part: Expression) -> bool:
    """Tell whether a node may end a program where nothing comes to it: by a divisor of 0."""
    quotient = isinstance(part, Binary) and part.operator in ("/", "%")
    return quotient and _floating_type(one, part) is None


def _nodes(one: Compute, part: Expression) -> _Part:
    integers = iter(_integers(one, part))
    return tuple(
        one.reads[node.access]
        if isinstance(node, Read)
        else next(integers)
        if isinstance(node, AffineValue)
        else label(node)
        for node in preorder(part)
    )


def _called(one: Compute, part: Expression) -> str:
    """Return what a part is called: as its function, or as what it divides."""
    names = [own.function for own in preorder(part) if isinstance(own, Call)]
    return f"{[*names, *(one.reads[at].buffer.name for at in reads_in(part))][0]}_once"


def _integers(one: Compute, part: Expression) -> IntExprs:
    """Return what the affine functions in a part of a statement's value are."""
    own = affine_values(one.statement.value)
    known = {id(each): value for each, value in zip(own, one.integers, strict=True)}
    return tuple(known[id(each)] for each in affine_values(part))


def _reading(one: Compute, homes: Mapping[int, Buffer]) -> Compute:
    """Return a statement that reads registers in the place of parts of its value, by identity."""
    statement, own = one.statement, distinct(homes.values())
    numbers = {home: Read(access=at) for at, home in enumerate(own, len(one.reads))}
    made = dict[int, Expression]()
    for node in reversed([*preorder(statement.value)]):  # parts come before what they are parts of
        home = homes.get(id(node))
        made[id(node)] = (
            rebuilt(node, lambda part: made[id(part)]) if home is None else numbers[home]
        )
    value = made[id(statement.value)]
    read = partial(replace, statement.write, kind=AccessKind.READ)
    accesses = (*statement.accesses, *(read(array=home.name, text=home.name) for home in own))
    return replace(
        one,
        statement=replace(statement, value=value, accesses=accesses),
        reads=(*one.reads, *(home.at() for home in own)),
        integers=_integers(one, value),
        types={**one.types, **{home.name: home.element_type for home in own}},
    )
