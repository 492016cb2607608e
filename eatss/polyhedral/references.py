"""Distinct references of a kernel: accesses as functions of the kernel's loops, merged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import islpy as isl

from eatss.isl_names import (
    affine_form,
    coalesced,
    involved_dims,
    involved_parameters,
    name_inputs,
    output_affs,
)
from eatss.polyhedral.accesses import first_equal
from eatss.polyhedral.kernel import Reference, Subscript
from eatss.scops import Access, Statement


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
    """Accesses found to be one reference so far; ``depth`` is that of the access in ``text``."""

    array: str
    text: str
    depth: int
    statements: list[str]
    reads: bool
    writes: bool
    subscripts: tuple[Subscript, ...]
    relation: isl.Map


def merge_references(placed: Sequence[Placed], loops: Sequence[str]) -> tuple[Reference, ...]:
    """Return the distinct references of the statements, in order of first appearance.

    Two accesses are one reference if their subscripts are the same functions of the
    kernel's loops, or if wherever one of them happens the other touches the same
    element, as an initialisation that sits at the first iteration of its reduction.
    """
    groups: dict[tuple[object, ...], _Group] = {}
    for item in placed:
        back = item.schedule.reverse()
        seen: dict[int, tuple[tuple[object, ...], isl.Map]] = {}
        accesses = item.statement.accesses
        for access, first in zip(accesses, first_equal(accesses), strict=True):
            if first not in seen:
                relation = back.apply_range(access.relation)
                seen[first] = (_key(access.array, relation, loops), relation)
            key, relation = seen[first]
            if key in groups:
                _absorb(groups[key], item.statement.name, access, item, relation)
            else:
                groups[key] = _new_group(item, access, relation, loops)
    return tuple(_reference(group, loops) for group in _joined(list(groups.values())))


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
        host = next(
            (
                other
                for other_shape, others in by_shape.items()
                if other_shape[0] == group.array and (other_shape != shape or None in shape)
                for other in others
                if not _is_apart(other, group) and _same_elements(other, group)
            ),
            None,
        )
        if host is None:
            merged.append(group)
            by_shape.setdefault(shape, []).append(group)
        else:
            _join(host, group)
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


def _functions(relation: isl.Map, loops: Sequence[str]) -> tuple[isl.PwAff, ...]:
    """Return the subscripts as functions of the kernel's loops, by name."""
    return output_affs(name_inputs(relation, loops))


def _key(array: str, relation: isl.Map, loops: Sequence[str]) -> tuple[object, ...]:
    functions = _functions(relation, loops)
    return (array, *(affine_form(function) or str(function) for function in functions))


def _new_group(item: Placed, access: Access, relation: isl.Map, loops: Sequence[str]) -> _Group:
    return _Group(
        array=access.array,
        text=access.text,
        depth=len(item.statement.loops),
        statements=[item.statement.name],
        reads=not access.is_write,
        writes=access.is_write,
        subscripts=tuple(_subscript(f) for f in _functions(relation, loops)),
        relation=relation,
    )


def _absorb(group: _Group, name: str, access: Access, item: Placed, relation: isl.Map) -> None:
    """Add an access with the same subscripts to ``group``."""
    if name not in group.statements:
        group.statements.append(name)
        group.relation = coalesced(group.relation.union(relation))
    if len(item.statement.loops) > group.depth:
        group.text, group.depth = access.text, len(item.statement.loops)
    group.reads |= not access.is_write
    group.writes |= access.is_write


def _same_elements(one: _Group, other: _Group) -> bool:
    return bool(other.relation.is_subset(one.relation) or one.relation.is_subset(other.relation))


def _join(host: _Group, group: _Group) -> None:
    """Add ``group`` to ``host``; the deeper of the two gives text and subscripts."""
    if group.depth > host.depth:
        host.text, host.depth = group.text, group.depth
    if host.relation.is_subset(group.relation):
        host.subscripts, host.relation = group.subscripts, group.relation
    host.statements.extend(name for name in group.statements if name not in host.statements)
    host.reads |= group.reads
    host.writes |= group.writes


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


def _reference(group: _Group, loops: Sequence[str]) -> Reference:
    return Reference(
        array=group.array,
        text=group.text,
        statements=tuple(group.statements),
        reads=group.reads,
        writes=group.writes,
        subscripts=group.subscripts,
        relation=name_inputs(group.relation, loops),
    )
