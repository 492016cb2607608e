"""Let an instruction do what statements do, wherever they compute what it computes."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from eatss.kernel.instruction import Instruction
from eatss.kernel.nodes import Compute, Kernel, Node
from eatss.kernel.uses import mapped
from eatss.scops import Binary, ElementType, Expression, Literal, Read, preorder
from eatss.scops.expression import added_to, terms

_SIGNS: dict[type[ast.AST], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}

Parts = dict[str, Expression]
"""The part of a statement's value that each operand is."""


def use_instruction(kernel: Kernel, instruction: Instruction) -> Kernel:
    """Return a kernel in which an instruction computes what it can.

    A statement fits where its value is that of the instruction, its type one of the instruction's,
    and no operand is read from where the result goes. Only an instruction of single values can fit
    that a thread runs by itself; atomic ones are for memory that threads share, and are placed.
    """

    def changed(node: Node) -> tuple[Node, ...]:
        return (_with(node, instruction) if isinstance(node, Compute) else node,)

    return replace(kernel, body=mapped(kernel.body, changed))


def _with(node: Compute, instruction: Instruction) -> Compute:
    placed = instruction.atomic or instruction.together or instruction.instances
    if placed or instruction.immediates or node.by is not None:
        return node
    if node.target.buffer.element_type not in instruction.element_types:
        return node
    value = node.statement.value
    if instruction.adds:
        added = added_to_target(node, value)
        if added is None:
            return node
        value = added
    own = Read(access=0)
    for parts in _matches(instruction.expression, value, {}):
        before = parts.pop(instruction.target, own)
        operands = [part for one in parts.values() for part in preorder(one)]
        if _is_target(node, before) and not any(_is_target(node, one) for one in operands):
            return replace(node, by=(instruction, (*parts.items(), (instruction.target, own))))
    return node


def _is_target(node: Compute, part: Expression) -> bool:
    """Tell whether a part of a value is what the statement writes."""
    return isinstance(part, Read) and node.reads[part.access] == node.target


def added_to_target(node: Compute, value: Expression) -> Expression | None:
    """Return what a statement adds to its target, ``None`` if it does something else."""
    return added_to(value, lambda one: _is_target(node, one), lambda n: _type_of(node, n))


def added_terms(node: Compute) -> list[Expression]:
    """Return what a statement adds to its target, term by term; none if it does something else."""
    added = added_to_target(node, node.statement.value)
    return [] if added is None else terms(added, lambda n: _type_of(node, n))


def own_part(node: Compute) -> Read:
    """Return the part of a sum that reads the statement's own target."""
    value = node.statement.value
    while isinstance(value, Binary):
        value = value.right if _is_target(node, value.right) else value.left
    assert isinstance(value, Read)
    return value


def _type_of(node: Compute, access: int) -> ElementType:
    return node.reads[access].buffer.element_type


def _matches(pattern: ast.expr, value: Expression, known: Parts) -> Sequence[Parts]:
    """Return the ways in which a value is what a pattern says.

    Operands of sums and products may change places.
    """
    if isinstance(pattern, ast.Name):
        if pattern.id in known:
            return [known] if known[pattern.id] == value else []
        return [{**known, pattern.id: value}]
    if isinstance(pattern, ast.Constant):
        same = isinstance(value, Literal) and _number(value.text) == pattern.value
        return [known] if same else []
    if not isinstance(pattern, ast.BinOp) or not isinstance(value, Binary):
        return []
    sign = _SIGNS.get(type(pattern.op))
    if sign != value.operator:
        return []
    sides = [(value.left, value.right)]
    if sign in ("+", "*"):
        sides.append((value.right, value.left))
    return [
        both
        for left, right in sides
        for first in _matches(pattern.left, left, known)
        for both in _matches(pattern.right, right, first)
    ]


def _number(text: str) -> float | None:
    if len(text) > 1 and text.startswith("0") and text.isdigit():
        return int(text, 8)
    try:
        return float(text.rstrip("fFlLuU"))
    except ValueError:
        return None
