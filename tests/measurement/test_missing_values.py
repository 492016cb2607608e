"""What a measurement says of what it could not find out, and of how it was checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from eatss.measurement import Measurement, MeasureOptions, measure_variants
from eatss.measurement.card import NotComparedError
from eatss.measurement.measurement import CardState, DeviceInfo, Missing
from eatss.measurement.meters.meter import Meter
from eatss.program import Program
from tests.measurement.scripted_card import (
    CardScript,
    Folders,
    Script,
    ScriptedCard,
    ScriptedWorkload,
)

GAP = Missing(what="energy by counter", reason="this card does not offer it")


class Checked(ScriptedWorkload):
    """A workload whose check ends as told."""

    outcome: Exception | None = None

    def check(self, timeout_s: float) -> str:
        if self.outcome is not None:
            raise self.outcome
        return super().check(timeout_s)


class Telling(ScriptedCard):
    """A card that tells why it has no better meter, and little of itself."""

    outcome: Exception | None = None
    flavour: str | None = "uniform"

    def load(
        self, program: Program, directory: Path, sizes: Mapping[str, int], seed: int
    ) -> ScriptedWorkload:
        workload = Checked(self, directory.name, Script())
        workload.outcome, workload.flavour = self.outcome, self.flavour
        return workload

    def missing_meters(self) -> tuple[Missing, ...]:
        return (GAP,)


class Silent(Telling):
    """A card whose driver tells nothing but its name."""

    @property
    def info(self) -> DeviceInfo:
        return replace(super().info, driver=None, power_limit_w=None)

    def state(self) -> CardState:
        return CardState(temperature_c=40)

    def meters(self, choice: str) -> tuple[Meter, ...]:
        return ()


def measured(folders: Folders, card: ScriptedCard, **options: Any) -> Measurement:
    (found,) = measure_variants([folders.variant("a")], MeasureOptions(**options), card=card)
    return found


def reasons(found: Measurement) -> dict[str, str]:
    return {gap.what: gap.reason for gap in found.missing}


def test_what_the_driver_does_not_tell_of_the_card_is_missing(folders: Folders) -> None:
    missing = reasons(measured(folders, Silent(script=CardScript())))
    assert missing["device.driver"] == "the driver does not tell"
    assert "device.power_limit_w" in missing
    assert "windows.sm_clock_mhz" in missing
    assert "windows.throttle" in missing
    assert "windows.temperature_c" not in missing


def test_a_program_that_cannot_be_compared_says_why_and_is_not_called_checked(
    folders: Folders,
) -> None:
    card = Telling(script=CardScript())
    card.outcome = NotComparedError("the compiler 'gcc' is not on the path")
    found = measured(folders, card)
    assert found.status == "ok"
    assert found.method.checked == ()
    said = reasons(found)["comparison with the original"]
    assert said == "the compiler 'gcc' is not on the path"
