"""Kernels of a class of tiles as one launch a block of steps: all steps are in it.

    __shared__ A[32][33], A_1[32][33];  // the diagonal, and a part of the panel
    A = …; A_1 = …;                                                         __syncthreads();
    double r[32];                       // a column of the panel
    r = A_1;
    for (k = 0; k < 32; ++k) {          // unrolled
        r[k] /= A[k][k];
        for (i = k + 1; i < 32; ++i) r[i] -= A[i][k] * r[k];
    }
    A_1 = r;                                                                __syncthreads();
    … = A_1;

All elements that steps use are on the chip. That no other block writes them, and that no two tiles
have an element in common that is written, is proven here; and that what a thread needs of others'
registers is the same for all of a warp.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from itertools import combinations, groupby, product
from math import prod
from typing import TypeAlias

import islpy as isl

from eatss.analysis.analyse import AnalysedProgram, AnalysedScop
from eatss.analysis.facts import KernelFacts
from eatss.analysis.layout import ClassBlock
from eatss.base.diagnostics import input_error
from eatss.base.frozen import Names, Numbers, complete, fixed, frozen, their_names
from eatss.base.quotients import FORMATS
from eatss.base.targets import CUDA
from eatss.base.text import counted as amount
from eatss.lower.arrays import affine_text, ends_of, subscripts_of, tests_of, union_of, value_of
from eatss.lower.class_products import products_of
from eatss.lower.index_range import Indices
from eatss.lower.instructions import FROM_LANE
from eatss.lower.kernel.barriers import arguments_of
from eatss.lower.kernel.copies import BY_CP_ASYNC
from eatss.lower.kernel.nodes import (
    Agreed,
    Buffer,
    Commit,
    Compute,
    Copy,
    Declare,
    Element,
    Extents,
    Flag,
    If,
    Intrinsic,
    Kernel,
    Let,
    Node,
    Nodes,
    Reciprocal,
    Scope,
    Source,
    Wait,
    counted,
    guarded,
    over_places,
)
from eatss.lower.kernel.uses import (
    affine_values,
    without_unused,
)
from eatss.lower.pieces import CodeSchedules, Piece, in_regions, own_pieces, their_loops
from eatss.lower.promotion import unravelled
from eatss.lower.references import BuiltKernel, KernelContext
from eatss.lower.transform.chain import synchronised
from eatss.plan.class_blocks import (
    COPIED_IN_TURNS,
    ClassPart,
    ClassPhase,
    ClassProducts,
    ClassRun,
    ClassTile,
    Side,
    padding,
    sizes,
)
from eatss.plan.stage import is_asynchronous
from eatss.polyhedral.class_tiles import counter, is_still
from eatss.polyhedral.expression import Binary, Read, divisors, fused_quotient, preorder
from eatss.polyhedral.isl_names import (
    DIV,
    SET,
    affine_form,
    among,
    bound_domain,
    coalesced,
    constant_value,
    coupled_dims,
    dims_as_parameters,
    equal_leading_dims,
    function_on,
    integer,
    output_affs,
    parameter_at_least,
    parameter_at_most,
    parameter_names,
    parameters_set,
    without_parameters,
)
from eatss.polyhedral.isl_names import alone as only
from eatss.polyhedral.kernel import ScheduledScop
from eatss.polyhedral.scop import Access, Place, Statement
from eatss.polyhedral.tree import alone
from eatss.program import Apply, Constant, IntExpr, Name, Operator, equals, names_in, substitute
from eatss.program.expression import Environment, IntExprs, total
from eatss.program.linear import as_sum

_STEP = 1
"""The loop of steps of a statement, by number; the one of blocks is in front of it."""


@fixed
class Part:
    """Pieces of one statement each whose steps a block takes; ``at`` has the tiles of accesses."""

    pieces: tuple[Piece, ...]
    plan: ClassPart
    at: Mapping[Place, int]

    @property
    def statements(self) -> tuple[Statement, ...]:
        """What a step does, in its order."""
        return tuple(one.statements[0] for one in self.pieces)


Class: TypeAlias = tuple[Part, ...]
"""Parts that are one launch a block of steps, in blocks of their own."""


def run_of(own: Class) -> ClassRun:
    """Return what is planned of a class."""
    return ClassRun(parts=tuple(one.plan for one in own))


def classes_of(
    scheduled: ScheduledScop, pieces: Sequence[Piece], facts: Sequence[KernelFacts]
) -> Iterator[Class]:
    """Yield the classes of tiles that may be one launch a block of steps, in order."""
    if not scheduled.scop.class_size:
        return

    parts = list[Part]()
    for host, together in groupby(pieces, lambda one: their_loops(one.host)):
        own = tuple(together)
        known = complete(piece.facts_in(facts) for piece in own)
        part = None
        if len(host) == _STEP + 1 and known is not None:
            part = _part(_Steps(scheduled=scheduled, pieces=own, kernels=their_names(known)))
        if parts and (part is None or not _are_beside((*parts, part))):
            yield tuple(parts)
            parts = []
        parts += [part] if part is not None else []
    if parts:
        yield tuple(parts)


def class_of(
    scheduled: ScheduledScop,
    block: ClassBlock,
    pieces: Sequence[Piece],
    facts: Sequence[KernelFacts],
) -> Class | ClassProducts:
    """Return the class of tiles whose kernels a block names.

    Raises:
        InputError: ``EATSS-K011``, there is none.
    """
    for one in classes_of(scheduled, pieces, facts):
        if run_of(one).kernels == block.kernels:
            return one
    for products in products_of(scheduled, pieces, facts):
        if products.kernels == block.kernels:
            return products
    raise input_error(
        "EATSS-K011",
        f"{', '.join(block.kernels)} are no class of tiles of a factorisation",
        hint="leave class_block out of the recipe",
    )


def _part(steps: _Steps) -> Part | None:
    """Return pieces as a part, ``None`` where blocks cannot have what they use for themselves.

    Blocks are apart along a loop rather than that each of them goes through it.
    """
    if any(len(one.statements) > 1 or one.inner for one in steps.pieces):
        return None
    found = steps.part()
    for apart in steps.statements[0].loops[_STEP + 1 :]:
        if (found is None or apart != found.plan.wide) and steps.are_apart(apart):
            return replace(steps, apart=apart).part() or found
    return found


_Kept: TypeAlias = tuple[Mapping[int, int], Sequence[tuple[int | None, Numbers]]]
"""Along which dimension threads have tiles, by number; each statement's loop whose points are
theirs, and which of its accesses other lanes pass."""


@frozen
class _Steps:
    """Pieces of one statement each, whose blocks have one iteration of a loop, if it is given."""

    scheduled: ScheduledScop
    pieces: tuple[Piece, ...]
    kernels: Names
    apart: str | None = None

    @property
    def statements(self) -> tuple[Statement, ...]:
        """What a step does, in its order."""
        return tuple(one.statements[0] for one in self.pieces)

    @property
    def size(self) -> int:
        """Steps of a block."""
        return self.scheduled.scop.class_size

    def part(self) -> Part | None:
        """Return them as a part, ``None`` where they are none."""
        statements, scop, size = self.statements, self.scheduled.scop, self.size
        wide = self.wide()
        used = None if wide is None or not self.stay(wide) else self.used(wide)
        if wide is None or used is None:
            return None
        tiles, stored, at = used
        kept = self.kept(tiles, at, shared=wide[0] is not None)
        if kept is None:
            return None
        along, phases = kept
        plan = ClassPart(
            size=size,
            wide=None if wide[0] is None else statements[0].loops[wide[0]],
            tiles=tuple(replace(one, along=along.get(place)) for place, one in enumerate(tiles)),
            phases=tuple(
                ClassPhase(
                    kernel=kernel,
                    loops=tuple(
                        None
                        if loop == shared
                        else 0
                        if one.loops[loop] == self.apart
                        else self.size
                        for loop in range(_STEP + 1, len(one.loops))
                    ),
                    own=own,
                    passed=passed,
                    instances=self.instances(one, own),
                    divisors=tuple(
                        number
                        for number in divisors(one.value)
                        if self.in_turn(one).is_empty()
                        and scop.types[one.accesses[number].array].value in FORMATS
                        and self.is_shared(one, number, own)
                    ),
                )
                for kernel, one, shared, (own, passed) in zip(
                    self.kernels, statements, wide, phases, strict=True
                )
            ),
            stored=tuple(stored),
            apart=self.apart,
        )
        part = Part(self.pieces, plan, at)
        return part if plan.is_short(size) and _are_beside((part,)) else None

    def wide(self) -> Sequence[int | None] | None:
        """Return the loop of each statement that is longer than a block of steps, if it has one.

        ``None`` where steps are, or several loops of one are, or of some statements none is; and
        where some begin below 0.
        """
        found = list[int | None]()
        for one in self.statements:
            universe = isl.Set.universe(one.domain.get_space())
            longer = list[int]()
            for at in range(_STEP, len(one.loops)):
                if not one.domain.is_subset(universe.lower_bound_val(SET, at, 0)):
                    return None
                short = one.domain.is_subset(universe.upper_bound_val(SET, at, self.size - 1))
                longer += [at] if one.loops[at] != self.apart and not short else []
            if _STEP in longer or len(longer) > 1:
                return None
            found += longer or [None]
        return found if len({one is None for one in found}) < 2 else None

    def used(
        self, wide: Sequence[int | None]
    ) -> tuple[list[ClassTile], list[ClassTile], dict[Place, int]] | None:
        """Return tiles that are read, those that are stored, and the first's numbers by access."""
        tiles, stored, at = list[ClassTile](), list[ClassTile](), dict[Place, int]()
        read = {one.array for statement in self.statements for one in statement.reads}
        for statement, loop in zip(self.statements, wide, strict=True):
            for number, access in enumerate(statement.accesses):
                array = self.scheduled.scop.array(access.array)
                if not (access.is_write or array.n_dims):
                    continue  # a scalar that is read comes by value
                sides = self.sides(statement, access, loop)
                if not sides or (
                    access.is_write and self.apart and not any(one.apart for one in sides)
                ):
                    return None
                tile = ClassTile(
                    array=array.name, sides=sides, element_bytes=array.element_type.size_bytes
                )
                if array.name in read:
                    at[statement.name, number] = _joined(tiles, tile)
                else:
                    stored.append(replace(tile, along=0))
        return tiles, stored, at

    def kept(
        self, tiles: Sequence[ClassTile], at: Mapping[Place, int], *, shared: bool
    ) -> _Kept | None:
        """Return how threads keep what is written, with the most loops shared; ``None`` for no way.

        Where blocks have a loop ``shared``, threads have its points.
        """
        places = sorted({at[one.name, 0] for one in self.statements if (one.name, 0) in at})
        sides = [tiles[place].sides for place in places]
        ways = list[_Kept]()
        for dims in product(*(range(len(one)) for one in sides)):
            kept = [own[dim] for own, dim in zip(sides, dims, strict=True)]
            if all((one.length is None) == shared and not one.apart for one in kept):
                along = dict(zip(places, dims, strict=True))
                found = complete(self.own(one, tiles, at, along) for one in self.statements)
                ways += [] if found is None else [(along, found)]
        return max(ways, key=lambda way: sum(own is not None for own, _ in way[1]), default=None)

    def own(
        self,
        statement: Statement,
        tiles: Sequence[ClassTile],
        at: Mapping[Place, int],
        along: Mapping[int, int],
    ) -> tuple[int | None, Numbers] | None:
        """Return the loop whose points threads have, and which accesses other lanes pass.

        ``None`` where threads do not know which register they need, or which lane has it, or need
        in a step what others make there.
        """
        block, _, *loops = statement.loops
        there: dict[int, tuple[set[str], int]] = {}
        within = set[str]()
        for number, access in enumerate(statement.accesses):
            tile = at.get((statement.name, number), -1)
            if tile not in along:
                continue
            for dim, function in enumerate(output_affs(access.relation)):
                form = affine_form(function)
                assert form is not None
                names = {*dict(form.coefficients)} - {block}
                if dim == along[tile]:
                    there[number] = names, form.constant - tiles[tile].sides[dim].least
                else:
                    within |= names
        if not there:
            return None
        first = names, shift = next(iter(there.values()))
        passed = tuple(number for number, place in there.items() if place != first)
        own = next((at for at, name in enumerate(loops) if name in names), None)
        if own is not None:
            apart = within.union(*(there[number][0] for number in passed))
            alike = is_still(statement, _STEP + 1 + own, self.in_turn(statement))
            if shift or loops[own] in apart or not alike:
                return None
        return own, passed

    def instances(self, statement: Statement, own: int | None) -> int:
        """Return how many instances of a statement a thread has for each point in a block."""
        points = statement.domain.reset_tuple_id()
        points = without_parameters(points, parameter_names(points))
        names = statement.loops
        once = (names[0], self.apart, *([] if own is None else [names[_STEP + 1 + own]]))
        for at in range(len(names) - 1, -1, -1):
            points = points.project_out(SET, at, 1) if names[at] in once else points
        return integer(points.count_val())

    def in_turn(self, statement: Statement) -> isl.UnionMap:
        """Return what instances of a step need of each other; a thread runs its own in order."""
        every = self.scheduled.dependences.memory_based
        return equal_leading_dims(among(every, statement.domain.to_union_set()), _STEP + 1)

    def is_shared(self, statement: Statement, number: int, own: int | None) -> bool:
        """Tell whether an element that divides has a reciprocal for several quotients.

        It stays the same in a loop that threads go through, or lanes have one each before all
        steps.
        """
        block, step, *loops = statement.loops
        access = statement.accesses[number]
        forms = map(affine_form, output_affs(access.relation))
        moving = {name for form in forms if form is not None for name in dict(form.coefficients)}
        if own is None:
            written = {one.write.array for one in self.statements}
            return access.array not in written and moving <= {block, step, self.apart}
        return loops[own] not in moving and not moving >= {*loops} - {loops[own], self.apart}

    def are_apart(self, name: str) -> bool:
        """Tell whether iterations of a loop need nothing of each other in a block of steps.

        All statements have it, from 0 to the same end whatever other loops are at.
        """
        values = list[isl.Set]()
        for one in self.statements:
            at = one.loops.index(name) if name in one.loops else 0
            line = only(one.domain, SET, at)
            line = coalesced(line.gist_params(line.params()))
            (part, *more), first = line.get_basic_sets(), constant_value(line.dim_min(0))
            if at <= _STEP or more or part.dim(DIV) or first != 0 or at in coupled_dims(one.domain):
                return False
            values.append(dims_as_parameters(line, (name,)))
        alike = all(one.is_equal(values[0]) for one in values)
        return alike and self.stay([one.loops.index(name) for one in self.statements])

    def stay(self, loops: Sequence[int | None]) -> bool:
        """Tell whether what statements need of each other in a block is at one point of loops."""
        here = union_of(one.domain.to_union_set() for one in self.statements)
        needed = equal_leading_dims(among(self.scheduled.dependences.memory_based, here), 1)
        counters = [
            isl.UnionPwAff.from_pw_aff(counter(one, loop))
            for one, loop in zip(self.statements, loops, strict=True)
            if loop is not None
        ]
        if not counters:
            return True
        point = reduce(isl.UnionPwAff.union_add, counters)
        return bool(needed.is_subset(needed.eq_at_multi_union_pw_aff(alone(point))))

    def sides(
        self, statement: Statement, access: Access, wide: int | None
    ) -> tuple[Side, ...] | None:
        """Return the part of an array that an access reaches in a block; ``None`` for none such."""
        block, size, sides = statement.loops[0], self.size, list[Side]()
        for function in output_affs(access.relation):
            form = affine_form(function)
            if form is None or form.parameters:
                return None
            terms, least = dict(form.coefficients), form.constant
            if self.apart in terms:
                if least or terms != {self.apart: 1}:
                    return None
                sides.append(Side(factor=0, least=0, length=1, apart=True))
                continue
            factor = terms.pop(block, 0)
            if len(terms) > 1 or any(one != 1 for one in terms.values()) or min(factor, least) < 0:
                return None
            moving = wide is not None and statement.loops[wide] in terms
            length = None if moving else size if terms else 1
            ends = moving and not (factor or least) and _ends_at_block(statement, wide or 0, size)
            limit = size if ends else 0
            sides.append(Side(factor=factor, least=least, length=length, limit=limit))
        return tuple(sides)


