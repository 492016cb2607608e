"""Why something is refused, and the finding that says so."""

from __future__ import annotations

import re
from typing import Literal, NoReturn, TypeAlias

from eatss.base.diagnostics import SourceSpan
from eatss.frontend.clang import CursorKind
from eatss.frontend.source import Findings, RefusedError, SourceText
from eatss.frontend.tree import ELEMENTS, JUMPS, Kind, Node

# -- refusals ----------------------------------------------------------------------------------
# Why something is refused: constructs by their kind, and expressions that are not affine.


Refusal: TypeAlias = tuple[str, str, str]

_AROUND = "put #pragma scop before the loop"
_CORRECT = "correct the errors clang reports"
_ADDRESS = ("EATSS-F024", "address taken", "use the array itself")
_MEMBER = ("EATSS-F024", "member of a structure", "copy it to a variable before the region")
_BROKEN = ("EATSS-F007", "expression clang could not make sense of", _CORRECT)
COMMA = ("EATSS-F019", "comma operator", "write each part as its own statement")
_EFFECT = (
    "EATSS-F019",
    "side effect inside an expression",
    "make it a statement of its own",
)


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


def call_refusal(callee: Node) -> Refusal:
    """Return why a call is no value."""
    name = callee.name or "a function"
    if callee.declaration is None or is_library_function(callee):
        return (
            "EATSS-F019",
            f"call of '{name}' may have side effects",
            "call only mathematical functions such as sqrt, exp or fmax, and functions of the file "
            "that are one return",
        )
    return (
        "EATSS-F019",
        f"call of '{name}', which stands for no single expression here",
        "write its body as one return of numbers, without assignments and recursion, whose "
        "variables of the file are not hidden where it is called; or as a macro",
    )


REFUSED_STATEMENTS: dict[Kind, Refusal] = {
    **{kind: ("EATSS-F019", kind, "use for (i = start; i < end; i++) and if") for kind in JUMPS},
    "break": ("EATSS-F019", "break of no loop of the region", _AROUND),
    "continue": ("EATSS-F019", "continue of no loop of the region", _AROUND),
    "broken": ("EATSS-F007", "statement clang could not make sense of", _CORRECT),
}
IDLE_STATEMENT = ("EATSS-F019", "statement without effect", "remove it")

REFUSED_EXPRESSIONS: dict[Kind, Refusal] = {
    "address": _ADDRESS,
    "member": _MEMBER,
    "assign": (
        "EATSS-F019",
        "assignment inside an expression",
        "write each assignment as its own statement",
    ),
    "step": (
        "EATSS-F019",
        "++ or -- inside an expression",
        "write it as its own statement",
    ),
    "binary": COMMA,
    "broken": _BROKEN,
    "string": ("EATSS-F040", "string", "use numbers"),
    "conditional": (
        "EATSS-F024",
        "choice between arrays",
        "choose between elements: c ? A[i] : B[i]",
    ),
}
UNSUPPORTED_EXPRESSION = (
    "EATSS-F019",
    "construct outside the subset",
    "use assignments to arrays",
)

REFUSED_INDICES: dict[Kind, Refusal] = {
    "assign": _EFFECT,
    "step": _EFFECT,
    "address": _ADDRESS,
    "member": _MEMBER,
    "broken": _BROKEN,
}
"""Where an affine expression is needed."""


Reason: TypeAlias = Literal["data", "non_affine", "own"]
"""Why an expression is not affine; each place words its own finding from it.

``own`` says that the exception carries its own code.
"""


