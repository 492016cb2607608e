"""Parameters and statements of a Python function in, their declarations and lines in C out."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from textwrap import indent
from typing import NoReturn

from eatss.frontend.python_expressions import (
    OPERATORS,
    PRECEDENCE,
    Argument,
    ExpressionReader,
    Local,
    Value,
    converted,
    inside,
    items,
)
from eatss.frontend.python_types import (
    DOUBLE,
    ELEMENTS,
    INT,
    NUMPY_TYPES,
    Node,
    NumberType,
    c_name_is_free,
)
from eatss.frontend.source import RefusedError
from eatss.polyhedral.expression import ElementType

_ANNOTATE = (
    'write n: eatss.Param, x: eatss.f64 or A: eatss.f64["n", "n"] by position, without a default; '
    f"the types are {', '.join(ELEMENTS)}"
)
_RANGE = "write for i in range(start, end) or range(start, end, step) with a constant step"
_SUBSET = "write loops over range(…), if and elif, and assignments to elements of arrays and locals"
_NEW_NAME = "choose another name"

Block = Sequence[ast.stmt]

# -- where locals live -------------------------------------------------------------------------


def assigned_name(statement: ast.stmt) -> str | None:
    """Return the name that a statement assigns; ``None`` for elements and other statements."""
    match statement:
        case ast.Assign([ast.Name(name)]) | ast.AugAssign(ast.Name(name)):
            return name
    return None


def declaring(name: str, body: Block, found: set[int]) -> list[ast.Name]:
    """Find the assignments that declare a local: the first ones in the innermost blocks that do.

    Args:
        name: the local.
        body: a block.
        found: gets the ``id`` of each of these statements.

    Returns:
        The places where the local may have no value yet.
    """
    using = [statement for statement in body if _uses(name, statement)]
    first = using[0] if using else None
    if isinstance(first, ast.Assign) and assigned_name(first) == name:
        if not (reads := _uses(name, first.value)):
            found.add(id(first))
        return reads
    blocks: list[Block] = []
    for statement in using:
        if not isinstance(statement, ast.For | ast.If):
            return _uses(name, statement)[:1]
        head = statement.iter if isinstance(statement, ast.For) else statement.test
        if reads := _uses(name, head):
            return reads
        blocks += [statement.body, statement.orelse]
    return [place for block in blocks for place in declaring(name, block, found)]


def _uses(name: str, node: ast.AST) -> list[ast.Name]:
    return [one for one in ast.walk(node) if isinstance(one, ast.Name) and one.id == name]


# -- reader ------------------------------------------------------------------------------------


@dataclass(slots=True, kw_only=True, eq=False)
class StatementReader(ExpressionReader):
    """Reads the parameters and statements of one function.

    ``declaring`` are the statements, by ``id``, that declare the local that they assign; ``seen``
    is what each local is assigned, in order, with the statement.
    """

    declaring: set[int] = field(default_factory=set)
    depth: int = 0
    seen: dict[str, list[tuple[Value, ast.stmt]]] = field(default_factory=dict)

    # -- parameters ---------------------------------------------------------------------

    def parameters(self, given: ast.arguments) -> str:
        """Read the parameters into ``arguments``; return their declarations in C."""
        odd = [*given.kwonlyargs, given.vararg, given.kwarg, *given.defaults, *given.kw_defaults]
        for one in odd:
            if one is not None:
                self.note(one, "a parameter with a star or a default", _ANNOTATE)
        declared = []
        for one in (*given.posonlyargs, *given.args):
            with suppress(RefusedError):
                argument = self._argument(one)
                text = f"{argument.element_type.value} {one.arg}{_brackets(argument.extents)}"
                declared.append(self.at(text, one))
                self.arguments[one.arg] = argument
        return ", ".join(declared)

    def _argument(self, node: ast.arg) -> Argument:
        self.check_name(node.arg, node)
        annotation = _unquoted(node.annotation or ast.Constant(None))
        base, sizes = annotation, list[ast.expr]()
        if isinstance(annotation, ast.Subscript):
            base, sizes = annotation.value, [*items(annotation.slice)]
        spelled = self.resolve(base) or f"eatss.{ast.unparse(base).rpartition('.')[2]}"
        kind = spelled.removeprefix("eatss.")
        if kind == "Param" and not sizes:
            return Argument(name=node.arg, kind="param", element_type=ElementType.INT32)
        if kind not in ELEMENTS:
            self.refuse(
                node.annotation or node, f"parameter '{node.arg}' has no type that eatss reads",
                _ANNOTATE,
            )  # fmt: skip
        return Argument(
            name=node.arg,
            kind="array" if sizes else "scalar",
            element_type=ELEMENTS[kind],
            extents=tuple(map(self._size, sizes)),
        )

    def _size(self, node: ast.expr) -> str:
        """Return a size of an array, affine over parameters before it; C spells it alike."""
        inner = _unquoted(node)
        for one in ast.walk(inner):
            match one:
                case ast.Constant(int(number)) if number is not True and (
                    number or one is not inner
                ):
                    continue
                case ast.Name(name) if name in self.arguments:
                    if self.arguments[name].kind == "param":
                        continue
                case ast.BinOp(left, ast.Mult(), right) if _has_names(left) and _has_names(right):
                    self._refuse_size(one)
                case ast.BinOp() | ast.Add() | ast.Sub() | ast.Mult() | ast.Load():
                    continue
            self._refuse_size(one if isinstance(one, ast.expr) else inner)
        return ast.unparse(inner)

    def _refuse_size(self, node: ast.expr) -> NoReturn:
        self.refuse(
            node, f"'{ast.unparse(node)}' is no size of an array",
            "sizes are positive numbers, and sums and multiples of parameters that are eatss.Param "
            'and stand before: "2 * n + 1"',
        )  # fmt: skip

    def check_name(self, name: str, node: Node) -> None:
        """Refuse a name that a variable of C cannot have.

        Raises:
            RefusedError: it cannot.
        """
        if not c_name_is_free(name):
            self.refuse(node, f"C has no variable of the name '{name}'", _NEW_NAME)

    # -- control ----------------------------------------------------------------------

    def read(self, body: Block) -> str:
        """Read statements that follow one another; what is wrong is recorded."""
        texts = []
        self.depth += 1
        for statement in body:
            with suppress(RefusedError):
                text = self._statement(statement)
                texts.append(text and self.at(text, statement))
        self.depth -= 1
        return indent("\n".join(filter(None, texts)), "    ")

    def _statement(self, node: ast.stmt) -> str:
        match node:
            case ast.For():
                return self._for(node)
            case ast.If():
                return self._if(node)
            case ast.Assign([target], made) if not isinstance(target, ast.Tuple | ast.List):
                return self._assign(node, target, made)
            case ast.AugAssign():
                return self._update(node)
            case ast.Pass() | ast.Expr(ast.Constant(str())):
                return ""
        self.note(node, "statement outside the subset", _SUBSET)
        if isinstance(node, ast.While | ast.With | ast.Try):
            self.read([one for one in ast.iter_child_nodes(node) if isinstance(one, ast.stmt)])
        raise RefusedError

    def _block(self, body: Block) -> str:
        text = self.read(body)
        return f"{{\n{text}\n}}" if text else "{\n}"

    def _for(self, node: ast.For) -> str:
        head, own = "", list[str]()
        try:
            own = [self._counter(node.target)]
        except RefusedError:
            names = (one.id for one in ast.walk(node.target) if isinstance(one, ast.Name))
            self.refused.update(names)
        with suppress(RefusedError):
            head = self._head_of_loop(node, "".join(own))
        if node.orelse:
            self.note(node.orelse[0], "else of a loop", "put it after the loop")
        self.counters += own
        body = self._block(node.body)
        del self.counters[len(self.counters) - len(own) :]
        self.past.update(own)
        return f"{head} {body}"

    def _counter(self, target: ast.expr) -> str:
        if not isinstance(target, ast.Name):
            self.refuse(target, "a loop has one counter", _RANGE)
        name = target.id
        self.check_name(name, target)
        if name in self.counters or name in self.arguments or name in self.assigned:
            self.refuse(
                target, f"counter '{name}' is a parameter, a local or another counter as well",
                _NEW_NAME,
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
        start, end, *steps = values if len(values) > 1 else [Value(text="0"), *values]
        step = steps[0].number if steps else 1
        if not isinstance(step, int) or step == 0:
            self.refuse(call.args[-1], "step is no constant other than zero", _RANGE)
        last = inside(end, PRECEDENCE["<"] + 1)
        test = f"< {last}" if step > 0 else ">= 0" if end.number == -1 else f"> {last}"
        change = {1: "++", -1: "--"}.get(step, f" += {step}" if step > 0 else f" -= {-step}")
        return f"for (int {counter} = {start.text}; {counter} {test}; {counter}{change})"

    def _if(self, node: ast.If) -> str:
        test = Value(text="0")
        with suppress(RefusedError):
            test = self.condition(node.test)
        text = f"if ({test.text}) {self._block(node.body)}"
        match node.orelse:
            case [ast.If() as inner]:
                return f"{text} else {self.at(self._if(inner), inner)}"
            case [_, *_]:
                return f"{text} else {self._block(node.orelse)}"
        return text

    # -- assignments ------------------------------------------------------------------

    def _assign(self, node: ast.Assign, target: ast.expr, made: ast.expr) -> str:
        name = assigned_name(node)
        if name and isinstance(made, ast.Call) and self.meaning(made.func) == "numpy.empty":
            return self._array(node, name, made)
        written = self._target(target)
        value = self.value(made)
        if name:
            self.seen.setdefault(name, []).append((value, node))
        kind = f"{written.type.element.value} " if id(node) in self.declaring else ""
        return f"{kind}{written.text} = {self._stored(made, value, written)};"

    def _update(self, node: ast.AugAssign) -> str:
        written = self._target(node.target)
        value = self.value(node.value)
        with self.fitting(node):
            result = self.binary(node, written, value, node.op)
        if isinstance(node.target, ast.Name):
            self.seen.setdefault(node.target.id, []).append((result, node))
        operator = OPERATORS.get(type(node.op))
        left = f"{written.text} {operator} "
        if operator and result.text.startswith(left):
            return f"{written.text} {operator}= {result.text.removeprefix(left)};"
        return f"{written.text} = {self._stored(node, result, written)};"

    def _stored(self, node: ast.expr | ast.stmt, value: Value, written: Value) -> str:
        """Return the text of a value that is stored: a literal in the type of its place."""
        number = value.number
        if number is None or (isinstance(number, float) and not written.type.is_floating):
            return value.text
        with self.fitting(node):
            return converted(value, written.type).text

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
                f"assign elements, {name}[i] = …, or a local of another name",
            )  # fmt: skip
        return Value(text=self.at(name, node), type=local.type)

    def _array(self, node: ast.Assign, name: str, call: ast.Call) -> str:
        """Read ``T = numpy.empty((n, m), dtype=numpy.float32)``."""
        self.check_name(name, node.targets[0])
        types = [*call.args[1:], *(one.value for one in call.keywords if one.arg == "dtype")]
        named = [self.meaning(one).removeprefix("numpy.") for one in types]
        is_odd = not call.args or len(types) > 1 or any(one.arg != "dtype" for one in call.keywords)
        is_again = self.depth > 1 or name in {*self.arguments, *self.seen, *self.locals}
        if is_odd or is_again or not NUMPY_TYPES.keys() >= set(named):
            self.refuse(
                node, f"array '{name}' is made otherwise than once, before all loops, of its shape "
                "and its type", "write numpy.empty((n, m), dtype=numpy.float32)",
            )  # fmt: skip
        kind = NumberType(NUMPY_TYPES[named[0]]) if named else DOUBLE
        extents = tuple(map(self._size, items(call.args[0])))
        self.locals[name] = Local(type=kind, extents=extents)
        return f"{kind.element.value} {name}{_brackets(extents)};"


def _brackets(extents: Sequence[str]) -> str:
    return "".join(f"[{one}]" for one in extents)


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