def _runs_backwards(statement: Statement) -> bool:
    """Tell whether blocks of steps of a statement run from the last to the first, and its steps."""
    blocks = affine_form(output_affs(statement.schedule)[1])
    return blocks is not None and any(by < 0 for _, by in blocks.coefficients)


def _ends_at_block(statement: Statement, wide: int, size: int) -> bool:
    """Tell whether the loop that blocks share ends where a block of steps begins, going up."""
    if _runs_backwards(statement):
        return False
    block, own = counter(statement, 0), counter(statement, wide)
    end = block.scale_val(isl.Val(size, statement.domain.get_ctx()))
    return bool(statement.domain.is_subset(own.lt_set(end)))


def _joined(tiles: list[ClassTile], tile: ClassTile) -> int:
    """Return the number of the tile that another one is in, which is added to them."""
    for at, one in enumerate(tiles):
        if one.array == tile.array:
            pairs = zip(one.sides, tile.sides, strict=True)
            sides = complete(mine.joined(its) for mine, its in pairs)
            if sides is not None:
                tiles[at] = replace(one, sides=sides)
                return at
    tiles.append(tile)
    return len(tiles) - 1


def _are_beside(parts: Sequence[Part]) -> bool:
    """Tell whether parts run in the same loop over blocks, and no block writes what others have."""
    loops = {part.pieces[0].host[0].member.key for part in parts}
    tiles = [tile for one in parts for tile in (*one.plan.tiles, *one.plan.stored)]
    return len(loops) == 1 and all(one.is_apart(other) for one, other in combinations(tiles, 2))


