"""Why something is refused: constructs by their kind, and expressions that are not affine."""

from __future__ import annotations

from typing import Literal, TypeAlias

from eatss.frontend import clang
from eatss.frontend.codes import Code
from eatss.frontend.tree import ELEMENTS, Kind, Node
from eatss.frozen import frozen

Refusal: TypeAlias = tuple[Code, str, str]

_AROUND = "put #pragma scop before the loop"
_CORRECT = "correct the errors clang reports"
_ADDRESS = (Code.ADDRESS_OF, "address taken", "use the array itself")
_BROKEN = (Code.SYNTAX, "expression clang could not make sense of", _CORRECT)
COMMA = (Code.SEVERAL_EFFECTS, "comma operator", "write each part as its own statement")
_EFFECT = (
    Code.SEVERAL_EFFECTS,
    "side effect inside an expression",
    "make it a statement of its own",
)

REFUSED_STATEMENTS: dict[Kind, Refusal] = {
    "goto": (Code.GOTO, "goto", "use for and if"),
    "label": (Code.GOTO, "label", "use for and if"),
    "break": (Code.BREAK, "break of no loop of the region", _AROUND),
    "continue": (Code.BREAK, "continue of no loop of the region", _AROUND),
    "return": (Code.RETURN, "return inside the region", "return after #pragma endscop"),
    "switch": (Code.SWITCH, "switch", "use if with affine conditions"),
    "call": (Code.CALL, "call", "move the call out of the region"),
    "broken": (Code.SYNTAX, "statement clang could not make sense of", _CORRECT),
}
IDLE_STATEMENT = (Code.UNSUPPORTED, "statement without effect", "remove it")

REFUSED_EXPRESSIONS: dict[Kind, Refusal] = {
    "address": _ADDRESS,
    "assign": (
        Code.SEVERAL_EFFECTS,
        "assignment inside an expression",
        "write each assignment as its own statement",
    ),
    "step": (
        Code.SEVERAL_EFFECTS,
        "++ or -- inside an expression",
        "write it as its own statement",
    ),
    "binary": COMMA,
    "broken": _BROKEN,
    "string": (Code.TYPE, "string", "use numbers"),
    "call": (Code.CALL, "call of a function", "use an array"),
    "conditional": (
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

REFUSED_INDICES: dict[Kind, Refusal] = {
    "assign": _EFFECT,
    "step": _EFFECT,
    "address": _ADDRESS,
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
        code: Code | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.node = node
        self.reason = reason if code is None else "own"
        self.message = message
        self.code = code
        self.hint = hint


@frozen
class Unknown:
    """Why the value of a scalar that a region sets is not known; a ``code`` only for ``OWN``."""

    reason: Reason
    message: str
    code: Code | None = None
    hint: str | None = None

    def at(self, node: Node) -> NotAffineError:
        """Return the error where the scalar is read."""
        return NotAffineError(node, self.message, self.reason, code=self.code, hint=self.hint)


MEMBER_HINT = "copy it to a variable before the region, or use an array of its own"


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
    if node.kind == "member":
        owner = clang.owner_of_member(node.cursor)
        return NotAffineError(node, owner, code=Code.MEMBER, hint=MEMBER_HINT)
    if node.kind in REFUSED_INDICES:
        code, message, hint = REFUSED_INDICES[node.kind]
        return NotAffineError(node, message, code=code, hint=hint)
    message = f"operator '{node.op}'" if node.op else "expression"
    return NotAffineError(node, message)
