"""Can a tile run as if it were full? Where what is too much adds zeros, or is thrown away.

A sum of products whose factors are staged in boxes that are zero beside what is read may run over
all points of a tile. Where a row or column has no point of the program, its register is never
stored. Where the summed loop has none, the staged factors that go along it are zero, so that zero
is added: NaN, if another factor is infinite. So only tensor cores, which have no other choice, add
such zeros where the other factor is one that the point is multiplied by anyway. Where it is not, as
in a tile that the diagonal of a triangle cuts, a block first looks at the box of that factor. If
all of it is finite, the tile runs as if it were full.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import islpy as isl

from eatss.base.frozen import frozen
from eatss.lower.arrays import union_of
from eatss.lower.mapping import MappedLoop, SerialTile
from eatss.lower.pieces import Piece
from eatss.lower.promotion import SharedTile
from eatss.lower.storage import Place
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
    terms,
)
from eatss.polyhedral.isl_names import (
    coalesced,
    dims_as_parameters,
    parameter_at_least,
    parameter_at_most,
    without_parameters,
)
from eatss.polyhedral.scop import Statement

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


def over_whole_tiles(
    phase: Phase,
    piece: Piece,
    tiles: Mapping[Place, SharedTile],
    places: Places,
    known: isl.Set,
    *,
    zeros: bool,
) -> Phase | None:
    """Return a phase that runs all points of each tile that it can without harm.

    It is ``None`` where that is not known of any.

    Args:
        phase: one statement, its instances with loops bound to parameters.
        piece: all statements of the kernel.
        tiles: what is staged, in boxes that are zero beside what is read.
        places: where references live.
        known: what is known of sizes and origins.
        zeros: whether sums may have zeros added, which a factor that is infinite makes NaN. Else
            only registers that are never stored get more than in the source.
    """
    if not phase.mapped:
        return None
    mapped = {loop.name for loop in phase.mapped}
    serial = [name for name in phase.bound if name not in mapped]
    live = union_of([without_parameters(one.params(), serial) for one in piece.placed])
    found = []
    for instance in phase.instances:
        whole = _over_whole_tile(phase, piece, instance, tiles, places, known)
        if whole is None:
            return None
        statement = piece.statement(instance.get_tuple_name())
        products = _staged_products(statement, places) or ()
        box = tile_set(instance.get_ctx(), [*phase.mapped, *phase.serial]).intersect(known)
        own = without_parameters(instance.intersect_params(box), serial)

        def is_harmless(
            points: isl.Set,
            instance: isl.Set = instance,
            statement: Statement = statement,
            products: Sequence[_Product] = products,
            own: isl.Set = own,
        ) -> bool:
            extra = coalesced(points.subtract(instance).intersect_params(live))
            if extra.is_empty() or not zeros:
                return bool(extra.is_empty())
            points = without_parameters(extra, serial)
            return all(_adds_zeros(points, own, statement, one, tiles) for one in products)

        more = whole if is_harmless(whole) else _with_fewer_bounds(instance, whole, is_harmless)
        if more is None:
            return None
        found.append(more)
    return replace(phase, instances=tuple(found))


@frozen
class WholeIfFinite:
    """A phase that runs all points of a tile, which is right where ``places`` read finite values.

    The boxes of staged ones are to be looked at as a whole.
    """

    phase: Phase
    places: tuple[Place, ...]


def whole_if_finite(
    phase: Phase,
    piece: Piece,
    tiles: Mapping[Place, SharedTile],
    places: Places,
    known: isl.Set,
) -> WholeIfFinite | None:
    """Return a phase that runs all points of each tile, and which factors have to be finite.

    Each point that is too much has a factor that is zero there: its box is zero beside what is
    read. ``None`` where some has none. Arguments are those of :func:`over_whole_tiles`.
    """
    if not phase.mapped:
        return None
    mapped = {loop.name for loop in phase.mapped}
    serial = [name for name in phase.bound if name not in mapped]
    live = union_of([without_parameters(one.params(), serial) for one in piece.placed])
    instances: list[isl.Set] = []
    finite: dict[Place, None] = {}
    for instance in phase.instances:
        whole = _over_whole_tile(phase, piece, instance, tiles, places, known)
        statement = piece.statement(instance.get_tuple_name())
        products = _products(statement, places)
        if whole is None or len(products) != 1 or products[0].inside:
            return None
        factors = products[0].factors
        extra = coalesced(whole.subtract(instance).intersect_params(live))
        needed = factors_beside_zeros(statement, extra, {
            number: tiles[statement.name, number].footprint
            for number in dict.fromkeys(factors)
            if (statement.name, number) in tiles
        })  # fmt: skip
        if needed is None:
            return None
        passed = [at for at in factors if (statement.name, at) in places.passed]
        finite |= dict.fromkeys((statement.name, at) for at in (*passed, *needed) if needed)
        instances.append(whole)
    return WholeIfFinite(phase=replace(phase, instances=tuple(instances)), places=tuple(finite))


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
    bound = [loop.name for loop in piece.band]
    live = without_parameters(instance.params(), [one for one in bound if one not in mapped])
    everywhere = isl.Set.from_basic_set(instance.affine_hull())
    extra = coalesced(everywhere.subtract(instance).intersect_params(live))
    points = without_parameters(instance, bound)
    read = {at: points.apply(statement.accesses[at].relation) for at in only.factors}
    return factors_beside_zeros(statement, extra, read) is not None


def factors_beside_zeros(
    statement: Statement, extra: isl.Set, read: Mapping[int, isl.Set]
) -> tuple[int, ...] | None:
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
        # the relation holds in the domain only: which element it is elsewhere, its hull says
        element = isl.Map.from_basic_map(statement.accesses[number].relation.affine_hull())
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
    if part.dim(isl.dim_type.div):
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


def _over_whole_tile(
    phase: Phase,
    piece: Piece,
    instance: isl.Set,
    tiles: Mapping[Place, SharedTile],
    places: Places,
    known: isl.Set,
) -> isl.Set | None:
    """Return all points of a tile as instances of a statement that adds a product to a register."""
    statement = piece.statement(instance.get_tuple_name())
    products = _staged_products(statement, places)
    if products is None:
        return None
    loops: list[MappedLoop | SerialTile] = [*phase.mapped, *phase.serial]
    box = tile_set(instance.get_ctx(), loops).intersect(known)
    everywhere = isl.Set.from_basic_set(instance.affine_hull()).intersect_params(box)
    inside = {one.name for one in loops}
    if not set(phase.bound) <= inside or not box.is_subset(everywhere.params()):
        return None
    numbers = dict.fromkeys(number for own in products for number in own.every)
    boxes = [(number, tiles[statement.name, number]) for number in numbers]
    return everywhere if all(_is_in_box(everywhere, statement, *one) for one in boxes) else None


def _is_in_box(instances: isl.Set, statement: Statement, number: int, tile: SharedTile) -> bool:
    """Tell whether a box has a place for each element that instances read by an access."""
    element = isl.Map.from_basic_map(statement.accesses[number].relation.affine_hull())
    at = [f"eatss_at{position}" for position in range(len(tile.sizes))]
    places = dims_as_parameters(instances.apply(element), at)
    context = instances.get_ctx()
    for name, offset, size in zip(at, tile.offsets, tile.sizes, strict=True):
        last = offset.add_constant_val(isl.Val.int_from_si(context, size - 1))
        if not places.is_subset(parameter_at_least(name, offset)):
            return False
        if not places.is_subset(parameter_at_most(name, last)):
            return False
    return True


def _adds_zeros(
    extra: isl.Set,
    own: isl.Set,
    statement: Statement,
    product: _Product,
    tiles: Mapping[Place, SharedTile],
) -> bool:
    """Tell whether instances that are too much add zero: some factor of each of them is.

    Another factor may be what instances of the program at the same point are multiplied by. It does
    not go along the loop that is longer than in the program, as ``B[j][r]`` along ``k`` in
    ``T[i][j][k] * B[j][r] * C[k][r]``.

    Args:
        extra: the instances, by the mapped loops.
        own: those of the program in the tile, likewise.
        statement: what they compute.
        product: one that it adds, what is staged of it.
        tiles: where references are staged.
    """
    left = extra
    for number in product.every:
        # the relation holds in the domain only: which element it is elsewhere, its hull says
        element = isl.Map.from_basic_map(statement.accesses[number].relation.affine_hull())
        if not element.is_single_valued():
            return left.is_empty()
        footprint = tiles[statement.name, number].footprint
        read = extra.intersect(element.intersect_range(footprint).domain())
        if not read.apply(element).is_subset(own.apply(element)):
            return False
        if number in product.factors:
            left = left.intersect(read)
    return bool(left.is_empty())


@frozen
class _Product:
    """A product that is added to a register, by the accesses that it reads.

    ``factors`` are factors themselves, which are zero where their boxes are. Those ``inside`` are
    read by other factors, as in ``(A[k][i] - m[i]) * B[k][j]``.
    """

    factors: tuple[int, ...]
    inside: tuple[int, ...]

    @property
    def every(self) -> tuple[int, ...]:
        """All accesses."""
        return tuple(dict.fromkeys((*self.factors, *self.inside)))


def _staged_products(statement: Statement, places: Places) -> Sequence[_Product] | None:
    """Return the products that are added to a register, what is staged of each.

    ``None`` where the statement does something else, or adds a product of which nothing is staged.
    """
    found: list[_Product] = []
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
    if added is None:
        value = statement.value
        whole = isinstance(value, Binary) and value.operator == "-" and is_target(value.left)
        every = [value.right] if whole and isinstance(value, Binary) else []
    else:
        every = terms(added, lambda access: own_types[access])
    found = [_product(one, own_types) for one in every]
    known = [one for one in found if one is not None and one.every]
    return known if len(known) == len(found) else []


def _product(value: Expression, types: Sequence[ElementType]) -> _Product | None:
    """Return what a product reads, ``None`` where it is none."""
    plain: list[int] = []
    inside: list[int] = []
    for factor in factors(value):
        own = _factors(factor, types)
        if own is not None:
            plain += own
            continue
        if not _stays_finite(factor, types):
            return None
        inside += [one.access for one in preorder(factor) if isinstance(one, Read)]
    return _Product(factors=tuple(plain), inside=tuple(inside))


def _stays_finite(value: Expression, types: Sequence[ElementType]) -> bool:
    """Tell whether sums, differences and products of floating-point numbers are all that is done.

    With zeros in the place of what is read they are numbers, too.
    """
    return all(
        (isinstance(one, Binary) and one.operator in ("+", "-", "*"))
        or (isinstance(one, Unary) and one.operator == "-")
        or (isinstance(one, Literal) and one.element_type.is_floating)
        or (isinstance(one, Read) and types[one.access].is_floating)
        for one in preorder(value)
    )


def _factors(value: Expression, types: Sequence[ElementType]) -> list[int] | None:
    """Return the accesses that a product multiplies, ``None`` where it is no product.

    A factor may be converted to a type that has all values of its own.
    """
    if isinstance(value, Read):
        return [value.access]
    if isinstance(value, Literal | AffineValue):
        return []
    if isinstance(value, Unary) and value.operator == "-":
        return _factors(value.operand, types)
    if isinstance(value, Cast) and isinstance(value.operand, Read):
        own, other = types[value.operand.access], value.element_type
        widened = own.is_floating == other.is_floating and own.size_bytes <= other.size_bytes
        return [value.operand.access] if widened else None
    if isinstance(value, Binary) and value.operator == "*":
        sides = [_factors(value.left, types), _factors(value.right, types)]
        known = [side for side in sides if side is not None]
        return [one for side in known for one in side] if len(known) == len(sides) else None
    return None
