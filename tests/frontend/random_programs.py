"""Random affine C programs, and what they do when they run.

``generate`` writes a program twice from the same loops and conditions: once for the front end,
once with every statement replaced by code that prints what it would touch. ``run_traces``
compiles the second form of several programs into one executable and returns, for each, the
statement instances in order of execution. ``instances_of`` lists the same from a ``Scop``.
"""

from __future__ import annotations

import random
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import islpy as isl

from eatss.polyhedral.expression import AffineValue, Array, Binary, Cast, Expression
from eatss.polyhedral.isl_names import at_values, points_of
from eatss.polyhedral.scop import Scop

MACROS = """\
#define NC 12
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define FLOORD(n, d) (((n) < 0) ? -((-(n) + (d) - 1) / (d)) : (n) / (d))
#define CEILD(n, d) (((n) < 0) ? -((-(n)) / (d)) : ((n) + (d) - 1) / (d))
"""

Touch = tuple[str, tuple[int, ...]]


@dataclass(frozen=True)
class Instance:
    """One statement instance: its counters, elements (write first), value of its affine part."""

    statement: int
    counters: tuple[int, ...]
    touches: tuple[Touch, ...]
    value: int


@dataclass
class Program:
    """A random program; ``n`` and ``m`` are the values of its parameters when traced."""

    source: str
    traced: str
    n: int
    m: int


