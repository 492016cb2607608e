"""What a traversal finds of a node by the words of annotations is what their types hold."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any, get_args, get_type_hints

import pytest

from eatss.base.trees import _fields
from eatss.lower.kernel import nodes
from eatss.program import plan
from eatss.program.expression import Constant

CLASSES = [
    *(
        one
        for one in vars(nodes).values()
        if isinstance(one, type) and is_dataclass(one) and one.__module__ == nodes.__name__
    ),
    *(plan.Assumption, *plan.INTEGERS.through),
]


def holds(kind: Any) -> bool:
    """Whether a type is an integer expression, or tuples of some."""
    return kind is Constant or any(map(holds, get_args(kind)))


@pytest.mark.parametrize("kind", CLASSES, ids=lambda one: f"{one.__module__}.{one.__name__}")
def test_integer_expressions_are_found_under_their_aliases(kind: Any) -> None:
    hints = get_type_hints(kind)
    expected = {one.name for one in fields(kind) if holds(hints[one.name])}
    assert {name for name, _ in _fields(kind, ("IntExpr",))} == expected
