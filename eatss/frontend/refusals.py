"""Why something is refused, and the finding that says so."""

from __future__ import annotations

import re
from typing import Literal, NoReturn, TypeAlias

from eatss.base.diagnostics import SourceSpan
from eatss.frontend.clang import CursorKind
from eatss.frontend.source import Findings, RefusedError, SourceText, worded
from eatss.frontend.tree import ELEMENTS, JUMPS, Kind, Node, unconverted

# -- refusals ----------------------------------------------------------------------------------

_REFUSED: dict[Kind, str] = {
    **dict.fromkeys(JUMPS, "jump"),
    "assign": "effect",
    "address": "address",
    "member": "member",
    "string": "string",
    "conditional": "arrays_chosen",
    "broken": "broken",
}


def is_library_function(callee: Node) -> bool:
    """Return whether a name stands for a function whose body is not in the file.

    Only then does the name say what the function does; a pointer of that name, or a
    function that the file defines, may do anything.
    """
    declaration = callee.declaration
    return (
        declaration is not None
        and declaration.kind is CursorKind.FUNCTION_DECL
        and declaration.get_definition() is None
    )


def refusal(node: Node, *, is_statement: bool = False) -> str:
    """Return the kind of finding of a node that is refused, as an expression or as a statement."""
    if node.kind == "broken" and node.name:
        return "unknown"
    if node.kind == "call":
        callee = node.children[0]
        is_known = callee.declaration is None or is_library_function(callee)
        return "call" if is_known else "visible_call"
    if node.is_binary(","):
        return "comma"
    if is_statement and node.kind not in (*JUMPS, "broken"):
        return "idle"
    return _REFUSED.get(node.kind, "other")


class NotAffineError(Exception):
    """An expression is no quasi-affine function of counters and parameters.

    Each place words its own finding from ``message``, unless there is a ``code``. ``node`` is
    ``None`` where that is all that is read, ``depends`` says that data is the reason.
    """

    def __init__(
        self, node: Node | None, kind: str, *, depends: bool = False, **words: object
    ) -> None:
        self.code, self.message, self.hint = worded(kind, words)
        super().__init__(self.message)
        self.node, self.depends, self.kind, self.words = node, depends, kind, words


def not_affine(node: Node) -> NotAffineError:
    """Return the error for a kind of expression that is never affine."""
    if node.kind in ELEMENTS:
        return NotAffineError(node, "memory", depends=True)
    if node.kind in ("assign", "address", "member", "broken"):
        return NotAffineError(node, refusal(node), name=node.name)
    return NotAffineError(node, "operator" if node.op else "expression", name=node.op)


def floating(node: Node) -> NotAffineError:
    """Return why a floating-point expression is not affine: data, or only its form."""
    for inner in node.preorder():
        if inner.kind in ELEMENTS:
            return not_affine(inner)
        if inner.kind == "name" and inner.type.kind == "floating":
            return NotAffineError(inner, "data", depends=True, name=inner.name)
    return NotAffineError(node, "floating")


# -- report ------------------------------------------------------------------------------------
# Words findings about nodes of the tree.


_NAME_OR_NUMBER = re.compile(rb"[A-Za-z_0-9.]+")
_MAX_QUOTED = 60


Place: TypeAlias = Literal["subscript", "bound", "condition"]
"""Where an affine expression is needed."""

_SUMS = "sums of counters and parameters with constant factors"
_NOT_AFFINE = f"use {_SUMS}; quotients by constants, min, max and choices are fine"
_HINTS: dict[Place, tuple[str, str]] = {
    "subscript": (_NOT_AFFINE, "subscripts may use counters, parameters and constants only"),
    "bound": (
        _NOT_AFFINE,
        "copy the value to an integer variable before #pragma scop; one "
        "that depends on a counter, as in sparse formats, cannot be a bound",
    ),
    "condition": (
        f"compare {_SUMS}",
        "write the choice as an expression: x = condition ? a : b;",
    ),
}
"""What to do where the form of an expression is not affine, and where it depends on data."""


