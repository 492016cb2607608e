"""Updates are reductions where their order does not matter, whatever NaN there is."""

from __future__ import annotations

import math
from functools import reduce
from itertools import permutations, product
from operator import ge, gt, le, lt
from pathlib import Path

import pytest

from eatss.session.session import Session

COMPARISONS = {"<": lt, "<=": le, ">": gt, ">=": ge}
DECLARED = (
    "float fmaxf(float, float);\ndouble fmax(double, double);\ndouble fmin(double, double);\n"
    "int max(int, int);\n"
)


def operators(update: str, folder: Path, *, target: str, term: str) -> tuple[str, ...]:
    """Return the operators of the reductions in rows of an update of ``t[i]`` by ``a[i][j]``."""
    source = folder / "program.c"
    source.write_text(
        f"{DECLARED}void f(int n, {target} t[n], {term} a[n][n], {term} b[n])\n{{\n"
        "#pragma scop\n    for (int i = 0; i < n; i++)\n        for (int j = 0; j < n; j++)\n"
        f"            {update}\n#pragma endscop\n}}\n",
        encoding="utf-8",
    )
    (scop,) = Session(source).symbolic.program.scops
    (kernel,) = scop.facts
    return tuple(one.operator for one in kernel.reductions)


def in_some_order(comparison: str, *, left: str, yes: str, values: tuple[float, ...]) -> bool:
    """Tell whether ``left ? right`` chooses the same of values in any order, from any start."""

    def update(target: float, term: float) -> float:
        sides = (target, term) if left == "t" else (term, target)
        holds = COMPARISONS[comparison](*sides)
        return target if holds == (yes == "t") else term

    def same(one: float, other: float) -> bool:
        return one == other or (math.isnan(one) and math.isnan(other))

    return all(
        same(reduce(update, order, start), reduce(update, values, start))
        for start in values
        for order in permutations(values)
    )


FORMS = list(product(COMPARISONS, ("t", "e"), ("t", "e")))


@pytest.mark.samples(11)
@pytest.mark.parametrize(("comparison", "left", "yes"), FORMS)
@pytest.mark.parametrize("kind", ["float", "int"])
def test_a_choice_is_a_reduction_if_its_order_does_not_matter(
    comparison: str, left: str, yes: str, kind: str, tmp_path: Path
) -> None:
    names = {"t": "t[i]", "e": "a[i][j]"}
    sides = [names[left], names["e" if left == "t" else "t"]]
    arms = [names[yes], names["e" if yes == "t" else "t"]]
    update = f"t[i] = {sides[0]} {comparison} {sides[1]} ? {arms[0]} : {arms[1]};"
    values = (-1.0, 0.0, 2.0, math.inf, *((math.nan,) if kind == "float" else ()))
    found = operators(update, tmp_path, target=kind, term=kind)
    assert bool(found) == in_some_order(comparison, left=left, yes=yes, values=values)
    if found:
        larger = (comparison in (">", ">=")) == (left == yes)
        assert found == ("max" if larger else "min",)


@pytest.mark.samples(6)
@pytest.mark.parametrize(
    ("update", "target", "term", "found"),
    [
        ("t[i] = fmaxf(t[i], a[i][j]);", "float", "float", ("fmaxf",)),
        ("t[i] = fmin(fmin(a[i][j], t[i]), b[j]);", "double", "double", ("fmin",)),
        # widened and narrowed again: what is stored is one of the values
        ("t[i] = fmax(t[i], a[i][j]);", "float", "double", ("fmax",)),
        # each step narrows the target, the first one too
        ("t[i] = fmaxf(t[i], a[i][j]);", "double", "float", ()),
        ("t[i] = fmax(t[i], a[i][j]);", "int", "int", ()),
        ("t[i] = max(t[i], a[i][j]);", "int", "int", ("max",)),
        ("t[i] = a[i][j] > t[i] ? a[i][j] : t[i];", "double", "float", ("max",)),
        ("t[i] = a[i][j] * b[j] > t[i] ? a[i][j] * b[j] : t[i];", "double", "double", ("max",)),
        # another value is compared than is stored, or the target in another way
        ("t[i] = a[i][j] > t[i] ? b[j] : t[i];", "double", "double", ()),
        ("t[i] = a[i][j] > b[j] ? a[i][j] : t[i];", "double", "double", ()),
        ("t[i] = a[i][j] > t[i] + 1 ? a[i][j] : t[i];", "int", "int", ()),
        ("t[i] = a[i][j] != t[i] ? a[i][j] : t[i];", "int", "int", ()),
        ("t[i] = a[i][j] + t[i] > t[i] ? a[i][j] + t[i] : t[i];", "int", "int", ()),
        ("t[i] *= a[i][j];", "unsigned", "unsigned", ("*",)),
        ("t[i] &= a[i][j];", "long", "int", ("&",)),
        ("t[i] ^= a[i][j] + b[j];", "unsigned long", "unsigned long", ("^",)),
        ("t[i] += a[i][j];", "int", "float", ()),  # each step rounds down
        ("t[i] = a[i][j] > t[i] ? a[i][j] : t[i];", "int", "float", ()),
    ],
)
def test_types_and_terms_of_reductions(
    update: str, target: str, term: str, found: tuple[str, ...], tmp_path: Path
) -> None:
    assert operators(update, tmp_path, target=target, term=term) == found
