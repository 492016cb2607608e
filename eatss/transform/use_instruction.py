"""Let an instruction do what statements do, or one that warps run together what a nest does.

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

import ast
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

from eatss.free_names import free_name
from eatss.frozen import frozen
from eatss.kernel.instruction import Coordinate, Instruction, Operand, places
from eatss.kernel.nodes import (
    Buffer,
    Compute,
    Declare,
    Element,
    Evaluate,
    For,
    Kernel,
    Layout,
    Let,
    Node,
    Perform,
    Scope,
    Source,
    Steps,
    WarpAxis,
    counted,
)
from eatss.kernel.uses import constant_trips, every_of, mapped
from eatss.program import Constant, IntExpr, Name, names_in, substitute
from eatss.program.linear import Linear, linear
from eatss.program.source_names import is_reserved
from eatss.scops import AffineValue, Binary, ElementType, Expression, Literal, Read, preorder
from eatss.scops.expression import added_to, factors, narrow_factor, product_of, terms
from eatss.transform.index_sums import in_order

_SIGNS: dict[type[ast.AST], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}

Parts = dict[str, Expression]
"""The part of a statement's value that each operand is."""


def use_instruction(kernel: Kernel, instruction: Instruction) -> Kernel:
    """Return a kernel in which an instruction computes what it can.

    A statement fits where its value is that of the instruction, its type one of the instruction's,
    and no operand is read from where the result goes. Only an instruction of single values can fit
    that a thread runs by itself; atomic ones are for memory that threads share, and are placed.
    """

    def changed(node: Node) -> tuple[Node, ...]:
        return (_with(node, instruction) if isinstance(node, Compute) else node,)

    return replace(kernel, body=mapped(kernel.body, changed))


def _with(node: Compute, instruction: Instruction) -> Compute:
    placed = instruction.atomic or instruction.together or instruction.instances
    if placed or instruction.immediates or node.by is not None:
        return node
    if node.target.buffer.element_type not in instruction.element_types:
        return node
    value = node.statement.value
    if instruction.adds:
        added = added_to_target(node, value)
        if added is None:
            return node
        value = added
    own = Read(access=0)
    for parts in _matches(instruction.expression, value, {}):
        before = parts.pop(instruction.target, own)
        operands = [part for one in parts.values() for part in preorder(one)]
        if _is_target(node, before) and not any(_is_target(node, one) for one in operands):
            return replace(node, by=(instruction, (*parts.items(), (instruction.target, own))))
    return node


def _is_target(node: Compute, part: Expression) -> bool:
    """Tell whether a part of a value is what the statement writes."""
    return isinstance(part, Read) and node.reads[part.access] == node.target


def added_to_target(node: Compute, value: Expression) -> Expression | None:
    """Return what a statement adds to its target, ``None`` if it does something else."""
    return added_to(value, lambda one: _is_target(node, one), lambda n: _type_of(node, n))


def added_terms(node: Compute) -> list[Expression]:
    """Return what a statement adds to its target, term by term; none if it does something else."""
    added = added_to_target(node, node.statement.value)
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


def _matches(pattern: ast.expr, value: Expression, known: Parts) -> Sequence[Parts]:
    """Return the ways in which a value is what a pattern says.

    Operands of sums and products may change places.
    """
    if isinstance(pattern, ast.Name):
        if pattern.id in known:
            return [known] if known[pattern.id] == value else []
        return [{**known, pattern.id: value}]
    if isinstance(pattern, ast.Constant):
        same = isinstance(value, Literal) and _number(value.text) == pattern.value
        return [known] if same else []
    if not isinstance(pattern, ast.BinOp) or not isinstance(value, Binary):
        return []
    sign = _SIGNS.get(type(pattern.op))
    if sign != value.operator:
        return []
    sides = [(value.left, value.right)]
    if sign in ("+", "*"):
        sides.append((value.right, value.left))
    return [
        both
        for left, right in sides
        for first in _matches(pattern.left, left, known)
        for both in _matches(pattern.right, right, first)
    ]


def _number(text: str) -> float | None:
    if len(text) > 1 and text.startswith("0") and text.isdigit():
        return int(text, 8)
    try:
        return float(text.rstrip("fFlLuU"))
    except ValueError:
        return None


_AXES = 2
"""Loops of a target: its rows and its columns."""

_Values = dict[str, IntExpr]


