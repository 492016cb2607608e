"""Which sums of products of a launch an instruction of warps can compute.

    for (k = 0; k < NK; k++)
        C[i][j] += alpha * A[i][k] * B[k][j];

The factors of a product are in two groups: one moves along ``i`` and ``k``, the other along ``k``
and ``j``. This says so of statements, sizes aside;
:func:`eatss.transform.use_instruction.use_warp_instruction` makes the code.

Which sums go on in the registers of other sums that they are added to.

    for (k < i) t[i][j] += B[k][j] * A[i][k];
    C[i][j] = beta * C[i][j] + alpha * t[i][j];
    for (k > i) C[i][j] += alpha * A[k][i] * B[k][j];

The sum of the last line and ``t`` are multiplied by the same factors and added up. So the last loop
may go on with ``t`` where the first one ended, and ``C`` needs no registers meanwhile. This says so
of statements; :mod:`eatss.transform.epilogues` makes the code.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Mapping as Types
from itertools import combinations

import islpy as isl

from eatss.analysis.facts import KernelFacts
from eatss.analysis.structure import LaunchFacts, ProductFacts, WarpInstruction
from eatss.analysis.work import StatementFacts, reference_of
from eatss.gpu.profile import GpuProfile, Tf32
from eatss.instructions import INSTRUCTIONS
from eatss.isl_names import involved_dims, without_parameters
from eatss.kernel.instruction import Instruction
from eatss.lower.promotion import SharedTile
from eatss.lower.storage import Registers, StoragePlan
from eatss.plan.contract import fragment_padding
from eatss.polyhedral.kernel import Reference
from eatss.schedule.mapping import Mapping
from eatss.schedule.parts import Part
from eatss.schedule.pieces import Piece
from eatss.scops import (
    AffineValue,
    Cast,
    ElementType,
    Expression,
    Read,
    Scop,
    Statement,
    Unary,
    preorder,
)
from eatss.scops.expression import added_to, addends, factors, narrow_factor, terms

_TF32_PARTS: dict[Tf32, int] = {"off": 0, "on": 1, "split": 2}
"""Numbers in TF32 that a float may become."""


def warp_instructions(profile: GpuProfile, tf32: Tf32 = "off") -> Iterator[WarpInstruction]:
    """Yield the instructions of warps that a card has and that are faster than plain ones there.

    Those that round factors are left out, unless ``tf32`` asks for them. Of several that compute
    the same the one with the largest matrix of sums is left, and of those the one with the fewest
    steps: what a step loads takes registers.
    """
    found: dict[tuple[str, ...], list[WarpInstruction]] = {}
    for one in map(INSTRUCTIONS.get, INSTRUCTIONS.names()):
        if not _multiplies(one):
            continue
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


def _multiplies(instruction: Instruction) -> bool:
    """Tell whether a warp multiplies matrices by an instruction: rows, columns, steps."""
    return bool(instruction.lanes) and [n for n, _ in instruction.instances] == ["i", "j", "k"]


def may_fit(instruction: Instruction, mapping: Mapping) -> bool:
    """Tell whether the sizes of a layout are such that warps could use an instruction.

    A tile of some serial loop has whole steps, and each thread whole points.
    """
    if not _multiplies(instruction):
        return True
    own = described(instruction)
    loops = [loop for loop in mapping.mapped if loop.threads > 1]
    return any(tile.tile % own.steps == 0 for tile in mapping.serial) and all(
        loop.tile % (loop.threads * points) == 0
        for loop, points in zip(loops, own.points, strict=False)
    )


def product_loops(parallel: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the pairs of parallel loops that may be rows and columns, the innermost pair first."""
    yield from reversed(list(combinations(parallel, 2)))


def products_of(
    piece: Piece,
    facts: KernelFacts,
    part: Part,
    cut: LaunchFacts,
    loops: tuple[str, str],
    instruction: Instruction,
    types: Types[str, ElementType],
) -> tuple[ProductFacts, ...]:
    """Return the products of a part over rows and columns; none if a statement of it is none.

    Args:
        piece: the statements.
        facts: the kernel, whose names of loops are used.
        part: statements that share serial loops.
        cut: the launch, for what registers keep and what may be staged.
        loops: rows and columns.
        instruction: what warps multiply by.
        types: of arrays, by name.
    """
    sources = {loop.name: loop.source_name for loop in piece.band}
    if not part.serial:
        return ()
    sum_loop = sources[part.serial[-1]]
    found = [
        _products(piece, facts, name, cut, loops, sum_loop, instruction, types)
        for name in part.statements
    ]
    targets = {piece.statement(name).write.text for name in part.statements}
    return tuple(one for own in found for one in own) if len(targets) == 1 and all(found) else ()


def _products(
    piece: Piece,
    facts: KernelFacts,
    name: str,
    cut: LaunchFacts,
    loops: tuple[str, str],
    sum_loop: str,
    instruction: Instruction,
    types: Types[str, ElementType],
) -> tuple[ProductFacts, ...]:
    """Return the products that a statement adds; none if it adds something else, too."""
    statement = piece.statement(name)
    work = next(one for one in facts.work.statements if one.name == name)
    if not _adds(instruction, types[statement.write.array], work.element_bytes):
        return ()
    if not {*loops, sum_loop} <= set(work.loops):
        return ()
    if any(loop.name in work.loops for loop in facts.inner_loops) or not _has_whole_tiles(
        statement, work, {*loops, sum_loop}
    ):
        return ()
    held = {at for own in cut.held for at in own.references}
    known = tuple(one for one in piece.kernel.references if one.subscripts)

    def type_of(access: int) -> ElementType:
        return types[statement.accesses[access].array]

    value = added_to(statement.value, lambda one: _is_target(statement, one), type_of)
    if value is None or _reference(known, statement, 0) not in held:
        return ()
    rows, columns = loops
    found = []
    for term in terms(value, type_of):
        references = _factors_of(
            piece, statement, work, cut, known, term, loops, sum_loop, instruction, types
        )
        if references is None:
            return ()
        found.append(
            ProductFacts(
                statement=name,
                rows=rows,
                columns=columns,
                sum_loop=sum_loop,
                references=references,
                ends_whole=any(
                    sum_loop in _moving(work, at)
                    for at in _read_alone(statement, known, term)
                    if at is not None
                ),
            )
        )
    return tuple(found)


