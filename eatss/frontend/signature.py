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
from eatss.frontend.tree import BODIES, WRITES, Kind, Node, read_tree, unconverted
from eatss.polyhedral.expression import Origin
from eatss.polyhedral.scop import FunctionParameter, ParameterDeclaration

# -- signature ---------------------------------------------------------------------------------
# Reads what surrounds a region: the function's parameters, and whether there is other work.


_EFFECTS: frozenset[Kind] = WRITES | {"call", "broken", "other"}


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
            target = node.children[0] if node.kind in WRITES else node
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
            reporter.error(
                "EATSS-F031",
                place,
                f"counter '{variable.name}' is read outside the region, where its value is lost",
                "use a counter of the loop's own: for (int i = 0; ...)",
            )


def check_sizes(symbols: SymbolTable, surroundings: Surroundings, reporter: Reporter) -> None:
    """Refuse arrays whose size was fixed before one of its variables got another value."""
    for array in symbols.variables:
        for size in array.shape.sizes:
            if not isinstance(size, Node):
                continue
            if size.has(*WRITES, "call"):
                reporter.error(
                    "EATSS-F018",
                    size,
                    f"size of '{array.name}' has a side effect or calls a function",
                    "use a variable that keeps its value as the size",
                )
            # a typedef fixes it where it stands
            declared = min(array.declaration.location.offset, size.offsets[0])
            later = {target for target, _, at in surroundings.assigned if at > declared}
            for name in size.parts("name"):
                if array.first_use is not None and name.declaration in later:
                    reporter.error(
                        "EATSS-F031",
                        array.first_use,
                        f"'{name.name}' in the size of '{array.name}' is changed after "
                        f"'{array.name}' is declared",
                        "use a variable that keeps its value",
                    )


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
