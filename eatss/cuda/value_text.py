"""Prints the value of a statement as C that is also CUDA C++, operation by operation.

The expression tree holds every conversion that C implies. The printer leaves one out exactly
where the compiler puts it back: under a binary operator or ``?:`` whose other operand has the
type already, under integer promotion, and in an assignment. In arguments of functions none is left
out, because C++ would choose another overload of ``sqrt`` for a ``float``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field

import islpy as isl

from eatss.base.frozen import fixed, frozen
from eatss.base.quotients import FORMATS
from eatss.cuda.text import converted_literal, literal_text, type_text
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
    fused_quotient,
    math_type,
)
from eatss.polyhedral.scop import Statement
from eatss.program import Apply, IntExpr, Operator
from eatss.program.expression import binds_as_a_name
from eatss.program.tokens import generated_text

_SELECT, _UNARY, _ATOM = 0, 11, 12
_LEVELS = {
    "||": 1, "&&": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6, "<": 7, "<=": 7, ">": 7, ">=": 7,
    "<<": 8, ">>": 8, "+": 9, "-": 9, "*": 10, "/": 10, "%": 10,
}  # fmt: skip
_SHIFTS = frozenset({"<<", ">>"})
_LOGICAL = frozenset({"&&", "||"})
_COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">="})
_BITWISE = frozenset({"|", "^", "&", "<<", ">>"})
_COMPOUND = frozenset({"+", "-", "*"})

_INT = ElementType.INT32
_UNSIGNED = frozenset(
    {ElementType.UINT8, ElementType.UINT16, ElementType.UINT32, ElementType.UINT64}
)
_RANKS = (
    _INT, ElementType.UINT32, ElementType.INT64, ElementType.UINT64, ElementType.HALF,
    ElementType.FLOAT, ElementType.DOUBLE,
)  # fmt: skip

_RENAMED = {"min": "eatss_min", "max": "eatss_max", "floord": "eatss_floordiv"}
_INTEGER_FUNCTIONS = {"abs": _INT, "labs": ElementType.INT64, "llabs": ElementType.INT64}


def _is_odd_constant(value: Cast) -> bool:
    """Return whether compilers warn of a constant that is stored without a conversion."""
    operand = value.operand
    if value.element_type.is_floating or not isinstance(operand, Literal | Unary):
        return False
    return isinstance(operand, Unary) or converted_literal(operand, value.element_type) is None


@fixed
class _Text:
    """C text, how tightly its outermost operator binds, and its type in C where known."""

    text: str
    level: int
    type: ElementType | None

    def above(self, level: int) -> str:
        """Return the text as an operand that has to bind at least at ``level``."""
        return self.text if self.level >= level else f"({self.text})"

    @property
    def unsigned(self) -> str:
        """The text behind a sign or a conversion: ``-(-x)``, not ``--x``."""
        text = self.above(_UNARY)
        return f"({text})" if text.startswith(("+", "-")) else text


@frozen
class ValuePrinter:
    """Prints the value of a statement, or parts of it.

    Attributes:
        statement: the statement.
        reads: the text of access ``k`` at ``k``, binding as tightly as ``A[i]``; the first, of the
            write, is what the result goes to.
        affine: returns an affine function of the statement's domain as an expression.
        types: element types of arrays by name. Of an array that is not in it, more conversions are
            written out.
        index_bits: 32 if the expressions of ``affine`` are known to be of type ``int``.
        flag: what is cleared where a quotient is not what the steps for it give, nothing if those
            by literals are tested each by itself.
        reciprocals: of accesses by number; quotients by these are such steps.
        inverts: whether all quotients are.
    """

    statement: Statement
    reads: Sequence[str]
    affine: Callable[[isl.PwAff], IntExpr]
    types: Mapping[str, ElementType] = field(default_factory=dict)
    index_bits: int = 64
    flag: str = ""
    reciprocals: Mapping[int, str] = field(default_factory=dict)
    inverts: bool = False
    _known: dict[int, tuple[Expression, _Text]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """Texts of nodes by their identity, which lasts as long as the node is kept beside."""

    def assigned(self, target: str) -> str:
        """Return ``target = value;`` where ``target`` has the type of what the statement writes.

        It is ``target += e;`` (or ``-=``, ``*=``) where the value is ``target + e`` and the sum is
        not converted.
        """
        value = self.statement.value
        if (
            isinstance(value, Binary)
            and value.operator in _COMPOUND
            and isinstance(value.left, Read)
            and self.reads[value.left.access] == target
        ):
            _, right = self.pair(value.left, value.right)
            return f"{target} {value.operator}= {right.text};"
        if isinstance(value, Cast) and not _is_odd_constant(value) and not self._of_half(value):
            value = value.operand
        if isinstance(value, AffineValue):
            function = self.affine(value.value)
            text = generated_text(function)
            chooses = isinstance(function, Apply) and function.operator is Operator.SELECT
            return f"{target} = {text[1:-1] if chooses else text};"
        return f"{target} = {self.emit(value).text};"

    def emit(self, node: Expression | _Text) -> _Text:
        """Return text whose type in C and C++ is that of the node."""
        if isinstance(node, _Text):
            return node
        if id(node) not in self._known:
            self._known[id(node)] = node, self._emitted(node)
        return self._known[id(node)][1]

    def _emitted(self, node: Expression) -> _Text:  # noqa: PLR0911 - a table
        match node:
            case Literal():
                return _literal(literal_text(node), node.element_type)
            case Read(access=access):
                array = self.statement.accesses[access].array
                return _Text(self.reads[access], _ATOM, self.types.get(array))
            case AffineValue():
                bare = self.bare(node)
                is_bare = self.index_bits == 32 and node.element_type is _INT
                return bare if is_bare else _conversion(node.element_type, bare)
            case Cast():
                return self._cast(node)
            case Unary():
                return self._unary(node)
            case Binary():
                return self._chain(node)
            case Select():
                return self._select(node)
            case Call():
                return self._call(node)

    # -- leaves ---------------------------------------------------------------------

    def bare(self, node: AffineValue) -> _Text:
        """Return an affine value as it is printed, of some signed integer type."""
        function = self.affine(node.value)
        text = generated_text(function)
        kind = _INT if self.index_bits == 32 else ElementType.INT64
        return _Text(text if binds_as_a_name(function) else f"({text})", _ATOM, kind)

    def _of_half(self, node: Cast) -> bool:
        """Return whether a conversion is from or to a half: all of these are written out."""
        return ElementType.HALF in (node.element_type, self._inside(node)[0].type)

    def _cast(self, node: Cast) -> _Text:
        operand, kind = node.operand, node.element_type
        if isinstance(operand, Literal):
            of_half = kind is ElementType.HALF
            own = ElementType.FLOAT if of_half else kind
            text = converted_literal(operand, own)
            if text is not None:
                literal = _literal(text, own)
                return _conversion(kind, literal) if of_half else literal
        if kind is ElementType.HALF and isinstance(operand, Binary):
            halves = [self._half(part) for part in (operand.left, operand.right)]
            if operand.operator in _COMPOUND and halves[0] and halves[1]:
                joined = _joined(operand.operator, halves[0], halves[1])
                return _Text(joined.text, joined.level, kind)
        return _conversion(kind, self._inside(node)[0])

    def _half(self, node: Expression) -> _Text | None:
        """Return what becomes a float for an operation whose result becomes a half, if a half.

        A float has more than twice the bits of a half, and two: rounding twice is rounding once.
        """
        if isinstance(node, Cast) and node.element_type is ElementType.FLOAT:
            inner = self._inside(node)[0]
            return inner if inner.type is ElementType.HALF else None
        return None

    # -- operators --------------------------------------------------------------------

    def _unary(self, node: Unary) -> _Text:
        if node.operator == "!":
            operand = self._truth(node.operand)
            return _Text("!" + operand.above(_UNARY), _UNARY, _INT)
        operand = self._promoted(node.operand)
        return _Text(node.operator + operand.unsigned, _UNARY, _promotion(operand.type))

    def _chain(self, node: Binary) -> _Text:
        """Return a binary operator; left operands are not recursed into."""
        spine = [node]
        while isinstance(spine[-1].left, Binary):
            spine.append(spine[-1].left)
        left: Expression | _Text = spine[-1].left
        for one in reversed(spine):
            kind = fused_quotient(one)
            if kind is None:
                left = self._binary(one, *self._operands(one.operator, left, one.right))
            else:
                left = self._quotient(kind, left, one.right)
        return self.emit(left)

    def _binary(self, node: Binary, left: _Text, right: _Text) -> _Text:
        """Return an operation; there is a function for quotients by what has a reciprocal."""
        joined = _joined(node.operator, left, right)
        divisor = node.right.access if isinstance(node.right, Read) else -1
        inverse, kind = self.reciprocals.get(divisor, ""), joined.type
        if node.operator != "/" or kind is None or kind is not right.type:
            return joined
        if not inverse and not (self.inverts and kind.value in FORMATS):
            return joined
        texts = ", ".join(filter(None, (left.text, right.text, inverse, self.flag)))
        name = "quotient" if inverse else "divided"
        return _Text(f"eatss_{name}<{type_text(kind)}>({texts})", _ATOM, kind)

    def _quotient(self, kind: ElementType, left: Expression | _Text, right: Expression) -> _Text:
        """Return a quotient by a literal, for which there is a function."""
        texts = [self.emit(left).text, self.emit(right).text, *filter(None, [self.flag])]
        return _Text(f"eatss_quotient<{type_text(kind)}>({', '.join(texts)})", _ATOM, kind)

    def _operands(
        self, operator: str, left: Expression | _Text, right: Expression
    ) -> tuple[_Text, _Text]:
        """Return the operands of a binary operator."""
        if operator in _LOGICAL:
            return self._truth(left), self._truth(right)
        if operator in _SHIFTS:
            return self._promoted(left), self._promoted(right)
        if operator in _COMPARISONS and not isinstance(left, Cast) and not isinstance(right, Cast):
            return self._compared(left), self._compared(right)
        return self.pair(left, right)

    def pair(self, left: Expression | _Text, right: Expression) -> tuple[_Text, _Text]:
        """Return two operands that C converts to their common type.

        The tree has that conversion, so both are of one type; the conversion of one can be
        left out as long as the other is of that type as it is printed.
        """
        if isinstance(right, Cast):
            first = self._promoted(left)
            second = self._implied(right, _promotion(first.type))
            return first, second or self.emit(right)
        if isinstance(left, Cast):
            second = self.emit(right)
            first = self._implied(left, second.type) or self.emit(left)
            return first, second
        return self.emit(left), self.emit(right)

    def _implied(self, node: Cast, other: ElementType | None) -> _Text | None:
        """Return the operand of a conversion that an operand of type ``other`` implies.

        ``other`` is the type of the cast if it is not known, as the tree's operands agree.
        """
        target = node.element_type
        inner, operand = self._inside(node)
        if _is_promotion(inner.type, target):
            return inner
        if self._of_half(node) or other not in (None, target):
            return None
        if inner.type is None:
            return inner if target is ElementType.DOUBLE else None
        hidden_sign = target in _UNSIGNED and _promotion(inner.type) not in _UNSIGNED
        if hidden_sign and not isinstance(operand, Literal):
            return None  # correct, but compilers warn of it, and with reason
        return inner if _common(inner.type, target) is target else None

    def _inside(self, node: Cast) -> tuple[_Text, Expression]:
        operand = node.operand
        if isinstance(operand, AffineValue):
            return self.bare(operand), operand
        return self.emit(operand), operand

    def _promoted(self, node: Expression | _Text) -> _Text:
        """Return an operand that C promotes; the promotion itself is left out."""
        if isinstance(node, Cast):
            inner, _ = self._inside(node)
            if _is_promotion(inner.type, node.element_type):
                return inner
        return self.emit(node)

    def _compared(self, node: Expression | _Text) -> _Text:
        """Return an operand of a comparison with one of the same type."""
        if isinstance(node, AffineValue) and node.element_type not in _UNSIGNED:
            return self.bare(node)
        return self.emit(node)

    def _truth(self, node: Expression | _Text) -> _Text:
        """Return an operand that only counts as zero or not."""
        return self.bare(node) if isinstance(node, AffineValue) else self.emit(node)

    def _select(self, node: Select) -> _Text:
        """Return a choice; its arms keep their conversions, as classes may stand for them."""
        condition = self._truth(node.condition)
        yes, no = self.emit(node.if_true), self.emit(node.if_false)
        text = f"{condition.above(1)} ? {yes.above(1)} : {no.above(1)}"
        return _Text(text, _SELECT, _result(yes, no))

    def _call(self, node: Call) -> _Text:
        arguments = [self.emit(argument) for argument in node.arguments]
        texts = [argument.text for argument in arguments]
        if node.function == "ceild":
            first = f"-{arguments[0].above(_ATOM)}"
            text = f"-eatss_floordiv({first}, {', '.join(texts[1:])})"
            return _Text(text, _UNARY, _result(*arguments))
        name = _RENAMED.get(node.function, node.function)
        kind = _call_type(node.function, arguments)
        return _Text(f"{name}({', '.join(texts)})", _ATOM, kind)


def _literal(text: str, kind: ElementType) -> _Text:
    return _Text(text, _UNARY if text.startswith("-") else _ATOM, _promotion(kind))


def _conversion(kind: ElementType, operand: _Text) -> _Text:
    kinds = (kind, operand.type)
    if ElementType.HALF in kinds and not _converts_at_once(*kinds):
        operand = _conversion(ElementType.FLOAT, operand)
    return _Text(f"({type_text(kind)}){operand.unsigned}", _UNARY, kind)


def _converts_at_once(kind: ElementType, other: ElementType | None) -> bool:
    """Return whether a half becomes a type without a float between, or a type a half.

    A double does, which a float would round first.
    """
    return other in (None, ElementType.HALF, ElementType.FLOAT) or (
        other is ElementType.DOUBLE and kind is ElementType.HALF
    )


def _joined(operator: str, left: _Text, right: _Text) -> _Text:
    """Return ``left operator right`` with the parentheses that C or clarity needs."""
    level = _LEVELS[operator]
    first, second = (
        f"({one.text})" if _needs_clarity(operator, one, is_left=is_left) else one.above(least)
        for one, is_left, least in ((left, True, level), (right, False, level + 1))
    )
    kind: ElementType | None = _INT
    if operator in _SHIFTS:
        kind = _promotion(left.type)
    elif operator not in _LOGICAL and operator not in _COMPARISONS:
        kind = _result(left, right)
    return _Text(f"{first} {operator} {second}", level, kind)


def _needs_clarity(operator: str, operand: _Text, *, is_left: bool) -> bool:
    """Return whether compilers warn of an operand without parentheses."""
    level = _LEVELS[operator]
    if is_left and operand.text.startswith("!") and operator in _BITWISE | _COMPARISONS:
        return operand.level == _UNARY
    if operator in _BITWISE:
        same = is_left and operand.level == level
        return not same and operand.level < _UNARY
    if operator in _COMPARISONS:
        return operand.level in (6, 7)
    return operator == "||" and operand.level == _LEVELS["&&"]


def _promotion(kind: ElementType | None) -> ElementType | None:
    """Return the type after C's integer promotions."""
    return kind if kind is None or kind in _RANKS else _INT


def _is_promotion(kind: ElementType | None, target: ElementType) -> bool:
    return target is _INT and kind is not None and kind not in _RANKS


def _common(one: ElementType, other: ElementType) -> ElementType:
    """Return the type of C's usual arithmetic conversions (LP64)."""
    ranks = [_RANKS.index(kind) if kind in _RANKS else 0 for kind in (one, other)]
    return _RANKS[max(ranks)]


def _result(left: _Text, right: _Text, *_: _Text) -> ElementType | None:
    if left.type is None or right.type is None:
        return None
    return _common(left.type, right.type)


def _call_type(function: str, arguments: Sequence[_Text]) -> ElementType | None:
    if function in _INTEGER_FUNCTIONS:
        return _INTEGER_FUNCTIONS[function]
    if function in _RENAMED:
        return _result(arguments[0], arguments[1])
    return math_type(function)
