"""Ways to learn what a card draws: one protocol, several sensors."""

from eatss.measurement.meters.background import CounterMeter, PowerMeter
from eatss.measurement.meters.choose import (
    METERS,
    ChosenMeters,
    MeterTarget,
    OpenMeters,
    choose_meters,
)
from eatss.measurement.meters.meter import (
    Meter,
    MeterError,
    Sample,
    Trace,
    TraceKind,
    read,
    steady,
    update_period_s,
)
from eatss.measurement.meters.nvml import NvmlDevice, NvmlError, card_state, device_info

__all__ = [
    "METERS",
    "ChosenMeters",
    "CounterMeter",
    "Meter",
    "MeterError",
    "MeterTarget",
    "NvmlDevice",
    "NvmlError",
    "OpenMeters",
    "PowerMeter",
    "Sample",
    "Trace",
    "TraceKind",
    "card_state",
    "choose_meters",
    "device_info",
    "read",
    "steady",
    "update_period_s",
]
