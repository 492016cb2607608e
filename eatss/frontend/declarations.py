"""Variables of a region: their shapes, roles and names, and the names PPCG gives statements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from eatss.base.frozen import frozen
from eatss.base.trees import free_name
from eatss.frontend import clang
from eatss.frontend.clang import ARRAYS, INT, CType, CursorKind, TypeKind, type_of
from eatss.frontend.tree import Node, read_tree

# -- shapes ------------------------------------------------------------------------------------
# The shape of an array variable, read from its declaration.


@frozen
class Shape:
    """Sizes outermost first: a number, an expression (C99 VLA), or ``None`` where not given.

    ``through_pointer`` says that the outermost dimension is reached through a pointer, be it
    a parameter of array type; ``is_pointer`` that the variable is declared as a pointer.
    ``pointer_to_pointer`` stands for several levels of pointers, or pointers inside an array.
    """

    element: CType
    sizes: tuple[int | Node | None, ...] = ()
    through_pointer: bool = False
    is_pointer: bool = False
    pointer_to_pointer: bool = False
    qualified_volatile: bool = False
    invalid: bool = False


def shape_of(declaration: Any) -> Shape:
    """Read the shape of a variable or parameter, its type from the outside in."""
    clang_type, expressions = declaration.type, _size_expressions(declaration)
    sizes: list[int | Node | None] = []
    pointers = 0
    starts_with_pointer = pointer_inside = is_volatile = False
    is_invalid = clang.is_invalid(declaration)
    while True:
        kind = clang_type.kind
        is_volatile |= clang_type.is_volatile_qualified()
        if kind in ARRAYS:
            is_given = kind is not TypeKind.INCOMPLETEARRAY
            size = expressions.pop(0) if is_given and expressions else None
            if kind is TypeKind.CONSTANTARRAY:
                sizes.append(int(clang_type.element_count))
            else:
                is_invalid |= is_given and size is None
                sizes.append(None if size is None else read_tree(size))
            clang_type = clang_type.element_type
        elif kind is TypeKind.POINTER:
            pointer_inside |= bool(sizes)
            starts_with_pointer |= not sizes
            pointers += 1
            sizes.append(None)
            clang_type = clang_type.get_pointee()
        elif kind is TypeKind.TYPEDEF:
            typedef = clang_type.get_declaration()
            is_invalid |= clang.is_invalid(typedef)
            expressions = _size_expressions(typedef)
            clang_type = typedef.underlying_typedef_type
        elif kind is TypeKind.ELABORATED:
            clang_type = clang_type.get_named_type()
        elif kind is TypeKind.UNEXPOSED and clang_type.get_canonical().kind is not kind:
            clang_type = clang_type.get_canonical()
        else:
            break
    is_parameter = declaration.kind is CursorKind.PARM_DECL
    return Shape(
        element=type_of(clang_type),
        sizes=tuple(sizes),
        through_pointer=pointers > 0 or (is_parameter and bool(sizes)),
        is_pointer=starts_with_pointer,
        pointer_to_pointer=pointer_inside,
        qualified_volatile=is_volatile,
        invalid=is_invalid,
    )


def _size_expressions(declaration: Any) -> list[Any]:
    """Return the size expressions of a declarator, outermost first.

    libclang visits the innermost array type first; an initialiser comes last and ends the
    declaration.
    """
    end = declaration.extent.end.offset
    expressions = [c for c in declaration.get_children() if c.kind.is_expression()]
    closes = declaration.kind is CursorKind.VAR_DECL
    if closes and expressions and expressions[-1].extent.end.offset == end:
        expressions.pop()
    expressions.reverse()
    return expressions


# -- symbols -----------------------------------------------------------------------------------
# The variables a region names: parameters, counters, arrays and scalars.


# Words of isl's own notation; a C variable of that name gets another one.
ISL_WORDS = frozenset(
    """
    and or not implies exists mod floor floord ceild ceil min max true false infty infinity NaN rat
    all div
    """.split()  # noqa: SIM905 - words are easier to read than quotes
)


Role: TypeAlias = Literal["parameter", "counter", "data"]
"""What a variable is within a region."""


@dataclass(slots=True, eq=False)
class Variable:
    """A variable of the C program, as one region sees it."""

    name: str
    unique_name: str
    declaration: Any
    shape: Shape
    role: Role
    is_local: bool
    constant: int | None
    first_write: Node | None
    first_use: Node | None = None

    @property
    def is_scalar(self) -> bool:
        """Whether it has no dimensions."""
        return not self.shape.sizes


class _Own:
    """The declaration of a variable that the source does not declare."""

    kind = semantic_parent = storage_class = None


class SymbolTable:
    """The variables of one region, classified by how the region uses them."""

    def __init__(self, statements: Iterable[Node]) -> None:
        self._known: dict[Any, Variable] = {}
        self._taken: set[str] = set(ISL_WORDS)
        self.variables: list[Variable] = []
        nodes = [node for statement in statements for node in statement.preorder()]
        self._find(nodes)
        self._classify(nodes)

    def _find(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            if node.kind == "variable":
                self._add(node.declaration, is_local=True)
            elif node.kind == "name" and is_variable(node.declaration):
                used = self._add(node.declaration, is_local=False)
                used.first_use = used.first_use or node
        sizes = [size for one in self.variables for size in one.shape.sizes]
        for size in sizes:
            for name in size.parts("name") if isinstance(size, Node) else ():
                if is_variable(name.declaration):
                    self._add(name.declaration, is_local=False)

    def _classify(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            counter = self.of(counter_of(node)) if node.kind == "for" else None
            if counter is not None and counter.is_scalar:
                counter.role = "counter"
        for node in nodes:
            written = self.of(written_name(node))
            if written is not None:
                written.first_write = written.first_write or node
        for variable in self.variables:
            is_set = variable.is_local or variable.first_write is not None
            if variable.role == "parameter" and is_set:
                variable.role = "data"
            if variable.role != "counter":  # these get their names loop by loop
                variable.unique_name = free_name(variable.name, self._taken)

    def free(self, name: str, also_taken: Iterable[str]) -> str:
        """Return a name or a variant of it that is neither taken nor in ``also_taken``."""
        return free_name(name, {*self._taken, *also_taken})

    def of(self, node: Node | None) -> Variable | None:
        """Return the variable a name stands for, ``None`` if it is none of the region."""
        return None if node is None else self._known.get(node.declaration)

    def add_local(self, place: Node, name: str) -> Node:
        """Add an integer of the region's own, set at ``place``; return a node that names it."""
        declaration, unique_name = _Own(), free_name(name, self._taken)
        self._put(name, declaration, Shape(element=INT), "data", unique_name, first_write=place)
        return Node("name", place.cursor, INT, name=name, declaration=declaration)

    def _add(self, declaration: Any, *, is_local: bool) -> Variable:
        if declaration in self._known:
            return self._known[declaration]
        shape, name = shape_of(declaration), declaration.spelling
        is_integer = shape.element.is_integer and not shape.sizes
        constant = _constant(declaration) if is_integer and not is_local else None
        role: Role = "parameter" if is_integer else "data"
        return self._put(name, declaration, shape, role, is_local=is_local, constant=constant)

    def _put(
        self, name: str, declaration: Any, shape: Shape, role: Role, unique_name: str = "",
        *, is_local: bool = True, constant: int | None = None, first_write: Node | None = None,
    ) -> Variable:  # fmt: skip
        variable = Variable(
            name, unique_name or name, declaration, shape, role, is_local, constant, first_write
        )
        self._known[declaration] = variable
        self.variables.append(variable)
        return variable


