"""Which sums of products of a launch an instruction of warps can compute.

    for (k = 0; k < NK; k++)
        C[i][j] += alpha * A[i][k] * B[k][j];

The factors of a product are in two groups: one moves along ``i`` and ``k``, the other along ``k``
and ``j``. This says so of statements, sizes aside;
:func:`eatss.lower.transform.use_instruction.use_warp_instruction` makes the code.

Which sums go on in the registers of other sums that they are added to.

    for (k < i) t[i][j] += B[k][j] * A[i][k];
    C[i][j] = beta * C[i][j] + alpha * t[i][j];
    for (k > i) C[i][j] += alpha * A[k][i] * B[k][j];

The sum of the last line and ``t`` are multiplied by the same factors and added up. So the last loop
may go on with ``t`` where the first one ended, and ``C`` needs no registers meanwhile. This says so
of statements; :mod:`eatss.lower.transform.epilogues` makes the code.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Mapping as Types
from itertools import combinations, permutations

import islpy as isl

from eatss.analysis.facts import KernelFacts, StatementFacts
from eatss.analysis.variant import LaunchFacts, ProductFacts, WarpInstruction
from eatss.base.frozen import Names, Numbers, called, distinct, frozen, their_names
from eatss.cards.profile import GpuProfile, Tf32
from eatss.lower.instructions.products import PRODUCTS
from eatss.lower.kernel.instruction import Instruction
from eatss.lower.mapping import Mapping
from eatss.lower.pieces import Part, Piece
from eatss.lower.storage import Registers, StoragePlan
from eatss.polyhedral.expression import (
    AffineValue,
    Cast,
    ElementType,
    Expression,
    Read,
    Unary,
    added_to,
    addends,
    factors,
    narrow_factor,
    preorder,
    reads_in,
    terms,
)
from eatss.polyhedral.isl_names import involved_dims, without_parameters
from eatss.polyhedral.scop import Place, Statement

_TF32_PARTS: dict[Tf32, int] = {"off": 0, "on": 1, "split": 2}
"""Numbers in TF32 that a float may become."""


def warp_instructions(profile: GpuProfile, tf32: Tf32 = "off") -> Iterator[WarpInstruction]:
    """Yield the instructions of warps that a card has and that are faster than plain ones there.

    Those that round factors are left out, unless ``tf32`` asks for them. Of several that compute
    the same the one with the largest matrix of sums is left, and of those the one with the fewest
    steps: what a step loads takes registers.
    """
    found: dict[Names, list[WarpInstruction]] = {}
    for one in PRODUCTS:
        own, kind = described(one), max(one.element_types, key=lambda own: own.size_bytes)
        wide = kind is ElementType.DOUBLE
        slow = profile.peak_fp64_gflops if wide else profile.peak_fp32_gflops
        fast = profile.peak_tensor_gflops(own.format)
        if slow is None or fast is None or fast <= slow * own.products:
            continue
        fits = one.least(kind).least <= profile.compute_capability
        if fits and own.parts == (_TF32_PARTS[tf32] if own.format == "tf32" else 1):
            factors = (kind.value for kind in one.factor_types.values())
            found.setdefault((own.format, *factors), []).append(own)
    for alike in found.values():
        yield max(alike, key=lambda own: (own.rows * own.columns, -own.steps))


def described(instruction: Instruction) -> WarpInstruction:
    """Return the sizes of an instruction of warps, and what tensor cores do for it."""
    extents = dict(instruction.instances)
    rows, columns = instruction.lanes
    first = next(one for one in instruction.operands if one.role == "in")
    beside = [
        one.extent
        for one in first.slots(instruction.lanes)
        if first.held.stride(one.name, dimension=1) == 1
    ]
    does = instruction.multiplying
    width = max(kind.size_bytes for kind in instruction.element_types)
    return WarpInstruction(
        name=instruction.name,
        rows=extents["i"],
        columns=extents["j"],
        steps=extents["k"],
        lanes=(rows.extent, columns.extent),
        steps_beside=max(beside, default=1),
        element_bytes=width,
        factor_bytes=first.element_type.size_bytes if first.element_type else width,
        format=does.format,
        products=does.products,
        parts=does.parts,
        conversions=does.conversions,
    )


def product_loops(parallel: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the pairs of parallel loops that may be rows and columns, the innermost pair first."""
    yield from reversed(list(combinations(parallel, 2)))


