"""Trees of frozen dataclasses: one traversal over the fields of a node, and one rewriter.

OPERANDS = Parts(("Expression",), Expression)
OPERANDS.of(node)                   the operands of a node, from left to right
OPERANDS.rebuilt(node, change)      the node with ``change`` made of each of them

:func:`free_name` is a name that nothing has yet.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from functools import cache
from types import UnionType
from typing import Any, Generic, TypeVar

from eatss.base.frozen import Names, fixed

_Part = TypeVar("_Part")
_Node = TypeVar("_Node")


@fixed
class Parts(Generic[_Part]):
    """What of some ``kind`` nodes have in their fields, also in tuples, not in other parts.

    ``names`` are what the annotations of such fields mention, or their plurals, which are aliases
    of several. Dataclasses ``through`` which they are found are no nodes of their own.
    """

    names: Names
    kind: type[_Part] | UnionType
    through: tuple[type, ...] = ()

    def of(self, node: object) -> tuple[_Part, ...]:
        """Return the parts of a node, in the order of its fields."""
        found: list[_Part] = []
        kind: Any = type(node)
        for name, is_part in _fields(kind, self.names):
            value = getattr(node, name)
            if is_part:
                found.append(value)
            else:
                self._note(value, found)
        return tuple(found)

    def _note(self, value: Any, found: list[_Part]) -> None:
        if isinstance(value, tuple):
            for one in value:
                self._note(one, found)
        elif isinstance(value, self.kind):
            found.append(value)
        elif isinstance(value, self.through):
            found += self.of(value)

    def below(self, node: _Part) -> Iterator[_Part]:
        """Yield a node and all below it from left to right, without recursion."""
        todo = [node]
        while todo:
            one = todo.pop()
            yield one
            todo += reversed(self.of(one))

    def rebuilt(self, node: _Node, change: Callable[[_Part], _Part]) -> _Node:
        """Return a node with ``change`` made of each of its parts."""
        own: Any = node
        kind: Any = type(node)
        found = {
            name: self._changed(getattr(own, name), change) for name, _ in _fields(kind, self.names)
        }
        return replace(own, **found) if found else node

    def _changed(self, value: Any, change: Callable[[_Part], _Part]) -> Any:
        if isinstance(value, tuple):
            return tuple(self._changed(one, change) for one in value)
        if isinstance(value, self.kind):
            return change(value)
        return self.rebuilt(value, change) if isinstance(value, self.through) else value


@cache
def _fields(kind: type[Any], names: Names) -> tuple[tuple[str, bool], ...]:
    """Return the fields whose annotations mention some names, and whether that is all they say."""
    wanted = re.compile(rf"\b({'|'.join(names)})s?\b")  # a plural is an alias of several
    return tuple(
        (one.name, one.type in names) for one in fields(kind) if wanted.search(str(one.type))
    )


def free_name(name: str, taken: set[str]) -> str:
    """Return a name that is not taken, and take it."""
    found, number = name, 0
    while found in taken:
        number += 1
        found = f"{name}_{number}"
    taken.add(found)
    return found
