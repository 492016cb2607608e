"""Uniformly generated references: those that differ by constants only, ``A[i-1]`` and ``A[i]``."""

from __future__ import annotations

from dataclasses import dataclass

from eatss.analysis.structure import LaunchFacts
from eatss.analysis.touched import TouchedBox
from eatss.analysis.work import AccessFacts, StatementFacts


@dataclass(frozen=True, slots=True)
class UniformSet:
    """The accesses of one statement that are uniformly generated [Wolf and Lam, PLDI 1991].

    ``spans`` are, for each dimension, the differences of their constants; ``count`` is how many
    elements one point touches through them, ``rows`` in how many rows of the array. ``held`` says
    that registers have them; ``group`` is the position of the stageable group they belong to.
    ``touched`` are the boxes of the accesses.
    """

    access: AccessFacts
    spans: tuple[int, ...]
    count: int
    rows: int
    reads: int
    writes: bool
    held: bool
    group: int | None
    touched: tuple[TouchedBox, ...]


def uniform_sets(statement: StatementFacts, launch: LaunchFacts) -> tuple[UniformSet, ...]:
    """Return the accesses of a statement, those that differ by constants together."""
    held = {at for own in launch.held for at in own.references}
    alike: dict[object, list[AccessFacts]] = {}
    for access in statement.accesses:
        group = _group_of(access, launch)
        form = access.terms
        key = access.array, form, access.reference in held, group, access.writes
        alike.setdefault(key, []).append(access)
    uniform_sets = []
    for accesses in alike.values():
        first = accesses[0]
        offsets = list(zip(*(tuple(c for _, c in a.subscripts) for a in accesses), strict=True))
        uniform_sets.append(
            UniformSet(
                access=first,
                spans=tuple(max(along) - min(along) for along in offsets),
                count=len(accesses),
                rows=len({tuple(c for _, c in a.subscripts)[:-1] for a in accesses}),
                reads=sum(1 for a in accesses if a.reads),
                writes=any(a.writes for a in accesses),
                held=first.reference in held,
                group=_group_of(first, launch),
                touched=tuple(a.touched for a in accesses if a.touched is not None),
            )
        )
    return tuple(uniform_sets)


def _group_of(access: AccessFacts, launch: LaunchFacts) -> int | None:
    found = (at for at, group in enumerate(launch.stageable) if access.reference in group)
    return next(found, None)