@frozen
class WarpProducts:
    """Finds the products of a launch over rows and columns.

    ``cut`` says what registers keep and what may be staged, ``facts`` are of the kernel, whose
    names of ``loops`` are used. Arrays have ``types``, warps multiply by the ``instruction``.
    """

    piece: Piece
    facts: KernelFacts
    cut: LaunchFacts
    loops: tuple[str, str]
    instruction: Instruction
    types: Types[str, ElementType]

    def of_part(self, part: Part) -> tuple[ProductFacts, ...]:
        """Return the products of a part; none if a statement of it is none."""
        sources = {loop.name: loop.source_name for loop in self.piece.band}
        statements = [self.piece.statement(name) for name in part.statements]
        if not part.serial or len({one.write.text for one in statements}) != 1:
            return ()
        found = [self._of_statement(one, sources[part.serial[-1]]) for one in statements]
        return tuple(one for own in found for one in own) if all(found) else ()

    def _of_statement(self, statement: Statement, sum_loop: str) -> tuple[ProductFacts, ...]:
        """Return the products that a statement adds; none if it adds something else, too."""
        work = called(statement.name, self.facts.work.statements)
        kind, loops = self.types[statement.write.array], {*self.loops, sum_loop}
        inner = {*their_names(self.facts.inner_loops)}

        def type_of(access: int) -> ElementType:
            return self.types[statement.accesses[access].array]

        value = added_to(statement.value, lambda one: _is_target(statement, one), type_of)
        # elements may count as those of another type
        adds = any(
            one.size_bytes == work.element_bytes and one.is_floating == kind.is_floating
            for one in self.instruction.element_types
        )
        if (
            value is None
            or not adds
            or not loops <= {*work.loops}
            or not inner.isdisjoint(work.loops)
            or not _has_whole_tiles(statement, work, loops)
            or self._reference(statement, 0) not in self._held
        ):
            return ()
        rows, columns = self.loops
        found = []
        for term in terms(value, type_of):
            references = self._references(statement, work, term, sum_loop)
            if references is None:
                return ()
            alone = self._read_alone(statement, term)
            found.append(
                ProductFacts(
                    statement=statement.name,
                    rows=rows,
                    columns=columns,
                    sum_loop=sum_loop,
                    references=references,
                    ends_whole=any(sum_loop in _moving(work, at) for at in alone),
                )
            )
        return tuple(found)

    def _reference(self, statement: Statement, number: int) -> int | None:
        """Return which reference of the kernel an access is; none for a scalar."""
        return next(iter(references_at(self.facts, self.piece, [(statement.name, number)])), None)

    def _read_alone(self, statement: Statement, product: Expression) -> Iterator[int]:
        """Yield the references that are factors, with another sign or type at most."""
        for factor in factors(product):
            inner = factor.operand if isinstance(factor, Unary | Cast) else factor
            at = self._reference(statement, inner.access) if isinstance(inner, Read) else None
            if at is not None:
                yield at

    @property
    def _held(self) -> set[int]:
        return {at for own in self.cut.held for at in own.references}

    def _references(
        self,
        statement: Statement,
        work: StatementFacts,
        value: Expression,
        sum_loop: str,
    ) -> Numbers | None:
        """Return the references of a product whose factors are those of two matrices.

        Where the instruction takes factors of other types, each of both groups has one, of the type
        that stands for the group, converted. Scalars beside them wait until the sum is there.
        """
        loops, types = set(self.loops), self.types
        stageable = {at for group in self.cut.stageable for at in group}
        changing = {one.write.array for one in self.piece.statements}
        along: dict[str, set[str]] = {loop: set() for loop in self.loops}
        references = []
        wanted = tuple(self.instruction.factor_types.values())
        narrowed = set()
        for factor in factors(value):
            affine = [one for one in preorder(factor) if isinstance(one, AffineValue)]
            if any(one is not factor or involved_dims(one.value) for one in affine):
                return None  # which no lane knows of the others' points
            reads = reads_in(factor)
            places = {n: self._reference(statement, n) for n in reads}
            own = {at for at in places.values() if at is not None}
            moving = {loop for at in own for loop in _moving(work, at)}
            scalars = {statement.accesses[n].array for n, at in places.items() if at is None}
            inside = bool(moving & loops)
            if loops <= moving or own & self._held or scalars & changing:
                return None
            if inside and not own <= stageable:
                return None
            group = int(self.loops[1] in moving)
            if wanted and (own or inside):
                kinds = {n: types[statement.accesses[n].array] for n in reads}
                if group in narrowed or narrow_factor(factor, wanted[group], kinds) is None:
                    return None
                narrowed.add(group)
            along[self.loops[group]] |= moving
            references += sorted(own)
        if not all({loop, sum_loop} <= moving for loop, moving in along.items()):
            return None
        return distinct(references)


def _has_whole_tiles(statement: Statement, work: StatementFacts, loops: set[str]) -> bool:
    """Tell whether tiles may be full: no loop takes steps, and not all bound each other."""
    hull = isl.Set.from_basic_set(statement.domain.affine_hull())
    return hull.plain_is_universe() and not loops <= set(work.coupled)


