"""Reads the generated code of a thread back into a set and compares it with what was to be run.

The code is trusted no more than the layout: its loops and conditions become constraints again,
and the instances they reach must be those of the thread, each reached once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import islpy as isl

from eatss.base.diagnostics import SourceSpan, internal_error
from eatss.lower.isl_text import isl_notation
from eatss.lower.thread_ast import TREE, If, Leaf, Loop, Node, Phase, thread_instances
from eatss.polyhedral.isl_names import parameter_names, without_parameters
from eatss.program import Apply, IntExpr, Name, Operator, equals

_BOUNDS = {
    Operator.LE: Operator.MIN,
    Operator.LT: Operator.MIN,
    Operator.GE: Operator.MAX,
    Operator.GT: Operator.MAX,
}


@dataclass(frozen=True, slots=True)
class _Reached:
    """What stands around a leaf: counters, outermost first, and conditions in isl's notation."""

    counters: tuple[str, ...]
    conditions: tuple[str, ...]
    leaf: Leaf


def check_coverage_of(phase: Phase, node: Node | None, known: isl.Set, span: SourceSpan) -> None:
    """Check that the code of a thread runs its instances, each once.

    Args:
        phase: what is to be run.
        node: the code; ``None`` runs nothing.
        known: what is known of the parameters, the thread's coordinates among them.
        span: where the statements are, for the error.

    Raises:
        InternalError: ``EATSS-K901``.
    """
    reached: dict[str, list[isl.Map]] = {}
    parameters = parameter_names(known)
    for item in _leaves(node, (), ()) if node is not None else ():
        relation = _relation(item, parameters, known)
        reached.setdefault(item.leaf.instance, []).append(relation)
    for instance in phase.instances:
        wanted = without_parameters(thread_instances(phase, instance), phase.bound)
        wanted = wanted.intersect_params(known)
        maps = reached.get(str(instance.get_tuple_name()), [])
        if not _is_partition(maps, wanted):
            raise internal_error(
                "EATSS-K901", "generated code does not run every instance once", span=span
            )


def _is_partition(maps: Sequence[isl.Map], wanted: isl.Set) -> bool:
    """Tell whether the maps reach every point of a set, each from one place."""
    covered: isl.Set | None = None
    for relation in maps:
        if not relation.is_injective():
            return False
        here = relation.range()
        if covered is not None and not covered.is_disjoint(here):
            return False
        covered = here if covered is None else covered.union(here)
    if covered is None:
        return bool(wanted.is_empty())
    return bool(covered.is_equal(wanted))


def _relation(item: _Reached, parameters: Sequence[str], known: isl.Set) -> isl.Map:
    dims = [f"v{position}'" for position in range(len(item.leaf.values))]
    equal = [
        isl_notation(equals(Name(dim), value))
        for dim, value in zip(dims, item.leaf.values, strict=True)
    ]
    text = (
        f"[{', '.join(parameters)}] -> {{ [{', '.join(item.counters)}] -> "
        f"{item.leaf.instance}[{', '.join(dims)}] : {' and '.join((*equal, *item.conditions))} }}"
    )
    return isl.Map.read_from_str(known.get_ctx(), text).intersect_params(known)


def _leaves(
    node: Node, counters: tuple[str, ...], conditions: tuple[str, ...]
) -> Iterator[_Reached]:
    if isinstance(node, Leaf):
        yield _Reached(counters, conditions, node)
    elif isinstance(node, If):
        condition = isl_notation(node.condition)
        yield from _leaves(node.body, counters, (*conditions, f"({condition})"))
        if node.orelse is not None:
            yield from _leaves(node.orelse, counters, (*conditions, f"not ({condition})"))
    else:
        if isinstance(node, Loop):  # points were made loops
            counters = (*counters, node.counter)
            conditions = (*conditions, *_loop_conditions(node))
        for child in TREE.of(node):
            yield from _leaves(child, counters, conditions)


def _loop_conditions(loop: Loop) -> Iterator[str]:
    yield from _each(Name(loop.counter) >= loop.lower)
    yield from _each(loop.condition)
    if loop.step != 1:
        yield f"({loop.counter} - {isl_notation(loop.lower)}) mod {loop.step} = 0"


def _each(condition: IntExpr) -> Iterator[str]:
    """Yield the parts of a condition all of which hold; ``a <= min(b, c)`` are two."""
    bound = _BOUNDS.get(condition.operator) if isinstance(condition, Apply) else None
    if isinstance(condition, Apply) and condition.operator is Operator.AND:
        for operand in condition.operands:
            yield from _each(operand)
    elif isinstance(condition, Apply) and bound is not None:
        left, right = condition.operands
        inner = isinstance(right, Apply) and right.operator is bound
        for operand in right.operands if inner and isinstance(right, Apply) else (right,):
            yield isl_notation(Apply(condition.operator, (left, operand)))
    else:
        yield f"({isl_notation(condition)})"
