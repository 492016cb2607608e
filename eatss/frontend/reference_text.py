"""Writes a reference out as C where the source has only a macro call to show for it."""

from __future__ import annotations

from eatss.frontend.tree import Node, NodeKind

_MAX_DEPTH = 40
_PRECEDENCE = {"<<": 1, ">>": 1, "+": 2, "-": 2, "*": 3, "/": 3, "%": 3}
_PREFIX = 4
_POSTFIX = 5


def reference_text(node: Node) -> str | None:
    """Return ``A[i + 1][j]`` for the tree of a reference, macros expanded.

    ``None`` if a subscript has more than arithmetic in it or is nested very deeply.
    """
    return _text(node, 0, _MAX_DEPTH)


def _text(node: Node, above: int, depth: int) -> str | None:
    """Write a node out; in parentheses if it binds less tightly than ``above``."""
    if node.kind is NodeKind.CAST and node.implicit and depth > 0:
        return _text(node.children[0], above, depth - 1)
    if node.kind in (NodeKind.NAME, NodeKind.INT):
        return node.name or str(node.value)
    form = _form(node)
    if form is None or depth == 0:
        return None
    pattern, own, needed = form
    parts = [
        _text(child, tightness, depth - 1)
        for child, tightness in zip(node.children, needed, strict=True)
    ]
    if None in parts:
        return None
    text = pattern.format(*parts)
    return f"({text})" if own < above else text


def _form(node: Node) -> tuple[str, int, tuple[int, ...]] | None:
    """Return how a node is written, how tightly it binds, and how tightly its children must."""
    if node.kind is NodeKind.SUBSCRIPT:
        return "{}[{}]", _POSTFIX, (_POSTFIX, 0)
    if node.kind is NodeKind.DEREFERENCE:
        return "*{}", _PREFIX, (_PREFIX,)
    if node.kind is NodeKind.UNARY:
        return f"{node.op}{{}}", _PREFIX, (_POSTFIX,)  # a sign before a sign: -(-i), not --i
    if node.kind is NodeKind.BINARY and node.op in _PRECEDENCE:
        own = _PRECEDENCE[node.op]
        return f"{{}} {node.op} {{}}", own, (own, own + 1)
    return None
