"""libclang's kinds, typed as what they are to a type checker: attributes made at run time."""

from __future__ import annotations

from typing import Any

from clang import cindex

CursorKind: Any = cindex.CursorKind
StorageClass: Any = cindex.StorageClass
TypeKind: Any = cindex.TypeKind

_FLOAT16 = 32
"""``CXType_Float16``, which libclang has and its Python module does not."""

if not hasattr(TypeKind, "FLOAT16"):
    TypeKind.FLOAT16 = TypeKind(_FLOAT16)
