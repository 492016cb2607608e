"""PPCG's host code read: integer expressions, the memory it allocates, its loops and launches.

PPCG replaces a region by a block of regular statements, which starts with a macro that checks the
CUDA runtime's answers. They are read as tokens, one form after the other; any other is refused.
"""

from __future__ import annotations

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
from eatss.program.tokens import Token, tokens


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

    def expect(self, *texts: str) -> None:
        """Go on behind tokens that have to be the next."""
        for text in texts:
            if not self.takes(text):
                raise self.unknown()

    def unknown(self) -> NotUnderstoodError:
        """Return the error of tokens that stand where others are expected."""
        return self.no_integer()

    def no_integer(self) -> NotUnderstoodError:
        """Return the error of what is no expression."""
        whole = self.said(self.begun)
        return NotUnderstoodError(f"'{whole}' is no integer expression that is known here")

    def said(self, begun: int) -> str:
        """Return some tokens in words."""
        return " ".join(token.text for token in self.tokens[begun : begun + 20])


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


class _Region(Reader):
    """Reads the statements of a region from its start to the end of the block around."""

    def __init__(self, found: Sequence[Token], start: int) -> None:
        super().__init__(found, start)
        self._statement_at = start
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
        self._statement_at = self.place
        if self.kind() == "directive":
            self.place += 1
            return ()
        if self.takes("{"):
            return self._statements()
        if self.takes("for"):
            return (self._loop(),)
        if self.takes("if"):
            return self._condition()
        return self._simple()

    def _loop(self) -> HostStep:
        self.expect("(", "int")
        counter = self._word()
        self.expect("=")
        lower = self.integer()
        self.expect(";", counter)
        below = self.takes("<")
        self.expect(*(() if below else ("<=",)))
        upper = self.integer()
        self.expect(";", counter, "+=")
        by = self.integer()
        self.expect(")")
        if not isinstance(by, Constant) or by.value < 1:
            raise self.unknown()
        return HostLoop(
            counter=counter,
            lower=lower,
            upper=Apply(Operator.SUB, (upper, Constant(1))) if below else upper,
            step=by.value,
            body=self._statement(),
        )

    def _condition(self) -> HostSteps:
        self.expect("(")
        condition = self.integer()
        self.expect(")")
        then = HostIf(condition=condition, body=self._statement())
        if not self.takes("else"):
            return (then,)
        return (then, HostIf(condition=equals(condition, 0), body=self._statement()))

    def _simple(self) -> HostSteps:
        """Read a statement that a semicolon ends."""
        rest = (token.text for token in self.tokens[self.place :])
        texts = list(takewhile(";".__ne__, rest))
        steps: HostSteps = ()
        if not texts:
            raise NotUnderstoodError("the host code has an empty statement")
        if self.takes("cudaCheckReturn"):
            self.expect("(")
            if self.text() in ("cudaMemcpy", "cudaFree"):  # nothing of the device part
                self.place += len(texts) - 2
            else:
                self._allocation()
        elif self.takes(_START):
            self.expect("(", ")")
        elif self.takes("dim3"):
            self._dims[self._word()] = extents = []
            separator = "("
            while self.text() != ";" and not self.takes(")"):
                self.expect(separator)
                extents.append(self.integer())
                separator = ","
        elif "<<<" in texts:
            steps = (self._launch(),)
        elif texts[-2:-1] == ["*"] and texts[-1].startswith(_DEVICE):
            self._types[texts[-1].removeprefix(_DEVICE)] = " ".join(texts[:-2])
            self.place += len(texts)
        elif any(text.endswith("=") for text in texts):
            said = " ".join(texts[:20])
            raise NotUnderstoodError(f"a statement stays on the host: '{said}'")
        self.expect(";")
        return steps

    def _allocation(self) -> None:
        self.expect("cudaMalloc", "(", "(", "void", "*", "*", ")", "&")
        name = self._word().removeprefix(_DEVICE)
        if name not in self._types:
            raise NotUnderstoodError(f"memory for '{name}' is of no known type")
        self.expect(",")
        extents = []
        while not self.takes("sizeof"):
            self.expect("(")
            extents.append(self.integer())
            self.expect(")", "*")
        self.expect("(")
        while not self.takes(")"):
            self._word()
        self.expect(")", ")")
        self._memory.append(
            DeviceMemory(name=name, element_type=self._types[name], extents=tuple(extents))
        )

    def _launch(self) -> HostStep:
        kernel = self._word()
        self.expect("<<<")
        names = [self._word()]
        self.expect(",")
        names.append(self._word())
        self.expect(">>>", "(")
        passed: list[str] = []
        while not self.takes(")"):
            self.expect(*([","] if passed else []))
            passed.append(self._word())
        grid, block = (self._dims.get(name, []) for name in names)
        if len(grid) > 3 or len(block) > 3 or not self._dims.keys() >= {*names}:
            raise self.unknown()
        sizes = [extent.value for extent in block if isinstance(extent, Constant)]
        if len(sizes) < len(block):
            raise NotUnderstoodError(f"the block of {kernel} is no number")
        x, y, z = sizes + [1] * (3 - len(sizes))
        self._launches.append(Launched(kernel=kernel, block=(x, y, z), arguments=tuple(passed)))
        ones: list[IntExpr] = [Constant(1)] * (3 - len(grid))
        width, height, depth = grid + ones
        return Launch(kernel=kernel, grid=(width, height, depth))

    def _word(self) -> str:
        if self.kind() != "word":
            raise self.unknown()
        self.place += 1
        return self.tokens[self.place - 1].text

    def unknown(self) -> NotUnderstoodError:
        said = self.said(self._statement_at)
        return NotUnderstoodError(f"the host code has a statement of no known form: '{said}'")
