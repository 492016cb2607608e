"""Reads expressions with their accesses, and what assignments store."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import NoReturn

import islpy as isl

from eatss.base.frozen import frozen
from eatss.frontend.affine import AffineReader, RawAccess, RegionReader
from eatss.frontend.clang import FLOAT, INT, NO_TYPE, CType
from eatss.frontend.declarations import SymbolTable, Variable
from eatss.frontend.refusals import (
    REFUSED_EXPRESSIONS,
    UNSUPPORTED_EXPRESSION,
    NotAffineError,
    Reporter,
    call_refusal,
    is_library_function,
)
from eatss.frontend.source import RefusedError
from eatss.frontend.tree import ELEMENTS, WRITES, Node, chain
from eatss.frontend.values import NonLinearError, Poly, TooManyPiecesError, Value
from eatss.polyhedral.expression import (
    AffineValue,
    Binary,
    Call,
    Cast,
    ElementType,
    Expression,
    Literal,
    Read,
    Select,
    Unary,
    as_single,
    single_text,
)
from eatss.polyhedral.isl_names import coalesced, constant_value
from eatss.polyhedral.scop import AccessKind
from eatss.program.tokens import MATH_FUNCTIONS

# -- expressions -------------------------------------------------------------------------------
# Reads the right-hand side of a statement: an expression tree and the references in it.
#
# Arithmetic of halves as that of floats: each operation is done in float and rounded to a half.
#
#     h = a * b + c;
#
# of ``_Float16`` is ``h = (_Float16)((float)(_Float16)((float)a * (float)b) + (float)c)``. A float
# has more than twice the bits of a half, and two more: so a sum, a difference, a product or a
# quotient that is rounded twice is what one rounding makes of it.


def as_float(value: Expression, node: Node) -> Expression:
    """Return the value of a node as an operand of an operator: a half becomes a float."""
    if node.type.element is not ElementType.HALF:
        return value
    if isinstance(value, Cast) and isinstance(value.operand, Literal):
        literal = _as_float(value.operand)
        if literal is not None:
            return literal
    return Cast(element_type=ElementType.FLOAT, operand=value)


def rounded(value: Expression, node: Node) -> Expression:
    """Return what an operator makes of such operands, rounded where its node is a half."""
    if node.type.element is not ElementType.HALF:
        return value
    return Cast(element_type=ElementType.HALF, operand=value)


def _as_float(literal: Literal) -> Literal | None:
    """Return a literal as a float if a half has its value, ``None`` if none has."""
    text = literal.text.rstrip("fFuUlL")
    try:
        value = float(text)
        is_half = struct.unpack("e", struct.pack("e", value))[0] == value
    except (ValueError, OverflowError):
        return None
    if not is_half:
        return None
    if literal.element_type is ElementType.FLOAT:
        return literal
    return Literal(text=f"{value!r}f", element_type=ElementType.FLOAT)


_SUFFIXES = {
    ElementType.UINT32: "u",
    ElementType.INT64: "L",
    ElementType.UINT64: "UL",
}


def literal_text(node: Node, element: ElementType, written: str) -> str:
    """Return a C spelling of a literal: as written where it stands there, else from its value."""
    if element.is_floating:
        assert isinstance(node.value, float)
        if _spells(written, node.value, element):
            return written
        is_double = element is ElementType.DOUBLE
        return repr(node.value) if is_double else single_text(node.value) + "f"
    value = int(node.value or 0)
    return f"{value}{_SUFFIXES.get(element, '')}"


def _spells(written: str, value: float, element: ElementType) -> bool:
    is_float = written[-1:] in ("f", "F") and not written.lower().startswith("0x")
    digits = written[:-1] if is_float else written
    if is_float != (element is ElementType.FLOAT):
        return False
    try:
        known = float(digits)
    except ValueError:
        return False
    if is_float:
        known = as_single(known)
    return known == value and not digits.strip().startswith(("n", "i", "-", "+"))


_PURE_FUNCTIONS = frozenset(
    {
        *MATH_FUNCTIONS,
        *(f"{name}f" for name in MATH_FUNCTIONS),
        *("abs", "labs", "llabs", "min", "max", "floord", "ceild"),
    }
)


_TRUTHS = frozenset({"<", "<=", ">", ">=", "==", "!=", "&&", "||", "!"})


class ExpressionReader(RegionReader):
    """Reads the expressions of one statement and gathers its references."""

    def __init__(
        self, symbols: SymbolTable, affine: AffineReader, reporter: Reporter, domain: isl.Set
    ) -> None:
        super().__init__(symbols, affine, reporter)
        self._domain = domain
        self.accesses: list[RawAccess] = []
        self.failed = False
        self._kept: Read | None = None

    # -- values ---------------------------------------------------------------------

    def read(self, node: Node) -> Expression:
        """Read an expression; left-deep chains of operators cost no recursion.

        Raises:
            RefusedError: If something in it was refused; the finding is recorded.
        """
        affine = self._as_affine(node)
        if affine is not None:
            return affine
        spine: list[Node] = []
        while node.kind == "binary" and node.op != ",":
            node = self._with_guards(node)
            if node.kind != "binary":
                break
            self._check_arithmetic(node)
            spine.append(node)
            node = node.children[0]
        result = self._try(node) if spine else self._leaf(node)
        for parent in reversed(spine):
            right = self._try(parent.children[1])
            left, right = as_float(result, parent.children[0]), as_float(right, parent.children[1])
            result = rounded(Binary(operator=parent.op, left=left, right=right), parent)
        return result

    def _try(self, node: Node) -> Expression:
        """Read an operand; after a refusal go on with the others to find all that is wrong."""
        try:
            return self.read(node)
        except RefusedError:
            self.failed = True
            return Literal(text="0", element_type=ElementType.INT32)

    def _affine_condition(self, test: Node) -> isl.Set | None:
        if not self._affine.is_index(test):
            return None
        try:
            return self._affine.condition(test, self._domain)
        except NotAffineError:
            return None

    def _with_guards(self, node: Node) -> Node:
        """Return ``x && y`` as ``x ? y != 0 : 0``, and ``||`` likewise, where ``x`` guards reads.

        That is where ``x`` is affine: what ``y`` reads is read only where ``x`` says so.
        """
        if node.op not in ("&&", "||"):
            return node
        last, *parts = reversed(chain(node, node.op))
        guards = [self._affine_condition(part) is not None for part in parts]
        reads = [part.reads_memory for part in (last, *parts)]
        if not any(guard and any(reads[: k + 1]) for k, guard in enumerate(guards)):
            return node
        zero = Node("int", node.cursor, node.type, value=0)
        known = replace(zero, value=int(node.op == "||"))
        found = last if last.op in _TRUTHS else replace(node, op="!=", children=[last, zero])
        for part, is_guard in zip(parts, guards, strict=True):
            if is_guard:
                arms = [found, known] if node.op == "&&" else [known, found]
                found = replace(node, kind="conditional", op="", children=[part, *arms])
            else:
                found = replace(node, children=[part, found])
        return found

    def where(self, test: Node, *, holds: bool) -> isl.Set:
        """Return where a condition may hold, or not hold: what its affine parts say of that."""
        place = isl.Set.universe(self._domain.get_space())
        todo = [(test, holds)]
        while todo:
            part, wanted = todo.pop()
            exact = self._affine_condition(part)
            if exact is not None:
                place = place.intersect(exact if wanted else exact.complement())
            elif part.op == "!":
                todo.append((part.children[0], not wanted))
            elif part.op == ("&&" if wanted else "||"):
                todo += [(child, wanted) for child in part.children]
        return place

    def _choose(self, node: Node) -> Select:
        test, *arms = node.children
        condition, values = as_float(self._try(test), test), []
        for arm, holds in zip(arms, (True, False), strict=True):
            with self._within(self.where(test, holds=holds)):
                values.append(self._try(arm))
        return Select(condition=condition, if_true=values[0], if_false=values[1])

    @contextmanager
    def _within(self, place: isl.Set) -> Iterator[None]:
        """Read an arm of a choice, whose references are made only where it is taken.

        An arm that is taken in a place of no simple form, or never, counts as taken everywhere.
        """
        domain = self._domain
        taken = coalesced(domain.intersect(place))
        if taken.n_basic_set() == 1 and not taken.is_empty():
            self._domain = taken
        try:
            yield
        finally:
            self._domain = domain

    def search(self, node: Node) -> None:
        """Look for findings in an expression whose value is not needed any more."""
        if node.type.is_arithmetic:
            self._try(node)

    def _as_affine(self, node: Node) -> Expression | None:
        if node.kind == "int" or not self._affine.is_index(node):
            return None
        try:
            function = self._affine.function(node, self._domain)
        except NotAffineError as error:
            if error.code in ("EATSS-F031", "EATSS-F040", "EATSS-F042"):
                self._reporter.not_affine(error, node, "subscript")
                raise RefusedError from None
            variable = self._of(node) if node.kind == "name" else None
            if variable is not None and variable.role != "data":
                self._reporter.not_affine(error, node, "subscript")
                raise RefusedError from None
            return None
        if constant_value(function) is not None:
            return None
        return AffineValue(value=function, element_type=self._element(node))

    def known(self, value: Value | None, element: ElementType) -> Expression | None:
        """Return a value as an expression, if it is one and no number."""
        try:
            function = None if value is None else self._algebra.function(value)
        except (NonLinearError, TooManyPiecesError):
            return None
        if function is None or constant_value(function) is not None:
            return None
        return AffineValue(value=function, element_type=element)

    def _element(self, node: Node) -> ElementType:
        element = node.type.element
        if element is None:
            self._refuse(
                "EATSS-F040",
                node,
                f"type '{node.type.spelling or 'void'}' is outside the subset",
                "use float, double, _Float16 or an integer type",
            )
        return element

    def _check_arithmetic(self, node: Node) -> None:
        if node.type.kind == "pointer" or any(
            child.type.kind in ("pointer", "array") for child in node.children
        ):
            self._refuse(
                "EATSS-F024",
                node,
                f"pointer arithmetic {self._quoted(node)}",
                "use subscripts: A[i] instead of *(A + i)",
            )
        self._element(node)

    def _leaf(self, node: Node) -> Expression:  # noqa: PLR0911 - one for each form
        kind = node.kind
        if kind in ("int", "float"):
            return self._literal(node)
        if kind == "kept":
            self._kept = self._kept or self._read_access(node.children[0])
            return self._kept
        if kind == "name" or kind in ELEMENTS:
            return self._read_access(node)
        if kind == "unary":
            operand = as_float(self.read(node.children[0]), node.children[0])
            return rounded(Unary(operator=node.op, operand=operand), node)
        if kind == "cast":
            return self._cast(node)
        if kind == "conditional":
            return self._choose(node)
        if kind == "call":
            return self._call(node)
        return self._refuse_kind(node)

    def _literal(self, node: Node) -> Expression:
        element = self._element(node)
        written = self._reporter.text(node)
        if element is ElementType.HALF:
            single = ElementType.FLOAT
            text = literal_text(node, single, written)
            return Cast(element_type=element, operand=Literal(text=text, element_type=single))
        return Literal(text=literal_text(node, element, written), element_type=element)

    def _cast(self, node: Node) -> Expression:
        if not node.type.is_arithmetic:
            self._refuse(
                "EATSS-F024",
                node,
                f"conversion to '{node.type.spelling or 'void'}'",
                "convert arithmetic values only",
            )
        element, (operand,) = self._element(node), node.children
        value = self.read(operand)
        if element is ElementType.FLOAT and operand.type.element is ElementType.HALF:
            return as_float(value, operand)
        return Cast(element_type=element, operand=value)

    def _call(self, node: Node) -> Expression:
        callee, *arguments = node.children
        known = callee.kind == "name" and is_library_function(callee)
        if node.name not in _PURE_FUNCTIONS or not known:
            code, message, hint = call_refusal(callee)
            self._refuse(code, node, message, hint)
        self._element(node)
        values = tuple(as_float(self._try(a), a) for a in arguments)
        return rounded(Call(function=node.name, arguments=values), node)

    def _refuse_kind(self, node: Node) -> NoReturn:
        if node.kind == "broken" and node.name:
            self._refuse_declaration(node)
        code, message, hint = REFUSED_EXPRESSIONS.get(node.kind, UNSUPPORTED_EXPRESSION)
        self._refuse(code, node, f"{message}: {self._quoted(node)}", hint)

    # -- references -------------------------------------------------------------------

    def _read_access(self, node: Node) -> Read:
        self.add_access(node, AccessKind.READ)
        return Read(access=len(self.accesses) - 1)

    def add_access(self, node: Node, kind: AccessKind) -> RawAccess:
        """Read a reference and add it to the statement's."""
        variable, subscripts = self._resolve(node)
        access = RawAccess(
            variable=variable, kind=kind, subscripts=subscripts, node=node, domain=self._domain
        )
        self.accesses.append(access)
        return access

    def _resolve(self, node: Node) -> tuple[Variable, tuple[Value, ...]]:
        whole = node
        indices: list[Node | None] = []
        while node.kind in ELEMENTS:
            if node.kind == "dereference":
                indices.append(None)
                node = node.children[0]
                continue
            base, index = node.children
            if base.type.is_integer:
                base, index = index, base
            indices.append(index)
            node = base
        variable = self._base_variable(node)
        self._check_variable(variable, node)
        if len(indices) != len(variable.shape.sizes):
            self._refuse(
                "EATSS-F024",
                whole,
                f"{self._quoted(whole)} is an array, not an element: "
                f"'{variable.name}' has {len(variable.shape.sizes)} dimensions",
                "give all subscripts",
            )
        subscripts = [self._subscript(index) for index in reversed(indices)]
        if any(s is None for s in subscripts):
            raise RefusedError
        return variable, tuple(s for s in subscripts if s is not None)

    def _subscript(self, index: Node | None) -> Value | None:
        if index is None:
            return Poly.constant(0)
        try:
            with self._ranges.stating():
                value = self._affine.value(index, self._domain)
            self._refuse_product_of_counters(index, value)
            return value
        except NotAffineError as error:
            self._reporter.not_affine(error, index, "subscript")
            return None

    def _refuse_product_of_counters(self, index: Node, value: Value) -> None:
        """Products with parameters may be a linearised array, products of counters never are."""
        counters = set(self._affine.active.values())
        if isinstance(value, Poly) and any(
            sum(name in counters for name in monomial) > 1 for monomial in value.terms
        ):
            raise NotAffineError(index, "product of counters")

    def _base_variable(self, node: Node) -> Variable:
        is_name = node.kind in ("name", "variable")
        variable = self._of(node) if is_name else None
        if variable is not None:
            return variable
        if node.kind == "binary":
            self._check_arithmetic(node)
        if node.kind in ("cast", "step"):
            self._refuse(
                "EATSS-F024",
                node,
                f"pointer arithmetic, or an array seen through another type: {self._quoted(node)}",
                "declare the array with the shape it is used with, and use subscripts",
            )
        return self._refuse_kind(node)

    def _refuse_declaration(self, node: Node) -> NoReturn:
        self._refuse(
            "EATSS-F007",
            node,
            f"the declaration of '{node.name}' is not understood",
            "declare it with a known type; pass -I for missing headers",
        )

    def _check_variable(self, variable: Variable, node: Node) -> None:
        shape = variable.shape
        if shape.invalid:
            self._refuse_declaration(node)
        if shape.qualified_volatile:
            self._refuse("EATSS-F040", node, f"'{variable.name}' is volatile", "drop 'volatile'")
        if shape.pointer_to_pointer:
            self._refuse(
                "EATSS-F024",
                node,
                f"'{variable.name}' is a pointer to pointers, whose rows may overlap",
                f"use an array: double (*{variable.name})[N] or double {variable.name}[n][m]",
            )
        if shape.element.element is None:
            is_record = shape.element.kind == "record"
            self._refuse(
                "EATSS-F040",
                node,
                f"'{variable.name}' has {'elements of ' if shape.sizes else ''}type "
                f"'{shape.element.spelling or 'void'}'" + (", a struct or union" * is_record),
                "use float, double, _Float16 or an integer type",
            )


