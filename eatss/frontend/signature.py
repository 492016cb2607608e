"""What surrounds a region: parameters of the function, other work, pointers that may overlap."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

from eatss.frontend import clang
from eatss.frontend.clang import CursorKind, StorageClass, type_of
from eatss.frontend.declarations import SymbolTable, Variable, shape_of
from eatss.frontend.refusals import Reporter
from eatss.frontend.regions import PlacedRegion
from eatss.frontend.tree import WRITES, Kind, Node, read_tree, unconverted
from eatss.polyhedral.expression import Origin
from eatss.polyhedral.scop import FunctionParameter, ParameterDeclaration

# -- signature ---------------------------------------------------------------------------------
# Reads what surrounds a region: the function's parameters, and whether there is other work.


_EFFECTS: frozenset[Kind] = WRITES | {"call", "broken", "other"}
_VALUES = frozenset(
    {
        "int", "float", "name", "cast", "unary",
        "binary", "conditional", "subscript", "dereference",
    }
)  # fmt: skip


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


def is_whole_function(
    placed: PlacedRegion,
    symbols: SymbolTable,
    accessed: frozenset[Variable],
) -> bool:
    """Tell whether a function does nothing that can be observed but its region.

    Declarations, ``return;`` and expressions without effect may stand around it; what gives a
    variable of the region its value before the region runs, may not. ``accessed`` are the
    variables whose elements the region reads or writes.
    """
    if placed.block.kind is not CursorKind.COMPOUND_STMT or placed.block not in list(
        placed.function.get_children()
    ):
        return False
    inside = range(placed.region.opening.start, placed.region.closing.start)
    around = (
        read_tree(child)
        for child in clang.children(placed.block)
        if child.extent.start.offset not in inside
    )
    return all(_is_idle(node, symbols, accessed) for node in around)


def _is_idle(node: Node, symbols: SymbolTable, accessed: frozenset[Variable]) -> bool:
    if node.kind in ("empty", "return"):
        return not node.children
    if node.kind == "declarations":
        return all(_is_idle_declaration(child, symbols, accessed) for child in node.children)
    return node.kind in _VALUES and not node.has(*_EFFECTS)


def _is_idle_declaration(node: Node, symbols: SymbolTable, accessed: frozenset[Variable]) -> bool:
    if node.kind != "variable":
        return node.kind != "broken"
    if any(part.has(*_EFFECTS) for part in _expressions_of(node)):
        return False
    variable = symbols.variable_of(node.declaration)
    if not node.children or variable is None or variable.role == "counter":
        return True
    is_known = variable.constant is not None or variable.role == "data"
    return is_known and variable not in accessed


def _expressions_of(variable: Node) -> Iterator[Node]:
    """Yield what a declaration computes: sizes, and the first value."""
    for child in clang.children(variable.cursor):
        if child.kind.is_expression():
            yield read_tree(child)


class Surroundings:
    """The assignments of a function outside a region.

    ``assigned`` holds the declaration of the target, the value (``None`` for ``++`` and
    ``--``) and the offset of each. ``addressed`` holds the variables whose address is taken,
    and whether a function is called with it directly (``scanf("%d", &n)``). ``before`` are the
    statements that stand before the region in its block.
    """

    def __init__(self, placed: PlacedRegion) -> None:
        self.assigned: list[tuple[Any, Node | None, int]] = []
        self.addressed: list[tuple[Any, bool]] = []
        region = placed.region
        self.before = tuple(
            read_tree(child)
            for child in clang.children(placed.block)
            if child.extent.end.offset <= region.opening.start
        )
        todo = [placed.function]
        while todo:
            for child in clang.children(todo.pop()):
                extent = child.extent
                first, last = extent.start.offset, extent.end.offset
                if first < region.opening.start and last > region.closing.start:
                    todo.append(child)
                elif last <= region.opening.start or first >= region.closing.start:
                    self._collect(read_tree(child))

    def _collect(self, body: Node) -> None:
        arguments: set[int] = set()
        for node in body.preorder():
            is_write = node.kind in WRITES
            at = node.offsets[0] if is_write or node.kind == "variable" else 0
            if node.kind == "variable":
                for size in _expressions_of(node):
                    self._collect(size)
            if node.kind == "variable" and node.children:
                self.assigned.append((node.declaration, node.children[0], at))
            elif node.kind == "call":
                arguments.update(
                    id(unconverted(child, explicit=True)) for child in node.children[1:]
                )
            elif node.kind == "address" and node.children[0].kind == "name":
                declaration = node.children[0].declaration
                self.addressed.append((declaration, id(node) in arguments))
            elif is_write:
                target = node.children[0]
                if target.kind == "name":
                    value = node.children[1] if node.kind == "assign" else None
                    self.assigned.append((target.declaration, value, at))


def check_sizes(symbols: SymbolTable, surroundings: Surroundings, reporter: Reporter) -> None:
    """Refuse arrays whose size was fixed before one of its variables got another value."""
    for array in symbols.variables:
        for size in array.shape.sizes:
            declared = array.declaration.location.offset
            if isinstance(size, Node):
                if size.has(*WRITES, "call"):
                    reporter.error(
                        "EATSS-F019",
                        size,
                        f"size of '{array.name}' has a side effect or calls a function",
                        "use a variable that keeps its value as the size",
                    )
                declared = min(declared, size.offsets[0])  # a typedef fixes it where it stands
            for variable in _named(size, symbols):
                changed = any(
                    at > declared and target == variable.declaration
                    for target, _, at in surroundings.assigned
                )
                if changed and array.first_use is not None:
                    reporter.error(
                        "EATSS-F031",
                        array.first_use,
                        f"'{variable.name}' in the size of '{array.name}' is changed after "
                        f"'{array.name}' is declared",
                        "use a variable that keeps its value",
                    )


def _named(size: int | Node | None, symbols: SymbolTable) -> list[Variable]:
    if not isinstance(size, Node):
        return []
    found = map(symbols.of, size.parts("name"))
    return [variable for variable in found if variable is not None]


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
            reporter.error(
                "EATSS-F024",
                second.first_use,
                f"'{first.name}' and '{second.name}' may be the same memory",
                "use one name for one array within the region",
            )


def check_counters(symbols: SymbolTable, surroundings: Surroundings, reporter: Reporter) -> None:
    """Refuse counters that can be reached through a pointer, whose value would be observed."""
    for variable in symbols.variables:
        if variable.role != "counter" or variable.first_use is None:
            continue
        if any(variable.declaration == taken for taken, _ in surroundings.addressed):
            reporter.error(
                "EATSS-F024",
                variable.first_use,
                f"the address of counter '{variable.name}' is taken in this function",
                "use a counter of the loop's own: for (int i = 0; ...)",
            )


def _may_name_any(declaration: Any, surroundings: Surroundings) -> bool:
    """Return whether a pointer may hold an address that is not one of its own.

    ``restrict`` says that it is alone.
    """
    if type_of(declaration.type).kind != "pointer" or declaration.type.is_restrict_qualified():
        return False
    values = [value for target, value, _ in surroundings.assigned if target == declaration]
    tree = read_tree(declaration)
    values += tree.children[:1] if tree.kind == "variable" else []
    set_elsewhere = any(
        taken == declaration and not is_argument for taken, is_argument in surroundings.addressed
    )
    return set_elsewhere or not all(map(_is_fresh, values))


def _is_fresh(value: Node | None) -> bool:
    """Return whether what a pointer is set to is memory of its own, or none."""
    if value is None:
        return False
    value = unconverted(value, explicit=True)
    return value.kind == "int" or (value.kind == "call" and "alloc" in value.name.lower())
