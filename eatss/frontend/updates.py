"""What an assignment stores, in the arms of conditions that are not affine: a choice of values.

``if (c) x = v; else x = w;`` is ``x = c ? v : w``, and an arm that is not there keeps ``x``. Where
all arms add to ``x``, the choice is of what is added: ``x += c ? v : -0.0``, which is a sum.
"""

from __future__ import annotations

from collections.abc import Callable

from eatss.base.frozen import frozen
from eatss.base.trees import Parts
from eatss.frontend.expressions import ExpressionReader, as_float
from eatss.frontend.symbols import Variable
from eatss.frontend.tree import WRITES, Node
from eatss.polyhedral.scops import (
    AccessKind,
    Binary,
    Cast,
    ElementType,
    Expression,
    Literal,
    Read,
    Unary,
)

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


def may_keep(update: Update) -> bool:
    """Return whether an update may leave what is there, where C may not even look at it."""
    return any(one.keeps and None in (one.if_true, one.if_false) for one in choices(update))


def choices(update: Update) -> list[Choice]:
    """Return the choices of an update, the outermost first."""
    return [one for one in _UPDATES.below(update) if isinstance(one, Choice)]


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
