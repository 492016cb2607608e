"""The front end from one end to the other: a file in, ``Scop``s or all findings out."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from ctypes import ArgumentError
from types import MappingProxyType

import islpy as isl
from clang.cindex import TranslationUnitLoadError

from eatss.base.diagnostics import input_error
from eatss.base.files import StrPath
from eatss.base.frozen import their_names
from eatss.frontend.affine import AffineReader, RawAccess, RegionReader
from eatss.frontend.arrays import Assembler, Delinearised, delinearise
from eatss.frontend.clang import Unit, parse_unit
from eatss.frontend.declarations import SymbolTable, Variable
from eatss.frontend.loops import RawStatement
from eatss.frontend.options import FrontendOptions, FrontendResult
from eatss.frontend.refusals import NotAffineError, Reporter
from eatss.frontend.regions import (
    PlacedRegion,
    Region,
    Surroundings,
    check_aliases,
    check_counters,
    check_messages,
    check_sizes,
    declared_parameter,
    find_regions,
    function_parameters,
    place_region,
    warn_of_unused,
)
from eatss.frontend.source import (
    Findings,
    RefusedError,
    SourceText,
    read_source,
)
from eatss.frontend.statements import Frame, StatementReader
from eatss.frontend.tree import Node, inlined
from eatss.frontend.values import Poly, ValueAlgebra
from eatss.polyhedral.isl_names import parameter_space, without_parameters
from eatss.polyhedral.scop import AccessKind, Scop
from eatss.program.expression import SizePairs

_DEFAULT = FrontendOptions()
_NO_SYMBOLS: Mapping[str, str] = MappingProxyType({})
_MAX_LOOPS = 8
"""Around references that are checked for leaving their array."""


def parse_file(source: StrPath, options: FrontendOptions = _DEFAULT) -> FrontendResult:
    """Read the regions of a C file, or of C text.

    Args:
        source: The path, or the text: see :func:`~eatss.base.files.is_c_text`.
        options: Include folders, macros, which regions, values of parameters.

    Raises:
        InputError: With all findings of the run, if the file or a region is refused.
    """
    return parse_text(read_source(source), options)


def parse_text(
    source: SourceText,
    options: FrontendOptions,
    *,
    symbols: Mapping[str, str] = _NO_SYMBOLS,
    context: isl.Context | None = None,
) -> FrontendResult:
    """Read the regions of a text.

    Args:
        source: The text.
        options: As for :func:`parse_file`.
        symbols: Macros that stand for an unknown constant, with its C type, whatever the
            file would define them to be.
        context: The isl context the sets are to live in; ``None`` for a new one.

    Raises:
        InputError: With all findings of the run, if the text or a region is refused.
    """
    file, findings = source.file, Findings(source)
    try:
        unit = parse_unit(
            file,
            source.data,
            include_dirs=options.include_dirs,
            defines=(*options.defines, *(f"{name}={name}" for name in symbols)),
            prelude="".join(f"extern const {kind} {one};\n" for one, kind in symbols.items()),
        )
        regions = find_regions(unit, source, findings)
        check_messages(unit, source, regions, findings)
        findings.raise_errors()
        if options.defines and not symbols:
            warn_of_unused(options.defines, unit, source, findings)
        context = context or isl.Context()
        found = [
            _RegionReader(placed, source, findings, options, frozenset(symbols), context).read()
            for placed in _select(regions, unit, source, options, findings)
        ]
    except (RecursionError, ArgumentError):  # the latter where it ends within libclang
        raise input_error(
            "EATSS-F009", f"'{file}' is nested too deeply", hint="split the expressions"
        ) from None
    except (TranslationUnitLoadError, UnicodeEncodeError):  # of a name that is not UTF-8
        raise input_error(
            "EATSS-F007", f"clang cannot parse '{file}'", hint="see that a compiler takes it"
        ) from None
    scops = tuple(scop for scop in found if scop is not None)
    known = sorted({name for scop in scops for name in scop.parameters})
    for name, _ in options.parameter_values if scops else ():
        if name not in known:
            findings.add("no_parameter", name=name, known=", ".join(known) or "none")
    findings.raise_errors()
    return FrontendResult(scops=scops, warnings=findings.warnings)


def _select(
    regions: tuple[Region, ...],
    unit: Unit,
    source: SourceText,
    options: FrontendOptions,
    findings: Findings,
) -> list[PlacedRegion]:
    """Place the regions and keep those the options ask for."""
    wanted = [r for r in regions if options.scop in (None, r.index)]
    if not regions:
        findings.add("no_pragma", file=source.file)
    elif not wanted:
        findings.add("no_region", index=options.scop, count=len(regions))
    placed = []
    for region in wanted:
        with suppress(RefusedError):
            placed.append(place_region(region, unit, source, findings))
    kept = [p for p in placed if options.function in (None, p.function.spelling)]
    if not kept and not findings.errors:
        names = sorted({p.function.spelling for p in placed})
        findings.add("no_function", name=options.function, known=", ".join(names))
    return kept


class _RegionReader(RegionReader):
    """Reads one region; ``macros`` are those that stand for an unknown constant."""

    def __init__(
        self,
        placed: PlacedRegion,
        source: SourceText,
        findings: Findings,
        options: FrontendOptions,
        macros: frozenset[str],
        context: isl.Context,
    ) -> None:
        self._nodes = inlined([*placed.statements])
        symbols = SymbolTable(self._nodes)
        algebra = ValueAlgebra(context, dict(options.parameter_values))
        super().__init__((symbols, AffineReader(symbols, algebra), Reporter(source, findings)))
        self._placed, self._source, self._findings = placed, source, findings
        self._options, self._macros = options, macros

    def read(self) -> Scop | None:
        """Return the region; ``None`` if it was refused."""
        symbols, placed, algebra = self._symbols, self._placed, self._algebra
        facts, fixed = self._facts(), self._fixed()
        surroundings = Surroundings(placed)
        reader = StatementReader(self._common)
        reader.scalars.follow(self._nodes)
        reader.read_all(self._nodes, Frame(loops=(), positions=(), domain=facts.intersect(fixed)))
        self._affine.scalars.clear()  # they hold only where their counters do
        for check in (check_aliases, check_counters, check_sizes):
            check(symbols, surroundings, self._reporter)
        for variable in symbols.variables:
            variable.is_local = variable.is_local and not surroundings.names_after(variable)
        conditions = self._ranges.conditions()
        for one in conditions:
            facts = facts.intersect(one.sizes)
        dead = frozenset(filter(surroundings.is_dead_after, reader.scalars.known))
        statements = self._without_idle(_without_unread(tuple(reader.statements), dead))
        arrays = {one.variable: one for one in delinearise(self._common, statements)}
        if facts.intersect(fixed).is_empty():
            self._findings.add("contradiction")
        if self._findings.errors:
            return None
        self._warn_of_bounds(statements, arrays)
        declared = tuple(
            declared_parameter(variable, self._macros)
            for variable in symbols.variables
            if variable.unique_name in self._ranges.used_parameters
        )
        parameters = their_names(declared)
        space = parameter_space(algebra.context, parameters)
        made = Assembler(
            algebra=algebra, reporter=self._reporter, facts=facts, space=space, arrays=arrays
        )
        ppcg, region = reader.ppcg, placed.region
        killed = ppcg.killed | surroundings.killed(symbols)
        accessed = frozenset(one for one in arrays if not one.is_local)
        depth = max((len(raw.loops) for raw in statements), default=0)
        return Scop(
            file=self._source.file,
            function=placed.function.spelling,
            index=region.index,
            parameters=parameters,
            context=facts.intersect(fixed).align_params(space),
            arrays=tuple(
                made.array(one, ppcg_kills=variable in killed) for variable, one in arrays.items()
            ),
            statements=tuple(made.statement(k, raw, depth) for k, raw in enumerate(statements)),
            span=self._source.span(region.opening[0], region.closing[1]),
            size_macros=self._size_macros(),
            function_parameters=function_parameters(placed.function),
            whole_function=surroundings.is_whole_function(symbols, accessed),
            parameter_declarations=declared,
            ppcg_counters=tuple(sorted(their_names(ppcg.counters - killed))),
            ppcg_steps=tuple(ppcg.steps),
            ppcg_wholes=tuple(ppcg.wholes),
            conditions=conditions,
        )

    # -- what is known before the region runs -----------------------------------------

    def _facts(self) -> isl.Set:
        """Return what C says of the parameters.

        Parameters of types narrower than ``int`` lie in the range of their type, and unsigned ones
        are not negative. The sizes of a variable-length array are greater than
        zero where they are evaluated (C99 6.7.6.2p5); the outermost size of a parameter is
        left out, since such a parameter is a pointer. What is declared before the region, in a
        block around it, has been evaluated whenever the region runs. A size that names nothing but
        macros is a number in the program, and a number may be zero.
        """
        algebra, facts = self._algebra, self._algebra.everywhere
        for variable in self._symbols.variables:
            element, sizes = variable.shape.element, variable.shape.sizes
            if variable.role == "parameter" and variable.constant is None:
                unknown = Poly.unknown(variable.unique_name)
                if element.bits < 32:
                    within = algebra.within(element.minimum, unknown, element.maximum)
                    facts = facts.intersect(within)
                elif not element.signed:
                    facts = facts.intersect(algebra.at_least(unknown, 0))
            for size in sizes[1:] if variable.shape.through_pointer else sizes:
                if variable.is_local or not isinstance(size, Node):
                    continue  # it is not evaluated before the region, if ever
                names = {name.name for name in size.parts("name")}
                if not names or not names <= self._macros:
                    with suppress(NotAffineError):
                        value = self._affine.value(size, facts)
                        facts = facts.intersect(algebra.at_least(value, 1))
        return facts

    def _fixed(self) -> isl.Set:
        """Return the values the user gave for parameters of the region, as a set."""
        fixed = self._algebra.everywhere
        parameters = {v.unique_name: v for v in self._symbols.variables if v.role == "parameter"}
        for name, value in self._options.parameter_values:
            if name in parameters:
                self._ranges.used_parameters.setdefault(name, parameters[name])
                fixed = fixed.intersect(self._algebra.equal(Poly.unknown(name), value))
        return fixed

    # -- what was read ----------------------------------------------------------------

    def _without_idle(self, statements: tuple[RawStatement, ...]) -> tuple[RawStatement, ...]:
        """Return the statements that run at least once; the others get a warning."""
        kept = []
        for raw in statements:
            if raw.domain.is_empty():
                self._reporter.error("never_runs", raw.node)
            else:
                kept.append(raw)
        return tuple(kept)

    def _warn_of_bounds(
        self, statements: tuple[RawStatement, ...], arrays: Mapping[Variable, Delinearised]
    ) -> None:
        """Warn of references that leave their array whenever their statement runs at all."""
        for raw in statements:
            for access in raw.accesses if len(raw.loops) <= _MAX_LOOPS else ():
                if self._is_outside(raw, access, arrays[access.variable]):
                    self._reporter.error("outside", access.node, array=access.variable.name)

    def _is_outside(self, raw: RawStatement, access: RawAccess, array: Delinearised) -> bool:
        """Tell whether a reference leaves its array somewhere, for all sizes at which it is made.

        Sizes at which the reference is not made count for nothing.
        """
        counters = their_names(raw.loops)
        pairs = zip(array.subscripts(access), array.sizes, strict=True)
        for at, (subscript, size) in enumerate(pairs):
            outside = isl.Set.empty(raw.domain.get_space())
            if at > 0 or array.from_zero:
                outside = self._algebra.at_least(-1, subscript)
            if size is not None:
                outside = outside.union(self._algebra.at_least(subscript, size))
            outside = raw.domain.intersect(access.domain).intersect(outside)
            if not outside.is_empty():
                sizes, meant = (without_parameters(one, counters) for one in (raw.domain, outside))
                if sizes.is_subset(meant):
                    return True
        return False

    def _size_macros(self) -> SizePairs:
        """Return the macros that spell a number in a loop's bounds, with the number."""
        loops = (loop for node in self._nodes for loop in node.parts("for"))
        leaves = (leaf for loop in loops for one in loop.children[:2] for leaf in one.preorder())
        numbers = {(self._reporter.text(o), o.value) for o in leaves if isinstance(o.value, int)}
        return tuple(sorted((text, value) for text, value in numbers if text.isidentifier()))


def _without_unread(
    statements: tuple[RawStatement, ...], known: frozenset[Variable]
) -> tuple[RawStatement, ...]:
    """Return the statements less those that set scalars whose values were put in their place."""
    while True:
        read = {
            access.variable
            for raw in statements
            for access in raw.accesses
            if access.kind is AccessKind.READ and access.variable is not raw.written
        }
        rest = tuple(r for r in statements if r.written not in known or r.written in read)
        if len(rest) in (0, len(statements)):
            return statements
        statements = rest
