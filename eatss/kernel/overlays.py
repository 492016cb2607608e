"""Is each box in use only while none of another group is, where groups lie in the same memory?

    union { struct { double A[128][20]; }; struct { double A_1[16][130]; }; };
    for (k0 = …) { A = …; … = A; }
    for (k0 = …) { A_1 = …; … = A_1; }

A group is in use from the first to the last node that uses a box of it, of the sequence of nodes
in which all groups stand. No two groups may be in use at the same node. Where one node has several
groups, that holds inside of it. What a loop around them carries from turn to turn is lost, so
a box is also to be filled before it is read, in each turn. It is where a node before has filled it,
and all that this node asked holds where the box is read. Which elements a copy fills is up to who
made it. Barriers between the groups are looked at by :mod:`eatss.kernel.barriers`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from eatss.kernel.barriers import varies, varying_names
from eatss.kernel.nodes import Buffer, For, If, Node
from eatss.kernel.uses import NAMED, accesses, every, inside
from eatss.program import IntExpr, evaluate, names_in, substitute

_Test: TypeAlias = tuple[bool, tuple[IntExpr, ...]]
"""Whether some conditions hold, or not all of them do."""

_Tests: TypeAlias = frozenset[_Test]


def overlay_faults(nodes: Sequence[Node], overlaid: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Return which boxes may lose what they hold to boxes of other groups, in words.

    Args:
        nodes: the body of a kernel.
        overlaid: groups of boxes, by name, that lie in the same memory.
    """
    if not overlaid:
        return ()
    often = Counter(name for group in overlaid for name in {*group})
    twice = [f"{name} lies in two places" for name, count in often.items() if count > 1]
    groups = {name: at for at, group in enumerate(overlaid) for name in group}
    fills = _Fills(nodes, groups)
    return tuple(dict.fromkeys((*twice, *_met(nodes, groups), *fills.faults)))


def uses_of(nodes: Sequence[Node], groups: Mapping[str, int]) -> dict[int, tuple[int, int]]:
    """Return the first and the last of some nodes that use each group.

    Args:
        nodes: a sequence of nodes.
        groups: the group of each box, by name.
    """
    found: dict[int, tuple[int, int]] = {}
    for at, node in enumerate(nodes):
        for group in _groups_in(node, groups):
            first, _ = found.get(group, (at, at))
            found[group] = first, at
    return found


def _groups_in(node: Node, groups: Mapping[str, int]) -> set[int]:
    return {
        groups[one.buffer.name]
        for inner in every((node,))
        for elements in accesses(inner)
        for one in elements
        if _is_overlaid(one.buffer, groups)
    }


def _named_in(node: Node) -> set[str]:
    """Return the names that something inside a node, or its counter, has."""
    nodes = list(every((node,)))
    found = {name for one in nodes if isinstance(one, For) for name in one.counters}
    return found | {one.name for one in nodes if isinstance(one, NAMED)}


def _is_overlaid(buffer: Buffer, groups: Mapping[str, int]) -> bool:
    return buffer.space == "shared" and buffer.name in groups


def _met(nodes: Sequence[Node], groups: Mapping[str, int]) -> Iterator[str]:
    """Yield which groups are in use at the same node."""
    uses = uses_of(nodes, groups)
    several: set[int] = set()
    for group, (first, last) in uses.items():
        for other, (others_first, others_last) in uses.items():
            if other <= group or others_last < first or last < others_first:
                continue
            if first == last == others_first == others_last and inside(nodes[first]):
                several.add(first)
                continue
            names = [min(n for n, at in groups.items() if at == one) for one in (group, other)]
            yield f"{names[1]} lies where {names[0]} does, and both are in use at the same time"
    for at in sorted(several):
        for body in inside(nodes[at]):
            yield from _met(body, groups)


class _Fills:
    """Follows nodes in their order, and finds boxes that are read before they are filled.

    Of a box it is known under which tests nodes before have filled it. Those that threads decide
    differently are how they share a copy. What tests ask of names that stand for something else
    behind a loop or a branch is forgotten there.
    """

    def __init__(self, nodes: Sequence[Node], groups: Mapping[str, int]) -> None:
        self.faults: list[str] = []
        self._groups = groups
        self._varying = varying_names(nodes)
        self._filled: dict[str, set[_Tests]] = {}
        self._follow(nodes, frozenset())

    def _follow(self, nodes: Sequence[Node], tests: _Tests) -> None:
        for node in nodes:
            if isinstance(node, If):
                self._branches(node, tests)
            elif isinstance(node, For):
                self._follow(node.body, tests | self._first_turn(node))
            else:
                self._access(node, tests)
                for body in inside(node):
                    self._follow(body, tests)
            if inside(node):
                self._forget(_named_in(node))

    def _forget(self, names: set[str]) -> None:
        for name, known in self._filled.items():
            self._filled[name] = {
                tests
                for tests in known
                if names.isdisjoint(one for _, asked in tests for e in asked for one in names_in(e))
            }

    def _access(self, node: Node, tests: _Tests) -> None:
        written, read = accesses(node)
        for one in read:
            name = one.buffer.name
            if _is_overlaid(one.buffer, self._groups) and not self._is_filled(name, tests):
                self.faults.append(f"{name} is read, and may hold what another box held before")
        for one in written:
            if _is_overlaid(one.buffer, self._groups):
                self._filled.setdefault(one.buffer.name, set()).add(tests)

    def _is_filled(self, name: str, tests: _Tests) -> bool:
        return any(known <= tests for known in self._filled.get(name, ()))

    def _branches(self, node: If, tests: _Tests) -> None:
        """Follow both branches. What both fill is filled whatever is asked."""
        known = [one for one in node.conditions if self._is_asked(one)]
        holds = tests | {(True, (one,)) for one in known}
        alone = any(varies(one, self._varying) for one in node.conditions)
        fails = tests if alone else tests | {(False, node.conditions)}
        self._follow(node.body, holds)
        self._follow(node.orelse, fails)
        for name in self._filled:
            if self._is_filled(name, holds) and self._is_filled(name, fails):
                self._filled[name].add(tests)

    def _first_turn(self, loop: For) -> _Tests:
        """Return what holds in all turns of a loop, since it did in front of the first."""
        first = substitute(loop.condition, {loop.counter: loop.lower})
        return frozenset({(True, (first,))} if self._is_asked(first) else set())

    def _is_asked(self, condition: IntExpr) -> bool:
        """Tell whether a condition is the same for all threads, and not known to hold."""
        if varies(condition, self._varying):
            return False
        return bool(list(names_in(condition))) or not evaluate(condition, {})
