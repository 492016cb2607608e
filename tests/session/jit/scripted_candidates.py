"""Cards on which candidates are better or worse than the model's choice."""

from __future__ import annotations

from tests.end_to_end.scripted_for_any import AnyProgram
from tests.measurement.scripted_card import Script


class OthersAreFaster(AnyProgram):
    """All others take half the time of the model's choice."""

    def truth(self, label: str) -> Script:
        return Script(time_s=0.02 if label == "model" else 0.01, power_w=500.0, noise=0.001)


class OthersAreSlower(AnyProgram):
    """All others take longer."""

    def truth(self, label: str) -> Script:
        return Script(time_s=0.02 if label == "model" else 0.03, power_w=500.0, noise=0.001)


class NothingRuns(AnyProgram):
    """No program can be launched."""

    def truth(self, label: str) -> Script:
        return Script(fails_at="first run", fails_by="launch error")


class Forbidden(AnyProgram):
    """Nobody measures here."""

    def truth(self, label: str) -> Script:
        raise AssertionError(label)
