"""Indices as sums in order, with quotients and remainders in their shortest form.

Let an instruction that warps run together do what a nest of loops does.

    for (k = k0; k < k0 + 16; ++k)
        for (ri = 0; ri < 4; ++ri)
            for (rj = 0; rj < 8; ++rj)
                C_r[ri][rj] += sh.A[i - i0][k - k0] * sh.B[k - k0][j - j0];

becomes, where the threads of a block are boxes of lanes: each lane loads its elements of ``A`` and
``B``, and the warp multiplies them. Which row of a tile is which row of a matrix is free, as long
as the lanes that have a row of ``d`` load that row of ``a``. So a thread keeps the points it had:
its row of ``d`` is its own point along the first loop, and the columns that it loads of ``b`` are
those of the lanes that have them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import NamedTuple

from eatss.base.frozen import complete, frozen, their_names
from eatss.base.trees import free_name
from eatss.lower.kernel.instruction import Coordinate, Instruction, Operand, places
from eatss.lower.kernel.nodes import (
    Buffer,
    Compute,
    Declare,
    Element,
    For,
    Intrinsic,
    Kernel,
    Let,
    Load,
    Node,
    Nodes,
    Scope,
    Source,
    Steps,
    WarpAxis,
    counted,
)
from eatss.lower.kernel.uses import constant_trips, depends_on, every, every_of, mapped, walked
from eatss.polyhedral.expression import (
    AffineValue,
    Binary,
    ElementType,
    Expression,
    Read,
    added_to,
    factors,
    narrow_factor,
    preorder,
    product_of,
    terms,
)
from eatss.program import (
    Apply,
    Constant,
    IntExpr,
    Name,
    Operator,
    names_in,
    substitute,
)
from eatss.program.expression import Environment, Sizes
from eatss.program.linear import Linear, linear
from eatss.program.tokens import is_reserved

_SUMS = (Operator.ADD, Operator.SUB, Operator.MUL)

_Atoms = dict[IntExpr, str]
"""What is no sum or product, by the name that stands for it."""


def in_order(index: IntExpr) -> IntExpr:
    """Return an index as a sum of names, quotients and remainders, what cancels left out.

    Divisions are those of dividends that are not negative: ``(2 * m + l % 2) / 4`` is ``m / 2``,
    and ``(2 * m + l % 2) % 4`` is ``2 * (m % 2) + l % 2``.
    """
    atoms: _Atoms = {}
    form = linear(_opaque(index, atoms))
    return index if form is None else _named(form, atoms)


def _opaque(one: IntExpr, atoms: _Atoms) -> IntExpr:
    """Return an expression with names for what is no sum or product."""
    if not isinstance(one, Apply):
        return one
    if one.operator in _SUMS:
        return replace(one, operands=tuple(_opaque(each, atoms) for each in one.operands))
    one = replace(one, operands=tuple(map(in_order, one.operands)))
    shorter = _divided(one)
    if shorter is not None:
        return _opaque(shorter, atoms)
    return Name(atoms.setdefault(one, f"eatss_atom{len(atoms)}"))


def _named(form: Linear, atoms: _Atoms) -> IntExpr:
    return substitute(form.expression(), {name: one for one, name in atoms.items()})


def _divided(one: Apply) -> IntExpr | None:
    """Return a quotient or remainder in a shorter form, ``None`` if it is as short as can be.

    ``(g x + s) / (g c)`` is ``x / c``, its remainder ``g (x % c) + s``, for ``0 <= s < g``.
    """
    atoms: _Atoms = {}
    match one:
        case Apply(Operator.QUOTIENT | Operator.REMAINDER as kind, (value, Constant(by))):
            form = linear(_opaque(value, atoms))
        case _:
            return None
    most = {name: _most(atom) for atom, name in atoms.items()}
    for unit in range(by, 1, -1):
        if form is None or by % unit:
            continue
        terms, count = form.terms.items(), by // unit
        small = Linear({name: c for name, c in terms if c % unit}, form.constant % unit)
        bounds = [c * most.get(name, unit) for name, c in small.terms.items()]
        if any(bound < 0 for bound in bounds) or sum(bounds) + small.constant >= unit:
            continue
        large = Linear({n: c // unit for n, c in terms if not c % unit}, form.constant // unit)
        rest, left = _named(large, atoms), _named(small, atoms)
        if kind is Operator.QUOTIENT:
            return rest if count == 1 else rest // count
        turns = rest % count
        return left if count == 1 else unit * turns + left
    return None


def _most(atom: IntExpr) -> int:
    """Return the largest value of a remainder; of what has no bound, one that fits nowhere."""
    match atom:
        case Apply(Operator.REMAINDER, (_, Constant(by))):
            return by - 1
    return 1 << 62


def _is_target(node: Compute, part: Expression) -> bool:
    """Tell whether a part of a value is what the statement writes."""
    return isinstance(part, Read) and node.reads[part.access] == node.target


def added_to_target(node: Compute) -> Expression | None:
    """Return what a statement adds to its target, ``None`` if it does something else."""
    return added_to(
        node.statement.value, lambda one: _is_target(node, one), lambda n: _type_of(node, n)
    )


def added_terms(node: Compute) -> list[Expression]:
    """Return what a statement adds to its target, term by term; none if it does something else."""
    added = added_to_target(node)
    return [] if added is None else terms(added, lambda n: _type_of(node, n))


def own_part(node: Compute) -> Read:
    """Return the part of a sum that reads the statement's own target."""
    value = node.statement.value
    while isinstance(value, Binary):
        value = value.right if _is_target(node, value.right) else value.left
    assert isinstance(value, Read)
    return value


