"""Which sums go on in the registers of other sums that they are added to.

    for (k < i) t[i][j] += B[k][j] * A[i][k];
    C[i][j] = beta * C[i][j] + alpha * t[i][j];
    for (k > i) C[i][j] += alpha * A[k][i] * B[k][j];

The sum of the last line and ``t`` are multiplied by the same factors and added up. So the last loop
may go on with ``t`` where the first one ended, and ``C`` needs no registers meanwhile. This says so
of statements; :mod:`eatss.transform.epilogues` makes the code.
"""

from __future__ import annotations

from collections.abc import Sequence

import islpy as isl

from eatss.isl_names import without_parameters
from eatss.lower.storage import Registers, StoragePlan
from eatss.schedule.mapping import Mapping
from eatss.schedule.parts import Part
from eatss.schedule.pieces import Piece
from eatss.scops import Expression, Read, Scop, Statement
from eatss.scops.expression import added_to, addends, factors


def continued_sums(
    scop: Scop, piece: Piece, mapping: Mapping, storage: StoragePlan, parts: Sequence[Part]
) -> frozenset[str]:
    """Return the arrays whose sums need no registers: they go on in those of other sums.

    Args:
        scop: the region.
        piece: the statements of the kernel.
        mapping: of its loops.
        storage: what may live in registers.
        parts: of the piece, in their order.
    """
    if mapping.split is not None or mapping.shared is not None:
        return frozenset()
    found = _Finding(scop, piece, mapping, parts)
    return frozenset(
        own.array
        for own in storage.registers
        if any(found.goes_on(own, other) for other in storage.registers if other is not own)
    )


class _Finding:
    def __init__(self, scop: Scop, piece: Piece, mapping: Mapping, parts: Sequence[Part]) -> None:
        self._scop, self._piece = scop, piece
        mapped = {loop.name for loop in mapping.mapped}
        self._others = [loop.name for loop in piece.band if loop.name not in mapped]
        self._at = {name: at for at, part in enumerate(parts) for name in part.statements}
        written = {one.write.array for one in piece.statements}
        self._scalars = {
            array.name for array in scop.arrays if not array.n_dims and array.name not in written
        }

    def goes_on(self, own: Registers, other: Registers) -> bool:
        """Tell whether the sum of one array may go on in the registers of another one."""
        types = {self._scop.array(one.array).element_type for one in (own, other)}
        users = [self._piece.statement(name) for name in sorted({n for n, _ in own.places})]
        added = {one.name: self._factors_of_sum(one) for one in users}
        finishes = [one for one in users if not added[one.name]]
        updates = [one for one in users if added[one.name]]
        if len(types) > 1 or len(finishes) != 1 or not updates:
            return False
        (finish,) = finishes
        wanted = added[updates[0].name]
        return (
            all(added[one.name] == wanted for one in updates)
            and self._adds(finish, other, wanted)
            and self._in_order(finish, updates, other)
            and all(self._points(one).is_subset(self._points(finish)) for one in updates)
        )

    def _factors_of_sum(self, statement: Statement) -> tuple[str, ...]:
        """Return the scalars by which a statement multiplies what it adds; none if it adds none."""
        value = added_to(
            statement.value,
            lambda one: self._is_target(statement, one),
            lambda access: self._scop.array(statement.accesses[access].array).element_type,
        )
        parts = [] if value is None else list(factors(value))
        scalars = [name for one in parts if (name := self._scalar(statement, one)) is not None]
        return tuple(sorted(scalars)) if len(scalars) < len(parts) else ()

    def _adds(self, finish: Statement, other: Registers, wanted: Sequence[str]) -> bool:
        """Tell whether a statement adds another sum once, multiplied by the same scalars."""
        reads = [n for name, n in other.places if name == finish.name]
        if finish.write.array == other.array or len(reads) != 1:
            return False
        for part in addends(finish.value):
            own = list(factors(part))
            if any(isinstance(one, Read) and one.access == reads[0] for one in own):
                scalars = [self._scalar(finish, one) for one in own]
                names = sorted(name for name in scalars if name is not None)
                return len(names) == len(own) - 1 and tuple(names) == tuple(wanted)
        return False

    def _in_order(self, finish: Statement, updates: Sequence[Statement], other: Registers) -> bool:
        """Tell whether the other sum is there before this one begins, and is read nowhere else."""
        first = min(self._at[one.name] for one in updates)
        rest = {name for name, _ in other.places} - {finish.name}
        return all(
            self._at[name] < first and self._piece.statement(name).write.array == other.array
            for name in rest
        )

    def _points(self, statement: Statement) -> isl.Set:
        return without_parameters(self._piece.domain_of(statement.name).params(), self._others)

    def _is_target(self, statement: Statement, one: Expression) -> bool:
        if not isinstance(one, Read):
            return False
        access = statement.accesses[one.access]
        return (access.array, access.text) == (statement.write.array, statement.write.text)

    def _scalar(self, statement: Statement, one: Expression) -> str | None:
        if not isinstance(one, Read):
            return None
        name = statement.accesses[one.access].array
        return name if name in self._scalars else None
