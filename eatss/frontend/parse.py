"""The front end from one end to the other: a file in, ``Scop``s or all findings out."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from ctypes import ArgumentError
from types import MappingProxyType

import islpy as isl
from clang.cindex import TranslationUnitLoadError

from eatss.base.diagnostics import input_error
from eatss.base.frozen import frozen
from eatss.frontend.affine import AffineReader, RawAccess, RawStatement
from eatss.frontend.arrays import Assembler, Delinearised, delinearise
from eatss.frontend.calls import inlined
from eatss.frontend.clang import Unit, parse_unit
from eatss.frontend.declarations import SymbolTable, Variable
from eatss.frontend.options import FrontendOptions, FrontendResult
from eatss.frontend.refusals import NotAffineError, Reporter
from eatss.frontend.regions import (
    PlacedRegion,
    Region,
    check_messages,
    find_pragmas,
    pair_pragmas,
    place_region,
    warn_of_unused,
)
from eatss.frontend.signature import (
    Surroundings,
    check_aliases,
    check_counters,
    check_sizes,
    declared_parameter,
    function_parameters,
)
from eatss.frontend.source import (
    Findings,
    RefusedError,
    SourceText,
    check_text,
    path_for_clang,
    read_bytes,
)
from eatss.frontend.statements import Frame, StatementReader
from eatss.frontend.tree import Node, read_tree
from eatss.frontend.values import Poly, ValueAlgebra
from eatss.polyhedral.isl_names import parameter_space, without_parameters
from eatss.polyhedral.scop import AccessKind, Scop

# -- facts -------------------------------------------------------------------------------------
# What is known about the parameters of a region before it runs.


def known_facts(
    symbols: SymbolTable, affine: AffineReader, macros: frozenset[str] = frozenset()
) -> isl.Set:
    """Return what C says of the parameters.

    Parameters of types narrower than ``int`` lie in the range of their type, and unsigned ones are
    not negative. The sizes of a variable-length array are greater than
    zero where they are evaluated (C99 6.7.6.2p5); the outermost size of a parameter is
    left out, since such a parameter is a pointer. What is declared before the region, in a block
    around it, has been evaluated whenever the region runs. A size that names nothing but
    ``macros`` is a number in the program, and a number may be zero.
    """
    algebra = affine.algebra
    facts = algebra.everywhere
    for variable in symbols.variables:
        element = variable.shape.element
        if variable.role == "parameter":
            unknown = Poly.unknown(variable.unique_name)
            if variable.constant is None and element.bits < 32:
                within = algebra.within(element.minimum, unknown, element.maximum)
                facts = facts.intersect(within)
            elif variable.constant is None and not element.signed:
                facts = facts.intersect(algebra.at_least(unknown, 0))
            continue
        if variable.is_local:
            continue  # its size is not evaluated before the region, if ever
        sizes = variable.shape.sizes
        for size in sizes[1:] if variable.shape.through_pointer else sizes:
            names = {n.name for n in size.parts("name")} if isinstance(size, Node) else set[str]()
            if isinstance(size, Node) and not (names and names <= macros):
                with suppress(NotAffineError):
                    facts = facts.intersect(algebra.at_least(affine.value(size, facts), 1))
    return facts


def fixed_values(symbols: SymbolTable, affine: AffineReader, options: FrontendOptions) -> isl.Set:
    """Return the values the user gave for parameters of the region, as a set."""
    algebra = affine.algebra
    fixed = algebra.everywhere
    parameters = {v.unique_name: v for v in symbols.variables if v.role == "parameter"}
    for name, value in options.parameter_values:
        if name in parameters:
            affine.ranges.used_parameters.setdefault(name, parameters[name])
            fixed = fixed.intersect(algebra.equal(Poly.unknown(name), value))
    return fixed


# -- checks ------------------------------------------------------------------------------------
# Looks at what was read for accesses outside arrays, idle statements and live counters.


_MAX_LOOPS = 8


def without_idle(
    statements: tuple[RawStatement, ...], reporter: Reporter
) -> tuple[RawStatement, ...]:
    """Return the statements that run at least once; the others get a warning."""
    kept = []
    for raw in statements:
        if raw.domain.is_empty():
            reporter.warn(
                "EATSS-F093",
                raw.node,
                "this statement never runs and is left out",
                "check the bounds and conditions around it",
            )
        else:
            kept.append(raw)
    return tuple(kept)


def without_unread(
    statements: tuple[RawStatement, ...], known: Collection[Variable]
) -> tuple[RawStatement, ...]:
    """Return the statements less those that set scalars whose values were put in their place."""
    kept = statements
    while True:
        read = {
            access.variable
            for raw in kept
            for access in raw.accesses
            if access.kind is AccessKind.READ and access.variable is not _written(raw)
        }
        rest = tuple(raw for raw in kept if _written(raw) not in known or _written(raw) in read)
        if len(rest) in (0, len(kept)):
            return kept
        kept = rest


def _written(raw: RawStatement) -> Variable:
    return raw.accesses[0].variable


def warn_of_assumptions(affine: AffineReader, reporter: Reporter) -> None:
    """Warn of values that were taken to fit their type without proof."""
    for assumption in affine.ranges.assumptions:
        reporter.warn(
            "EATSS-F092",
            assumption.node,
            f"{reporter.quoted(assumption.node)} is taken to fit type '{assumption.type.spelling}'",
            "use one integer type throughout",
        )


def warn_of_bounds(
    statements: tuple[RawStatement, ...],
    arrays: tuple[Delinearised, ...],
    affine: AffineReader,
    reporter: Reporter,
) -> None:
    """Warn of references that leave their array whenever their statement runs at all."""
    by_variable = {array.variable: array for array in arrays}
    for raw in statements:
        for access in raw.accesses if len(raw.loops) <= _MAX_LOOPS else ():
            if _is_outside(raw, access, by_variable[access.variable], affine.algebra):
                reporter.warn(
                    "EATSS-F090",
                    access.node,
                    f"{reporter.quoted(access.node)} goes outside the bounds of "
                    f"'{access.variable.name}'",
                    "check the subscript and the size of the array",
                )


def _is_outside(
    raw: RawStatement, access: RawAccess, array: Delinearised, algebra: ValueAlgebra
) -> bool:
    """Tell whether a reference leaves its array somewhere, for all sizes at which it is made."""
    counters = [level.name for level in raw.loops]
    for subscript, size, from_zero in zip(
        array.subscripts(access), array.sizes, array.from_zero, strict=True
    ):
        outside = isl.Set.empty(raw.domain.get_space())
        if from_zero:
            outside = algebra.at_least(-1, subscript)
        if size is not None:
            outside = outside.union(algebra.at_least(subscript, size))
        outside = raw.domain.intersect(access.domain).intersect(outside)
        if not outside.is_empty():
            sizes, meant = (without_parameters(one, counters) for one in (raw.domain, outside))
            if sizes.is_subset(meant):
                return True
    return False


# -- parse -------------------------------------------------------------------------------------
# The driver: bytes to regions to ``Scop``s, all findings gathered on the way.


_DEFAULT = FrontendOptions()
_NO_SYMBOLS: Mapping[str, str] = MappingProxyType({})


@frozen
class _Run:
    """What holds for a whole run; see :func:`parse_bytes`."""

    options: FrontendOptions
    symbols: Mapping[str, str]
    context: isl.Context


def parse_file(path: str | os.PathLike[str], options: FrontendOptions = _DEFAULT) -> FrontendResult:
    """Read the regions of a C file.

    Args:
        path: The file.
        options: Include folders, macros, which regions, values of parameters.

    Raises:
        InputError: With all findings of the run, if the file or a region is refused.
    """
    file = os.fspath(path)
    return parse_bytes(path_for_clang(file), read_bytes(file), options)


def parse_source(
    text: str, *, file: str = "<source>", options: FrontendOptions = _DEFAULT
) -> FrontendResult:
    """Read the regions of C text.

    Args:
        text: The C source.
        file: The name to use in spans.
        options: As for :func:`parse_file`.

    Raises:
        InputError: With all findings of the run, if the text or a region is refused.
    """
    return parse_bytes(file, text.encode("utf-8", "surrogateescape"), options)


def parse_bytes(
    file: str,
    data: bytes,
    options: FrontendOptions,
    *,
    symbols: Mapping[str, str] = _NO_SYMBOLS,
    context: isl.Context | None = None,
) -> FrontendResult:
    """Read the regions of a file whose bytes are at hand.

    Args:
        file: The name of the file.
        data: Its bytes.
        options: As for :func:`parse_file`.
        symbols: Macros that stand for an unknown constant, with its C type, whatever the
            file would define them to be.
        context: The isl context the sets are to live in; ``None`` for a new one.

    Raises:
        InputError: With all findings of the run, if the text or a region is refused.
    """
    return parse_text(SourceText.of(file, data), options, symbols=symbols, context=context)


def parse_text(
    source: SourceText,
    options: FrontendOptions,
    *,
    symbols: Mapping[str, str] = _NO_SYMBOLS,
    context: isl.Context | None = None,
) -> FrontendResult:
    """Read the regions of a text; see :func:`parse_bytes`."""
    run = _Run(options=options, symbols=symbols, context=context or isl.Context())
    file = source.file
    findings = Findings(source)
    check_text(source, findings)
    try:
        return _read(source, run, findings)
    except (RecursionError, ArgumentError):  # the latter where it ends within libclang
        raise input_error(
            "EATSS-F009", f"'{file}' is nested too deeply", hint="split the expressions"
        ) from None
    except TranslationUnitLoadError:
        raise input_error(
            "EATSS-F007", f"clang cannot parse '{file}'", hint="see that a compiler takes it"
        ) from None


def _read(source: SourceText, run: _Run, findings: Findings) -> FrontendResult:
    options = run.options
    unit = parse_unit(
        source.file,
        source.data,
        include_dirs=options.include_dirs,
        defines=(*options.defines, *(f"{name}={name}" for name in run.symbols)),
        prelude="".join(f"extern const {type_} {one};\n" for one, type_ in run.symbols.items()),
    )
    regions = pair_pragmas(find_pragmas(unit, source), source, findings)
    check_messages(unit, source, regions, findings)
    findings.raise_errors()
    if options.defines and not run.symbols:
        warn_of_unused(options.defines, unit, source, findings)
    placed = _select(regions, unit, source, options, findings)
    scops = []
    for region in placed:
        scop = _read_region(region, source, run, findings)
        if scop is not None:
            scops.append(scop)
    _check_parameters(tuple(scops), options, findings)
    findings.raise_errors()
    return FrontendResult(scops=tuple(scops), warnings=findings.warnings)


def _select(
    regions: tuple[Region, ...],
    unit: Unit,
    source: SourceText,
    options: FrontendOptions,
    findings: Findings,
) -> tuple[PlacedRegion, ...]:
    """Place the regions and keep those the options ask for."""
    if not regions:
        findings.add(
            "EATSS-F010",
            f"no #pragma scop … #pragma endscop in '{source.file}'",
            hint="put #pragma scop before the loops and #pragma endscop after them",
        )
        findings.raise_errors()
    wanted = [r for r in regions if options.scop in (None, r.index)]
    if not wanted:
        findings.add(
            "EATSS-F010",
            f"there is no region {options.scop}: the file has {len(regions)}, counted from 0",
        )
    placed: list[PlacedRegion] = []
    for region in wanted:
        with suppress(RefusedError):
            placed.append(place_region(region, unit, source, findings))
    kept = [p for p in placed if options.function in (None, p.function.spelling)]
    if wanted and not kept and not findings.errors:
        names = sorted({p.function.spelling for p in placed})
        findings.add(
            "EATSS-F010",
            f"no region in function '{options.function}'",
            hint=f"functions with regions: {', '.join(names)}",
        )
    return tuple(kept)


def _read_region(
    placed: PlacedRegion,
    source: SourceText,
    run: _Run,
    findings: Findings,
) -> Scop | None:
    """Read one region; ``None`` if it was refused."""
    options = run.options
    nodes = inlined([read_tree(cursor) for cursor in placed.statements])
    symbols = SymbolTable()
    symbols.scan(nodes)
    algebra = ValueAlgebra(run.context, dict(options.parameter_values))
    affine = AffineReader(symbols, algebra)
    reporter = Reporter(source, findings)
    facts = known_facts(symbols, affine, frozenset(run.symbols))
    fixed = fixed_values(symbols, affine, options)
    surroundings = Surroundings(placed)
    reader = StatementReader(symbols, affine, reporter)
    reader.scalars.follow(nodes)
    reader.read_all(nodes, Frame(loops=(), positions=(), domain=facts.intersect(fixed)))
    affine.scalars.clear()  # they hold only where their counters do
    warn_of_assumptions(affine, reporter)
    check_aliases(symbols, surroundings, reporter)
    check_counters(symbols, surroundings, reporter)
    check_sizes(symbols, surroundings, reporter)
    for variable in symbols.variables:
        variable.is_local = variable.is_local and not surroundings.names_after(variable)
    conditions = affine.ranges.conditions()
    for one in conditions:
        facts = facts.intersect(one.sizes)
    scalars = reader.scalars.known
    dead = frozenset(filter(surroundings.is_dead_after, scalars))
    statements = without_idle(without_unread(tuple(reader.statements), dead), reporter)
    arrays = delinearise(affine, symbols, reporter, statements)
    if facts.intersect(fixed).is_empty():
        findings.add(
            "EATSS-F050",
            "the parameter values contradict what the source says of the parameters",
            hint="sizes of variable-length arrays are greater than zero, unsigned values not "
            "negative",
        )
    if findings.errors:
        return None
    warn_of_bounds(statements, arrays, affine, reporter)
    declared = tuple(
        declared_parameter(variable, frozenset(run.symbols))
        for variable in symbols.variables
        if variable.unique_name in affine.ranges.used_parameters
    )
    parameters = tuple(one.name for one in declared)
    space = parameter_space(run.context, parameters)
    made = Assembler(
        algebra=algebra,
        reporter=reporter,
        facts=facts,
        space=space,
        arrays={array.variable: array for array in arrays},
    )
    killed = reader.ppcg.killed | surroundings.killed(symbols)
    accessed = frozenset(one.variable for one in arrays if not one.variable.is_local)
    depth = max((len(raw.loops) for raw in statements), default=0)
    return Scop(
        file=source.file,
        function=placed.function.spelling,
        index=placed.region.index,
        parameters=parameters,
        context=facts.intersect(fixed).align_params(space),
        arrays=tuple(made.array(one, ppcg_kills=one.variable in killed) for one in arrays),
        statements=tuple(made.statement(k, raw, depth) for k, raw in enumerate(statements)),
        span=source.span(placed.region.opening.start, placed.region.closing.end),
        size_macros=_size_macros(nodes, reporter),
        function_parameters=function_parameters(placed.function),
        whole_function=surroundings.is_whole_function(symbols, accessed),
        parameter_declarations=declared,
        ppcg_counters=tuple(sorted(v.name for v in reader.ppcg.counters - killed)),
        ppcg_steps=tuple(reader.ppcg.steps),
        ppcg_wholes=tuple(reader.ppcg.wholes),
        conditions=conditions,
    )


def _size_macros(nodes: Sequence[Node], reporter: Reporter) -> tuple[tuple[str, int], ...]:
    """Return the macros that spell a number in a loop's bounds, with the number."""
    headers = (part for node in nodes for loop in node.parts("for") for part in loop.children[:2])
    return tuple(
        sorted(
            {
                (reporter.text(leaf), leaf.value)
                for header in headers
                for leaf in header.preorder()
                if isinstance(leaf.value, int) and reporter.text(leaf).isidentifier()
            }
        )
    )


def _check_parameters(
    scops: tuple[Scop, ...], options: FrontendOptions, findings: Findings
) -> None:
    known = sorted({name for scop in scops for name in scop.parameters})
    for name, _ in options.parameter_values:
        if scops and name not in known:
            findings.add(
                "EATSS-F010",
                f"no region has a parameter '{name}'",
                hint=f"parameters: {', '.join(known) or 'none'}",
            )
