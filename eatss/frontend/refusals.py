"""What is said of statements outside the subset: code, message, hint."""

from __future__ import annotations

from eatss.frontend.codes import Code
from eatss.frontend.tree import NodeKind

_AROUND = "put #pragma scop before the loop"

REFUSED_STATEMENTS: dict[NodeKind, tuple[Code, str, str]] = {
    NodeKind.GOTO: (Code.GOTO, "goto", "use for and if"),
    NodeKind.LABEL: (Code.GOTO, "label", "use for and if"),
    NodeKind.BREAK: (Code.BREAK, "break of no loop of the region", _AROUND),
    NodeKind.CONTINUE: (Code.BREAK, "continue of no loop of the region", _AROUND),
    NodeKind.RETURN: (Code.RETURN, "return inside the region", "return after #pragma endscop"),
    NodeKind.SWITCH: (Code.SWITCH, "switch", "use if with affine conditions"),
    NodeKind.CALL: (Code.CALL, "call", "move the call out of the region"),
    NodeKind.BROKEN: (
        Code.SYNTAX,
        "statement clang could not make sense of",
        "correct the errors clang reports",
    ),
}
