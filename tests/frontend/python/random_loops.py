"""Random affine loops in Python: arrays of several types, all arithmetic of the subset."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.frontend.python.running import DTYPES

FLOATS = ("f64", "f64", "f32")
INTEGERS = ("i32", "i64")
EXTENT = 6


@dataclass
class Writer:
    """Writes one function; every subscript stays inside, and nothing leaves its type.

    ``plain`` leaves out what isl's dataflow takes long for, or dies of: subscripts that divide.
    """

    rng: random.Random
    plain: bool = False
    lines: list[str] = field(default_factory=list)
    arrays: dict[str, str] = field(default_factory=dict)
    fresh: int = 0
    statements: int = 0

    def chance(self, percent: int) -> bool:
        return self.rng.randrange(100) < percent

    def put(self, depth: int, text: str) -> None:
        self.lines.append("    " * (depth + 1) + text)

    # -- integers of Python -------------------------------------------------------------

    def affine(self, names: list[str], depth: int = 2) -> str:
        depth = min(depth, 1) if self.plain else depth
        terms = [
            self.rng.choice([name, name, f"2 * {name}", f"-{name}", f"{name} * 3"])
            for name in self.rng.sample(names, min(len(names), self.rng.randint(0, 2)))
        ]
        constant = self.rng.randint(-4, 5)
        if constant or not terms:
            terms.append(str(constant))
        text = " + ".join(terms)
        if depth and self.chance(45):
            other = self.affine(names, depth - 1)
            divisor = self.rng.choice([2, 3, 4, 5])
            text = self.rng.choice(
                [
                    f"({text}) // {divisor}",
                    f"({text}) % {divisor}",
                    f"min({text}, {other})",
                    f"max({text}, {other}, 1)",
                    f"abs({text})",
                    f"-({text})",
                    f"({text} if {self.condition(names, 0)} else {other})",
                    f"({text}) - ({other})",
                ]
            )
        return text

    def condition(self, names: list[str], depth: int = 2) -> str:
        one, two = self.affine(names, 1), self.affine(names, 0)
        sign = self.rng.choice(["<", "<=", ">", ">=", "==", "!="])
        text = f"{one} {sign} {two}"
        if self.chance(25):
            text = f"{self.affine(names, 0)} {self.rng.choice(['<', '<='])} {text}"
        if self.chance(10):
            text = f"({self.affine(names, 0)}) % 2"
        if depth and self.chance(40):
            other = self.condition(names, depth - 1)
            text = f"{text} {self.rng.choice(['and', 'or'])} {other}"
            text = self.rng.choice([text, f"({text})"])
        if depth and self.chance(15):
            text = f"not ({text})"
        return text

    def element(self, kinds: tuple[str, ...], names: list[str]) -> str:
        array = self.rng.choice([name for name, kind in self.arrays.items() if kind in kinds])
        if self.plain:
            inside = [*(set(names) & {"i", "j", "k"}), "0", "n - 1", "3"]
            return f"{array}[{self.rng.choice(inside)}, {self.rng.choice(inside)}]"
        subscripts = [f"({self.affine(names)}) % {EXTENT}" for _ in range(2)]
        if self.chance(40) and "i" in names:
            subscripts[0] = "i"
        form = "{0}[{1}, {2}]" if self.chance(70) else "{0}[{1}][{2}]"
        return form.format(array, *subscripts)

    # -- numbers ------------------------------------------------------------------------

    def floating(self, names: list[str], kind: str, depth: int) -> str:
        """Return an expression that is mostly of one floating-point type."""
        if depth == 0 or self.chance(20):
            return self.rng.choice(
                [
                    self.element((kind,), names),
                    self.element((kind,), names),
                    self.element(("f64", "f32"), names),
                    self.element(INTEGERS, names),
                    f"({self.affine(names)})",
                    self.rng.choice(["0.5", "2", "0.1", "1e-3", "3.25", "-1.5", "math.pi"]),
                    "alpha",
                ]
            )
        one, two = (self.floating(names, kind, depth - 1) for _ in range(2))
        same = self.element((kind,), names)
        like = self.element((kind,), names)
        return self.rng.choice(
            [
                f"{one} + {two}",
                f"({one} - {two})",
                f"{same} * ({one} + {two})",
                f"({one}) / (abs({same}) + 1)",
                f"-({one})",
                f"max({same}, {like})",
                f"min({same}, {like}, 0.5)",
                f"({same} if {one} < {two} else {like})",
                f"({same} if {self.condition(names, 1)} else 0.0)",
                f"math.sqrt(abs({one}))",
                f"np.sqrt(abs({same}))",
                f"np.float32({one}) * {same}",
                f"np.floor({same}) + np.fmax({same}, {like})",
                f"math.fabs({one}) * {two}",
            ]
        )

    def integer(self, names: list[str], kind: str, depth: int) -> str:
        """Return an integer expression whose operands are elements of one type, and numbers."""
        if depth == 0 or self.chance(25):
            mixed = self.chance(20)
            return self.element(INTEGERS if mixed else (kind,), names)
        one, two = (self.integer(names, kind, depth - 1) for _ in range(2))
        same, like = self.element((kind,), names), self.element((kind,), names)
        return self.rng.choice(
            [
                f"{one} + {two}",
                f"({one} - {two})",
                f"({one}) // {self.rng.choice([2, 3, 7])}",
                f"({one}) % {self.rng.choice([2, 5, 10])}",
                f"{one} + {self.rng.randint(0, 9)}",
                f"max({same}, {like})",
                f"({same} if {same} < {like} else {like})",
                f"({one} & {two})",
                f"({same} ^ {like} | {self.rng.randint(0, 9)})",
                f"{same} ** 2",
            ]
        )

    def statement(self, names: list[str], depth: int) -> None:
        self.statements += 1
        if self.chance(70):
            kind = self.rng.choice(FLOATS)
            target = self.element((kind,), names)
            value = self.floating(names, kind, self.rng.randint(1, 3))
            sign = self.rng.choice(["=", "=", "+=", "-=", "*="])
            self.put(depth, f"{target} {sign} {value}")
            return
        kind = self.rng.choice(INTEGERS)
        target, value = self.element((kind,), names), self.integer(names, kind, 2)
        self.put(depth, f"{target} = ({value}) % 20")

    def accumulation(self, names: list[str], depth: int) -> None:
        """Write a local that sums in a loop of its own."""
        self.fresh += 1
        total, counter = f"t{self.fresh}", f"c{self.fresh}"
        kind = self.rng.choice(FLOATS)
        self.put(depth, f"{total} = {self.rng.choice(['0.0', '0', '1.5'])}")
        self.put(depth, f"for {counter} in range({self.rng.choice(['n', '0, n, 2', '3'])}):")
        self.put(depth + 1, f"{total} += {self.element((kind,), [*names, counter])}")
        self.put(depth, f"{self.element((kind,), names)} = {total} * 0.5")

    def shifted(self, names: list[str], depth: int) -> None:
        """Write a local integer that subscripts use."""
        self.fresh += 1
        name = f"k{self.fresh}"
        value = "i" if self.plain else f"({self.affine(names)}) % {EXTENT}"
        self.put(depth, f"{name} = {value}")
        kind = self.rng.choice(FLOATS)
        target = next(a for a, k in self.arrays.items() if k == kind)
        self.put(depth, f"{target}[{name}, 0] = {self.floating([*names, name], kind, 1)}")

    def block(self, names: list[str], depth: int) -> None:
        for _ in range(self.rng.choice([1, 1, 2])):
            roll = self.rng.randrange(100)
            if depth < 3 and (roll < 45 or depth == 0):
                self.loop(names, depth)
            elif roll < 65 and depth < 4:
                self.put(depth, f"if {self.condition(names)}:")
                self.block(names, depth + 1)
                if self.chance(30):
                    self.put(depth, f"elif {self.condition(names)}:")
                    self.statement(names, depth + 1)
                if self.chance(40):
                    self.put(depth, "else:")
                    self.put(depth + 1, "pass")
                    self.statement(names, depth + 1)
            elif roll < 75:
                self.accumulation(names, depth)
            elif roll < 82:
                self.shifted(names, depth)
            else:
                self.statement(names, depth)

    def loop(self, names: list[str], depth: int) -> None:
        counter = "ijk"[depth]
        inner = [name for name in names if name != counter]
        start, end = self.affine(inner, 1), self.affine(inner, 1)
        step = self.rng.choice([1, 2, 3, -1, -1, -2])
        head = self.rng.choice(
            ["n", "n", f"{EXTENT}", f"{start}, {end}", f"{start}, {end}, {step}", "n - 1, -1, -1"]
        )
        if counter == "i" or self.plain:  # it subscripts arrays as it is
            head = self.rng.choice(["n", "n - 1, -1, -1", "1, n, 2", "m"])
        self.put(depth, f"for {counter} in range({head}):")
        self.block([*inner, counter], depth + 1)


def generate(seed: int, *, plain: bool = False) -> str:
    """Write the function of a seed."""
    writer = Writer(random.Random(seed), plain)
    kinds = ["f64", "f32", *INTEGERS]
    writer.arrays = {f"A_{kind}": kind for kind in kinds} | {"B_f64": "f64", "B_f32": "f32"}
    for _ in range(writer.rng.choice([1, 2])):
        writer.block(["n", "m"], 0)
    arrays = ", ".join(
        f'{name}: eatss.{kind}["n", {EXTENT}]' for name, kind in writer.arrays.items()
    )
    head = f"def loops(n: eatss.Param, m: eatss.Param, alpha: eatss.f32, {arrays}):"
    return "\n".join(["@eatss.scop", head, *writer.lines]) + "\n"


def arguments(seed: int) -> list[Any]:
    """Return arguments for a function that :func:`generate` wrote."""
    rng = np.random.default_rng(seed)
    values: list[Any] = [EXTENT, 4, np.float32(rng.normal())]
    for kind in [*["f64", "f32", *INTEGERS], "f64", "f32"]:
        shape = (EXTENT, EXTENT)
        if kind[0] == "f":
            values.append(rng.normal(size=shape).astype(DTYPES[kind]))
        else:
            values.append(rng.integers(0, 20, size=shape).astype(DTYPES[kind]))
    return values
