"""Why something is refused: constructs by their kind, and expressions that are not affine."""

from __future__ import annotations

from typing import Literal, TypeAlias

from eatss.base.frozen import frozen
from eatss.frontend import clang
from eatss.frontend.tree import ELEMENTS, Kind, Node

Refusal: TypeAlias = tuple[str, str, str]

_AROUND = "put #pragma scop before the loop"
_CORRECT = "correct the errors clang reports"
_ADDRESS = ("EATSS-F025", "address taken", "use the array itself")
_BROKEN = ("EATSS-F007", "expression clang could not make sense of", _CORRECT)
COMMA = ("EATSS-F038", "comma operator", "write each part as its own statement")
_EFFECT = (
    "EATSS-F038",
    "side effect inside an expression",
    "make it a statement of its own",
)

REFUSED_STATEMENTS: dict[Kind, Refusal] = {
    "goto": ("EATSS-F019", "goto", "use for and if"),
    "label": ("EATSS-F019", "label", "use for and if"),
    "break": ("EATSS-F020", "break of no loop of the region", _AROUND),
    "continue": ("EATSS-F020", "continue of no loop of the region", _AROUND),
    "return": ("EATSS-F021", "return inside the region", "return after #pragma endscop"),
    "switch": ("EATSS-F022", "switch", "use if with affine conditions"),
    "call": ("EATSS-F023", "call", "move the call out of the region"),
    "broken": ("EATSS-F007", "statement clang could not make sense of", _CORRECT),
}
IDLE_STATEMENT = ("EATSS-F039", "statement without effect", "remove it")

REFUSED_EXPRESSIONS: dict[Kind, Refusal] = {
    "address": _ADDRESS,
    "assign": (
        "EATSS-F038",
        "assignment inside an expression",
        "write each assignment as its own statement",
    ),
    "step": (
        "EATSS-F038",
        "++ or -- inside an expression",
        "write it as its own statement",
    ),
    "binary": COMMA,
    "broken": _BROKEN,
    "string": ("EATSS-F040", "string", "use numbers"),
    "call": ("EATSS-F023", "call of a function", "use an array"),
    "conditional": (
        "EATSS-F027",
        "choice between arrays",
        "choose between elements: c ? A[i] : B[i]",
    ),
}
UNSUPPORTED_EXPRESSION = (
    "EATSS-F039",
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
        code: str | None = None,
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
    code: str | None = None
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
        return NotAffineError(node, owner, code="EATSS-F026", hint=MEMBER_HINT)
    if node.kind in REFUSED_INDICES:
        code, message, hint = REFUSED_INDICES[node.kind]
        return NotAffineError(node, message, code=code, hint=hint)
    message = f"operator '{node.op}'" if node.op else "expression"
    return NotAffineError(node, message)