class NotAffineError(Exception):
    """An expression is no quasi-affine function of counters and parameters."""

    def __init__(
        self,
        node: Node,
        message: str,
        reason: Reason = "non_affine",
        *,
        code: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.node = node
        self.reason = reason if code is None else "own"
        self.message = message
        self.code = code
        self.hint = hint


def product_of_variables(whole: Node) -> NotAffineError:
    """Return the error for an expression that has a product which is not affine."""
    product = next((node for node in whole.preorder() if _is_product(node)), whole)
    return NotAffineError(product, "product of variables")


def has_product(whole: Node) -> bool:
    """Return whether an expression multiplies one variable by another."""
    return any(_is_product(node) for node in whole.preorder())


def _is_product(node: Node) -> bool:
    return node.is_binary("*") and all(factor.has("name") for factor in node.children)


def not_affine(node: Node) -> NotAffineError:
    """Return the error for a kind of expression that is never affine."""
    if node.kind in ELEMENTS:
        return NotAffineError(node, "value read from memory", "data")
    if node.kind in REFUSED_INDICES:
        code, message, hint = REFUSED_INDICES[node.kind]
        return NotAffineError(node, message, code=code, hint=hint)
    message = f"operator '{node.op}'" if node.op else "expression"
    return NotAffineError(node, message)


def floating(node: Node) -> NotAffineError:
    """Return why a floating-point expression is not affine: data, or only its form."""
    for inner in node.preorder():
        if inner.kind in ELEMENTS:
            return not_affine(inner)
        if inner.kind == "name" and inner.type.kind == "floating":
            return NotAffineError(inner, f"'{inner.name}' is data", "data")
    return NotAffineError(node, "floating-point expression")


# -- report ------------------------------------------------------------------------------------
# Words findings about nodes of the tree.


_NAME_OR_NUMBER = re.compile(rb"[A-Za-z_0-9.]+")
_MAX_QUOTED = 60


Place: TypeAlias = Literal["subscript", "bound", "condition"]
"""Where an affine expression is needed."""

_SUMS = "sums of counters and parameters with constant factors"
_NOT_AFFINE = f"use {_SUMS}; / and % by constants, min, max and ?: are fine"
_HINTS: dict[tuple[Place, Reason], str] = {
    ("subscript", "non_affine"): _NOT_AFFINE,
    ("bound", "non_affine"): _NOT_AFFINE,
    ("condition", "non_affine"): f"compare {_SUMS}",
    ("subscript", "data"): "subscripts may use counters, parameters and constants only",
    ("bound", "data"): "copy the value to an integer variable before #pragma scop",
    ("condition", "data"): "write the choice as an expression: x = condition ? a : b;",
}


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
        return " ".join(_without_comments(raw).split())

    def quoted(self, node: Node) -> str:
        """Return the text of a node, short enough for a message."""
        text = self.text(node)
        if len(text) > _MAX_QUOTED:
            text = text[: _MAX_QUOTED - 1] + "…"
        return f"'{text}'"

    def error(self, code: str, node: Node, message: str, hint: str | None = None) -> None:
        """Add an error at a node."""
        self.findings.add(code, message, span=self.span(node), hint=hint)

    def refuse(self, code: str, node: Node, message: str, hint: str | None = None) -> NoReturn:
        """Add an error at a node, and give up what it is part of."""
        self.error(code, node, message, hint)
        raise RefusedError

    def warn(self, code: str, node: Node, message: str, hint: str | None = None) -> None:
        """Add a warning at a node."""
        self.findings.warn(code, message, span=self.span(node), hint=hint)

    def not_affine(self, error: NotAffineError, whole: Node, place: Place) -> None:
        """Add the error for an expression that should be affine and is not."""
        if error.reason == "own":
            assert error.code is not None
            self.error(error.code, error.node, error.message, error.hint)
            return
        said = f"{place} {self.quoted(whole)}"
        if error.reason == "data":
            message = f"{said} depends on data: {error.message}"
        else:
            message = f"{said} is not affine: {error.message}"
        if self.offsets(error.node) != self.offsets(whole):
            message += f" ({self.quoted(error.node)})"
        hint = error.hint or _HINTS[place, error.reason]
        self.error("EATSS-F012", error.node, message, hint)


_COMMENT_OR_STRING = re.compile(
    r"//[^\n]*|/\*.*?\*/|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'", re.DOTALL
)


def _without_comments(text: str) -> str:
    return _COMMENT_OR_STRING.sub(lambda m: " " if m[0].startswith("/") else m[0], text)


_LEVELS = {"<<": 1, ">>": 1, "+": 2, "-": 2, "*": 3, "/": 3, "%": 3}


def reference_text(node: Node, level: int = 0) -> str | None:
    """Return ``A[i + 1][j]`` for the tree of a reference, macros expanded.

    ``None`` if a subscript has more than arithmetic in it. What binds less tightly than ``level``
    stands in parentheses.
    """
    if node.kind == "cast" and node.implicit:
        return reference_text(node.children[0], level)
    if node.kind in ("name", "int"):
        return node.name or str(node.value)
    is_binary, is_subscript = node.kind == "binary", node.kind == "subscript"
    own = _LEVELS.get(node.op, 0) if is_binary else 4 + is_subscript
    inner = (own, own + 1) if is_binary else (5, 0)
    parts = [reference_text(child, at) for child, at in zip(node.children, inner, strict=False)]
    if None in parts or not own:
        return None
    match node.kind:
        case "subscript":
            text = f"{parts[0]}[{parts[1]}]"
        case "binary":
            text = f"{parts[0]} {node.op} {parts[1]}"
        case "dereference" | "unary":
            text = f"{node.op or '*'}{parts[0]}"
        case _:
            return None
    return f"({text})" if own < level else text