def _read_alone(
    statement: Statement, known: tuple[Reference, ...], product: Expression
) -> Iterator[int | None]:
    """Yield the references that are factors, with another sign or type at most."""
    for factor in factors(product):
        inner = factor.operand if isinstance(factor, Unary | Cast) else factor
        if isinstance(inner, Read):
            yield _reference(known, statement, inner.access)


def _factors_of(
    piece: Piece,
    statement: Statement,
    work: StatementFacts,
    cut: LaunchFacts,
    known: tuple[Reference, ...],
    value: Expression,
    loops: tuple[str, str],
    sum_loop: str,
    instruction: Instruction,
    types: Types[str, ElementType],
) -> tuple[int, ...] | None:
    """Return the references of a product whose factors are those of two matrices.

    Where the instruction takes factors of other types, each of both groups has one, of the type
    that stands for the group, converted. Scalars beside them have to wait until the sum is there.
    """
    held = {at for own in cut.held for at in own.references}
    stageable = {at for group in cut.stageable for at in group}
    changing = {one.write.array for one in piece.statements}
    along: dict[str, set[str]] = {loop: set() for loop in loops}
    references: list[int] = []
    wanted = tuple(instruction.factor_types.values())
    narrowed: set[int] = set()
    for factor in factors(value):
        affine = [one for one in preorder(factor) if isinstance(one, AffineValue)]
        if any(one is not factor or involved_dims(one.value) for one in affine):
            return None  # which no lane knows of the others' points
        reads = [one.access for one in preorder(factor) if isinstance(one, Read)]
        places = {n: _reference(known, statement, n) for n in reads}
        own = {at for at in places.values() if at is not None}
        moving = {loop for at in own for loop in _moving(work, at)}
        scalars = {statement.accesses[n].array for n, at in places.items() if at is None}
        inside = bool(moving & set(loops))
        if set(loops) <= moving or own & held or scalars & changing:
            return None
        if inside and not own <= stageable:
            return None
        group = int(loops[1] in moving)
        if wanted and (own or inside):
            kinds = {n: types[statement.accesses[n].array] for n in reads}
            if group in narrowed or narrow_factor(factor, wanted[group], kinds) is None:
                return None
            narrowed.add(group)
        along[loops[group]] |= moving
        references += sorted(own)
    if not all({loop, sum_loop} <= moving for loop, moving in along.items()):
        return None
    return tuple(dict.fromkeys(references))


def padding_of(
    tile: SharedTile,
    piece: Piece,
    facts: KernelFacts,
    mapping: Mapping,
    instruction: Instruction,
    turns: int,
) -> int:
    """Return the elements that rows of a tile are padded by so that lanes load fragments of it."""
    name, number = tile.place
    known = tuple(one for one in piece.kernel.references if one.subscripts)
    reference = _reference(known, piece.statement(name), number)
    work = next(one for one in facts.work.statements if one.name == name)
    access = next(one for one in work.accesses if one.reference == reference)
    rows, columns = (one.loop for one in mapping.warps)
    return fragment_padding(
        described(instruction),
        (rows.source_name, columns.source_name, tile.sum_loop),
        turns,
        [access.terms],
        tile.sizes,
        tile.element_type.size_bytes,
        columns.threads,
    )


def _adds(instruction: Instruction, kind: ElementType, element_bytes: int) -> bool:
    """Tell whether an instruction adds to elements of a type, which may count as others."""
    return any(
        one.size_bytes == element_bytes and one.is_floating == kind.is_floating
        for one in instruction.element_types
    )


def _has_whole_tiles(statement: Statement, work: StatementFacts, loops: set[str]) -> bool:
    """Tell whether tiles may be full: no loop takes steps, and not all bound each other."""
    hull = isl.Set.from_basic_set(statement.domain.affine_hull())
    return hull.plain_is_universe() and not loops <= set(work.coupled)


def _is_target(statement: Statement, one: Expression) -> bool:
    if not isinstance(one, Read):
        return False
    access = statement.accesses[one.access]
    return (access.array, access.text) == (statement.write.array, statement.write.text)


def _reference(known: tuple[Reference, ...], statement: Statement, number: int) -> int | None:
    """Return which reference of the kernel an access is; none for a scalar."""
    access = statement.accesses[number]
    return reference_of(access.array, access.text, statement.name, known)


def _moving(work: StatementFacts, reference: int) -> set[str]:
    return {n for one in work.accesses if one.reference == reference for n, _ in one.strides}


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
    found = _Continuing(scop, piece, mapping, parts)
    return frozenset(
        own.array
        for own in storage.registers
        if any(found.goes_on(own, other) for other in storage.registers if other is not own)
    )


class _Continuing:
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
            lambda one: _is_target(statement, one),
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

    def _scalar(self, statement: Statement, one: Expression) -> str | None:
        if not isinstance(one, Read):
            return None
        name = statement.accesses[one.access].array
        return name if name in self._scalars else None
