"""Steps of plain products, so that threads can load what one reads while they compute another.

    for (k = k0; k < k0 + 16; ++k)
        for (ri < 8) for (rj < 16) sum[ri][rj] += sh.A[k - k0][i] * sh.B[k - k0][j];

becomes, with the operands of a step in registers of their own,

    for (k_step = 0; k_step < 16; ++k_step) {
        for (ri < 8) A_k[ri] = sh.A[k_step][i];
        for (rj < 16) B_k[rj] = sh.B[k_step][j];
        for (ri < 8) for (rj < 16) sum[ri][rj] += A_k[ri] * B_k[rj];
    }

of which :mod:`eatss.lower.transform.register_prefetch` makes iterations, as it does of products of
warps. A compiler does not load across the barrier between two iterations, and threads would wait
behind each.

Rows of a thread's points are taken in serpentine order:

    for (ri_pair < 4) {
        { ri = 2 * ri_pair;     for (rj < 16) sum[ri][rj] += A_k[ri] * B_k[rj]; }
        { ri = 2 * ri_pair + 1; for (rj_back < 16) { rj = 15 - rj_back; sum[ri][rj] += …; } }
    }

So an operand serves two products that follow each other, where a row ends, too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from math import prod

from eatss.base.frozen import Numbers, frozen
from eatss.base.trees import free_name
from eatss.lower.kernel.nodes import (
    Buffer,
    Compute,
    Copy,
    Declare,
    Element,
    For,
    Let,
    Node,
    Nodes,
    Scope,
    Source,
    Steps,
    counted,
)
from eatss.lower.kernel.uses import (
    constant_trips,
    every,
    every_of,
    names_of,
    outermost,
    rewritten,
    substituted,
    trips_from_zero,
    walked,
    with_bodies,
    with_elements,
    with_expressions,
)
from eatss.plan.contract import STEPS_LOADED, reuses, unrolled
from eatss.program import Constant, IntExpr, Name, evaluate, names_in, substitute
from eatss.program.expression import Environment, OwnSizes
from eatss.program.linear import as_sum

_Path = tuple[For | Let, ...]
"""The loops around a node and the values that are known to it, outermost first."""

_NOTHING: _Path = ()


def plain_steps(
    node: Node, boxes: frozenset[Buffer], threads: int, taken: set[str]
) -> tuple[Steps, ...]:
    """Return a loop over plain products as steps that load their operands, for each product.

    Rows of tiles have to lie along the points, so that operands of several are loaded in vectors:
    where they lie along the steps, a vector is of several; where they lie along threads, there are
    as many loads as points.

    Args:
        node: what an iteration does with tiles that are there.
        boxes: the tiles that the iteration fills.
        threads: of a block.
        taken: names that are not free; names of steps and operands are added.

    Returns:
        Nothing for anything else, where steps are too many to be unrolled, or where a step
        computes little with what it loads.
    """
    count = constant_trips(node) if isinstance(node, For) else None
    if not isinstance(node, For) or not count or count % STEPS_LOADED:
        return ()
    body = _opened(node.body)
    if not _is_plain(body) or node.counter in _places_written(body):
        return ()  # in a loop over points each of its steps has sums of its own
    values = tuple(one for one in body if isinstance(one, Let))
    nests = [(*values, one) for one in body if isinstance(one, For | Compute)]
    operands = [_operands(one, boxes, taken) for one in nests]
    computed = [sum(_turns(path) for path, _ in _computed(one)) for one in nests]
    loaded = [sum(_turns(one.path) for one in own) for own in operands]
    enough = bool(nests) and all(map(reuses, computed, loaded))
    if not enough or not unrolled(count, sum(computed), threads):
        return ()
    step = free_name(f"{node.counter}_step", taken)
    change = {node.counter: node.lower + Name(step)}

    def in_step(one: IntExpr) -> IntExpr:
        """Return an expression in a step, as a sum of few terms."""
        found = substitute(one, change)
        return found if found == one else as_sum(found)

    found = [
        Steps(
            counter=step,
            count=count,
            loads=(
                *(Declare(buffer=one.held.buffer) for one in own),
                *with_expressions([one.load() for one in own], in_step),
            ),
            products=with_expressions(_products(nest, own, taken), in_step),
        )
        for nest, own in zip(nests, operands, strict=True)
    ]
    return tuple(found) if all(one.in_vectors for own in operands for one in own) else ()


def _opened(nodes: Sequence[Node]) -> Nodes:
    """Return nodes without scopes around what is computed: their values are where they are used.

    A tile whose origin a test tells has values of its own for the places of its points.
    """
    found: list[Node] = []
    for node in nodes:
        if isinstance(node, Scope) and not node.phase:
            inner = _opened(node.body)
            if not all(isinstance(one, Let | Source | Compute) for one in inner):
                found.append(node)  # a loop may have names of its own that values mention
                continue
            values: Environment = {}
            for one in inner:
                (inside,) = substituted((one,), values)
                if isinstance(inside, Let):
                    values[inside.name] = inside.value
                else:
                    found.append(inside)
        else:
            found.append(with_bodies(node, _opened) if isinstance(node, For) else node)
    return tuple(found)


def _products(nest: Sequence[Node], operands: Sequence[_Operand], taken: set[str]) -> Nodes:
    """Return a nest that reads operands."""

    def held(one: Element, path: _Path) -> Element:
        own = (each for each in operands if each.element == one)
        return next((each.held for each in own if each.path == _needed(one, path)), one)

    def changed(node: Node, path: _Path) -> Nodes:
        if isinstance(node, For):
            return (with_bodies(node, _without_unused),)
        return with_elements((node,), partial(held, path=path))

    reading = _without_unused(rewritten(nest, _NOTHING, _along, changed))
    products = in_serpentine_order(reading, taken)
    # values are known to this step only
    return products if len(products) == 1 else (Scope(body=products),)


def _is_plain(body: Sequence[Node]) -> bool:
    """Tell whether nodes compute at all points of a thread, with nothing to ask."""
    return all(
        isinstance(one, Let | Source)
        or (isinstance(one, For) and one.unroll == "whole" and bool(trips_from_zero(one)))
        or (isinstance(one, Compute) and one.target.buffer.space == "register")
        for one in every(body)
    )


def _places_written(body: Sequence[Node]) -> set[str]:
    """Return the names that say where something is written."""
    targets = (one.target for one in every_of(body, Compute))
    return {name for one in targets for name in names_in(*one.subscripts)}


def _computed(nodes: Sequence[Node]) -> Iterator[tuple[_Path, Compute]]:
    """Yield what is computed, each with its path."""
    for node, here in walked(nodes, _NOTHING, _along):
        if isinstance(node, Compute):
            yield here, node


def _along(path: _Path, node: Node) -> tuple[_Path, _Path]:
    """Return the path to what is inside a node, and to what is behind it."""
    inner = (*path, node) if isinstance(node, For | Let) else path
    return inner, inner if isinstance(node, Let) else path


def _turns(path: _Path) -> int:
    return prod(trips_from_zero(one) or 1 for one in path if isinstance(one, For))


@frozen
class _Operand:
    """An element of a tile that a step reads at some of its points, ``held`` in registers there.

    ``path`` is as far as it depends on it.
    """

    element: Element
    path: _Path
    held: Element

    @property
    def in_vectors(self) -> bool:
        """Whether its elements for several points lie in a row along them, if there are several."""
        return _turns(self.path) == 1 or any(map(self._follow, self.path))

    def _follow(self, loop: For | Let) -> bool:
        """Tell whether elements of a loop's first two iterations follow each other in a row."""

        def place(turn: int) -> Numbers:
            assert isinstance(loop, For)
            known: OwnSizes = defaultdict(int, {loop.counter: turn})
            for one in self.path:
                if isinstance(one, Let):
                    known[one.name] = evaluate(one.value, known)
            return tuple(evaluate(one, known) for one in self.element.subscripts)

        if not isinstance(loop, For):
            return False
        first, second = place(0), place(1)
        return first[:-1] == second[:-1] and second[-1] == first[-1] + 1

    def load(self) -> Node:
        """Return the loads of a step."""
        nodes: Nodes = (Copy(target=self.held, source=self.element),)
        for one in reversed(self.path):
            nodes = (replace(one, body=nodes),) if isinstance(one, For) else (one, *nodes)
        return nodes[0] if len(nodes) == 1 else Scope(body=nodes)


