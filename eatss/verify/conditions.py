"""At which sizes a place of a kernel is come to: its conditions, for some values of counters.

A condition is read as an expression, and known of its value is a range. Counters that are multiples
of a tile take some of their values, all at once: what depends on them is an array with an axis for
each.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, reduce
from typing import Any, Literal, TypeAlias

import numpy as np

from eatss.base.frozen import fixed, their_names
from eatss.program import Program
from eatss.program.expression import OwnSizes, SizePairs, Sizes
from eatss.program.tokens import definitions
from eatss.verify.instrumentation import Branch, Inside

Reached: TypeAlias = Literal["never", "perhaps", "surely"]

_FOR = re.compile(r"\bfor \(int (\w+) = ([^;,]*)(?:, (\w+) = 0)?; [^;]*; (.*)\)(?: \{)?$")
_CONSTANT = re.compile(r"\bconst (?:int|bool) (\w+) = (.*);$")
_WORDS = (
    (r"\((?:int|long|double)\)", ""),
    (r"\b(threadIdx|blockIdx|blockDim|gridDim)\.([xyz])\b", r"\1_\2"),
    (r"\beatss_is_aligned\((\w+)\)", r"aligned_\1"),
    (r"&&", " and "),
    (r"\|\|", " or "),
    (r"!(?!=)", " not "),
    (r"/", "//"),
    (r"\btrue\b", "1"),
    (r"\bfalse\b", "0"),
)
_ALIGNED = "aligned_"
_OPERATORS: Mapping[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_FUNCTIONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "eatss_min": np.minimum,
    "eatss_max": np.maximum,
    "eatss_floordiv": operator.floordiv,
}
_FAR, _LARGE = 2.0**40, 2**21
_MOST_VALUES, _MOST_AXES, _SHARED = 1_000_000, 30, 6
_FIRST, _LAST = 4, 3

_Range: TypeAlias = tuple[Any, Any]
"""The least and the greatest value, numbers or arrays; one object twice, where it is one value."""

_ANYTHING: _Range = (-_FAR, _FAR)
_NOT_NEGATIVE: _Range = (0, _FAR)


@fixed
class _Definition:
    """A constant, or a counter with a ``step``: its first value, known from some line on."""

    name: str
    line: int
    known_from: int
    first: ast.expr | None
    step: ast.expr | None = None


@fixed
class _Kernel:
    block: Mapping[str, int]
    definitions: Mapping[str, Sequence[_Definition]]

    def definition(self, name: str, line: int) -> _Definition | None:
        """Return the last definition of a name that is known at a line."""
        every = reversed(self.definitions.get(name, ()))
        return next((one for one in every if one.known_from <= line), None)


class Conditions:
    """The conditions of a program's text."""

    def __init__(self, program: Program, branches: Sequence[Branch]) -> None:
        self._branches = branches
        self._names = their_names(program.parameters)
        self._trees = [_tree(branch.condition) for branch in branches]
        self._kernels: dict[str, _Kernel] = {}
        blocks = {kernel.name: kernel.block for kernel in program.kernels}
        for function in definitions(program.text, blocks):
            first = program.text.count("\n", 0, function.body[0].start) + 1
            last = program.text.count("\n", 0, function.body[-1].end) + 1
            lines = program.text.split("\n")[first - 1 : last]
            threads = dict(zip("xyz", blocks[function.name], strict=True))
            found: dict[str, list[_Definition]] = {}
            for one in _definitions(lines, first):
                found.setdefault(one.name, []).append(one)
            self._kernels[function.name] = _Kernel(threads, found)
        self._values = cache(self._values_of)
        self._truth = cache(self._truth_of)

    def asks_where_arrays_start(self, number: int) -> bool:
        """Tell whether what leads to a place depends on where arrays start."""
        branch = self._branches[number]
        sizes = dict.fromkeys(self._names, 1)
        values = _Values(self._kernels[branch.function], sizes, {}, first_only=False)
        for one in (number, *(k for k, _ in branch.inside)):
            self._truth_of(values, one)
        return values.asks_where_arrays_start

    @cache  # noqa: B019 - it lives as long as its process
    def least_sizes(self, number: int, way: bool) -> OwnSizes:
        """Return how large some sizes have to be at least for a run to come to one way of a branch.

        Each has to be so with all others large: ``k0 + 96 + 32 <= N`` needs 128.
        """
        inside = [one for one in self._branches[number].inside if self._is_whole(one[0])]
        found = dict(self.least_sizes(*inside[-1])) if inside else {}
        for name in self._names:
            others = dict.fromkeys(self._names, _LARGE)

            def comes(value: int, name: str = name, others: Sizes = others) -> bool:
                sizes = tuple({**others, name: value}.items())
                return self.reached(number, way, sizes, frozenset()) != "never"

            least = most = found.get(name, 1)
            while most < _LARGE and not comes(most):
                least, most = most, 2 * most
            if 1 < most < _LARGE:
                found[name] = bisect_left(range(most), True, least, key=comes)
        return found

    @cache  # noqa: B019 - it lives as long as its process
    def reached(
        self,
        number: int,
        way: bool,
        sizes: SizePairs,
        shifted: frozenset[str],
        *,
        alone: bool = False,
    ) -> Reached:
        """Tell whether a run comes to one way out of a branch.

        Surely, if for some values of counters the first thread of the first block does.

        Args:
            number: that of the branch.
            way: what has to hold there.
            sizes: those of the run.
            shifted: the arrays that start where only single elements can be moved.
            alone: the conditions that it stands behind are taken to hold.
        """
        branch = self._branches[number]
        path = dict.fromkeys((*(() if alone else branch.inside), (number, way)))
        every, first = self._values(branch.function, branch.inside[:_SHARED], sizes, shifted)
        perhaps = surely = np.bool_(True)
        for one, holds in path:
            least, most = self._truth(every, one)
            perhaps = perhaps & (most if holds else ~least)
            if not perhaps.any():
                return "never"
            if perhaps.size > _MOST_VALUES:
                return "perhaps"
        for one, holds in path:
            least, most = self._truth(first, one)
            surely = surely & (least if holds else ~most)
        return "surely" if surely.any() else "perhaps"

    def _is_whole(self, number: int) -> bool:
        return self._branches[number].kind != "part"

    def _truth_of(self, values: _Values, number: int) -> _Range:
        branch = self._branches[number]
        return _truth(values.of(self._trees[number], branch.line, begins=branch.kind == "for"))

    def _values_of(
        self, function: str, _: Inside, sizes: SizePairs, shifted: frozenset[str]
    ) -> tuple[_Values, _Values]:
        """Return the values of all threads of a kernel, and of the first one of the first block."""
        known = dict(sizes) | {f"{_ALIGNED}{name}": 0 for name in shifted}
        kernel = self._kernels.get(function, _Kernel({}, {}))
        every = _Values(kernel, known, {}, first_only=False)
        return every, _Values(kernel, known, every.counters, first_only=True)


