"""Regions over the symbols of macros that a user may override, where they agree with the file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from operator import add, mul, sub
from pathlib import Path
from typing import Any, get_args

import islpy as isl
from clang.cindex import TranslationUnitLoadError

from eatss.base.diagnostics import Diagnostic, InputError, Severity
from eatss.base.files import is_c_text
from eatss.base.frozen import frozen
from eatss.frontend.clang import Unit, parse_unit
from eatss.frontend.declarations import ISL_WORDS
from eatss.frontend.options import DtypeName, FrontendOptions, FrontendResult
from eatss.frontend.parse import parse_bytes
from eatss.frontend.regions import MacroNames, macro_names
from eatss.frontend.source import (
    Findings,
    SourceText,
    check_text,
    path_for_clang,
    read_bytes,
)
from eatss.polyhedral.expression import (
    AffineValue,
    Array,
    Binary,
    Cast,
    Expression,
    Literal,
    Unary,
    label,
    operands,
)
from eatss.polyhedral.isl_names import constant_value, parameters_set
from eatss.polyhedral.scop import Access, Scop, Statement
from eatss.program.tokens import OWN_WORDS

# -- agreement ---------------------------------------------------------------------------------
# Checks that a region over symbols is, at the symbols' values, the region over numbers.


_COMPARED: dict[type[object], tuple[str, ...]] = {
    Scop: (
        "function",
        "index",
        "span",
        "file",
        "whole_function",
        "context",
        "arrays",
        "statements",
    ),
    Array: ("name", "element_type", "n_dims", "is_local", "origin", "source_name"),
    Statement: ("name", "loops", "text", "span", "domain", "schedule", "accesses"),
    Access: ("array", "kind", "text", "span", "relation"),
}
"""What of nouns is compared besides extents and values."""


def agree(symbolic: Scop, numeric: Scop, values: Mapping[str, int]) -> bool:
    """Tell whether ``symbolic`` at ``values`` is ``numeric``.

    Both must live in one isl context. Names, texts and spans are compared as they are, sets and
    relations as sets, statement by statement; so are the values the statements store.
    """
    here = {name: value for name, value in values.items() if name in symbolic.parameters}
    if {*symbolic.parameters} - here.keys() != {*numeric.parameters}:
        return False
    condition = " and ".join(f"{name} = {value}" for name, value in here.items())
    return _Check(parameters_set(symbolic.isl_context, tuple(here), condition or "true")).same(
        symbolic, numeric
    )


@dataclass(frozen=True, slots=True)
class _Check:
    """Compares what is at some values of parameters with what is there without them."""

    at: isl.Set

    def same(self, one: Any, other: Any) -> bool:
        if isinstance(one, isl.Set | isl.Map):
            return bool(one.intersect_params(self.at).is_equal(other.intersect_params(self.at)))
        if isinstance(one, tuple):
            return len(one) == len(other) and all(map(self.same, one, other))
        if type(one) not in _COMPARED:
            return bool(one == other)
        if not all(self.same(getattr(one, n), getattr(other, n)) for n in _COMPARED[type(one)]):
            return False
        if isinstance(one, Array):  # where less is known of the sizes, less may be of the extent
            return bool(other.extent.intersect_params(self.at).is_subset(one.extent))
        return not isinstance(one, Statement) or self._same_value(one, other.value)

    def _same_value(self, statement: Statement, other: Expression) -> bool:
        """Compare two trees; what is one function of symbols may be several numbers."""
        todo = [(statement.value, other)]
        while todo:
            left, right = todo.pop()
            if isinstance(left, AffineValue):
                if not self._same_integer(left, right, statement.domain):
                    return False
                continue
            if label(left) != label(right):
                return False
            todo.extend(zip(operands(left), operands(right), strict=True))
        return True

    def _same_integer(self, one: AffineValue, other: Expression, domain: isl.Set) -> bool:
        if isinstance(other, AffineValue):
            functions = (isl.Map.from_pw_aff(each.value) for each in (one, other))
            found, expected = (function.intersect_domain(domain) for function in functions)
            return one.element_type is other.element_type and self.same(found, expected)
        number = _number(other)
        if number is None:
            return False
        here = domain.intersect_params(self.at)
        return constant_value(one.value.gist(here)) == number or here.is_empty()


def _number(node: Expression) -> int | None:
    """Return the integer that a tree of literals is, ``None`` if it is more than that."""
    parts = [one for part in operands(node) if (one := _number(part)) is not None]
    left, right = (*parts, 0, 0)[:2]
    if len(parts) < len(operands(node)):
        return None
    match node:
        case Literal(text=text) if (digits := text.rstrip("uUlL")).isdecimal():
            return int(digits)
        case Cast(element_type=element) if not element.is_floating:
            return left
        case Unary(operator="+" | "-" as sign):
            return left if sign == "+" else -left
        case Binary(operator=sign) if sign in "+-*" or (sign in "/%" and right):
            return _OPERATIONS[sign](left, right)
    return None


_OPERATIONS: Mapping[str, Callable[[int, int], int]] = {
    "+": add,
    "-": sub,
    "*": mul,
    "/": lambda left, right: int(Fraction(left, right)),
    "%": lambda left, right: left - right * int(Fraction(left, right)),
}


# -- symbolic ----------------------------------------------------------------------------------
# Reads a file with its macro sizes as parameters, so that code can be generic over them.
#
# ``#ifndef N / #define N 4000 / #endif`` is a size that a user may override. The file is read
# twice: as it is, and with such macros standing for unknown constants. The second reading is
# kept only if, at the values of the macros, it is the first one.


_TYPES = frozenset({"int", "unsigned int", "long", "unsigned long", "long long"})
_VALUE = "eatss_value_of_"
_MAX_SINGLE_TRIES = 12
"""Up to so many macros are tried one by one where all together fail."""

_MAX_OPERATIONS = 20_000_000
"""isl operations the comparison of the two readings may take."""

_OWN_WORDS = OWN_WORDS | ISL_WORDS
"""What no size can be called that stays a macro, in generated code or in sets."""

_DEFAULT = FrontendOptions()


@frozen
class SymbolicResult:
    """The regions of a file with its macro sizes as parameters.

    ``scops`` are the regions with the macros of ``values`` as parameters; spans and names are those
    of ``numeric``, the file as it is. At ``values`` (macro, value) both are equal. All sets of both
    live in one isl context. ``numbers`` has a warning for every macro size that stays a number.
    """

    scops: tuple[Scop, ...]
    values: tuple[tuple[str, int], ...]
    numeric: FrontendResult
    numbers: tuple[Diagnostic, ...] = ()

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """Warnings about the file as it is, and sizes that stay numbers."""
        return self.numeric.warnings + self.numbers


@frozen
class _Macro:
    name: str
    type: str
    value: int


@frozen
class _Program:
    """A file and how to read it."""

    file: str
    data: bytes
    options: FrontendOptions
    context: isl.Context


def parse_symbolic(
    source: str | os.PathLike[str],
    options: FrontendOptions = _DEFAULT,
    numeric: FrontendResult | None = None,
) -> SymbolicResult:
    """Read the regions of a file with its overridable macro sizes as parameters.

    Args:
        source: a path, or C source text: see :func:`~eatss.base.files.is_c_text`.
        options: as for ``parse_file``; a macro given there stays the number it is.
        numeric: the file as it is, where it was read with these options before; its sets and
            those of the result live in one isl context.

    Raises:
        InputError: With all findings of the run, if the file as it is is refused.
    """
    file, data = _named_bytes(source)
    if numeric is None:
        numeric = parse_bytes(file, data, options)
    context = numeric.scops[0].isl_context
    program = _Program(file=file, data=data, options=options, context=context)
    names = _macro_names(program)
    others = names.tested | _OWN_WORDS
    macros = tuple(m for m in _macros(program, names) if m.name not in others)
    kept, scops = _most_parameters(program, macros, numeric)
    used = {name for scop in scops for name in scop.parameters}
    return SymbolicResult(
        scops=scops,
        values=tuple((m.name, m.value) for m in kept if m.name in used),
        numeric=numeric,
        numbers=tuple(_numbers_left(numeric, names, kept)),
    )


def type_macros(
    source: str | os.PathLike[str], options: FrontendOptions = _DEFAULT
) -> tuple[str, ...]:
    """Return the macros that name the floating-point type and may be overridden.

    Those are guarded by ``#ifndef``, and stand for ``double``, ``float`` or ``_Float16``.

    Raises:
        InputError: If the file cannot be read.
    """
    file, data = _named_bytes(source)
    program = _Program(file=file, data=data, options=options, context=isl.Context())
    return tuple(
        name
        for name, bodies in _macro_names(program).guarded.items()
        if all(body in get_args(DtypeName) for body in bodies)
    )


def _named_bytes(source: str | os.PathLike[str]) -> tuple[str, bytes]:
    if isinstance(source, str) and is_c_text(source):
        return "<source>", source.encode("utf-8", "surrogateescape")
    file = os.fspath(source)
    return path_for_clang(file), read_bytes(file)


def _macro_names(program: _Program) -> MacroNames:
    """Find the macros of the file and of the headers it includes, but those given with -D."""
    files: tuple[str, ...] = (program.file,)
    if b"include" in program.data:
        files = _unit_files(program)
    texts = [program.data.decode("utf-8", "replace")]
    texts += [Path(name).read_text("utf-8", "replace") for name in files[1:]]
    found = macro_names(texts)
    given = {define.partition("=")[0].partition("(")[0] for define in program.options.defines}
    return replace(found, guarded={n: b for n, b in found.guarded.items() if n not in given})


def _unit_files(program: _Program) -> tuple[str, ...]:
    unit = _unit(program, program.data)
    return (program.file,) if unit is None else unit.user_files


def _unit(program: _Program, data: bytes) -> Unit | None:
    """Parse a text as the program's; ``None`` if clang gives up."""
    source = SourceText.of(program.file, program.data)
    check_text(source, Findings(source))
    options = program.options
    try:
        return parse_unit(
            program.file, data, include_dirs=options.include_dirs, defines=options.defines
        )
    except TranslationUnitLoadError:
        return None


