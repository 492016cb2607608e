"""Requirements of a comparison, like ``energy<=1.0``, and whether measurements meet them."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence

from eatss.base.codec import JsonForm
from eatss.base.diagnostics import input_error
from eatss.base.frozen import frozen
from eatss.measurement.assemble import inverse
from eatss.measurement.measurement import Comparison, ComparisonRow, Ratio
from eatss.measurement.options import SELECTED

_QUANTITIES: Mapping[str, tuple[str, Callable[[ComparisonRow], Ratio | None]]] = {
    "time": ("time over the baseline's", lambda row: row.speedup and inverse(row.speedup)),
    "energy": ("energy over the baseline's", lambda row: row.energy_ratio),
    "ppw": ("PPW over the baseline's", lambda row: row.ppw_ratio),
    "speedup": ("speed-up", lambda row: row.speedup),
}
_RELATIONS: Mapping[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
_FORM = re.compile(
    rf"\s*({'|'.join(_QUANTITIES)})\s*({'|'.join(_RELATIONS)})"
    r"\s*((?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)\s*"
)


@frozen
class Requirement:
    """A bound on a ratio of a variant to the baseline."""

    quantity: str
    relation: str
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
    found = []
    for text in texts:
        for match in map(_FORM.fullmatch, text.split(",")):
            if match is None:
                raise input_error(
                    "EATSS-E044",
                    f"--require is '{text}'",
                    hint="write time, energy, ppw or speedup, a relation and a number, in quotes: "
                    "--require 'energy<=1.0'",
                )
            quantity, relation, bound = match.groups()
            found.append(Requirement(quantity=quantity, relation=relation, bound=float(bound)))
    return tuple(found)


def judge(comparison: Comparison, requirements: Sequence[Requirement]) -> tuple[Verdict, ...]:
    """Return whether a variant meets the requirements.

    It is ``selected``, unless that is the baseline; else the first that is not the baseline.
    """
    others = [row for row in comparison.rows if row.measurement.variant != comparison.baseline]
    row = min(others, key=lambda row: row.measurement.variant != SELECTED, default=None)
    return tuple(_verdict(row, requirement) for requirement in requirements)


def _verdict(row: ComparisonRow | None, requirement: Requirement) -> Verdict:
    bound, holds = requirement.bound, _RELATIONS[requirement.relation]
    words, ratio_of = _QUANTITIES[requirement.quantity]
    variant = "" if row is None else row.measurement.variant
    ratio = None if row is None else ratio_of(row)
    wanted, met = f"{requirement.relation} {bound:g}", False
    if row is None:  # the baseline is never set beside itself
        message = f"nothing but the baseline was measured, so {wanted} is not met"
    elif ratio is None:
        found = row.measurement
        why = f"{found.status}; {found.reason}".rstrip("; ")
        message = f"{variant}: {words} was not measured, so {wanted} is not met: {why}"
    else:
        met = holds(ratio.value, bound)
        interval, doubt = "", "; no interval is known"
        if ratio.low is not None and ratio.high is not None:
            interval = f" [{ratio.low:.4g}, {ratio.high:.4g}]"
            apart = holds(ratio.low, bound) != holds(ratio.high, bound)
            doubt = "; the interval lies on both sides of the bound" if apart else ""
        meets = "meets" if met else "does not meet"
        message = (
            f"{variant}: {words} is {ratio.value:.4g}{interval}, which {meets} {wanted}{doubt}"
        )
    return Verdict(requirement=requirement, variant=variant, met=met, ratio=ratio, message=message)
