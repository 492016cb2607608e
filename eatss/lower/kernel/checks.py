"""Is a kernel well formed? Runs on each kernel, after lowering and after every transformation.

Tiles of several groups may lie in the same memory:

    union { struct { double A[128][20]; }; struct { double A_1[16][130]; }; };
    for (k0 = …) { A = …; … = A; }
    for (k0 = …) { A_1 = …; … = A_1; }

A group is in use from the first to the last node that uses a tile of it, of the sequence of nodes
in which all groups stand. No two groups may be in use at the same node. Where one node has several
groups, that holds inside of it. What a loop around them carries from iteration to iteration is
lost, so a tile is also to be filled before it is read, in each iteration. It is where a node before
has filled it, and all that this node asked holds where the tile is read. Which elements a copy
fills is up to who made it, and so is what phases leave each other in tiles of theirs. Barriers
between the groups are looked at by :mod:`eatss.lower.kernel.barriers`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from math import prod
from typing import TypeAlias

from eatss.analysis.variant import COPIED_BYTES
from eatss.base.diagnostics import Diagnostic, InternalError
from eatss.base.frozen import Names, distinct, their_names
from eatss.base.targets import CUDA
from eatss.lower.kernel.barriers import passed_on, varies, varying_names
from eatss.lower.kernel.nodes import (
    Agreed,
    AllFinite,
    Buffer,
    Compute,
    Copy,
    Declare,
    Element,
    Fixup,
    Flag,
    For,
    If,
    Intrinsic,
    Kernel,
    Node,
    Steps,
)
from eatss.lower.kernel.uses import (
    NAMED,
    accesses,
    counters_of,
    every,
    every_of,
    inside,
    own_expressions,
    own_names,
    read,
    walked,
    written,
)
from eatss.program import (
    Constant,
    IntExpr,
    Name,
    equals,
    evaluate,
    names_in,
    substitute,
)
from eatss.program.expression import IntExprs


def kernel_faults(kernel: Kernel, sizes: Collection[str]) -> Names:
    """Return what is wrong with a kernel, in words; nothing if it is well formed.

    Every name is known where it stands, every element has a subscript for each dimension of its
    buffer, buffers are declared or passed, what is passed to be read is not written, what threads
    pass on to each other is passed as such, and instructions have their operands. Tiles that lie
    in the same memory are in use one after another. What a flag says is not exact is computed again
    before anything uses it.

    Args:
        kernel: the kernel.
        sizes: names that are known without being passed, as macros are.
    """
    known = {*sizes, *their_names(kernel.arguments)}
    passed = {one.buffer for one in kernel.arguments if one.buffer is not None}
    constant = {one.buffer for one in kernel.arguments if one.buffer and one.read_only}
    faults = [
        *_faults_here(kernel, known, passed | set(kernel.shared), constant),
        *_misplaced(kernel),
        *_untested(kernel.body),
        *overlay_faults(kernel.body, kernel.overlaid),
        *(
            f"{one.name} is passed as if no other thread changed it"
            for one in kernel.arguments
            if one.buffer in passed_on(kernel.body) and not one.passed_on
        ),
    ]
    return distinct(faults)


def fault_in(kernel: Kernel, what: str) -> InternalError:
    """Return the error that a check fails, or that a pass finds no place for what is planned."""
    return InternalError(Diagnostic(code="EATSS-K901", message=f"{kernel.name}: {what}"))


def _untested(nodes: Sequence[Node]) -> Iterator[str]:
    """Yield the flags whose values are used, or stored, before what they tell of is made good."""
    votes = {one.flag: at for at, one in enumerate(nodes) if isinstance(one, Agreed)}
    for at, node in enumerate(nodes):
        for body in inside(node):
            yield from _untested(body)
        if isinstance(node, Flag) and node.name in votes:
            yield from _not_done_again(nodes[at + 1 :], votes[node.name] - at - 1, node.name)
        elif isinstance(node, Flag):
            test = (equals(Name(node.name), 0),)
            end = next(
                (
                    k
                    for k, one in enumerate(nodes)
                    if isinstance(one, If) and one.conditions == test
                ),
                at,
            )
            choice = nodes[end]
            first, again = nodes[at + 1 : end], [*every_of(nodes[end : end + 1], Compute)]
            if isinstance(choice, If) and choice.orelse:
                if not _is_done_again(first, choice, nodes[end + 1 :]):
                    yield f"what {node.name} tells of is not computed again"
                continue
            told = {one.target for one in every_of(nodes, Compute) if one.flag == node.name}
            kept = {one.target for one in every_of(first, Compute) if one.flag == node.name}
            good = {one.target for one in again if not one.flag}
            own = {one.buffer for one in told}
            if not told == kept == good or any(one.space != "register" for one in own):
                yield f"what {node.name} tells of is not computed again"
            values = [one.reads[1:] for one in every_of(first, Compute)]  # no value is of its write
            others = [accesses(one)[1] for one in every(first) if not isinstance(one, Compute)]
            if own & {each.buffer for one in (*values, *others) for each in one}:
                yield f"what {node.name} tells of is used before it is known"


def _is_done_again(first: Sequence[Node], choice: If, behind: Sequence[Node]) -> bool:
    """Tell whether what a flag tells of is stored where it is exact, and done otherwise if not.

    In front of the choice registers alone are written, and only the stores read them behind it.
    """
    again, kept = choice.body, written(first)
    return (
        all(one.space == "register" for one in kept)
        and kept.isdisjoint(read((*again, *behind)) | written(again))
        and written(choice.orelse) <= written(again)
        and not any(one.flag for one in every_of(again, Compute))
    )


def _not_done_again(nodes: Sequence[Node], vote: int, flag: str) -> Iterator[str]:
    """Yield what a flag tells of that is not done again where all threads agree that it has to be.

    Whatever is written in front of the vote has to be written again. That none of it was read
    there, or is read again, is up to who made it.
    """
    agreed, behind = nodes[vote], nodes[vote + 1 : vote + 2]
    assert isinstance(agreed, Agreed)
    made = {one for one in written(nodes[:vote]) if one.space == "global"}
    test = (equals(Name(agreed.name), 0),)
    again = [one for one in behind if isinstance(one, If) and one.conditions == test]
    if not again or not made <= written(again[0].body):
        yield f"what {flag} tells of is not computed again"
    if any(one.flag == flag for one in every_of(nodes[vote:], Compute)):
        yield f"{flag} is cleared behind the vote on it"


def _misplaced(kernel: Kernel) -> Iterator[str]:
    """Yield the buffers in front of wide copies' targets, of other than whole multiples of one.

    Rows that lanes name, of matrices that a warp loads, begin as targets of wide copies do.
    """
    wide = {node.target.buffer for node in every_of(kernel.body, Copy) if node.width > 1} | {
        one.buffer for node in every(kernel.body) for one, _ in _rows_named(node)
    }
    groups, apart = kernel.overlaid_tiles, kernel.separate_tiles
    behind = tuple(one for group in groups for one in group) if wide & {*apart} else ()
    for boxes in (*groups, (*behind, *apart)):
        last = max((at for at, one in enumerate(boxes) if one in wide), default=0)
        for buffer in boxes[:last]:
            if buffer.size_bytes % COPIED_BYTES:
                yield f"wide copies stand behind {buffer.name}, of {buffer.size_bytes} bytes"


_Known: TypeAlias = tuple[frozenset[str], frozenset[Buffer]]
"""Names and registers that are there."""


def _known(known: _Known, node: Node) -> tuple[_Known, _Known]:
    """Return what is there inside a node and behind it."""
    names, registers = known
    inside = names.union(counters_of(node))
    behind = names | {node.name} if isinstance(node, NAMED) else names
    if isinstance(node, Steps):
        own = {one.buffer for one in node.loads if isinstance(one, Declare)}
        return (inside, registers | own), (behind, registers)
    declared = registers | {node.buffer} if isinstance(node, Declare) else registers
    return (inside, registers), (behind, declared)


def _faults_here(
    kernel: Kernel, names: Collection[str], there: set[Buffer], constant: set[Buffer]
) -> Iterator[str]:
    """Yield what nodes name that is not there, or not so, of buffers that are all over a kernel."""
    for node, known in walked(kernel.body, (frozenset(names), frozenset[Buffer]()), _known):
        yield from _unknown(_before(node), known[0])
        (inner, registers), _ = _known(known, node)
        yield from _unknown(own_expressions(node), inner)
        if isinstance(node, Intrinsic):
            yield from _missing(node)
        written, read = accesses(node)
        for element in (*written, *read):
            home = registers if element.buffer.space == "register" else there
            yield from _misnamed(element, home)
        for element in written:
            if element.buffer in constant or element.buffer.space == "argument":
                yield f"{element.buffer.name} is written, and passed to be read only"
        if isinstance(node, Copy) and node.width > 1 and not _fits(node):
            yield f"rows of {node.target.buffer.name} do not begin where wide copies may"


def _misnamed(element: Element, there: Collection[Buffer]) -> Iterator[str]:
    buffer = element.buffer
    if buffer not in there:
        yield f"the {buffer.space} buffer {buffer.name} is not there where it is used"
    if len(element.subscripts) != len(buffer.layout.extents):
        yield f"an element of {buffer.name} has {len(element.subscripts)} subscripts"


def _before(node: Node) -> Sequence[IntExpr]:
    """Return the expressions of a node that know none of its counters."""
    if isinstance(node, For):
        return (node.lower,)
    if isinstance(node, AllFinite):
        return (node.unless, node.thread)
    if isinstance(node, Fixup):
        return (node.number, node.own, node.thread, *node.arrived.subscripts)
    return tuple(own_expressions(node))


def _unknown(expressions: Iterable[IntExpr], known: Collection[str]) -> Iterator[str]:
    for name in sorted(set(names_in(*expressions))):
        if name not in known and not name.startswith(CUDA.coordinates):
            yield f"nothing is called {name} where it is used"


def _fits(node: Copy) -> bool:
    """Tell whether rows on the chip have whole multiples of a wide copy."""
    return all(
        _in_whole_rows(one, node.width)
        for one in (node.target, node.source)
        if one.buffer.space != "global"
    )


def _in_whole_rows(element: Element, width: int) -> bool:
    """Tell whether rows of an element's buffer are whole multiples of so many elements."""
    last = element.buffer.layout.allocated[-1]
    return isinstance(last, Constant) and last.value % width == 0