def _macros(program: _Program, names: MacroNames) -> Iterator[_Macro]:
    """Yield the guarded macros that are positive integer constants, with type and value.

    What is 0 is no size but an option, like the padding of arrays.
    """
    if not names.guarded:
        return
    questions = "\n".join(
        f"#ifdef {name}\nstatic const __typeof__({name}) {_VALUE}{name} = ({name});\n#endif"
        for name in names.guarded
    )
    unit = _unit(program, program.data + b"\n" + questions.encode() + b"\n")
    if unit is None:
        return
    for name, spelling, value in unit.constants(_VALUE):
        if spelling in _TYPES and value > 0:
            yield _Macro(name=name, type=spelling, value=value)


def _most_parameters(
    program: _Program, macros: tuple[_Macro, ...], numeric: FrontendResult
) -> tuple[tuple[_Macro, ...], tuple[Scop, ...]]:
    """Return the macros that can be parameters, and the regions over them.

    All together if that works; else one is added after the other and kept if it works.
    """
    scops = _parsed_over(program, macros, macros, numeric) if macros else None
    if scops is not None:
        return macros, scops
    kept: tuple[_Macro, ...] = ()
    best = numeric.scops
    for macro in macros if 1 < len(macros) <= _MAX_SINGLE_TRIES else ():
        scops = _parsed_over(program, (*kept, macro), macros, numeric)
        if scops is not None:
            kept, best = (*kept, macro), scops
    return kept, best


