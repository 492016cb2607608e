"""The code of a thread as nodes: its loops named, its points unrolled, its statements placed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import islpy as isl

from eatss.lower.arrays import affine_text, condition_of
from eatss.lower.kernel.nodes import (
    Compute,
    Copy,
    Element,
    For,
    If,
    Instance,
    Let,
    Loop,
    Node,
    Nodes,
    Scope,
    Source,
    Unroll,
    counted,
)
from eatss.lower.kernel.uses import (
    affine_values,
    every_of,
    inside,
    mapped,
    mapped_of,
    names_of,
    substituted,
)
from eatss.lower.mapping import MappedLoop
from eatss.lower.references import KernelInput, References
from eatss.plan.contract import MOST_POINTS
from eatss.polyhedral.isl_names import dims_as_parameters
from eatss.polyhedral.scop import Statement
from eatss.program import (
    Apply,
    Constant,
    IntExpr,
    Name,
    Operator,
    equals,
    names_in,
    substitute,
)
from eatss.program.expression import Environment
from eatss.program.linear import (
    Definition,
    Linear,
    bounds,
    folded,
    linear,
    strict,
)
from eatss.program.tokens import SHARED, is_reserved

UNROLLED_STATEMENTS = 512
"""Statements up to which a serial loop of constant length is unrolled completely."""

LEAST_STEPS = 8
"""Steps that are unrolled where each is a thread's points once. On an H100 a product of floats with
128 points takes 3.44 ms with 8 and 3.53 ms with 4."""

SPLIT_UNROLLED = 16
"""Points of a split sum that are unrolled."""


class ThreadBuilder:
    """Builds the code of a thread."""

    def __init__(self, own: KernelInput, references: References) -> None:
        mapping = own.mapping
        self._references, self._piece = references, own.piece
        self._names, self._index = own.names, own.index
        self._line_info = own.context.line_info
        self._unrolled = mapping.points <= MOST_POINTS
        # names of the kernel that a counter of the source must not hide
        self._own = {SHARED, *references.own_names, *own.piece.host_names}
        for loop in mapping.spread:
            self._own |= {loop.origin, loop.thread, loop.point}
        self._own |= {tile.origin for tile in mapping.serial}
        split = mapping.split if mapping.scan is None else None
        self._split_point = None if split is None else split.point
        self._by_point = {loop.point: loop for loop in mapping.spread if loop.points > 1}
        self._definitions = [
            Definition(loop.name, loop.first) for loop in mapping.spread if loop.is_single
        ]

    def lowered(self, nodes: Nodes) -> Nodes:
        """Return loops of isl in their final form: named, points guarded, expressions folded."""
        return self._lowered(mapped_of(nodes, Loop, self._named), self._definitions)

    def known(self) -> Environment:
        """Return what the names of loops of one point stand for."""
        return {one.name: one.form.expression() for one in self._definitions}

    # Names -------------------------------------------------------------------------------

    def _named(self, loop: Loop) -> Node:
        """Give a loop its C name: that of the schedule's loop where it is the counter."""
        name = self._loop_name(loop)
        (found,) = substituted((replace(loop, counter=name),), {loop.counter: Name(name)})
        return found

    def _loop_name(self, loop: Loop) -> str:
        if loop.points is not None:
            return loop.hint
        own = Name(loop.counter)
        for one in every_of(loop.body, Instance):
            if self._references.is_transfer(one.name):
                continue
            counters = self._piece.statement(one.name).loops
            if loop.hint in counters and one.values[counters.index(loop.hint)] != own:
                return self._names.inner().fresh(f"{loop.hint}_t")
        return loop.hint

    # The final form ----------------------------------------------------------------------

    def _lowered(self, nodes: Nodes, definitions: Sequence[Definition]) -> Nodes:
        found: list[Node] = []
        for node in nodes:
            match node:
                case Instance():
                    values = tuple(folded(value, definitions) for value in node.values)
                    found.append(replace(node, values=values))
                case If():
                    tests = tuple(strict(folded(one, definitions)) for one in node.conditions)
                    body, orelse = (
                        self._lowered(own, definitions) for own in (node.body, node.orelse)
                    )
                    found.append(If(conditions=tests, body=body, orelse=orelse))
                case Loop(points=None):
                    loop = For(
                        counter=node.counter,
                        lower=folded(node.lower, definitions),
                        condition=strict(folded(node.condition, definitions)),
                        step=Constant(node.step),
                        body=self._lowered(node.body, definitions),
                        unroll=_unroll(node),
                    )
                    found.append(loop)
                case Loop(points=int(points)):
                    found.append(self._over_points(node, points, definitions))
        return tuple(found)

    def _over_points(self, loop: Loop, points: int, definitions: Sequence[Definition]) -> For:
        """Return a loop over a thread's points.

        It always has its full length, so that registers can be indexed when it is unrolled; points
        outside the domain are left out by a guard in terms of the loop itself.
        """
        along = self._by_point[loop.counter]
        base = along.first
        form = base.plus(Linear({loop.counter: along.step}, 0))
        inner = [*definitions, Definition(along.name, form)]
        body = self._lowered(loop.body, inner)
        guards = self._guards(loop, points, along, base)
        if guards:
            tests = tuple(strict(folded(guard, inner)) for guard in guards)
            body = (If(conditions=tests, body=body),)
        unroll: Unroll = "whole" if self._unrolled else None
        if loop.counter == self._split_point:
            unroll = min(points, SPLIT_UNROLLED)
        place = Let(name=along.name, value=form.expression())
        return counted(loop.counter, points, (place, *body), unroll)

    # Nodes -------------------------------------------------------------------------------

    def nodes(self, nodes: Nodes) -> Nodes:
        """Return lowered nodes with what computes and copies in the place of instances."""
        return mapped(nodes, self._placed)

    def _placed(self, node: Node) -> Nodes:
        if isinstance(node, Instance):
            return self._instance(node)
        if isinstance(node, If):
            return (replace(node, conditions=tuple(map(self._index, node.conditions))),)
        if isinstance(node, For):
            self._index.note(node.lower, node.condition)
            place, *body = node.body
            if isinstance(place, Let) and place.name not in names_of(body):
                return (replace(node, body=tuple(body)),)
        if isinstance(node, Let):
            self._index.note(node.value)
        return (node,)

    def _guards(self, loop: Loop, points: int, along: MappedLoop, base: Linear) -> list[IntExpr]:
        """Return the conditions under which a thread has a point."""
        guards: list[IntExpr] = []
        counter, name, first = loop.counter, Name(along.name), base.expression()
        if loop.exact or (
            loop.condition == (Name(counter) <= loop.lower)
            and linear(loop.lower) is not None  # of a quotient the rest would be lost
        ):
            value = bounds(loop.lower, along.step, base, upper=True)
            if value is not None:
                return [equals(name, value[0])]
        if not _at_most(loop.lower, 0):
            lower = bounds(loop.lower, along.step, base, upper=False)
            guards += (
                [Name(counter) >= loop.lower]
                if lower is None
                else [name >= bound for bound in lower if bound != first]
            )
        last = _last_value(loop)
        last = None if last is None else _without_constants(last, points - 1)
        if last is None:
            guards.append(loop.condition)
        elif not _at_least(last, points - 1):
            upper = bounds(last, along.step, base, upper=True)
            guards += (
                [Name(counter) <= last] if upper is None else [name <= bound for bound in upper]
            )
        if loop.step != 1:
            rest = Apply(Operator.MOD, (Name(counter) - loop.lower, Constant(loop.step)))
            guards.append(equals(rest, 0))
        return guards

    def _instance(self, one: Instance) -> Nodes:
        references = self._references
        if references.is_transfer(one.name):
            return (references.transfer(one.name, one.values),)
        statement = self._piece.statement(one.name)
        env, declared = self._counters(statement, one.values)
        reads = tuple(
            references.element((statement.name, k), env) for k in range(len(statement.accesses))
        )
        integers = (affine_text(one.value, env) for one in affine_values(statement.value))
        lines: list[Node] = [
            Compute(
                statement=statement,
                target=reads[0],
                reads=reads,
                integers=tuple(map(self._index, integers)),
                types=self._piece.scop.types,
            )
        ]
        through = references.write_through(statement.name)
        if through is not None:
            lines.append(self._write_through(statement, through, reads[0], env))
        used = names_of(lines)
        constants = [
            Let(name=name, value=self._index(value)) for name, value in declared if name in used
        ]
        place = Source(line=statement.span.line, text=statement.text, file=statement.written_in)
        if constants or self._line_info:
            return (Scope(body=(*constants, place, *lines)),)
        return (place, *lines)

    def _counters(
        self, statement: Statement, values: Sequence[IntExpr]
    ) -> tuple[Environment, list[tuple[str, IntExpr]]]:
        """Return what the statement's counters are called, and the variables to declare."""
        mentioned = set(names_in(*values))
        env: Environment = {}
        declared: list[tuple[str, IntExpr]] = []
        local = self._names.inner()
        for name, value in zip(statement.loops, values, strict=True):
            if isinstance(value, Constant | Name):
                env[name] = value
                continue
            free = not (name in mentioned or name in self._own or is_reserved(name))
            own = name if free else local.fresh(f"{name}_s")
            env[name] = Name(own)
            declared.append((own, value))
        return env, declared

    def _write_through(
        self,
        statement: Statement,
        through: tuple[isl.Set, Element],
        value: Element,
        env: Environment,
    ) -> Copy:
        """Return the assignment of a scalar's cell where others see the value."""
        escape, cell = through
        temporary = tuple(f"eatss_{name}" for name in statement.loops)
        params = dims_as_parameters(self._piece.unbound(escape), temporary)
        domain = dims_as_parameters(
            self._piece.unbound(self._piece.domain_of(statement.name)), temporary
        )
        condition = substitute(
            condition_of(params, domain),
            {t: env[name] for t, name in zip(temporary, statement.loops, strict=True)},
        )
        always = condition == Constant(1)
        return Copy(target=cell, source=value, condition=None if always else self._index(condition))


