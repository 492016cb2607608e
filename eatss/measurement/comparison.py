"""``Comparison``: variants of one program beside a baseline."""

from __future__ import annotations

from dataclasses import dataclass

from eatss.measurement.estimate import Ratio
from eatss.measurement.measurement import SCHEMA_VERSION, Measurement


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonRow:
    """A variant beside the baseline.

    ``speedup`` is the baseline's time over the variant's, ``energy_ratio`` the variant's energy
    over the baseline's (below 1 is better), ``ppw_ratio`` the variant's PPW over the
    baseline's. ``None`` where either was not measured.
    """

    measurement: Measurement
    speedup: Ratio | None
    energy_ratio: Ratio | None
    ppw_ratio: Ratio | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Variants measured in turns, in one run; ``baseline`` is the label of one of the rows.

    ``notes`` say where variants were not measured alike: on another card, by another meter, with
    another kind of data.
    """

    program: str
    baseline: str
    rows: tuple[ComparisonRow, ...]
    notes: tuple[str, ...] = ()
    schema_version: int = SCHEMA_VERSION

    def row(self, variant: str) -> ComparisonRow:
        """Return the row of a variant; ``KeyError`` if there is none."""
        for row in self.rows:
            if row.measurement.variant == variant:
                return row
        raise KeyError(variant)
