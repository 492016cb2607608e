"""The suite on every kind of card: complete, and no kernel leaves its buffers.

Bounds are proved on the CUDA text itself: declarations, loops and indices are read from it and
evaluated with intervals, so that an index is never larger than what is found here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import TypeAlias

import pytest

from eatss.cards import list_profiles
from eatss.measurement.characterize.bench import MOST_SMS
from eatss.measurement.characterize.benchmark import (
    Argument,
    Benchmark,
    Buffer,
    Chip,
    Group,
    Result,
)
from eatss.measurement.characterize.fit import GROUPS, PRICES, amounts_of
from eatss.measurement.characterize.run import MOST_REPEATS
from eatss.measurement.characterize.run import suite as made
from tests.measurement.characterize.scripted_bench import chip_of

KIB, GIB = 1 << 10, 1 << 30
CAPABILITIES = (70, 75, 80, 86, 89, 90)
SHIPPED = {profile.name: chip_of(profile) for profile in list_profiles()}
CHIPS = [
    *(pytest.param(chip, id=name) for name, chip in SHIPPED.items()),
    *(
        pytest.param(replace(SHIPPED[name], capability=capability), id=f"{name} as {capability}")
        for name in ("t4", "h200")
        for capability in CAPABILITIES
    ),
]
H200, T4 = SHIPPED["h200"], SHIPPED["t4"]
SMALL_AND_LARGE = ("h200", "t4", "xavier", "b200")


@cache
def suite(chip: Chip) -> tuple[Benchmark, ...]:
    return tuple(made(chip))


def of(group: Group, chip: Chip = H200) -> tuple[Benchmark, ...]:
    return tuple(one for one in suite(chip) if one.group == group)


def parameters(group: Group, name: str) -> list[float]:
    return [dict(one.parameters)[name] for one in of(group)]


# what there is


@pytest.mark.parametrize("chip", CHIPS)
def test_loops_hold_as_many_operations_as_the_machine_code_is_to_have(chip: Chip) -> None:
    """Operations are of threads in arithmetic and intensity, of warps elsewhere."""
    for one in suite(chip):
        if not one.expected or one.group == "launch":
            continue
        counted = sum(one.expected.values())
        each = 32 if one.group in ("arithmetic", "intensity") else 1
        if one.operations:
            assert one.operations <= one.loops * counted * each * (1 + 1e-9), one.name


def test_the_suite_exercises_every_price_of_the_fit() -> None:
    found: set[str] = set()
    for one in suite(H200):
        if one.group in GROUPS:
            opcodes = tuple(
                (opcode.split("|")[0].replace("\\", ""), count)
                for opcode, count in one.expected.items()
            )
            found |= amounts_of(_result(one, opcodes)).keys()
    assert {feature for feature, _ in PRICES} <= found


def _result(one: Benchmark, opcodes: tuple[tuple[str, int], ...]) -> Result:
    return Result(
        name=one.name,
        group=one.group,
        amounts=one.amounts,
        loops=one.loops,
        time_s=1.0,
        opcodes=opcodes,
    )


# the curves


@pytest.mark.parametrize("conflicts", range(32))
def test_a_store_has_as_many_conflicts_as_it_says(conflicts: int) -> None:
    """By the index of the kernel: lanes on the busiest bank, no two of them in one word."""
    rows = conflicts + 1
    assert "(lane % (conflicts + 1)) * 32 + lane / (conflicts + 1)" in of("bank conflicts")[0].text
    words = [lane % rows * 32 + lane // rows for lane in range(32)]
    assert len(set(words)) == 32
    banks = [word % 32 for word in words]
    assert max(map(banks.count, banks)) == rows


# intervals


@dataclass(frozen=True, slots=True)
class Span:
    """Every whole number from ``low`` to ``high``, by which unsigned arithmetic bounds others."""

    low: int
    high: int

    def __post_init__(self) -> None:
        assert 0 <= self.low <= self.high

    def __add__(self, other: Number) -> Span:
        other = span(other)
        return Span(self.low + other.low, self.high + other.high)

    def __mul__(self, other: Number) -> Span:
        other = span(other)
        return Span(self.low * other.low, self.high * other.high)

    __radd__, __rmul__ = __add__, __mul__

    def __floordiv__(self, other: Number) -> Span:
        other = span(other)
        return Span(self.low // other.high, self.high // other.low)

    def __mod__(self, other: Number) -> Span:
        other = span(other)
        if self.high < other.low:
            return self
        return Span(0, other.high - 1)

    def __and__(self, other: Number) -> Span:
        return Span(0, min(self.high, span(other).high))

    def __or__(self, other: Number) -> Span:
        most = max(self.high, span(other).high)
        return Span(0, (1 << most.bit_length()) - 1)

    def joined(self, other: Number) -> Span:
        other = span(other)
        return Span(min(self.low, other.low), max(self.high, other.high))


Number: TypeAlias = Span | int
WORD = Span(0, 2**32 - 1)


def span(number: Number) -> Span:
    return number if isinstance(number, Span) else Span(number, number)


def last_of(first: Span, bound: int, step: int) -> int:
    """Return the largest ``i + n step`` below ``bound`` for an ``i`` of ``first``."""
    over = (bound - 1 - first.low) % step
    return bound - 1 - max(0, over - (first.high - first.low))


# the CUDA text

SIZES = {
    "unsigned char": 1, "uchar1": 1, "ushort1": 2, "uint1": 4, "unsigned": 4, "uint2": 8,
    "long long": 8, "unsigned long long": 8, "uint4": 16, "float4": 16, "double2": 16,
}  # fmt: skip
_INTEGER = r"(?:unsigned long long|unsigned|int)"
_LOOP = re.compile(
    rf"for \({_INTEGER} (?P<name>\w+) = (?P<first>[^;]+); (?P=name) < (?P<bound>[^;]+); "
    r"(?:\+\+\w+|\w+ \+= (?P<step>[^;]+?))\)(?=[\s{])"
)
_DECLARED = re.compile(rf"\b(?:const )?{_INTEGER} (?P<all>\w+ = [^;{{]+);")
_ASSIGNED = re.compile(r"^\s*(?P<name>\w+) (?P<how>\+?=) (?P<value>[^;]+);\s*$", re.MULTILINE)
_SUBSCRIPT = re.compile(r"\b(?P<name>out|in|held|table|cycles)\[")
_POINTED = re.compile(r"\*\((?:const|volatile) (?P<type>[\w ]+?) \*\)\((?P<name>in) \+ ")
_ASM = re.compile(r"asm volatile\((?P<text>.*?)\);", re.DOTALL)
_ARRAY = re.compile(r"__(?:shared|constant)__ (?:__align__\(16\) )?unsigned (\w+)\[(\d*)\]")


def closing(text: str, opened: int) -> int:
    """Return where the bracket closes that opens at a place."""
    depth = 0
    for at in range(opened, len(text)):
        depth += (text[at] in "([") - (text[at] in ")]")
        if not depth:
            return at
    raise AssertionError(text[opened:])


def parts(text: str) -> Iterator[str]:
    """Yield what commas outside of brackets separate."""
    depth, begun = 0, 0
    for at, sign in enumerate(text):
        depth += (sign in "([") - (sign in ")]")
        if sign == "," and not depth:
            yield text[begun:at]
            begun = at + 1
    yield text[begun:]


def unfolded(text: str) -> str:
    """Return a text with its ``word(k)`` written out."""
    given = re.search(r"auto word = .* return in\[(.*)\]; };", text)
    if given is None:
        return text
    text = text.replace(given[0], "")
    while (found := text.find("word(")) >= 0:
        end = closing(text, found + 4)
        index = re.sub(r"\bk\b", f"({text[found + 5 : end]})", given[1])
        text = f"{text[:found]}in[{index}]{text[end + 1 :]}"
    return text


def python(expression: str) -> str:
    """Return an expression of whole numbers as Python has it; loads become ``loaded``."""
    text = expression.replace("(unsigned)__cvta_generic_to_shared(held)", "0")
    text = re.sub(rf"\((?:{_INTEGER}|long long)\)", "", text)
    text = re.sub(r"\b(\d+)(?:ull|ll|u)\b", r"\1", text)
    while (found := _SUBSCRIPT.search(text)) is not None:
        text = text[: found.start()] + "loaded" + text[closing(text, found.end() - 1) + 1 :]
    return " ".join(text.replace(".x", "_x").replace("/", "//").split())


@dataclass(frozen=True, slots=True)
class Access:
    """A stretch of memory that a kernel may touch: bytes below ``end``."""

    name: str
    end: int


class Kernel:
    """What a kernel touches, by intervals of everything that its indices are made of."""

    def __init__(self, benchmark: Benchmark) -> None:
        self.text = unfolded(benchmark.text)
        begun = self.text.index("timed(")
        declared = self.text[begun + 6 : closing(self.text, begun + 5)]
        self.sizes: dict[str, int] = {}
        self.limits: dict[str, int] = {"shared": benchmark.shared_bytes}
        repeat = benchmark.repeats or MOST_REPEATS
        self.names: dict[str, Number] = {
            "threadIdx_x": Span(0, benchmark.threads - 1),
            "blockIdx_x": Span(0, benchmark.blocks - 1),
            "blockDim_x": benchmark.threads,
            "gridDim_x": benchmark.blocks,
            "loaded": WORD,
        }
        for parameter, argument in zip(declared.split(","), benchmark.arguments, strict=True):
            self._parameter(parameter.strip(), argument, repeat)
        for name, count in _ARRAY.findall(self.text):
            self.limits[name] = 4 * int(count) if count else benchmark.shared_bytes
            self.sizes[name] = 4
            if "__shared__" in self.text:
                self.limits["shared"] = self.limits[name]
        if "held[1024]" in self.text and benchmark.group in ("chase", "latency"):
            self.names["loaded"] = span(self.names["loaded"]) & 1023  # if shared memory is chased
        for buffer in benchmark.arguments:
            if isinstance(buffer, Buffer) and buffer.fill in ("ring", "chain"):
                words = buffer.size_bytes // 4
                assert buffer.fill == "chain" or words % 32 == 0
                self.names["loaded"] = Span(
                    0, max(words - 1, span(self.names["loaded"]).high & 1023)
                )

    def _parameter(self, text: str, argument: Argument, repeat: int) -> None:
        kind, name = re.fullmatch(r"(.*?[\s*])(?:__restrict__ )?(\w+)", text).groups()  # type: ignore[union-attr]
        if argument == "repeat":
            self.names[name] = Span(1, repeat)
        elif argument == "recording":
            self.names[name] = Span(0, 1)
        elif isinstance(argument, int):
            self.names[name] = argument
        else:
            self.sizes[name] = SIZES[kind.replace("const", "").replace("*", "").strip()]
            size = argument.size_bytes if isinstance(argument, Buffer) else 24 * MOST_SMS
            self.limits[name] = size

    def value(self, expression: str) -> Span:
        return span(eval(python(expression), {"__builtins__": {}}, dict(self.names)))

    def accesses(self) -> Iterator[Access]:
        """Yield every access of the text, with the names as they are where it stands."""
        loops = list(_LOOP.finditer(self.text))
        assert len(loops) == self.text.count("for (")
        events = [(one.start(), "loop", one) for one in loops]
        events += [
            (one.start(), "declared", one)
            for one in _DECLARED.finditer(self.text)
            if not any(loop.start() < one.start() < loop.end() for loop in loops)
        ]
        for kind, form in (("subscript", _SUBSCRIPT), ("pointed", _POINTED), ("asm", _ASM)):
            events += [(one.start(), kind, one) for one in form.finditer(self.text)]
        for _, kind, found in sorted(events, key=lambda event: event[0]):
            if kind == "loop":
                self._loop(found)
            elif kind == "declared":
                self._declare(found["all"])
            elif kind == "asm":
                yield from self._asm(found["text"])
            elif kind == "pointed":
                opened = self.text.rindex("(", 0, found.end() - 5 + 1)
                index = self.text[found.end() : closing(self.text, opened)]
                yield self._access(found["name"], index, SIZES[found["type"]])
            elif f"unsigned {found[0]}" not in self.text[found.start() - 9 : found.end()]:
                index = self.text[found.end() : closing(self.text, found.end() - 1)]
                yield self._access(found["name"], index, None)

    def _access(self, name: str, index: str, width: int | None) -> Access:
        size = self.sizes[name]
        return Access(name, self.value(index).high * size + (width or size))

    def _loop(self, found: re.Match[str]) -> None:
        first, bound = self.value(found["first"]), self.value(found["bound"]).high
        step = self.value(found["step"]).low if found["step"] else 1
        last = last_of(first, bound, step) if bound > first.low else first.low
        self.names[found["name"]] = Span(first.low, last)

    def _declare(self, text: str) -> None:
        for one in parts(text):
            name, _, first = one.partition(" = ")
            try:
                self.names[name.strip()] = self.value(first)
            except (NameError, SyntaxError):  # a clock, or registers
                continue
            self._reassigned(name.strip())

    def _reassigned(self, name: str) -> None:
        """Widen a name to what it becomes later: any word, or what an expression makes of one."""
        first = self.names[name]
        for found in _ASSIGNED.finditer(self.text):
            if found["name"] == name:
                self.names[name] = WORD
                later = WORD if found["how"] == "+=" else self.value(found["value"]) & WORD
                self.names[name] = first = later.joined(first)
        if f'"=r"({name})' in self.text:
            self.names[name] = span(self.names["loaded"]).joined(first)

    def _asm(self, text: str) -> Iterator[Access]:
        wanted = re.search(r'"(?:ld|st|atom)\.(\S+) ', text)
        if wanted is None:
            return
        width = 16 if ".v4." in wanted[0] else 4
        operand = re.search(r'"[lr]"\(', text)
        assert operand is not None
        address = text[operand.end() : closing(text, operand.end() - 1)]
        if "shared" in wanted[1]:
            yield Access("shared", self.value(address).high + width)
        else:
            name, _, index = address.partition(" + ")
            yield self._access(name, index, width)


def outside(benchmark: Benchmark) -> list[str]:
    """Return which accesses of a kernel may lie beyond their buffers."""
    kernel = Kernel(benchmark)
    touched = list(kernel.accesses())
    assert touched, benchmark.name
    return [
        f"{benchmark.name}: {one.name} up to byte {one.end} of {kernel.limits[one.name]}"
        for one in touched
        if one.end > kernel.limits[one.name]
    ]


@pytest.mark.parametrize("chip", [SHIPPED[name] for name in SMALL_AND_LARGE], ids=SMALL_AND_LARGE)
def test_no_kernel_reads_or_writes_outside_its_buffers(chip: Chip) -> None:
    assert chip.sms <= MOST_SMS
    assert [found for one in suite(chip) for found in outside(one)] == []


def smaller(benchmark: Benchmark, number: int, by: int) -> Benchmark:
    changed = list(benchmark.arguments)
    buffer = changed[number]
    assert isinstance(buffer, Buffer)
    changed[number] = replace(buffer, size_bytes=buffer.size_bytes - by)
    return replace(benchmark, arguments=tuple(changed))


def test_the_proof_finds_a_block_size_pattern_that_reads_four_times_its_buffer() -> None:
    for one in of("block size"):
        if "shared" in one.name:
            continue
        number = 0 if "write" in one.name else 1
        buffer = one.arguments[number]
        assert isinstance(buffer, Buffer)
        wrong = smaller(one, number, buffer.size_bytes // 4 * 3)
        assert outside(wrong) != [], one.name


@pytest.mark.parametrize("chip", [H200, T4], ids=["h200", "t4"])
@pytest.mark.parametrize("group", ["coalescing", "stride"])
def test_gathers_go_through_the_whole_buffer_and_not_twice_through_a_sector(
    chip: Chip, group: Group
) -> None:
    """By the index itself, evaluated for warps across a launch."""
    for one in of(group, chip):
        place = re.search(r"\(in \+ \((.*)\)\);", one.text)
        assert place is not None
        code = compile(python(place[1]), "place", "eval")
        assert one.repeats is not None
        total = 32 * one.blocks * one.threads * one.repeats
        warps = {int(k * (total // 32 - 1) / 399) for k in range(400)}
        reached, sectors = 0, []
        for warp in warps:
            touched = {eval(code, {}, {"n": 32 * warp + lane}) for lane in range(32)}
            reached = max(reached, *touched)
            sectors += [byte // 32 for byte in {byte // 32 * 32 for byte in touched}]
        amounts = dict(one.amounts)
        each = amounts["dram_read_bytes"] / 32 / one.operations
        assert len(sectors) == pytest.approx(each * len(warps), rel=0.01), one.name
        assert 0.7 * GIB < reached < GIB + 256 * KIB, one.name
        if dict(one.parameters).get("stride_bytes", 32) >= 32:
            # samples, so few repeats by chance: far fewer than if rounds met again
            assert len(set(sectors)) > 0.97 * len(sectors), one.name