class Reporter:
    """Adds findings about nodes; knows where nodes stand in the source."""

    def __init__(self, source: SourceText, findings: Findings) -> None:
        self.source = source
        self.findings = findings

    def offsets(self, node: Node) -> tuple[int, int]:
        """Return the byte offsets of a node; inside a macro call, those of the call's name.

        Where the last token comes out of nested macros clang ends the node before it, so the end
        is that of whatever last part reaches furthest.
        """
        start, end = self._own_offsets(node)
        while node.children and not node.is_inlined:
            node = node.children[-1]
            end = max(end, self._own_offsets(node)[1])
        return start, end

    def _own_offsets(self, node: Node) -> tuple[int, int]:
        start, end = node.offsets
        size = len(self.source.data)
        start = min(start, size)
        if end <= start:
            match = _NAME_OR_NUMBER.match(self.source.data, start)
            end = match.end() if match else start + 1
        return start, min(end, size)

    def in_macro(self, node: Node) -> bool:
        """Return whether a reference lies inside a macro call, of which its text names more."""
        start, end = node.offsets
        if end <= start:
            return True
        text = self.source.text(start, end)
        if node.kind == "subscript":
            return not text.endswith("]")
        return node.kind == "dereference" and not text.startswith("*")

    def span(self, node: Node) -> SourceSpan:
        """Return the span of a node."""
        return self.source.span(*self.offsets(node))

    def text(self, node: Node) -> str:
        """Return the source text of a node in one line, macros not expanded."""
        raw = self.source.text(*self.offsets(node)).replace("\\\r\n", " ").replace("\\\n", " ")
        return " ".join(_COMMENT.sub(lambda m: m["string"] or " ", raw).split())

    def quoted(self, node: Node) -> str:
        """Return the text of a node, short enough for a message."""
        text = self.text(node)
        if len(text) > _MAX_QUOTED:
            text = text[: _MAX_QUOTED - 1] + "…"
        return f"'{text}'"

    def error(self, kind: str, node: Node, **words: object) -> None:
        """Add a finding at a node."""
        name = node.name or "a function"
        usual = {"text": self.quoted(node), "name": name, "construct": node.kind}
        self.findings.add(kind, self.span(node), **(usual | words))

    def refuse(self, kind: str, node: Node, **words: object) -> NoReturn:
        """Add an error at a node, and give up what it is part of."""
        self.error(kind, node, **words)
        raise RefusedError

    def refused(self, node: Node, *, is_statement: bool = False) -> None:
        """Add the error for a node of a kind that is refused."""
        self.error(refusal(node, is_statement=is_statement), node)

    def not_affine(self, error: NotAffineError, whole: Node, place: Place) -> None:
        """Add the error for an expression that should be affine and is not."""
        node = error.node or whole
        if error.code:
            self.findings.add(error.kind, self.span(node), **error.words)
            return
        text, why = self.quoted(whole), error.message
        how = "depends on data" if error.depends else "is not affine"
        if self.quoted(node) not in f"{text} {how}: {why}":
            why += f" ({self.quoted(node)})"
        hint = error.hint or _HINTS[place][error.depends]
        self.error("not_affine", node, place=place, text=text, how=how, why=why, hint=hint)


_COMMENT = re.compile(
    r"//[^\n]*|/\*.*?\*/|(?P<string>\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*')", re.DOTALL
)


def reference_text(node: Node) -> str:
    """Return ``A[(2 * i) + 1][j]`` for the tree of a reference, macros expanded."""
    node = unconverted(node)
    match node.kind, [*map(reference_text, node.children)]:
        case "subscript", [array, index]:
            return f"{array}[{index[1:-1] if index.startswith('(') else index}]"
        case "binary", [left, right]:
            return f"({left} {node.op} {right})"
        case "dereference" | "unary", [operand]:
            return f"{node.op or '*'}{operand}"
    return node.name or ("…" if node.value is None else str(node.value))