def counter_of(loop: Node) -> Node | None:
    """Return the node that names the counter a ``for`` starts with."""
    return started_by(loop.children[0]) if len(loop.children) == 4 else None


def started_by(start: Node) -> Node | None:
    """Return the node that names what the start of a loop sets."""
    if start.kind == "declarations" and len(start.children) == 1:
        return start.children[0]
    if start.kind == "assign" and start.op == "":
        target = start.children[0]
        return target if target.kind == "name" else None
    return None


def written_name(node: Node) -> Node | None:
    """Return the name whose object an assignment, ``++`` or ``--`` writes."""
    if node.kind != "assign" or not node.children:
        return None
    return base_name(node.children[0])


def base_name(node: Node) -> Node | None:
    """Return the name below subscripts, dereferences and casts."""
    while node.children and node.kind in (
        "subscript", "dereference", "cast",
    ):  # fmt: skip
        node = node.children[0]
    return node if node.kind == "name" else None


def is_variable(declaration: Any) -> bool:
    """Return whether a declaration is that of a variable or parameter."""
    return declaration is not None and declaration.kind in (
        CursorKind.VAR_DECL, CursorKind.PARM_DECL,
    )  # fmt: skip


def _constant(declaration: Any) -> int | None:
    """Return the value of a ``const`` integer with a constant initialiser."""
    if declaration.kind is not CursorKind.VAR_DECL:
        return None
    if not declaration.type.is_const_qualified() or declaration.type.is_volatile_qualified():
        return None
    value = clang.evaluate(declaration)
    return value if isinstance(value, int) else None


# -- ppcg count --------------------------------------------------------------------------------
# Counts the statements of a region as PPCG's front end (pet) does.
#
# pet numbers statements in the order in which it reads them. It also numbers what is none here:
# declarations, the ends of the lives of what a block declares, and the first value and the
# increment of a counter that its ``for`` does not declare.


@dataclass(slots=True)
class PpcgCount:
    """The running count.

    ``killed`` are the variables declared in blocks of the region, whose values end with the block;
    ``counters`` those that a loop sets without declaring them; ``steps`` what sets them, each with
    its name and the number of loops around it; ``wholes`` is the text of what pet takes for one
    statement, with all that is below it. ``blocks`` are open.
    """

    counters: frozenset[Variable] = frozenset()
    killed: frozenset[Variable] = frozenset()
    steps: list[tuple[str, int]] = field(default_factory=list)
    wholes: list[str] = field(default_factory=list)
    count: int = 0
    blocks: int = 0

    def statement(self) -> str:
        """Count one statement; return its name."""
        self.count += 1
        return f"S_{self.count - 1}"

    def declared(self, variable: Variable | None) -> None:
        """Count the end of what a declaration declared, which pet numbers here.

        What the region declares outside all blocks lives on, as far as PPCG knows.
        """
        if self.blocks:
            _ = self.statement()
            self.killed |= {variable} if variable is not None else set()

    def stepped(self, counter: Variable | None, loops: int) -> None:
        """Count what sets the counter of a loop that does not declare it."""
        if counter is not None:
            self.counters |= {counter}
            self.steps.append((self.statement(), loops))
