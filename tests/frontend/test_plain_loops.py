"""Loops of any form are those that C runs."""

from __future__ import annotations

import random
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from eatss.base.diagnostics import InputError
from eatss.frontend import parse_source
from eatss.polyhedral.scop import Scop

LOOPS = (
    "for (int {i} = {s}; {i} < {e}; {i} += {c}) {{ {B} }}",
    "int {i} = {s}; while ({i} < {e}) {{ {B} {i} += {c}; }}",
    "int {i} = {s}; while ({i} <= {e}) {{ {i}++; {B} {i}++; }}",
    "int {i} = {e}; while ({i} > {s}) {{ {B} {i} = {i} - {c}; }}",
    "int {i} = {e}; while ({i} != {s}) {{ {i}--; {B} }}",
    "int {i} = {s}; do {{ {B} {i} += {c}; }} while ({i} < {e});",
    "int {i} = {s}; do {B} while (++{i} < {e});",
    "int {i} = {s}; do {{ {B} }} while ({i}++ < {e});",
    "for (int {i} = {e}; {i}-- > {s};) {{ {B} }}",
    "for (int {i} = {e}; --{i} >= {s};) {B}",
    "for (int {i} = {e}; {i} != {s}; {i}--) {B}",
    "for (int {i} = {s};; {i}++) {{ if ({i} >= {e}) break; {B} }}",
    "for (int {i} = {s};; {i}++) "
    "{{ if ({i} >= {e}) {{ break; }} if ({i} % 3 == 1) continue; {B} }}",
    "int {i} = {s}; for (; {i} < {e};) {{ {B} {i}++; }}",
    "int {i} = {s}; for (; {i} < {e}; {i} += {c}) {{ if ({i} == 2) continue; {B} }}",
    "int {i} = {s}; while (1) {{ if ({i} > {e}) break; {B} {i} += {c}; }}",
    "int {i} = {s}; while ({i} < {e}) {{ if ({i} == 3) break; {B} {i}++; }}",
    "for (int {i} = {s}, {k} = {e}; {i} < {k}; {i}++, {k}--) {{ S({k}, {i}); {B} }}",
    "int {k} = {s}; for (int {i} = 0; {i} < {e}; {i}++) "
    "{{ S({k}++, {i}); {B} S({i}, --{k}); {k}++; }}",
    "int {k}, {i}2 = -1; for (int {i} = 0; {i} < {e}; {i}++) "
    "{{ {k} = {i}2 + 1; S({k}, {i}); {i}2 = {k} + {c}; {B} }}",
    "int {i} = {s}; while ({i} < {e}) {{ {B} {i}++; }} S({i}, {i} + 1);",
    "int {i} = {s}; for (int {k} = 0; {k} < {e}; {k}++, {i} += {c}) {{ {B} }} S({i}, 0);",
    "int {i}; for ({i} = {s}; {i} + 1 < {e}; {i} += 2) {B} for (; {i} < {e}; {i}++) S({i}, 7);",
    "int {i} = 9; for ({i} = {e}; {i} >= {s}; {i} -= {c}) {B} S({i}, 5);",
    "int {i}; for ({i} = {s}; {i} < {e}; {i}++) {{ {B} {i} += {c}; }}",
    "for (unsigned {k} = {e} > 0 ? {e} : 0; {k}-- > 1;) {{ int {i} = {k}; {B} }}",
)
"""``s`` and ``e`` are affine, ``c`` is a positive number; ``k`` is a scalar beside the counter."""


def body(rng: random.Random, depth: int = 0, outer: str = "") -> str:
    """Write one loop of each depth; ``S`` is a statement."""
    name = f"i{depth}"
    inner = body(rng, depth + 1, name) if depth < rng.randint(0, 1) else ""
    offset = f" + {outer}" * rng.randint(0, 1) if outer else ""
    text = rng.choice(LOOPS).format(
        i=name,
        k=f"k{depth}",
        s=f"{rng.randint(-1, 2)}",
        e=rng.choice(["n", "m", f"{rng.randint(1, 6)}"]) + offset,
        c=rng.randint(1, 3),
        B=f"{{ S(2 * {name}, {outer or 'm'} - {name}); {inner} }}",
    )
    return f"{{ {text} }}"


def jumps(rng: random.Random) -> str:
    """Write statements of a loop over ``i`` with jumps forward."""
    count, used, text = 5, set(), ""
    jumping = []
    for at in range(count):
        goes = ""
        if rng.random() < 0.6:
            to = rng.randint(at + 1, count)
            used.add(to)
            test = rng.choice(("if (i % 2) ", "if (i > 2) ", "if (3 * i < n) ", ""))
            kept = f"S(9, {at});" if test and rng.random() < 0.3 else ""
            goes = f"{test}{{ {kept} goto l{to}; }}" if kept else f"{test}goto l{to};"
        jumping.append(goes)
    for at in range(count):
        text += f"l{at}: " * (at in used) + f"S({at}, i); {jumping[at]} "
    return f"for (int i = 0; i < n; i++) {{ {text} {f'l{count}: ;' * (count in used)} }}"


def program(module: ModuleType, rng: random.Random) -> tuple[Any, Scop] | None:
    """Write a program and read it.

    ``None``: a loop may miss the end that ``!=`` gives it, or jumps cross one another.
    """
    text = jumps(rng) if rng.random() < 0.3 else body(rng)
    source = (
        "#define S(x, y) B[x] = C[y]\nvoid f(int n, int m, double *B, double *C) {\n"
        f"#pragma scop\n{text}\n#pragma endscop\n}}\n"
    )
    show = 'printf("0||B %d;C %d|0\\n", (int) (x), (int) (y))'
    sizes = {"n": rng.randint(0, 7), "m": rng.randint(0, 6)}
    try:
        scop = parse_source(source).scops[0]
    except InputError as error:
        if not {one.code for one in error.diagnostics} <= {"EATSS-F029", "EATSS-F019"}:
            raise
        return None
    for one in scop.conditions:
        if module.with_values(one.sizes, sizes).is_empty():
            return None
    traced = f"#undef S\n#define S(x, y) {show}\n{text}\n"
    return module.Program(source=source, traced=traced, **sizes), scop


@pytest.mark.parametrize("first", range(0, 400, 25))
@pytest.mark.samples(1)
def test_loops_touch_what_the_executed_program_touches(
    first: int, random_programs: ModuleType, tmp_path: Path
) -> None:
    drawn = (program(random_programs, random.Random(first + k)) for k in range(25))
    taken = [one for one in drawn if one is not None]
    assert len(taken) > 12
    traces = random_programs.run_traces([one for one, _ in taken], tmp_path)
    for (one, scop), executed in zip(taken, traces, strict=True):
        extracted = random_programs.instances_of(scop, {"n": one.n, "m": one.m}, valued=False)
        assert [e.touches for e in extracted] == [e.touches for e in executed], (
            one.source, one.n, one.m,
        )  # fmt: skip
