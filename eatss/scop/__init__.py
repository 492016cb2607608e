"""The nouns between front end and everything else: C file in (by ``frontend``), ``Scop`` out.

Next folder: ``eatss/polyhedral``.
"""

from eatss.diagnostics import SourceSpan
from eatss.scop.array import Array, ElementType, Origin
from eatss.scop.expression import (
    AffineValue,
    Binary,
    Call,
    Cast,
    Expression,
    Literal,
    Read,
    Select,
    Unary,
    operands,
    preorder,
)
from eatss.scop.scop import Scop
from eatss.scop.signature import FunctionParameter, ParameterDeclaration, ParameterOrigin
from eatss.scop.statement import Access, AccessKind, Statement

__all__ = [
    "Access",
    "AccessKind",
    "AffineValue",
    "Array",
    "Binary",
    "Call",
    "Cast",
    "ElementType",
    "Expression",
    "FunctionParameter",
    "Literal",
    "Origin",
    "ParameterDeclaration",
    "ParameterOrigin",
    "Read",
    "Scop",
    "Select",
    "SourceSpan",
    "Statement",
    "Unary",
    "operands",
    "preorder",
]
