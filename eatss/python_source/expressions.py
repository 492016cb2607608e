"""Python expressions in, C expressions with the same values out."""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from eatss.python_source.annotations import Weak, is_floating, one_type, to_one_type, type_name
from eatss.python_source.c_text import Piece, joined, listed
from eatss.python_source.calls import CallReader
from eatss.python_source.local_variables import Scope
from eatss.python_source.operations import OperationReader
from eatss.python_source.text import Code, Findings, RefusedError
from eatss.python_source.values import (
    LEAST,
    PRECEDENCE,
    UNARY,
    Value,
    chosen,
    compared,
    converted,
    inside,
    literal,
)

_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip
_CONSTANTS = {f"{module}.{name}": value for module in ("math", "numpy") for name, value in (
    ("pi", math.pi), ("e", math.e), ("tau", math.tau)
)}  # fmt: skip


class ExpressionReader:
    """Reads the expressions of one function."""

    def __init__(self, scope: Scope, findings: Findings) -> None:
        self._scope = scope
        self._findings = findings
        self._operations = OperationReader(scope, findings)
        self._calls = CallReader(scope, findings, self)

    def value(self, node: ast.expr) -> Value:
        """Read an expression whose value is a number.

        Raises:
            RefusedError: something in it was refused; the finding is recorded.
        """
        return self._value(node).at(self._findings.text.span(node))

    def values(self, nodes: Sequence[ast.expr]) -> list[Value]:
        """Read all of some expressions, so that all findings are recorded.

        Raises:
            RefusedError: something in them was refused.
        """
        found: list[Value] = []
        for node in nodes:
            with suppress(RefusedError):
                found.append(self.value(node))
        if len(found) < len(nodes):
            raise RefusedError
        return found

    def _value(self, node: ast.expr) -> Value:  # noqa: PLR0911 - one for each form
        if isinstance(node, ast.Constant):
            return self._constant(node)
        if isinstance(node, ast.Name):
            return self._name(node)
        if isinstance(node, ast.Subscript):
            return self.element(node)
        if isinstance(node, ast.BinOp):
            left, right = self.values([node.left, node.right])
            return self._operations.binary(node, left, node.op, right).result
        if isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.Not):
            return self._operations.unary(node, self.value(node.operand))
        if isinstance(node, ast.IfExp):
            return self._choice(node)
        if isinstance(node, ast.Call):
            return self._calls.call(node)
        if isinstance(node, ast.Attribute):
            return self._attribute(node)
        name, hint = _FORMS.get(type(node), ("construct outside the subset", "use arithmetic"))
        raise self._findings.refusal(Code.EXPRESSION, node, name, hint)

    # -- leaves -----------------------------------------------------------------------

    def _constant(self, node: ast.Constant) -> Value:
        if type(node.value) not in (int, float):
            raise self._findings.refusal(
                Code.EXPRESSION, node, f"{node.value!r} is no number",
                "write 1.0 if … else 0.0" if isinstance(node.value, bool) else "use numbers",
            )  # fmt: skip
        number = node.value
        assert isinstance(number, int | float)
        return self._findings.checked(node, lambda: literal(number))

    def _attribute(self, node: ast.Attribute) -> Value:
        full = self._scope.meaning(node)
        if full in _CONSTANTS:
            return literal(_CONSTANTS[full])
        raise self._findings.refusal(
            Code.EXPRESSION, node, f"attribute '{ast.unparse(node)}'",
            "sizes are parameters: n: eatss.Param" if node.attr in ("shape", "size") else
            "use parameters, arrays, numbers and functions of math and numpy",
        )  # fmt: skip

    def _name(self, node: ast.Name) -> Value:
        scope, name = self._scope, node.id
        if name in scope.counters:
            return Value(piece=Piece(name), type=Weak.INT)
        if name in scope.past:
            raise self._findings.refusal(
                Code.COUNTER, node, f"counter '{name}' is used outside its loop",
                "write the value it has there, for example the end of the range less 1",
            )  # fmt: skip
        argument, local = scope.arguments.get(name), scope.locals.get(name)
        if (argument is not None and argument.kind == "array") or (local and local.n_dims):
            raise self._findings.refusal(
                Code.EXPRESSION, node, f"'{name}' is an array, not an element of it",
                "work on elements, in loops over their subscripts",
            )  # fmt: skip
        if argument is not None:
            kind = Weak.INT if argument.kind == "param" else argument.element_type
            return Value(piece=Piece(name), type=kind)
        if local is not None:
            return Value(piece=Piece(name), type=local.type, weak=local.weak)
        if name in scope.assigned or name in scope.refused:
            raise RefusedError  # its own assignment was refused
        raise self._findings.refusal(
            Code.UNKNOWN_NAME, node,
            f"'{name}' is neither a parameter of the function nor assigned in it",
            f"add a parameter, {name}: eatss.Param or {name}: eatss.f64, or write the number: "
            "what surrounds the function is not read",
        )  # fmt: skip

    def element(self, node: ast.Subscript) -> Value:
        """Read ``A[i, j]`` or ``A[i][j]``."""
        groups: list[ast.expr] = []
        base: ast.expr = node
        while isinstance(base, ast.Subscript):
            groups.insert(0, base.slice)
            base = base.value
        indices = [
            index
            for group in groups
            for index in (group.elts if isinstance(group, ast.Tuple) else [group])
        ]
        name = base.id if isinstance(base, ast.Name) else ""
        argument, local = self._scope.arguments.get(name), self._scope.locals.get(name)
        n_dims = len(argument.extents) if argument else local.n_dims if local else 0
        if not n_dims:
            if isinstance(base, ast.Attribute) or (not argument and not local):
                self.value(base)
            raise self._findings.refusal(
                Code.SUBSCRIPT, base, f"'{ast.unparse(base)}' is no array",
                f'annotate it: {name or "A"}: eatss.f64["n"]',
            )  # fmt: skip
        subscripts = self._subscripts(indices)
        if len(indices) != n_dims:
            raise self._findings.refusal(
                Code.SUBSCRIPT, node,
                f"'{name}' has {n_dims} dimension{'s' * (n_dims > 1)}, and {len(indices)} "
                f"subscript{'s' * (len(indices) > 1)} {'are' if len(indices) > 1 else 'is'} given",
                "give all subscripts: work is on elements",
            )  # fmt: skip
        kind = argument.element_type if argument else local.type if local else Weak.FLOAT
        text = joined(name, *(joined("[", one, "]") for one in subscripts))
        return Value(piece=text, type=kind)

    def _subscripts(self, indices: Sequence[ast.expr]) -> list[Piece]:
        for index in indices:
            if isinstance(index, ast.Slice | ast.Starred) or (
                isinstance(index, ast.Constant) and index.value in (None, ...)
            ):
                raise self._findings.refusal(
                    Code.SUBSCRIPT, index, "a part of an array, not an element of it",
                    "work on elements, in loops over their subscripts",
                )  # fmt: skip
        values = self.values(indices)
        for index, value in zip(indices, values, strict=True):
            if is_floating(value.type):
                raise self._findings.refusal(
                    Code.SUBSCRIPT, index, "subscript is no integer",
                    "divide with // where an integer is meant",
                )  # fmt: skip
            if value.number is not None and value.number < 0:
                raise self._findings.refusal(
                    Code.SUBSCRIPT, index, "a negative subscript counts from the end in Python",
                    f"write the size: A[n - {-value.number}] for A[{value.number}]",
                )  # fmt: skip
        return [value.piece for value in values]

    # -- choices and conditions -------------------------------------------------------

    def _choice(self, node: ast.IfExp) -> Value:
        condition: Piece | None = None
        with suppress(RefusedError):
            condition = self.condition(node.test)
        yes, no = self.unified(node, self.values([node.body, node.orelse]), "the two values")
        if condition is None:
            raise RefusedError
        text = joined(condition, " ? ", inside(yes, 4), " : ", inside(no, 3))
        weak, is_zero = chosen((yes, no), yes.type)
        return Value(
            piece=text, type=yes.type, precedence=PRECEDENCE["?"], weak=weak, is_zero=is_zero
        )

    def unified(self, node: ast.expr, values: list[Value], what: str) -> list[Value]:
        """Return values as values of one type, which a choice between them has.

        Raises:
            RefusedError: they have none.
        """
        kind = one_type([value.candidate for value in values], mixes=self._scope.mixes)
        if kind is None:
            names = " and ".join(dict.fromkeys(type_name(value.type) for value in values))
            hint = to_one_type(*(value.type for value in values))
            raise self._findings.refusal(Code.TYPES, node, f"{what} are of types {names}", hint)
        assert kind is not None
        return [self._findings.checked(node, partial(converted, value, kind)) for value in values]

    def condition(self, node: ast.expr, around: int = LEAST) -> Piece:
        """Read a condition; in parentheses where the operator around it wants them.

        Raises:
            RefusedError: something in it was refused.
        """
        piece, precedence = self._condition(node)
        mixed = {precedence, around} == {PRECEDENCE["&&"], PRECEDENCE["||"]}
        if precedence < around or mixed:
            piece = joined("(", piece, ")")
        return piece.at(self._findings.text.span(node))

    def _condition(self, node: ast.expr) -> tuple[Piece, int]:
        if isinstance(node, ast.BoolOp):
            sign = "&&" if isinstance(node.op, ast.And) else "||"
            parts = [self.condition(one, PRECEDENCE[sign]) for one in node.values]
            return listed(parts, f" {sign} "), PRECEDENCE[sign]
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return joined("!(", self.condition(node.operand), ")"), UNARY
        if isinstance(node, ast.Compare):
            return self._comparison(node)
        if isinstance(node, ast.Constant) and isinstance(node.value, bool):
            raise self._findings.refusal(
                Code.CONDITION, node, "a condition that is always the same"
            )
        value = self.value(node)
        if is_floating(value.type):
            raise self._findings.refusal(
                Code.CONDITION, node, "a number in the place of a condition",
                "compare it: x != 0.0",
            )  # fmt: skip
        level = PRECEDENCE["!="]
        return joined(inside(value, level + 1), " != 0"), level

    def _comparison(self, node: ast.Compare) -> tuple[Piece, int]:
        for operator in node.ops:
            if type(operator) not in _COMPARISONS:
                raise self._findings.refusal(
                    Code.CONDITION, node, "'is' and 'in' compare objects", "compare numbers"
                )
        values = self.values([node.left, *node.comparators])
        parts = []
        for left, operator, right in zip(values, node.ops, values[1:], strict=False):
            with self._findings.clashes(Code.TYPES, node):
                parts.append(compared(left, _COMPARISONS[type(operator)], right))
        if len(parts) > 1:
            return listed(parts, " && "), PRECEDENCE["&&"]
        return parts[0], PRECEDENCE[_COMPARISONS[type(node.ops[0])]]