class _Values:
    """The ranges of expressions of a kernel where some names are ``known``.

    Each of the ``counters`` has an axis of its own. Those of the first thread of the first block
    alone have the counters of all.
    """

    def __init__(
        self,
        kernel: _Kernel,
        known: Mapping[str, int],
        counters: dict[tuple[str, int], _Range],
        *,
        first_only: bool,
    ) -> None:
        self._kernel, self._known, self._first_only = kernel, known, first_only
        self.counters = counters
        self.asks_where_arrays_start = False
        self._found: dict[tuple[str, int, bool], _Range] = {}

    def of(  # noqa: PLR0911 - a table
        self, tree: ast.expr | None, line: int, *, begins: bool = False
    ) -> _Range:
        """Return the range of an expression at a line, where perhaps the loop there ``begins``."""

        def of(operand: ast.expr) -> _Range:
            return self.of(operand, line, begins=begins)

        match tree:
            case ast.Constant(value=int(value)):
                return _exactly(value)
            case ast.Name(id=name):
                return self._named(name, line, begins)
            case ast.BoolOp(op, operands):
                least, most = zip(*(_truth(of(one)) for one in operands), strict=True)
                joined = np.logical_and if isinstance(op, ast.And) else np.logical_or
                return reduce(joined, least), reduce(joined, most)
            case ast.UnaryOp(ast.Not(), operand):
                least, most = _truth(of(operand))
                return ~most, ~least
            case ast.BinOp(left, op, right) | ast.Compare(left, [op], [right]):
                return _applied(op, of(left), of(right))
            case ast.Call(ast.Name(id=name), [left, right]) if name in _FUNCTIONS:
                return _at_corners(_FUNCTIONS[name], of(left), of(right))
        return _ANYTHING

    def _named(self, name: str, line: int, begins: bool) -> _Range:
        if name in self._known or name.startswith(_ALIGNED):
            self.asks_where_arrays_start |= name.startswith(_ALIGNED)
            return _exactly(self._known.get(name, 1))
        kind, _, axis = name.rpartition("_")
        if kind in ("threadIdx", "blockIdx") and axis in self._kernel.block:
            of_thread = kind == "threadIdx"
            return 0, 0 if self._first_only else self._kernel.block[axis] - 1 if of_thread else _FAR
        definition = self._kernel.definition(name, line)
        if definition is None:
            return _NOT_NEGATIVE
        key = name, definition.line, begins and definition.line == line
        if key not in self._found:
            self._found[key] = self.counters.get(key[:2]) or self._defined(definition, key[2])
        return self._found[key]

    def _defined(self, one: _Definition, begins: bool) -> _Range:
        """Return what a constant is, or a counter; that of a loop that ``begins``, if it can."""
        first = self.of(one.first, one.line)
        if one.step is None:
            common = 1 if first[0] is first[1] or self._first_only else _factor(one.first)
            return self._counter(one, 0, common) if common > 1 else first
        match one.first, one.step:
            case ast.Constant(value=int(start)), ast.Constant(value=int(step)) if step > 0:
                return self._counter(one, start, step)
        common = math.gcd(_factor(one.first), _factor(one.step))
        if common > 1:
            return self._counter(one, 0, common)
        return first if begins else _NOT_NEGATIVE

    def _counter(self, one: _Definition, first: int, step: int) -> _Range:
        """Return some values of a counter: the first ones and those that are near some size."""
        rounds = set(range(_FIRST))
        for size in self._known.values():
            last = max(0, size - first) // step
            rounds.update(max(0, last - k) for k in range(_LAST))
        if len(self.counters) == _MOST_AXES:
            return _NOT_NEGATIVE
        values = first + step * np.array(sorted(rounds), float)
        values = values.reshape(-1, *(1 for _ in self.counters))
        self.counters[one.name, one.line] = values, values
        return values, values


