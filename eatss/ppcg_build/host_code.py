"""PPCG's host code read: integer expressions, the memory it allocates, its loops and launches.

PPCG replaces a region by a block of regular statements, which starts with a macro that checks the
CUDA runtime's answers. Each of a few forms is read; any other is refused. What is no C in them
(``dim3`` and ``<<< >>>``, types that only the source knows) is written as calls before pycparser
reads them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeAlias

from pycparser import c_ast as c
from pycparser.c_generator import CGenerator
from pycparser.c_parser import CParser, ParseError

from eatss.base.frozen import Names, frozen, their_names
from eatss.program import (
    Apply,
    Constant,
    HostIf,
    HostLoop,
    HostStep,
    IntExpr,
    Launch,
    Name,
    Operator,
    equals,
    select,
)
from eatss.program.expression import IntExprs
from eatss.program.tokens import closing, tokens


class NotUnderstoodError(Exception):
    """PPCG generated something that is read nowhere here; the sentence says what."""


_OPERATORS = {one: Operator(one) for one in ("==", "<=", "<", ">=", ">", "+", "-", "*", "/", "%")}
_OPERATORS |= {"||": Operator.OR, "&&": Operator.AND}
"""Binary operators. isl divides only where ``/`` and floor agree."""

_FUNCTIONS = {
    "ppcg_min": Operator.MIN,
    "ppcg_max": Operator.MAX,
    "ppcg_fdiv_q": Operator.FLOORDIV,
}
_START = "cudaCheckKernel"
"""The macro that PPCG defines at the start of every region."""

_DEVICE = "dev_"
_AS_CALLS: Sequence[tuple[str, str | Callable[[re.Match[str]], str]]] = (
    (r"([A-Za-z_][\w ]*) \* dev_(\w+) ;", r'of_type("\1", \2);'),
    (r"\bdim3 (\w+) (\()?", lambda found: f"dim3({found[1]}{',' if found[2] else ')'}"),
    (
        r"(\w+) <<< (\w+) , (\w+) >>> \( (\))?",
        lambda found: f"launch({', '.join(found.groups()[:3])}{found[4] or ', '}",
    ),
    (
        r"cudaCheckReturn \( cudaMalloc \( \( void \* \* \) & dev_(\w+) , (.*?)"
        r"sizeof \( [\w ]+ \) \) \) ;",
        lambda found: f"memory({found[1]}, {found[2]}".replace(") * ", "), ").rstrip(", ") + ");",
    ),
    (r"cudaCheckReturn \( (cudaMemcpy|cudaFree) .*?;|cudaCheckKernel \( \) ;", ""),
)
"""Forms of statements, and what is read instead."""

HostSteps: TypeAlias = tuple[HostStep, ...]


@frozen
class DeviceMemory:
    """Memory that the host code allocates for a variable of the source.

    ``element_type`` is the C spelling; ``extents`` are those of an array, none for a scalar.
    """

    name: str
    element_type: str
    extents: IntExprs


@frozen
class Launched:
    """How a kernel is launched: threads in x, y, z, and what is passed, as in the host code.

    Memory on the device is passed as ``dev_A``.
    """

    kernel: str
    block: tuple[int, int, int]
    arguments: Names


@frozen
class HostRegion:
    """What the host does for one region: ``steps`` in order, with the launches as they are."""

    memory: tuple[DeviceMemory, ...]
    launches: tuple[Launched, ...]
    steps: HostSteps


def host_regions(text: str) -> tuple[HostRegion, ...]:
    """Read a host file that PPCG wrote; one entry for each region.

    Raises:
        NotUnderstoodError: a statement in a region is of no known form.
    """
    found = tokens(text)
    regions = []
    for place, token in enumerate(found):
        if token.kind == "directive" and token.text.split()[1:2] == [f"{_START}()"]:
            begin = max(k for k in range(place) if found[k].kind != "directive")
            inside = found[begin : closing(found, begin) + 1]
            words = " ".join(one.text for one in inside if one.kind != "directive")
            for form, call in _AS_CALLS:
                words = re.sub(form, call, words)
            regions.append(_Region().read(_parsed(words)))
    return tuple(regions)


def device_name(argument: str) -> str | None:
    """Return the variable whose memory on the device is passed, ``None`` for a value."""
    return argument.removeprefix(_DEVICE) if argument.startswith(_DEVICE) else None


def _parsed(block: str) -> c.Compound:
    try:
        found: c.Compound = CParser().parse(f"void f(void) {block}").ext[0].body
    except ParseError as error:
        raise NotUnderstoodError(f"the host code is of no known form: {error}") from None
    return found


def _integer(node: c.Node) -> IntExpr:  # noqa: PLR0911 - a table
    match node:
        case c.Constant(type="int", value=text) if text.isdigit():
            return Constant(int(text))
        case c.ID(name=name):
            return Name(name)
        case c.UnaryOp(op="-", expr=c.Constant() as number):
            return -1 * _integer(number)
        case c.UnaryOp(op="-", expr=operand):
            return Apply(Operator.SUB, (_integer(operand),))
        case c.BinaryOp(op=op, left=left, right=right) if op in _OPERATORS:
            return Apply(_OPERATORS[op], (_integer(left), _integer(right)))
        case c.TernaryOp(cond=condition, iftrue=yes, iffalse=no):
            return select(_integer(condition), _integer(yes), _integer(no))
        case c.FuncCall(name=c.ID(name=name), args=c.ExprList(exprs=[first, second])) if (
            name in _FUNCTIONS
        ):
            return Apply(_FUNCTIONS[name], (_integer(first), _integer(second)))
    raise NotUnderstoodError(f"'{_said(node)}' is no integer expression that is known here")


def _said(node: c.Node) -> str:
    return " ".join(CGenerator().visit(node).split())[:200]


class _Region:
    """Reads the statements of a region."""

    def __init__(self) -> None:
        self._types: dict[str, str] = {}
        self._memory: list[DeviceMemory] = []
        self._launches: list[Launched] = []
        self._dims: dict[str, list[IntExpr]] = {}

    def read(self, block: c.Compound) -> HostRegion:
        steps = self._steps(block)
        for name, many in Counter(launch.kernel for launch in self._launches).items():
            if many > 1:
                raise NotUnderstoodError(f"'{name}' is launched in several places")
        return HostRegion(memory=tuple(self._memory), launches=tuple(self._launches), steps=steps)

    def _steps(self, node: c.Node) -> HostSteps:
        match node:
            case c.Compound(block_items=items):
                return tuple(step for one in items or () for step in self._steps(one))
            case c.For(
                init=c.DeclList(
                    decls=[
                        c.Decl(
                            name=counter,
                            type=c.TypeDecl(type=c.IdentifierType(names=["int"])),
                            init=lower,
                        )
                    ]
                ),
                cond=c.BinaryOp(op="<" | "<=" as relation, left=c.ID(name=left), right=upper),
                next=c.Assignment(op="+=", lvalue=c.ID(), rvalue=c.Constant(value=step)),
                stmt=body,
            ) if counter == left:
                last = _integer(upper)
                loop = HostLoop(
                    counter=counter,
                    lower=_integer(lower),
                    upper=last if relation == "<=" else Apply(Operator.SUB, (last, Constant(1))),
                    step=int(step),
                    body=self._steps(body),
                )
                return (loop,)
            case c.If(cond=test, iftrue=then, iffalse=otherwise):
                condition = _integer(test)
                found = HostIf(condition=condition, body=self._steps(then))
                if otherwise is None:
                    return (found,)
                no = equals(condition, 0)
                return found, HostIf(condition=no, body=self._steps(otherwise))
            case c.FuncCall():
                return self._call(node)
            case c.Assignment():
                raise NotUnderstoodError(f"a statement stays on the host: '{_said(node)}'")
        raise _unknown(node)

    def _call(self, node: c.FuncCall) -> HostSteps:
        match node.name.name, node.args.exprs if node.args else []:
            case "of_type", [c.Constant(value=kind), c.ID(name=name)]:
                self._types[name] = kind[1:-1]
            case "dim3", [c.ID(name=name), *extents] if len(extents) <= 3:
                self._dims[name] = [*map(_integer, extents)]
            case "memory", [c.ID(name=name), *extents]:
                if name not in self._types:
                    raise NotUnderstoodError(f"memory for '{name}' is of no known type")
                memory = DeviceMemory(
                    name=name,
                    element_type=self._types[name],
                    extents=tuple(map(_integer, extents)),
                )
                self._memory.append(memory)
            case "launch", [
                c.ID(name=kernel),
                c.ID(name=grid),
                c.ID(name=block),
                *passed,
            ] if {grid, block} <= self._dims.keys() and all(isinstance(p, c.ID) for p in passed):
                return (self._launch(kernel, grid, block, their_names(passed)),)
            case _:
                raise _unknown(node)
        return ()

    def _launch(self, kernel: str, grid: str, block: str, arguments: Names) -> HostStep:
        extents, threads = ([*self._dims[one], *[Constant(1)] * 3][:3] for one in (grid, block))
        sizes = [one.value for one in threads if isinstance(one, Constant)]
        if len(sizes) < 3:
            raise NotUnderstoodError(f"the block of {kernel} is no number")
        (x, y, z), (width, height, depth) = sizes, extents
        self._launches.append(Launched(kernel=kernel, block=(x, y, z), arguments=arguments))
        return Launch(kernel=kernel, grid=(width, height, depth))


def _unknown(node: c.Node) -> NotUnderstoodError:
    return NotUnderstoodError(f"the host code has a statement of no known form: '{_said(node)}'")