# -- updates -----------------------------------------------------------------------------------
# What an assignment stores, in the arms of conditions that are not affine: a choice of values.
#
# ``if (c) x = v; else x = w;`` is ``x = c ? v : w``, and an arm that is not there keeps ``x``.
# Where all arms add to ``x``, the choice is of what is added: ``x += c ? v : -0.0``, which is a
# sum.
#
# An update is an ``assign`` or ``step`` of the tree, or a ``conditional`` of updates, with ``kept``
# or ``any`` where ``x`` is kept, or, if nobody sees it, anything will do.


_NEUTRAL = {"+": 0, "-": 0, "*": 1, "/": 1}
"""What changes no number. To a sum it is added as -0.0, since -0.0 + 0.0 is 0.0."""


@frozen
class Guard:
    """A condition that is not affine around statements, and whether they run where it holds.

    ``declared`` are the variables of its arms, which nobody sees where they are not taken.
    """

    test: Node
    holds: bool
    declared: frozenset[Variable]


def guarded(update: Node, variable: Variable, guards: tuple[Guard, ...]) -> Node:
    """Return an update that happens only where all conditions around it say so."""
    for guard in reversed(guards):
        cursor = guard.test.cursor
        other = Node("any" if variable in guard.declared else "kept", cursor, NO_TYPE)
        arms = [update, other] if guard.holds else [other, update]
        update = Node("conditional", cursor, NO_TYPE, [guard.test, *arms])
    return update


