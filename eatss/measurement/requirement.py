"""Requirements of a comparison, like ``energy<=1.0``, and whether measurements meet them."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeAlias

from eatss.base.codec import JsonForm
from eatss.base.diagnostics import input_error
from eatss.base.frozen import frozen
from eatss.measurement.measurement import Comparison, ComparisonRow, Ratio
from eatss.measurement.options import SELECTED

Quantity: TypeAlias = Literal["time", "energy", "ppw", "speedup"]
Relation: TypeAlias = Literal["<=", ">=", "<", ">"]


def time_ratio(row: ComparisonRow) -> Ratio | None:
    """Return the variant's time over the baseline's, the inverse of its speed-up."""
    if row.speedup is None or row.speedup.value == 0:
        return None
    low, high = row.speedup.low, row.speedup.high
    return Ratio(
        value=1 / row.speedup.value,
        low=1 / high if high else None,
        high=1 / low if low else None,
    )


_QUANTITIES: Mapping[Quantity, tuple[str, Callable[[ComparisonRow], Ratio | None]]] = {
    "time": ("time over the baseline's", time_ratio),
    "energy": ("energy over the baseline's", lambda row: row.energy_ratio),
    "ppw": ("PPW over the baseline's", lambda row: row.ppw_ratio),
    "speedup": ("speed-up", lambda row: row.speedup),
}
_RELATIONS: Mapping[Relation, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
_NUMBER = r"(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
_FORM = re.compile(rf"\s*([A-Za-z-]+)\s*(<=|>=|<|>)\s*({_NUMBER})\s*")


@frozen
class Requirement:
    """A bound on a ratio of a variant to the baseline."""

    quantity: Quantity
    relation: Relation
    bound: float

    def __str__(self) -> str:
        return f"{self.quantity}{self.relation}{self.bound:g}"


@frozen
class Verdict:
    """Whether a variant meets a requirement; the mean decides, ``message`` names the interval.

    ``ratio`` is ``None`` where it was not measured: then the requirement is not met.
    """

    json_layout = JsonForm(also=("text",))

    requirement: Requirement
    variant: str
    met: bool
    ratio: Ratio | None
    message: str

    @property
    def text(self) -> str:
        """The requirement as the user writes it."""
        return str(self.requirement)


@frozen
class JudgedComparison(Comparison):
    """Variants measured in turns, in one run, and whether they meet what was required.

    ``baseline`` is the label of one of the rows. ``notes`` say where variants were not measured
    alike. ``requirements`` are those of ``--require``.
    """

    requirements: tuple[Verdict, ...] = ()


def parse_requirements(texts: Sequence[str]) -> tuple[Requirement, ...]:
    """Read values of ``--require``; several may stand in one, parted by commas.

    Raises:
        InputError: ``EATSS-E044``.
    """
    return tuple(_parse(part, text) for text in texts for part in text.split(","))


def check_required(
    requirements: Sequence[Requirement], labels: Sequence[str], baseline: str
) -> None:
    """Refuse requirements where no variant is there that could meet them.

    Args:
        requirements: what is asked for.
        labels: the variants.
        baseline: what they are set beside.

    Raises:
        InputError: ``EATSS-E044``.
    """
    if requirements and not any(label != baseline for label in labels):
        raise input_error(
            "EATSS-E044",
            f"--require is '{requirements[0]}', and there is no variant besides the baseline "
            f"'{baseline}'",
            hint="give another variant: several --tiles, or several folders",
        )


def required_variant(comparison: Comparison) -> ComparisonRow | None:
    """Return the row that requirements are for; ``None`` if there is only the baseline's.

    That of ``selected``, unless it is the baseline; else the first that is not the baseline.
    """
    others = [row for row in comparison.rows if row.measurement.variant != comparison.baseline]
    selected = [row for row in others if row.measurement.variant == SELECTED]
    return next(iter((*selected, *others)), None)


def judge(comparison: Comparison, requirements: Sequence[Requirement]) -> tuple[Verdict, ...]:
    """Return whether the variant of :func:`required_variant` meets the requirements."""
    row = required_variant(comparison)
    return tuple(_verdict(comparison, row, requirement) for requirement in requirements)


def _verdict(
    comparison: Comparison, row: ComparisonRow | None, requirement: Requirement
) -> Verdict:
    bound, holds = requirement.bound, _RELATIONS[requirement.relation]
    wanted = f"{requirement.relation} {bound:g}"
    variant, met, ratio = "", False, None
    if row is None:  # the baseline is never set beside itself
        message = (
            f"nothing but the baseline '{comparison.baseline}' was measured, so {wanted} is not met"
        )
    else:
        variant, (words, ratio_of) = row.measurement.variant, _QUANTITIES[requirement.quantity]
        ratio, message = ratio_of(row), f"{variant}: {words}"
        if ratio is None:
            why = _why(comparison, row)
            message += f" was not measured, so {wanted} is not met: {why}"
        else:
            met = holds(ratio.value, bound)
            interval, doubt = "", "; no interval is known"
            if ratio.low is not None and ratio.high is not None:
                interval = f" [{ratio.low:.4g}, {ratio.high:.4g}]"
                apart = holds(ratio.low, bound) != holds(ratio.high, bound)
                doubt = "; the interval lies on both sides of the bound" if apart else ""
            meets = "meets" if met else "does not meet"
            message += f" is {ratio.value:.4g}{interval}, which {meets} {wanted}{doubt}"
    return Verdict(requirement=requirement, variant=variant, met=met, ratio=ratio, message=message)


def _why(comparison: Comparison, row: ComparisonRow) -> str:
    """Return why a ratio is not there."""
    reasons: list[str] = []
    for name in dict.fromkeys((row.measurement.variant, comparison.baseline)):
        found = comparison.row(name).measurement
        if found.status not in ("ok", "unstable"):
            reasons.append(f"{name}: {found.status}, {found.reason}")
        else:
            reasons += [f"{name}: {gap.what}: {gap.reason}" for gap in found.missing]
    return "; ".join(reasons) or "no window of both was finished"


def _parse(part: str, text: str) -> Requirement:
    match = _FORM.fullmatch(part)
    name = "" if match is None else match[1].lower().replace("speed-up", "speedup")
    for quantity in _QUANTITIES:
        for relation in _RELATIONS:
            if match is not None and (quantity, relation) == (name, match[2]):
                return Requirement(quantity=quantity, relation=relation, bound=float(match[3]))
    raise input_error(
        "EATSS-E044",
        f"--require is '{text}'",
        hint="write time, energy, ppw or speedup, a relation and a number, in quotes: "
        "--require 'energy<=1.0'",
    )
