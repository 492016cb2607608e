"""What of a piece becomes one CUDA kernel: all of it, or runs of parts around split sums.

A sum whose loop is spread over threads and blocks needs its target set before any of them adds to
it, so it becomes a kernel of its own between what comes before and what comes after.

Serial loops of a band that run on the host, so that what is left inside is a sum.

Where the parallel loops of a kernel have few points and its serial loops many, each thread walks
a long way alone. A band is permutable, so any loop of it may stand outermost; once it runs on the
host, one launch for each of its iterations, the other serial loop is often a plain
sum that many threads add up.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

import islpy as isl

from eatss.base.frozen import frozen
from eatss.lower.schedule.launch_order import never_runs_back
from eatss.lower.schedule.pieces import LoopMember, Piece
from eatss.polyhedral import Dependences
from eatss.polyhedral.expression import Combiner, combiner_of
from eatss.polyhedral.isl_names import bound_domain, function_on, node_kind, set_names
from eatss.polyhedral.scop import Scop, Statement
from eatss.polyhedral.tree import KernelTree, members


def hoistable(piece: Piece, mapped: Sequence[str], dependences: Dependences) -> Iterator[Piece]:
    """Yield a piece with each serial loop of its band moved to the host, where that is legal."""
    serial = [loop for loop in piece.band if loop.name not in mapped]
    if len(serial) == 1:  # none would be left to sum over
        return
    for loop in serial:
        if never_runs_back(piece, loop, dependences):
            yield hoisted(piece, loop)


def hoisted(piece: Piece, loop: LoopMember) -> Piece:
    """Return a piece whose band loop ``loop`` runs on the host, inside its other host loops."""
    band = tuple(other for other in piece.band if other is not loop)
    return replace(piece, host=(*piece.host, loop), band=band)


@frozen
class Run:
    """Statements of a piece that are launched together; ``sum_loop`` is a loop to split."""

    statements: tuple[str, ...]
    sum_loop: str | None


def restricted(piece: Piece, statements: Sequence[str]) -> Piece:
    """Return the piece with some of its statements only."""
    kept = [
        (statement, domain)
        for statement, domain in zip(piece.statements, piece.placed, strict=True)
        if statement.name in statements
    ]
    return replace(
        piece,
        statements=tuple(statement for statement, _ in kept),
        placed=tuple(domain for _, domain in kept),
    )


def sums_of(piece: Piece, scop: Scop, *, exact: bool = False) -> dict[str, frozenset[str]]:
    """Return for each statement that is a reduction the loops, by C name, it goes over.

    With ``exact`` only those that come to the same value in any order: floating-point sums and
    products do not, and of zeros ``fmax`` may return either.
    """
    names = {loop.source_name: loop.name for loop in (*piece.band, *piece.inner)}
    found: dict[str, frozenset[str]] = {}
    for reduction in piece.kernel.reductions:
        element_type = scop.array(reduction.array).element_type
        fits = combiner_of(reduction.operator, element_type) is not None
        if fits and not (exact and element_type.is_floating):
            found[reduction.statement] = frozenset(
                names[loop] for loop in reduction.loops if loop in names
            )
    return found


def combiner_in(piece: Piece, statements: Collection[str], scop: Scop) -> Combiner | None:
    """Return what combines parts of the reductions of some statements.

    ``None`` where there are none, or where they differ.
    """
    found = {
        combiner_of(reduction.operator, scop.array(reduction.array).element_type)
        for reduction in piece.kernel.reductions
        if reduction.statement in statements
    }
    return next(iter(found)) if len(found) == 1 else None


def serial_runs(piece: Piece, sums: dict[str, frozenset[str]]) -> tuple[Run, ...]:
    """Return the runs of a piece that has no parallel loop, in their order."""
    runs: list[Run] = []
    for node in _items(piece.tree.node):
        statements = _statements(node)
        band = _outer_band(node)
        loop = None
        if band is not None and len(statements) == 1 and statements[0] in sums:
            name = _name_of(piece, band)
            loop = name if name in sums[statements[0]] else None
        if loop is None and runs and runs[-1].sum_loop is None:
            runs[-1] = Run(statements=runs[-1].statements + statements, sum_loop=None)
        else:
            runs.append(Run(statements=statements, sum_loop=loop))
    return tuple(runs)


def banded(piece: Piece, statement: str) -> Piece:
    """Return the piece of one statement whose outermost loop is a band of one member."""
    own = restricted(piece, [statement])
    node = next(node for node in _items(piece.tree.node) if _statements(node) == (statement,))
    band = _outer_band(node)
    assert band is not None
    member = members(band)[0]
    loop = next(loop for loop in piece.inner if loop.member.key == member.key)
    tree = KernelTree(
        host=piece.tree.host,
        band=(member,),
        permutable=True,
        leaves=piece.tree.leaves,
        node=band,
    )
    placed = tuple(
        _with_parameter(domain, loop, noun)
        for domain, noun in zip(own.placed, own.statements, strict=True)
    )
    return replace(
        own,
        tree=tree,
        band=(loop,),
        inner=tuple(other for other in piece.inner if other is not loop),
        placed=placed,
    )


def _with_parameter(domain: isl.Set, loop: LoopMember, statement: Statement) -> isl.Set:
    function = function_on(loop.member.function, statement.domain)
    bound = bound_domain(statement.domain, [function], [loop.name])
    return domain.intersect(bound)


def _items(node: isl.ScheduleNode) -> Iterator[isl.ScheduleNode]:
    """Yield the subtrees that run one after another."""
    kind = node_kind(node)
    if kind == "filter":
        yield from _items(node.get_child(0))
    elif kind in ("sequence", "set"):
        for position in range(node.n_children()):
            yield from _items(node.get_child(position))
    else:
        yield node


def _statements(node: isl.ScheduleNode) -> tuple[str, ...]:
    return set_names(node.get_domain())


def _outer_band(node: isl.ScheduleNode) -> isl.ScheduleNode | None:
    """Return a node that is a band of one member."""
    if node_kind(node) != "band" or node.band_n_member() != 1:
        return None
    return node


def _name_of(piece: Piece, band: isl.ScheduleNode) -> str | None:
    key = members(band)[0].key
    return next((loop.name for loop in piece.inner if loop.member.key == key), None)
