"""C types as far as the subset goes: arithmetic types, arrays and pointers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from eatss.frontend.clang import TypeKind
from eatss.polyhedral.scops import ElementType

TypeClass: TypeAlias = Literal["integer", "floating", "pointer", "array", "record", "other"]
"""The classes of C types the front end tells apart."""


@dataclass(frozen=True, slots=True)
class CType:
    """A C type; ``element`` is set for the arithmetic types the nouns can say."""

    kind: TypeClass
    spelling: str = ""
    element: ElementType | None = None
    bits: int = 0
    signed: bool = True

    @property
    def is_integer(self) -> bool:
        """Whether it is an integer type."""
        return self.kind == "integer"

    @property
    def is_arithmetic(self) -> bool:
        """Whether it is an integer or floating type."""
        return self.kind in ("integer", "floating")

    @property
    def minimum(self) -> int:
        """The least value of an integer type."""
        return -(1 << (self.bits - 1)) if self.signed else 0

    @property
    def maximum(self) -> int:
        """The greatest value of an integer type."""
        return (1 << (self.bits - (1 if self.signed else 0))) - 1


def _integer(element: ElementType) -> CType:
    bits = element.bounds[1].bit_length() + (not element.is_unsigned)
    return CType("integer", element.value, element, bits, not element.is_unsigned)


INT = _integer(ElementType.INT32)
_SCALARS: dict[Any, CType] = {
    TypeKind.FLOAT16: CType("floating", "_Float16", ElementType.HALF, 16),
    TypeKind.HALF: CType("floating", "__fp16"),
    TypeKind.FLOAT: CType("floating", "float", ElementType.FLOAT, 32),
    TypeKind.DOUBLE: CType("floating", "double", ElementType.DOUBLE, 64),
    TypeKind.LONGDOUBLE: CType("floating", "long double"),
    TypeKind.BOOL: _integer(ElementType.BOOL),
    TypeKind.CHAR_S: _integer(ElementType.INT8),
    TypeKind.SCHAR: _integer(ElementType.INT8),
    TypeKind.CHAR_U: _integer(ElementType.UINT8),
    TypeKind.UCHAR: _integer(ElementType.UINT8),
    TypeKind.SHORT: _integer(ElementType.INT16),
    TypeKind.USHORT: _integer(ElementType.UINT16),
    TypeKind.INT: INT,
    TypeKind.UINT: _integer(ElementType.UINT32),
    TypeKind.LONG: _integer(ElementType.INT64),
    TypeKind.ULONG: _integer(ElementType.UINT64),
    TypeKind.LONGLONG: _integer(ElementType.INT64),
    TypeKind.ULONGLONG: _integer(ElementType.UINT64),
}

_POINTER = CType("pointer", "pointer")
_ARRAY = CType("array", "array")
ARRAYS = frozenset({TypeKind.CONSTANTARRAY, TypeKind.VARIABLEARRAY, TypeKind.INCOMPLETEARRAY})


NO_TYPE = CType("other")


def type_of(clang_type: Any) -> CType:
    """Return a type of libclang as one of ours, typedefs resolved."""
    canonical = clang_type
    if clang_type.kind not in _SCALARS:
        canonical = clang_type.get_canonical()
    kind = canonical.kind
    if kind in _SCALARS:
        return _SCALARS[kind]
    if kind is TypeKind.ENUM:
        return type_of(canonical.get_declaration().enum_type)
    if kind is TypeKind.POINTER:
        return _POINTER
    if kind in ARRAYS:
        return _ARRAY
    is_record = kind is TypeKind.RECORD
    return CType("record" if is_record else "other", canonical.spelling)
