"""At which sizes a place of a kernel is come to: its conditions, for some values of counters.

A condition is read as an expression. Constants that the text defines are put in; counters that are
multiples of a tile take some of their values; of other names only the ends of a range are known.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice, product
from types import CodeType
from typing import Literal, TypeAlias

from eatss.base.frozen import Names, Numbers
from eatss.program import Program
from eatss.program.expression import SizePairs, Sizes
from eatss.program.tokens import definitions
from eatss.verify.instrumentation import Branch

Reached: TypeAlias = Literal["never", "perhaps", "surely"]

_FOR = re.compile(r"\bfor \(int (\w+) = ([^;]*); [^;]*; (.*)\)(?: \{)?$")
_CONSTANT = re.compile(r"\bconst (?:int|bool) (\w+) = (.*);$")
_NEXT_STAGE = re.compile(r"(\w+) = \1 == (\d+) \? 0 : \1 \+ 1")
_WORDS = (
    (r"\((?:int|long|double)\)", ""),
    (r"\b(threadIdx|blockIdx|blockDim|gridDim)\.([xyz])\b", r"\1_\2"),
    (r"\beatss_is_aligned\((\w+)\)", r"aligned_\1"),
    (r"&&", " and "),
    (r"\|\|", " or "),
    (r"!(?!=)", " not "),
    (r"/", "//"),
    (r"\btrue\b", "True"),
    (r"\bfalse\b", "False"),
)
_FUNCTIONS: Mapping[str, Callable[[int, int], int]] = {
    "eatss_min": min,
    "eatss_max": max,
    "eatss_floordiv": operator.floordiv,
}
_INDICES = ("threadIdx", "blockIdx")
_FAR, _MOST_CORNERS = 2**40, 64
_MOST_VALUES, _MOST_NODES = 3000, 30
_FIRST, _LAST = 4, 3

_Defined: TypeAlias = tuple[int, str, str, str]
"""The line, name, first value and step of a constant, which has none, or a counter."""


@dataclass(frozen=True, slots=True)
class _Tile:
    """A counter: a first value and multiples of a step."""

    first: int
    step: int

    def values(self, sizes: SizePairs) -> Numbers:
        """Return the first ones and those that are near some size."""
        rounds = set(range(_FIRST))
        for _, size in sizes:
            last = max(0, size - self.first) // self.step
            rounds.update(max(0, last - k) for k in range(_LAST))
        return tuple(self.first + self.step * k for k in sorted(rounds))


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """What has to be true or false.

    ``code`` computes as much of it as can be, if anything can. Names of which little is known have
    the least and the greatest value in turn: ``first`` in the first thread of the first block,
    ``others`` in others. A ``vague`` part may hold between these, too, and one
    that is not ``decided`` may fail there.
    """

    tree: ast.expr
    holds: bool
    code: CodeType | None
    vague: bool
    decided: bool
    tiles: Names
    first: Sequence[Sizes]
    others: Sequence[Sizes]

    def reached(self, known: Mapping[str, object]) -> Reached:
        """Tell whether it holds where names have values."""
        if self.code is None:
            return "perhaps"
        try:
            first = [self._holds_at(known, corner) for corner in self.first]
            if all(first) and self.decided:
                return "surely"
            if self.vague or any(first) or any(self._holds_at(known, one) for one in self.others):
                return "perhaps"
        except ZeroDivisionError:  # by what is not known
            return "perhaps"
        return "never"

    def _holds_at(self, known: Mapping[str, object], corner: Sizes) -> bool:
        assert self.code is not None
        values = {**known, **corner} if corner else known
        return bool(eval(self.code, {"__builtins__": {}}, values)) is self.holds  # noqa: S307


_Group: TypeAlias = tuple[_Part, ...]


class Conditions:
    """The conditions of a program's text."""

    def __init__(self, program: Program, branches: Sequence[Branch]) -> None:
        self._branches = branches
        self._names = {parameter.name for parameter in program.parameters}
        self._definitions: dict[str, list[_Defined]] = {}
        self._ends: dict[str, dict[str, tuple[int, int]]] = {}
        blocks = {kernel.name: kernel.block for kernel in program.kernels}
        for function in definitions(program.text, blocks):
            first = program.text.count("\n", 0, function.body[0].start) + 1
            last = program.text.count("\n", 0, function.body[-1].end) + 1
            lines = program.text.split("\n")[first - 1 : last]
            self._definitions[function.name] = list(_definitions(lines, first))
            self._ends[function.name] = {
                f"threadIdx_{axis}": (0, count - 1)
                for axis, count in zip("xyz", blocks[function.name], strict=True)
            }
        self._tiles: dict[str, _Tile] = {}
        self._parts = cache(self._parts_of)
        self._groups = cache(self._groups_of)
        self._reached = cache(self._group_reached)  # places stand behind the same conditions

    def asks_where_arrays_start(self, number: int) -> bool:
        """Tell whether what leads to a place depends on where arrays start."""
        return any(
            name.startswith("aligned_")
            for condition in (number, *(k for k, _ in self._branches[number].inside))
            for way in (True, False)
            for part in self._parts(condition, way)
            for name in _names(part.tree)
        )

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

        Args:
            number: that of the branch.
            way: what has to hold there.
            sizes: those of the run.
            shifted: the arrays that start where only single elements can be moved.
            alone: the conditions that it stands behind are taken to hold.
        """
        worst: Reached = "surely"
        for group in self._groups(number, way, alone):
            found = self._reached(group, sizes, shifted)
            if found == "never":
                return "never"
            worst = found if found == "perhaps" else worst
        return worst

    def _group_reached(self, group: _Group, sizes: SizePairs, shifted: frozenset[str]) -> Reached:
        """Return whether some values of counters make all parts hold.

        Surely, if they do in the first thread of the first block.
        """
        flags = {name for part in group for name in _names(part.tree) if "aligned_" in name}
        starts = {name: name.removeprefix("aligned_") not in shifted for name in flags}
        tiles = sorted({name for part in group for name in part.tiles})
        values = [self._tiles[name].values(sizes) for name in tiles]
        if math.prod(map(len, values)) > _MOST_VALUES:
            return "perhaps"
        known = {**dict(sizes), **_FUNCTIONS, **starts}
        best: Reached = "never"
        for chosen in product(*values):
            here = {**known, **dict(zip(tiles, chosen, strict=True))}
            found = {part.reached(here) for part in group}
            if found <= {"surely"}:
                return "surely"
            best = best if "never" in found else "perhaps"
        return best

    def _groups_of(self, number: int, way: bool, alone: bool) -> list[_Group]:
        """Return what has to hold for a branch to go a way, in groups that share no counter.

        Those without any come first.
        """
        before = () if alone else self._branches[number].inside
        path = dict.fromkeys((*before, (number, way)))
        parts = [part for condition in path for part in self._parts(*condition)]
        groups: list[_Group] = []
        for part in sorted(parts, key=lambda one: len(one.tiles)):
            shared = [one for one in groups if any({*each.tiles} & {*part.tiles} for each in one)]
            groups = [one for one in groups if one not in shared]
            groups.append((*(each for one in shared for each in one), part))
        return sorted(groups, key=lambda group: len({tile for one in group for tile in one.tiles}))

    def _parts_of(self, number: int, way: bool) -> _Group:
        """Return what has to be true or false for a branch to go a way."""
        branch = self._branches[number]
        tree = self._resolved(branch.function, branch.line, branch.condition, branch.kind == "for")
        if tree is None:
            return ()
        pieces: Sequence[ast.expr] = (tree,)
        if isinstance(tree, ast.BoolOp) and isinstance(tree.op, ast.And if way else ast.Or):
            pieces = tree.values
        return tuple(self._part(branch.function, piece, way) for piece in pieces)

    def _part(self, function: str, tree: ast.expr, holds: bool) -> _Part:
        pieces = tree.values if isinstance(tree, ast.BoolOp) else [tree]
        known = [one for one in pieces if _is_computed(one)]
        code = None
        if known:
            op = tree.op if isinstance(tree, ast.BoolOp) else ast.And()
            whole = ast.BoolOp(op, known) if len(known) > 1 else known[0]
            code = compile(ast.fix_missing_locations(ast.Expression(whole)), "", "eval")
        names = _names(tree)
        ends = {
            name: self._ends.get(function, {}).get(name, (int(name.startswith("gridDim")), _FAR))
            for name in sorted(names)
            if not self._is_exact(ast.Name(name))
        }
        corners = [
            dict(zip(ends, corner, strict=True))
            for corner in islice(product(*ends.values()), _MOST_CORNERS)
        ]
        first = [
            one
            for one in corners
            if not any(value for name, value in one.items() if name.startswith(_INDICES))
        ]
        unknown = {name for name in ends if not name.startswith(_INDICES)}
        equal = [
            one
            for one in ast.walk(tree)
            if isinstance(one, ast.Compare) and isinstance(one.ops[0], ast.Eq | ast.NotEq)
        ]
        between = equal or any(isinstance(one, ast.Mod) for one in ast.walk(tree))
        return _Part(
            tree=tree,
            holds=holds,
            code=code,
            vague=len(known) < len(pieces)
            or 2 ** len(ends) > _MOST_CORNERS
            or (bool(ends) and bool(between)),
            decided=not any(unknown & _names(one) for one in equal),
            tiles=tuple(sorted(names & self._tiles.keys())),
            first=first,
            others=[one for one in corners if one not in first],
        )

    def _resolved(
        self, function: str, line: int, text: str, begins: bool = False
    ) -> ast.expr | None:
        """Return an expression with all that is known of its names put in.

        That of a loop that ``begins`` at the line has its counter's first value in its place.
        """
        for pattern, by in _WORDS:
            text = re.sub(pattern, by, text)
        try:
            tree = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError):
            return None
        resolver = _Resolver(lambda name: self._meaning(function, line, name, begins))
        found: ast.expr = resolver.visit(tree)
        return found

    def _meaning(
        self, function: str, line: int, name: str, begins: bool = False
    ) -> ast.expr | None:
        """Return what stands for a name at a line, or nothing if that is not known."""
        if name in self._names:
            return None
        for at, defined, first, step in reversed(self._definitions.get(function, [])):
            if defined == name and (at < line or (at == line and step)):
                if step.startswith("stage "):
                    return self._resolved(function, at, f"{first} / {step[6:]}")
                value = self._resolved(function, at, first)
                if step and value is not None:
                    return self._counter(
                        function, at, f"{name}_{at}", value, step, begins and at == line
                    )
                return value if value is None else self._constant(f"{name}_{at}", value)
        return None

    def _constant(self, own: str, value: ast.expr) -> ast.expr:
        """Return what stands for a constant: its value, a multiple of a tile, or nothing known."""
        if self._is_exact(value):
            return value
        if (common := _factor(value)) > 1:
            self._tiles[own] = _Tile(0, common)
        elif sum(1 for _ in ast.walk(value)) <= _MOST_NODES:
            return value
        return ast.Name(own, ast.Load())

    def _counter(
        self, function: str, line: int, own: str, first: ast.expr, step: str, begins: bool
    ) -> ast.expr:
        """Return what stands for the counter of a loop; as it begins, its first value."""
        wide = self._resolved(function, line, step)
        match first, wide:
            case ast.Constant(value=int(start)), ast.Constant(value=int(by)) if by > 0:
                self._tiles[own] = _Tile(start, by)
            case _, ast.expr() if (common := math.gcd(_factor(first), _factor(wide))) > 1:
                self._tiles[own] = _Tile(0, common)
            case _ if begins:
                return first
        return ast.Name(own, ast.Load())

    def _is_exact(self, tree: ast.expr) -> bool:
        known = self._names | self._tiles.keys() | _FUNCTIONS.keys()
        return all(name in known or name.startswith("aligned_") for name in _names(tree))


class _Resolver(ast.NodeTransformer):
    """Puts what is known of names in their places."""

    def __init__(self, meaning: Callable[[str], ast.expr | None]) -> None:
        self._meaning = meaning

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._meaning(node.id) or node


def _definitions(lines: Iterable[str], first: int) -> Iterator[_Defined]:
    """Yield the line, name, first value and step of constants, which have none, and counters."""
    for number, line in enumerate(lines, first):
        text = line.partition("//")[0].rstrip()
        if constant := _CONSTANT.search(text):
            yield number, constant[1], constant[2], ""
        elif loop := _FOR.search(text):
            yield from _counters(number, loop)


def _counters(number: int, loop: re.Match[str]) -> Iterator[_Defined]:
    name, begin, steps = loop.groups()
    begin, _, others = begin.partition(", ")
    step = steps.partition(", ")[0]
    wide = "1" if step in (f"++{name}", f"{name}++") else step.removeprefix(f"{name} += ")
    yield number, name, begin, wide
    stage = _NEXT_STAGE.search(steps)
    if stage and others == f"{stage[1]} = 0" and re.fullmatch(r"\d+", f"{begin}{wide}"):
        yield number, stage[1], f"({name} - {begin})", f"stage {wide} % {int(stage[2]) + 1}"


@cache
def _names(tree: ast.expr) -> frozenset[str]:
    return frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))


def _factor(tree: ast.expr) -> int:
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


def _is_computed(tree: ast.expr) -> bool:
    """Tell whether an expression is one of names and numbers alone."""
    return not any(
        isinstance(one, ast.Subscript | ast.Attribute)
        or (isinstance(one, ast.Call) and not _names(one.func) <= _FUNCTIONS.keys())
        for one in ast.walk(tree)
    )