def update_of(node: Node) -> Node | None:
    """Return the update that a statement is, if it sets one element or keeps it."""
    while node.kind == "compound" and len(node.children) == 1:
        (node,) = node.children
    if node.kind == "step" or (node.kind == "assign" and not node.children[1].has(*WRITES)):
        return node
    if node.kind != "if":
        return None
    test, *arms = node.children
    found = [one for arm in arms if (one := update_of(arm)) is not None]
    targets = [*map(target_of, found)]
    if len(found) < len(arms) or not all(_same(one, targets[0]) for one in targets):
        return None
    kept = Node("kept", test.cursor, NO_TYPE)
    return Node("conditional", test.cursor, NO_TYPE, [test, *found, kept][:3])


def target_of(update: Node) -> Node:
    """Return what an update sets."""
    while update.kind == "conditional":
        update = update.children[1]
    return update.children[0]


def _same(one: Node, other: Node) -> bool:
    """Return whether two references are written alike."""
    return (
        (one.kind, one.op, one.name, one.value) == (other.kind, other.op, other.name, other.value)
        and one.declaration == other.declaration
        and len(one.children) == len(other.children)
        and all(map(_same, one.children, other.children))
    )


@frozen
class Place:
    """What an update sets: an element of some type."""

    node: Node
    type: CType

    @property
    def kept(self) -> Node:
        """What it was before."""
        return Node("kept", self.node.cursor, self.type, [self.node])

    def stored(self, update: Node) -> Node:
        """Return the expression that an update stores."""
        leaves = [leaf for leaf in _leaves(update) if leaf.kind in WRITES]
        operator, *operators = dict.fromkeys(map(operator_of, leaves))
        common, *commons = dict.fromkeys(map(self._common, leaves))
        is_floating = common.kind == "floating"
        # a large integer is another one after a round trip
        if (
            operators
            or commons
            or operator not in _NEUTRAL
            or (is_floating and self.type.is_integer)
        ):
            return _chosen(update, self._whole)
        neutral = self._number(_NEUTRAL[operator], common)
        if operator == "+" and is_floating:
            neutral = Node("unary", self.node.cursor, neutral.type, [neutral], op="-")
        right = _chosen(update, lambda leaf: self._right(leaf) if leaf.kind in WRITES else neutral)
        return self._compound(operator, right, common)

    def _common(self, leaf: Node) -> CType:
        """Return the type in which ``x operator= value`` is computed; clang has converted it."""
        is_own = leaf.kind == "step" or leaf.op in ("", "<<", ">>")
        found = self.type if is_own else leaf.children[1].type
        return INT if is_own and found.is_integer and found.bits < 32 else found

    def _number(self, value: int, common: CType) -> Node:
        """Return a number in the type in which operands of a type are computed."""
        if common.element is ElementType.HALF:
            return Node("float", self.node.cursor, FLOAT, value=float(value))
        return converted(Node("int", self.node.cursor, INT, value=value), common)

    def _right(self, leaf: Node) -> Node:
        if leaf.kind == "step":
            return self._number(1, self._common(leaf))
        value = leaf.children[1]
        is_half = leaf.op and value.type.element is ElementType.HALF
        return converted(value, FLOAT) if is_half else value

    def _compound(self, operator: str, right: Node, common: CType) -> Node:
        computed = FLOAT if common.element is ElementType.HALF else common
        left = converted(converted(self.kept, common), computed)
        result = Node("binary", self.node.cursor, computed, [left, right], op=operator)
        return converted(converted(result, common), self.type)

    def _whole(self, leaf: Node) -> Node:
        if leaf.kind == "kept":
            return self.kept
        if leaf.kind == "any":
            return converted(self._number(0, self.type), self.type)
        operator, right = operator_of(leaf), self._right(leaf)
        return self._compound(operator, right, self._common(leaf)) if operator else right


def operator_of(update: Node) -> str:
    """Return the operator by which an update changes what it sets."""
    return update.op[-1] if update.kind == "step" else update.op


def converted(node: Node, kind: CType) -> Node:
    """Return a value as one of a type."""
    is_same = node.type.element is kind.element
    return node if is_same else Node("cast", node.cursor, kind, [node], implicit=True)


def _leaves(update: Node) -> Iterator[Node]:
    if update.kind == "conditional":
        for arm in update.children[1:]:
            yield from _leaves(arm)
    else:
        yield update


def _chosen(update: Node, value: Callable[[Node], Node]) -> Node:
    """Return the choice between the values of the leaves of an update."""
    if update.kind != "conditional":
        return value(update)
    first, second = (_chosen(arm, value) for arm in update.children[1:])
    return replace(update, type=first.type, children=[update.children[0], first, second])
