"""Reads expressions with their accesses, and what assignments store."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import NoReturn

import islpy as isl

from eatss.base.frozen import frozen
from eatss.base.trees import Parts
from eatss.frontend.affine import AffineReader, RawAccess, RegionReader
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

    def choose(
        self,
        test: Node,
        if_true: Callable[[], Expression],
        if_false: Callable[[], Expression],
    ) -> Select:
        """Read a choice between what two functions read."""
        condition = as_float(self._try(test), test)
        with self._within(self.where(test, holds=True)):
            first = if_true()
        with self._within(self.where(test, holds=False)):
            second = if_false()
        return Select(condition=condition, if_true=first, if_false=second)

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
        if kind == "name" or kind in ELEMENTS:
            return self._read_access(node)
        if kind == "unary":
            operand = as_float(self.read(node.children[0]), node.children[0])
            return rounded(Unary(operator=node.op, operand=operand), node)
        if kind == "cast":
            return self._cast(node)
        if kind == "conditional":
            test, if_true, if_false = node.children
            return self.choose(test, lambda: self._try(if_true), lambda: self._try(if_false))
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
        element = self._element(node)
        return Cast(element_type=element, operand=self.read(node.children[0]))

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


_NEUTRAL = {"+": 0, "-": 0, "*": 1, "/": 1}
"""What changes no number. To a sum it is added as -0.0, since -0.0 + 0.0 is 0.0."""


@frozen
class Store:
    """``x operator= value``; no value: ``x operator= 1``, or a number that is stored."""

    value: Node | None
    operator: str
    number: int = 1


@frozen
class Choice:
    """One of two updates; ``None`` where ``x`` is kept, or, if nobody sees it, anything will do."""

    test: Node
    if_true: Update | None
    if_false: Update | None
    keeps: bool = True


Update = Store | Choice

_UPDATES: Parts[Update] = Parts(("Update",), Update)


@frozen
class Guard:
    """A condition that is not affine around statements, and whether they run where it holds.

    ``declared`` are the variables of its arms, which nobody sees where they are not taken.
    """

    test: Node
    holds: bool
    declared: frozenset[Variable]


def guarded(update: Update, variable: Variable, guards: tuple[Guard, ...]) -> Update:
    """Return an update that happens only where all conditions around it say so."""
    for guard in reversed(guards):
        update = Choice(
            test=guard.test,
            if_true=update if guard.holds else None,
            if_false=None if guard.holds else update,
            keeps=variable not in guard.declared,
        )
    return update


def condition_of(test: Node) -> Update:
    """Return the update that sets an integer to 1 where a condition holds, else to 0."""
    one, zero = (Store(value=None, operator="", number=number) for number in (1, 0))
    return Choice(test=test, if_true=one, if_false=zero)


def update_of(node: Node) -> tuple[Node, Update] | None:
    """Return what a statement writes and how, if it sets one element or keeps it."""
    while node.kind == "compound" and len(node.children) == 1:
        (node,) = node.children
    if node.kind == "step":
        return node.children[0], Store(value=None, operator=node.op[-1])
    if node.kind == "assign":
        target, value = node.children
        if value.has(*WRITES):
            return None
        return target, Store(value=value, operator=node.op)
    if node.kind != "if":
        return None
    test, *arms = node.children
    found = [update_of(arm) for arm in arms]
    first = found[0]
    if first is None or any(one is None or not _same(one[0], first[0]) for one in found):
        return None
    others = [one[1] for one in found[1:] if one is not None]
    if_false = others[0] if others else None
    return first[0], Choice(test=test, if_true=first[1], if_false=if_false)


def _same(one: Node, other: Node) -> bool:
    """Return whether two references are written alike."""
    return (
        (one.kind, one.op, one.name, one.value) == (other.kind, other.op, other.name, other.value)
        and one.declaration == other.declaration
        and len(one.children) == len(other.children)
        and all(_same(*pair) for pair in zip(one.children, other.children, strict=True))
    )


class UpdateReader:
    """Reads what one statement stores to ``place``, an element of some type."""

    def __init__(self, reader: ExpressionReader, place: Node, element: ElementType) -> None:
        self._reader = reader
        self._place = place
        self._element = element
        self._kept: Read | None = None

    def value(self, update: Update) -> Expression:
        """Read the value.

        Raises:
            RefusedError: If something in it was refused; the finding is recorded.
        """
        stores = [one for one in _UPDATES.below(update) if isinstance(one, Store)]
        operators = {store.operator for store in stores}
        commons = {self._common(store) for store in stores}
        if len(operators) > 1 or len(commons) > 1 or not operators <= _NEUTRAL.keys():
            return self._chosen(update, self._stored, self._kept_by)
        (operator,), (common,) = operators, commons
        if common.is_floating and not self._element.is_floating:
            # a large integer is another one after a round trip
            return self._chosen(update, self._stored, self._kept_by)
        kept = self._keep()
        neutral = _number(_NEUTRAL[operator], common)
        if operator == "+" and common.is_floating:
            neutral = Unary(operator="-", operand=neutral)
        right = self._chosen(update, lambda store: self._right(store, common), lambda _: neutral)
        return self._compound(operator, kept, right, common)

    def _chosen(
        self,
        update: Update,
        stored: Callable[[Store], Expression],
        kept: Callable[[Choice], Expression],
    ) -> Expression:
        """Read an update: what is stored, and what stands for an arm that is not there."""
        if isinstance(update, Store):
            return stored(update)

        def arm(one: Update | None) -> Expression:
            return kept(update) if one is None else self._chosen(one, stored, kept)

        return self._reader.choose(
            update.test, lambda: arm(update.if_true), lambda: arm(update.if_false)
        )

    def _kept_by(self, choice: Choice) -> Expression:
        return self._keep() if choice.keeps else _zero(self._element)

    def _stored(self, store: Store) -> Expression:
        common = self._common(store)
        if not store.operator:
            return (
                self._right(store, common)
                if store.value is None
                else self._reader.read(store.value)
            )
        kept = self._keep()
        return self._compound(store.operator, kept, self._right(store, common), common)

    def _keep(self) -> Read:
        """Return the read of the element; one is enough for a statement."""
        if self._kept is None:
            self._reader.add_access(self._place, AccessKind.READ)
            self._kept = Read(access=len(self._reader.accesses) - 1)
        return self._kept

    def _common(self, store: Store) -> ElementType:
        """Return the type in which ``x operator= value`` is computed."""
        if store.value is None or store.operator in ("", "<<", ">>"):
            return _promoted(self._element)
        return store.value.type.element or _promoted(self._element)  # clang has converted it

    def _right(self, store: Store, common: ElementType) -> Expression:
        if store.value is None:
            return _number(store.number, common)
        return as_float(self._reader.read(store.value), store.value)

    def _compound(
        self, operator: str, left: Expression, right: Expression, common: ElementType
    ) -> Expression:
        """Return ``left operator right``, where both have a common type, as it is stored.

        That of halves is computed in floats and rounded. ``right`` is converted, ``left`` is not.
        """
        computed = ElementType.FLOAT if common is ElementType.HALF else common
        found = left
        for one in dict.fromkeys((common, computed)):
            if one is not self._element:
                found = Cast(element_type=one, operand=found)
        found = Binary(operator=operator, left=found, right=right)
        for one in dict.fromkeys((common, self._element)):
            if one is not computed:
                found = Cast(element_type=one, operand=found)
        return found


def _number(number: int, element: ElementType) -> Expression:
    """Return a number in the type in which operands of ``element`` are computed."""
    if element is ElementType.HALF:
        return Literal(text=f"{number}.0f", element_type=ElementType.FLOAT)
    literal = Literal(text=str(number), element_type=ElementType.INT32)
    return literal if element is ElementType.INT32 else Cast(element_type=element, operand=literal)


def _zero(element: ElementType) -> Expression:
    zero = _number(0, element)
    return Cast(element_type=element, operand=zero) if element is ElementType.HALF else zero


def _promoted(element: ElementType) -> ElementType:
    """Return the type after C's integer promotions."""
    if not element.is_floating and element.size_bytes < 4:
        return ElementType.INT32
    return element