def _without_constants(last: IntExpr, most: int) -> IntExpr:
    """Drop the constants of a minimum that are ``most`` or more."""
    if not isinstance(last, Apply) or last.operator is not Operator.MIN:
        return last
    kept = tuple(operand for operand in last.operands if not _at_least(operand, most))
    if not kept:
        return Constant(most)
    return kept[0] if len(kept) == 1 else replace(last, operands=kept)


def _trips(loop: Loop) -> int | None:
    """Return the number of trips of a loop if it is constant."""
    last = _last_value(loop)
    if last is None:
        return None
    length = last - loop.lower
    return length.value // loop.step + 1 if isinstance(length, Constant) else None


def _unroll(loop: Loop) -> Unroll:
    """Return how a loop of constant length is unrolled: as far as code stays small."""
    trips = _trips(loop)
    if trips is None:
        return None
    factor = _unroll_factor(trips, _unrolled_size(loop.body))
    return "whole" if factor == trips else factor


def _unroll_factor(trips: int, statements: int) -> int:
    steps = UNROLLED_STATEMENTS // max(1, statements)
    if statements <= MOST_POINTS:
        steps = max(steps, LEAST_STEPS)
    return max(1, min(trips, steps))


def _unrolled_size(nodes: Nodes) -> int:
    """Return how many statements there are when loops are unrolled as far as they will be."""
    found = 0
    for node in nodes:
        own = isinstance(node, Instance) + sum(map(_unrolled_size, inside(node)))
        trips = _trips(node) if isinstance(node, Loop) and node.points is None else None
        points = node.points or 1 if isinstance(node, Loop) else 1
        found += points * own if trips is None else own * _unroll_factor(trips, own)
    return found


def _last_value(loop: Loop) -> IntExpr | None:
    """Return the last value a loop may take, where its condition is one upper bound."""
    match loop.condition:
        case Apply(Operator.LE | Operator.LT as kind, (Name(loop.counter), last)):
            return last if kind is Operator.LE else last - 1
    return None


def _at_most(value: IntExpr, bound: int) -> bool:
    return isinstance(value, Constant) and value.value <= bound


def _at_least(value: IntExpr, bound: int) -> bool:
    return isinstance(value, Constant) and value.value >= bound