@frozen
class _Nest:
    """A loop over ``k`` around the points of a thread, and a statement in them."""

    around: For
    points: tuple[For, ...]
    lets: tuple[Let, ...]
    source: Source | None
    compute: Compute

    def at(self, index: IntExpr, changes: Mapping[str, IntExpr]) -> IntExpr:
        """Return an index in terms of threads and points, with changes made to those."""
        for let in self.lets:
            index = substitute(index, {let.name: let.value})
        return in_order(substitute(index, changes))


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
        self._instruction = instruction
        self._axes: tuple[WarpAxis, ...] = kernel.warps
        self._target, *_ = (one for one in instruction.operands if one.role == "inout")
        self._lets = {node.name: node.value for node in every_of(kernel.body, Let)}
        self._taken = taken
        self.fits = self.regroups = False
        """Whether some nest is computed so, and whether products of one statement are added one
        after the other."""

    def changed(self, node: Node) -> tuple[Node, ...]:
        """Return what takes the place of a node."""
        found = _nests(node) if isinstance(node, For) else ()
        nests = [own for one in found for own in _terms_apart(one)]
        if not nests or len({nest.compute.target for nest in nests}) > 1:
            return (node,)
        made = [self._with(nest) for nest in nests]
        if any(one is None for one in made):
            return (node,)
        self.fits = True
        self.regroups = self.regroups or len(nests) > len(found)
        return tuple(node for one in made if one is not None for node in one)

    def _with(self, nest: _Nest) -> tuple[Node, ...] | None:
        """Return a nest by the instruction, ``None`` where it does not fit."""
        instruction, compute = self._instruction, nest.compute
        extents = dict(instruction.instances)
        trips = constant_trips(nest.around)
        tiles = self._tiles(nest)
        if compute.by is not None or trips is None or trips % extents["k"] or tiles is None:
            return None
        if compute.target.buffer.element_type not in instruction.element_types:
            return None
        if compute.target.subscripts != tuple(Name(one.counter) for one in nest.points):
            return None
        added = added_to_target(compute, compute.statement.value)
        if added is None:
            return None
        parts = self._parts(nest, added)
        return None if parts is None else self._made(nest, parts, tiles, trips // extents["k"])

    def _tiles(self, nest: _Nest) -> tuple[int, int] | None:
        """Return how many matrices the points of a warp are, along both axes."""
        if [one.counter for one in nest.points] != [axis.point for axis in self._axes]:
            return None
        found = []
        for number, points in enumerate(nest.points):
            count = constant_trips(points)
            slots = prod(one.extent for one in self._slots_along(number))
            if count is None or count % slots:
                return None
            found.append(count // slots)
        return found[0], found[1]

    def _slots_along(self, axis: int) -> tuple[Coordinate, ...]:
        terms = self._target.held.points[axis].terms
        slots = self._target.slots(self._instruction.lanes)
        return tuple(one for one in slots if one.name in terms)

    def _parts(self, nest: _Nest, product_: Expression) -> dict[str, Expression] | None:
        """Return what each operand is: the factors that move along its own axis alone.

        Factors that move along neither go to the first operand. Where an instruction takes factors
        of another type, there is one of it for each operand.
        """
        k = nest.around.counter
        moving = [{axis.point, axis.thread} for axis in self._axes]
        groups: dict[str, list[Expression]] = {"a": [], "b": []}
        uses: dict[str, set[str]] = {"a": set(), "b": set()}
        for factor in factors(product_):
            used = self._names(nest, factor)
            along = [bool(used & own) for own in moving]
            if all(along) or not self._loads(nest, factor):
                return None
            name = "b" if along[1] else "a"
            groups[name].append(factor)
            uses[name] |= used
        if not all(
            k in used and used & own for used, own in zip(uses.values(), moving, strict=True)
        ):
            return None
        narrow = self._instruction.factor_types
        if not narrow:
            return {name: product_of(factors) for name, factors in groups.items()}
        types = {at: one.buffer.element_type for at, one in enumerate(nest.compute.reads)}
        inner = {
            name: narrow_factor(own[0], narrow[name], types) if len(own) == 1 else None
            for name, own in groups.items()
        }
        found = {name: one for name, one in inner.items() if one is not None}
        return found if len(found) == len(groups) else None

    def _loads(self, nest: _Nest, factor: Expression) -> bool:
        """Tell whether any lane can load a factor: registers and counters are a thread's own."""
        if any(isinstance(one, AffineValue) for one in preorder(factor)):
            return False
        reads = [
            nest.compute.reads[one.access] for one in preorder(factor) if isinstance(one, Read)
        ]
        return all(one.buffer.space != "register" for one in reads)

    def _names(self, nest: _Nest, part: Expression) -> set[str]:
        """Return what the elements of a part depend on."""
        reads = [nest.compute.reads[one.access] for one in preorder(part) if isinstance(one, Read)]
        found = {n for read in reads for n in names_in(*read.subscripts)}
        lets = {**self._lets, **{one.name: one.value for one in nest.lets}}
        todo = list(found)
        while todo:
            for name in names_in(lets.get(todo.pop(), Constant(0))):
                if name not in found:
                    found.add(name)
                    todo.append(name)
        return found

    # -- what takes the place of a nest ---------------------------------------------------------

    def _made(
        self, nest: _Nest, parts: Mapping[str, Expression], tiles: tuple[int, int], steps: int
    ) -> tuple[Node, ...]:
        step = free_name(f"{nest.around.counter}_step", self._taken)
        wishes = [f"m{axis.loop}" for axis in self._axes]
        at = tuple(free_name(one + "_" * is_reserved(one), self._taken) for one in wishes)
        instruction = self._instruction
        body: list[Node] = []
        fragments: dict[str, Buffer] = {}
        for operand in instruction.operands:
            if operand is self._target:
                continue
            axis = 0 if operand.name == "a" else 1
            slots = operand.slots(instruction.lanes)
            count = prod(one.extent for one in slots)
            buffer = Buffer(
                name=free_name(f"fragment_{operand.name}", self._taken),
                space="register",
                element_type=operand.element_type or nest.compute.target.buffer.element_type,
                layout=Layout((Constant(tiles[axis]), Constant(count))),
            )
            fragments[operand.name] = buffer
            loads = [
                Evaluate(
                    statement=nest.compute.statement,
                    part=parts[operand.name],
                    target=Element(buffer=buffer, subscripts=(Name(at[axis]), Constant(number))),
                    reads=self._reads(nest, operand, axis, at[axis], step, values),
                    types=nest.compute.types,
                )
                for number, values in enumerate(places(slots))
            ]
            body += [Declare(buffer=buffer), counted(at[axis], tiles[axis], tuple(loads))]
        perform = Perform(
            instruction=instruction,
            computes=nest.compute.statement.name,
            operands=(
                (self._target.name, self._own_targets(nest, at)),
                *(
                    (name, tuple(
                        Element(buffer=one, subscripts=(Name(at["ab".index(name)]), Constant(slot)))
                        for slot in range(_constant(one.layout.extents[1]))
                    ))
                    for name, one in fragments.items()
                ),
            ),
        )  # fmt: skip
        product_of = counted(at[0], tiles[0], (counted(at[1], tiles[1], (perform,)),))
        source = () if nest.source is None else (nest.source,)
        products = (*source, product_of)
        return (Steps(counter=step, count=steps, loads=tuple(body), products=products),)

    def _own_targets(self, nest: _Nest, at: tuple[str, ...]) -> tuple[Element, ...]:
        """Return the elements of the target that a lane has of one matrix."""
        found = []
        for values in places(self._target.slots(self._instruction.lanes)):
            own = tuple(
                self._point(axis, at[axis], Constant(self._slot(axis, values)))
                for axis in range(_AXES)
            )
            found.append(Element(buffer=nest.compute.target.buffer, subscripts=own))
        return tuple(found)

    def _point(self, axis: int, matrix: str, slot: IntExpr) -> IntExpr:
        """Return which of a thread's points along an axis is in a slot of a matrix."""
        count, turns, number = self._count(axis), self._axes[axis].turns, Name(matrix)
        if turns <= 1:
            return count * number + slot
        first = number // turns
        inside = number % turns
        before = count * turns * first + turns * slot
        return before + inside

    def _count(self, axis: int) -> int:
        return prod(one.extent for one in self._slots_along(axis))

    def _slot(self, axis: int, values: Mapping[str, int]) -> int:
        """Return which of a thread's points along an axis has slots of these values."""
        number = 0
        for one in self._slots_along(axis):
            number = number * one.extent + values[one.name]
        return number

    def _reads(
        self,
        nest: _Nest,
        operand: Operand,
        axis: int,
        tile: str,
        step: str,
        values: Mapping[str, int],
    ) -> tuple[Element, ...]:
        """Return what a lane reads for one slot of an operand."""
        along, over = (0, 1) if operand.name == "a" else (1, 0)
        lanes = self._lane_names()
        own = _placed(operand.held.points[along], lanes, values)
        k_inside = _placed(operand.held.points[over], lanes, values)
        extent = dict(self._instruction.instances)["k"]
        k = nest.around.lower + k_inside + extent * Name(step)
        changes: _Values = {nest.around.counter: k}
        lane, slot = self._owner(axis, own)
        place = self._axes[axis]
        if lane != Name(place.lane):
            changes[place.thread] = lane + place.lanes * Name(place.warp)
        changes[place.point] = self._point(axis, tile, slot)
        return tuple(
            replace(read, subscripts=tuple(nest.at(one, changes) for one in read.subscripts))
            for read in nest.compute.reads
        )

    def _lane_names(self) -> dict[str, str]:
        """Return what the coordinates of a lane are called in the kernel."""
        pairs = zip(self._instruction.lanes, self._axes, strict=True)
        return {lane.name: axis.lane for lane, axis in pairs}

    def _owner(self, axis: int, index: IntExpr) -> tuple[IntExpr, IntExpr]:
        """Return the lane along an axis that has a row (or column) of the target, and its slot."""
        terms = self._target.held.points[axis].terms
        names = self._lane_names()
        lane: IntExpr = Constant(0)
        slot: IntExpr = Constant(0)
        for one in (*self._instruction.lanes, *self._target.slots(self._instruction.lanes)):
            if one.name not in terms:
                continue
            digit = self._digit(index, terms[one.name], one, names.get(one.name))
            if one.name in names:
                lane = digit
            else:
                slot = one.extent * slot + digit
        return lane, slot

    def _digit(self, index: IntExpr, stride: int, one: Coordinate, own: str | None) -> IntExpr:
        """Return the digit of an index that a coordinate is; ``own`` is its name, if it has one."""
        form = linear(index)
        if form is not None:
            if own is not None and form.terms.get(own) == stride:
                return Name(own)
            extents = {axis.lane: axis.lanes for axis in self._axes}
            most = sum(value * (extents[name] - 1) for name, value in form.terms.items())
            if form.constant % stride == 0 and most < stride:
                return Constant(form.constant // stride % one.extent)
        found = index if stride == 1 else index // stride
        return found % one.extent


def _terms_apart(nest: _Nest) -> list[_Nest]:
    """Return a nest for each product that a statement adds, as if each were a statement."""
    terms = added_terms(nest.compute)
    if len(terms) < len(("one", "another")):
        return [nest]
    statement, own = nest.compute.statement, own_part(nest.compute)
    values = [Binary(operator="+", left=own, right=term) for term in terms]
    apart = [replace(nest.compute, statement=replace(statement, value=one)) for one in values]
    return [replace(nest, compute=one) for one in apart]


def _nests(node: For) -> tuple[_Nest, ...]:
    """Return a loop as nests, one for each statement in it; none if there is more in it."""
    found: list[_Nest] = []

    def walk(body: Sequence[Node], points: tuple[For, ...], lets: tuple[Let, ...]) -> bool:
        source: Source | None = None
        for one in body:
            if isinstance(one, Let):
                lets = (one, *lets)
            elif isinstance(one, Source):
                source = one
            elif isinstance(one, Scope):
                if not walk(one.body, points, lets):
                    return False
            elif isinstance(one, For):
                if not walk(one.body, (*points, one), lets):
                    return False
            elif isinstance(one, Compute):
                found.append(
                    _Nest(around=node, points=points, lets=lets, source=source, compute=one)
                )
            else:
                return False
        return True

    return tuple(found) if walk(node.body, (), ()) else ()


def _placed(form: Linear, lanes: Mapping[str, str], slots: Mapping[str, int]) -> IntExpr:
    """Return an index of an operand at slots, lanes by their names in the kernel."""
    known = form.constant + sum(c * slots[n] for n, c in form.terms.items() if n in slots)
    terms = {lanes[name]: c for name, c in form.terms.items() if name not in slots}
    return Linear(terms, known).expression()


def _constant(value: IntExpr) -> int:
    assert isinstance(value, Constant)
    return value.value
