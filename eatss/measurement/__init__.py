"""A folder with a generated program in, ``Measurement`` out: right, how fast, how frugal.

Imports neither isl nor a solver: what one machine generated, another one measures. Next folder:
``eatss/report``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from eatss.base.lazy_names import loading_names

if TYPE_CHECKING:
    from eatss.measurement.measurement import (
        comparison_from_dict,
        comparison_to_dict,
        measurement_from_dict,
        measurement_to_dict,
    )

__all__ = [
    "comparison_from_dict",
    "comparison_to_dict",
    "measurement_from_dict",
    "measurement_to_dict",
]

__getattr__ = loading_names(__name__, dict.fromkeys(__all__, "measurement"))
