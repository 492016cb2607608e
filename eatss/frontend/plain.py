"""Rewrites statements into plainer ones that do the same, before anything reads them.

    a[k++] = b[i];                            a[k] = b[i]; k++;
    for (i = n; i-- > 0;) …                   i = n; while (i > 0) { i--; … } i--;
    for (i = 0, k = 1; i < n; i++, k += 2) …  k = 1; for (i = 0; i < n; i++) { … k += 2; }
    while (1) { if (i >= n) break; … }        while (!(i >= n)) { … }
    if (c) goto l; a; goto m; l: b; m: …      if (c) b; else a; …

A ``WHILE`` or ``DO`` has three children from here on: its condition, its body, and what runs after
each round, ``continue`` or not. What has no plainer form stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from eatss.frontend import clang
from eatss.frontend.clang import INT, NO_TYPE
from eatss.frontend.declarations import counter_of, written_name
from eatss.frontend.tree import LOOPS, WRITES, Node, leaves

_SIMPLE = ("assign", "step", "declarations")


def plain(nodes: Sequence[Node], labels: frozenset[str]) -> list[Node]:
    """Return statements that do what others do, in plain forms.

    Args:
        nodes: the statements.
        labels: labels among them that others go to; these stay.
    """
    rewriter = _Rewriter(labels)
    made = [one for node in rewriter.without_jumps(nodes) for one in rewriter.statements(node)]
    return rewriter.loosened(made, _loose(made))


class _Rewriter:
    def __init__(self, labels: frozenset[str]) -> None:
        self._kept_labels = labels

    def statements(self, node: Node) -> list[Node]:
        """Return what stands for a statement."""
        if node.kind == "compound":
            inner = self.without_jumps(node.children)
            node.children = [one for child in inner for one in self.statements(child)]
        elif node.kind == "if":
            node.children[1:] = [self._one(arm) for arm in node.children[1:]]
        elif node.kind in LOOPS:
            return self._loop(node)
        elif node.kind in _SIMPLE:
            parts = [node]
            if len(node.children) > 1 and node.kind == "declarations":
                # one by one: the next one sees what the last one has set
                parts = [replace(node, cursor=c.cursor, children=[c]) for c in node.children]
            return [one for part in parts for one in self._without_steps(part)]
        elif node.is_binary(","):
            return [one for part in node.children for one in self.statements(part)]
        return [node]

    def _one(self, node: Node) -> Node:
        return _block(node, self.statements(node))

    def _without_steps(self, node: Node) -> list[Node]:
        """Take ``++`` and ``--`` of scalars out of a statement.

        Where another part names the scalar, C does not say which value that has.
        """
        before: list[Node] = []
        after: list[Node] = []
        for step in [one for one in _steps(node) if one is not node]:
            if node.names(step.children[0].declaration) == 1:
                (after if step.op.startswith("post") else before).append(_taken_out(step))
        return [*before, node, *after]

    def loosened(self, nodes: Sequence[Node], loose: frozenset[int]) -> list[Node]:
        """Return statements in which a ``for`` that counts a loose variable is a ``while``.

        It is ``implicit``: what is not read in this way takes it for a ``for``.
        """
        found: list[Node] = []
        for node in nodes if loose else ():
            if node.kind == "compound":
                node.children = self.loosened(node.children, loose)
            elif node.kind in (*LOOPS, "if"):
                node.children = [_block(c, self.loosened([c], loose)) for c in node.children]
            if node.kind == "for" and _counts(node) in loose:
                start, condition, increment, body = node.children
                parts = [condition, body, increment]
                loop = replace(node, kind="while", children=parts, op="for", implicit=True)
                found += [start, loop]
            else:
                found.append(node)
        return found if loose else list(nodes)

    # -- jumps --------------------------------------------------------------------------

    def without_jumps(
        self, nodes: Sequence[Node], behind: frozenset[str] = frozenset()
    ) -> list[Node]:
        """Return statements in which arms of an ``if`` stand for ``goto`` where these go forward.

        One that is left over is refused later, whatever became of its label.

        Args:
            nodes: the statements of a block.
            behind: the labels right behind it.
        """
        if not any(node.has("goto", "label") for node in nodes):
            return list(nodes)
        done: list[Node] = []
        todo = list(nodes)
        while todo:
            node = todo.pop(0)
            while node.kind == "label" and not _labels(node) & self._kept_labels:
                (node,) = node.children
            at = _place_of(node, todo, behind)
            if at is not None:
                todo = todo[at:]  # nothing else leads to what is left out
                continue
            if node.kind == "if":
                node, todo = self._arms(node, todo, behind)
            done.append(node)
        return done

    def _arms(
        self, node: Node, todo: list[Node], behind: frozenset[str]
    ) -> tuple[Node, list[Node]]:
        """Give what an arm jumps over to the other arm; return the rest of the block."""
        test, *given = node.children
        arms = [arm.children[:] if arm.kind == "compound" else [arm] for arm in given]
        arms += [[]] * (2 - len(given))
        changed = True
        while changed:
            changed = False
            for one in (0, 1):
                at = _place_of(arms[one][-1], todo, behind) if arms[one] else None
                if at is not None:
                    arms[one] = arms[one][:-1]
                    arms[1 - one] = [*arms[1 - one], *todo[:at]]
                    todo, changed = todo[at:], True
        there = _labels(todo[0]) if todo else behind
        inner = [self.without_jumps(arm, there) for arm in arms]
        blocks = [replace(node, kind="compound", type=NO_TYPE, children=arm) for arm in inner]
        return replace(node, children=[test, *blocks]), todo

    # -- loops --------------------------------------------------------------------------

    def _loop(self, node: Node) -> list[Node]:
        first: list[Node] = []
        last: list[Node] = []
        if node.kind != "for" and _runs_at_most_once(node):
            return self.statements(node.children[0]) if node.kind == "do" else []
        if node.kind == "for" and self._complete(node):
            self._leading_breaks(node, 1, 3)
            first, node = self._header(node)
        elif node.kind == "while":
            node.children.append(_empty(node))
            self._leading_breaks(node, 0, 1)
        elif node.kind == "do":
            node.children = [*reversed(node.children), _empty(node)]
        if node.kind != "for":
            last = self._steps_of_condition(node, is_seen=not _declares(first, node.children[0]))
        self._compare(node)
        at = 1 if node.kind != "for" else -1
        node.children[at] = self._one(node.children[at])
        return [*first, node, *last]

    def _compare(self, loop: Node) -> None:
        """Make ``i != 0`` of a condition ``i``."""
        at = int(loop.kind == "for")
        test = loop.children[at]
        if len(loop.children) > 2 and test.kind == "name" and test.type.is_integer:
            sides = [test, _number(test, 0)]
            loop.children[at] = replace(test, kind="binary", op="!=", children=sides)
            loop.children[at].name, loop.children[at].declaration = "", None

    def _complete(self, node: Node) -> bool:
        """Give a ``for`` all its four parts; return whether that was possible."""
        if len(node.children) == 4:
            return True
        there = clang.parts_of_for(node.cursor, [child.cursor for child in node.children[:-1]])
        if there is None:
            return False
        parts = [_empty(node), _number(node, 1), _empty(node)]
        for at, part in zip(there, node.children[:-1], strict=True):
            parts[at] = part
        node.children = [*parts, node.children[-1]]
        return True

    def _header(self, node: Node) -> tuple[list[Node], Node]:
        """Return what comes before a ``for``, and a loop: a ``for`` of one counter if possible."""
        start, condition, increment, body = node.children
        is_plain = increment.kind in WRITES
        if counter_of(node) is not None and is_plain and not list(_steps(condition)):
            return [], node
        starts, increments = list(self._parts(start)), list(self._parts(increment))
        for kept, own in _counters(starts, condition, increments, body):
            others = [one for one in increments if one is not own]
            node.children = [kept, condition, own, _block(body, [body, *others])]
            return [one for one in starts if one is not kept], node
        parts = [condition, body, _block(increment, increments)]
        return starts, Node("while", node.cursor, NO_TYPE, parts, op="for")

    def _parts(self, node: Node) -> Iterator[Node]:
        """Yield the parts of a start or an increment, one after the other."""
        if node.kind != "empty":
            yield from self.statements(node)

    def _leading_breaks(self, loop: Node, test: int, body: int) -> None:
        """Make the condition of an endless loop of the ``break`` that its body begins with."""
        condition, inside = loop.children[test], loop.children[body]
        is_endless = condition.kind == "int" and condition.value != 0
        if is_endless and inside.kind == "compound" and _breaks(inside.children[:1]):
            first, *inside.children = inside.children
            left = first.children[0]
            loop.children[test] = Node("unary", left.cursor, INT, [left], op="!")

    def _steps_of_condition(self, loop: Node, *, is_seen: bool) -> list[Node]:
        """Take ``i--`` out of a condition; return what runs after the loop.

        Args:
            loop: the loop.
            is_seen: whether something behind the loop may see the scalar.
        """
        condition, body, after = loop.children
        steps = list(_steps(condition))
        if len(steps) != 1 or condition.names(steps[0].children[0].declaration) != 1:
            return []
        if leaves(body, "break") and is_seen:
            return []
        (step,) = steps
        tests_before = step.op.startswith("post")
        taken = _taken_out(step)
        if tests_before is (loop.kind == "do"):
            op = "+" if taken.op.endswith("++") is not tests_before else "-"
            scalar = replace(step)
            step.kind, step.op, step.name, step.declaration = "binary", op, "", None
            step.type = step.type if step.type.bits >= 32 else INT
            step.children = [scalar, _number(step, 1)]
        if condition is step:
            sides = [step, _number(step, 0)]
            condition = Node("binary", step.cursor, INT, sides, op="!=")
        if loop.kind == "do":
            loop.children = [condition, body, _block(after, [after, taken])]
            return []
        loop.children = [condition, _block(body, [taken, body]), after]
        return [replace(taken, children=list(taken.children))] if is_seen else []


def _block(place: Node, statements: Sequence[Node]) -> Node:
    """Return one statement for several."""
    if len(statements) == 1:
        return statements[0]
    return Node("compound", place.cursor, NO_TYPE, list(statements))


def _empty(place: Node) -> Node:
    return Node("empty", place.cursor, NO_TYPE)


def _number(place: Node, value: int) -> Node:
    return Node("int", place.cursor, INT, value=value, pure_index=True)


def _counters(
    starts: Sequence[Node], condition: Node, increments: Sequence[Node], body: Node
) -> Iterator[tuple[Node, Node]]:
    """Yield the start and the increment of each counter that a ``for`` may keep.

    All others may be set before the loop and after its body.
    """
    if not list(_steps(condition)) and not leaves(body, "continue"):
        for at, start in enumerate(starts):
            name = _set_by(start)
            if name is None or not condition.names(name.declaration):
                continue
            own = [
                one
                for one in increments
                if (target := written_name(one)) is not None
                and target.declaration == name.declaration
            ]
            others = (written_name(one) for one in increments if one not in own)
            if any(one is not None and condition.names(one.declaration) for one in others):
                return
            later = increments[increments.index(own[0]) + 1 :] if own else ()
            behind = (*starts[at + 1 :], *later)
            if len(own) == 1 and not any(one.names(name.declaration) for one in behind):
                yield start, own[0]


def _runs_at_most_once(loop: Node) -> bool:
    """Return whether a loop is ``while (0) …`` or ``do … while (0);``, which nothing leaves."""
    body, test = loop.children if loop.kind == "do" else reversed(loop.children)
    return test.kind == "int" and test.value == 0 and not leaves(body, "break", "continue", "label")


def _set_by(start: Node) -> Node | None:
    """Return the name that a start sets or declares."""
    if start.kind == "declarations":
        return start.children[0] if start.children[0].children else None
    target = written_name(start)
    return target if target is not None and start.op == "" else None


def _counts(loop: Node) -> int | None:
    """Return the variable, declared elsewhere, that a ``for`` counts."""
    counter = counter_of(loop)
    is_name = counter is not None and counter.kind == "name"
    return counter.declaration.hash if counter is not None and is_name else None


def _loose(nodes: Sequence[Node]) -> frozenset[int]:
    """Return the counters that are named outside their loops, or set in their bodies."""
    parts = [part for node in nodes for part in node.preorder()]
    counters = {_counts(part) for part in parts if part.kind == "for"} - {None}
    loose: set[int | None] = set()
    todo = [(node, frozenset[int | None]()) for node in nodes] if counters else []
    while todo:
        node, inside = todo.pop()
        is_set = node.kind == "variable" and bool(node.children)
        is_named = node.kind == "name" or is_set
        name = node.declaration.hash if is_named and node.declaration is not None else None
        target = written_name(node)
        set_here = target.declaration.hash if target is not None else None
        loose |= ({name} & counters) - inside | ({set_here} & inside)
        if node.kind == "for" and _counts(node) is not None:
            start, condition, increment, body = node.children
            own = inside | {_counts(node)}
            todo += [(one, own) for one in (condition, body, *increment.children[1:])]
            todo.append((start.children[1], inside))
        else:
            todo += [(child, inside) for child in node.children]
    return frozenset(one for one in loose if one is not None)


def _labels(node: Node) -> frozenset[str]:
    """Return the labels at a statement."""
    found: set[str] = set()
    while node.kind == "label":
        found.add(node.cursor.spelling)
        (node,) = node.children
    return frozenset(found)


def _place_of(jump: Node, todo: Sequence[Node], behind: frozenset[str]) -> int | None:
    """Return before which of the following statements a ``goto`` goes on."""
    if jump.kind != "goto" or not jump.children:
        return None
    label = jump.children[0].cursor.spelling
    places = [at for at, node in enumerate(todo) if label in _labels(node)]
    return places[0] if places else len(todo) if label in behind else None


def _declares(first: Sequence[Node], condition: Node) -> bool:
    """Return whether statements declare the scalars that a condition steps."""
    declared = [one.children[0] for one in first if one.kind == "declarations"]
    return bool(declared) and all(
        any(part.declaration == one.declaration for one in declared)
        for step in _steps(condition)
        for part in step.children
    )


def _steps(node: Node) -> Iterator[Node]:
    """Yield each ``++`` and ``--`` of an integer scalar that is computed whenever a node is."""
    todo = [node]
    while todo:
        part = todo.pop()
        is_step = part.kind == "step" and part.type.is_integer
        if is_step and part.children[0].kind == "name":
            yield part
            continue
        is_choice = part.kind == "conditional" or part.op in ("&&", "||")
        todo.extend(reversed(part.children[:1] if is_choice else part.children))


def _taken_out(step: Node) -> Node:
    """Leave the scalar in the place of a step; return the step as a statement."""
    (scalar,) = step.children
    taken = Node("step", step.cursor, step.type, [scalar], op=step.op)
    step.kind, step.name, step.declaration = "name", scalar.name, scalar.declaration
    step.children, step.op = [], ""
    return taken


def _breaks(first: Sequence[Node]) -> bool:
    """Return whether a statement is ``if (c) break;``."""
    if not first or first[0].kind != "if" or len(first[0].children) != 2:
        return False
    arm = first[0].children[1]
    while arm.kind == "compound" and len(arm.children) == 1:
        (arm,) = arm.children
    return arm.kind == "break"