def _type_of(node: Compute, access: int) -> ElementType:
    return node.reads[access].buffer.element_type


@frozen
class _Nest:
    """A loop over ``k`` around the points of a thread, and a statement in them."""

    around: For
    points: tuple[For, ...]
    lets: tuple[Let, ...]
    source: Source | None
    compute: Compute

    def at(self, index: IntExpr, changes: Environment) -> IntExpr:
        """Return an index in terms of threads and points, with changes made to those."""
        for let in self.lets:
            index = substitute(index, {let.name: let.value})
        return in_order(substitute(index, changes))


@frozen
class _Side:
    """Rows of the target with the first factor, or its columns with the second.

    ``held`` are the coordinates of the target along it, a lane's and those of slots, and how far
    apart their elements are.
    """

    number: int
    axis: WarpAxis
    factor: Operand
    held: tuple[tuple[Coordinate, int], ...]
    lanes: Mapping[str, str]

    @property
    def slots(self) -> tuple[Coordinate, ...]:
        """The coordinates of a lane's own elements of a matrix."""
        return tuple(one for one, _ in self.held if one.name not in self.lanes)

    @property
    def count(self) -> int:
        """How many points of a thread are in a matrix."""
        return prod(one.extent for one in self.slots)

    def point(self, matrix: str, slot: IntExpr) -> IntExpr:
        """Return which of a thread's points is in a slot of a matrix."""
        turns, number = self.axis.turns, Name(matrix)
        if turns <= 1:
            return self.count * number + slot
        return (self.count * turns * (number // turns) + turns * slot) + number % turns

    def slot(self, values: Sizes) -> int:
        """Return which of a thread's points has slots of these values."""
        number = 0
        for one in self.slots:
            number = number * one.extent + values[one.name]
        return number

    def place(self, form: Linear, slots: Sizes) -> IntExpr:
        """Return an index of the factor at slots, lanes by their names in the kernel."""
        known = form.constant + sum(c * slots[n] for n, c in form.terms.items() if n in slots)
        terms = {self.lanes[name]: c for name, c in form.terms.items() if name not in slots}
        return Linear(terms, known).expression()

    def owner(self, index: IntExpr, extents: Sizes) -> tuple[IntExpr, IntExpr]:
        """Return the lane that has a row (or column) of the target, and its slot.

        Lanes have ``extents`` by their names in the kernel.
        """
        lane: IntExpr = Constant(0)
        slot: IntExpr = Constant(0)
        form = linear(index)
        for one, stride in self.held:
            own = self.lanes.get(one.name)
            digit: IntExpr = (index if stride == 1 else index // stride) % one.extent
            if form is not None and own is not None and form.terms.get(own) == stride:
                digit = Name(own)
            elif form is not None and form.constant % stride == 0:
                most = sum(value * (extents[name] - 1) for name, value in form.terms.items())
                if most < stride:
                    digit = Constant(form.constant // stride % one.extent)
            if own is None:
                slot = one.extent * slot + digit
            else:
                lane = digit
        return lane, slot


def use_warp_instruction(
    kernel: Kernel, instruction: Instruction, taken: set[str]
) -> Kernel | None:
    """Return a kernel in which warps compute nests of loops together, ``None`` if there are none.

    Only nests without guards fit, over whole multiples of what the instruction takes. Names that
    are ``taken`` stay what they are.
    """
    if not kernel.warps:
        return None
    user = _User(kernel, instruction, taken)
    body = mapped(kernel.body, user.changed)
    regroups = kernel.regroups or user.regroups
    return replace(kernel, body=body, regroups=regroups) if user.fits else None


class _User:
    def __init__(self, kernel: Kernel, instruction: Instruction, taken: set[str]) -> None:
        self._instruction, self._taken = instruction, taken
        self._target, *factors = sorted(instruction.operands, key=lambda one: one.role != "inout")
        lanes = dict(zip(their_names(instruction.lanes), kernel.warps, strict=True))
        own = (*instruction.lanes, *self._target.slots(instruction.lanes))
        self._sides = [
            _Side(
                number=number,
                axis=axis,
                factor=factor,
                held=tuple((one, terms[one.name]) for one in own if one.name in terms),
                lanes={name: one.lane for name, one in lanes.items()},
            )
            for number, (axis, factor) in enumerate(zip(kernel.warps, factors, strict=True))
            for terms in (self._target.held.points[number].terms,)
        ]
        self._lets = {one.name: (one.value,) for one in every_of(kernel.body, Let)}
        self.fits = self.regroups = False
        """Whether some nest is computed so, and whether products of one statement are added one
        after the other."""

    def changed(self, node: Node) -> Nodes:
        """Return what takes the place of a node."""
        found = _nests(node)
        nests = [own for one in found for own in _terms_apart(one)]
        if not nests or len({nest.compute.target for nest in nests}) > 1:
            return (node,)
        parts = complete(map(self._parts, nests))
        if parts is None:
            return (node,)
        self.fits = True
        self.regroups = self.regroups or len(nests) > len(found)
        return tuple(self._steps(nest, own) for nest, own in zip(nests, parts, strict=True))

    def _parts(self, nest: _Nest) -> Sequence[Expression] | None:
        """Return what each factor is, ``None`` where a nest does not fit the instruction.

        They have the factors that move along their own axis alone; those that move along neither
        go to the first. Where an instruction takes factors of another type, there is one of it for
        each.
        """
        compute, extents = nest.compute, dict(self._instruction.instances)
        target, trips = compute.target, constant_trips(nest.around)
        counts = [constant_trips(one) for one in nest.points]
        places = [Name(side.axis.point) for side in self._sides]
        added = added_to_target(compute)
        if (
            not [Name(one.counter) for one in nest.points] == [*target.subscripts] == places
            or any(
                count is None or count % side.count
                for count, side in zip(counts, self._sides, strict=True)
            )
            or trips is None
            or trips % extents["k"]
            or target.buffer.element_type not in self._instruction.element_types
            or added is None
        ):
            return None
        values = {**self._lets, **{one.name: (one.value,) for one in nest.lets}}
        moving = [{side.axis.point, side.axis.thread} for side in self._sides]
        groups: list[list[Expression]] = [[] for _ in self._sides]
        uses: list[set[str]] = [set() for _ in self._sides]
        for factor in factors(added):
            inside = [*preorder(factor)]
            reads = [compute.reads[one.access] for one in inside if isinstance(one, Read)]
            used = depends_on(names_in(*(s for read in reads for s in read.subscripts)), values)
            along = [bool(used & own) for own in moving]
            # registers and counters are a thread's own, so that other lanes cannot load them
            own = any(isinstance(one, AffineValue) for one in inside)
            if all(along) or own or any(one.buffer.space == "register" for one in reads):
                return None
            groups[along[1]].append(factor)
            uses[along[1]] |= used
        k = nest.around.counter
        if not all(k in used and used & own for used, own in zip(uses, moving, strict=True)):
            return None
        narrow = self._instruction.factor_types
        if not narrow:
            return [product_of(own) for own in groups]
        types = {at: one.buffer.element_type for at, one in enumerate(compute.reads)}
        found: Sequence[Expression] | None = complete(
            narrow_factor(one, narrow[side.factor.name], types)
            for side, own in zip(self._sides, groups, strict=True)
            for one in own
        )
        return found if found is not None and len(found) == len(groups) else None

    def _steps(self, nest: _Nest, parts: Sequence[Expression]) -> Steps:
        """Return what takes the place of a nest."""
        compute, instruction = nest.compute, self._instruction
        step = free_name(f"{nest.around.counter}_step", self._taken)
        wishes = [f"m{side.axis.loop}" for side in self._sides]
        at = [free_name(one + "_" * is_reserved(one), self._taken) for one in wishes]
        tiles = [
            (constant_trips(points) or 0) // side.count
            for points, side in zip(nest.points, self._sides, strict=True)
        ]
        own = [
            compute.target.buffer.at(
                *(
                    side.point(matrix, Constant(side.slot(values)))
                    for side, matrix in zip(self._sides, at, strict=True)
                )
            )
            for values in places(self._target.slots(instruction.lanes))
        ]
        operands = [(self._target.name, tuple(own))]
        loads: list[Node] = []
        for side, part, matrix, count in zip(self._sides, parts, at, tiles, strict=True):
            slots = [*places(side.factor.slots(instruction.lanes))]
            fragment = Buffer.of(
                "register",
                free_name(f"fragment_{side.factor.name}", self._taken),
                side.factor.element_type or compute.target.buffer.element_type,
                *(count, len(slots)),
            )
            elements = tuple(
                fragment.at(Name(matrix), Constant(number)) for number in range(len(slots))
            )
            loaded = tuple(
                Load(
                    statement=compute.statement,
                    part=part,
                    target=element,
                    reads=self._reads(nest, side, matrix, step, values),
                    types=compute.types,
                )
                for element, values in zip(elements, slots, strict=True)
            )
            operands.append((side.factor.name, elements))
            loads += [Declare(buffer=fragment), counted(matrix, count, loaded)]
        perform = Intrinsic(
            instruction=instruction, computes=compute.statement.name, operands=tuple(operands)
        )
        products = counted(at[0], tiles[0], (counted(at[1], tiles[1], (perform,)),))
        source = () if nest.source is None else (nest.source,)
        extent = dict(instruction.instances)["k"]
        return Steps(
            counter=step,
            count=(constant_trips(nest.around) or 0) // extent,
            loads=tuple(loads),
            products=(*source, products),
        )

    def _reads(
        self, nest: _Nest, side: _Side, matrix: str, step: str, values: Sizes
    ) -> tuple[Element, ...]:
        """Return what a lane reads for one slot of a factor."""
        along, over = side.factor.held.points[:: 1 if side.number == 0 else -1]
        inside = side.place(over, values)
        extent = dict(self._instruction.instances)["k"]
        extents = {one.axis.lane: one.axis.lanes for one in self._sides}
        lane, slot = side.owner(side.place(along, values), extents)
        changes = {
            nest.around.counter: nest.around.lower + inside + extent * Name(step),
            side.axis.point: side.point(matrix, slot),
        }
        if lane != Name(side.axis.lane):
            changes[side.axis.thread] = lane + side.axis.lanes * Name(side.axis.warp)
        return tuple(
            replace(read, subscripts=tuple(nest.at(one, changes) for one in read.subscripts))
            for read in nest.compute.reads
        )


def _terms_apart(nest: _Nest) -> list[_Nest]:
    """Return a nest for each product that a statement adds, as if each were a statement."""
    terms = added_terms(nest.compute)
    if len(terms) < len(("one", "another")):
        return [nest]
    statement, own = nest.compute.statement, own_part(nest.compute)
    values = [Binary(operator="+", left=own, right=term) for term in terms]
    apart = [replace(nest.compute, statement=replace(statement, value=one)) for one in values]
    return [replace(nest, compute=one) for one in apart]


class _Around(NamedTuple):
    """What stands around a statement: loops over points, values, those behind first, its source."""

    points: tuple[For, ...] = ()
    lets: tuple[Let, ...] = ()
    source: Source | None = None

    def known(self, node: Node) -> tuple[_Around, _Around]:
        """Return what stands around what is inside a node, and behind it."""
        if isinstance(node, Let | Source):
            lets = (node, *self.lets) if isinstance(node, Let) else self.lets
            source = node if isinstance(node, Source) else self.source
            behind = self._replace(lets=lets, source=source)
            return behind, behind
        points = (*self.points, node) if isinstance(node, For) else self.points
        return self._replace(points=points, source=None), self


def _nests(node: Node) -> tuple[_Nest, ...]:
    """Return a loop as nests, one for each statement in it; none if there is more in it."""
    if not isinstance(node, For) or not all(isinstance(one, _PLAIN) for one in every(node.body)):
        return ()
    return tuple(
        _Nest(around=node, compute=one, **around._asdict())
        for one, around in walked(node.body, _Around(), _Around.known)
        if isinstance(one, Compute)
    )


_PLAIN = (Let, Source, Scope, For, Compute)
