"""Measurements and comparisons as JSON."""

from __future__ import annotations

from dataclasses import dataclass

from eatss.codec import Document
from eatss.measurement.comparison import Comparison
from eatss.measurement.measurement import Measurement

MEASUREMENT = Document(
    title="measurement",
    kind=Measurement,
    other_version="EATSS-E070",
    damaged="EATSS-E071",
    hint="measure again with this version of eatss, or read it with the one that wrote it",
)
measurement_to_dict, measurement_from_dict = MEASUREMENT.to_dict, MEASUREMENT.from_dict

COMPARISON = Document(
    title="comparison",
    kind=Comparison,
    other_version="EATSS-E070",
    damaged="EATSS-E071",
    hint=MEASUREMENT.hint,
)
comparison_to_dict, comparison_from_dict = COMPARISON.to_dict, COMPARISON.from_dict


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurements:
    """What ``eatss measure --format json`` prints: a measurement for each program."""

    measurements: tuple[Measurement, ...]
