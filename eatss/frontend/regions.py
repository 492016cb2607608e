"""Regions of a file and what surrounds them: other work, clang's diagnostics, macros."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any, NoReturn

from clang.cindex import Diagnostic

from eatss.base.diagnostics import SourceSpan
from eatss.base.frozen import frozen
from eatss.frontend import clang
from eatss.frontend.clang import CursorKind, StorageClass, Unit, type_of
from eatss.frontend.declarations import SymbolTable, Variable, shape_of
from eatss.frontend.refusals import Reporter
from eatss.frontend.source import Findings, RefusedError, SourceText
from eatss.frontend.tree import BODIES, Kind, Node, read_tree, unconverted
from eatss.polyhedral.expression import Origin
from eatss.polyhedral.scop import FunctionParameter, ParameterDeclaration

# -- regions -----------------------------------------------------------------------------------
# Finds the regions: where the pragmas stand, by clang's own word, and what lies between.


UNKNOWN_PRAGMAS, REDEFINED = "-Wunknown-pragmas", "-Wmacro-redefined"
_PRAGMA = re.compile(rb'(?:_Pragma\s*\(\s*L?")?\s*((?:end)?scop)\b(?:\s*"\s*\))?')


@frozen
class Region:
    """A pair of pragmas, each from one byte to another; ``index`` counts from 0."""

    index: int
    opening: tuple[int, int]
    closing: tuple[int, int]


@frozen
class PlacedRegion:
    """A region with the cursor of its function, and its statements.

    ``path`` are the statements around it, from the body of the function to its block.
    """

    region: Region
    function: Any
    path: list[Node]
    statements: list[Node]

    @property
    def before(self) -> list[Node]:
        """The statements before the region in its block."""
        block = self.path[-1].children
        return block[: block.index(self.statements[0])]

    @property
    def following(self) -> list[Node]:
        """The statements after it in its block."""
        block = self.path[-1].children
        return block[block.index(self.statements[-1]) + 1 :]

    @property
    def later(self) -> list[Node]:
        """These, and what may run after them, the next round of loops around it included."""
        found = self.following
        for outer, inner in reversed([*pairwise(self.path)]):
            at = outer.children.index(inner)
            if outer.kind == "compound":
                found += outer.children[at + 1 :]
            elif outer.kind in ("for", "while", "do"):  # but not the start of a for
                parts = [*outer.children[:at], *outer.children[at + 1 :]]
                found += [*parts[outer.kind == "for" :], inner]
        return found


def find_regions(unit: Unit, source: SourceText, findings: Findings) -> tuple[Region, ...]:
    """Pair the scop pragmas that are in force; unmatched and nested ones become findings.

    clang reports every unknown pragma it meets, so comments, strings, line splices, inactive
    branches and ``_Pragma`` are all its business.
    """
    places = sorted(
        message.location.offset
        for message in unit.messages
        if message.option == UNKNOWN_PRAGMAS and unit.holds(message)
    )
    regions: list[Region] = []
    alone: list[re.Match[bytes]] = []
    opening: re.Match[bytes] | None = None
    for match in filter(None, (_PRAGMA.match(source.data, at) for at in places)):
        if match[1] == b"scop" and opening is None:
            opening = match
        elif match[1] == b"scop" or opening is None:
            alone.append(match)
        else:
            both = opening.span(), match.span()
            regions.append(Region(index=len(regions), opening=both[0], closing=both[1]))
            opening = None
    for match in filter(None, (*alone, opening)):
        findings.add("unpaired", source.span(*match.span()), name=match[1].decode())
    return tuple(regions)


def place_region(
    region: Region, unit: Unit, source: SourceText, findings: Findings
) -> PlacedRegion:
    """Find the statements of a region.

    Raises:
        RefusedError: It cuts a statement, or there are none; the finding is recorded.
    """
    start, end = region.opening[0], region.closing[0]

    def refuse(kind: str) -> NoReturn:
        findings.add(kind, source.span(*region.opening))
        raise RefusedError

    function = next((f for f in unit.functions if _covers(f, start)), None)
    if function is None or not _covers(function, end):
        refuse("cut_region")
    if any(start < at < end for at in unit.includes):
        refuse("include_inside")
    path = _path(function, start, end)
    inside = []
    for child in path[-1].children if path else ():
        first, last = child.offsets
        if start < first and last <= end and unit.holds(child.cursor):
            inside.append(child)
        elif first < end and start < last and unit.holds(child.cursor):
            inside.clear()
            break
    if not inside:
        refuse("cut_region")
    return PlacedRegion(region=region, function=function, path=path, statements=inside)


def _covers(cursor: Any, offset: int) -> bool:
    extent = cursor.extent
    return bool(extent.start.offset <= offset < extent.end.offset)


def _path(function: Any, start: int, end: int) -> list[Node]:
    """Return the statements of a function that hold both pragmas, outermost first."""
    path = []
    inner = [read_tree(clang.children(function)[-1])]
    while inner:
        path.append(inner[0])
        inner = [
            child
            for child in path[-1].children
            if child.cursor.kind.is_statement()
            and child.offsets[0] < start
            and end < child.offsets[1]
        ]
    return path


# -- errors ------------------------------------------------------------------------------------
# Decides which of clang's errors matter.


_ALWAYS = ("Parse Issue", "User-Defined Issue")


def check_messages(
    unit: Unit, source: SourceText, regions: tuple[Region, ...], findings: Findings
) -> None:
    """Record the errors of clang that make a region unreliable, and headers of the user's own.

    What only a header that is missing may have caused does not matter outside regions.
    """
    errors = [one for one in unit.messages if one.severity >= Diagnostic.Error]
    missing = [one for one in errors if one.spelling.endswith("file not found")]
    names = [one.spelling.split("'")[1] for one in missing]
    hint = "declare it, or pass -I or -D"
    if missing:  # a macro that is missing shows as a syntax error
        hint = f"headers that were not found: {', '.join(names)}; pass their folder with -I"
    for one, name in zip(missing, names, strict=True):
        offset = one.location.offset
        if unit.holds(one) and source.data[offset : offset + 1] == b'"':
            findings.add("no_header", span_of(one, source, len(name) + 2), message=one.spelling)
    for one in errors:
        in_region = unit.holds(one) and any(
            r.opening[0] <= one.location.offset <= r.closing[1] for r in regions
        )
        category = one.category_name
        is_directive = category.startswith("Lexical") and not missing
        if in_region or is_directive or (category in _ALWAYS and one not in missing):
            findings.add("clang", span_of(one, source), message=one.spelling, hint=hint)


def span_of(found: Any, source: SourceText, length: int = 1) -> SourceSpan | None:
    """Return where something stands that clang found: in the main file, a header, or no file."""
    file, at = clang.file_of(found), found.location
    if file == source.file:
        return source.span(at.offset, at.offset + length)
    return None if file is None else SourceSpan.in_line(file, at.line, at.column, length)


# -- macros ------------------------------------------------------------------------------------
# The macros of a file that a user may override: guarded by ``#ifndef``, as text.
#
# What a macro is worth is clang's business; this file only finds the names. It reads directives
# line by line and keeps the open conditions, since real headers guard several macros at once
# (``#if !defined(NI) && !defined(NJ)``).


_SPLICED = re.compile(r"\\\r?\n")
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*(\w+)[ \t]*(.*?)[ \t\r]*$", re.MULTILINE)
_DEFINE = re.compile(r"([A-Za-z_]\w*)(\(?)(.*)", re.DOTALL)
_DEFINED = re.compile(r"(!\s*)?\bdefined[\s(]*(\w+)")
_WORD = re.compile(r"[A-Za-z_]\w*")


@frozen
class MacroNames:
    """Macros of a program by name.

    ``guarded`` are the object-like macros defined only where they are not yet, each with its
    bodies; ``tested`` are those that decide which code there is (``#if N > 100``).
    """

    guarded: dict[str, list[str]]
    tested: set[str]


def macro_names(texts: Iterable[str]) -> MacroNames:
    """Find the macros in the texts of the files of one program."""
    guarded: dict[str, list[str]] = {}
    bodies: dict[str, set[str]] = {}
    tested: set[str] = set()
    for text in texts:
        absent: list[set[str]] = []  # what each open condition demands to be undefined
        for word, rest in _DIRECTIVE.findall(_COMMENT.sub(" ", _SPLICED.sub(" ", text))):
            if word in ("if", "elif"):
                tested.update(_WORD.findall(_DEFINED.sub(" ", rest)))
            if word in ("if", "ifdef", "ifndef"):
                wanted = f"!defined {rest}" if word == "ifndef" else "" if "||" in rest else rest
                absent.append({name for sign, name in _DEFINED.findall(wanted) if sign})
            elif word in ("else", "elif"):
                absent[-1:] = [set()]
            elif word == "endif":
                del absent[-1:]
            elif word == "define" and (match := _DEFINE.match(rest)) is not None:
                name, parenthesis, body = match[1], match[2], match[3].strip()
                bodies.setdefault(name, set()).update(_WORD.findall(body))
                if not parenthesis and any(name in names for names in absent):
                    guarded.setdefault(name, []).append(body)
    while more := {word for name in tested for word in bodies.get(name, ())} - tested:
        tested |= more
    return MacroNames(guarded=guarded, tested=tested)


def warn_of_unused(
    defines: Sequence[str], unit: Unit, source: SourceText, findings: Findings
) -> None:
    """Warn of each macro given with ``-D`` that no text names, or that one defines anew.

    Args:
        defines: macros as for a compiler: ``NAME``, ``NAME=VALUE``, ``NAME(A)=VALUE``.
        unit: what was parsed with them.
        source: the main file.
        findings: gets the warnings.
    """
    texts = [source.data.decode("utf-8", "replace"), *(one.partition("=")[2] for one in defines)]
    texts += [Path(one).read_text("utf-8", "replace") for one in unit.user_files[1:]]
    anew = {m.spelling.split("'")[1]: m for m in unit.messages if m.option == REDEFINED}
    for name in sorted({_WORD.findall(one)[0] for one in defines}):
        used = re.compile(rf"\b{name}\b|##")
        if name in anew:
            findings.add("redefined", span_of(anew[name], source, len(name)), name=name)
        elif not any(map(used.search, texts)):
            findings.add("unused", name=name)


# -- signature ---------------------------------------------------------------------------------
# Reads what surrounds a region: the function's parameters, and whether there is other work.


_EFFECTS: tuple[Kind, ...] = ("assign", "call", "broken", "other")


def function_parameters(function: Any) -> tuple[FunctionParameter, ...]:
    """Return the parameters of a function in their order."""
    found = []
    for position, declaration in enumerate(function.get_arguments()):
        shape = shape_of(declaration)
        canonical = declaration.type.get_canonical().spelling
        found.append(
            FunctionParameter(
                name=declaration.spelling,
                c_type=canonical,
                is_pointer=bool(shape.sizes),
                position=position,
                element_type=None if shape.pointer_to_pointer else shape.element.element,
            )
        )
    return tuple(found)


def origin_of(variable: Variable) -> Origin:
    """Return where the object of a variable lives."""
    declaration = variable.declaration
    if declaration.kind is CursorKind.PARM_DECL:
        return "parameter"
    if not clang.outlives_function(declaration):
        return "local"
    return "static" if declaration.storage_class is StorageClass.STATIC else "global"


def declared_parameter(variable: Variable, macros: frozenset[str]) -> ParameterDeclaration:
    """Describe an integer parameter of a region; ``macros`` are the sizes that are symbols."""
    element = variable.shape.element.element
    assert element is not None
    return ParameterDeclaration(
        name=variable.unique_name,
        source_name=variable.name,
        element_type=element,
        origin="macro" if variable.name in macros else origin_of(variable),
    )


class Surroundings:
    """What a function does outside a region.

    ``assigned`` holds the declaration of the target, the value and the offset of each assignment;
    ``addressed`` the variables whose address is taken, ``kept`` those of whose address more is
    made than the argument of a call (``scanf("%d", &n)``).
    """

    def __init__(self, placed: PlacedRegion) -> None:
        self._placed = placed
        nodes = [*_outside(placed.path[0], {id(one) for one in placed.statements})]
        arguments = {
            id(unconverted(argument, explicit=True))
            for node in nodes
            if node.kind == "call"
            for argument in node.children[1:]
        }
        addressed = [node for node in nodes if node.kind == "address"]
        self.addressed = {node.children[0].declaration for node in addressed}
        self.kept = {o.children[0].declaration for o in addressed if id(o) not in arguments}
        self.assigned: list[tuple[Any, Node, int]] = []
        for node in nodes:
            target = node.children[0] if node.kind == "assign" else node
            if target.kind in ("name", "variable") and node.children:
                self.assigned.append((target.declaration, node.children[-1], node.offsets[0]))

    def takes_address(self, variable: Variable) -> bool:
        """Return whether the address of a variable is taken."""
        return variable.declaration in self.addressed

    def names_after(self, variable: Variable) -> bool:
        """Return whether the block goes on to name a variable."""
        return any(tree.names(variable.declaration) for tree in self._placed.following)

    def use_after(self, variable: Variable) -> tuple[Node, Node | None] | None:
        """Return the first use of a variable after the region, and the statement if it sets it."""
        for tree in self._placed.later:
            targets = {
                id(node.children[0])
                for node in tree.parts("assign")
                if not node.op and not node.children[1].names(variable.declaration)
            }
            for node in tree.parts("name"):
                if node.declaration == variable.declaration:
                    return node, tree if id(node) in targets else None
        return None

    def is_dead_after(self, variable: Variable) -> bool:
        """Return whether nothing reads what a scalar of the region is after it."""
        if variable.is_local:
            return True
        if clang.outlives_function(variable.declaration) or self.takes_address(variable):
            return False
        use = self.use_after(variable)
        return use is None or (use[1] is not None and use[1].kind == "assign")

    def killed(self, symbols: SymbolTable) -> frozenset[Variable]:
        """Return the variables that the block declares before the region and does not use after it.

        None of them has its address taken before.
        """
        before = [part for tree in self._placed.before for part in tree.preorder()]
        declared = {one.declaration for one in before if one.kind == "variable"}
        declared -= {one.children[0].declaration for one in before if one.kind == "address"}
        return frozenset(
            variable
            for variable in symbols.variables
            if variable.declaration in declared and not self.names_after(variable)
        )

    def is_whole_function(self, symbols: SymbolTable, accessed: frozenset[Variable]) -> bool:
        """Tell whether the function does nothing that can be observed but the region.

        Declarations, ``return;`` and expressions without effect may stand around it; what gives a
        variable of the region its value before the region runs, may not. ``accessed`` are the
        variables whose elements the region reads or writes.
        """
        placed = self._placed
        is_body = len(placed.path) == 1 and placed.path[0].kind == "compound"
        return is_body and all(
            _is_idle(node, symbols, accessed) for node in (*placed.before, *placed.following)
        )


def _outside(tree: Node, region: set[int]) -> Iterator[Node]:
    """Yield the nodes of a tree but those of a region, and of the sizes of what it declares."""
    todo = [tree]
    while todo:
        node = todo.pop()
        if id(node) not in region:
            yield node
            todo += [*reversed(node.children)]
            if node.kind == "variable":
                todo += _expressions_of(node)


def _expressions_of(variable: Node) -> Iterator[Node]:
    """Yield what a declaration computes: sizes, and the first value."""
    for child in clang.children(variable.cursor):
        if child.kind.is_expression():
            yield read_tree(child)


def _is_idle(node: Node, symbols: SymbolTable, accessed: frozenset[Variable]) -> bool:
    if node.kind in ("empty", "return"):
        return not node.children
    if node.kind == "declarations":
        variables = [child for child in node.children if child.kind == "variable"]
        is_known = all(child.kind != "broken" for child in node.children)
        return is_known and all(_is_idle(child, symbols, accessed) for child in variables)
    if node.kind != "variable":
        return not node.has(*BODIES, "broken", "other")
    if any(part.has(*_EFFECTS) for part in _expressions_of(node)):
        return False
    variable = symbols.of(node)
    if not node.children or variable is None or variable.role == "counter":
        return True
    is_known = variable.constant is not None or variable.role == "data"
    return is_known and variable not in accessed


def check_counters(symbols: SymbolTable, surroundings: Surroundings, reporter: Reporter) -> None:
    """Refuse counters whose values can be observed outside the region."""
    for variable in symbols.variables:
        place = variable.first_use
        if variable.role != "counter" or variable.is_local or place is None:
            continue
        if not (
            clang.outlives_function(variable.declaration) or surroundings.takes_address(variable)
        ):
            use = surroundings.use_after(variable)
            place = None if use is None or use[1] else use[0]
        if place is not None:
            reporter.error("read_counter", place)


def check_sizes(symbols: SymbolTable, surroundings: Surroundings, reporter: Reporter) -> None:
    """Refuse arrays whose size was fixed before one of its variables got another value."""
    for array in symbols.variables:
        for size in array.shape.sizes:
            if not isinstance(size, Node):
                continue
            if size.has("assign", "call"):
                reporter.error("effect_in_size", size, name=array.name)
            # a typedef fixes it where it stands
            declared = min(array.declaration.location.offset, size.offsets[0])
            later = {target for target, _, at in surroundings.assigned if at > declared}
            for name in size.parts("name"):
                if array.first_use is not None and name.declaration in later:
                    words = {"name": name.name, "array": array.name}
                    reporter.error("changed_size", array.first_use, **words)


# -- aliases -----------------------------------------------------------------------------------
# Refuses pointers that visibly may name the memory of another array of the region.
#
# Distinct parameters and distinct global pointers are taken not to overlap (as pet and
# PPCG take it, and as ``restrict`` says). But a pointer that the function sets to anything but
# fresh memory may name any array.


def check_aliases(
    symbols: SymbolTable,
    surroundings: Surroundings,
    reporter: Reporter,
) -> None:
    """Record a finding for every two arrays of the region that may be the same memory."""
    arrays = [v for v in symbols.variables if v.role != "counter" and v.first_use is not None]
    if not any(a.shape.through_pointer for a in arrays):
        return
    lost = {one for one in arrays if _may_name_any(one.declaration, surroundings)}
    for first, second in combinations(arrays, 2):
        if first.first_write is None and second.first_write is None:
            continue
        if (first in lost and not second.is_scalar) or (second in lost and not first.is_scalar):
            assert second.first_use is not None
            words = {"first": first.name, "second": second.name}
            reporter.error("alias", second.first_use, **words)


def _may_name_any(declaration: Any, surroundings: Surroundings) -> bool:
    """Return whether a pointer may hold an address that is not one of its own.

    ``restrict`` says that it is alone.
    """
    if type_of(declaration.type).kind != "pointer" or declaration.type.is_restrict_qualified():
        return False
    values = [value for target, value, _ in surroundings.assigned if target == declaration]
    tree = read_tree(declaration)
    values += tree.children[:1] if tree.kind == "variable" else []
    return declaration in surroundings.kept or not all(map(_is_fresh, values))


def _is_fresh(value: Node) -> bool:
    """Return whether what a pointer is set to is memory of its own, or none."""
    value = unconverted(value, explicit=True)
    return value.kind == "int" or (value.kind == "call" and "alloc" in value.name.lower())