def _rows_named(node: Node) -> Iterator[tuple[Element, int]]:
    """Yield the first elements of rows that an instruction is told, and how long they are."""
    if isinstance(node, Intrinsic):
        for operand in node.instruction.operands:
            if operand.beside > 1:
                yield from ((one, operand.beside) for one in node.named((operand.name,)))


def _missing(node: Intrinsic) -> Iterator[str]:
    for one, length in _rows_named(node):
        if not _in_whole_rows(one, length):
            yield f"rows of {one.buffer.name} do not begin where those of matrices do"
    instruction = node.instruction
    lanes = instruction.lanes
    held = {one.name: prod(s.extent for s in one.slots(lanes)) for one in instruction.operands}
    for operand in instruction.operands:
        name = operand.name
        given = sum(operand.slots_in(one.buffer.element_type) for one in node.named((name,)))
        if lanes and given * operand.beside != held[name]:
            yield f"{instruction.name} takes {held[name]} elements for {name} of a lane"
    wanted = {*held, *instruction.immediates}
    named = {*dict(node.operands), *dict(node.immediates)}
    if wanted != named:
        yield f"{instruction.name} is not given what it takes, or more: {sorted(wanted ^ named)}"


_Test: TypeAlias = tuple[bool, IntExprs]
"""Whether some conditions hold, or not all of them do."""

