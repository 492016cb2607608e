"""Factors that stay the same for points of a thread are multiplied with each other first.

    for (ri…) for (rr…) A_r[ri][rr] += T[i][j][k] * B[j][r] * C[k][r];

becomes

    for (ri…) for (rr…) A_r[ri][rr] += T[i][j][k] * (B[j][r] * C[k][r]);

The compiler then multiplies ``B * C`` once for all ``ri``. Several products are added one by one:
``C_r += a * b + d * e`` becomes ``C_r = C_r + a * b + d * e``, two operations instead of three.
Results are rounded otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from eatss.lower.kernel.nodes import Compute, For, Kernel, Let, Node, Nodes
from eatss.lower.kernel.uses import rewritten
from eatss.lower.transform.use_instruction import added_terms, added_to_target, own_part
from eatss.polyhedral.expression import SUMS, Binary, Expression, Read, factors, regrouped
from eatss.program import names_in

Names = Mapping[str, frozenset[str]]
"""Which points of a thread a name depends on, by their counters."""


def with_factors_grouped(kernel: Kernel) -> Kernel:
    """Return a kernel whose sums multiply factors first that depend on the same points.

    Factors are what is read, of products that are added to a register in a loop. Of several
    products each is added by itself.
    """
    body = rewritten(kernel.body, _Known({}, repeats=False), _Known.at, _changed)
    return replace(kernel, body=body, regroups=kernel.regroups or body != kernel.body)


class _Known(NamedTuple):
    """What names depend on, and whether the same place is met several times."""

    names: Names
    repeats: bool

    def at(self, node: Node) -> tuple[_Known, _Known]:
        """Return what is known inside a node and behind it."""
        if isinstance(node, Let):
            own = {node.name: _points(names_in(node.value), self.names)}
            return self, self._replace(names={**self.names, **own})
        if not isinstance(node, For):
            return self, self
        is_point = node.unroll == "whole" and node.narrow
        own = {node.counter: frozenset({node.counter} if is_point else ())}
        return _Known({**self.names, **own}, self.repeats or not is_point), self


def _changed(node: Node, known: _Known) -> Nodes:
    plain = known.repeats and isinstance(node, Compute) and node.by is None
    return (_grouped(node, known.names) if plain else node,)


def _grouped(node: Node, known: Names) -> Node:
    assert isinstance(node, Compute)
    if node.target.buffer.space != "register":
        return node
    terms = added_terms(node)
    if len(terms) > 1:
        return _one_by_one(node, terms)
    added = added_to_target(node, node.statement.value)
    if added is None:
        return node
    parts = list(factors(added))
    if len(parts) < 3 or not all(isinstance(one, Read) for one in parts):
        return node

    def depends(part: Expression) -> frozenset[str]:
        assert isinstance(part, Read)
        return _points(names_in(*node.reads[part.access].subscripts), known)

    product = regrouped(parts, depends)
    summed = Binary(operator="+", left=own_part(node), right=product)
    statement = replace(node.statement, value=summed)
    return node if product == added else replace(node, statement=statement)


def _one_by_one(node: Compute, terms: Sequence[Expression]) -> Compute:
    """Return a statement that adds products to its target one after the other."""
    products = all(len(list(factors(one))) > 1 for one in terms)
    if not products or not node.target.buffer.element_type.is_floating or _is_in_turn(node):
        return node
    value: Expression = own_part(node)
    for term in terms:
        value = Binary(operator="+", left=value, right=term)
    return replace(node, statement=replace(node.statement, value=value))


def _is_in_turn(node: Compute) -> bool:
    """Tell whether terms are added to the target one after the other already."""
    value = node.statement.value
    while isinstance(value, Binary) and value.operator in SUMS:
        if isinstance(value.right, Binary) and value.right.operator in SUMS:
            return False
        value = value.left
    return value == own_part(node)


def _points(names: Iterable[str], known: Names) -> frozenset[str]:
    nothing: frozenset[str] = frozenset()
    return nothing.union(*(known.get(name, nothing) for name in names))
