"""What is said of constructs outside the subset, by their kind: code, message, hint."""

from __future__ import annotations

from typing import TypeAlias

from eatss.frontend.codes import Code
from eatss.frontend.tree import NodeKind

Refusal: TypeAlias = tuple[Code, str, str]

_AROUND = "put #pragma scop before the loop"
_CORRECT = "correct the errors clang reports"
_ADDRESS = (Code.ADDRESS_OF, "address taken", "use the array itself")
_BROKEN = (Code.SYNTAX, "expression clang could not make sense of", _CORRECT)
_COMMA = (Code.SEVERAL_EFFECTS, "comma operator", "write each part as its own statement")
_EFFECT = (
    Code.SEVERAL_EFFECTS,
    "side effect inside an expression",
    "make it a statement of its own",
)

REFUSED_STATEMENTS: dict[NodeKind, Refusal] = {
    NodeKind.GOTO: (Code.GOTO, "goto", "use for and if"),
    NodeKind.LABEL: (Code.GOTO, "label", "use for and if"),
    NodeKind.BREAK: (Code.BREAK, "break of no loop of the region", _AROUND),
    NodeKind.CONTINUE: (Code.BREAK, "continue of no loop of the region", _AROUND),
    NodeKind.RETURN: (Code.RETURN, "return inside the region", "return after #pragma endscop"),
    NodeKind.SWITCH: (Code.SWITCH, "switch", "use if with affine conditions"),
    NodeKind.CALL: (Code.CALL, "call", "move the call out of the region"),
    NodeKind.BROKEN: (Code.SYNTAX, "statement clang could not make sense of", _CORRECT),
}
COMMA_STATEMENT = _COMMA
IDLE_STATEMENT = (Code.UNSUPPORTED, "statement without effect", "remove it")

REFUSED_EXPRESSIONS: dict[NodeKind, Refusal] = {
    NodeKind.ADDRESS: _ADDRESS,
    NodeKind.ASSIGN: (
        Code.SEVERAL_EFFECTS,
        "assignment inside an expression",
        "write each assignment as its own statement",
    ),
    NodeKind.STEP: (
        Code.SEVERAL_EFFECTS,
        "++ or -- inside an expression",
        "write it as its own statement",
    ),
    NodeKind.BINARY: _COMMA,
    NodeKind.BROKEN: _BROKEN,
    NodeKind.STRING: (Code.TYPE, "string", "use numbers"),
    NodeKind.CALL: (Code.CALL, "call of a function", "use an array"),
    NodeKind.CONDITIONAL: (
        Code.ALIAS,
        "choice between arrays",
        "choose between elements: c ? A[i] : B[i]",
    ),
}
UNSUPPORTED_EXPRESSION = (
    Code.UNSUPPORTED,
    "construct outside the subset",
    "use assignments to arrays",
)

REFUSED_INDICES: dict[NodeKind, Refusal] = {
    NodeKind.ASSIGN: _EFFECT,
    NodeKind.STEP: _EFFECT,
    NodeKind.ADDRESS: _ADDRESS,
    NodeKind.BROKEN: _BROKEN,
}
"""Where an affine expression is needed."""
