"""Regions over the symbols of macros that a user may override, where they agree with the file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import islpy as isl
from clang.cindex import TranslationUnitLoadError

from eatss.base.diagnostics import Diagnostic, Diagnostics, InputError, Severity
from eatss.base.files import StrPath
from eatss.base.frozen import Names, fixed, frozen
from eatss.frontend.clang import Unit, parse_unit
from eatss.frontend.declarations import ISL_WORDS
from eatss.frontend.options import DtypeName, FrontendOptions, FrontendResult
from eatss.frontend.parse import parse_text
from eatss.frontend.regions import MacroNames, macro_names
from eatss.frontend.source import (
    read_source,
)
from eatss.polyhedral.dependences import at_most
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
from eatss.program.expression import SizePairs, Sizes
from eatss.program.tokens import OWN_WORDS

# -- agreement ---------------------------------------------------------------------------------
# Checks that a region over symbols is, at the symbols' values, the region over numbers.


_COMPARED: dict[type[object], Names] = {
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


def agree(symbolic: Scop, numeric: Scop, values: Sizes) -> bool:
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


@fixed
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
            elif label(left) != label(right):
                return False
            else:
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
    match node, [_number(part) for part in operands(node)]:
        case Literal(text=text), _ if (digits := text.rstrip("uUlL")).isdecimal():
            return int(digits)
        case Cast(element_type=element), [value] if not element.is_floating:
            return value
        case Unary(operator="+" | "-" as sign), [int(value)]:
            return value if sign == "+" else -value
        case Binary(operator="+" | "-" | "*" as sign), [int(left), int(right)]:
            return {"+": left + right, "-": left - right, "*": left * right}[sign]
        case Binary(operator="/" | "%" as sign), [int(left), int(right)] if right:
            quotient = abs(left) // abs(right) * (1 if left * right >= 0 else -1)
            return quotient if sign == "/" else left - right * quotient
    return None


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
    values: SizePairs
    numeric: FrontendResult
    numbers: Diagnostics = ()

    @property
    def warnings(self) -> Diagnostics:
        """Warnings about the file as it is, and sizes that stay numbers."""
        return self.numeric.warnings + self.numbers


@frozen
class _Macro:
    name: str
    type: str
    value: int


def parse_symbolic(
    source: StrPath,
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
    program = _Program(source, options)
    if numeric is None:
        numeric = parse_text(program.text, options)
    names = program.names()
    others = names.tested | _OWN_WORDS
    macros = [macro for macro in program.macros(names) if macro.name not in others]
    kept, scops = program.most_parameters(macros, numeric)
    used = {name for scop in scops for name in scop.parameters}
    return SymbolicResult(
        scops=scops,
        values=tuple((m.name, m.value) for m in kept if m.name in used),
        numeric=numeric,
        numbers=tuple(_numbers_left(numeric, names, kept)),
    )


def type_macros(source: StrPath, options: FrontendOptions = _DEFAULT) -> Names:
    """Return the macros that name the floating-point type and may be overridden.

    Those are guarded by ``#ifndef``, and stand for ``double``, ``float`` or ``_Float16``.

    Raises:
        InputError: If the file cannot be read.
    """
    guarded = _Program(source, options).names().guarded.items()
    return tuple(name for name, bodies in guarded if {*bodies} <= {*get_args(DtypeName)})


class _Program:
    """A file and how to read it."""

    def __init__(self, source: StrPath, options: FrontendOptions) -> None:
        self.text = read_source(source)
        self._options = options

    def names(self) -> MacroNames:
        """Find the macros of the file and of the headers it includes, but those given with -D."""
        unit = self._unit() if b"include" in self.text.data else None
        headers = () if unit is None else unit.user_files[1:]
        texts = [self.text.data.decode("utf-8", "replace")]
        texts += [Path(name).read_text("utf-8", "replace") for name in headers]
        found = macro_names(texts)
        given = {define.partition("=")[0].partition("(")[0] for define in self._options.defines}
        return replace(found, guarded={n: b for n, b in found.guarded.items() if n not in given})

    def _unit(self, behind: str = "") -> Unit | None:
        """Parse the file with more text behind it; ``None`` if clang gives up."""
        text, options = self.text, self._options
        with suppress(TranslationUnitLoadError):
            return parse_unit(
                text.file,
                text.data + behind.encode(),
                include_dirs=options.include_dirs,
                defines=options.defines,
            )
        return None

    def macros(self, names: MacroNames) -> Iterator[_Macro]:
        """Yield the guarded macros that are positive integer constants, with type and value.

        What is 0 is no size but an option, like the padding of arrays.
        """
        questions = "".join(
            f"\n#ifdef {name}\nstatic const __typeof__({name}) {_VALUE}{name} = ({name});\n#endif\n"
            for name in names.guarded
        )
        unit = self._unit(questions) if questions else None
        for name, spelling, value in () if unit is None else unit.constants(_VALUE):
            if spelling in _TYPES and value > 0:
                yield _Macro(name=name, type=spelling, value=value)

    def most_parameters(
        self, macros: list[_Macro], numeric: FrontendResult
    ) -> tuple[list[_Macro], tuple[Scop, ...]]:
        """Return the macros that can be parameters, and the regions over them.

        All together if that works; else one is added after the other and kept if it works.
        """
        scops = self._parsed_over(macros, macros, numeric) if macros else None
        if scops is not None:
            return macros, scops
        kept: list[_Macro] = []
        best = numeric.scops
        for macro in macros if 1 < len(macros) <= _MAX_SINGLE_TRIES else ():
            scops = self._parsed_over([*kept, macro], macros, numeric)
            if scops is not None:
                kept, best = [*kept, macro], scops
        return kept, best

    def _parsed_over(
        self, macros: list[_Macro], known: list[_Macro], numeric: FrontendResult
    ) -> tuple[Scop, ...] | None:
        """Read the file over symbols; ``None`` if it is refused or is not the file at their values.

        The others of the ``known`` macros are given as numbers: headers may define them only where
        none of a data set is given.
        """
        others = (f"{m.name}={m.value}" for m in known if m not in macros)
        context = numeric.scops[0].isl_context
        try:
            scops = parse_text(
                self.text,
                replace(self._options, defines=(*self._options.defines, *others)),
                symbols={macro.name: macro.type for macro in macros},
                context=context,
            ).scops
        except InputError:
            return None
        if len(scops) != len(numeric.scops):
            return None
        values = {macro.name: macro.value for macro in macros}
        pairs = zip(scops, numeric.scops, strict=True)
        with (
            suppress(isl.Error),
            at_most(context, _MAX_OPERATIONS),
        ):  # else too hard
            return scops if all(agree(*pair, values) for pair in pairs) else None
        return None


def _numbers_left(
    numeric: FrontendResult, names: MacroNames, kept: list[_Macro]
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
