"""PPCG's host code read: the memory it allocates, its loops and launches.

PPCG replaces a region by a block of regular statements, which starts with a macro that checks the
CUDA runtime's answers. They are read as tokens, one form after the other; any other is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from eatss.frozen import frozen
from eatss.ppcg_build.integers import integer
from eatss.ppcg_build.refusal import NotUnderstoodError
from eatss.program import (
    Apply,
    Constant,
    HostIf,
    HostLoop,
    HostStep,
    IntExpr,
    Launch,
    Operator,
    equals,
)
from eatss.program.tokens import Token, closing, tokens

_START = "cudaCheckKernel"
"""The macro that PPCG defines at the start of every region."""

_DEVICE = "dev_"

Extents: TypeAlias = tuple[IntExpr, IntExpr, IntExpr]


@frozen
class DeviceMemory:
    """Memory that the host code allocates for a variable of the source.

    ``element_type`` is the C spelling; ``extents`` are those of an array, none for a scalar.
    """

    name: str
    element_type: str
    extents: tuple[IntExpr, ...]


@frozen
class Launched:
    """How a kernel is launched: threads in x, y, z, and what is passed, as in the host code.

    Memory on the device is passed as ``dev_A``.
    """

    kernel: str
    block: tuple[int, int, int]
    arguments: tuple[str, ...]


@frozen
class HostRegion:
    """What the host does for one region: ``steps`` in order, with the launches as they are."""

    memory: tuple[DeviceMemory, ...]
    launches: tuple[Launched, ...]
    steps: tuple[HostStep, ...]


def host_regions(text: str) -> tuple[HostRegion, ...]:
    """Read a host file that PPCG wrote; one entry for each region.

    Raises:
        NotUnderstoodError: a statement in a region is of no known form.
    """
    found = tokens(text)
    return tuple(_Region(found, place).read() for place in _starts(found))


def device_name(argument: str) -> str | None:
    """Return the variable whose memory on the device is passed, ``None`` for a value."""
    return argument.removeprefix(_DEVICE) if argument.startswith(_DEVICE) else None


def _starts(found: Sequence[Token]) -> Iterator[int]:
    for place, token in enumerate(found):
        if token.kind == "directive" and token.text.split()[1:2] == [f"{_START}()"]:
            yield place + 1


class _Region:
    """Reads the statements of a region from its start to the end of the block around."""

    def __init__(self, found: Sequence[Token], start: int) -> None:
        self._tokens = found
        self._place = start
        self._types: dict[str, str] = {}
        self._memory: list[DeviceMemory] = []
        self._launches: list[Launched] = []
        self._dims: dict[str, Extents] = {}

    def read(self) -> HostRegion:
        steps = self._statements()
        names = [launch.kernel for launch in self._launches]
        for name in names:
            if names.count(name) > 1:
                raise NotUnderstoodError(f"'{name}' is launched in several places")
        return HostRegion(
            memory=tuple(self._memory), launches=tuple(self._launches), steps=tuple(steps)
        )

    # -- statements ---------------------------------------------------------------------------

    def _statements(self) -> list[HostStep]:
        """Read to the bracket that closes the block."""
        steps: list[HostStep] = []
        while self._text() != "}":
            steps += self._statement()
        return steps

    def _statement(self) -> list[HostStep]:
        token = self._tokens[self._place] if self._place < len(self._tokens) else None
        if token is None:
            raise NotUnderstoodError("the host code ends inside a region")
        if token.kind == "directive":
            self._place += 1
            return []
        if token.text == "{":
            self._place += 1
            steps = self._statements()
            self._place += 1
            return steps
        if token.text == "for":
            return [self._loop()]
        if token.text == "if":
            return self._condition()
        return self._simple(self._upto_semicolon())

    def _loop(self) -> HostStep:
        head = self._head()
        ends = [place for place, token in enumerate(head) if token.text == ";"]
        if len(ends) != 2:
            raise _unknown(head)
        start, test, step = head[: ends[0]], head[ends[0] + 1 : ends[1]], head[ends[1] + 1 :]
        counter = start[1].text if len(start) > 3 else ""
        texts = [token.text for token in (*start[:3:2], *test[:1], *step[:2])]
        if texts != ["int", "=", counter, counter, "+="] or test[1].text not in ("<", "<="):
            raise _unknown(head)
        upper = integer(test[2:])
        if test[1].text == "<":
            upper = Apply(Operator.SUB, (upper, Constant(1)))
        by = integer(step[2:])
        if not isinstance(by, Constant) or by.value < 1:
            raise _unknown(head)
        body = self._statement()
        return HostLoop(
            counter=counter,
            lower=integer(start[3:]),
            upper=upper,
            step=by.value,
            body=tuple(body),
        )

    def _condition(self) -> list[HostStep]:
        condition = integer(self._head())
        steps: list[HostStep] = [HostIf(condition=condition, body=tuple(self._statement()))]
        if self._text() == "else":
            self._place += 1
            otherwise = equals(condition, 0)
            steps.append(HostIf(condition=otherwise, body=tuple(self._statement())))
        return steps

    def _simple(self, words: Sequence[Token]) -> list[HostStep]:
        texts = [token.text for token in words]
        if texts[0] == "cudaCheckReturn":
            self._call(words[2:-1])
        elif texts[:2] == [_START, "("] or not texts:
            pass
        elif texts[0] == "dim3":
            self._dims[texts[1]] = self._extents(words[2:])
        elif "<<<" in texts:
            return [self._launch(words)]
        elif "*" in texts and texts[-1].startswith(_DEVICE) and texts[-2] == "*":
            name = texts[-1].removeprefix(_DEVICE)
            self._types[name] = " ".join(texts[:-2])
        elif any(text.endswith("=") for text in texts):
            raise NotUnderstoodError(f"a statement stays on the host: '{_said(words)}'")
        else:
            raise _unknown(words)
        return []

    # -- calls and launches -------------------------------------------------------------------

    def _call(self, words: Sequence[Token]) -> None:
        """Note an allocation; copies and the end of memory are nothing of the device part."""
        function = words[0].text if words else ""
        if function in ("cudaMemcpy", "cudaFree"):
            return
        if function != "cudaMalloc":
            raise _unknown(words)
        _, size = _separated(words[2:-1])
        texts = [token.text for token in words]
        name = texts[texts.index("&") + 1].removeprefix(_DEVICE)
        if name not in self._types:
            raise NotUnderstoodError(f"memory for '{name}' is of no known type")
        place = len(size)
        while place and size[place - 1].text != "sizeof":
            place -= 1
        factors = size[: max(0, place - 1)]
        self._memory.append(
            DeviceMemory(
                name=name, element_type=self._types[name], extents=tuple(_factors(factors))
            )
        )

    def _launch(self, words: Sequence[Token]) -> HostStep:
        texts = [token.text for token in words]
        opened, closed = texts.index("<<<"), texts.index(">>>")
        if opened != 1 or texts[closed + 1] != "(" or texts[-1] != ")":
            raise _unknown(words)
        given = [_one_word(part) for part in _separated(words[opened + 1 : closed])]
        if len(given) != 2 or not all(name in self._dims for name in given):
            raise _unknown(words)
        grid, block = (self._dims[name] for name in given)
        passed = tuple(_one_word(part) for part in _separated(words[closed + 2 : -1]))
        sizes = [extent.value for extent in block if isinstance(extent, Constant)]
        if len(sizes) != 3:
            raise NotUnderstoodError(f"the block of {texts[0]} is no number")
        x, y, z = sizes
        self._launches.append(Launched(kernel=texts[0], block=(x, y, z), arguments=passed))
        return Launch(kernel=texts[0], grid=grid)

    def _extents(self, words: Sequence[Token]) -> Extents:
        extents = [integer(part) for part in _separated(words[1:-1])]
        if len(extents) > 3:
            raise _unknown(words)
        ones: list[IntExpr] = [Constant(1)] * (3 - len(extents))
        x, y, z = extents + ones
        return x, y, z

    # -- tokens -------------------------------------------------------------------------------

    def _text(self) -> str:
        return self._tokens[self._place].text if self._place < len(self._tokens) else ""

    def _head(self) -> Sequence[Token]:
        """Return what stands in the brackets after a keyword, and go on after them."""
        opening = self._place + 1
        end = closing(self._tokens, opening)
        self._place = end + 1
        return self._tokens[opening + 1 : end]

    def _upto_semicolon(self) -> Sequence[Token]:
        start = self._place
        while self._text() not in (";", ""):
            self._place += 1
        self._place += 1
        words = self._tokens[start : self._place - 1]
        if not words:
            raise NotUnderstoodError("the host code has an empty statement")
        return words


def _separated(words: Sequence[Token]) -> list[Sequence[Token]]:
    """Return what commas separate, those inside brackets left alone."""
    parts: list[Sequence[Token]] = []
    depth, start = 0, 0
    for place, token in enumerate(words):
        depth += (token.text in ("(", "[")) - (token.text in (")", "]"))
        if token.text == "," and not depth:
            parts.append(words[start:place])
            start = place + 1
    return [*parts, words[start:]] if words else []


def _factors(words: Sequence[Token]) -> Iterator[IntExpr]:
    """Yield the extents of ``(64) * (n + 1)``."""
    place = 0
    while place < len(words):
        if words[place].text != "(":
            raise _unknown(words)
        end = closing(words, place)
        yield integer(words[place + 1 : end])
        place = end + 2


def _one_word(words: Sequence[Token]) -> str:
    if len(words) != 1 or words[0].kind != "word":
        raise _unknown(words)
    return words[0].text


def _unknown(words: Sequence[Token]) -> NotUnderstoodError:
    return NotUnderstoodError(f"the host code has a statement of no known form: '{_said(words)}'")


def _said(words: Sequence[Token]) -> str:
    return " ".join(token.text for token in words[:20])