_FORMS: dict[type[ast.expr], tuple[str, str]] = {
    ast.NamedExpr: ("assignment inside an expression", "write it as a statement of its own"),
    ast.Lambda: ("lambda", "write the expression where it is used"),
    ast.ListComp: ("list comprehension", "write it as a loop"),
    ast.SetComp: ("set comprehension", "write it as a loop"),
    ast.DictComp: ("dictionary comprehension", "write it as a loop"),
    ast.GeneratorExp: ("generator expression", "write it as a loop"),
    ast.List: ("list", "use an array"),
    ast.Tuple: ("tuple", "use elements of arrays"),
    ast.Dict: ("dictionary", "use an array"),
    ast.Set: ("set", "use an array"),
    ast.Await: ("await", "use arithmetic"),
    ast.Yield: ("yield", "assign results to an array"),
    ast.YieldFrom: ("yield", "assign results to an array"),
    ast.JoinedStr: ("string", "use numbers"),
    ast.Starred: ("starred expression", "use elements of arrays"),
    ast.Compare: ("a condition in the place of a number", "write 1.0 if … else 0.0"),
    ast.BoolOp: ("a condition in the place of a number", "write 1.0 if … else 0.0"),
    ast.UnaryOp: ("a condition in the place of a number", "write 1.0 if … else 0.0"),
}
