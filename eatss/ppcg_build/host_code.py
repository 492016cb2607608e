"""PPCG's host code read: integer expressions, the memory it allocates, its loops and launches.

PPCG replaces a region by a block of regular statements, which starts with a macro that checks the
CUDA runtime's answers. They are read as tokens, one form after the other; any other is refused.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import takewhile
from typing import TypeAlias

from eatss.base.frozen import Names, frozen
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
from eatss.program.tokens import Token, closing, tokens


class NotUnderstoodError(Exception):
    """PPCG generated something that is read nowhere here; the sentence says what."""


_LEVELS = ("||", "&&", "==", "<= < >= >", "+ -", "* / %")
"""Binary operators, those that bind least first. isl divides only where ``/`` and floor agree."""


_WORDS = {"||": Operator.OR, "&&": Operator.AND}
"""Those that are spelled otherwise here."""

_FUNCTIONS = {
    "ppcg_min": Operator.MIN,
    "ppcg_max": Operator.MAX,
    "ppcg_fdiv_q": Operator.FLOORDIV,
}


class Reader:
    """Reads from left to right; ``place`` is the next token, ``begun`` that of an expression."""

    def __init__(self, tokens: Sequence[Token], place: int = 0) -> None:
        self.tokens = tokens
        self.place = self.begun = place

    def integer(self) -> IntExpr:
        """Read the longest expression that stands next.

        Raises:
            NotUnderstoodError: there is none.
        """
        self.begun = self.place
        return self.ternary()

    def ternary(self) -> IntExpr:
        """Read an expression with a condition."""
        condition = self.binary(0)
        if not self.takes("?"):
            return condition
        yes = self.ternary()
        self.expect(":")
        return select(condition, yes, self.ternary())

    def binary(self, level: int) -> IntExpr:
        """Read what operators of a level and those that bind more join."""
        if level == len(_LEVELS):
            return self.unary()
        left = self.binary(level + 1)
        while (text := self.text()) in _LEVELS[level].split():
            self.place += 1
            operator = _WORDS.get(text) or Operator(text)
            left = Apply(operator, (left, self.binary(level + 1)))
        return left

    def unary(self) -> IntExpr:
        """Read what no operator joins."""
        if self.takes("-"):
            operand = self.unary()
            if isinstance(operand, Constant):
                return Constant(-operand.value)
            return Apply(Operator.SUB, (operand,))
        if self.takes("("):
            inner = self.ternary()
            self.expect(")")
            return inner
        kind, text = self.kind(), self.text()
        if kind == "number" and text.isdigit():
            self.place += 1
            return Constant(int(text))
        if kind == "word" and self.text(1) != "(":
            self.place += 1
            return Name(text)
        if text not in _FUNCTIONS:
            raise self.no_integer()
        self.place += 1
        self.expect("(")
        first = self.ternary()
        self.expect(",")
        second = self.ternary()
        self.expect(")")
        return Apply(_FUNCTIONS[text], (first, second))

    def kind(self) -> str:
        """Return of what kind the next token is, "" behind the last."""
        return self.tokens[self.place].kind if self.place < len(self.tokens) else ""

    def text(self, ahead: int = 0) -> str:
        """Return the next token, or one further ahead, "" behind the last."""
        place = self.place + ahead
        return self.tokens[place].text if place < len(self.tokens) else ""

    def takes(self, text: str) -> bool:
        """Go on behind a token if it is the next; tell whether it is."""
        found = self.text() == text
        self.place += found
        return found

    def expect(self, text: str) -> None:
        """Go on behind a token that has to be the next."""
        if not self.takes(text):
            raise self.no_integer()

    def no_integer(self) -> NotUnderstoodError:
        """Return the error of what is no expression."""
        whole = said(self.tokens[self.begun :])
        return NotUnderstoodError(f"'{whole}' is no integer expression that is known here")


def said(found: Sequence[Token]) -> str:
    """Return the first tokens in words."""
    return " ".join(token.text for token in found[:20])


def _integers(text: str) -> list[IntExpr]:
    """Return the expressions of a text, between commas."""
    reader, read = Reader(tokens(text)), list[IntExpr]()
    while not read or reader.takes(","):
        read.append(reader.integer())
    if reader.kind():
        raise reader.no_integer()
    return read


def _integer(text: str) -> IntExpr:
    """Return the expression that a text is."""
    first, *others = _integers(text)
    if others:
        raise Reader(tokens(text)).no_integer()
    return first


_START = "cudaCheckKernel"
"""The macro that PPCG defines at the start of every region."""

_DEVICE = "dev_"


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
    return tuple(
        _Region(found, place + 1).read()
        for place, token in enumerate(found)
        if token.kind == "directive" and token.text.split()[1:2] == [f"{_START}()"]
    )


def device_name(argument: str) -> str | None:
    """Return the variable whose memory on the device is passed, ``None`` for a value."""
    return argument.removeprefix(_DEVICE) if argument.startswith(_DEVICE) else None


_LOOP = re.compile(r"int (\w+) = (.+) ; \1 (<=?) (.+) ; \1 \+= ([1-9]\d*)")
_POINTER = re.compile(r"([\w ]+) \* dev_(\w+)")
_EXTENTS = re.compile(r"dim3 (\w+)(?: \( (.+) \))?")
_ALLOCATION = re.compile(
    r"cudaCheckReturn \( cudaMalloc \( \( void \* \* \) & dev_(\w+) , "
    r"(.*)sizeof \( [\w ]+ \) \) \)"
)
_LAUNCH = re.compile(r"(\w+) <<< (\w+) , (\w+) >>> \( ((?:\w+(?: , \w+)*)?) ?\)")
_NOTHING = re.compile(r"cudaCheckReturn \( (?:cudaMemcpy|cudaFree) .*|cudaCheckKernel \( \)")
"""Forms of statements, their tokens apart; the last is nothing of the device part."""


class _Region(Reader):
    """Reads the statements of a region from its start to the end of the block around."""

    def __init__(self, found: Sequence[Token], start: int) -> None:
        super().__init__(found, start)
        self._types: dict[str, str] = {}
        self._memory: list[DeviceMemory] = []
        self._launches: list[Launched] = []
        self._dims: dict[str, list[IntExpr]] = {}

    def read(self) -> HostRegion:
        steps = self._statements()
        for name, many in Counter(launch.kernel for launch in self._launches).items():
            if many > 1:
                raise NotUnderstoodError(f"'{name}' is launched in several places")
        return HostRegion(memory=tuple(self._memory), launches=tuple(self._launches), steps=steps)

    def _statements(self) -> HostSteps:
        """Read to the bracket that closes the block."""
        steps: list[HostStep] = []
        while not self.takes("}"):
            steps += self._statement()
        return tuple(steps)

    def _statement(self) -> HostSteps:
        if not self.kind():
            raise NotUnderstoodError("the host code ends inside a region")
        self.begun = self.place
        if self.kind() == "directive":
            self.place += 1
            return ()
        if self.takes("{"):
            return self._statements()
        if self.text() in ("for", "if") and self.text(1) == "(":
            end = closing(self.tokens, self.place + 1)
            head = " ".join(one.text for one in self.tokens[self.place + 2 : end])
            is_loop, self.place = self.text() == "for", end + 1
            return (self._loop(head),) if is_loop else self._condition(head)
        texts = [*takewhile(";".__ne__, (token.text for token in self.tokens[self.place :]))]
        self.place += len(texts) + 1
        return self._simple(texts)

    def _loop(self, head: str) -> HostStep:
        match = _LOOP.fullmatch(head)
        if match is None:
            raise self._unknown()
        upper = _integer(match[4])
        return HostLoop(
            counter=match[1],
            lower=_integer(match[2]),
            upper=upper if match[3] == "<=" else Apply(Operator.SUB, (upper, Constant(1))),
            step=int(match[5]),
            body=self._statement(),
        )

    def _condition(self, head: str) -> HostSteps:
        condition = _integer(head)
        then = HostIf(condition=condition, body=self._statement())
        if not self.takes("else"):
            return (then,)
        return (then, HostIf(condition=equals(condition, 0), body=self._statement()))

    def _simple(self, texts: Sequence[str]) -> HostSteps:
        """Read a statement that a semicolon ends."""
        text = " ".join(texts)
        if match := _POINTER.fullmatch(text):
            self._types[match[2]] = match[1]
        elif match := _EXTENTS.fullmatch(text):
            self._dims[match[1]] = _integers(match[2]) if match[2] else []
        elif match := _ALLOCATION.fullmatch(text):
            self._allocated(match[1], match[2])
        elif match := _LAUNCH.fullmatch(text):
            return (self._launch(match[1], match[2], match[3], match[4]),)
        elif not text:
            raise NotUnderstoodError("the host code has an empty statement")
        elif not _NOTHING.fullmatch(text):
            if any(one.endswith("=") for one in texts):
                whole = said(self.tokens[self.begun :][: len(texts)])
                raise NotUnderstoodError(f"a statement stays on the host: '{whole}'")
            raise self._unknown()
        return ()

    def _allocated(self, name: str, sizes: str) -> None:
        """Note memory for a variable: ``( n ) * ( m ) *`` elements."""
        if name not in self._types:
            raise NotUnderstoodError(f"memory for '{name}' is of no known type")
        reader, extents = Reader(tokens(sizes)), list[IntExpr]()
        while reader.kind():
            extents.append(reader.unary())
            reader.expect("*")
        self._memory.append(
            DeviceMemory(name=name, element_type=self._types[name], extents=tuple(extents))
        )

    def _launch(self, kernel: str, grid: str, block: str, passed: str) -> HostStep:
        if not all(one in self._dims and len(self._dims[one]) <= 3 for one in (grid, block)):
            raise self._unknown()
        ones = [Constant(1)] * 3
        extents, threads = ([*self._dims[one], *ones][:3] for one in (grid, block))
        sizes = [one.value for one in threads if isinstance(one, Constant)]
        if len(sizes) < 3:
            raise NotUnderstoodError(f"the block of {kernel} is no number")
        (x, y, z), (width, height, depth) = sizes, extents
        arguments = tuple(passed.split(" , ")) if passed else ()
        self._launches.append(Launched(kernel=kernel, block=(x, y, z), arguments=arguments))
        return Launch(kernel=kernel, grid=(width, height, depth))

    def _unknown(self) -> NotUnderstoodError:
        whole = said(self.tokens[self.begun :])
        return NotUnderstoodError(f"the host code has a statement of no known form: '{whole}'")
