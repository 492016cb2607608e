"""Where locals get their first value, and the innermost block of C that each can live in."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NoReturn

from eatss.base.frozen import frozen
from eatss.frontend.python.annotations import NumberType
from eatss.frontend.python.names import Resolve
from eatss.frontend.python.text import Findings, Node
from eatss.polyhedral.scops import ElementType


@frozen
class Argument:
    """A parameter of the function.

    ``kind`` is ``param`` for an integer that sizes may name, ``scalar`` or ``array``. ``extents``
    are the texts of the sizes of an array, outermost first, as Python has them.
    """

    name: str
    kind: Literal["param", "scalar", "array"]
    element_type: ElementType
    extents: tuple[str, ...] = ()


@frozen
class Local:
    """What a name that the function assigns holds: a number, or an array of ``n_dims``.

    ``weak`` is the type of a literal that is assigned as well, and is a number of Python there.
    """

    type: NumberType
    n_dims: int = 0
    weak: NumberType | None = None


@dataclass(slots=True, kw_only=True, eq=False)
class Scope:
    """What names mean at some place of a function, and the findings about it.

    ``locals`` are known as far as their types are; ``counters`` are those of the loops
    around; ``past`` are counters of loops that have ended; ``refused`` are names of which a finding
    tells already. ``mixes`` says that there are floating-point numbers of 32 bits.
    """

    arguments: dict[str, Argument]
    resolve: Resolve
    assigned: frozenset[str]
    mixes: bool
    findings: Findings
    locals: dict[str, Local]
    refused: set[str]
    counters: list[str] = field(default_factory=list)
    past: set[str] = field(default_factory=set)
    macros: set[str] = field(default_factory=set)

    def meaning(self, node: ast.expr) -> str | None:
        """Return the full name of a function or module; ``None`` for variables and the unknown."""
        first = node
        while isinstance(first, ast.Attribute):
            first = first.value
        if isinstance(first, ast.Name) and (
            first.id in self.arguments or first.id in self.assigned or first.id in self.counters
        ):
            return None
        return self.resolve(node)

    def refuse(self, code: str, node: Node, message: str, hint: str | None = None) -> NoReturn:
        """Record a finding, and leave what cannot be read any further.

        Raises:
            RefusedError: always.
        """
        self.findings.refuse(code, node, message, hint)

    @property
    def sizes(self) -> list[str]:
        """The parameters that sizes of arrays may name."""
        return [one.name for one in self.arguments.values() if one.kind == "param"]


Block = Sequence[ast.stmt]


@dataclass(frozen=True, slots=True)
class Declarations:
    """Where locals are declared, by the ``id`` of statements.

    ``with_value`` are the assignments that declare what they assign; ``before`` are the names
    declared without a value before a statement.
    """

    with_value: set[int] = field(default_factory=set)
    before: dict[int, list[str]] = field(default_factory=dict)


def assigned_name(statement: ast.stmt) -> str | None:
    """Return the name that a statement assigns; ``None`` for elements and other statements."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target: ast.expr = statement.targets[0]
    elif isinstance(statement, ast.AugAssign):
        target = statement.target
    else:
        return None
    return target.id if isinstance(target, ast.Name) else None


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
            head: ast.AST = statement
            if isinstance(statement, ast.For):
                head = statement.iter
            elif isinstance(statement, ast.If):
                head = statement.test
            if not has_value:
                if isinstance(statement, ast.AugAssign) and is_set:
                    assert isinstance(statement.target, ast.Name)
                    found.append(statement.target)
                found.extend(
                    one
                    for one in ast.walk(head)
                    if isinstance(one, ast.Name)
                    and one.id == name
                    and isinstance(one.ctx, ast.Load)
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


def declarations(names: Sequence[str], body: Block) -> Declarations:
    """Return where each local is declared: in the innermost block that has all it is used for."""
    result = Declarations()
    for name in names:
        _place(name, body, result)
    return result


def _place(name: str, body: Block, result: Declarations) -> None:
    using = [statement for statement in body if _mentions(name, statement)]
    if not using:
        return
    first = using[0]
    if assigned_name(first) == name and not isinstance(first, ast.AugAssign):
        result.with_value.add(id(first))
        return
    blocks = [block for statement in using for block in _own_blocks(name, statement)]
    if blocks and all(not reads_without_value(name, block) for block in blocks):
        for block in blocks:
            _place(name, block, result)
        return
    result.before.setdefault(id(first), []).append(name)


def _own_blocks(name: str, statement: ast.stmt) -> Iterator[Block]:
    """Yield the blocks of a statement; all of it where something else of it uses the name."""
    if isinstance(statement, ast.For) and not _mentions(name, statement.iter):
        yield statement.body
    elif isinstance(statement, ast.If) and not _mentions(name, statement.test):
        yield statement.body
        yield statement.orelse
    else:
        read = ast.Expr(ast.Name(name, ast.Load()))  # so that it counts as one that needs a value
        yield [read]


def _mentions(name: str, node: ast.AST) -> bool:
    return any(isinstance(one, ast.Name) and one.id == name for one in ast.walk(node))
