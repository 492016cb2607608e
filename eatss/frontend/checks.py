"""Looks at what was read for accesses outside arrays, idle statements and live counters."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import islpy as isl

from eatss.frontend import clang
from eatss.frontend.affine import AffineReader
from eatss.frontend.delinearise import Delinearised
from eatss.frontend.reading import RawAccess, RawStatement
from eatss.frontend.regions import PlacedRegion
from eatss.frontend.report import Reporter
from eatss.frontend.signature import Surroundings
from eatss.frontend.symbols import SymbolTable, Variable
from eatss.frontend.tree import Node, named_in, read_tree
from eatss.frontend.values import ValueAlgebra
from eatss.polyhedral.isl_names import without_parameters
from eatss.polyhedral.scops import AccessKind

_MAX_LOOPS = 8


def without_idle(
    statements: tuple[RawStatement, ...], reporter: Reporter
) -> tuple[RawStatement, ...]:
    """Return the statements that run at least once; the others get a warning."""
    kept = []
    for raw in statements:
        if raw.domain.is_empty():
            reporter.warn(
                "EATSS-F093",
                raw.node,
                "this statement never runs and is left out",
                "check the bounds and conditions around it",
            )
        else:
            kept.append(raw)
    return tuple(kept)


def without_unread(
    statements: tuple[RawStatement, ...], known: Collection[Variable]
) -> tuple[RawStatement, ...]:
    """Return the statements less those that set scalars whose values were put in their place."""
    kept = statements
    while True:
        read = {
            access.variable
            for raw in kept
            for access in raw.accesses
            if access.kind is AccessKind.READ and access.variable is not _written(raw)
        }
        rest = tuple(raw for raw in kept if _written(raw) not in known or _written(raw) in read)
        if len(rest) in (0, len(kept)):
            return kept
        kept = rest


def is_dead_after(variable: Variable, placed: PlacedRegion, surroundings: Surroundings) -> bool:
    """Return whether nothing reads what a scalar of a region is after it."""
    if variable.is_local:
        return True
    declaration = variable.declaration
    if clang.outlives_function(declaration) or any(
        declaration == addressed for addressed, _ in surroundings.addressed
    ):
        return False
    for cursor in (*placed.following, *placed.later):
        tree = read_tree(cursor)
        use = _first_use(tree, variable)
        if use is not None:
            return tree.kind == "assign" and use.implicit
    return True


def _written(raw: RawStatement) -> Variable:
    return raw.accesses[0].variable


def warn_of_assumptions(affine: AffineReader, reporter: Reporter) -> None:
    """Warn of values that were taken to fit their type without proof."""
    for assumption in affine.ranges.assumptions:
        reporter.warn(
            "EATSS-F092",
            assumption.node,
            f"{reporter.quoted(assumption.node)} is taken to fit type '{assumption.type.spelling}'",
            "use one integer type throughout",
        )


def warn_of_bounds(
    statements: tuple[RawStatement, ...],
    arrays: tuple[Delinearised, ...],
    affine: AffineReader,
    reporter: Reporter,
) -> None:
    """Warn of references that leave their array whenever their statement runs at all."""
    by_variable = {array.variable: array for array in arrays}
    for raw in statements:
        for access in raw.accesses if len(raw.loops) <= _MAX_LOOPS else ():
            if _is_outside(raw, access, by_variable[access.variable], affine.algebra):
                reporter.warn(
                    "EATSS-F090",
                    access.node,
                    f"{reporter.quoted(access.node)} goes outside the bounds of "
                    f"'{access.variable.name}'",
                    "check the subscript and the size of the array",
                )


def _is_outside(
    raw: RawStatement, access: RawAccess, array: Delinearised, algebra: ValueAlgebra
) -> bool:
    """Tell whether a reference leaves its array somewhere, for all sizes at which it is made."""
    counters = [level.name for level in raw.loops]
    for subscript, size, from_zero in zip(
        array.subscripts(access), array.sizes, array.from_zero, strict=True
    ):
        outside = isl.Set.empty(raw.domain.get_space())
        if from_zero:
            outside = algebra.at_least(-1, subscript)
        if size is not None:
            outside = outside.union(algebra.at_least(subscript, size))
        outside = raw.domain.intersect(access.domain).intersect(outside)
        if not outside.is_empty():
            sizes, meant = (without_parameters(one, counters) for one in (raw.domain, outside))
            if sizes.is_subset(meant):
                return True
    return False


def check_live_counters(
    symbols: SymbolTable, following: tuple[Any, ...], reporter: Reporter
) -> None:
    """Refuse a counter whose value is read after the region before it is set again."""
    waiting = [
        v for v in symbols.variables if v.role == "counter" and not v.is_local
    ]  # fmt: skip
    for variable in tuple(waiting):
        if clang.outlives_function(variable.declaration):
            waiting.remove(variable)
            assert variable.first_use is not None
            reporter.error(
                "EATSS-F033",
                variable.first_use,
                f"counter '{variable.name}' keeps its value after the function, where it is lost",
                "use a counter of the loop's own: for (int i = 0; ...)",
            )
    for cursor in following:
        if not waiting:
            return
        tree = read_tree(cursor)
        for variable in tuple(waiting):
            use = _first_use(tree, variable)
            if use is None:
                continue
            waiting.remove(variable)
            if not use.implicit:
                reporter.error(
                    "EATSS-F033",
                    use,
                    f"counter '{variable.name}' is used after the region, where its value is lost",
                    "set it again after #pragma endscop",
                )


def keep_live(symbols: SymbolTable, following: tuple[Any, ...]) -> None:
    """Take a variable of the region for live after it where its block goes on to use it."""
    named = named_in(following)
    for variable in symbols.variables:
        around = (variable.declaration, clang.variable_of(variable.declaration))
        if variable.is_local and any(one == other for one in around for other in named):
            variable.is_local = False


def _first_use(tree: Node, variable: Variable) -> Node | None:
    """Return the first use of a variable; marked ``implicit`` if it is set there."""
    targets: set[int] = set()
    for node in tree.preorder():
        if node.kind == "assign" and node.op == "":
            target = node.children[0]
            if target.kind == "name" and not node.children[1].names(variable.declaration):
                targets.add(id(target))
        if node.kind == "name" and node.declaration == variable.declaration:
            node.implicit = id(node) in targets
            return node
    return None
