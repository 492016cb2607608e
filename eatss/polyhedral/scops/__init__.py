"""The nouns between front end and everything else: C file in (by ``frontend``), ``Scop`` out.

Next folder: ``eatss/polyhedral``.
"""

from eatss.base.diagnostics import SourceSpan
from eatss.polyhedral.scops.array import Array, ElementType, Origin
from eatss.polyhedral.scops.expression import (
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
from eatss.polyhedral.scops.scop import (
    Access,
    AccessKind,
    FunctionParameter,
    ParameterDeclaration,
    ParameterOrigin,
    Scop,
    SizeCondition,
    SizeProduct,
    Statement,
)

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
    "SizeCondition",
    "SizeProduct",
    "SourceSpan",
    "Statement",
    "Unary",
    "operands",
    "preorder",
]
