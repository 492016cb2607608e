"""What the card and the check did not tell of a variant, as entries of ``missing``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields

from eatss.measurement.measurement import CardState, DeviceInfo, Missing, Window
from eatss.measurement.record import Record, Records

NOT_REPORTED = "the driver does not tell"

COMPARISON = "comparison with the original"
"""What is missing of a program that runs and was never compared with its C."""


def missing_values(records: Records, record: Record) -> tuple[Missing, ...]:
    """Return what has no value besides figures: meters, fields of the card, the comparison."""
    unchecked = "" if record.prepared is None else record.prepared.unchecked
    return (
        *([Missing(what=COMPARISON, reason=unchecked)] if unchecked else ()),
        *records.missing_meters,
        *missing_device_fields(records.device),
        *missing_state_fields(record.windows),
    )


def missing_device_fields(device: DeviceInfo | None) -> Iterator[Missing]:
    """Yield the fields of a card that could not be read."""
    if device is None:
        return
    for field in fields(device):
        if getattr(device, field.name) is None:
            yield Missing(what=f"device.{field.name}", reason=NOT_REPORTED)


def missing_state_fields(windows: Sequence[Window]) -> Iterator[Missing]:
    """Yield the fields of the card's state that some window lacks, each once."""
    states = [state for window in windows for state in (window.before, window.after)]
    for field in fields(CardState):
        lacking = sum(getattr(state, field.name) is None for state in states)
        if lacking:
            where = "" if lacking == len(states) else f" in {lacking} of {len(states)} readings"
            yield Missing(what=f"windows.{field.name}", reason=f"{NOT_REPORTED}{where}")