def _is_target(statement: Statement, one: Expression) -> bool:
    if not isinstance(one, Read):
        return False
    access = statement.accesses[one.access]
    return (access.array, access.text) == (statement.write.array, statement.write.text)


def references_at(kernel: KernelFacts, piece: Piece, places: Iterable[Place]) -> Numbers:
    """Return which references of the facts the accesses at some places are.

    Code for any size may distinguish references that are one at the sizes of the source: what
    is read of ``E[0][j]`` is read of ``E[k][j]``, too, where ``k`` has a first value.
    """
    found = set()
    for place in places:
        access = piece.access(place)
        own = [
            at
            for at, one in enumerate(kernel.references)
            if one.array == access.array and place[0] in one.statements
        ]
        spelled = [at for at in own if kernel.references[at].access == access.text]
        found.update((spelled or own)[:1])
    return tuple(sorted(found))


def _moving(work: StatementFacts, reference: int) -> set[str]:
    return {n for one in work.accesses if one.reference == reference for n, _ in one.strides}


def reused_accumulators(
    piece: Piece, mapping: Mapping, storage: StoragePlan, parts: Sequence[Part]
) -> dict[str, str]:
    """Return the arrays whose sums need no registers, each with that in whose they go on.

    Args:
        piece: the statements of the kernel.
        mapping: of its loops.
        storage: what may live in registers.
        parts: of the piece, in their order.
    """
    if mapping.shares_sums:
        return {}
    written = {one.write.array for one in piece.statements}
    found = _Continuing(
        piece=piece,
        others=tuple(piece.others(their_names(mapping.mapped))),
        at={name: at for at, part in enumerate(parts) for name in part.statements},
        scalars=frozenset(
            a.name for a in piece.scop.arrays if not a.n_dims and a.name not in written
        ),
    )
    pairs = permutations(storage.registers, 2)
    return {own.array: other.array for own, other in pairs if found.goes_on(own, other)}


@frozen
class _Continuing:
    """Sums of a kernel: where their statements stand, the loops that no thread is at a point of."""

    piece: Piece
    others: Names
    at: Types[str, int]
    scalars: frozenset[str]

    def goes_on(self, own: Registers, other: Registers) -> bool:
        """Tell whether the sum of one array may go on in the registers of another one."""
        types = {self.piece.scop.array(one.array).element_type for one in (own, other)}
        users = [self.piece.statement(name) for name in sorted({n for n, _ in own.places})]
        added = {one.name: self._factors_of_sum(one) for one in users}
        finishes = [one for one in users if not added[one.name]]
        updates = [one for one in users if added[one.name]]
        if len(types) > 1 or len(finishes) != 1 or len({*added.values()}) != 2:
            return False
        (finish,) = finishes
        points = self._points(finish)
        first = min(self.at[one.name] for one in updates)
        # the other sum is there before this one begins, and is read nowhere else
        return (
            self._adds(finish, other, added[updates[0].name])
            and all(
                self.at[name] < first and self.piece.statement(name).write.array == other.array
                for name in {name for name, _ in other.places} - {finish.name}
            )
            and all(self._points(one).is_subset(points) for one in updates)
        )

    def _factors_of_sum(self, statement: Statement) -> Names:
        """Return the scalars by which a statement multiplies what it adds; none if it adds none."""
        value = added_to(
            statement.value,
            lambda one: _is_target(statement, one),
            lambda access: self.piece.scop.array(statement.accesses[access].array).element_type,
        )
        parts = [] if value is None else list(factors(value))
        scalars = self._scalars_of(statement, parts)
        return scalars if len(scalars) < len(parts) else ()

    def _adds(self, finish: Statement, other: Registers, wanted: Names) -> bool:
        """Tell whether a statement adds another sum once, multiplied by the same scalars."""
        reads = [n for name, n in other.places if name == finish.name]
        if finish.write.array == other.array or len(reads) != 1:
            return False
        for part in addends(finish.value):
            own = list(factors(part))
            if any(isinstance(one, Read) and one.access == reads[0] for one in own):
                names = self._scalars_of(finish, own)
                return len(names) == len(own) - 1 and names == wanted
        return False

    def _points(self, statement: Statement) -> isl.Set:
        return without_parameters(self.piece.domain_of(statement.name).params(), self.others)

    def _scalars_of(self, statement: Statement, parts: Sequence[Expression]) -> Names:
        """Return the factors that are scalars which nothing writes, in the order of their names."""
        reads = (one.access for one in parts if isinstance(one, Read))
        names = (statement.accesses[at].array for at in reads)
        return tuple(sorted(name for name in names if name in self.scalars))
