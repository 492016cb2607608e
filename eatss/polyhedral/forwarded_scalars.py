"""Scalars that only carry a value within one iteration: readers take it from elsewhere.

    for (j …) { e = exp(S[i][j] - m); O[i][j] = e; z += e; }
    for (j …) { d = S[i][j] - m; v += d * d; }

What joins two statements by a scalar of each thread has to stay in one thread, a sum among it. A
value that is stored anyway is read from where it is stored: ``O[i][j] = exp(S[i][j] - m);
z += O[i][j];``. Any other is computed where it is read, ``v += (S[i][j] - m) * (S[i][j] - m);``,
once by each statement that reads it.
"""

from __future__ import annotations

from dataclasses import replace

import islpy as isl

from eatss.isl_names import maps_of
from eatss.polyhedral.accesses import first_equal
from eatss.polyhedral.live_ranges import LiveRange, live_ranges
from eatss.polyhedral.recomputed_producers import with_values_anew
from eatss.scops import Access, Call, Read, Scop, Statement
from eatss.scops.expression import preorder


def with_forwarded_scalars(scop: Scop, *, calls: bool) -> Scop:
    """Return a region whose sums read no scalars that carry a value within one iteration.

    The region itself where they read none. ``calls`` says whether functions may be called by each
    of several readers.
    """
    found, changed = scop, _forwarded(scop, calls)
    while changed is not None:
        found, changed = changed, _forwarded(changed, calls)
    if found is scop:
        return scop
    used = {access.array for statement in found.statements for access in statement.accesses}
    arrays = tuple(one for one in found.arrays if one.n_dims or one.name in used)
    return replace(found, arrays=arrays, written=scop.written or scop)


def _forwarded(scop: Scop, calls: bool) -> Scop | None:
    """Return the region with the last such scalar gone, ``None`` if there is none."""
    if not any(map(_adds_up, scop.statements)):
        return None
    for values in reversed([*live_ranges(scop)]):
        writer = _writer(scop, values)
        readers = _readers(values)
        if writer is None or not any(_adds_up(scop.statement(name)) for name in readers):
            continue
        found = _stored(scop, values, writer)
        if found is None and (calls or len(readers) == 1 or not _calls(writer)):
            found = with_values_anew(scop, _reads(values))
        if found is not None:
            return found
    return None


def _adds_up(statement: Statement) -> bool:
    return any(read.array == statement.write.array for read in statement.reads)


def _writer(scop: Scop, values: LiveRange) -> Statement | None:
    """Return the one statement that gives a scalar the values, which stay in its iteration."""
    names = {name for name, at in values.places if not at}
    if len(names) != 1 or names <= _readers(values):
        return None
    writer = scop.statement(names.pop())
    return writer if values.depth == len(writer.loops) else None


def _reads(values: LiveRange) -> list[tuple[str, int]]:
    return sorted((name, at) for name, at in values.places if at)


def _readers(values: LiveRange) -> set[str]:
    return {name for name, _ in _reads(values)}


def _calls(statement: Statement) -> bool:
    return any(isinstance(node, Call) for node in preorder(statement.value))


def _stored(scop: Scop, values: LiveRange, writer: Statement) -> Scop | None:
    """Return the region with a value written to where it is stored, ``None`` if it is not.

    The statement that stores it goes. In between nothing reads or writes that array, and up to the
    last reader of the value nothing writes it.
    """
    names = [statement.name for statement in scop.statements]
    first, last = names.index(writer.name), max(names.index(name) for name in _readers(values))
    for name, at in _reads(values):
        storing = scop.statement(name)
        array = scop.array(storing.write.array)
        place = names.index(name)
        between = scop.statements[first + 1 : place]
        after = scop.statements[place + 1 : last + 1]
        if (
            storing.value == Read(access=at)
            and array.n_dims
            and array.element_type is values.scalar.element_type
            and storing.domain.set_tuple_name(writer.name).is_equal(writer.domain)
            and not any(one.array == array.name for other in between for one in other.accesses)
            and not any(other.write.array == array.name for other in after)
        ):
            return _written_there(scop, values, writer, storing)
    return None


def _written_there(scop: Scop, values: LiveRange, writer: Statement, storing: Statement) -> Scop:
    """Return the region in which the writer stores its value where another statement did."""
    write = replace(
        storing.write,
        relation=storing.write.relation.set_tuple_name(isl.dim_type.in_, writer.name),
    )
    changed = {writer.name: replace(writer, accesses=(write, *writer.reads))}
    for name in _readers(values) - {storing.name}:
        reader = scop.statement(name)
        changed[name] = _reading(reader, values, write)
    return replace(
        scop,
        statements=tuple(
            changed.get(one.name, one) for one in scop.statements if one is not storing
        ),
    )


def _reading(reader: Statement, values: LiveRange, write: Access) -> Statement:
    """Return a reader that gets the value from where it is written to."""
    instances = values.flow.intersect_range(reader.domain.to_union_set()).reverse()
    (relation,) = maps_of(instances.apply_range(write.relation.to_union_map()))
    firsts = first_equal(reader.accesses)
    return replace(
        reader,
        accesses=tuple(
            replace(access, array=write.array, relation=relation, text=write.text)
            if (reader.name, first) in values.places
            else access
            for access, first in zip(reader.accesses, firsts, strict=True)
        ),
    )