def _operands(
    nodes: Sequence[Node], boxes: frozenset[Buffer], taken: set[str]
) -> tuple[_Operand, ...]:
    found: list[_Operand] = []
    for path, node in _computed(nodes):
        for element in node.reads:
            needed = _needed(element, path)
            known = any(one.element == element and one.path == needed for one in found)
            if known or element.buffer not in boxes:
                continue
            loops = [one for one in needed if isinstance(one, For)]
            extents = (trips_from_zero(one) or 1 for one in loops)
            name = free_name(f"{element.buffer.name}_step", taken)
            own = element.buffer.registers(name, *extents)
            held = own.at(*(Name(one.counter) for one in loops))
            found.append(_Operand(element=element, path=needed, held=held))
    return tuple(found)


def _needed(element: Element, path: _Path) -> _Path:
    """Return the part of a path that the place of an element depends on."""
    names = set(names_in(*element.subscripts))
    found: list[For | Let] = []
    for one in reversed(path):
        if isinstance(one, Let) and one.name in names:
            names |= set(names_in(one.value))
            found.append(one)
        elif isinstance(one, For) and one.counter in names:
            found.append(replace(one, body=()))
    return tuple(reversed(found))


def _without_unused(nodes: Sequence[Node]) -> Nodes:
    """Leave out values that nothing behind them mentions."""
    found: Nodes = ()
    for node in reversed(nodes):
        if not isinstance(node, Let) or node.name in names_of(found):
            found = (node, *found)
    return found


