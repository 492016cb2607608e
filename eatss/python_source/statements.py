"""Python statements in, lines of C out."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from contextlib import suppress

from eatss.diagnostics import SourceSpan
from eatss.python_source.annotations import ELEMENTS, Candidate, Weak, c_type, is_floating
from eatss.python_source.c_text import CLine, Piece, joined
from eatss.python_source.expressions import ExpressionReader
from eatss.python_source.local_variables import (
    Declarations,
    Local,
    Scope,
)
from eatss.python_source.names import NUMPY_TYPES
from eatss.python_source.operations import IN_64_BITS, OPERATORS, OperationReader
from eatss.python_source.parameters import ExtentReader, check_name
from eatss.python_source.text import Code, Findings, Node, RefusedError
from eatss.python_source.values import (
    PRECEDENCE,
    Value,
    converted,
    inside,
    is_wide,
)
from eatss.scops import ElementType

_RANGE = "write for i in range(start, end) or range(start, end, step)"


class StatementReader:
    """Reads the statements of one function.

    ``lines`` is the C, ``seen`` the types of what each local is assigned, in order.
    """

    def __init__(self, scope: Scope, declared: Declarations, findings: Findings) -> None:
        self._scope = scope
        self._declared = declared
        self._findings = findings
        self._expressions = ExpressionReader(scope, findings)
        self._operations = OperationReader(scope, findings)
        self._depth = 1
        self.lines: list[CLine] = []
        self.seen: dict[str, list[Candidate]] = {}
        self.places: dict[str, list[ast.stmt]] = {}

    def read(self, body: Sequence[ast.stmt]) -> None:
        """Read statements that follow one another; what is wrong is recorded."""
        for statement in body:
            for name in self._declared.before.get(id(statement), ()):
                local = self._scope.locals.get(name)
                if local is not None:
                    self._add(statement, Piece(f"{c_type(local.type).value} {name};"))
            with suppress(RefusedError):
                self._statement(statement)

    def _add(self, node: Node, *parts: str | Piece) -> None:
        span = self._findings.text.span(node)
        piece = joined(*parts).at(span)
        self.lines.append(CLine(joined("    " * self._depth, piece), span))

    def _statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.For):
            self._for(node)
        elif isinstance(node, ast.If):
            self._if(node, "if")
        elif isinstance(node, ast.Assign):
            self._assign(node)
        elif isinstance(node, ast.AugAssign):
            self._update(node)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            if not isinstance(node.value.value, str):
                raise self._findings.refusal(
                    Code.STATEMENT, node, "statement without effect", "remove it"
                )
        elif not isinstance(node, ast.Pass):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
                shown = ast.unparse(node.value.func)
                raise self._findings.refusal(
                    Code.STATEMENT, node, f"call of '{shown}', whose effect is not known",
                    "assign results to elements of arrays",
                )  # fmt: skip
            name, hint = _FORMS.get(type(node), ("statement outside the subset", "use loops"))
            inner = [
                one for one in ast.iter_child_nodes(node) if isinstance(one, ast.stmt)
            ] if isinstance(node, ast.While | ast.With | ast.Try) else []  # fmt: skip
            self._findings.add_at(Code.STATEMENT, self._head(node), name, hint)
            self.read(inner)

    def _head(self, node: ast.stmt) -> SourceSpan:
        """Return where a refused statement stands, of a compound one its first line."""
        span = self._findings.text.span(node)
        if span.line == span.end_line:
            return span
        text = self._findings.text.line(span.line).split("#")[0].rstrip()
        return SourceSpan.in_line(span.file, span.line, span.column, len(text) + 1 - span.column)

    # -- control ----------------------------------------------------------------------

    def _for(self, node: ast.For) -> None:
        head: Piece | None = None
        counter = ""
        try:
            counter = self._counter(node.target)
        except RefusedError:
            names = (one.id for one in ast.walk(node.target) if isinstance(one, ast.Name))
            self._scope.refused.update(names)
        with suppress(RefusedError):
            head = self._head_of_loop(node, counter)
        if node.orelse:
            self._findings.add(Code.LOOP, node.orelse[0], "else of a loop", "put it after the loop")
        if head is not None:
            self._add_head(node, head)
        if counter:
            self._scope.counters.append(counter)
        self._block(node.body)
        if counter:
            self._scope.counters.remove(counter)
            self._scope.past.add(counter)
        if head is not None:
            self._add_at(node, "}")

    def _add_head(self, node: ast.For | ast.If, head: Piece) -> None:
        span = self._head(node)
        self.lines.append(CLine(joined("    " * self._depth, head.at(span), " {"), span))

    def _add_at(self, node: ast.For | ast.If, text: str) -> None:
        self.lines.append(CLine(Piece("    " * self._depth + text), self._head(node)))

    def _block(self, body: Sequence[ast.stmt]) -> None:
        self._depth += 1
        self.read(body)
        self._depth -= 1

    def _counter(self, target: ast.expr) -> str:
        if not isinstance(target, ast.Name):
            raise self._findings.refusal(Code.LOOP, target, "a loop has one counter", _RANGE)
        name = target.id
        check_name(name, target, self._findings)
        if name in self._scope.counters:
            raise self._findings.refusal(
                Code.COUNTER, target, f"'{name}' is the counter of a loop around this one",
                "choose another name",
            )  # fmt: skip
        if name in self._scope.arguments or name in self._scope.assigned:
            raise self._findings.refusal(
                Code.COUNTER, target, f"counter '{name}' is a parameter or a local as well",
                "choose another name",
            )  # fmt: skip
        return name

    def _head_of_loop(self, node: ast.For, counter: str) -> Piece:
        call = node.iter
        is_range = isinstance(call, ast.Call) and (
            self._scope.meaning(call.func) == "builtins.range"
        )
        if not isinstance(call, ast.Call) or not is_range or call.keywords:
            raise self._findings.refusal(Code.LOOP, call, "a loop over what is no range", _RANGE)
        if not 1 <= len(call.args) <= 3:
            raise self._findings.refusal(
                Code.LOOP, call, "range has one to three arguments", _RANGE
            )
        values = self._expressions.values(call.args)
        for argument, value in zip(call.args, values, strict=True):
            if is_floating(value.type):
                raise self._findings.refusal(
                    Code.LOOP, argument, "bound of a loop is no integer",
                    "divide with // where an integer is meant",
                )  # fmt: skip
            if is_wide(value):
                raise self._findings.refusal(
                    Code.NUMBER, argument,
                    f"{value.number} does not fit into the 32 bits that a counter has in C",
                )  # fmt: skip
        step = values[2].number if len(values) == 3 else 1
        if not isinstance(step, int) or step == 0:
            raise self._findings.refusal(
                Code.STEP, call.args[2], "step is no constant other than zero", "write a number"
            )
        first = values[0].piece if len(values) > 1 else Piece("0")
        last = inside(values[1 if len(values) > 1 else 0], PRECEDENCE["<"] + 1)
        down_to_zero = step < 0 and values[1].number == -1
        test = joined(" >= 0") if down_to_zero else joined(" < " if step > 0 else " > ", last)
        change = {1: "++", -1: "--"}.get(step, f" += {step}" if step > 0 else f" -= {-step}")
        return joined(
            "for (int ", counter, " = ", first, "; ", counter, test, f"; {counter}{change})"
        )

    def _if(self, node: ast.If, word: str) -> None:
        head = Piece(f"{word} (0)")
        with suppress(RefusedError):
            head = joined(f"{word} (", self._expressions.condition(node.test), ")")
        self._add_head(node, head)
        self._block(node.body)
        orelse = node.orelse
        if len(orelse) == 1 and isinstance(orelse[0], ast.If) and not self._declared.before.get(
            id(orelse[0])
        ):  # fmt: skip
            self._if(orelse[0], "} else if")
            return
        if orelse:
            self._add_at(node, "} else {")
            self._block(orelse)
        self._add_at(node, "}")

    # -- assignments --------------------------------------------------------------------

    def _assign(self, node: ast.Assign) -> None:
        if len(node.targets) > 1 or isinstance(node.targets[0], ast.Tuple | ast.List):
            raise self._findings.refusal(
                Code.TARGET, node, "several variables are assigned at once",
                "write each assignment as its own statement",
            )  # fmt: skip
        target = node.targets[0]
        if isinstance(target, ast.Name) and self._is_new_array(node.value):
            self._array(node, target, node.value)
            return
        written = self._target(target)
        value = self._expressions.value(node.value)
        if isinstance(target, ast.Name):
            self._note(node, target, value)
        name = f"{c_type(written.type).value} " if id(node) in self._declared.with_value else ""
        stored = self._stored(node.value, value, written)
        self._add(node, name, written.piece, " = ", stored, ";")

    def _update(self, node: ast.AugAssign) -> None:
        written = self._target(node.target)
        value = self._expressions.value(node.value)
        operation = self._operations.binary(node, written, node.op, value)
        if isinstance(node.target, ast.Name):
            self._note(node, node.target, operation.result)
        if operation.same_left and type(node.op) in OPERATORS:
            sign = OPERATORS[type(node.op)]
            self._add(node, written.piece, f" {sign}= ", operation.right.piece, ";")
            return
        stored = self._stored(node, operation.result, written)
        self._add(node, written.piece, " = ", stored, ";")

    def _stored(self, node: ast.expr | ast.stmt, value: Value, written: Value) -> Piece:
        """Return the text of a value that is stored: a literal in the type of its place."""
        if value.number is None:
            return value.piece
        if isinstance(value.number, float) and not is_floating(written.type):
            return value.piece
        hint = IN_64_BITS if written.type is Weak.INT else None
        with self._findings.clashes(Code.NUMBER, node, hint):
            return converted(value, written.type).piece

    def _note(self, node: ast.stmt, target: ast.Name, value: Value) -> None:
        """Note the type of what a local is assigned."""
        self.seen.setdefault(target.id, []).append(value.candidate)
        self.places.setdefault(target.id, []).append(node)

    def _target(self, node: ast.expr) -> Value:
        if isinstance(node, ast.Subscript):
            return self._expressions.element(node).at(self._findings.text.span(node))
        if not isinstance(node, ast.Name):
            raise self._findings.refusal(
                Code.TARGET, node, f"'{ast.unparse(node)}' cannot be assigned",
                "assign elements of arrays and locals",
            )  # fmt: skip
        name = node.id
        check_name(name, node, self._findings)
        if name in self._scope.counters or name in self._scope.past:
            raise self._findings.refusal(
                Code.COUNTER, node, f"counter '{name}' is assigned", "use another variable"
            )
        if name in self._scope.arguments:
            raise self._findings.refusal(
                Code.TARGET, node, f"parameter '{name}' is assigned",
                f"assign its elements, {name}[i] = …, or a local of another name",
            )  # fmt: skip
        local = self._scope.locals.get(name, Local(type=Weak.INT))
        if local.n_dims:
            raise self._findings.refusal(
                Code.TARGET, node, f"array '{name}' is assigned again", "assign its elements"
            )
        return Value(piece=Piece(name), type=local.type, weak=local.weak).at(
            self._findings.text.span(node)
        )

    # -- arrays of the function ---------------------------------------------------------

    def _is_new_array(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Call) and self._scope.meaning(node.func) == "numpy.empty"

    def _array(self, node: ast.Assign, target: ast.Name, call: ast.expr) -> None:
        """Read ``T = numpy.empty((n, m), dtype=numpy.float32)``."""
        assert isinstance(call, ast.Call)
        check_name(target.id, target, self._findings)
        if self._depth > 1 or target.id in self._scope.arguments or target.id in self.places:
            raise self._findings.refusal(
                Code.TARGET, node, f"array '{target.id}' is made inside a loop, or again",
                "make it once, before the loops",
            )  # fmt: skip
        others = [one for one in call.keywords if one.arg != "dtype"]
        types = [*call.args[1:], *(one.value for one in call.keywords if one.arg == "dtype")]
        if not call.args or len(types) > 1 or others:
            raise self._findings.refusal(
                Code.CALL, call, "an array is made of its shape and its type",
                "write numpy.empty((n, m), dtype=numpy.float32)",
            )  # fmt: skip
        element = ElementType.DOUBLE
        if types:
            full = self._scope.meaning(types[0]) or ""
            name = NUMPY_TYPES.get(full.removeprefix("numpy."))
            if name is None:
                raise self._findings.refusal(
                    Code.CALL, types[0], f"'{ast.unparse(types[0])}' is no type of elements",
                    f"write one of: {', '.join(f'numpy.{one}' for one in NUMPY_TYPES)}",
                )  # fmt: skip
            element = ELEMENTS[name]
        shape = call.args[0]
        sizes = shape.elts if isinstance(shape, ast.Tuple) else [shape]
        known = [one.name for one in self._scope.arguments.values() if one.kind == "param"]
        reader = ExtentReader(known, list(self._scope.arguments), self._findings)
        texts = [reader.extent(size)[1] for size in sizes]
        self._scope.locals[target.id] = Local(type=element, n_dims=len(texts))
        self.places.setdefault(target.id, []).append(node)
        self._add(node, f"{element.value} {target.id}", *(f"[{text}]" for text in texts), ";")


_FORMS: dict[type[ast.stmt], tuple[str, str]] = {
    ast.While: ("while loop", "write for i in range(…)"),
    ast.Break: ("break", "put the condition into the bounds, or into an if around the rest"),
    ast.Continue: ("continue", "write the rest of the body inside an if"),
    ast.Return: ("return", "assign results to elements of arrays"),
    ast.Try: ("try", "leave it out: nothing here raises"),
    ast.Raise: ("raise", "check arguments before the call"),
    ast.Assert: ("assert", "check arguments before the call"),
    ast.With: ("with", "leave it out"),
    ast.FunctionDef: ("function inside the function", "write its expressions out"),
    ast.AsyncFunctionDef: ("function inside the function", "write its expressions out"),
    ast.ClassDef: ("class inside the function", "use arrays"),
    ast.Delete: ("del", "leave it out"),
    ast.Global: ("global", "pass what is needed as parameters"),
    ast.Nonlocal: ("nonlocal", "pass what is needed as parameters"),
    ast.Import: ("import inside the function", "import at the top of the file"),
    ast.ImportFrom: ("import inside the function", "import at the top of the file"),
    ast.Match: ("match", "write if and elif"),
    ast.AnnAssign: (
        "a local with an annotation, which does nothing in Python",
        "convert its first value: t = numpy.float64(0)",
    ),
}
