"""Kernels of a class of tiles as one launch a block of steps: all steps are in it.

    __shared__ A[64][65], A_1[64][33];  // the diagonal, and a part of the panel
    A = …; A_1 = …;
    for (k = 0; k < 64; ++k) {
        for (j = …; …) A_1[k][j] /= A[k][k];                                __syncthreads();
        for (i = k + 1 + ty; …; i += 8) for (j = tx; …; j += 32) A_1[i][j] -= A[i][k] * A_1[k][j];
    }                                                                       __syncthreads();
    … = A_1;

All elements that steps use are in shared memory. That no other block writes them, and that no two
tiles have an element in common that is written, is proven here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import combinations, groupby
from math import prod

import islpy as isl

from eatss.analysis.analyse import AnalysedProgram
from eatss.analysis.facts import KernelFacts
from eatss.analysis.layout import ClassBlock
from eatss.base.diagnostics import input_error
from eatss.base.frozen import fixed, their_names
from eatss.base.targets import CUDA
from eatss.base.text import counted as amount
from eatss.lower.arrays import TRUE, affine_text, condition_of, union_of, value_of
from eatss.lower.index_range import Indices
from eatss.lower.kernel.barriers import barrier_faults
from eatss.lower.kernel.checks import fault_in, kernel_faults
from eatss.lower.kernel.copies import BY_CP_ASYNC
from eatss.lower.kernel.nodes import (
    Argument,
    Buffer,
    Commit,
    Compute,
    Copy,
    Declare,
    Element,
    Extents,
    For,
    If,
    Kernel,
    Let,
    Node,
    Nodes,
    Scope,
    Source,
    Wait,
    counted,
)
from eatss.lower.kernel.uses import (
    affine_values,
    buffers_of,
    every,
    mapped_of,
    names_of,
    without_unused,
)
from eatss.lower.pieces import NameTable, Piece, pieces_of
from eatss.lower.promotion import unravelled
from eatss.lower.references import BuiltKernel, KernelContext
from eatss.lower.transform.chain import with_barriers
from eatss.plan.class_blocks import (
    COPIED_IN_TURNS,
    ClassPhase,
    ClassRun,
    ClassTile,
    in_turns,
    nest,
    padding,
    sizes,
    threads_along,
)
from eatss.plan.stage import is_asynchronous
from eatss.polyhedral.class_tiles import counter
from eatss.polyhedral.dependences import bounded_work, source_lines
from eatss.polyhedral.isl_names import (
    SET,
    affine_form,
    among,
    bound_domain,
    coalesced,
    dims_as_parameters,
    equal_leading_dims,
    function_on,
    output_affs,
    parameter_at_least,
    parameter_at_most,
    parameter_bound,
    parameters_set,
    renamed_parameter,
    without_parameters,
)
from eatss.polyhedral.kernel import ScheduledScop
from eatss.polyhedral.scop import Access, Place, Statement
from eatss.polyhedral.tree import alone
from eatss.program import Apply, Constant, IntExpr, Name, Operator, equals
from eatss.program.expression import Environment, IntExprs, total
from eatss.program.linear import as_sum, strict

_STEP = 1
"""The loop of steps of a statement, by number; the one of blocks is in front of it."""


@fixed
class _Side:
    """Where a tile begins along a dimension: at ``block * factor + least``.

    It is ``length`` long, as wide as a block where that is ``None``: so far blocks are apart.
    """

    factor: int
    least: int
    length: int | None

    def with_(self, other: _Side) -> _Side | None:
        """Return a side that both are in, ``None`` where they are not a fixed way apart."""
        if self == other:
            return self
        if self.factor != other.factor or self.length is None or other.length is None:
            return None
        least = min(self.least, other.least)
        end = max(self.least + self.length, other.least + other.length)
        return replace(self, least=least, length=end - least)


@fixed
class _Tile:
    """A part of an array that a block has in shared memory."""

    array: str
    sides: tuple[_Side, ...]

    def elements(self, context: isl.Context) -> isl.Set:
        """Return the elements that all blocks have, by the number of the block of steps."""
        dims = [f"x{at}" for at in range(len(self.sides))]
        within = ["block >= 0"]
        for dim, one in zip(dims, self.sides, strict=True):
            first = f"{one.factor} block + {one.least}"
            within.append(f"{dim} >= {first}")
            if one.length is not None:
                within.append(f"{dim} < {first} + {one.length}")
        text = f"[block] -> {{ [{', '.join(dims)}] : {' and '.join(within)} }}"
        return isl.Set.read_from_str(context, text)


@fixed
class Class:
    """Pieces of one statement each that are one launch a block of steps.

    ``wide`` numbers the loop that blocks share, of each; ``at`` has the tiles of accesses.
    """

    pieces: tuple[Piece, ...]
    run: ClassRun
    wide: tuple[int | None, ...]
    tiles: tuple[_Tile, ...]
    at: Mapping[Place, int]

    @property
    def statements(self) -> tuple[Statement, ...]:
        """What a step does, in its order."""
        return tuple(one.statements[0] for one in self.pieces)


def classes_of(
    scheduled: ScheduledScop, pieces: Sequence[Piece], facts: Sequence[KernelFacts]
) -> Iterator[Class]:
    """Yield the classes of tiles that may be one launch a block of steps, in order."""
    if not scheduled.scop.class_size:
        return

    def loops(piece: Piece) -> tuple[tuple[int, int], ...]:
        return tuple(one.member.key for one in piece.host)

    for host, together in groupby(pieces, loops):
        own = tuple(together)
        known = [one for one in (piece.facts_in(facts) for piece in own) if one is not None]
        if len(host) == _STEP + 1 and len(known) == len(own):
            found = _class(scheduled, own, known)
            if found is not None:
                yield found


def class_of(
    scheduled: ScheduledScop,
    block: ClassBlock,
    pieces: Sequence[Piece],
    facts: Sequence[KernelFacts],
) -> Class:
    """Return the class of tiles whose kernels a block names.

    Raises:
        InputError: ``EATSS-K011``, there is none.
    """
    for one in classes_of(scheduled, pieces, facts):
        if one.run.kernels == block.kernels:
            return one
    raise input_error(
        "EATSS-K011",
        f"{', '.join(block.kernels)} are no class of tiles of a factorisation",
        hint="leave class_block out of the recipe",
    )


def _class(
    scheduled: ScheduledScop, pieces: tuple[Piece, ...], facts: Sequence[KernelFacts]
) -> Class | None:
    """Return pieces as a class, ``None`` where blocks cannot have what they use for themselves."""
    scop, size = scheduled.scop, scheduled.scop.class_size
    if any(len(one.statements) > 1 or one.inner for one in pieces):
        return None
    statements = [one.statements[0] for one in pieces]
    found = [_wide(one, size) for one in statements]
    wide = tuple(one[0] if one else None for one in found if one is not None and len(one) < 2)
    if len(wide) < len(pieces) or len({one is None for one in wide}) > 1:
        return None
    if not _stay(scheduled, statements, wide):
        return None
    tiles, at = list[_Tile](), dict[Place, int]()
    for statement, loop in zip(statements, wide, strict=True):
        for number, access in enumerate(statement.accesses):
            if not (access.is_write or scop.array(access.array).n_dims):
                continue  # a scalar that is read comes by value
            tile = _tile(statement, access, loop, size)
            place = None if tile is None or not tile.sides else _joined(tiles, tile)
            if place is None:
                return None
            at[statement.name, number] = place
    written = {at[one.name, 0] for one in statements}
    if not _are_apart(tiles, written, scop.isl_context) or (
        wide[0] is not None
        and any(all(one.length for one in tiles[place].sides) for place in written)
    ):
        return None
    loop_names = [one.loops[loop] for one, loop in zip(statements, wide, strict=True) if loop]
    run = ClassRun(
        kernels=their_names(facts),
        size=size,
        wide=loop_names[0] if loop_names else None,
        tiles=tuple(
            ClassTile(
                array=tile.array,
                extents=tuple(one.length for one in tile.sides),
                element_bytes=scop.array(tile.array).element_type.size_bytes,
                stored=place in written,
            )
            for place, tile in enumerate(tiles)
        ),
        phases=tuple(
            ClassPhase(
                kernel=fact.name,
                loops=tuple(
                    None if loop == own else size for loop in range(_STEP + 1, len(one.loops))
                ),
                fast=_fast(one),
            )
            for fact, one, own in zip(facts, statements, wide, strict=True)
        ),
    )
    return Class(pieces, run, wide, tuple(tiles), at)


def _wide(statement: Statement, size: int) -> list[int] | None:
    """Return the loops of a statement that are longer than a block of steps.

    ``None`` where its steps are, or where some begin below 0.
    """
    domain = statement.domain
    universe = isl.Set.universe(domain.get_space())
    found = []
    for at in range(_STEP, len(statement.loops)):
        if not domain.is_subset(universe.lower_bound_val(SET, at, 0)):
            return None
        if not domain.is_subset(universe.upper_bound_val(SET, at, size - 1)):
            found.append(at)
    return None if _STEP in found else found


def _stay(
    scheduled: ScheduledScop, statements: Sequence[Statement], wide: Sequence[int | None]
) -> bool:
    """Tell whether all that statements need of each other in a block of steps is in its points."""
    here = union_of([one.domain.to_union_set() for one in statements])
    needed = equal_leading_dims(among(scheduled.dependences.memory_based, here), 1)
    loops = [
        isl.UnionPwAff.from_pw_aff(counter(one, loop))
        for one, loop in zip(statements, wide, strict=True)
        if loop is not None
    ]
    if not loops:
        return True
    point = reduce(isl.UnionPwAff.union_add, loops)
    return bool(needed.is_subset(needed.eq_at_multi_union_pw_aff(alone(point))))


def _tile(statement: Statement, access: Access, wide: int | None, size: int) -> _Tile | None:
    """Return the part of an array that an access reaches in a block, ``None`` where it may not."""
    block, *_ = statement.loops
    sides = []
    for function in output_affs(access.relation):
        form = affine_form(function)
        if form is None or form.parameters:
            return None
        terms = dict(form.coefficients)
        factor = terms.pop(block, 0)
        if len(terms) > 1 or any(one != 1 for one in terms.values()):
            return None
        least, length = form.constant, 1
        if factor < 0 or least < 0:
            return None
        moving = wide is not None and statement.loops[wide] in terms
        sides.append(_Side(factor, least, None if moving else size if terms else length))
    return _Tile(access.array, tuple(sides))


def _joined(tiles: list[_Tile], tile: _Tile) -> int | None:
    """Return the number of the tile that another one is in, which is added to them."""
    for at, one in enumerate(tiles):
        if one.array == tile.array:
            sides = [mine.with_(its) for mine, its in zip(one.sides, tile.sides, strict=True)]
            known = [side for side in sides if side is not None]
            if len(known) == len(sides):
                tiles[at] = _Tile(one.array, tuple(known))
                return at
    tiles.append(tile)
    return len(tiles) - 1


def _are_apart(tiles: Sequence[_Tile], written: set[int], context: isl.Context) -> bool:
    """Tell whether no block writes an element that is in another tile, too."""
    return all(
        one.array != other.array
        or not {at, its} & written
        or one.elements(context).is_disjoint(other.elements(context))
        for (at, one), (its, other) in combinations(enumerate(tiles), 2)
    )


def _fast(statement: Statement) -> int:
    """Return the loop beside blocks and steps, by number, along which rows are walked."""
    *_, last = [None, *output_affs(statement.write.relation)]
    form = None if last is None else affine_form(last)
    walked = () if form is None else tuple(dict(form.coefficients))
    own = statement.loops[_STEP + 1 :]
    return next((at for at, name in enumerate(own) if name in walked), max(0, len(own) - 1))


# -- the kernel --------------------------------------------------------------------------------


class ClassBuilder:
    """Builds the kernel of a class of tiles."""

    def __init__(self, name: str, own: Class, block: ClassBlock, context: KernelContext) -> None:
        """Note what it is made of."""
        self._name, self._own, self._block, self._context = name, own, block, context
        self._names = context.names.inner()
        self._host, self._step = own.pieces[0].host_names
        self._thread, self._origin = map(self._names.fresh, ("thread", "first"))
        self._index = Indices(context.index_bits)
        self._locals = tuple(
            tuple(map(self._names.inner().fresh, one.loops[_STEP + 1 :])) for one in own.statements
        )
        self._buffers = tuple(self._buffer(at) for at in range(len(own.tiles)))

    def _buffer(self, at: int) -> Buffer:
        tile, array = self._own.run.tiles[at], self._context.arrays[self._own.tiles[at].array]
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
        own, context = self._own, self._context
        steps = [
            without_parameters(self._placed(at), names) for at, names in enumerate(self._locals)
        ]
        values = coalesced(union_of(steps))
        launch = coalesced(without_parameters(values, [self._step]))
        body = (*self._copies(load=True), self._steps(values, launch), *self._copies(load=False))
        front: list[Node] = [Let(name=self._thread, value=Name(f"{CUDA.thread}x"), narrow=True)]
        grid: IntExpr = Constant(1)
        if own.run.wide is not None:
            first = self._block.width * Name(f"{CUDA.block}x")
            front.append(Let(name=self._origin, value=first))
            grid = self._blocks(launch)
        nodes = with_barriers(without_unused((*front, *body)))
        kernel = Kernel(
            name=self._name,
            threads=self._block.threads,
            arguments=self._arguments(nodes),
            shared=self._buffers,
            static_shared_bytes=context.static_shared_bytes,
            index_bits=context.index_bits,
            body=nodes,
        )
        for fault in (*kernel_faults(kernel, context.scop.sizes), *barrier_faults(nodes)):
            raise fault_in(kernel, fault)
        if kernel.shared_bytes > context.shared_limit_bytes:
            raise input_error(
                "EATSS-K011",
                f"a class of tiles needs {kernel.shared_bytes} bytes of shared memory, and a block "
                f"may have {context.shared_limit_bytes}",
                hint="give class_block a smaller width, or classes a smaller size",
            )
        return BuiltKernel(
            piece=self._piece(),
            kernel=kernel,
            grid=(grid, Constant(1), Constant(1)),
            tiles=(grid, Constant(1), Constant(1)),
            launch=launch,
            parameter_tiles=tuple((name, own.run.size) for name in context.scop.parameters),
            most_blocks=None,
            notes=(self._note(),),
            index=self._index,
        )

    def _note(self) -> str:
        run, block = self._own.run, self._block
        where = "one block"
        if run.wide is not None:
            where = f"blocks of {amount(block.width, 'point')} of {run.wide}"
        return f"class of tiles: {run.size} steps of {self._step} in {where}"

    def _piece(self) -> Piece:
        """Return the pieces as one that is launched for each block of steps."""
        first, own = self._own.pieces[0], self._own
        host = first.host[:_STEP]
        placed = []
        for one in own.pieces:
            statement = one.statements[0]
            functions = [function_on(loop.member.function, statement.domain) for loop in host]
            here = one.instances(statement)
            placed.append(bound_domain(here, functions, their_names(host)))
        statements = own.statements
        return replace(first, host=host, band=(), statements=statements, placed=tuple(placed))

    def _arguments(self, nodes: Nodes) -> tuple[Argument, ...]:
        names, buffers = names_of(nodes), buffers_of(nodes)
        written = {one.write.array for one in self._own.statements}
        integers = (*self._context.parameters, self._host)
        return (
            *(Argument(name=name) for name in integers if name in names),
            *(
                Argument(name=one.name, buffer=one.buffer, read_only=key not in written)
                for key, one in self._context.arrays.items()
                if one.buffer in buffers
            ),
        )

    # copies ---------------------------------------------------------------------------------

    def _copies(self, *, load: bool) -> Iterator[Node]:
        """Yield what fills tiles, or stores them: what is in their arrays of them."""
        ahead = False
        for at, tile in enumerate(self._own.tiles):
            own, array = self._own.run.tiles[at], self._context.arrays[tile.array]
            if not (load or own.stored):
                continue
            extents = [int(one) for one in sizes(own.extents, self._block.width)]
            number = self._names.fresh("e")
            places = unravelled(Name(number), extents)
            there = tuple(map(total, self._begins(at), places))
            inside, outside = self._buffers[at].at(*places), array.element(there)
            conditions = tuple(
                self._index(place) < self._index(extent)
                for place, extent in zip(there, array.shape, strict=True)
            )
            threads, count = int(self._block.threads), prod(extents)
            if load and self._context.copies_ahead and is_asynchronous(own.element_bytes):
                ahead, copy = True, Copy(target=inside, source=outside, clears=True, ahead=True)
                copy = replace(copy, condition=_all(conditions), kind=BY_CP_ASYNC)
                loop = counted(number, count, (copy,), min(COPIED_IN_TURNS, -(-count // threads)))
                loop = replace(loop, lower=Name(self._thread), step=Constant(threads))
            else:
                copy = Copy(target=inside, source=outside)
                copy = copy if load else Copy(target=outside, source=inside)
                point, last = If(conditions=conditions, body=(copy,)), Constant(count - 1)
                turns = min(COPIED_IN_TURNS, -(-count // threads))
                loop = self._in_turns(number, Name(self._thread), last, threads, (point,), turns)
            yield Scope(body=(loop,), apart=f"{'load' if load else 'store'} {at}")
        if ahead:
            yield from (Commit(), Wait(pending=0))

    def _begins(self, at: int) -> IntExprs:
        """Return where a tile begins in its array."""
        found = []
        for side in self._own.tiles[at].sides:
            first = side.factor * Name(self._host) + side.least
            found.append(first + Name(self._origin) if side.length is None else first)
        return tuple(found)

    # steps ----------------------------------------------------------------------------------

    def _placed(self, number: int) -> isl.Set:
        """Return the instances of a statement, a parameter for each of its loops."""
        piece, statement = self._own.pieces[number], self._own.statements[number]
        names = (self._host, self._step, *self._locals[number])
        return dims_as_parameters(piece.instances(statement), names)

    def _steps(self, values: isl.Set, launch: isl.Set) -> Node:
        """Return the loop over the steps of a block; ``values`` are those for which any runs."""
        first, last = (
            parameter_bound(values, self._step, upper=up).coalesce() for up in (False, True)
        )
        known = launch.intersect(parameter_at_least(self._step, first))
        known = known.intersect(parameter_at_most(self._step, last))
        if self._own.run.wide is not None:
            known = known.intersect(
                parameters_set(launch.get_ctx(), [self._origin], f"{self._origin} >= 0")
            )
        return For(
            counter=self._step,
            lower=self._index(value_of(first, launch)),
            condition=self._index(strict(Name(self._step) <= value_of(last, launch))),
            step=Constant(1),
            body=tuple(self._phases(coalesced(known))),
        )

    def _phases(self, known: isl.Set) -> Iterator[Scope]:
        for number, phase in enumerate(self._own.run.phases):
            here, wide = self._placed(number), self._own.wide[number]
            if wide is not None:
                name, first = self._locals[number][wide - _STEP - 1], self._origin
                within = f"{first} <= {name} < {first} + {self._block.width}"
                here = here.intersect(parameters_set(here.get_ctx(), [name, first], within))
            nodes = self._nest(number, here, 0, known)
            if not phase.loops:
                nodes = (If(conditions=(equals(Name(self._thread), 0),), body=nodes),)
            yield Scope(body=nodes, apart=f"phase {number}")

    def _nest(self, number: int, here: isl.Set, depth: int, known: isl.Set) -> Nodes:
        """Return the loops of a statement inside so many of them, each over a thread's points."""
        order = nest(self._own.run.phases[number])
        if depth == len(order):
            return self._where(condition_of(here, known), tuple(self._compute(number)))
        names = tuple(self._locals[number][at] for at in order)
        name, threads = names[depth], int(self._threads(number)[order[depth]])
        values = coalesced(without_parameters(here, names[depth + 1 :]))
        some = coalesced(known.intersect(without_parameters(values, [name])))
        if some.is_empty():
            return ()
        first, last = (parameter_bound(values, name, upper=up).coalesce() for up in (False, True))
        inside = some.intersect(parameter_at_least(name, first))
        inside = coalesced(inside.intersect(parameter_at_most(name, last)))
        lower = self._index(value_of(first, some)) + self._place(number, order[depth])
        upper = self._index(value_of(last, some))
        if depth + 1 < len(order) or depth == 0:
            found = For(
                counter=name,
                lower=lower,
                condition=strict(Name(name) <= upper),
                step=Constant(threads),
                body=self._nest(number, here, depth + 1, inside),
            )
        else:
            point = self._where(condition_of(here, inside), tuple(self._compute(number)))
            turns = int(in_turns(self._own.run.phases[number], self._block))
            found = self._in_turns(name, lower, upper, threads, point, turns)
        return self._where(condition_of(some, known), (found,))

    def _in_turns(
        self,
        name: str,
        lower: IntExpr,
        upper: IntExpr,
        step: int,
        point: Nodes,
        turns: int,
    ) -> For:
        """Return a loop in which a thread reads what several points need before it stores any.

        Compilers keep loads behind stores that may be to the same memory; these points do not meet.
        """
        (last,) = (one for one in every(point) if isinstance(one, Compute | Copy))
        names = self._names.inner()
        kind = last.target.buffer.element_type
        values = Buffer.of("register", names.fresh("values"), kind, turns)
        begin, turn = names.fresh(f"{name}0"), names.fresh("turn")
        here = Let(name=name, value=Name(begin) + step * Name(turn))
        kept = values.at(Name(turn))

        def each(*change: Node) -> Node:
            body = mapped_of(point, type(last), lambda _: change)
            inside = If(conditions=(strict(Name(name) <= upper),), body=body)
            return counted(turn, turns, (here, inside))

        return For(
            counter=begin,
            lower=lower,
            condition=strict(Name(begin) <= upper),
            step=Constant(step * turns),
            body=(
                Declare(buffer=values),
                each(replace(last, target=kept)),
                each(Copy(target=last.target, source=kept)),
            ),
        )

    def _where(self, condition: IntExpr, nodes: Nodes) -> Nodes:
        if condition == TRUE or not nodes:
            return nodes
        return (If(conditions=(self._index(strict(condition)),), body=nodes),)

    def _threads(self, number: int) -> tuple[int, ...]:
        return tuple(map(int, threads_along(self._own.run.phases[number], self._block)))

    def _place(self, number: int, depth: int) -> IntExpr:
        """Return a thread's place along a loop."""
        threads, fast = self._threads(number), self._own.run.phases[number].fast
        thread: IntExpr = Name(self._thread)
        if threads[depth] == 1:
            return Constant(0)
        if len(threads) == 1:
            return thread
        return thread % CUDA.lanes if depth == fast else thread // CUDA.lanes

    def _compute(self, number: int) -> Iterator[Node]:
        statement = self._own.statements[number]
        counters = (self._host, self._step, *self._locals[number])
        env: Environment = dict(zip(statement.loops, map(Name, counters), strict=True))
        reads = tuple(
            self._element(statement, place, access, env)
            for place, access in enumerate(statement.accesses)
        )
        yield Source(line=statement.span.line, text=statement.text, file=statement.written_in)
        yield Compute(
            statement=statement,
            target=reads[0],
            reads=reads,
            integers=tuple(
                self._index(affine_text(one.value, env)) for one in affine_values(statement.value)
            ),
            types={name: one.array.element_type for name, one in self._context.arrays.items()},
        )

    def _element(
        self, statement: Statement, place: int, access: Access, env: Environment
    ) -> Element:
        at = self._own.at.get((statement.name, place))
        if at is None:
            return self._context.arrays[access.array].element(())
        functions, begins = output_affs(access.relation), self._begins(at)
        pairs = zip((affine_text(one, env) for one in functions), begins, strict=True)
        return self._buffers[at].at(*(as_sum(function - first) for function, first in pairs))

    def _blocks(self, launch: isl.Set) -> IntExpr:
        """Return how many blocks share the longest of the loops that they do."""
        reached = []
        for number, wide in enumerate(self._own.wide):
            assert wide is not None
            name = self._locals[number][wide - _STEP - 1]
            others = [one for one in (self._step, *self._locals[number]) if one != name]
            values = without_parameters(self._placed(number), others)
            reached.append(renamed_parameter(values, name, self._origin))
        last = parameter_bound(coalesced(union_of(reached)), self._origin, upper=True).coalesce()
        width = int(self._block.width)
        return self._index(value_of(last, launch) + width) // width


def _all(conditions: Sequence[IntExpr]) -> IntExpr:
    return reduce(lambda one, other: Apply(Operator.AND, (one, other)), conditions)


def class_runs_for(
    program: AnalysedProgram, code: Callable[[], Sequence[ScheduledScop]] | None = None
) -> tuple[ClassRun, ...]:
    """Return the classes of tiles of a program that may be one launch a block of steps.

    ``code`` gives the schedules of the regions that code is made from.
    """
    if not any(region.scop.class_size for region in program.scops):
        return ()
    found: list[ClassRun] = []
    numeric = [region.scheduled for region in program.scops]
    for scheduled, region in zip(code() if code else numeric, program.scops, strict=True):
        scop = scheduled.scop
        with source_lines("on what code can be made"), bounded_work(scop):
            pieces = pieces_of(scheduled, NameTable((scop.function, *scop.parameters)))
            found += [one.run for one in classes_of(scheduled, pieces, region.facts)]
    return tuple(found)