def in_serpentine_order(nodes: Sequence[Node], taken: set[str]) -> Nodes:
    """Return loops over rows of points as loops over two rows each, the second backwards.

    Those stay as they are where a point meets what is written at another. Names are added to those
    that are ``taken``.
    """
    return outermost(nodes, partial(_two_rows, taken=taken))


def _two_rows(rows: Node, taken: set[str]) -> Nodes:
    """Return a loop over two rows at a time, nothing for what is no such loop."""
    match rows:
        case For(body=(*values, For() as row)):
            count = trips_from_zero(rows) or 1
        case _:
            return ()
    plain = all(isinstance(one, Let) for one in values) and not any(every_of(row.body, For))
    computed, places = [*every_of(row.body, Compute)], {Name(rows.counter), Name(row.counter)}
    written = {one.target.buffer for one in computed}
    met = (one for own in computed for one in (own.target, *own.reads) if one.buffer in written)
    if count % 2 or not plain or not all(places <= set(one.subscripts) for one in met):
        return ()  # points do not come in any order
    pair, back = free_name(f"{rows.counter}_pair", taken), free_name(f"{row.counter}_back", taken)
    points = trips_from_zero(row) or 0
    backwards = Let(name=row.counter, value=Constant(points - 1) - Name(back), narrow=True)
    there_and_back = (row, counted(back, points, (backwards, *row.body)))
    places_of_rows = (
        Let(name=rows.counter, value=2 * Name(pair) + second, narrow=True) for second in range(2)
    )
    scopes = tuple(
        Scope(body=(place, *values, one))
        for place, one in zip(places_of_rows, there_and_back, strict=True)
    )
    return (counted(pair, count // 2, scopes),)
