"""Can a tile run as if it were full? Where what is too much adds zeros, or is thrown away.

A sum of products whose factors are staged in tiles that are zero beside what is read may run over
all points of a tile. Where a row or column has no point of the program, its register is never
stored. Where the summed loop has none, the staged factors that go along it are zero, so that zero
is added: NaN, if another factor is infinite. So only tensor cores, which have no other choice, add
such zeros where the other factor is one that the point is multiplied by anyway. Where it is not, as
in a tile that the diagonal of a triangle cuts, a block first looks at the tile of that factor. If
all of it is finite, the tile runs as if it were full.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import islpy as isl

from eatss.base.frozen import Numbers, distinct, frozen
from eatss.lower.arrays import union_of
from eatss.lower.mapping import MappedLoop, SerialTile
from eatss.lower.pieces import Piece
from eatss.lower.promotion import SharedTile
from eatss.lower.thread_ast import Phase, tile_set
from eatss.polyhedral.expression import (
    AffineValue,
    Binary,
    Cast,
    ElementType,
    Expression,
    Literal,
    Read,
    Unary,
    added_to,
    factors,
    preorder,
    reads_in,
    terms,
)
from eatss.polyhedral.isl_names import (
    DIV,
    coalesced,
    dims_as_parameters,
    without_parameters,
)
from eatss.polyhedral.scop import Place, Statement

Types: TypeAlias = Mapping[str, ElementType]
"""The types of arrays, by name."""


@frozen
class Places:
    """Where the references of a kernel live that sums of products need.

    ``staged`` ones are in shared memory, ``held`` ones in registers, and ``passed`` are those to
    scalars that are passed by value. ``types`` are those of arrays.
    """

    staged: Collection[Place]
    held: Collection[Place]
    passed: Collection[Place]
    types: Types


class WholeTiles:
    """A phase of statements that may run over all points of each tile."""

    def __init__(
        self,
        phase: Phase,
        piece: Piece,
        tiles: Mapping[Place, SharedTile],
        places: Places,
        known: isl.Set,
    ) -> None:
        """Note what it is.

        Args:
            phase: its instances, with loops bound to parameters.
            piece: all statements of the kernel.
            tiles: what is staged, in tiles that are zero beside what is read.
            places: where references live.
            known: what is known of sizes and origins.
        """
        self._phase, self._piece, self._places, self._tiles = phase, piece, places, tiles
        self._loops: list[MappedLoop | SerialTile] = [*phase.mapped, *phase.serial]
        self._inside = tile_set(known.get_ctx(), self._loops).intersect(known)
        mapped = {loop.name for loop in phase.mapped}
        self._serial = [name for name in phase.bound if name not in mapped]

    def harmless(self, *, zeros: bool) -> Phase | None:
        """Return the phase over all points of each tile that it can run without harm, if any.

        Args:
            zeros: whether sums may have zeros added, which a factor that is infinite makes NaN.
                Else only registers that are never stored get more than in the source.
        """
        found = []
        live = self._live()
        for instance in self._phase.instances:
            whole = self._all_points(instance)
            if whole is None:
                return None
            is_harmless = self._harmless(instance, live, zeros=zeros)
            more = whole if is_harmless(whole) else _with_fewer_bounds(instance, whole, is_harmless)
            if more is None:
                return None
            found.append(more)
        return replace(self._phase, instances=tuple(found))

    def if_finite(self) -> tuple[Phase, tuple[Place, ...]] | None:
        """Return the phase over all points of each tile, and which factors have to be finite.

        The shared-memory tiles of staged ones are to be looked at as a whole. Each point that is
        too much has a factor that is zero there: its tile is zero beside what is read. ``None``
        where some has none.
        """
        instances = []
        finite: dict[Place, None] = {}
        live = self._live()
        for instance in self._phase.instances:
            whole = self._all_points(instance)
            statement = self._piece.statement(instance.get_tuple_name())
            products = _products(statement, self._places)
            if whole is None or len(products) != 1 or products[0].inside:
                return None
            at = {number: (statement.name, number) for number in products[0].factors}
            read = {n: self._tiles[own].footprint for n, own in at.items() if own in self._tiles}
            extra = coalesced(whole.subtract(instance).intersect_params(live))
            needed = factors_beside_zeros(statement, extra, read)
            if needed is None:
                return None
            passed = [own for own in at.values() if own in self._places.passed]
            finite |= dict.fromkeys((*passed, *(at[n] for n in needed)) if needed else ())
            instances.append(whole)
        return replace(self._phase, instances=tuple(instances)), tuple(finite)

    def _live(self) -> isl.Set:
        """Return the points that some statement of the kernel runs at."""
        return union_of(
            [without_parameters(one.params(), self._serial) for one in self._piece.placed]
        )

    def _all_points(self, instance: isl.Set) -> isl.Set | None:
        """Return all points of a tile as instances of a statement that adds staged products."""
        statement, phase = self._piece.statement(instance.get_tuple_name()), self._phase
        products = _staged_products(statement, self._places)
        if products is None or not phase.mapped:
            return None
        everywhere = isl.Set.from_basic_set(instance.affine_hull()).intersect_params(self._inside)
        inside = {one.name for one in self._loops}
        if not {*phase.bound} <= inside or not self._inside.is_subset(everywhere.params()):
            return None
        numbers = dict.fromkeys(number for own in products for number in own.every)
        staged = [(number, self._tiles[statement.name, number]) for number in numbers]
        return everywhere if all(_holds(everywhere, statement, *one) for one in staged) else None

    def _harmless(
        self, instance: isl.Set, live: isl.Set, *, zeros: bool
    ) -> Callable[[isl.Set], bool]:
        """Return what tells whether some points may run instead of the instances."""
        statement = self._piece.statement(instance.get_tuple_name())
        products = _staged_products(statement, self._places) or ()
        own = without_parameters(instance.intersect_params(self._inside), self._serial)

        def is_harmless(points: isl.Set) -> bool:
            extra = coalesced(points.subtract(instance).intersect_params(live))
            if extra.is_empty() or not zeros:
                return bool(extra.is_empty())
            extra = without_parameters(extra, self._serial)
            return all(self._adds_zeros(extra, own, statement, one) for one in products)

        return is_harmless

    def _adds_zeros(
        self, extra: isl.Set, own: isl.Set, statement: Statement, product: _Product
    ) -> bool:
        """Tell whether instances that are too much add zero: some factor of each of them is.

        Another factor may be what instances of the program at the same point are multiplied by. It
        does not go along the loop that is longer than in the program, as ``B[j][r]`` along ``k`` in
        ``T[i][j][k] * B[j][r] * C[k][r]``.

        Args:
            extra: the instances, by the mapped loops.
            own: those of the program in the tile, likewise.
            statement: what they compute.
            product: one that it adds, what is staged of it.
        """
        left = extra
        for number in product.every:
            element = _element(statement, number)
            if not element.is_single_valued():
                return bool(left.is_empty())
            footprint = self._tiles[statement.name, number].footprint
            read = extra.intersect(element.intersect_range(footprint).domain())
            if not read.apply(element).is_subset(own.apply(element)):
                return False
            if number in product.factors:
                left = left.intersect(read)
        return bool(left.is_empty())


def _element(statement: Statement, number: int) -> isl.Map:
    """Return which element an access is of, outside of the domain, too: as its hull says."""
    return isl.Map.from_basic_map(statement.accesses[number].relation.affine_hull())


def runs_whole_if_finite(
    piece: Piece,
    name: str,
    staged: Collection[Place],
    held: frozenset[Place],
    mapped: Sequence[str],
    types: Types,
) -> bool:
    """Tell whether tiles of a statement, of any size, run whole where its factors are finite.

    Args:
        piece: all statements of the kernel.
        name: of the statement.
        staged: references that may be staged.
        held: references that live in registers.
        mapped: the loops that go to threads, by their names in C.
        types: those of arrays.
    """
    statement, instance = piece.statement(name), piece.domain_of(name)
    places = Places(staged=staged, held=held, passed=(), types=types)
    every = {(name, at) for own in _products(statement, places) for at in own.every}
    found = _staged_products(statement, replace(places, passed=every - {*staged}))
    if found is None or len(found) > 1 or found[0].inside:
        return False
    (only,) = found
    live = without_parameters(instance.params(), piece.others(mapped))
    everywhere = isl.Set.from_basic_set(instance.affine_hull())
    extra = coalesced(everywhere.subtract(instance).intersect_params(live))
    points = piece.unbound(instance)
    read = {at: points.apply(statement.accesses[at].relation) for at in only.factors}
    return factors_beside_zeros(statement, extra, read) is not None


def factors_beside_zeros(
    statement: Statement, extra: isl.Set, read: Mapping[int, isl.Set]
) -> Numbers | None:
    """Return the factors that zeros are multiplied by at some instances.

    Args:
        statement: it adds a product to a register.
        extra: instances that are not of the program.
        read: of each staged factor the elements that are not zero.

    Returns:
        ``None`` where at some instance no factor is zero.
    """
    every, found = extra, list[int]()
    for number, elements in read.items():
        element = _element(statement, number)
        if not element.is_single_valued():
            return None
        not_zero = element.intersect_range(elements).domain()
        every = every.intersect(not_zero)
        if not extra.intersect(not_zero).is_empty():
            found.append(number)
    return tuple(found) if every.is_empty() else None


def _with_fewer_bounds(
    instance: isl.Set, whole: isl.Set, is_harmless: Callable[[isl.Set], bool]
) -> isl.Set | None:
    """Return instances without the bounds that can be left out.

    Those stay that keep sums from factors of others, as in a triangle.

    Args:
        instance: the instances of a statement, loops bound to parameters.
        whole: all points of a tile as its instances.
        is_harmless: whether a set of points may run.

    Returns:
        ``None`` where the instances are no convex set.
    """
    single = coalesced(instance)
    if single.n_basic_set() != 1:
        return None
    (part,) = single.get_basic_sets()
    if part.dim(DIV):
        return None
    bounds = [one for one in part.get_constraints() if not one.is_equality()]
    for bound in tuple(bounds):
        others = [one for one in bounds if one is not bound]
        if is_harmless(_within(whole, others)):
            bounds = others
    return _within(whole, bounds)


def _within(points: isl.Set, bounds: Sequence[isl.Constraint]) -> isl.Set:
    for bound in bounds:
        points = points.add_constraint(bound)
    return points


def is_product(statement: Statement, places: Places) -> bool:
    """Tell whether a statement adds a product of what is staged to a register."""
    return _staged_products(statement, places) is not None


def _holds(instances: isl.Set, statement: Statement, number: int, tile: SharedTile) -> bool:
    """Tell whether a tile has a place for each element that instances read by an access."""
    at = [f"eatss_at{position}" for position in range(len(tile.sizes))]
    places = dims_as_parameters(instances.apply(_element(statement, number)), at)
    return bool(places.is_subset(tile.within(at)))


@frozen
class _Product:
    """A product that is added to a register, by the accesses that it reads.

    ``factors`` are factors themselves, which are zero where their tiles are. Those ``inside`` are
    read by other factors, as in ``(A[k][i] - m[i]) * B[k][j]``.
    """

    factors: Numbers
    inside: Numbers

    @property
    def every(self) -> Numbers:
        """All accesses."""
        return distinct((*self.factors, *self.inside))


def _staged_products(statement: Statement, places: Places) -> Sequence[_Product] | None:
    """Return the products that are added to a register, what is staged of each.

    ``None`` where the statement does something else, or adds a product of which nothing is staged.
    """
    found = []
    for own in _products(statement, places):
        staged = {number for number in own.every if (statement.name, number) in places.staged}
        rest = [(statement.name, number) for number in own.every if number not in staged]
        if not staged or not all(place in places.passed for place in rest):
            return None
        found.append(
            _Product(
                factors=tuple(one for one in own.factors if one in staged),
                inside=tuple(one for one in own.inside if one in staged),
            )
        )
    return found or None


def _products(statement: Statement, places: Places) -> Sequence[_Product]:
    """Return the products that are added to a register; none of anything else."""
    own_types = [places.types[one.array] for one in statement.accesses]

    def is_target(one: Expression) -> bool:
        if not isinstance(one, Read) or (statement.name, one.access) not in places.held:
            return False
        return statement.accesses[one.access].array == statement.write.array

    added = added_to(statement.value, is_target, lambda access: own_types[access])
    every = [] if added is None else terms(added, lambda access: own_types[access])
    match statement.value:
        case Binary(operator="-") as value if added is None and is_target(value.left):
            every = [value.right]
    found = [_product(one, own_types) for one in every]
    known = [one for one in found if one is not None and one.every]
    return known if len(known) == len(found) else []


def _product(value: Expression, types: Sequence[ElementType]) -> _Product | None:
    """Return what a product reads, ``None`` where it is none.

    A factor may be converted to a type that has all values of its own. In the place of others,
    sums, differences and products of floating-point numbers are numbers where zeros are read.
    """
    plain = []
    inside = []
    for factor in _unsigned_factors(value):
        match factor:
            case Read(access=at):
                plain.append(at)
            case Cast(operand=Read(access=at)) if _widens(factor.element_type, types[at]):
                plain.append(at)
            case Literal() | AffineValue():
                pass
            case _ if _stays_finite(factor, types):
                inside += reads_in(factor)
            case _:
                return None
    return _Product(factors=tuple(plain), inside=tuple(inside))


def _unsigned_factors(value: Expression) -> Iterator[Expression]:
    """Yield the factors of a product, their signs left out."""
    for factor in factors(value):
        if isinstance(factor, Unary) and factor.operator == "-":
            yield from _unsigned_factors(factor.operand)
        else:
            yield factor


def _widens(other: ElementType, own: ElementType) -> bool:
    return own.is_floating == other.is_floating and own.size_bytes <= other.size_bytes


def _stays_finite(value: Expression, types: Sequence[ElementType]) -> bool:
    def stays(one: Expression) -> bool:
        match one:
            case Binary(operator="+" | "-" | "*") | Unary(operator="-"):
                return True
            case Literal():
                return one.element_type.is_floating
            case Read():
                return types[one.access].is_floating
        return False

    return all(map(stays, preorder(value)))
