"""All that is asked of libclang, and its types as far as the subset goes.

Besides this file, ``tree.py``, ``declarations.py`` and ``regions.py`` touch libclang's objects.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, TypeAlias

from clang import cindex
from clang.cindex import conf

from eatss.base.frozen import Names, Numbers, fixed
from eatss.polyhedral.expression import ElementType

CursorKind: Any = cindex.CursorKind
StorageClass: Any = cindex.StorageClass
TypeKind: Any = cindex.TypeKind

_FLOAT16 = 32
"""``CXType_Float16``, which libclang has and its Python module does not."""

if not hasattr(TypeKind, "FLOAT16"):
    TypeKind.FLOAT16 = TypeKind(_FLOAT16)
_Cursor: Any = cindex.Cursor
_Cursor.__hash__ = lambda cursor: cursor.hash  # as later versions of the module have it

_BINARY_OPERATORS = """
    ? ? ? * / % + - << >> ? < > <= >= == != & ^ | && || = *= /= %= += -= <<= >>= &= ^= |= ,
""".split()  # noqa: SIM905 - operators are easier to read than quotes
_UNARY_OPERATORS = "? ++ -- ++ -- & * + - ~ !".split()  # noqa: SIM905
"""Operators by the number that libclang has for their kind."""

_HEADERS = Path(__file__).parent / "include"
_PRELUDE = str(_HEADERS / "eatss_prelude.h")  # exists only in the memory of clang
_KEEP_GOING = 0x200
_EVALUATED_INT = 1
_EVALUATED_FLOAT = 2


_UNDECLARED = {
    "getCursorBinaryOperatorKind": (cindex.Cursor, ctypes.c_int),
    "getCursorUnaryOperatorKind": (cindex.Cursor, ctypes.c_int),
    "isInvalidDeclaration": (cindex.Cursor, ctypes.c_uint),
    "Cursor_Evaluate": (cindex.Cursor, ctypes.c_void_p),
    "EvalResult_getKind": (ctypes.c_void_p, ctypes.c_int),
    "EvalResult_isUnsignedInt": (ctypes.c_void_p, ctypes.c_uint),
    "EvalResult_getAsUnsigned": (ctypes.c_void_p, ctypes.c_ulonglong),
    "EvalResult_getAsLongLong": (ctypes.c_void_p, ctypes.c_longlong),
    "EvalResult_getAsDouble": (ctypes.c_void_p, ctypes.c_double),
    "EvalResult_dispose": (ctypes.c_void_p, None),
}
"""Functions of libclang that its Python module does not declare: what they take and return."""


def operator(cursor: Any) -> str | None:
    """Return the operator of a cursor that is one."""
    is_unary = cursor.kind is CursorKind.UNARY_OPERATOR
    operators = _UNARY_OPERATORS if is_unary else _BINARY_OPERATORS
    kind = getattr(conf.lib, f"clang_getCursor{'Unary' if is_unary else 'Binary'}OperatorKind")
    found = operators[number] if (number := kind(cursor)) < len(operators) else "?"
    return None if found == "?" else found


def children(cursor: Any) -> list[Any]:
    """Return the children of a cursor."""
    return list(cursor.get_children())


def is_invalid(declaration: Any) -> bool:
    """Return whether clang found an error in a declaration."""
    return bool(conf.lib.clang_isInvalidDeclaration(declaration))


def is_automatic(declaration: Any) -> bool:
    """Return whether a variable of a block is neither ``static`` nor ``extern``."""
    storage = declaration.storage_class
    return storage not in (StorageClass.STATIC, StorageClass.EXTERN)


def outlives_function(declaration: Any) -> bool:
    """Return whether a variable is global, static or extern."""
    parent = declaration.semantic_parent
    is_global = parent is not None and parent.kind is CursorKind.TRANSLATION_UNIT
    return is_global or not is_automatic(declaration)


def evaluate(cursor: Any) -> int | float | None:
    """Return the value of a constant expression, ``None`` where it is not constant."""
    library = conf.lib
    result = library.clang_Cursor_Evaluate(cursor)
    if not result:
        return None
    try:
        kind = library.clang_EvalResult_getKind(result)
        if kind == _EVALUATED_INT:
            if library.clang_EvalResult_isUnsignedInt(result):
                return int(library.clang_EvalResult_getAsUnsigned(result))
            return int(library.clang_EvalResult_getAsLongLong(result))
        if kind == _EVALUATED_FLOAT:
            return float(library.clang_EvalResult_getAsDouble(result))
        return None
    finally:
        library.clang_EvalResult_dispose(result)


class Unit:
    """A parsed translation unit."""

    def __init__(self, unit: Any, file: str) -> None:
        self._unit = unit
        self._file = file

    @property
    def functions(self) -> Iterator[Any]:
        """The function definitions of the main file, in source order."""
        for cursor in self._unit.cursor.get_children():
            is_function = cursor.kind is CursorKind.FUNCTION_DECL
            if is_function and cursor.is_definition() and self.holds(cursor):
                yield cursor

    @property
    def includes(self) -> Numbers:
        """The offsets of the ``#include`` directives of the main file that found a file."""
        return tuple(
            inclusion.location.offset
            for inclusion in self._unit.get_includes()
            if self.holds(inclusion)
        )

    def holds(self, found: Any) -> bool:
        """Return whether something stands in the main file, and not in one it includes."""
        return file_of(found) == self._file

    @property
    def user_files(self) -> Names:
        """The main file and every header found outside our own folder, each once."""
        found = (str(inclusion.include.name) for inclusion in self._unit.get_includes())
        own = str(_HEADERS)
        names = (name for name in found if not name.startswith(own) and name != _PRELUDE)
        return (self._file, *dict.fromkeys(names))

    def constants(self, prefix: str) -> Iterator[tuple[str, str, int]]:
        """Yield the integer constants of the main file whose name begins with ``prefix``.

        Each comes with the rest of its name, its type without qualifiers, and its value.
        """
        for cursor in self._unit.cursor.get_children():
            if cursor.kind is CursorKind.VAR_DECL and cursor.spelling.startswith(prefix):
                value = None if is_invalid(cursor) else evaluate(cursor)
                if isinstance(value, int):
                    spelling = cursor.type.get_canonical().spelling.removeprefix("const ")
                    yield cursor.spelling.removeprefix(prefix), spelling, value

    @property
    def messages(self) -> tuple[Any, ...]:
        """What clang has to say about the file."""
        return tuple(self._unit.diagnostics)


