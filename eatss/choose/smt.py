"""Questions to a solver as SMT-LIB 2.6 text: Z3, cvc5 and others answer them alike.

A script declares whole numbers, names the terms that it uses and the limits that it asserts, and
asks whether numbers keep all of them. *Unsatisfiable* is a proof that there are none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import floor, isinf

from eatss.base.frozen import frozen
from eatss.base.polynomial import Polynomial
from eatss.base.text import NamedTexts
from eatss.choose.problem import Problem
from eatss.program.expression import Sizes

_SIMPLE = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")


@frozen
class SmtScript:
    """One question: are there whole numbers for which all assertions hold?

    ``integers`` are declared, ``definitions`` pair names with terms, ``assertions`` names with
    what must hold. ``comments`` are lines above.
    """

    integers: tuple[str, ...]
    assertions: NamedTexts
    definitions: NamedTexts = ()
    comments: tuple[str, ...] = ()

    def text(self) -> str:
        """Return the script."""
        lines = [f"; {comment}" for comment in self.comments]
        lines.append("(set-logic QF_NIA)")
        lines += [f"(declare-const {symbol(name)} Int)" for name in self.integers]
        lines += [f"(define-fun {symbol(name)} () Int {term})" for name, term in self.definitions]
        lines += [f"(assert (! {term} :named {symbol(name)}))" for name, term in self.assertions]
        return "\n".join([*lines, "(check-sat)", ""])


def scripts_text(scripts: Iterable[SmtScript]) -> str:
    """Return one text that asks several questions, one after the other."""
    return "(reset)\n".join(script.text() for script in scripts)


def symbol(name: str) -> str:
    """Return a name as SMT-LIB has it."""
    return name if _SIMPLE.fullmatch(name) else f"|{name}|"


def number(value: int) -> str:
    """Return a whole number as a term."""
    return str(value) if value >= 0 else f"(- {-value})"


def applied(operator: str, terms: Iterable[str], neutral: str) -> str:
    """Return an operator over terms; of one it is the term, of none ``neutral``."""
    several = list(terms)
    return f"({operator} {' '.join(several)})" if len(several) > 1 else (several or [neutral])[0]


def polynomial_term(polynomial: Polynomial, names: Mapping[str, str]) -> str:
    """Return a polynomial as a term; ``names`` has the symbol of each unknown."""
    products = (
        applied("*", [*[number(c)] * (c != 1), *(names[one] for one in monomial)], "1")
        for monomial, c in sorted(polynomial.terms.items())
    )
    return applied("+", products, "0")


def box_term(sides: Mapping[str, tuple[int, int]]) -> str:
    """Return that numbers are within a box, by name the least and the greatest."""
    within = (
        f"(<= {number(low)} {symbol(name)} {number(high)})" for name, (low, high) in sides.items()
    )
    return applied("and", within, "true")


def limits_script(problem: Problem) -> SmtScript:
    """Return the question for sizes that keep the limits; ``objective`` is defined.

    A size ``T_i`` is its step times a whole number ``t_i``, or fixed.
    """
    names = {v.name: symbol(f"T_{v.name}") for v in problem.variables}
    free = [v for v in problem.variables if v.lower != v.upper]
    fixed = [v for v in problem.variables if v.lower == v.upper]
    sides = {f"t_{v.name}": (v.lower // v.step, v.upper // v.step) for v in free}
    return SmtScript(
        integers=tuple(sides),
        definitions=(
            *((f"T_{v.name}", f"(* {v.step} {symbol(f't_{v.name}')})") for v in free),
            *((f"T_{v.name}", str(v.lower)) for v in fixed),
            ("objective", polynomial_term(problem.objective, names)),
        ),
        assertions=(
            *((f"size_{name}", box_term({name: side})) for name, side in sides.items()),
            *(
                (one.name, f"(<= {polynomial_term(one.expression, names)} {number(one.limit)})")
                for one in problem.constraints
            ),
        ),
    )


def searched_script(
    names: Sequence[str],
    limits: Sequence[tuple[str, str]],
    boxes: Iterable[tuple[Sequence[int], Sequence[int], float]],
    least: int,
    *comments: str,
) -> SmtScript:
    """Return the question for sizes that fit and cost less than what a search has proven.

    Args:
        names: the sizes.
        limits: what sizes keep, by name.
        boxes: least and greatest sizes of what was bounded, and the cost that nothing in it goes
            under, infinite where nothing fits.
        least: the cost that is proven.
        comments: lines above.
    """
    learnt = []
    for number_of, (low, high, cost) in enumerate(boxes):
        inside = box_term(dict(zip(names, zip(low, high, strict=True), strict=True)))
        then = "false" if isinf(cost) else f"(>= cost {number(floor(cost))})"
        learnt.append((f"box_{number_of}", f"(=> {inside} {then})"))
    return SmtScript(
        integers=(*names, "cost"),
        assertions=(*limits, *learnt, ("better", f"(< cost {number(least)})")),
        comments=comments,
    )


def refutation(problem: Problem, found: Sizes, *comments: str) -> SmtScript:
    """Return the question for sizes that keep the limits and are better than those found.

    Where the search ends short of the optimum they are to be better by its last step.
    """
    script, best = limits_script(problem), problem.objective.evaluate(found)
    step = problem.steps[-1] if problem.steps else Fraction(1)
    sizes = ", ".join(f"T_{name} = {size}" for name, size in found.items())
    return replace(
        script,
        assertions=(*script.assertions, ("better", f"(> objective {number(floor(step * best))})")),
        comments=(*comments, f"found: {sizes}; objective {best}"),
    )
