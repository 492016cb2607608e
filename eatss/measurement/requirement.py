"""Requirements of a comparison, like ``energy<=1.0``, and whether measurements meet them."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeAlias

from eatss.codec import JsonForm
from eatss.diagnostics import InputError, input_error
from eatss.frozen import frozen
from eatss.measurement.labels import SELECTED
from eatss.measurement.measurement import Comparison, ComparisonRow, Ratio

Quantity: TypeAlias = Literal["time", "energy", "ppw", "speedup"]

_QUANTITIES: Mapping[str, Quantity] = {
    "time": "time",
    "energy": "energy",
    "ppw": "ppw",
    "speedup": "speedup",
    "speed-up": "speedup",
}
_WORDS: Mapping[Quantity, str] = {
    "time": "time over the baseline's",
    "energy": "energy over the baseline's",
    "ppw": "PPW over the baseline's",
    "speedup": "speed-up",
}
_RELATIONS: Mapping[str, Callable[[float, float], bool]] = {
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
    relation: Literal["<=", ">=", "<", ">"]
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
    if row is None:
        return tuple(_unmeasured(comparison, requirement) for requirement in requirements)
    return tuple(_verdict(comparison, row, requirement) for requirement in requirements)


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


def _verdict(comparison: Comparison, row: ComparisonRow, requirement: Requirement) -> Verdict:
    ratio = {
        "time": time_ratio(row),
        "energy": row.energy_ratio,
        "ppw": row.ppw_ratio,
        "speedup": row.speedup,
    }[requirement.quantity]
    variant = row.measurement.variant
    bound = f"{requirement.relation} {requirement.bound:g}"
    what = f"{variant}: {_WORDS[requirement.quantity]}"
    if ratio is None:
        message = f"{what} was not measured, so {bound} is not met: {_why(comparison, row)}"
        return Verdict(
            requirement=requirement, variant=variant, met=False, ratio=None, message=message
        )
    holds = _RELATIONS[requirement.relation]
    met = holds(ratio.value, requirement.bound)
    message = f"{what} is {_interval(ratio)}, which {'meets' if met else 'does not meet'} {bound}"
    if ratio.low is not None and ratio.high is not None:
        if holds(ratio.low, requirement.bound) != holds(ratio.high, requirement.bound):
            message += "; the interval lies on both sides of the bound"
    else:
        message += "; no interval is known"
    return Verdict(requirement=requirement, variant=variant, met=met, ratio=ratio, message=message)


def _unmeasured(comparison: Comparison, requirement: Requirement) -> Verdict:
    """Return the verdict where the baseline alone was measured: it is never set beside itself."""
    bound = f"{requirement.relation} {requirement.bound:g}"
    message = (
        f"nothing but the baseline '{comparison.baseline}' was measured, so {bound} is not met"
    )
    return Verdict(requirement=requirement, variant="", met=False, ratio=None, message=message)


def _interval(ratio: Ratio) -> str:
    if ratio.low is None or ratio.high is None:
        return f"{ratio.value:.4g}"
    return f"{ratio.value:.4g} [{ratio.low:.4g}, {ratio.high:.4g}]"


def _why(comparison: Comparison, row: ComparisonRow) -> str:
    """Return why a ratio is not there."""
    sides = [row]
    if row.measurement.variant != comparison.baseline:
        sides.append(comparison.row(comparison.baseline))
    reasons = []
    for side in sides:
        found = side.measurement
        if found.status not in ("ok", "unstable"):
            reasons.append(f"{found.variant}: {found.status}, {found.reason}")
        else:
            reasons += [f"{found.variant}: {gap.what}: {gap.reason}" for gap in found.missing]
    return "; ".join(reasons) or "no window of both was finished"


def _parse(part: str, text: str) -> Requirement:
    match = _FORM.fullmatch(part)
    quantity = None if match is None else _QUANTITIES.get(match[1].lower())
    if match is None or quantity is None:
        raise _malformed(text)
    relations: Mapping[str, Literal["<=", ">=", "<", ">"]] = {
        "<=": "<=",
        ">=": ">=",
        "<": "<",
        ">": ">",
    }
    return Requirement(quantity=quantity, relation=relations[match[2]], bound=float(match[3]))


def _malformed(text: str) -> InputError:
    return input_error(
        "EATSS-E044",
        f"--require is '{text}'",
        hint="write time, energy, ppw or speedup, a relation and a number, in quotes: "
        "--require 'energy<=1.0'",
    )
