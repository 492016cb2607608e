"""Expressions of a search space: Python's own grammar, of which a white list is allowed.

``(blk_m + blk_n) * blk_k * bytes <= card.shared_per_block_bytes`` is parsed by :mod:`ast` and never
executed as Python. Allowed are whole numbers, numbers, texts, names (dotted too), ``+ - * / // %
**``, comparisons, ``and or not``, ``a if c else b``, ``in`` lists, and ``FUNCTIONS``.
What is wrong with one is told with its place in the document.
"""

from __future__ import annotations

import ast
import difflib
import keyword
import re
import warnings
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import isinf
from typing import TypeAlias

from eatss.base.diagnostics import Diagnostic, InputError, SourceSpan, did_you_mean
from eatss.base.frozen import frozen
from eatss.cards.findings import Origin, finding
from eatss.tune.space.nouns import Space

FUNCTIONS = {
    "min": (2, None),
    "max": (2, None),
    "ceil": (1, 1),
    "floor": (1, 1),
    "abs": (1, 1),
    "ceildiv": (2, 2),
    "gcd": (2, 2),
    "lcm": (2, 2),
    "log2": (1, 1),
    "divides": (2, 2),
}
"""How many arguments each function takes, at least and at most."""

LARGEST = 1 << 53
"""Whole numbers up to this are also exact as numbers with a fraction."""

LONGEST_TEXT = 10_000
_DEEPEST = 120
_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)

_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow)
_COMPARISONS = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.In, ast.NotIn)


Place: TypeAlias = tuple[str, ...]
"""Where something stands in a document: keys of its tables."""


@dataclass(eq=False)
class ExpressionFault(Exception):  # noqa: N818 - it becomes an error with a place in a file
    """What is wrong with an expression.

    ``start`` and ``end`` are characters of ``text``, which stands at ``path`` of a document.
    """

    code: str
    message: str
    start: int = 0
    end: int = 0
    hint: str | None = None
    text: str = ""
    path: Place = ()


@frozen
class Expression:
    """A parsed expression.

    Attributes:
        text: As it was written.
        names: Names that it needs values of, in the order of reading.
        path: Where it stands in the document of its space.
    """

    text: str
    names: tuple[str, ...]
    path: Place = ()
    tree: ast.expr = field(compare=False, repr=False)

    def fault(
        self, code: str, message: str, node: ast.expr | None = None, *, hint: str | None = None
    ) -> ExpressionFault:
        """Return what is wrong with a part of it, or with all of it."""
        start, end = (0, len(self.text)) if node is None else _extent(self.text, node)
        return ExpressionFault(code, message, start, end, hint, self.text, self.path)

    def unknown(self, name: str, known: Collection[str]) -> ExpressionFault:
        """Return that a name has no value."""
        node = next(node for node in ast.walk(self.tree) if dotted(node) == name)
        assert isinstance(node, ast.expr)
        hint = did_you_mean(name, sorted(known), "known")
        if not known:
            hint = "a text stands between quotes"
        return self.fault("EATSS-S009", f"nothing is called {name}", node, hint=hint)


def parse_expression(text: str, path: Place = ()) -> Expression:
    """Return the expression of a text.

    Raises:
        ExpressionFault: ``EATSS-S007`` it is none, ``EATSS-S008`` it has what is not on the list,
            ``EATSS-S014`` a whole number beyond 2^53.
    """
    text = re.sub(r"[\r\n\t]", " ", text)

    def wrong(message: str, start: int = 0, end: int = 0) -> ExpressionFault:
        return ExpressionFault("EATSS-S007", message, start, end, text=text, path=path)

    if len(text) > LONGEST_TEXT:
        raise wrong(f"an expression has at most {LONGEST_TEXT} characters, this one {len(text)}")
    indent = len(text) - len(text.lstrip(" "))
    if not text.strip():
        raise wrong("an expression is missing")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text[indent:], mode="eval").body
        for node in ast.walk(tree):  # blanks before an expression are no part of what is parsed
            if isinstance(node, ast.expr):
                node.col_offset += indent
                node.end_col_offset = (node.end_col_offset or 0) + indent
    except SyntaxError as error:
        start = min(max((error.offset or 1) - 1 + indent, 0), len(text) - 1)
        end = max(start + 1, min((error.end_offset or 0) - 1 + indent, len(text)))
        words = error.msg.split(". ", maxsplit=1)[0].removeprefix("invalid syntax").strip(" .,")
        raise wrong(f"this is no expression{': ' if words else ''}{words}", start, end) from None
    except (ValueError, RecursionError, MemoryError):
        raise wrong("this is no expression", 0, len(text)) from None
    found = Expression(text=text, names=(), path=path, tree=tree)
    try:
        return replace(found, names=tuple(dict.fromkeys(_checked(found, tree, 0))))
    except RecursionError:
        raise found.fault("EATSS-S007", "the expression is nested too deeply") from None