# -- the kernel --------------------------------------------------------------------------------


_Pass: TypeAlias = tuple[frozenset[str], Nodes]
"""What gives a value that is passed, or a reciprocal, and the names that it depends on."""


class ClassBuilder:
    """Builds the kernel of a part of a class of tiles, in whose blocks no other part is."""

    def __init__(self, name: str, own: Part, block: ClassBlock, context: KernelContext) -> None:
        """Note what it is made of."""
        names = self._names = context.names.inner()
        self._name, self._own, self._block, self._context = name, own, block, context
        plan = self._plan = own.plan
        self._index, self._ahead = Indices(context.index_bits), list[Node]()
        self._thread = Name(names.fresh("thread"))
        self._launched, self._step = own.pieces[0].host_names
        self._backwards = _runs_backwards(own.statements[0])
        self._host = names.fresh(own.statements[0].loops[0]) if self._backwards else self._launched
        self._lane, self._first, self._turn = map(names.fresh, ("lane", "first", "turn"))
        self._point = names.fresh(plan.wide or "point")
        self._apart = names.fresh(plan.apart or "apart")
        self._around = (self._apart,) if plan.apart else ()
        self._locals = tuple(
            tuple(
                self._point if extent is None else names.fresh(name) if extent else self._apart
                for name, extent in zip(one.loops[_STEP + 1 :], phase.loops, strict=True)
            )
            for one, phase in zip(own.statements, plan.phases, strict=True)
        )
        self._buffers = tuple(map(self._buffer, plan.tiles))
        self._kept = {
            at: buffer.registers(names.fresh(f"{buffer.name}_r"), *tile.kept)
            for at, (tile, buffer) in enumerate(zip(plan.tiles, self._buffers, strict=True))
            if tile.along is not None
        }

    def _buffer(self, tile: ClassTile) -> Buffer:
        array = self._context.arrays[tile.array]
        extents = tuple(Constant(int(one)) for one in sizes(tile.extents, self._block.width))
        return Buffer(
            name=self._names.fresh(array.name),
            space="shared",
            element_type=array.array.element_type,
            layout=Extents(extents, padding=padding(tile)),
        )

    def build(self) -> BuiltKernel:
        """Return the kernel, with barriers.

        Raises:
            InputError: ``EATSS-K011``, a block would need more shared memory than it may have.
            InternalError: ``EATSS-K901``, it is not well formed, or threads may meet.
        """
        context, block, part = self._context, self._block, self._plan
        first = Let(name=self._thread.name, value=Name(f"{CUDA.thread}x"), narrow=True)
        nodes = without_unused((first, *self._body()))
        kernel = Kernel(
            name=self._name,
            threads=block.threads,
            arguments=arguments_of(
                nodes,
                (*context.parameters, self._launched),
                (one.buffer for one in context.arrays.values()),
            ),
            shared=self._buffers,
            static_shared_bytes=context.static_shared_bytes,
            index_bits=context.index_bits,
            body=nodes,
        )
        kernel = synchronised(kernel, context.macros)
        if kernel.shared_bytes > context.shared_limit_bytes:
            raise input_error(
                "EATSS-K011",
                f"a class of tiles needs {kernel.shared_bytes} bytes of shared memory, and a block "
                f"may have {context.shared_limit_bytes}",
                hint="give class_block a smaller width, or classes a smaller size",
            )
        turns = self._index(self._last(self._apart) + 1) if self._around else Constant(1)
        grid = (self._index(self._blocks() * turns), Constant(1), Constant(1))
        where = "one block"
        if part.wide is not None:
            where = f"blocks of {amount(block.width, 'point')} of {part.wide}"
        where += f" for each {part.apart}" if part.apart else ""
        return BuiltKernel(
            piece=self._piece(),
            kernel=kernel,
            grid=grid,
            tiles=grid,
            launch=self._by_launch(self._values(())),
            parameter_tiles=tuple((name, part.size) for name in context.scop.parameters),
            most_blocks=None,
            notes=(f"class of tiles: {part.size} steps in {where}",),
            index=self._index,
        )

    def _piece(self) -> Piece:
        """Return the pieces as one that is launched for each block of steps."""
        first, *_ = self._own.pieces
        host, placed = first.host[:_STEP], list[isl.Set]()
        for one, statement in zip(self._own.pieces, self._own.statements, strict=True):
            functions = [function_on(loop.member.function, statement.domain) for loop in host]
            placed.append(bound_domain(one.instances(statement), functions, their_names(host)))
        statements = self._own.statements
        return replace(first, host=host, band=(), statements=statements, placed=tuple(placed))

    def _by_launch(self, points: isl.Set) -> isl.Set:
        """Return points by the number of the launch, which is less the later steps are run."""
        if not self._backwards:
            return points
        names = [self._host, self._launched]
        same = parameters_set(points.get_ctx(), names, f"{self._launched} = -{self._host}")
        return coalesced(without_parameters(points.intersect(same), [self._host]))

    def _last(self, name: str) -> IntExpr:
        """Return the last value that a counter of a block has in a launch."""
        points, launch = (self._by_launch(self._values(own)) for own in ((name,), ()))
        return value_of(ends_of(points, name)[1], launch)

    def _blocks(self) -> IntExpr:
        """Return how many blocks share the longest of the loops that they do."""
        if self._plan.wide is None:
            return Constant(1)
        width = int(self._block.width)
        return self._index((self._last(self._point) + width) // width)

    def _body(self) -> Iterator[Node]:
        """Yield what a block does."""
        width, thread, launch = int(self._block.width), self._thread, self._values(self._around)
        number: IntExpr = Name(f"{CUDA.block}x")
        if self._backwards:
            yield Let(name=self._host, value=-1 * Name(self._launched))
        if self._plan.wide is not None:
            blocks = self._blocks()
            own = number % blocks if self._around else number
            yield Let(name=self._first, value=own * width)
            number = number // blocks
        if self._around:
            yield Let(name=self._apart, value=number)
        yield from self._copies(load=True)
        declared = tuple(Declare(buffer=one) for one in self._kept.values())
        loaded, stored = (
            tuple(self._registers(at, load=load) for at in self._kept) for load in (True, False)
        )
        if self._plan.wide is None:  # all warps compute the same
            yield Let(name=self._lane, value=thread % CUDA.lanes, narrow=True)
            yield from declared
            yield from self._steps((), launch, loaded)
            tests: list[IntExpr] = [thread < CUDA.lanes] * (self._block.threads > CUDA.lanes)
            yield Scope(body=guarded(tests, stored), apart="kept")
        else:
            yield Let(name=self._lane, value=thread, narrow=True)
            yield Let(name=self._point, value=Name(self._first) + Name(self._lane))
            within = f"0 <= {self._first} <= {self._point} < {self._first} + {width}"
            names = [self._first, self._point]
            known = launch.intersect(parameters_set(launch.get_ctx(), names, within))
            points = self._values((self._point, *self._around))
            tests = [thread < width] * (self._block.threads > width)
            tests += self._tests(points, known)
            yield from self._steps(tests, known.intersect(points), loaded, declared, stored)
        yield from self._copies(load=False)

    # copies ---------------------------------------------------------------------------------

    def _copies(self, *, load: bool) -> Iterator[Node]:
        """Yield what fills tiles, or stores them: what is in their arrays of them."""
        ahead = False
        for at, tile in enumerate(self._plan.tiles):
            if not load and tile.along is None:
                continue
            array, number = self._context.arrays[tile.array], self._names.fresh("e")
            extents = [int(one) for one in sizes(tile.extents, self._block.width)]
            places = unravelled(Name(number), extents)
            there = tuple(map(total, self._begins(at), places))
            inside, outside = self._buffers[at].at(*places), array.element(there)
            limits = (
                (place, side.limit * Name(self._host))
                for place, side in zip(there, tile.sides, strict=True)
                if side.limit
            )
            ends = (*zip(there, array.shape, strict=True), *limits)
            within = [self._index(place) < self._index(end) for place, end in ends]
            copy = Copy(target=outside, source=inside, condition=_all(within))
            if load:
                copy = replace(copy, target=inside, source=outside, clears=True)
                if self._context.copies_ahead and is_asynchronous(tile.element_bytes):
                    ahead, copy = True, replace(copy, ahead=True, kind=BY_CP_ASYNC)
            threads, count = int(self._block.threads), prod(extents)
            loop = counted(number, count, (copy,), min(COPIED_IN_TURNS, -(-count // threads)))
            loop = replace(loop, lower=self._thread, step=Constant(threads))
            yield Scope(body=(loop,), apart=f"{'load' if load else 'store'} {at}")
        if ahead:
            yield from (Commit(), Wait(pending=0))

    def _begins(self, at: int) -> IntExprs:
        """Return where a tile begins in its array."""
        found = []
        for side in self._plan.tiles[at].sides:
            first = side.factor * Name(self._host) + side.least
            first = Name(self._apart) if side.apart else first
            found.append(first + Name(self._first) if side.length is None else first)
        return tuple(found)

    def _registers(self, at: int, *, load: bool) -> Node:
        """Return what a thread reads of a tile into its registers, or writes from them."""
        tile, kept, names = self._plan.tiles[at], self._kept[at], self._names.inner()
        counters = [names.fresh("place") for _ in kept.layout.extents]
        *others, turn = map(Name, counters)
        where = Name(self._lane) + CUDA.lanes * turn
        own = self._buffers[at].at(*others[: tile.along], where, *others[tile.along :])
        ends = kept.at(*others, turn), own
        target, source = ends if load else ends[::-1]
        tests = [where < tile.places] if tile.places % CUDA.lanes else []
        return over_places(kept, counters, *guarded(tests, (Copy(target=target, source=source),)))

    # steps ----------------------------------------------------------------------------------

    def _placed(self, number: int) -> isl.Set:
        """Return the instances of a statement, a parameter for each of its loops."""
        piece, statement = self._own.pieces[number], self._own.statements[number]
        names = (self._host, self._step, *self._locals[number])
        return dims_as_parameters(piece.instances(statement), names)

    def _values(self, kept: Names) -> isl.Set:
        """Return the values of some counters that any statement has."""
        every = enumerate(self._locals)
        others = ([one for one in (self._step, *names) if one not in kept] for _, names in every)
        return coalesced(
            union_of(without_parameters(self._placed(at), own) for at, own in enumerate(others))
        )

    def _steps(
        self,
        tests: Sequence[IntExpr],
        known: isl.Set,
        loaded: Nodes,
        declared: Nodes = (),
        stored: Nodes = (),
    ) -> Iterator[Node]:
        """Yield all steps, of threads of which ``tests`` hold; without tests where tiles are whole.

        There quotients are fused steps without branches. Where some are not exact, all steps are
        done again, from what is ``loaded`` on, with divisions, as those of cut tiles are.
        """
        whole, rest = self._whole_or_not(known)
        if whole.is_empty() or not self._plan.divides:
            if whole.is_empty() or rest.is_empty():
                steps = self._all_steps(known)
            else:
                conditions, own = tuple(self._tests(whole, known)), self._all_steps(whole)
                steps = (If(conditions=conditions, body=own, orelse=self._all_steps(rest)),)
            yield Scope(body=guarded(tests, (*declared, *loaded, *steps, *stored)), apart="steps")
            return
        test, flag = tuple(self._tests(whole, known)), self._names.fresh("exact")
        done = self._names.fresh("exact_in_all")
        fast = self._all_steps(whole, flag)  # which says what is to be there ahead
        steps = guarded(test, (*loaded, *self._ahead, *fast))
        yield from declared
        yield Flag(name=flag, first=_all(test) if test else Constant(1))
        yield Scope(body=guarded(tests, steps), apart="steps")
        yield Agreed(name=done, flag=flag)
        again = Scope(body=guarded(tests, (*loaded, *self._all_steps(known))), apart="steps")
        yield If(conditions=(equals(Name(done), 0),), body=(again,))
        yield from (Scope(body=guarded(tests, own), apart="steps") for own in (stored,) if own)

    def _whole_or_not(self, known: isl.Set) -> tuple[isl.Set, isl.Set]:
        """Return the blocks of steps whose tiles are whole, and the others."""
        missing = isl.Set.empty(known.get_space())
        for number, names in enumerate(self._locals):
            around = (self._point, self._apart)
            counters = (self._step, *(one for one in names if one not in around))
            here = without_parameters(self._placed(number), [self._point])
            gaps = _of(here, counters).subtract(here)
            missing = missing.union(without_parameters(gaps, counters))
        return coalesced(known.subtract(missing)), coalesced(known.intersect(missing))

    def _all_steps(self, known: isl.Set, flag: str = "") -> Nodes:
        """Return all steps; a ``flag`` is cleared where a quotient is not exact."""
        here, known = self._values((self._step,)), coalesced(known)
        return self._unrolled((), (self._step,), here, known, partial(self._phases, flag))

    def _phases(self, flag: str, known: isl.Set) -> Iterator[Node]:
        """Yield what a step does."""
        for number, phase in enumerate(self._plan.phases):
            names = self._locals[number]
            own = None if phase.own is None else names[phase.own]
            others = tuple(one for one in names if one not in (own, self._apart))
            here = coalesced(without_parameters(self._placed(number), [own] if own else []))
            compute, kept, place, passes = self._operands(number, own, flag)
            body = partial(self._compute, number, own, compute, kept, place)
            yield Scope(body=self._unrolled((self._step,), others, here, known, body, passes))

    def _unrolled(
        self,
        around: Names,
        names: Names,
        here: isl.Set,
        known: isl.Set,
        body: Callable[[isl.Set], Iterable[Node]],
        passes: Sequence[_Pass] = (),
    ) -> Nodes:
        """Return unrolled loops, whose bounds are those of loops ``around`` alone, and a body.

        It is where values are ``here``, given what is ``known``. What ``passes`` give is there in
        front of all loops in which it stays the same: nothing in a step needs what it writes.
        """
        if known.is_disjoint(here):
            return ()
        left = [one for one in passes if not one[0].isdisjoint(names)]
        before = [node for one in passes if one not in left for node in one[1]]
        if not names:
            return guarded(self._tests(here, known), (*before, *body(known.intersect(here))))
        name, *rest = names
        values = coalesced(without_parameters(here, rest))
        any_value = coalesced(without_parameters(values, [name]))
        tests, known = self._tests(any_value, known), known.intersect(any_value)
        first, last = ends_of(_of(values, (*around, name)), name)
        inside = known.intersect(parameter_at_least(name, first))
        inside = coalesced(inside.intersect(parameter_at_most(name, last)))
        some = coalesced(inside.intersect(values))
        nodes = self._unrolled((*around, name), tuple(rest), here, some, body, left)
        begin, end = value_of(first, known), value_of(last, known) + 1
        nodes, counter = guarded(self._tests(values, inside), nodes), name
        if name == self._step and self._backwards:
            counter = self._names.fresh(name)
            nodes = (Let(name=name, value=begin + end - 1 - Name(counter)), *nodes)
        return guarded(tests, (*before, replace(counted(counter, end, nodes), lower=begin)))

    def _tests(self, here: isl.Set, known: isl.Set) -> list[IntExpr]:
        """Return what is left to test of whether values are ``here``."""
        return [*map(self._index, tests_of(here, known))]

    def _operands(
        self, number: int, own: str | None, flag: str
    ) -> tuple[Compute, Element, IntExpr, list[_Pass]]:
        """Return a statement, a thread's own element and its place, and what gives values to it.

        With a flag its divisors have reciprocals.
        """
        statement, phase = self._own.statements[number], self._plan.phases[number]
        env, passes = self._counters(number), list[_Pass]()
        reads, wheres = list[Element](), list[IntExpr]()
        reciprocals, shared = dict[int, Element](), dict[tuple[Element, IntExpr], Element]()
        numbers = range(len(statement.accesses))
        kept = next(at for at in numbers if self._own.at.get((statement.name, at)) in self._kept)
        for place, access in enumerate(statement.accesses):
            element, where = self._element(statement, place, access, env)
            known_place = own is None or place in phase.passed
            if known_place and element.buffer.space == "register":
                element = element.buffer.at(*element.subscripts[:-1], where // CUDA.lanes)
            needed = frozenset(names_in(where, *element.subscripts))
            if place in phase.passed:
                key = element, where
                if key not in shared:
                    own_one = shared[key] = self._scalar("passed", element)
                    passed = Intrinsic.of(FROM_LANE, own_one, element, source=where % CUDA.lanes)
                    passes.append((needed, (Declare(buffer=own_one.buffer), passed)))
                element = shared[key]
            divides = flag and place in phase.divisors
            if divides and own is None and wheres[kept] == Name(self._step):
                reciprocals[place] = self._inverse_ahead(element, flag)
            elif divides:
                inverse = reciprocals[place] = self._scalar("inverse", element)
                made = Reciprocal(target=inverse, source=element, flag=flag)
                passes.append((needed, (Declare(buffer=inverse.buffer), made)))
            reads.append(element)
            wheres.append(where)
        compute = Compute(
            statement=statement,
            target=reads[0],
            reads=tuple(reads),
            integers=tuple(
                self._index(affine_text(one.value, env)) for one in affine_values(statement.value)
            ),
            types=self._context.scop.types,
            flag=flag if reciprocals else "",
            reciprocals=tuple(reciprocals.items()),
        )
        return compute, reads[kept], wheres[kept], passes

    def _inverse_ahead(self, element: Element, flag: str) -> Element:
        """Return the reciprocal of an element of a step, which its lane has before all steps."""
        size, lanes = self._plan.size, CUDA.lanes
        inverses = element.buffer.registers(self._names.fresh("inverse"), -(-size // lanes))
        place = self._names.fresh("place")
        own = Name(self._lane) + lanes * Name(place)
        moved = [substitute(one, {self._step: own}) for one in element.subscripts]
        source, target = element.buffer.at(*moved), inverses.at(Name(place))
        made = Reciprocal(target=target, source=source, flag=flag)
        (filled,) = guarded([own < size] if size % lanes else [], (made,))
        self._ahead += [Declare(buffer=inverses), over_places(inverses, [place], filled)]
        return inverses.at(Name(self._step) // lanes)

    def _counters(self, number: int) -> Environment:
        names = (self._host, self._step, *self._locals[number])
        return dict(zip(self._own.statements[number].loops, map(Name, names), strict=True))

    def _scalar(self, name: str, like: Element) -> Element:
        return like.buffer.registers(self._names.fresh(name)).at()

    def _compute(
        self,
        number: int,
        own: str | None,
        compute: Compute,
        kept: Element,
        place: IntExpr,
        known: isl.Set,
    ) -> Iterator[Node]:
        """Yield what computes a statement at a thread's points."""
        span, statement = compute.statement.span, compute.statement
        source = Source(line=span.line, text=statement.text, file=statement.written_in)
        once: list[IntExpr] = []  # other warps of the one block compute the same
        if (statement.name, 0) not in self._own.at and self._plan.wide is None:
            once = [self._thread < CUDA.lanes] * (self._block.threads > CUDA.lanes)
        if own is None:
            test = equals(Name(self._lane), place % CUDA.lanes)
            yield If(conditions=(*once, test), body=(source, compute))
            return
        *_, points = kept.buffer.layout.extents
        if own != self._point:
            known = known.intersect(parameters_set(known.get_ctx(), [own], f"{own} >= 0"))
        tests = once + self._tests(self._placed(number), known)
        if tests and _is_safe_anywhere(compute) and self._plan.has_all_lanes:
            # those of which tests don't hold compute, too: no branch is between quotients
            value = self._scalar("value", compute.target)
            done = guarded(tests, (Copy(target=compute.target, source=value),))
            computed = replace(compute, target=value)
            nodes: Nodes = (Declare(buffer=value.buffer), source, computed, *done)
        else:
            nodes = guarded(tests, (source, compute))
        if own != self._point:
            there = Name(self._lane) + CUDA.lanes * Name(self._turn)
            nodes = (Let(name=own, value=there), *nodes)
        yield counted(self._turn, points, nodes)

    def _element(
        self, statement: Statement, place: int, access: Access, env: Environment
    ) -> tuple[Element, IntExpr]:
        """Return an element, and its place along the dimension of which threads have registers."""
        at, there = self._own.at.get((statement.name, place)), subscripts_of(access, env)
        if at is None:
            own = [*map(self._index, there)]
            return self._context.arrays[access.array].element(own), Constant(0)
        along = self._plan.tiles[at].along
        places = [as_sum(o - first) for o, first in zip(there, self._begins(at), strict=True)]
        if along is None:
            return self._buffers[at].at(*places), Constant(0)
        where = places.pop(along)
        return self._kept[at].at(*places, Name(self._turn)), where


def _is_safe_anywhere(compute: Compute) -> bool:
    """Tell whether a statement has reciprocals, and divides by nothing else: integers may be 0."""
    own = {number for number, _ in compute.reciprocals}
    divided = [one for one in preorder(compute.statement.value) if isinstance(one, Binary)]
    return bool(own) and all(
        fused_quotient(one) is not None or (isinstance(one.right, Read) and one.right.access in own)
        for one in divided
        if one.operator in ("/", "%")
    )


def _of(points: isl.Set, names: Names) -> isl.Set:
    """Return the values of some parameters, whatever others are."""
    return coalesced(without_parameters(points, [*{*parameter_names(points)} - {*names}]))


def _all(conditions: Sequence[IntExpr]) -> IntExpr:
    return reduce(lambda one, other: Apply(Operator.AND, (one, other)), conditions)


def class_runs_for(
    program: AnalysedProgram, code: CodeSchedules | None = None
) -> tuple[ClassRun | ClassProducts, ...]:
    """Return the classes of tiles of a program that may be one launch a block of steps.

    ``code`` gives the schedules of the regions that code is made from.
    """
    if not any(region.scop.class_size for region in program.scops):
        return ()

    def runs(scheduled: ScheduledScop, region: AnalysedScop) -> Iterable[ClassRun | ClassProducts]:
        pieces = own_pieces(scheduled)[0]
        yield from map(run_of, classes_of(scheduled, pieces, region.facts))
        yield from products_of(scheduled, pieces, region.facts)

    return in_regions(program, runs, code)
