"""Why something is refused, and the finding that says so."""

from __future__ import annotations

import re
from typing import Literal, NoReturn, TypeAlias

from eatss.base.diagnostics import SourceSpan
from eatss.frontend.clang import CursorKind
from eatss.frontend.source import Findings, RefusedError, SourceText
from eatss.frontend.tree import ELEMENTS, JUMPS, Kind, Node, unconverted

# -- refusals ----------------------------------------------------------------------------------

Refusal: TypeAlias = tuple[str, str, str]
"""A code, what is wrong, and a hint."""

_AROUND = "put #pragma scop before the loop"
_COMMA = ("EATSS-F018", "comma operator", "write each part as its own statement")
_EFFECT = ("EATSS-F018", "side effect inside an expression", "make it a statement of its own")
_REFUSED: dict[Kind, Refusal] = {
    **{
        kind: ("EATSS-F018", f"{kind} statement", "use for (i = start; i < end; i++) and if")
        for kind in JUMPS
    },
    "break": ("EATSS-F018", "break of no loop of the region", _AROUND),
    "continue": ("EATSS-F018", "continue of no loop of the region", _AROUND),
    "assign": _EFFECT,
    "address": ("EATSS-F024", "address taken", "use the array itself"),
    "member": ("EATSS-F024", "member of a structure", "copy it to a variable before the region"),
    "string": ("EATSS-F040", "string", "use numbers"),
    "conditional": (
        "EATSS-F024", "choice between arrays", "choose between elements: c ? A[i] : B[i]",
    ),
    "broken": (
        "EATSS-F007", "clang could not make sense of this", "correct the errors clang reports",
    ),
}  # fmt: skip
_IDLE = ("EATSS-F018", "statement without effect", "remove it")
_OTHER = ("EATSS-F018", "construct outside the subset", "use assignments to arrays")


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


def unknown_declaration(name: str) -> Refusal:
    """Return why a variable is refused whose type clang does not know."""
    message = f"the declaration of '{name}' is not understood"
    return "EATSS-F007", message, "declare it with a known type; pass -I for missing headers"


def refusal(node: Node, *, is_statement: bool = False) -> Refusal:
    """Return why a node is refused, as an expression or as a statement."""
    if node.kind == "broken" and node.name:
        return unknown_declaration(node.name)
    if node.kind == "call":
        return _call(node.children[0])
    if node.is_binary(","):
        return _COMMA
    if is_statement and node.kind not in (*JUMPS, "break", "continue", "broken"):
        return _IDLE
    return _REFUSED.get(node.kind, _OTHER)


def _call(callee: Node) -> Refusal:
    name = callee.name or "a function"
    if callee.declaration is None or is_library_function(callee):
        return (
            "EATSS-F018",
            f"call of '{name}' may have side effects",
            "call only mathematical functions such as sqrt, exp or fmax, and functions of the file "
            "that are one return",
        )
    return (
        "EATSS-F018",
        f"call of '{name}', which stands for no single expression here",
        "write its body as one return of numbers, without assignments and recursion, whose "
        "variables of the file are not hidden where it is called; or as a macro",
    )


class NotAffineError(Exception):
    """An expression is no quasi-affine function of counters and parameters.

    Each place words its own finding from ``message``, unless there is a ``code``. ``node`` is
    ``None`` where that is not known yet, ``depends`` says that data is the reason.
    """

    def __init__(
        self,
        node: Node | None,
        message: str,
        hint: str | None = None,
        *,
        code: str | None = None,
        depends: bool = False,
    ) -> None:
        super().__init__(message)
        self.node, self.message, self.hint = node, message, hint
        self.code, self.depends = code, depends

    def within(self, whole: Node) -> NotAffineError:
        """Return the error about an expression, or a part of it that is a product."""
        products = (one for one in whole.preorder() if _is_product(one) and self.code is None)
        node = self.node or next(products, whole)
        return NotAffineError(node, self.message, self.hint, code=self.code, depends=self.depends)


def has_product(whole: Node) -> bool:
    """Return whether an expression multiplies one variable by another."""
    return any(map(_is_product, whole.preorder()))


def _is_product(node: Node) -> bool:
    return node.is_binary("*") and all(factor.has("name") for factor in node.children)


def not_affine(node: Node) -> NotAffineError:
    """Return the error for a kind of expression that is never affine."""
    if node.kind in ELEMENTS:
        return NotAffineError(node, "value read from memory", depends=True)
    if node.kind in ("assign", "address", "member", "broken"):
        code, message, hint = refusal(node)
        return NotAffineError(node, message, hint, code=code)
    return NotAffineError(node, f"operator '{node.op}'" if node.op else "expression")


def floating(node: Node) -> NotAffineError:
    """Return why a floating-point expression is not affine: data, or only its form."""
    for inner in node.preorder():
        if inner.kind in ELEMENTS:
            return not_affine(inner)
        if inner.kind == "name" and inner.type.kind == "floating":
            return NotAffineError(inner, f"'{inner.name}' is data", depends=True)
    return NotAffineError(node, "floating-point expression")


# -- report ------------------------------------------------------------------------------------
# Words findings about nodes of the tree.


_NAME_OR_NUMBER = re.compile(rb"[A-Za-z_0-9.]+")
_MAX_QUOTED = 60


Place: TypeAlias = Literal["subscript", "bound", "condition"]
"""Where an affine expression is needed."""

_SUMS = "sums of counters and parameters with constant factors"
_NOT_AFFINE = f"use {_SUMS}; / and % by constants, min, max and ?: are fine"
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

    def refused(self, node: Node, *, is_statement: bool = False) -> None:
        """Add the error for a node of a kind that is refused."""
        code, message, hint = refusal(node, is_statement=is_statement)
        self.error(code, node, message, hint)

    def not_affine(self, error: NotAffineError, whole: Node, place: Place) -> None:
        """Add the error for an expression that should be affine and is not."""
        node, message = error.node or whole, error.message
        if error.code is None:
            how = "depends on data" if error.depends else "is not affine"
            message = f"{place} {self.quoted(whole)} {how}: {message}"
            if self.quoted(node) not in message:
                message += f" ({self.quoted(node)})"
        hint = error.hint or (None if error.code else _HINTS[place][error.depends])
        self.error(error.code or "EATSS-F012", node, message, hint)


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
