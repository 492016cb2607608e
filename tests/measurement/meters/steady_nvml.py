"""Cards of a steady 400 W whose sensors move every 5 ms, for programs run by the command."""

from tests.measurement.meters.conftest import FakeNvml

CARDS = FakeNvml()
SLOW = FakeNvml(period_s=0.1)
