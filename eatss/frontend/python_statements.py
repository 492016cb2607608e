"""Parameters and statements of a Python function in, their declarations and lines in C out."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import NoReturn

from eatss.base.diagnostics import SourceSpan
from eatss.frontend.python_expressions import (
    FORMS,
    HEAD,
    IN_64_BITS,
    NAMES,
    OPERATORS,
    PRECEDENCE,
    TYPES,
    Argument,
    ExpressionReader,
    Local,
    Value,
    converted,
    inside,
    is_wide,
)
from eatss.frontend.python_types import (
    DOUBLE,
    ELEMENTS,
    INT,
    NUMPY_TYPES,
    CLine,
    NumberType,
    c_name_is_free,
    marked,
)
from eatss.frontend.source import RefusedError
from eatss.polyhedral.expression import ElementType

_ANNOTATE = (
    'write n: eatss.Param, x: eatss.f64 or A: eatss.f64["n", "n"] by position, without a default; '
    f"the types are {', '.join(ELEMENTS)}"
)
_SIGNS: dict[type[ast.operator], tuple[str, int]] = {
    ast.Add: ("+", 1), ast.Sub: ("-", 1), ast.Mult: ("*", 2), ast.FloorDiv: ("/", 2),
}  # fmt: skip
"""Operators of sizes: in C, and how tightly they bind."""

_RANGE = "write for i in range(start, end) or range(start, end, step) with a constant step"
_SUBSET = "write loops over range(…), if and elif, and assignments to elements of arrays and locals"
_NEW_NAME = "choose another name"

Block = Sequence[ast.stmt]

# -- where locals live -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Declarations:
    """Where locals are declared, by the ``id`` of statements: in the innermost block they allow.

    ``with_value`` are the assignments that declare what they assign; ``before`` are the names
    declared without a value before a statement.
    """

    with_value: set[int] = field(default_factory=set)
    before: dict[int, list[str]] = field(default_factory=dict)

    def place(self, name: str, body: Block) -> None:
        """Find where a local is declared that is used in a block only."""
        using = [statement for statement in body if _mentions(name, statement)]
        if not using:
            return
        first = using[0]
        if assigned_name(first) == name and not isinstance(first, ast.AugAssign):
            self.with_value.add(id(first))
            return
        blocks = [block for statement in using for block in _own_blocks(name, statement)]
        if blocks and all(not reads_without_value(name, block) for block in blocks):
            for block in blocks:
                self.place(name, block)
        else:
            self.before.setdefault(id(first), []).append(name)


def assigned_name(statement: ast.stmt) -> str | None:
    """Return the name that a statement assigns; ``None`` for elements and other statements."""
    match statement:
        case ast.Assign([ast.Name(name)]) | ast.AugAssign(ast.Name(name)):
            return name
    return None


def assignments(body: Block) -> Iterator[ast.stmt]:
    """Yield the statements that assign a name, in the order of the source."""
    for statement in body:
        if assigned_name(statement) is not None:
            yield statement
        elif isinstance(statement, ast.For | ast.If):
            yield from assignments(statement.body)
            yield from assignments(statement.orelse)


def reads_without_value(name: str, body: Block) -> list[ast.Name]:
    """Return the places that read a local where it may have no value yet."""
    found: list[ast.Name] = []

    def follow(block: Block, has_value: bool) -> bool:
        """Follow whether it has a value; return whether it surely has one in the end."""
        for statement in block:
            is_set = assigned_name(statement) == name
            if not has_value:
                found.extend(
                    one
                    for one in ast.walk(_head_of(statement))
                    if isinstance(one, ast.Name) and one.id == name
                    if isinstance(one.ctx, ast.Load) or isinstance(statement, ast.AugAssign)
                )
            if isinstance(statement, ast.For):
                follow(statement.body, has_value)
            elif isinstance(statement, ast.If):
                arms = [follow(arm, has_value) for arm in (statement.body, statement.orelse)]
                has_value = all(arms)
            else:
                has_value = has_value or is_set
        return has_value

    follow(body, False)
    return found


def _head_of(statement: ast.stmt) -> ast.AST:
    """Return a statement without the blocks in it."""
    if isinstance(statement, ast.For):
        return statement.iter
    return statement.test if isinstance(statement, ast.If) else statement


def _own_blocks(name: str, statement: ast.stmt) -> Iterator[Block]:
    """Yield the blocks of a statement; all of it where something else of it uses the name."""
    if not isinstance(statement, ast.For | ast.If) or _mentions(name, _head_of(statement)):
        yield [ast.Expr(ast.Name(name, ast.Load()))]  # so that it counts as one that needs a value
        return
    yield statement.body
    if isinstance(statement, ast.If):
        yield statement.orelse


def _mentions(name: str, node: ast.AST) -> bool:
    return any(isinstance(one, ast.Name) and one.id == name for one in ast.walk(node))


# -- reader ------------------------------------------------------------------------------------


@dataclass(slots=True, kw_only=True, eq=False)
class StatementReader(ExpressionReader):
    """Reads the parameters and statements of one function.

    ``lines`` is the C, ``seen`` what each local is assigned, in order, with the statement.
    """

    declared: Declarations = field(default_factory=Declarations)
    depth: int = 1
    lines: list[CLine] = field(default_factory=list)
    seen: dict[str, list[tuple[Value, ast.stmt]]] = field(default_factory=dict)
    arrays: set[str] = field(default_factory=set)

    # -- parameters ---------------------------------------------------------------------

    def parameters(self, given: ast.arguments) -> str:
        """Read the parameters into ``arguments``; return their declarations in C."""
        odd = [*given.kwonlyargs, given.vararg, given.kwarg, *given.defaults, *given.kw_defaults]
        for one in odd:
            if one is not None:
                with suppress(RefusedError):
                    self.refuse(one, "a parameter with a star or a default", _ANNOTATE, code=HEAD)
        declared = []
        for one in (*given.posonlyargs, *given.args):
            with suppress(RefusedError):
                argument, sizes = self._argument(one)
                text = f"{argument.element_type.value} {argument.name}{sizes}"
                declared.append(self.at(text, one))
                self.arguments[one.arg] = argument
        return ", ".join(declared)

    def _argument(self, node: ast.arg) -> tuple[Argument, str]:
        """Return a parameter, and the sizes behind its name in C."""
        self.check_name(node.arg, node)
        annotation = _unquoted(node.annotation or ast.Constant(None))
        base = annotation.value if isinstance(annotation, ast.Subscript) else annotation
        spelled = self.resolve(base) or f"eatss.{ast.unparse(base).rpartition('.')[2]}"
        kind = spelled.removeprefix("eatss.")
        if kind == "Param" and base is annotation:
            return Argument(name=node.arg, kind="param", element_type=ElementType.INT32), ""
        if kind not in ELEMENTS:
            self.refuse(
                node.annotation or node, f"parameter '{node.arg}' has no type that eatss reads",
                _ANNOTATE, code=HEAD,
            )  # fmt: skip
        if not isinstance(annotation, ast.Subscript):
            return Argument(name=node.arg, kind="scalar", element_type=ELEMENTS[kind]), ""
        read = [self._size(one) for one in _items(annotation.slice)]
        argument = Argument(
            name=node.arg, kind="array", element_type=ELEMENTS[kind],
            extents=tuple(text for text, _ in read),
        )  # fmt: skip
        return argument, "".join(f"[{c_text}]" for _, c_text in read)

    def _size(self, node: ast.expr) -> tuple[str, str]:
        """Return a size of an array, affine over parameters before it, in Python and in C."""
        inner = _unquoted(node)
        is_text = isinstance(inner, ast.Constant) and isinstance(inner.value, str)
        is_small = isinstance(inner, ast.Constant) and type(inner.value) is int and inner.value < 1
        if (inner is node and is_text) or is_small or isinstance(inner, ast.UnaryOp):
            self._refuse_size(inner)

        def c_text(one: ast.expr, least: int = 0) -> str:
            match one:
                case ast.Constant(int(number)) if not isinstance(number, bool):
                    return str(number)
                case ast.Name(name) if name in self.arguments and (
                    self.arguments[name].kind == "param"
                ):
                    return name
                case ast.BinOp(left, operator, right) if type(operator) in _SIGNS:
                    sign, level = _SIGNS[type(operator)]
                    divisor = right.value if isinstance(right, ast.Constant) else None
                    is_fine = sign != "/" or (isinstance(divisor, int) and divisor > 0)
                    if is_fine and not (sign == "*" and _has_names(left) and _has_names(right)):
                        text = f"{c_text(left, level)} {sign} {c_text(right, level + 1)}"
                        return f"({text})" if level < least else text
            return self._refuse_size(one)

        return ast.unparse(inner), c_text(inner)

    def _refuse_size(self, node: ast.expr) -> NoReturn:
        self.refuse(
            node, f"'{ast.unparse(node)}' is no size of an array",
            "sizes are positive numbers, and sums and multiples of parameters that are eatss.Param "
            'and stand before: "2 * n + 1"', code=HEAD,
        )  # fmt: skip

    def check_name(self, name: str, node: ast.arg | ast.expr) -> None:
        """Refuse a name that a variable of C cannot have.

        Raises:
            RefusedError: it cannot.
        """
        if not c_name_is_free(name):
            self.refuse(node, f"C has no variable of the name '{name}'", _NEW_NAME, code=HEAD)

    # -- control ----------------------------------------------------------------------

    def read(self, body: Block) -> None:
        """Read statements that follow one another; what is wrong is recorded."""
        for statement in body:
            for name in self.declared.before.get(id(statement), ()):
                local = self.locals.get(name)
                if local is not None:
                    self._add(statement, f"{local.type.element.value} {name};")
            with suppress(RefusedError):
                self._statement(statement)

    def _add(self, node: ast.stmt, text: str) -> None:
        self._line(self.at(text, node), self.text.span(node))

    def _line(self, text: str, span: SourceSpan) -> None:
        self.lines.append(CLine.of("    " * self.depth + text, span, self.spans))

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.For():
                self._for(node)
            case ast.If():
                self._if(node, "if")
            case ast.Assign([target], made) if not isinstance(target, ast.Tuple | ast.List):
                self._assign(node, target, made)
            case ast.AugAssign():
                self._update(node)
            case ast.Pass() | ast.Expr(ast.Constant(str())):
                pass
            case _:
                head = self._head(node)
                self.findings.add(FORMS, "statement outside the subset", span=head, hint=_SUBSET)
                if isinstance(node, ast.While | ast.With | ast.Try):
                    inner = ast.iter_child_nodes(node)
                    self.read([one for one in inner if isinstance(one, ast.stmt)])

    def _head(self, node: ast.stmt) -> SourceSpan:
        """Return where a statement stands, of a compound one its first line."""
        span = self.text.span(node)
        if span.line == span.end_line:
            return span
        text = self.text.line_text(span.line).split("#")[0].rstrip()
        return SourceSpan.in_line(span.file, span.line, span.column, len(text) + 1 - span.column)

    def _for(self, node: ast.For) -> None:
        head = counter = ""
        try:
            counter = self._counter(node.target)
        except RefusedError:
            names = (one.id for one in ast.walk(node.target) if isinstance(one, ast.Name))
            self.refused.update(names)
        with suppress(RefusedError):
            head = self._head_of_loop(node, counter)
        if node.orelse:
            with suppress(RefusedError):
                self.refuse(node.orelse[0], "else of a loop", "put it after the loop")
        own = [counter] if counter else []
        self.counters += own
        self._block(node, head, node.body)
        if counter:
            self.counters.remove(counter)
            self.past.add(counter)
        if head:
            self._line("}", self._head(node))

    def _block(self, node: ast.stmt, head: str, body: Block) -> None:
        """Read a block behind its head; nothing of a loop whose head is refused."""
        span = self._head(node)
        if head:
            self._line(f"{marked(head, span, self.spans)} {{", span)
        self.depth += 1
        self.read(body)
        self.depth -= 1

    def _counter(self, target: ast.expr) -> str:
        if not isinstance(target, ast.Name):
            self.refuse(target, "a loop has one counter", _RANGE)
        name = target.id
        self.check_name(name, target)
        if name in self.counters or name in self.arguments or name in self.assigned:
            self.refuse(
                target, f"counter '{name}' is a parameter, a local or another counter as well",
                _NEW_NAME, code=NAMES,
            )  # fmt: skip
        return name

    def _head_of_loop(self, node: ast.For, counter: str) -> str:
        call = node.iter
        if not isinstance(call, ast.Call) or self.meaning(call.func) != "builtins.range" or (
            call.keywords or not 1 <= len(call.args) <= 3
        ):  # fmt: skip
            self.refuse(call, "a loop over what is no range", _RANGE)
        values = self.values(call.args)
        for argument, value in zip(call.args, values, strict=True):
            self.whole(argument, value, "bound of a loop")
            if is_wide(value):
                self._refuse_wide(argument, value)
        step = values[2].number if len(values) == 3 else 1
        if not isinstance(step, int) or step == 0:
            self.refuse(call.args[2], "step is no constant other than zero", _RANGE)
        first = values[0].text if len(values) > 1 else "0"
        bound = values[1 if len(values) > 1 else 0]
        last = inside(bound, PRECEDENCE["<"] + 1)
        test = f"< {last}" if step > 0 else ">= 0" if bound.number == -1 else f"> {last}"
        change = {1: "++", -1: "--"}.get(step, f" += {step}" if step > 0 else f" -= {-step}")
        return f"for (int {counter} = {first}; {counter} {test}; {counter}{change})"

    def _if(self, node: ast.If, word: str) -> None:
        head = f"{word} (0)"
        with suppress(RefusedError):
            head = f"{word} ({self.condition(node.test)})"
        self._block(node, head, node.body)
        match node.orelse:
            case [ast.If() as inner] if not self.declared.before.get(id(inner)):
                self._if(inner, "} else if")
                return
            case [_, *_]:
                self._line("} else {", self._head(node))
                self.depth += 1
                self.read(node.orelse)
                self.depth -= 1
        self._line("}", self._head(node))

    # -- assignments ------------------------------------------------------------------

    def _assign(self, node: ast.Assign, target: ast.expr, made: ast.expr) -> None:
        name = assigned_name(node)
        if name and isinstance(made, ast.Call) and self.meaning(made.func) == "numpy.empty":
            self._array(node, name, made)
            return
        written = self._target(target)
        value = self.value(made)
        if name:
            self.seen.setdefault(name, []).append((value, node))
        kind = f"{written.type.element.value} " if id(node) in self.declared.with_value else ""
        self._add(node, f"{kind}{written.text} = {self._stored(made, value, written)};")

    def _update(self, node: ast.AugAssign) -> None:
        written = self._target(node.target)
        value = self.value(node.value)
        with self.fitting(node):
            result = self.binary(node, written, value, node.op)
        if isinstance(node.target, ast.Name):
            self.seen.setdefault(node.target.id, []).append((result, node))
        change = f"= {self._stored(node, result, written)}"
        if result.right is not None:
            change = f"{OPERATORS[type(node.op)]}= {result.right}"
        self._add(node, f"{written.text} {change};")

    def _stored(self, node: ast.expr | ast.stmt, value: Value, written: Value) -> str:
        """Return the text of a value that is stored: a literal in the type of its place."""
        number = value.number
        if number is None or (isinstance(number, float) and not written.type.is_floating):
            return value.text
        with self.fitting(node):
            if is_wide(value) and written.type == INT:
                self._refuse_wide(node, value)
            return converted(value, written.type).text

    def _refuse_wide(self, node: ast.expr | ast.stmt, value: Value) -> NoReturn:
        self.refuse(node, f"{value.number} does not fit into 32 bits", IN_64_BITS, code=TYPES)

    def _target(self, node: ast.expr) -> Value:
        if isinstance(node, ast.Subscript):
            found = self.element(node)
            return replace(found, text=self.at(found.text, node))
        if not isinstance(node, ast.Name):
            self.refuse(node, f"'{ast.unparse(node)}' is assigned", _SUBSET)
        name = node.id
        self.check_name(name, node)
        local = self.locals.get(name, Local(type=INT))
        if name in (*self.counters, *self.past, *self.arguments) or local.extents:
            self.refuse(
                node, f"'{name}' is assigned, which is a parameter, a counter or an array",
                f"assign elements, {name}[i] = …, or a local of another name", code=NAMES,
            )  # fmt: skip
        return Value(text=self.at(name, node), type=local.type, weak=local.weak)

    def _array(self, node: ast.Assign, name: str, call: ast.Call) -> None:
        """Read ``T = numpy.empty((n, m), dtype=numpy.float32)``."""
        self.check_name(name, node.targets[0])
        again = name in self.arguments or name in self.arrays or name in self.seen
        types = [*call.args[1:], *(one.value for one in call.keywords if one.arg == "dtype")]
        named = [self.meaning(one).removeprefix("numpy.") for one in types]
        if (
            self.depth > 1
            or again
            or not call.args
            or len(types) > 1
            or any(one.arg != "dtype" for one in call.keywords)
            or not NUMPY_TYPES.keys() >= set(named)
        ):
            self.refuse(
                node, f"array '{name}' is made otherwise than once, before all loops, of its shape "
                "and its type", "write numpy.empty((n, m), dtype=numpy.float32)",
            )  # fmt: skip
        kind = NumberType(ELEMENTS[NUMPY_TYPES[named[0]]]) if named else DOUBLE
        texts = tuple(self._size(one)[1] for one in _items(call.args[0]))
        self.locals[name] = Local(type=kind, extents=texts)
        self.arrays.add(name)
        sizes = "".join(f"[{text}]" for text in texts)
        self._add(node, f"{kind.element.value} {name}{sizes};")


def _items(node: ast.expr) -> Sequence[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple) else [node]


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


def _has_names(node: ast.expr) -> bool:
    return any(isinstance(one, ast.Name) for one in ast.walk(node))
