"""Distinct references of a kernel: accesses as functions of the kernel's loops, merged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import islpy as isl

from eatss.polyhedral.accesses import first_equal
from eatss.polyhedral.isl_names import (
    affine_form,
    coalesced,
    involved_dims,
    involved_parameters,
    name_inputs,
    output_affs,
)
from eatss.polyhedral.kernel import Reference, Subscript
from eatss.polyhedral.scops import Access, Statement


@dataclass(frozen=True, slots=True)
class Placed:
    """A statement in a kernel.

    ``schedule`` maps its instances to kernel points, counters of host loops being
    parameters; ``moving`` are the kernel's loops its instances move along.
    """

    statement: Statement
    schedule: isl.Map
    moving: tuple[str, ...]


@dataclass(slots=True)
class _Group:
    """Uses found to be one reference so far: accesses with their statements."""

    relation: isl.Map
    subscripts: tuple[Subscript, ...]
    uses: list[tuple[Statement, Access]]

    @property
    def array(self) -> str:
        """What is accessed."""
        return self.uses[0][1].array

    @property
    def statements(self) -> tuple[str, ...]:
        """Which statements do, in order."""
        return tuple(dict.fromkeys(statement.name for statement, _ in self.uses))


def merge_references(placed: Sequence[Placed], loops: Sequence[str]) -> tuple[Reference, ...]:
    """Return the distinct references of the statements, in order of first appearance.

    Two accesses are one reference if their subscripts are the same functions of the
    kernel's loops, or if wherever one of them happens the other touches the same
    element, as an initialisation that sits at the first iteration of its reduction. The access of
    the deepest statement gives the text.
    """
    groups: dict[tuple[object, ...], _Group] = {}
    for item in placed:
        back = item.schedule.reverse()
        seen: dict[int, _Group] = {}
        accesses = item.statement.accesses
        for access, first in zip(accesses, first_equal(accesses), strict=True):
            if first not in seen:
                relation = back.apply_range(access.relation)
                functions = output_affs(name_inputs(relation, loops))
                key = (access.array, *(affine_form(one) or str(one) for one in functions))
                if key not in groups:
                    groups[key] = _Group(relation, tuple(map(_subscript, functions)), [])
                elif item.statement.name not in groups[key].statements:
                    groups[key].relation = coalesced(groups[key].relation.union(relation))
                seen[first] = groups[key]
            seen[first].uses.append((item.statement, access))
    return tuple(
        Reference(
            array=group.array,
            text=max(group.uses, key=lambda use: len(use[0].loops))[1].text,
            statements=group.statements,
            reads=not all(access.is_write for _, access in group.uses),
            writes=any(access.is_write for _, access in group.uses),
            subscripts=group.subscripts,
            relation=name_inputs(group.relation, loops),
        )
        for group in _joined([*groups.values()])
    )


def _joined(groups: Sequence[_Group]) -> list[_Group]:
    """Join the groups that touch the same elements, in order of first appearance.

    Subscripts that differ by a constant only never do, so groups are compared with those
    of another shape: a stencil of thousands of points costs no isl at all, whatever the subscript
    of its time buffer is.
    """
    merged: list[_Group] = []
    by_shape: dict[tuple[object, ...], list[_Group]] = {}
    for group in groups:
        shape = _shape(group)
        others = (
            other
            for other_shape, alike in by_shape.items()
            if other_shape[0] == group.array and (other_shape != shape or None in shape)
            for other in alike
            if not _is_apart(other, group)
        )
        for host in others:
            is_inside = host.relation.is_subset(group.relation)
            if group.relation.is_subset(host.relation) or is_inside:
                if is_inside:
                    host.subscripts, host.relation = group.subscripts, group.relation
                host.uses += group.uses
                break
        else:
            merged.append(group)
            by_shape.setdefault(shape, []).append(group)
    return merged


def _shape(group: _Group) -> tuple[object, ...]:
    """Return array and subscripts without their constants; ``None`` for one that is not affine."""
    return (
        group.array,
        *((s.coefficients, s.symbols) if s.affine else None for s in group.subscripts),
    )


def _is_apart(one: _Group, other: _Group) -> bool:
    """Tell whether a subscript of both differs by a constant only."""
    return any(
        a.affine
        and b.affine
        and (a.coefficients, a.symbols) == (b.coefficients, b.symbols)
        and a.offset != b.offset
        for a, b in zip(one.subscripts, other.subscripts, strict=True)
    )


def _subscript(function: isl.PwAff) -> Subscript:
    form = affine_form(function)
    if form is None:
        return Subscript(
            coefficients=tuple((name, 0) for name in involved_dims(function)),
            symbols=tuple((name, 0) for name in sorted(involved_parameters(function))),
            offset=0,
            affine=False,
        )
    return Subscript(
        coefficients=form.coefficients,
        symbols=tuple(sorted(form.parameters)),
        offset=form.constant,
    )