@dataclass
class _Writer:
    rng: random.Random
    source: list[str] = field(default_factory=list)
    traced: list[str] = field(default_factory=list)
    statements: int = 0
    fresh: int = 0

    def both(self, line: str) -> None:
        self.source.append(line)
        self.traced.append(line)

    def chance(self, percent: int) -> bool:
        return self.rng.randrange(100) < percent

    # -- expressions ------------------------------------------------------------------

    def affine(self, names: list[str], depth: int = 2) -> str:
        """Return an integer expression; now and then with min, max, ?:, / or %."""
        terms = []
        for name in self.rng.sample(names, min(len(names), self.rng.randint(0, 2))):
            factor = self.rng.choice([1, 1, 1, 1, -1, 2, -2, 3])
            terms.append({1: name, -1: f"-{name}"}.get(factor, f"{factor} * {name}"))
        constant = self.rng.randint(-3, 5)
        if constant or not terms:
            terms.append(str(constant))
        text = " + ".join(terms).replace("+ -", "- ")
        if depth and self.chance(30):
            text = self.special(text, self.affine(names, depth - 1), names, depth - 1)
        return text

    def special(self, a: str, b: str, names: list[str], depth: int) -> str:
        divisor = self.rng.choice([2, 3, 5])
        condition = self.condition(names, depth)
        return self.rng.choice(
            [
                f"MIN({a}, {b})",
                f"MAX({a}, {b})",
                f"({a}) / {divisor}",
                f"({a}) % {divisor}",
                f"(({a}) % {divisor} + ({b}))",
                f"FLOORD({a}, {divisor})",
                f"CEILD({a}, {divisor})",
                f"({condition} ? {a} : {b})",
                f"(({a}) - ({b}))",
                f"min({a}, {b})",
                f"largest({a}, {b})",
            ]
        )

    def condition(self, names: list[str], depth: int = 1) -> str:
        left, right = self.affine(names, 0), self.affine(names, 0)
        simple = f"{left} {self.rng.choice(['<', '<=', '>', '>=', '==', '!='])} {right}"
        if self.chance(20):
            simple = f"({left}) % {self.rng.choice([2, 3])} {self.rng.choice(['==', '!='])} 0"
        if depth and self.chance(30):
            other = self.condition(names, depth - 1)
            simple = f"({simple}) {self.rng.choice(['&&', '||'])} ({other})"
        if depth and self.chance(15):
            simple = f"!({simple})"
        return simple

    # -- statements -------------------------------------------------------------------

    def block(self, counters: list[str], rows: list[str], depth: int) -> None:
        for _ in range(self.rng.choice([1, 1, 2])):
            roll = self.rng.randrange(100)
            if depth < 3 and (roll < 55 or depth == 0):
                self.loop(counters, rows, depth)
            elif roll < 75 and depth < 4:
                self.branch(counters, rows, depth)
            elif roll < 80 and depth > 0:
                self.leave(counters)
            else:
                self.statement(counters, rows)

    def branch(self, counters: list[str], rows: list[str], depth: int) -> None:
        self.both(f"if ({self.condition([*counters, 'n', 'm'])}) {{")
        self.block(counters, rows, depth + 1)
        if self.chance(40):
            self.both("} else {")
            self.statement(counters, rows)
        self.both("}")

    def leave(self, counters: list[str]) -> None:
        how = self.rng.choice(["continue", "break"])
        self.both(f"if ({self.condition([*counters, 'n', 'm'])}) {how};")

    def loop(self, counters: list[str], rows: list[str], depth: int) -> None:
        names = [*counters, "n", "m"]
        self.fresh += 1
        counter = f"i{self.fresh}"
        if self.chance(25):
            self.both(f"for (int {counter} = 0; {counter} < m; {counter}++) {{")
            rows = [*rows, counter]
        elif self.chance(60):
            self.up(counter, names)
        else:
            self.down(counter, names)
        inner = [*counters, counter]
        self.block(inner, rows, depth + 1)
        if self.chance(30):
            self.statement(inner, rows)
        self.both("}")

    def up(self, c: str, names: list[str]) -> None:
        start, end = self.affine(names), f"{self.affine(names)} + {self.rng.randint(0, 6)}"
        stride = self.rng.choice([1, 1, 1, 2, 3])
        test = self.rng.choice(
            [
                f"{c} < {end}",
                f"{c} <= {end}",
                f"{end} > {c}",
                f"{c} < {end} && {c} <= {self.affine(names, 1)}",
                f"2 * {c} < {end}",
                f"{c} - 1 <= ({end})",
                f"{c} < MIN({end}, {self.affine(names, 0)})",
                f"{c} < MAX({end}, {self.affine(names, 0)})",
            ]
        )
        self.both(f"for (int {c} = {start}; {test}; {self.step(c, '+', '-', stride)}) {{")

    def step(self, c: str, sign: str, other: str, stride: int) -> str:
        ways = [f"{c} {sign}= {stride}", f"{c} = {c} {sign} {stride}", f"{c} {other}= -{stride}"]
        step = self.rng.choice(ways)
        twice = 2 * sign
        return self.rng.choice([f"{c}{twice}", f"{twice}{c}", step]) if stride == 1 else step

    def down(self, c: str, names: list[str]) -> None:
        start, end = f"{self.affine(names)} + {self.rng.randint(0, 6)}", self.affine(names)
        stride = self.rng.choice([1, 1, 1, 2, 3])
        test = self.rng.choice([f"{c} > {end}", f"{c} >= {end}", f"{end} <= {c}", f"-{c} < {end}"])
        self.both(f"for (int {c} = {start}; {test}; {self.step(c, '-', '+', stride)}) {{")

    def statement(self, counters: list[str], rows: list[str]) -> None:
        names = [*counters, "n", "m"]
        references = [self.reference(names, rows) for _ in range(self.rng.randint(2, 3))]
        value = f"7 * n + ({self.affine(names)})"  # never a constant
        target, *others = references
        compound = self.chance(40)
        declared = self.chance(10)
        right = " + ".join([text for text, _ in others] + [f"(double) ({value})"])
        if declared:
            self.fresh += 1
            name, compound = f"t{self.fresh}", False
            target = (name, (name, []))
            self.source.append(f"double {name} = {right};")
        else:
            self.source.append(f"{target[0]} {'+=' if compound else '='} {right};")
        touched = [target, *([target] if compound else []), *others]
        printing = [f'printf("%d|", {self.statements});']
        printing += [f'printf("%d ", {c});' for c in counters]
        printing.append('printf("|");')
        for _, (array, subscripts) in touched:
            printing.append(f'printf("{array}");')
            printing += [f'printf(" %d", {s});' for s in subscripts]
            printing.append('printf(";");')
        printing.append(f'printf("|%d\\n", {value});')
        self.traced.append("{ " + " ".join(printing) + " }")
        self.statements += 1

    def reference(self, names: list[str], rows: list[str]) -> tuple[str, tuple[str, list[str]]]:
        kind = self.rng.randrange(6)
        first, second = self.affine(names), self.affine(names)
        if kind == 0:
            return f"A[{first}][{second}]", ("A", [first, second])
        if kind == 1:
            return f"V[{first}][{second}]", ("V", [first, second])
        if kind == 2:
            return "s", ("s", [])
        if kind == 3:
            inner = self.rng.choice([*rows, second])
            subscript = f"({first}) * NC + {inner}"
            return f"C[{subscript}]", ("C", [subscript])
        if kind == 4 and rows:
            inner = self.rng.choice(rows)
            row = self.affine(names, 0)
            subscript = self.rng.choice(
                [
                    f"({row}) * m + {inner}",
                    f"{inner} + m * ({row})",
                    f"({row}) * m + m - 1 - {inner}",
                ]
            )
            return f"L[{subscript}]", ("L", [subscript])
        return f"B[{first}]", ("B", [first])


