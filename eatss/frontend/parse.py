"""The driver: bytes to regions to ``Scop``s, all findings gathered on the way."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TypeVar

import islpy as isl
from clang.cindex import TranslationUnitLoadError

from eatss.base.diagnostics import input_error
from eatss.base.frozen import frozen
from eatss.frontend.affine import AffineReader
from eatss.frontend.aliases import check_aliases, check_counters
from eatss.frontend.assemble import Assembler
from eatss.frontend.builder import Frame, StatementReader
from eatss.frontend.calls import inlined
from eatss.frontend.checks import (
    check_live_counters,
    is_dead_after,
    keep_live,
    warn_of_assumptions,
    warn_of_bounds,
    without_idle,
    without_unread,
)
from eatss.frontend.clang import Unit, parse_unit
from eatss.frontend.delinearise import delinearise
from eatss.frontend.errors import check_cycles, check_messages
from eatss.frontend.facts import fixed_values, known_facts
from eatss.frontend.files import check_bytes, check_includes, path_for_clang, read_bytes
from eatss.frontend.findings import Findings, SourceText
from eatss.frontend.lexical_checks import Guard
from eatss.frontend.macros import warn_of_unused
from eatss.frontend.options import FrontendOptions, FrontendResult
from eatss.frontend.plain import plain
from eatss.frontend.ppcg_count import killed_after
from eatss.frontend.regions import PlacedRegion, Region, find_pragmas, pair_pragmas, place_region
from eatss.frontend.report import Reporter
from eatss.frontend.signature import (
    Surroundings,
    check_sizes,
    declared_parameter,
    function_parameters,
    is_whole_function,
)
from eatss.frontend.symbols import SymbolTable
from eatss.frontend.tree import (
    Node,
    labels_of_elsewhere,
    read_tree,
    without_unused_labels,
)
from eatss.frontend.values import ValueAlgebra
from eatss.polyhedral.isl_names import parameter_space
from eatss.polyhedral.scops import Scop

_Result = TypeVar("_Result")
_STACK_BYTES = 512 * 1024 * 1024


def on_large_stack(function: Callable[[], _Result]) -> _Result:
    """Return what ``function`` returns, or raise what it raises.

    libclang parses on a thread of its own with a small stack unless ``LIBCLANG_NOTHREADS`` is
    set, and offers no other way to ask for more; so the variable is set for the rest of the
    process. It changes where libclang runs, not what it does. The memory of the stack is only
    reserved; what is not used is never touched.
    """
    os.environ["LIBCLANG_NOTHREADS"] = "1"
    results: list[_Result] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(function())
        except BaseException as error:
            errors.append(error)

    before = threading.stack_size(_STACK_BYTES)
    try:
        thread = threading.Thread(target=run, name="eatss-frontend")
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


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
    run = _Run(options=options, symbols=symbols, context=context or isl.Context())
    source = SourceText.of(file, data)
    findings = Findings(source)
    check_bytes(source, findings)
    findings.raise_errors()
    check_includes(source, options.include_dirs, findings)
    findings.raise_errors()
    deep = Guard(source, findings).needs_large_stack()
    findings.raise_errors()
    try:
        if deep:
            return on_large_stack(lambda: _read(source, run, findings))
        return _read(source, run, findings)
    except RecursionError:
        raise input_error(
            "EATSS-F009", f"'{file}' is nested too deeply", hint="split the expressions"
        ) from None
    except TranslationUnitLoadError:
        raise input_error(
            "EATSS-F007", f"clang cannot parse '{file}'", hint="see that a compiler takes it"
        ) from None


def _read(source: SourceText, run: _Run, findings: Findings) -> FrontendResult:
    options = run.options
    _check_options(options, findings)
    findings.raise_errors()
    looks_at_macros = bool(options.defines) and not run.symbols

    def parsed_with(defines: Sequence[str]) -> Unit:
        return parse_unit(
            source.file,
            source.data,
            include_dirs=options.include_dirs,
            defines=(*defines, *(f"{name}={name}" for name in run.symbols)),
            prelude="".join(f"extern const {type_} {one};\n" for one, type_ in run.symbols.items()),
            macros=looks_at_macros,
        )

    unit = parsed_with(options.defines)
    check_cycles(unit, source, findings)
    findings.raise_errors()
    regions = pair_pragmas(find_pragmas(unit, source, findings), source, findings)
    check_messages(unit, source, regions, findings)
    findings.raise_errors()
    if looks_at_macros:
        warn_of_unused(options.defines, unit, parsed_with, source, findings)
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
            "EATSS-F048",
            f"there is no region {options.scop}: the file has {len(regions)}, counted from 0",
        )
    placed = [place_region(region, unit, source, findings) for region in wanted]
    kept = [
        p for p in placed
        if p is not None and options.function in (None, p.function.spelling)
    ]  # fmt: skip
    if wanted and not kept and not findings.errors:
        names = sorted({p.function.spelling for p in placed if p is not None})
        findings.add(
            "EATSS-F047",
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
    nodes = without_unused_labels(
        [read_tree(cursor) for cursor in placed.statements], placed.function
    )
    labels = labels_of_elsewhere(nodes, placed.function)
    nodes = plain(inlined(nodes, placed.function), labels)
    symbols = SymbolTable()
    symbols.scan(nodes)
    algebra = ValueAlgebra(run.context, dict(options.parameter_values))
    affine = AffineReader(symbols, algebra)
    reporter = Reporter(source, findings)
    facts = known_facts(symbols, affine, frozenset(run.symbols))
    values = _values_here(symbols, affine, options)
    fixed = fixed_values(values, affine)
    surroundings = Surroundings(placed)
    reader = StatementReader(symbols, affine, reporter)
    reader.scalars.follow(nodes)
    numbers = reader.scalars.start(
        surroundings.before, lambda one: is_dead_after(one, placed, surroundings)
    )
    reader.set_before(numbers, facts.intersect(fixed))
    reader.read_all(nodes, Frame(loops=(), positions=(), domain=facts.intersect(fixed)))
    affine.scalars.clear()  # they hold only where their counters do
    warn_of_assumptions(affine, reporter)
    check_live_counters(symbols, (*placed.following, *placed.later), reporter)
    check_aliases(symbols, surroundings, reporter)
    check_counters(symbols, surroundings, reporter)
    check_sizes(symbols, surroundings, reporter)
    keep_live(symbols, placed.following)
    for variable in numbers:
        variable.is_local = True  # the region sets it, and nothing behind reads it
    conditions = affine.conditions()
    for one in conditions:
        facts = facts.intersect(one.sizes)
    certain = tuple(raw for raw in reader.statements if not raw.doubtful)
    scalars = reader.scalars.known
    dead = frozenset(v for v in scalars if is_dead_after(v, placed, surroundings))
    statements = without_idle(without_unread(certain, dead), reporter)
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
    killed = reader.ppcg.killed | killed_after(symbols, surroundings.before, placed.following)
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
        whole_function=is_whole_function(placed, symbols, accessed),
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


def _values_here(
    symbols: SymbolTable, affine: AffineReader, options: FrontendOptions
) -> tuple[tuple[str, int], ...]:
    """Return the given parameter values that are for parameters of this region."""
    parameters = {v.unique_name: v for v in symbols.variables if v.role == "parameter"}
    here = tuple(pair for pair in options.parameter_values if pair[0] in parameters)
    for name, _ in here:
        affine.ranges.used_parameters.setdefault(name, parameters[name])
    return here


_DEFINE = re.compile(r"[A-Za-z_]\w*(\([^)]*\))?(=.*)?", re.DOTALL)


def _check_options(options: FrontendOptions, findings: Findings) -> None:
    for define in options.defines:
        if not _DEFINE.fullmatch(define):
            findings.add(
                "EATSS-F050", f"macro '{define}' is not NAME or NAME=VALUE", hint="write -D N=4000"
            )
    names = [name for name, _ in options.parameter_values]
    for name in sorted({name for name in names if names.count(name) > 1}):
        findings.add(
            "EATSS-F050", f"parameter '{name}' has more than one value", hint="give it once"
        )


def _check_parameters(
    scops: tuple[Scop, ...], options: FrontendOptions, findings: Findings
) -> None:
    known = sorted({name for scop in scops for name in scop.parameters})
    for name, _ in options.parameter_values:
        if scops and name not in known:
            findings.add(
                "EATSS-F049",
                f"no region has a parameter '{name}'",
                hint=f"parameters: {', '.join(known) or 'none'}",
            )