_Tests: TypeAlias = frozenset[_Test]


def overlay_faults(nodes: Sequence[Node], overlaid: Sequence[Sequence[str]]) -> Names:
    """Return which tiles may lose what they hold to tiles of other groups, in words.

    Args:
        nodes: the body of a kernel.
        overlaid: groups of tiles, by name, that lie in the same memory.
    """
    if not overlaid:
        return ()
    often = Counter(name for group in overlaid for name in {*group})
    twice = [f"{name} lies in two places" for name, count in often.items() if count > 1]
    groups = {name: at for at, group in enumerate(overlaid) for name in group}
    return distinct((*twice, *_met(nodes, groups), *_Fills(nodes, groups).faults))


def _groups_in(node: Node, groups: Mapping[str, int]) -> set[int]:
    used = written((node,)) | read((node,))
    return {groups[one.name] for one in used if _is_overlaid(one, groups)}


def _is_overlaid(buffer: Buffer, groups: Mapping[str, int]) -> bool:
    return buffer.space == "shared" and buffer.name in groups


def _met(nodes: Sequence[Node], groups: Mapping[str, int]) -> Iterator[str]:
    """Yield which groups are in use while another one is; a block uses one after the other."""
    over: set[int] = set()
    here: set[int] = set()
    for node in nodes:
        own = _groups_in(node, groups)
        again = own & (over if len(own) < 2 and len(here) < 2 else over | here)
        if again or (len(own) > 1 and not inside(node)):
            yield "tiles that lie in the same memory are in use at the same time"
        elif len(own) > 1:
            for body in inside(node):
                yield from _met(body, groups)
        if own and own != here:
            over, here = over | here, own


class _Fills:
    """Follows nodes in their order, and finds tiles that are read before they are filled.

    Of a tile it is known under which tests nodes before have filled it. Those that threads decide
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
                self._forget({name for one in every((node,)) for name in own_names(one)})

    def _forget(self, names: set[str]) -> None:
        for name, known in self._filled.items():
            self._filled[name] = {
                tests
                for tests in known
                if names.isdisjoint(one for _, asked in tests for one in names_in(*asked))
            }

    def _access(self, node: Node, tests: _Tests) -> None:
        written, read = accesses(node)
        for one in read:
            name = one.buffer.name
            lost = _is_overlaid(one.buffer, self._groups) and not self._is_filled(name, tests)
            if lost and not one.buffer.of_phases:
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
        """Return what holds in all iterations of a loop, since it did in front of the first."""
        first = substitute(loop.condition, {loop.counter: loop.lower})
        return frozenset({(True, (first,))} if self._is_asked(first) else set())

    def _is_asked(self, condition: IntExpr) -> bool:
        """Tell whether a condition is the same for all threads, and not known to hold."""
        if varies(condition, self._varying):
            return False
        return bool(list(names_in(condition))) or not evaluate(condition, {})
