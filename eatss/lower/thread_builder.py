"""The code of a thread as nodes: its loops named, its points unrolled, its statements placed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import islpy as isl

from eatss.lower.arrays import affine_text, condition_of
from eatss.lower.kernel import nodes as kernel
from eatss.lower.kernel.uses import affine_values, names_of
from eatss.lower.mapping import MappedLoop
from eatss.lower.references import KernelInput, References
from eatss.lower.thread_ast import (
    TREE,
    Block,
    If,
    Leaf,
    Loop,
    Node,
    Points,
    leaves,
    map_expressions,
)
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
        for mapped in mapping.spread:
            self._own |= {mapped.origin, mapped.thread, mapped.point}
        self._own |= {tile.origin for tile in mapping.serial}
        split = mapping.split if mapping.scan is None else None
        self._split_point = None if split is None else split.point
        self._by_point = {loop.point: loop for loop in mapping.spread if loop.points > 1}
        self._definitions = [
            Definition(loop.name, loop.first) for loop in mapping.spread if loop.is_single
        ]

    def lowered(self, node: Node) -> Node:
        """Return a tree in its final form: named, its points guarded, folded."""
        return self._lowered(self._named(node), self._definitions)

    def known(self) -> Environment:
        """Return what the names of loops of one point stand for."""
        return {one.name: one.form.expression() for one in self._definitions}

    # Names -------------------------------------------------------------------------------

    def _named(self, node: Node) -> Node:
        """Give every loop its C name: that of the schedule's loop where it is the counter."""
        if isinstance(node, Loop):
            own = {node.counter: Name(self._loop_name(node))}
            node = map_expressions(
                replace(node, counter=own[node.counter].name), lambda e: substitute(e, own)
            )
        return TREE.rebuilt(node, self._named)

    def _loop_name(self, loop: Loop) -> str:
        if loop.points is not None:
            return loop.hint
        own = Name(loop.counter)
        for leaf in leaves(loop.body):
            if self._references.is_transfer(leaf.instance):
                continue
            counters = self._piece.statement(leaf.instance).loops
            if loop.hint in counters and leaf.values[counters.index(loop.hint)] != own:
                return self._names.inner().fresh(f"{loop.hint}_t")
        return loop.hint

    # The final form ----------------------------------------------------------------------

    def _lowered(self, node: Node, definitions: Sequence[Definition]) -> Node:
        if isinstance(node, Leaf):
            return replace(node, values=tuple(folded(v, definitions) for v in node.values))
        if isinstance(node, Loop) and node.points is not None:
            return self._lowered_points(node, node.points, definitions)
        if isinstance(node, Loop):
            node = replace(node, lower=folded(node.lower, definitions), trips=_trips(node))
        if isinstance(node, Loop | If):
            node = replace(node, condition=strict(folded(node.condition, definitions)))
        return TREE.rebuilt(node, lambda child: self._lowered(child, definitions))

    def _lowered_points(self, loop: Loop, points: int, definitions: Sequence[Definition]) -> Points:
        """Return a loop over a thread's points.

        It always has its full length, so that registers can be indexed when it is unrolled; points
        outside the domain are left out by a guard in terms of the loop itself.
        """
        mapped = self._by_point[loop.counter]
        base = mapped.first
        form = base.plus(Linear({loop.counter: mapped.step}, 0))
        inner = [*definitions, Definition(mapped.name, form)]
        guards = self._guards(loop, points, mapped, base)
        return Points(
            counter=loop.counter,
            count=points,
            name=mapped.name,
            value=form.expression(),
            guards=tuple(strict(folded(guard, inner)) for guard in guards),
            body=self._lowered(loop.body, inner),
        )

    # Nodes -------------------------------------------------------------------------------

    def nodes(self, node: Node) -> kernel.Nodes:
        """Return the nodes of a lowered tree."""
        match node:
            case Block():
                return tuple(found for child in node.body for found in self.nodes(child))
            case If():
                orelse = () if node.orelse is None else self.nodes(node.orelse)
                conditions = (self._index(node.condition),)
                return (
                    kernel.If(conditions=conditions, body=self.nodes(node.body), orelse=orelse),
                )
            case Loop():
                return (
                    kernel.For(
                        counter=node.counter,
                        lower=self._index(node.lower),
                        condition=self._index(node.condition),
                        step=Constant(node.step),
                        body=self.nodes(node.body),
                        unroll=_unroll(node),
                    ),
                )
            case Points():
                return (self._points(node),)
            case Leaf():
                return self._leaf(node)

    def _points(self, points: Points) -> kernel.For:
        inner = self.nodes(points.body)
        if points.guards:
            guards = tuple(self._index(guard) for guard in points.guards)
            inner = (kernel.If(conditions=guards, body=inner),)
        if points.name in names_of(inner):
            value = self._index(points.value)
            inner = (kernel.Let(name=points.name, value=value), *inner)
        unroll: kernel.Unroll = "whole" if self._unrolled else None
        if points.counter == self._split_point:
            unroll = min(points.count, SPLIT_UNROLLED)
        return kernel.counted(points.counter, points.count, inner, unroll)

    def _guards(self, loop: Loop, points: int, mapped: MappedLoop, base: Linear) -> list[IntExpr]:
        """Return the conditions under which a thread has a point."""
        guards: list[IntExpr] = []
        counter, name, first = loop.counter, Name(mapped.name), base.expression()
        if loop.exact or (
            loop.condition == (Name(counter) <= loop.lower)
            and linear(loop.lower) is not None  # of a quotient the rest would be lost
        ):
            value = bounds(loop.lower, mapped.step, base, upper=True)
            if value is not None:
                return [equals(name, value[0])]
        if not _at_most(loop.lower, 0):
            lower = bounds(loop.lower, mapped.step, base, upper=False)
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
            upper = bounds(last, mapped.step, base, upper=True)
            guards += (
                [Name(counter) <= last] if upper is None else [name <= bound for bound in upper]
            )
        if loop.step != 1:
            offset = Name(counter) - loop.lower
            rest = Apply(Operator.MOD, (offset, Constant(loop.step)))
            guards.append(equals(rest, 0))
        return guards

    def _leaf(self, leaf: Leaf) -> kernel.Nodes:
        references = self._references
        if references.is_transfer(leaf.instance):
            return (references.transfer(leaf.instance, leaf.values),)
        statement = self._piece.statement(leaf.instance)
        env, declared = self._counters(statement, leaf.values)
        reads = tuple(
            references.element((statement.name, k), env) for k in range(len(statement.accesses))
        )
        integers = (affine_text(one.value, env) for one in affine_values(statement.value))
        lines: list[kernel.Node] = [
            kernel.Compute(
                statement=statement,
                target=reads[0],
                reads=reads,
                integers=tuple(map(self._index, integers)),
                types=references.element_types,
            )
        ]
        through = references.write_through(statement.name)
        if through is not None:
            lines.append(self._write_through(statement, through, reads[0], env))
        used = names_of(lines)
        constants = [
            kernel.Let(name=name, value=self._index(value))
            for name, value in declared
            if name in used
        ]
        place = kernel.Source(
            line=statement.span.line, text=statement.text, file=statement.written_in
        )
        if constants or self._line_info:
            return (kernel.Scope(body=(*constants, place, *lines)),)
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
        through: tuple[isl.Set, kernel.Element],
        value: kernel.Element,
        env: Environment,
    ) -> kernel.Copy:
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
        return kernel.Copy(
            target=cell, source=value, condition=None if always else self._index(condition)
        )


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


def _unroll(loop: Loop) -> kernel.Unroll:
    """Return how a loop of constant length is unrolled: as far as code stays small."""
    if loop.trips is None:
        return None
    factor = _unroll_factor(loop.trips, _unrolled_size(loop.body))
    return "whole" if factor == loop.trips else factor


def _unroll_factor(trips: int, statements: int) -> int:
    steps = UNROLLED_STATEMENTS // max(1, statements)
    if statements <= MOST_POINTS:
        steps = max(steps, LEAST_STEPS)
    return max(1, min(trips, steps))


def _unrolled_size(node: Node) -> int:
    """Return how many statements a tree has when its loops are unrolled as far as they will be."""
    inside = sum(map(_unrolled_size, TREE.of(node)))
    if isinstance(node, Leaf):
        return 1
    if isinstance(node, Points):
        return node.count * inside
    trips = node.trips if isinstance(node, Loop) else None
    return inside if trips is None else inside * _unroll_factor(trips, inside)


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
