"""Parameters and statements of a Python function as C."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NoReturn

from eatss.base.diagnostics import SourceSpan
from eatss.base.frozen import frozen
from eatss.frontend.python_expressions import ExpressionReader
from eatss.frontend.python_types import (
    DOUBLE,
    ELEMENTS,
    INT,
    NUMPY_TYPES,
    PARAM,
    Candidate,
    CLine,
    Findings,
    Node,
    NumberType,
    Piece,
    RefusedError,
    Resolve,
    c_name_is_free,
    joined,
)
from eatss.frontend.python_values import (
    IN_64_BITS,
    OPERATORS,
    PRECEDENCE,
    Argument,
    Declarations,
    Local,
    Value,
    converted,
    inside,
    is_wide,
)
from eatss.polyhedral.expression import ElementType

# -- parameters --------------------------------------------------------------------------------
# Parameters of a Python function in, arguments and their C declarations out.


_TYPES = ", ".join(ELEMENTS)
_ANNOTATE = 'write n: eatss.Param, x: eatss.f64 or A: eatss.f64["n", "n"]'


@frozen
class Parameter:
    """An argument with its declaration in C."""

    argument: Argument
    declaration: Piece


def read_parameters(
    arguments: ast.arguments, resolve: Resolve, findings: Findings
) -> tuple[Parameter, ...]:
    """Return the parameters that are right, in order; what is wrong is recorded."""
    for one in (*arguments.kwonlyargs, arguments.vararg, arguments.kwarg):
        if one is not None:
            findings.add(
                "EATSS-Y005", one, f"'{one.arg}' is no plain parameter",
                "list all parameters by position",
            )  # fmt: skip
    for default in [*arguments.defaults, *(d for d in arguments.kw_defaults if d)]:
        findings.add(
            "EATSS-Y005", default, "a default value", "leave it out: every argument is given"
        )
    plain = (*arguments.posonlyargs, *arguments.args)
    names = [one.arg for one in plain]
    found: list[Parameter] = []
    known: list[str] = []
    for one in plain:
        with suppress(RefusedError):
            argument, sizes = _argument(one, known, names, resolve, findings)
            piece = joined(f"{argument.element_type.value} ", argument.name, sizes)
            span = findings.text.span(one)
            found.append(Parameter(argument=argument, declaration=piece.at(span)))
            known += [one.arg] if argument.kind == "param" else []
    return tuple(found)


def _argument(
    node: ast.arg, known: list[str], names: list[str], resolve: Resolve, findings: Findings
) -> tuple[Argument, str]:
    """Return a parameter, and the sizes behind its name in C."""
    check_name(node.arg, node, findings)
    if node.annotation is None:
        findings.refuse("EATSS-Y004", node, f"parameter '{node.arg}' has no annotation", _ANNOTATE)
    annotation = _unquoted(node.annotation)
    base = annotation.value if isinstance(annotation, ast.Subscript) else annotation
    spelled = resolve(base) or f"eatss.{ast.unparse(base).rpartition('.')[2]}"
    kind = spelled.removeprefix("eatss.")
    if kind == PARAM and base is annotation:
        return Argument(name=node.arg, kind="param", element_type=ElementType.INT32), ""
    if kind not in ELEMENTS:
        findings.refuse(
            "EATSS-Y004", node.annotation,
            f"'{ast.unparse(node.annotation)}' is no type of a parameter",
            f"{_ANNOTATE}; the types are {_TYPES}",
        )  # fmt: skip
    element = ELEMENTS[kind]
    if not isinstance(annotation, ast.Subscript):
        return Argument(name=node.arg, kind="scalar", element_type=element), ""
    inside = annotation.slice
    read = [
        extent(one, known, names, findings)
        for one in (inside.elts if isinstance(inside, ast.Tuple) else [inside])
    ]
    extents = tuple(text for text, _ in read)
    argument = Argument(name=node.arg, kind="array", element_type=element, extents=extents)
    return argument, "".join(f"[{c_text}]" for _, c_text in read)


_SIGNS: dict[type[ast.operator], tuple[str, int]] = {
    ast.Add: ("+", 1), ast.Sub: ("-", 1), ast.Mult: ("*", 2), ast.FloorDiv: ("/", 2),
}  # fmt: skip
"""Operators of sizes: in C, and how tightly they bind."""


def extent(
    node: ast.expr, known: Sequence[str], names: Sequence[str], findings: Findings
) -> tuple[str, str]:
    """Return a size of an array, an affine text over parameters, as Python and as C has it.

    Args:
        node: the size.
        known: the parameters that it may name.
        names: all parameters.
        findings: gets what is wrong.

    Raises:
        RefusedError: it is none.
    """
    inner = _unquoted(node)
    is_text = isinstance(inner, ast.Constant) and isinstance(inner.value, str)
    is_small = isinstance(inner, ast.Constant) and type(inner.value) is int and inner.value < 1
    if (inner is node and is_text) or is_small or isinstance(inner, ast.UnaryOp):
        _refuse_size(inner, findings)

    def c_text(one: ast.expr, least: int = 0) -> str:
        match one:
            case ast.Constant(int(number)) if not isinstance(number, bool):
                return str(number)
            case ast.Name(name) if name in known:
                return name
            case ast.Name(name) if name in names:
                findings.refuse(
                    "EATSS-Y007", one, f"'{name}' is no eatss.Param that stands before this array",
                    f"put {name}: eatss.Param before it",
                )  # fmt: skip
            case ast.Name(name):
                findings.refuse(
                    "EATSS-Y007", one, f"'{name}' is no parameter of the function",
                    f"add a parameter: {name}: eatss.Param",
                )  # fmt: skip
            case ast.BinOp(left, operator, right) if type(operator) in _SIGNS:
                sign, level = _SIGNS[type(operator)]
                divisor = right.value if isinstance(right, ast.Constant) else None
                is_fine = isinstance(divisor, int) and divisor > 0 if sign == "/" else True
                if is_fine and not (sign == "*" and _names(left) and _names(right)):
                    text = f"{c_text(left, level)} {sign} {c_text(right, level + 1)}"
                    return f"({text})" if level < least else text
        return _refuse_size(one, findings)

    return ast.unparse(inner), c_text(inner)


def _refuse_size(node: ast.expr, findings: Findings) -> NoReturn:
    findings.refuse(
        "EATSS-Y007", node, f"'{ast.unparse(node)}' is no size of an array",
        "sizes are positive numbers, and sums and multiples of parameters: \"2 * n + 1\"",
    )  # fmt: skip


def check_name(name: str, node: ast.arg | ast.expr | ast.stmt, findings: Findings) -> None:
    """Refuse a name that a variable of C cannot have.

    Raises:
        RefusedError: it cannot.
    """
    if not c_name_is_free(name):
        findings.refuse(
            "EATSS-Y006", node, f"C has no variable of the name '{name}'", "choose another name"
        )


def _unquoted(node: ast.expr) -> ast.expr:
    """Return the expression in a quoted annotation or extent, at the place of the quotes."""
    if not (isinstance(node, ast.Constant) and isinstance(node.value, str)):
        return node
    try:
        inner = ast.parse(node.value.strip(), mode="eval").body
    except SyntaxError:
        return node
    for one in ast.walk(inner):
        if isinstance(one, ast.expr):
            ast.copy_location(one, node)
    return inner


def _names(node: ast.expr) -> bool:
    return any(isinstance(one, ast.Name) for one in ast.walk(node))


# -- statements --------------------------------------------------------------------------------
# Python statements in, lines of C out.


_RANGE = "write for i in range(start, end) or range(start, end, step)"


@dataclass(slots=True, kw_only=True, eq=False)
class StatementReader(ExpressionReader):
    """Reads the statements of one function.

    ``lines`` is the C, ``seen`` the types of what each local is assigned, in order.
    """

    declared: Declarations
    depth: int = 1
    lines: list[CLine] = field(default_factory=list)
    seen: dict[str, list[Candidate]] = field(default_factory=dict)
    places: dict[str, list[ast.stmt]] = field(default_factory=dict)

    def read(self, body: Sequence[ast.stmt]) -> None:
        """Read statements that follow one another; what is wrong is recorded."""
        for statement in body:
            for name in self.declared.before.get(id(statement), ()):
                local = self.locals.get(name)
                if local is not None:
                    self._add(statement, Piece(f"{local.type.element.value} {name};"))
            with suppress(RefusedError):
                self._statement(statement)

    def _add(self, node: Node, *parts: str | Piece) -> None:
        span = self.findings.text.span(node)
        piece = joined(*parts).at(span)
        self.lines.append(CLine(joined("    " * self.depth, piece), span))

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.For():
                self._for(node)
            case ast.If():
                self._if(node, "if")
            case ast.Assign():
                self._assign(node)
            case ast.AugAssign():
                self._update(node)
            case ast.Pass() | ast.Expr(ast.Constant(str())):
                pass
            case ast.Expr(ast.Constant()):
                self.refuse("EATSS-Y011", node, "statement without effect", "remove it")
            case ast.Expr(ast.Call(function)):
                self.refuse(
                    "EATSS-Y011", node,
                    f"call of '{ast.unparse(function)}', whose effect is not known",
                    "assign results to elements of arrays",
                )  # fmt: skip
            case _:
                name, hint = _FORMS.get(type(node), ("statement outside the subset", "use loops"))
                self.findings.add_at("EATSS-Y011", self._head(node), name, hint)
                if isinstance(node, ast.While | ast.With | ast.Try):
                    inner = ast.iter_child_nodes(node)
                    self.read([one for one in inner if isinstance(one, ast.stmt)])

    def _head(self, node: ast.stmt) -> SourceSpan:
        """Return where a refused statement stands, of a compound one its first line."""
        span = self.findings.text.span(node)
        if span.line == span.end_line:
            return span
        text = self.findings.text.line(span.line).split("#")[0].rstrip()
        return SourceSpan.in_line(span.file, span.line, span.column, len(text) + 1 - span.column)

    # -- control ----------------------------------------------------------------------

    def _for(self, node: ast.For) -> None:
        head: Piece | None = None
        counter = ""
        try:
            counter = self._counter(node.target)
        except RefusedError:
            names = (one.id for one in ast.walk(node.target) if isinstance(one, ast.Name))
            self.refused.update(names)
        with suppress(RefusedError):
            head = self._head_of_loop(node, counter)
        if node.orelse:
            self.findings.add(
                "EATSS-Y013", node.orelse[0], "else of a loop", "put it after the loop"
            )
        if head is not None:
            self._add_head(node, head)
        if counter:
            self.counters.append(counter)
        self._block(node.body)
        if counter:
            self.counters.remove(counter)
            self.past.add(counter)
        if head is not None:
            self._add_at(node, "}")

    def _add_head(self, node: ast.For | ast.If, head: Piece) -> None:
        span = self._head(node)
        self.lines.append(CLine(joined("    " * self.depth, head.at(span), " {"), span))

    def _add_at(self, node: ast.For | ast.If, text: str) -> None:
        self.lines.append(CLine(Piece("    " * self.depth + text), self._head(node)))

    def _block(self, body: Sequence[ast.stmt]) -> None:
        self.depth += 1
        self.read(body)
        self.depth -= 1

    def _counter(self, target: ast.expr) -> str:
        if not isinstance(target, ast.Name):
            self.refuse("EATSS-Y013", target, "a loop has one counter", _RANGE)
        name = target.id
        check_name(name, target, self.findings)
        if name in self.counters:
            self.refuse(
                "EATSS-Y015", target, f"'{name}' is the counter of a loop around this one",
                "choose another name",
            )  # fmt: skip
        if name in self.arguments or name in self.assigned:
            self.refuse(
                "EATSS-Y015", target, f"counter '{name}' is a parameter or a local as well",
                "choose another name",
            )  # fmt: skip
        return name

    def _head_of_loop(self, node: ast.For, counter: str) -> Piece:
        call = node.iter
        is_range = isinstance(call, ast.Call) and (self.meaning(call.func) == "builtins.range")
        if not isinstance(call, ast.Call) or not is_range or call.keywords:
            self.refuse("EATSS-Y013", call, "a loop over what is no range", _RANGE)
        if not 1 <= len(call.args) <= 3:
            self.refuse("EATSS-Y013", call, "range has one to three arguments", _RANGE)
        values = self.values(call.args)
        for argument, value in zip(call.args, values, strict=True):
            if value.type.is_floating:
                self.refuse(
                    "EATSS-Y013", argument, "bound of a loop is no integer",
                    "divide with // where an integer is meant",
                )  # fmt: skip
            if is_wide(value):
                self.refuse(
                    "EATSS-Y022", argument,
                    f"{value.number} does not fit into the 32 bits that a counter has in C",
                )  # fmt: skip
        step = values[2].number if len(values) == 3 else 1
        if not isinstance(step, int) or step == 0:
            self.refuse(
                "EATSS-Y014", call.args[2], "step is no constant other than zero", "write a number"
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
            head = joined(f"{word} (", self.condition(node.test), ")")
        self._add_head(node, head)
        self._block(node.body)
        orelse = node.orelse
        if len(orelse) == 1 and isinstance(orelse[0], ast.If) and not self.declared.before.get(
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
            self.refuse(
                "EATSS-Y018", node, "several variables are assigned at once",
                "write each assignment as its own statement",
            )  # fmt: skip
        target, made = node.targets[0], node.value
        if (
            isinstance(target, ast.Name)
            and isinstance(made, ast.Call)
            and self.meaning(made.func) == "numpy.empty"
        ):
            self._array(node, target, made)
            return
        written = self._target(target)
        value = self.value(node.value)
        if isinstance(target, ast.Name):
            self._note(node, target, value)
        name = f"{written.type.element.value} " if id(node) in self.declared.with_value else ""
        stored = self._stored(node.value, value, written)
        self._add(node, name, written.piece, " = ", stored, ";")

    def _update(self, node: ast.AugAssign) -> None:
        written = self._target(node.target)
        value = self.value(node.value)
        with self.findings.clashes("EATSS-Y022", node):
            operation = self.binary(node, written, node.op, value)
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
        if isinstance(value.number, float) and not written.type.is_floating:
            return value.piece
        hint = IN_64_BITS if written.type == INT else None
        with self.findings.clashes("EATSS-Y022", node, hint):
            return converted(value, written.type).piece

    def _note(self, node: ast.stmt, target: ast.Name, value: Value) -> None:
        """Note the type of what a local is assigned."""
        self.seen.setdefault(target.id, []).append(value.candidate)
        self.places.setdefault(target.id, []).append(node)

    def _target(self, node: ast.expr) -> Value:
        if isinstance(node, ast.Subscript):
            return self.element(node).at(self.findings.text.span(node))
        if not isinstance(node, ast.Name):
            self.refuse(
                "EATSS-Y018", node, f"'{ast.unparse(node)}' cannot be assigned",
                "assign elements of arrays and locals",
            )  # fmt: skip
        name = node.id
        check_name(name, node, self.findings)
        if name in self.counters or name in self.past:
            self.refuse("EATSS-Y015", node, f"counter '{name}' is assigned", "use another variable")
        if name in self.arguments:
            self.refuse(
                "EATSS-Y018", node, f"parameter '{name}' is assigned",
                f"assign its elements, {name}[i] = …, or a local of another name",
            )  # fmt: skip
        local = self.locals.get(name, Local(type=INT))
        if local.n_dims:
            self.refuse(
                "EATSS-Y018", node, f"array '{name}' is assigned again", "assign its elements"
            )
        return Value(piece=Piece(name), type=local.type, weak=local.weak).at(
            self.findings.text.span(node)
        )

    # -- arrays of the function ---------------------------------------------------------

    def _array(self, node: ast.Assign, target: ast.Name, call: ast.Call) -> None:
        """Read ``T = numpy.empty((n, m), dtype=numpy.float32)``."""
        check_name(target.id, target, self.findings)
        if self.depth > 1 or target.id in self.arguments or target.id in self.places:
            self.refuse(
                "EATSS-Y018", node, f"array '{target.id}' is made inside a loop, or again",
                "make it once, before the loops",
            )  # fmt: skip
        others = [one for one in call.keywords if one.arg != "dtype"]
        types = [*call.args[1:], *(one.value for one in call.keywords if one.arg == "dtype")]
        if not call.args or len(types) > 1 or others:
            self.refuse(
                "EATSS-Y016", call, "an array is made of its shape and its type",
                "write numpy.empty((n, m), dtype=numpy.float32)",
            )  # fmt: skip
        kind = DOUBLE
        if types:
            full = self.meaning(types[0]) or ""
            name = NUMPY_TYPES.get(full.removeprefix("numpy."))
            if name is None:
                self.refuse(
                    "EATSS-Y016", types[0], f"'{ast.unparse(types[0])}' is no type of elements",
                    f"write one of: {', '.join(f'numpy.{one}' for one in NUMPY_TYPES)}",
                )  # fmt: skip
            kind = NumberType(ELEMENTS[name])
        shape = call.args[0]
        sizes = shape.elts if isinstance(shape, ast.Tuple) else [shape]
        names = list(self.arguments)
        texts = [extent(size, self.sizes, names, self.findings)[1] for size in sizes]
        self.locals[target.id] = Local(type=kind, n_dims=len(texts))
        self.places.setdefault(target.id, []).append(node)
        subscripts = (f"[{text}]" for text in texts)
        self._add(node, f"{kind.element.value} {target.id}", *subscripts, ";")


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