def file_of(found: Any) -> str | None:
    """Return the file in which something stands that clang found."""
    file = found.location.file
    return None if file is None else str(file.name)


def parse_unit(
    file: str,
    data: bytes,
    *,
    include_dirs: Names,
    defines: Names,
    prelude: str = "",
) -> Unit:
    """Parse C text, after the declarations in ``prelude``, which take no line of the file.

    The warning about unknown pragmas is how clang itself tells where ``#pragma scop`` stands, after
    macros, ``_Pragma``, comments and conditional compilation; another is about macros given with
    ``-D`` that the text defines anew. Our own headers come after the user's.

    Raises:
        cindex.TranslationUnitLoadError: If clang gives up.
    """
    for name, (argument, result) in _UNDECLARED.items():
        function = getattr(conf.lib, f"clang_{name}")
        function.argtypes, function.restype = [argument], result
    arguments = [
        "-xc",
        "-std=gnu99",
        "--target=x86_64-unknown-linux-gnu",
        "-nostdinc",
        "-ferror-limit=0",
        "-fno-spell-checking",
        "-Wno-everything",
        "-Wunknown-pragmas",
        "-Wmacro-redefined",
        *(f"-I{directory}" for directory in include_dirs),
        *(f"-D{define}" for define in defines),
        "-isystem",
        str(_HEADERS),
    ]
    files: list[tuple[str, bytes | str]] = [(file, data)]
    if prelude:
        arguments += ["-include", _PRELUDE]
        files.append((_PRELUDE, prelude))
    index: Any = cindex.Index
    unit = index.create().parse(file, args=arguments, unsaved_files=files, options=_KEEP_GOING)
    return Unit(unit, file)


# -- types -------------------------------------------------------------------------------------
# C types as far as the subset goes: arithmetic types, arrays and pointers.


TypeClass: TypeAlias = Literal["integer", "floating", "pointer", "array", "record", "other"]
"""The classes of C types the front end tells apart."""


@fixed
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
        return self.element.bounds[0] if self.element else 0

    @property
    def maximum(self) -> int:
        """The greatest value of an integer type."""
        return self.element.bounds[1] if self.element else 0

    def holds(self, other: CType) -> bool:
        """Return whether all values of another integer type are values of this one."""
        return self.minimum <= other.minimum and other.maximum <= self.maximum


def _integer(element: ElementType) -> CType:
    bits = element.bounds[1].bit_length() + (not element.is_unsigned)
    return CType("integer", element.value, element, bits, not element.is_unsigned)


INT = _integer(ElementType.INT32)
FLOAT = CType("floating", "float", ElementType.FLOAT, 32)
_SCALARS: dict[Any, CType] = {
    TypeKind.FLOAT16: CType("floating", "_Float16", ElementType.HALF, 16),
    TypeKind.HALF: CType("floating", "__fp16"),
    TypeKind.FLOAT: FLOAT,
    TypeKind.DOUBLE: CType("floating", "double", ElementType.DOUBLE, 64),
    TypeKind.LONGDOUBLE: CType("floating", "long double"),
    **{
        getattr(TypeKind, name): _integer(element)
        for element, names in (
            (ElementType.BOOL, ("BOOL",)),
            (ElementType.INT8, ("CHAR_S", "SCHAR")),
            (ElementType.UINT8, ("CHAR_U", "UCHAR")),
            (ElementType.INT16, ("SHORT",)),
            (ElementType.UINT16, ("USHORT",)),
            (ElementType.INT32, ("INT",)),
            (ElementType.UINT32, ("UINT",)),
            (ElementType.INT64, ("LONG", "LONGLONG")),
            (ElementType.UINT64, ("ULONG", "ULONGLONG")),
        )
        for name in names
    },
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