def _exactly(value: int) -> _Range:
    number = float(value)  # products of large ones are none of NumPy's integers
    return number, number


def _truth(found: _Range) -> _Range:
    """Return whether a number is surely no zero, and whether it may be none."""
    least, most = found
    surely = np.logical_or(least > 0, most < 0)
    return surely, surely if least is most else np.logical_or(least != 0, most != 0)


def _applied(op: ast.AST, left: _Range, right: _Range) -> _Range:
    """Return an operation, or a relation."""
    if isinstance(op, ast.Eq | ast.NotEq):
        equal = np.logical_and(left[1] <= right[0], right[1] <= left[0])
        apart = np.logical_or(left[1] < right[0], right[1] < left[0])
        return (equal, ~apart) if isinstance(op, ast.Eq) else (apart, ~equal)
    if type(op) not in _OPERATORS:
        return _ANYTHING
    if isinstance(op, ast.FloorDiv | ast.Mod) and np.any(right[0] <= 0):
        return _ANYTHING
    if isinstance(op, ast.Mod) and left[0] is not left[1]:
        return 0, right[1] - 1
    return _at_corners(_OPERATORS[type(op)], left, right)


def _at_corners(function: Callable[[Any, Any], Any], left: _Range, right: _Range) -> _Range:
    """Return the range of a function that grows, or falls, with each operand."""
    if left[0] is left[1] and right[0] is right[1]:
        value = function(left[0], right[0])
        return value, value
    corners = [function(one, other) for one in left for other in right]
    return reduce(np.minimum, corners), reduce(np.maximum, corners)


def _tree(text: str) -> ast.expr | None:
    """Return an expression of C as one of Python, nothing for what is none there."""
    for pattern, by in _WORDS:
        text = re.sub(pattern, by, text)
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        return None


def _definitions(lines: Iterable[str], first: int) -> Iterator[_Definition]:
    for number, line in enumerate(lines, first):
        text = line.partition("//")[0].rstrip()
        if constant := _CONSTANT.search(text):
            yield _Definition(constant[1], number, number + 1, _tree(constant[2]))
        elif loop := _FOR.search(text):
            name, begin, stage, steps = loop.groups()
            step = steps.partition(", ")[0]
            wide = "1" if step in (f"++{name}", f"{name}++") else step.removeprefix(f"{name} += ")
            yield _Definition(name, number, number, _tree(begin), _tree(wide))
            if turns := re.search(rf"{stage} = {stage} == (\d+) \? 0 : {stage} \+ 1", steps):
                place = _tree(f"({name} - {begin}) / {wide} % {int(turns[1]) + 1}")
                yield _Definition(stage, number, number, place)


def _factor(tree: ast.expr | None) -> int:
    """Return a number that divides all values of an expression."""
    match tree:
        case ast.Constant(value=int(value)):
            return abs(value)
        case ast.BinOp(left, ast.Mult(), right):
            return _factor(left) * _factor(right)
        case ast.BinOp(left, ast.Add() | ast.Sub(), right):
            return math.gcd(_factor(left), _factor(right))
        case ast.Call(args=arguments):
            return math.gcd(*map(_factor, arguments))
    return 1