def _parsed_over(
    program: _Program,
    macros: tuple[_Macro, ...],
    known: tuple[_Macro, ...],
    numeric: FrontendResult,
) -> tuple[Scop, ...] | None:
    """Read the file over symbols; ``None`` if it is refused or is not the file at their values.

    The others of the ``known`` macros are given as numbers: headers may define them only where
    none of a data set is given.
    """
    options = program.options
    others = tuple(f"{m.name}={m.value}" for m in known if m not in macros)
    try:
        result = parse_bytes(
            program.file,
            program.data,
            replace(options, defines=(*options.defines, *others)),
            symbols={macro.name: macro.type for macro in macros},
            context=program.context,
        )
    except InputError:
        return None
    values = {macro.name: macro.value for macro in macros}
    same = len(result.scops) == len(numeric.scops) and _all_agree(program, result, numeric, values)
    return result.scops if same else None


def _all_agree(
    program: _Program, one: FrontendResult, other: FrontendResult, values: Mapping[str, int]
) -> bool:
    context = program.context
    context.reset_operations()
    context.set_max_operations(_MAX_OPERATIONS)
    try:
        return all(agree(a, b, values) for a, b in zip(one.scops, other.scops, strict=True))
    except isl.Error:  # too hard to compare
        return False
    finally:
        context.set_max_operations(0)
        context.reset_operations()


def _numbers_left(
    numeric: FrontendResult, names: MacroNames, kept: tuple[_Macro, ...]
) -> Iterator[Diagnostic]:
    """Warn of the macros of loop bounds that could be overridden but stay numbers."""
    sizes = dict(pair for scop in numeric.scops for pair in scop.size_macros)
    for name in sorted((names.guarded.keys() & sizes.keys()) - {macro.name for macro in kept}):
        yield Diagnostic(
            code="EATSS-F094",
            severity=Severity.WARNING,
            message=f"macro '{name}' stays {sizes[name]} in generated code: it decides which code "
            "is compiled, is an option (0), or stands where C, isl or the analysis needs a number",
            hint=f"give -D {name}=… for other sizes",
        )
