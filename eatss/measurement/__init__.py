"""A folder with a generated program in, ``Measurement`` out: right, how fast, how frugal.

Imports neither isl nor a solver: what one machine generated, another one measures. Next folder:
``eatss/report``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from eatss.base.lazy_names import loading_names

if TYPE_CHECKING:
    from eatss.measurement.api import compare, measure_variants
    from eatss.measurement.job import Progress
    from eatss.measurement.measurement import (
        Comparison,
        ComparisonRow,
        Estimate,
        Measurement,
        Ratio,
        comparison_from_dict,
        comparison_to_dict,
        measurement_from_dict,
        measurement_to_dict,
    )
    from eatss.measurement.options import MeasureOptions, Variant

_HOME = {
    "compare": "api",
    "Comparison": "measurement",
    "ComparisonRow": "measurement",
    "Estimate": "measurement",
    "MeasureOptions": "options",
    "Measurement": "measurement",
    "Progress": "job",
    "Ratio": "measurement",
    "Variant": "options",
    "comparison_from_dict": "measurement",
    "comparison_to_dict": "measurement",
    "measure_variants": "api",
    "measurement_from_dict": "measurement",
    "measurement_to_dict": "measurement",
}

__all__ = [
    "Comparison",
    "ComparisonRow",
    "Estimate",
    "MeasureOptions",
    "Measurement",
    "Progress",
    "Ratio",
    "Variant",
    "compare",
    "comparison_from_dict",
    "comparison_to_dict",
    "measure_variants",
    "measurement_from_dict",
    "measurement_to_dict",
]


__getattr__ = loading_names(__name__, _HOME)
