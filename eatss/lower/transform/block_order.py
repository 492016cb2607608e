"""Blocks that run at the same time are near each other in both directions.

Blocks start in the order of their numbers, ``x`` first. With rows of tiles that are long, those
that run at a time are a few whole rows: they read little of one operand and all of the other. In
groups of rows, column by column, they read less of both from memory.
"""

from __future__ import annotations

from dataclasses import replace

from eatss.analysis.structure import ROWS_TOGETHER
from eatss.base.free_names import free_name
from eatss.base.targets import CUDA
from eatss.lower.kernel.nodes import Kernel, Let, Nodes
from eatss.lower.kernel.uses import names_of, with_expressions
from eatss.program import (
    IntExpr,
    Name,
    minimum,
    substitute,
)

_X, _Y, _COLUMNS, _ALL_ROWS = (
    Name(own + axis) for own in (CUDA.block, CUDA.blocks) for axis in "xy"
)


def in_groups_of_rows(kernel: Kernel, taken: set[str]) -> Kernel:
    """Return a kernel whose blocks take tiles in groups of rows, if they have two directions.

    Names that are ``taken`` stay what they are.
    """
    used = names_of(kernel.body)
    if not {_X.name, _Y.name} <= used:
        return kernel
    number, rows = free_name("block", taken), free_name("rows", taken)
    first = ROWS_TOGETHER * (_Y // ROWS_TOGETHER)
    row = _Y % ROWS_TOGETHER
    order: Nodes = (
        Let(name=number, value=_X + row * _COLUMNS),
        Let(name=rows, value=minimum(_ALL_ROWS - first, ROWS_TOGETHER)),
    )
    change: dict[str, IntExpr] = {
        _X.name: Name(number) // Name(rows),
        _Y.name: first + Name(number) % Name(rows),
    }
    body = with_expressions(kernel.body, lambda one: substitute(one, change))
    return replace(kernel, body=(*order, *body))
