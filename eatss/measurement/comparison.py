"""``Comparison``: variants of one program beside a baseline."""

from __future__ import annotations

from dataclasses import dataclass

from eatss.measurement.estimate import Ratio
from eatss.measurement.measurement import SCHEMA_VERSION, Measurement
from eatss.shown import Tabular, figure, in_lines


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonRow:
    """A variant beside the baseline. A ratio is ``None`` where either was not measured.

    Attributes:
        measurement: Of the variant.
        speedup: The baseline's time over the variant's; above 1 is better.
        energy_ratio: The variant's energy over the baseline's; below 1 is better.
        ppw_ratio: The variant's PPW over the baseline's; above 1 is better.
    """

    measurement: Measurement
    speedup: Ratio | None
    energy_ratio: Ratio | None
    ppw_ratio: Ratio | None

    def __repr__(self) -> str:
        found = self.measurement
        return (
            f"<ComparisonRow {found.variant}: {found.status}, {figure(found.time_s, 'ms', 1e3)}, "
            f"{figure(found.energy_j, 'J')}; speed-up {_ratio(self.speedup)}, "
            f"energy ratio {_ratio(self.energy_ratio)}>"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison(Tabular):
    """Variants measured in turns, in one run.

    Attributes:
        program: Name of the program.
        baseline: The variant that others are set beside, the label of one of the rows.
        rows: A row a variant, with its measurement and its ratios to the baseline.
        notes: Where variants were not measured alike: on another card, by another meter, with
            another kind of data.
        schema_version: Of the JSON form.
    """

    shown_by = "eatss.report.comparison:comparison_parts"
    rows_by = "eatss.measurement.rows:comparison_rows"

    program: str
    baseline: str
    rows: tuple[ComparisonRow, ...]
    notes: tuple[str, ...] = ()
    schema_version: int = SCHEMA_VERSION

    def __repr__(self) -> str:
        head = f"Comparison {self.program}: baseline {self.baseline}"
        return in_lines(head, [repr(row)[len("<ComparisonRow ") : -1] for row in self.rows])

    def row(self, variant: str) -> ComparisonRow:
        """Return the row of a variant; ``KeyError`` if there is none."""
        for row in self.rows:
            if row.measurement.variant == variant:
                return row
        raise KeyError(variant)


def _ratio(ratio: Ratio | None) -> str:
    return "-" if ratio is None else f"{ratio.value:.4g}"