def generate(seed: int) -> Program:
    """Write the program of a seed."""
    writer = _Writer(random.Random(seed))
    for _ in range(writer.rng.choice([1, 2])):
        writer.block([], [], 0)
    body = "\n".join(writer.source)
    source = (
        MACROS
        + "static double A[NC][NC];\nint min(int, int);\n"
        + "static int largest(int a, int b) { return a > b ? a : b; }\n"
        + "void kernel(int n, int m, double V[n][m], double *B, double *C, double *L, double s)\n"
        + "{\n#pragma scop\n" + body + "\n#pragma endscop\n}\n"
    )  # fmt: skip
    return Program(
        source=source,
        traced="\n".join(writer.traced),
        n=writer.rng.randint(-1, 7),
        m=writer.rng.randint(1, 6),
    )


def run_traces(programs: list[Program], folder: Path) -> list[list[Instance]]:
    """Compile and run programs; return what each executed, in order."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    assert compiler is not None, "a C compiler is needed"
    parts = [
        "#include <stdio.h>\n" + MACROS,
        "static int min(int a, int b) { return a < b ? a : b; }",
        "static int largest(int a, int b) { return a > b ? a : b; }",
    ]
    calls = []
    for number, program in enumerate(programs):
        parts.append(f"static void p{number}(int n, int m) {{\n{program.traced}\n}}")
        calls.append(f'puts("program"); p{number}({program.n}, {program.m});')
    parts.append("int main(void) {\n" + "\n".join(calls) + "\nreturn 0;\n}")
    text, executable = folder / "traced.c", folder / "traced"
    text.write_text("\n".join(parts))
    subprocess.run(
        [compiler, "-std=c99", "-O0", "-fwrapv", "-w", "-o", str(executable), str(text)],
        check=True,
    )
    output = subprocess.run([str(executable)], check=True, capture_output=True, text=True).stdout
    traces: list[list[Instance]] = []
    for line in output.splitlines():
        if line == "program":
            traces.append([])
        else:
            traces[-1].append(_instance(line))
    return traces


def _instance(line: str) -> Instance:
    statement, counters, touches, value = line.split("|")
    return Instance(
        statement=int(statement),
        counters=tuple(int(c) for c in counters.split()),
        touches=tuple(_touch(t) for t in touches.split(";") if t),
        value=int(value),
    )


def _touch(text: str) -> Touch:
    array, *subscripts = text.split()
    return array, tuple(int(s) for s in subscripts)


# -- the same from a Scop ----------------------------------------------------------------


def instances_of(scop: Scop, values: dict[str, int]) -> list[Instance]:
    """List the statement instances of a scop in the order of its schedule.

    Subscripts of delinearised arrays are put together again by the sizes in the extents.
    """
    timed: list[tuple[tuple[int, ...], Instance]] = []
    for statement in scop.statements:
        schedule = points_of_map(statement.schedule, values)
        touched = [
            {
                point: flat(scop.array(access.array), element, values)
                for point, element in points_of_map(access.relation, values).items()
            }
            for access in statement.accesses
        ]
        value = isl.Map.from_pw_aff(_affine_part(statement.value))
        numbers = points_of_map(value.intersect_domain(statement.domain), values)
        domain = points_of(at_values(statement.domain, (*values.items(),)))
        assert all({*domain} == {*known} for known in (schedule, numbers, *touched))
        for point in domain:
            touches = tuple(
                (access.array, elements[point])
                for access, elements in zip(statement.accesses, touched, strict=True)
            )
            instance = Instance(
                statement=int(statement.name[1:]),
                counters=point,
                touches=touches,
                value=numbers[point][0],
            )
            timed.append((schedule[point], instance))
    times = [time for time, _ in timed]
    assert len(set(times)) == len(times), "two instances at one time"
    return [instance for _, instance in sorted(timed, key=lambda pair: pair[0])]


def points_of_map(
    isl_map: isl.Map, values: dict[str, int]
) -> dict[tuple[int, ...], tuple[int, ...]]:
    """List a single-valued bounded map where parameters have values."""
    inputs = isl_map.dim(isl.dim_type.in_)
    found: dict[tuple[int, ...], tuple[int, ...]] = {}
    for point in points_of(at_values(isl_map, (*values.items(),)).wrap()):
        assert point[:inputs] not in found, "not single-valued"
        found[point[:inputs]] = point[inputs:]
    return found


def flat(array: Array, element: tuple[int, ...], values: dict[str, int]) -> tuple[int, ...]:
    """Return the subscripts as in the source: one number for the arrays of one dimension."""
    if array.name not in ("B", "C", "L"):
        return element
    index = element[0]
    for position, coordinate in enumerate(element[1:], start=1):
        last = isl.Set.from_pw_aff(array.extent.dim_max(position))
        ((bound,),) = points_of(at_values(last, (*values.items(),)))
        index = index * (bound + 1) + coordinate
    return (index,)


def _affine_part(expression: Expression) -> isl.PwAff:
    """Return the last operand of the sum, the converted affine value."""
    while isinstance(expression, Binary):
        expression = expression.right
    assert isinstance(expression, Cast)
    assert isinstance(expression.operand, AffineValue)
    return expression.operand.value
