"""The made-up NVML and clock of the meters, which ``energy_meter`` reads, too."""

from __future__ import annotations

from tests.measurement.meters.conftest import fake, make_fake, make_time

__all__ = ["fake", "make_fake", "make_time"]