def dotted(node: ast.AST) -> str | None:
    """Return the name that a node is, ``card.sm_count`` too, else ``None``."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        owner = dotted(node.value)
        return None if owner is None else f"{owner}.{node.attr}"
    return None


def name_fault(name: str) -> str | None:
    """Return why something cannot be called this, ``None`` if it can."""
    if not _NAME.fullmatch(name):
        return "a name has letters, digits and _, and dots between such parts"
    for part in name.split("."):
        if keyword.iskeyword(part):
            return f"{part} is a word of Python"
    if name in FUNCTIONS:
        return f"{name} is a function of expressions"
    return None


def _extent(text: str, node: ast.expr) -> tuple[int, int]:
    """Return the characters of a node; ``ast`` counts bytes of UTF-8."""
    data = text.encode()
    start = len(data[: node.col_offset].decode(errors="ignore"))
    end = len(data[: node.end_col_offset or node.col_offset + 1].decode(errors="ignore"))
    return start, max(end, start + 1)


def _checked(whole: Expression, node: ast.expr, depth: int) -> Iterator[str]:
    """Yield the names of a node and check that all of it is on the list."""
    if depth > _DEEPEST:
        raise whole.fault("EATSS-S007", "the expression is nested too deeply", node)
    name = dotted(node)
    if name is not None:
        fault = name_fault(name)
        if fault is not None:
            raise whole.fault("EATSS-S008", f"{name} is no name of a value: {fault}", node)
        yield name
        return
    for part in _parts(whole, node):
        yield from _checked(whole, part, depth + 1)


def _parts(whole: Expression, node: ast.expr) -> list[ast.expr]:  # noqa: PLR0911 - a table
    """Return the parts of a node that is on the list."""
    match node:
        case ast.Constant():
            _check_literal(whole, node)
            return []
        case ast.BinOp() if isinstance(node.op, _OPERATORS):
            return [node.left, node.right]
        case ast.UnaryOp() if not isinstance(node.op, ast.Invert):
            return [node.operand]
        case ast.BoolOp():
            return node.values
        case ast.IfExp():
            return [node.test, node.body, node.orelse]
        case ast.Compare() if all(isinstance(op, _COMPARISONS) for op in node.ops):
            return _compared(whole, node)
        case ast.Call():
            return _arguments(whole, node)
        case _:
            raise whole.fault(
                "EATSS-S008",
                f"{_kind(node)} cannot stand in an expression of a space",
                node,
                hint="allowed: numbers, texts, names, + - * / // % **, comparisons, and, or, not, "
                f"a if c else b, in [...], {', '.join(FUNCTIONS)}",
            )


def _compared(whole: Expression, node: ast.Compare) -> list[ast.expr]:
    parts = [node.left]
    for op, right in zip(node.ops, node.comparators, strict=True):
        if not isinstance(op, ast.In | ast.NotIn):
            parts.append(right)
        elif isinstance(right, ast.List | ast.Tuple) and len(node.ops) == 1:
            parts += right.elts
        else:
            hint = "write x in [8, 16]"
            raise whole.fault("EATSS-S008", "'in' wants a list after it", right, hint=hint)
    return parts


def _arguments(whole: Expression, node: ast.Call) -> list[ast.expr]:
    name = dotted(node.func) or ""
    hint = None
    if name not in FUNCTIONS:
        close = difflib.get_close_matches(name, FUNCTIONS, n=1)
        hint = "".join(f"did you mean {one}? " for one in close) + f"known: {', '.join(FUNCTIONS)}"
        message = f"there is no function {name}".strip()
    elif node.keywords or any(isinstance(argument, ast.Starred) for argument in node.args):
        message = f"{name} takes plain arguments"
    else:
        least, most = FUNCTIONS[name]
        if least <= len(node.args) <= (most or len(node.args)):
            return node.args
        wanted = f"{least}" if most == least else f"{least} or more"
        message = f"{name} takes {wanted} argument{'s' if wanted != '1' else ''}"
        message += f", not {len(node.args)}"
    raise whole.fault("EATSS-S008", message, node, hint=hint)


def _check_literal(whole: Expression, node: ast.Constant) -> None:
    value = node.value
    if not isinstance(value, bool | int | float | str):
        raise whole.fault("EATSS-S008", f"{_kind(node)} is no value of a space", node)
    if isinstance(value, str):
        if not value.isprintable():
            raise whole.fault("EATSS-S008", "a text has printable characters only", node)
    elif isinstance(value, int) and abs(value) > LARGEST:
        raise whole.fault("EATSS-S014", "a whole number is at most 2^53", node)
    elif isinf(value):
        raise whole.fault("EATSS-S014", "this number is too large", node)


_KINDS = {
    ast.Lambda: "a function",
    ast.Attribute: "an attribute of a value",
    ast.Subscript: "a subscript",
    ast.List: "a list that does not follow 'in'",
    ast.Tuple: "a comma",
    ast.NamedExpr: "an assignment",
    ast.JoinedStr: "a formatted text",
    ast.BinOp: "this operator",
    ast.UnaryOp: "this operator",
    ast.Compare: "this comparison",
    ast.Constant: "this",
}


def _kind(node: ast.expr) -> str:
    return _KINDS.get(type(node), "this")


def origin_of(space: Space) -> Origin:
    """Return what the messages about a space name, and its text where it came from a file."""
    return Origin(label=space.source or f"the space {space.name}", text=space.text or None)


def expression_finding(fault: ExpressionFault, origin: Origin) -> Diagnostic:
    """Return a finding about a part of an expression, pointed at where that is in a file."""
    found = finding(fault.code, fault.message, fault.path, origin, fault.hint)
    if found.span is None or found.source_line is None:
        where = f'in "{fault.text}", column {fault.start + 1}' if fault.text else ""
        named = ".".join(fault.path)
        message = f"{origin.label}: {named}: {fault.message}" if named else fault.message
        return replace(found, message=f"{message} ({where})" if where else message)
    return _pointed(found, found.span, found.source_line, fault)


@contextmanager
def placed(space: Space) -> Iterator[None]:
    """Turn what expressions raise into errors with a place in the space's file."""
    try:
        yield
    except ExpressionFault as fault:
        raise InputError(expression_finding(fault, origin_of(space))) from None


@contextmanager
def noted(space: Space, findings: list[Diagnostic]) -> Iterator[None]:
    """Note what an expression raises among the findings about its space."""
    try:
        yield
    except ExpressionFault as fault:
        findings.append(expression_finding(fault, origin_of(space)))


def _pointed(found: Diagnostic, span: SourceSpan, line: str, fault: ExpressionFault) -> Diagnostic:
    """Return the finding at the part of the expression, where its text stands on the key's line."""
    after = re.compile(r"\s*=\s*").match(line, span.end_column - 1)
    start = line.find(fault.text, after.end() if after else span.end_column - 1)
    if not fault.text or start < 0:
        return found
    column = start + fault.start + 1
    place = replace(span, column=column, end_column=max(start + fault.end, column) + 1)
    return replace(found, span=place)
