"""Reads expressions with their accesses, and what assignments store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import NoReturn

import islpy as isl

from eatss.base.frozen import complete, frozen
from eatss.frontend.affine import Common, RawAccess, RegionReader
from eatss.frontend.clang import FLOAT, INT, NO_TYPE, CType
from eatss.frontend.declarations import Variable
from eatss.frontend.refusals import NotAffineError, is_library_function
from eatss.frontend.source import RefusedError
from eatss.frontend.tree import ELEMENTS, TRUTHS, Node, chain, converted, number
from eatss.frontend.values import Poly, Value
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
    as_half,
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
    match value:
        case Cast(operand=Literal(text=text, element_type=kind) as literal):
            with suppress(ValueError, OverflowError):
                number = float(text.rstrip("fFuUlL"))
                if as_half(number) == number:
                    is_float = kind is ElementType.FLOAT
                    made = Literal(f"{number!r}f", ElementType.FLOAT)
                    return literal if is_float else made
    return Cast(ElementType.FLOAT, value)


def rounded(value: Expression, node: Node) -> Expression:
    """Return what an operator makes of such operands, rounded where its node is a half."""
    if node.type.element is not ElementType.HALF:
        return value
    return Cast(ElementType.HALF, value)


_SUFFIXES = {ElementType.UINT32: "u", ElementType.INT64: "L", ElementType.UINT64: "UL"}


def literal_text(node: Node, element: ElementType, written: str) -> str:
    """Return a C spelling of a literal: as written where it stands there, else from its value."""
    value = node.value or 0
    if not element.is_floating:
        return f"{int(value)}{_SUFFIXES.get(element, '')}"
    is_single = element is ElementType.FLOAT
    digits = written.rstrip("fF") if is_single else written
    with suppress(ValueError, OverflowError):
        known = as_single(float(digits)) if is_single else float(digits)
        if known == value and digits[0] in "0123456789." and is_single == (digits != written):
            return written
    return single_text(value) + "f" if is_single else repr(float(value))


_PURE_FUNCTIONS = frozenset(
    {
        *MATH_FUNCTIONS,
        *(f"{name}f" for name in MATH_FUNCTIONS),
        *("abs", "labs", "llabs", "min", "max", "floord", "ceild"),
    }
)


class ExpressionReader(RegionReader):
    """Reads the expressions of one statement and gathers its references."""

    def __init__(self, common: Common, domain: isl.Set) -> None:
        super().__init__(common)
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
        spine = []
        while node.kind == "binary" and node.op != ",":
            node = self._with_guards(node)
            if node.kind != "binary":
                break
            self._check_arithmetic(node)
            spine.append(node)
            node = node.children[0]
        result = self._try(node) if spine else self._leaf(node)
        for parent in reversed(spine):
            left, right = as_float(result, parent.children[0]), self._operand(parent.children[1])
            result = rounded(Binary(parent.op, left, right), parent)
        return result

    def _try(self, node: Node) -> Expression:
        """Read an operand; after a refusal go on with the others to find all that is wrong."""
        try:
            return self.read(node)
        except RefusedError:
            self.failed = True
            return Literal("0", ElementType.INT32)

    def _operand(self, node: Node) -> Expression:
        return as_float(self._try(node), node)

    def _affine_condition(self, test: Node) -> isl.Set | None:
        with suppress(NotAffineError):
            if self._affine.is_index(test):
                return self._affine.condition(test, self._domain)
        return None

    def _with_guards(self, node: Node) -> Node:
        """Return ``x && y`` as ``x ? y != 0 : 0``, and ``||`` likewise, where ``x`` guards reads.

        That is where ``x`` is affine: what ``y`` reads is read only where ``x`` says so.
        """
        if node.op not in ("&&", "||"):
            return node
        last, *parts = reversed(chain(node, node.op))
        guards_reads = False
        zero = Node("int", node.cursor, node.type, value=0)
        known = replace(zero, value=int(node.op == "||"))
        found = last if last.op in TRUTHS else replace(node, op="!=", children=[last, zero])
        for part in parts:
            if self._affine_condition(part) is not None:
                guards_reads = guards_reads or found.has(*ELEMENTS)
                arms = [found, known] if node.op == "&&" else [known, found]
                found = replace(node, kind="conditional", op="", children=[part, *arms])
            else:
                found = replace(node, children=[part, found])
        return found if guards_reads else node

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
        """Read a choice; references in an arm are made only where it is taken.

        An arm that is taken in a place of no simple form, or never, counts as taken everywhere.
        """
        test, *arms = node.children
        condition, domain, values = self._operand(test), self._domain, []
        for arm, holds in zip(arms, (True, False), strict=True):
            taken = coalesced(domain.intersect(self.where(test, holds=holds)))
            if taken.n_basic_set() == 1 and not taken.is_empty():
                self._domain = taken
            values.append(self._try(arm))
            self._domain = domain
        return Select(condition, values[0], values[1])

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
            variable = self._of(node) if node.kind == "name" else None
            is_index = variable is not None and variable.role != "data"
            if is_index or error.code in ("EATSS-F012", "EATSS-F031", "EATSS-F040"):
                self._reporter.not_affine(error, node, "subscript")
                raise RefusedError from None
            return None
        return self.known(function, self._element(node))

    def known(self, value: Value, element: ElementType) -> Expression | None:
        """Return a value as an expression, if it is one and no number."""
        with suppress(NotAffineError):
            function = self._algebra.function(value)
            if constant_value(function) is None:
                return AffineValue(function, element)
        return None

    def _element(self, node: Node) -> ElementType:
        return node.type.element or self._refuse("type", node, type=node.type.spelling or "void")

    def _check_arithmetic(self, node: Node) -> None:
        if any(one.type.kind in ("pointer", "array") for one in (node, *node.children)):
            self._refuse("pointer", node)
        self._element(node)

    def _leaf(self, node: Node) -> Expression:  # noqa: PLR0911 - one for each form
        match node.kind:
            case "int" | "float":
                return self._literal(node)
            case "kept":
                self._kept = self._kept or self._read_access(node.children[0])
                return self._kept
            case "name" | "subscript" | "dereference":
                return self._read_access(node)
            case "unary":
                (part,) = node.children
                value = as_float(self.read(part), part)
                return rounded(Unary(node.op, value), node)
            case "cast":
                return self._cast(node)
            case "conditional":
                return self._choose(node)
            case "call":
                return self._call(node)
        return self._refuse_node(node)

    def _literal(self, node: Node) -> Expression:
        element = self._element(node)
        is_half = element is ElementType.HALF
        kind = ElementType.FLOAT if is_half else element
        text = literal_text(node, kind, self._reporter.text(node))
        literal = Literal(text, kind)
        return Cast(element, literal) if is_half else literal

    def _cast(self, node: Node) -> Expression:
        if not node.type.is_arithmetic:
            self._refuse("conversion", node, type=node.type.spelling or "void")
        element, (operand,) = self._element(node), node.children
        value = self.read(operand)
        if element is ElementType.FLOAT and operand.type.element is ElementType.HALF:
            return as_float(value, operand)
        return Cast(element, value)

    def _call(self, node: Node) -> Expression:
        callee, *arguments = node.children
        known = callee.kind == "name" and is_library_function(callee)
        if node.name not in _PURE_FUNCTIONS or not known:
            self._refuse_node(node)
        self._element(node)
        values = tuple(map(self._operand, arguments))
        return rounded(Call(node.name, values), node)

    def _refuse_node(self, node: Node) -> NoReturn:
        self._reporter.refused(node)
        raise RefusedError

    # -- references -------------------------------------------------------------------

    def _read_access(self, node: Node) -> Read:
        self.add_access(node, AccessKind.READ)
        return Read(len(self.accesses) - 1)

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
            node, *index = node.children
            indices.insert(0, index[0] if index else None)
        variable = self._base_variable(node)
        self._check_variable(variable, node)
        if len(indices) != len(variable.shape.sizes):
            count = len(variable.shape.sizes)
            self._refuse("dimensions", whole, name=variable.name, count=count)
        subscripts: tuple[Value, ...] | None = complete(
            [*map(self._subscript, indices)]
        )  # all of them are read
        if subscripts is None:
            raise RefusedError
        return variable, subscripts

    def _subscript(self, index: Node | None) -> Value | None:
        """Read a subscript; ``None`` if it is refused.

        Products with parameters may be a linearised array, products of counters never are.
        """
        if index is None:
            return Poly.constant(0)
        counters = set(self._affine.active.values())
        try:
            with self._ranges.stating():
                value = self._affine.value(index, self._domain)
            for monomial in value.terms if isinstance(value, Poly) else ():
                if sum(name in counters for name in monomial) > 1:
                    raise NotAffineError(index, "counters")
        except NotAffineError as error:
            self._reporter.not_affine(error, index, "subscript")
            return None
        return value

    def _base_variable(self, node: Node) -> Variable:
        variable = self._of(node) if node.kind in ("name", "variable") else None
        if variable is not None:
            return variable
        if node.kind == "binary":
            self._check_arithmetic(node)
        if node.kind == "cast":
            self._refuse("pointer", node)
        return self._refuse_node(node)

    def _check_variable(self, variable: Variable, node: Node) -> None:
        shape = variable.shape
        for is_wrong, kind in (
            (shape.invalid, "unknown"),
            (shape.qualified_volatile, "volatile"),
            (shape.pointer_to_pointer, "pointers"),
            (shape.element.element is None, "type"),
        ):
            if is_wrong:
                self._refuse(kind, node, name=variable.name, type=shape.element.spelling or "void")


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
    declared: frozenset[Variable | None]


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
    if node.kind == "assign" and not node.children[1].has("assign"):
        return node
    if node.kind != "if":
        return None
    test, *arms = node.children
    found = [one for arm in arms if (one := update_of(arm)) is not None]
    targets = [*map(target_of, found)]
    if len(found) < len(arms) or any(_form(one) != _form(targets[0]) for one in targets):
        return None
    kept = Node("kept", test.cursor, NO_TYPE)
    return Node("conditional", test.cursor, NO_TYPE, [test, *found, kept][:3])


def target_of(update: Node) -> Node:
    """Return what an update sets."""
    while update.kind == "conditional":
        update = update.children[1]
    return update.children[0]


def _form(node: Node) -> tuple[object, ...]:
    """Return how a reference is written; equal for two that are written alike."""
    parts = [*map(_form, node.children)]
    return node.kind, node.op, node.name, node.value, node.declaration, parts


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
        leaves = [leaf for leaf in _leaves(update) if leaf.kind == "assign"]
        operator, *operators = dict.fromkeys(leaf.op for leaf in leaves)
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
        neutral = number(_NEUTRAL[operator], common, self.node.cursor)
        if operator == "+" and is_floating:
            neutral = Node("unary", self.node.cursor, neutral.type, [neutral], op="-")
        right = _chosen(
            update, lambda leaf: self._right(leaf) if leaf.kind == "assign" else neutral
        )
        return self._compound(operator, right, common)

    def _common(self, leaf: Node) -> CType:
        """Return the type in which ``x operator= value`` is computed; clang has converted it."""
        is_own = leaf.op in ("", "<<", ">>")
        found = self.type if is_own else leaf.children[1].type
        return INT if is_own and found.is_integer and found.bits < 32 else found

    def _right(self, leaf: Node) -> Node:
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
            return converted(number(0, self.type, self.node.cursor), self.type)
        right = self._right(leaf)
        return self._compound(leaf.op, right, self._common(leaf)) if leaf.op else right


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
