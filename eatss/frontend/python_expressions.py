"""Python expressions in, C expressions with the same values out.

Calls are of functions of ``math`` and NumPy, of ``min``, ``max``, ``abs`` and conversions.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from eatss.frontend.python_types import (
    DOUBLE,
    ELEMENTS,
    FLOAT,
    INT,
    MATH,
    MATH_OF_TWO,
    NUMPY,
    NUMPY_OF_TWO,
    NUMPY_TYPES,
    NumberType,
    Piece,
    RefusedError,
    common_type,
    joined,
    listed,
    one_type,
    to_one_type,
)
from eatss.frontend.python_values import (
    LEAST,
    PRECEDENCE,
    UNARY,
    OperationReader,
    Value,
    cast,
    chosen,
    compared,
    converted,
    fixed,
    inside,
    literal,
    settle,
)
from eatss.polyhedral.expression import ElementType

_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip
_CONSTANTS = {f"{module}.{name}": value for module in ("math", "numpy") for name, value in (
    ("pi", math.pi), ("e", math.e), ("tau", math.tau)
)}  # fmt: skip


_FUNCTIONS = {
    ("math", 1): MATH,
    ("math", 2): MATH_OF_TWO,
    ("numpy", 1): NUMPY,
    ("numpy", 2): NUMPY_OF_TWO,
}
_KNOWN = "call functions of math and numpy, min, max and abs"
_HINTS = {
    "math.floor": "write numpy.floor, whose result is no integer, or // of integers",
    "math.ceil": "write numpy.ceil, whose result is no integer, or -(-a // b) of integers",
    "math.trunc": "write numpy.trunc, whose result is no integer",
    "numpy.maximum": "write max(a, b), or numpy.fmax(a, b)",
    "numpy.minimum": "write min(a, b), or numpy.fmin(a, b)",
    "numpy.where": "write a if condition else b",
    "builtins.int": "write numpy.int32(…) or numpy.int64(…)",
    "builtins.range": "range is for the head of a loop",
}

_OF_INTEGERS = {
    "numpy.ceil": "leave it out",
    "numpy.floor": "leave it out",
    "numpy.trunc": "leave it out",
    "numpy.fmax": "write max(a, b)",
    "numpy.fmin": "write min(a, b)",
    "numpy.fmod": "write a % 3, which rounds down",
    "numpy.power": "write a ** 2",
}
"""Functions that leave integers integers in NumPy, and what says the same (see their hint)."""


_IN_FLOAT = (ElementType.FLOAT, ElementType.HALF)
"""Types for which functions are those of C for ``float``."""


class ExpressionReader(OperationReader):
    """Reads the expressions of one function."""

    def value(self, node: ast.expr) -> Value:
        """Read an expression whose value is a number.

        Raises:
            RefusedError: something in it was refused; the finding is recorded.
        """
        with self.findings.clashes("EATSS-Y022", node):
            return self._value(node).at(self.findings.text.span(node))

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
        match node:
            case ast.Constant():
                return self._constant(node)
            case ast.Name():
                return self._name(node)
            case ast.Subscript():
                return self.element(node)
            case ast.BinOp(left, operator, right):
                first, second = self.values([left, right])
                return self.binary(node, first, operator, second).result
            case ast.UnaryOp() if not isinstance(node.op, ast.Not):
                return self.unary(node, self.value(node.operand))
            case ast.IfExp():
                return self._choice(node)
            case ast.Call():
                return self._call(node)
            case ast.Attribute():
                return self._attribute(node)
        name, hint = _FORMS.get(type(node), ("construct outside the subset", "use arithmetic"))
        return self.refuse("EATSS-Y012", node, name, hint)

    # -- leaves -----------------------------------------------------------------------

    def _constant(self, node: ast.Constant) -> Value:
        if type(node.value) not in (int, float):
            self.refuse(
                "EATSS-Y012", node, f"{node.value!r} is no number",
                "write 1.0 if … else 0.0" if isinstance(node.value, bool) else "use numbers",
            )  # fmt: skip
        assert isinstance(node.value, int | float)
        return literal(node.value)

    def _attribute(self, node: ast.Attribute) -> Value:
        full = self.meaning(node)
        if full in _CONSTANTS:
            return literal(_CONSTANTS[full])
        return self.refuse(
            "EATSS-Y012", node, f"attribute '{ast.unparse(node)}'",
            "sizes are parameters: n: eatss.Param" if node.attr in ("shape", "size") else
            "use parameters, arrays, numbers and functions of math and numpy",
        )  # fmt: skip

    def _name(self, node: ast.Name) -> Value:
        name = node.id
        if name in self.counters:
            return Value(piece=Piece(name), type=INT)
        if name in self.past:
            self.refuse(
                "EATSS-Y015", node, f"counter '{name}' is used outside its loop",
                "write the value it has there, for example the end of the range less 1",
            )  # fmt: skip
        argument, local = self.arguments.get(name), self.locals.get(name)
        if (argument is not None and argument.kind == "array") or (local and local.n_dims):
            self.refuse(
                "EATSS-Y012", node, f"'{name}' is an array, not an element of it",
                "work on elements, in loops over their subscripts",
            )  # fmt: skip
        if argument is not None:
            kind = INT if argument.kind == "param" else NumberType(argument.element_type)
            return Value(piece=Piece(name), type=kind)
        if local is not None:
            return Value(piece=Piece(name), type=local.type, weak=local.weak)
        if name in self.assigned or name in self.refused:
            raise RefusedError  # its own assignment was refused
        return self.refuse(
            "EATSS-Y010", node,
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
        argument, local = self.arguments.get(name), self.locals.get(name)
        n_dims = len(argument.extents) if argument else local.n_dims if local else 0
        if not n_dims:
            if isinstance(base, ast.Attribute) or (not argument and not local):
                self.value(base)
            self.refuse(
                "EATSS-Y017", base, f"'{ast.unparse(base)}' is no array",
                f'annotate it: {name or "A"}: eatss.f64["n"]',
            )  # fmt: skip
        subscripts = self._subscripts(indices)
        if len(indices) != n_dims:
            self.refuse(
                "EATSS-Y017", node,
                f"'{name}' has {n_dims} dimension{'s' * (n_dims > 1)}, and {len(indices)} "
                f"subscript{'s' * (len(indices) > 1)} {'are' if len(indices) > 1 else 'is'} given",
                "give all subscripts: work is on elements",
            )  # fmt: skip
        kind = NumberType(argument.element_type) if argument else local.type if local else FLOAT
        text = joined(name, *(joined("[", one, "]") for one in subscripts))
        return Value(piece=text, type=kind)

    def _subscripts(self, indices: Sequence[ast.expr]) -> list[Piece]:
        for index in indices:
            if isinstance(index, ast.Slice | ast.Starred) or (
                isinstance(index, ast.Constant) and index.value in (None, ...)
            ):
                self.refuse(
                    "EATSS-Y017", index, "a part of an array, not an element of it",
                    "work on elements, in loops over their subscripts",
                )  # fmt: skip
        values = self.values(indices)
        for index, value in zip(indices, values, strict=True):
            if value.type.is_floating:
                self.refuse(
                    "EATSS-Y017", index, "subscript is no integer",
                    "divide with // where an integer is meant",
                )  # fmt: skip
            if value.number is not None and value.number < 0:
                self.refuse(
                    "EATSS-Y017", index, "a negative subscript counts from the end in Python",
                    f"write the size: A[n - {-value.number}] for A[{value.number}]",
                )  # fmt: skip
        return [value.piece for value in values]

    # -- calls -----------------------------------------------------------------------

    def _call(self, node: ast.Call) -> Value:
        """Read a call.

        Raises:
            RefusedError: the function is none that is known, or its arguments are wrong.
        """
        full = self.meaning(node.func)
        module, _, name = (full or "").rpartition(".")
        shown = ast.unparse(node.func)
        if node.keywords or any(isinstance(one, ast.Starred) for one in node.args):
            self.refuse("EATSS-Y016", node, f"call of '{shown}' with keywords or stars", _KNOWN)
        if module == "builtins" and name in ("min", "max") and len(node.args) > 1:
            return self._least(node, name)
        if full in ("builtins.abs", "numpy.abs", "numpy.absolute") and len(node.args) == 1:
            return self._absolute(node)
        if full == "builtins.float" and len(node.args) == 1:
            (value,) = self.values(node.args)
            return replace(converted(value, FLOAT), number=None)
        if module == "numpy" and name in NUMPY_TYPES and len(node.args) == 1:
            (value,) = self.values(node.args)
            return fixed(value, NumberType(ELEMENTS[NUMPY_TYPES[name]]))
        known = _FUNCTIONS.get((module, len(node.args)), {})
        if name in known:
            return self._function(node, full or "", known[name])
        return self.refuse(
            "EATSS-Y016", node, f"call of '{shown}', whose effect is not known",
            _HINTS.get(full or "", _KNOWN),
        )  # fmt: skip

    def _least(self, node: ast.Call, name: str) -> Value:
        """Read ``min`` or ``max``, which keeps the first of equals, by a macro that does so."""
        values = self.unified(node, self.values(node.args), f"the arguments of '{name}'")
        self.macros.add(name)
        text = values[0].piece
        for value in values[1:]:
            text = joined(f"{name}(", text, ", ", value.piece, ")")
        weak, is_zero = chosen(values, values[0].type)
        return Value(piece=text, type=values[0].type, weak=weak, is_zero=is_zero)

    def _absolute(self, node: ast.Call) -> Value:
        (value,) = self.values(node.args)
        kind = value.type
        if value.number is not None:
            return literal(abs(value.number))
        if kind.is_unsigned:
            return value
        function = "abs"
        if kind.is_floating:
            function = "fabsf" if kind.element in _IN_FLOAT else "fabs"
        elif kind.element is ElementType.INT64:
            function = "labs"
        text = joined(f"{function}(", value.piece, ")")
        result = Value(piece=text, type=kind, weak=value.weak, is_zero=value.is_zero)
        small = kind.element in (ElementType.INT8, ElementType.INT16, ElementType.HALF)
        return cast(result, kind) if small else result

    def _function(self, node: ast.Call, full: str, function: str) -> Value:
        """Read a function of floating-point numbers.

        Those of ``math`` take and give doubles; NumPy's keep 32 bits, and round to 16 at the end.
        """
        values = self.values(node.args)
        kind: NumberType = FLOAT
        if full.startswith("numpy."):
            kind = self._numpy_type(node, full, values)
        if kind.element in _IN_FLOAT:
            function += "f"
        arguments = []
        for value in values:
            needed = kind.element in _IN_FLOAT or value.number is not None
            one = converted(value, kind) if needed else value
            arguments.append(one.piece)
        result = Value(piece=joined(f"{function}(", listed(arguments), ")"), type=kind)
        return cast(result, kind) if kind.element is ElementType.HALF else result

    def _numpy_type(self, node: ast.Call, full: str, values: Sequence[Value]) -> NumberType:
        kind = values[0].type
        for value in values[1:]:
            kind = common_type(kind, value.type)
        with self.findings.clashes("EATSS-Y019", node):
            for value in values:
                settle(value)
        if kind.element in _IN_FLOAT:
            return kind
        if not kind.is_floating and full in _OF_INTEGERS:
            self.refuse(
                "EATSS-Y019", node,
                f"'{full}' of integers is an integer in NumPy, and a double in C",
                f"{_OF_INTEGERS[full]}, or convert with numpy.float64(…)",
            )  # fmt: skip
        if not kind.is_floating and not kind.is_weak and kind.element.size_bytes < 4:
            self.refuse(
                "EATSS-Y019", node, f"NumPy reckons with fewer than 32 bits for {kind}",
                "convert the argument, for example with numpy.float64(…)",
            )  # fmt: skip
        return DOUBLE

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
        kind = one_type([value.candidate for value in values], mixes=self.mixes)
        if kind is None:
            names = " and ".join(dict.fromkeys(str(value.type) for value in values))
            hint = to_one_type(*(value.type for value in values))
            self.refuse("EATSS-Y019", node, f"{what} are of types {names}", hint)
        return [converted(value, kind) for value in values]

    def condition(self, node: ast.expr, around: int = LEAST) -> Piece:
        """Read a condition; in parentheses where the operator around it wants them.

        Raises:
            RefusedError: something in it was refused.
        """
        piece, precedence = self._condition(node)
        mixed = {precedence, around} == {PRECEDENCE["&&"], PRECEDENCE["||"]}
        if precedence < around or mixed:
            piece = joined("(", piece, ")")
        return piece.at(self.findings.text.span(node))

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
            self.refuse("EATSS-Y023", node, "a condition that is always the same")
        value = self.value(node)
        if value.type.is_floating:
            self.refuse(
                "EATSS-Y023", node, "a number in the place of a condition",
                "compare it: x != 0.0",
            )  # fmt: skip
        level = PRECEDENCE["!="]
        return joined(inside(value, level + 1), " != 0"), level

    def _comparison(self, node: ast.Compare) -> tuple[Piece, int]:
        for operator in node.ops:
            if type(operator) not in _COMPARISONS:
                self.refuse("EATSS-Y023", node, "'is' and 'in' compare objects", "compare numbers")
        values = self.values([node.left, *node.comparators])
        parts = []
        for left, operator, right in zip(values, node.ops, values[1:], strict=False):
            with self.findings.clashes("EATSS-Y019", node):
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
