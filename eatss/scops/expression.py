"""The expression tree of a statement's right-hand side.

Trees are what code generation prints and what operation counts are taken from.
A read names its access by index into ``Statement.accesses``, so that tree and
access relations cannot disagree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from eatss.scops.array import ElementType

if TYPE_CHECKING:
    import islpy as isl


@dataclass(frozen=True, slots=True, kw_only=True)
class Literal:
    """A constant, kept in its C spelling (macros expanded) with its type."""

    text: str
    element_type: ElementType


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """A read of ``Statement.accesses[access]``."""

    access: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AffineValue:
    """An affine integer expression of counters and parameters used as a value (``i + 1``).

    ``value`` maps the statement's domain space to an integer.
    """

    value: isl.PwAff
    element_type: ElementType


@dataclass(frozen=True, slots=True, kw_only=True)
class Unary:
    """``operator operand``; operator one of ``+ - ! ~``."""

    operator: str
    operand: Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class Binary:
    """``left operator right`` with a C binary operator that has no side effect."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class Select:
    """``condition ? if_true : if_false``; both arms count as read."""

    condition: Expression
    if_true: Expression
    if_false: Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class Cast:
    """A conversion to ``element_type``, written or implied by C."""

    element_type: ElementType
    operand: Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call of a pure function (``sqrt``, ``fmax``, …)."""

    function: str
    arguments: tuple[Expression, ...]


Expression: TypeAlias = Literal | Read | AffineValue | Unary | Binary | Select | Cast | Call


def operands(node: Expression) -> tuple[Expression, ...]:
    """Return the operands of a node from left to right, none of a leaf."""
    if isinstance(node, Unary | Cast):
        return (node.operand,)
    if isinstance(node, Binary):
        return node.left, node.right
    if isinstance(node, Select):
        return node.condition, node.if_true, node.if_false
    return node.arguments if isinstance(node, Call) else ()


def rebuilt(node: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """Return a node with ``change`` made of each operand, a leaf as it is."""
    if isinstance(node, Unary | Cast):
        return replace(node, operand=change(node.operand))
    if isinstance(node, Binary):
        return replace(node, left=change(node.left), right=change(node.right))
    if isinstance(node, Select):
        condition, yes, no = map(change, (node.condition, node.if_true, node.if_false))
        return replace(node, condition=condition, if_true=yes, if_false=no)
    if isinstance(node, Call):
        return replace(node, arguments=tuple(map(change, node.arguments)))
    return node


def preorder(root: Expression) -> Iterator[Expression]:
    """Yield a node and all below it from left to right, without recursion."""
    todo = [root]
    while todo:
        node = todo.pop()
        yield node
        todo += reversed(operands(node))
