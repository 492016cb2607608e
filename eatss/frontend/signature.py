"""What surrounds a region: parameters of the function, other work, pointers that may overlap."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

from eatss.frontend import clang
from eatss.frontend.clang import CursorKind, StorageClass, type_of
from eatss.frontend.declarations import SymbolTable, Variable, is_variable, shape_of
from eatss.frontend.refusals import Reporter
from eatss.frontend.regions import PlacedRegion
from eatss.frontend.tree import ELEMENTS, WRITES, Kind, Node, read_tree, unconverted
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
        return "member" if variable.is_member else "parameter"
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
                        "EATSS-F038",
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
# PPCG take it, and as ``restrict`` says). But a pointer that the function sets from another array
# is followed to where it comes from.


def check_aliases(
    symbols: SymbolTable,
    surroundings: Surroundings,
    reporter: Reporter,
) -> None:
    """Record a finding for every two arrays of the region that may be the same memory."""
    arrays = [v for v in symbols.variables if v.role != "counter" and v.first_use is not None]
    if not any(a.shape.through_pointer for a in arrays):
        return
    known = [(one, _origins(one.declaration, surroundings)) for one in arrays]
    found = [(one, own, _is_unknown(one.declaration, own, surroundings)) for one, own in known]
    for (first, own, is_lost), (second, others, is_other_lost) in combinations(found, 2):
        if first.first_write is None and second.first_write is None:
            continue
        if (
            any(a == b for a in own for b in others)
            or (is_lost and not second.is_scalar)
            or (is_other_lost and not first.is_scalar)
        ):
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


def _is_pointer(declaration: Any) -> bool:
    return type_of(declaration.type).kind == "pointer"


def _values_of(pointer: Any, surroundings: Surroundings) -> list[Node]:
    """Return what the function and the declaration of a pointer set it to."""
    assigned = surroundings.assigned
    values = [v for target, v, _ in assigned if v is not None and target == pointer]
    tree = read_tree(pointer)
    return [*values, *(tree.children[:1] if tree.kind == "variable" else [])]


def _origins(declaration: Any, surroundings: Surroundings) -> list[Any]:
    """Return the declaration and all that its value may come from."""
    found: list[Any] = []
    todo = [declaration]
    while todo:
        current = todo.pop()
        if any(current == known for known in found):
            continue
        found.append(current)
        if _is_pointer(current):
            for value in _values_of(current, surroundings):
                todo.extend(_pointers_in(value))
    return found


def _is_unknown(declaration: Any, origins: list[Any], surroundings: Surroundings) -> bool:
    """Return whether a pointer may hold an address that cannot be followed.

    Such as one loaded from memory, returned by a function that does not allocate, or
    set through a pointer to the pointer. ``restrict`` says that it is alone.
    """
    if declaration.type.is_restrict_qualified():
        return False
    pointers = [one for one in origins if _is_pointer(one)]
    if pointers and isinstance(declaration, clang.Member):
        # may come with a whole structure
        return declaration.kind is CursorKind.VAR_DECL
    addressed = surroundings.addressed
    return any(
        any(taken == pointer and not is_argument for taken, is_argument in addressed)
        or any(map(_is_opaque, _values_of(pointer, surroundings)))
        for pointer in pointers
    )


def _pointers_in(value: Node) -> list[Any]:
    """Return the arrays and pointers an expression takes addresses from."""
    found: list[Any] = []
    under_address: set[int] = set()
    for node in value.preorder():
        if node.kind == "address":
            under_address.update(id(inner) for inner in node.preorder())
        if node.kind != "name" or not is_variable(node.declaration):
            continue
        is_address = node.type.kind in ("pointer", "array")
        if is_address or id(node) in under_address:
            found.append(node.declaration)
    return found


def _is_opaque(value: Node) -> bool:
    """Return whether a pointer's value comes from where it cannot be followed."""
    todo = [(value, False)]
    while todo:
        node, is_addressed = todo.pop()
        if node.type.is_integer and not is_addressed:
            continue
        is_pointer = node.type.kind in ("pointer", "array")
        if node.kind == "call":
            if is_pointer and "alloc" not in node.name.lower():
                return True
            continue  # its arguments are sizes
        if node.kind == "member" and (is_pointer or is_addressed):
            return True
        if node.kind in ELEMENTS and node.type.kind == "pointer":
            return True
        if node.kind == "cast" and is_pointer and node.children[0].type.is_integer:
            return node.children[0].kind != "int"
        if node.kind in ("other", "broken") and is_pointer:
            return True
        inside = node.kind == "address"
        todo.extend((child, inside) for child in node.children)
    return False
