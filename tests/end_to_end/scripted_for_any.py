"""A scripted card that runs any generated program: the selected sizes faster than others."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path

from eatss.measurement.measurement import KernelResources
from eatss.program import Program
from tests.measurement.scripted_card import Script, ScriptedCard, ScriptedWorkload

PATH = "tests.end_to_end.scripted_for_any:AnyProgram"
WRONG = "tests.end_to_end.scripted_for_any:SelectedIsWrong"
AT_ONCE = "tests.end_to_end.scripted_for_any:CtrlCAtOnce"
MUCH_STACK = "tests.end_to_end.scripted_for_any:MuchStack"
INTERRUPTED = "tests.end_to_end.scripted_for_any:CtrlC"


def press_ctrl_c() -> None:
    """Interrupt eatss, which is the process that ``measuring.eatss`` runs it in."""
    os.kill(int(os.environ["EATSS_TESTS_PID"]), signal.SIGINT)


class AnyProgram(ScriptedCard):
    """Loads a program whatever is in its folder."""

    def load(
        self, program: Program, directory: Path, sizes: Mapping[str, int], seed: int
    ) -> ScriptedWorkload:
        self.log.append(("load", directory.name))
        return ScriptedWorkload(self, directory.name, self.truth(directory.name))

    def truth(self, label: str) -> Script:
        """Return what is true of a program in a folder of this name."""
        fast = label not in ("32", "32-32-32", "baseline")
        return Script(time_s=0.01 if fast else 0.02, power_w=500.0, noise=0.001)


class SelectedIsWrong(AnyProgram):
    """Only the selected sizes give a wrong result."""

    def truth(self, label: str) -> Script:
        if label == "selected":
            return Script(fails_at="check", fails_by="wrong")
        return super().truth(label)


class MuchStack(SelectedIsWrong):
    """Kernels have much stack; the selected sizes give a wrong result."""

    def load(
        self, program: Program, directory: Path, sizes: Mapping[str, int], seed: int
    ) -> ScriptedWorkload:
        return _WithStack(self, directory.name, self.truth(directory.name))


class _WithStack(ScriptedWorkload):
    def resources(self) -> tuple[KernelResources, ...]:
        """Return what a kernel takes of the card."""
        kernel = KernelResources(
            kernel="k0", registers=255, local_bytes=3664, shared_bytes=0, threads=64, occupancy=0.1
        )
        return (kernel,)


class CtrlC(AnyProgram):
    """The user presses Ctrl-C while windows run."""

    windows = 0

    def draw(self, seconds: float, power_w: float) -> None:
        super().draw(seconds, power_w)
        self.windows += seconds >= 1.9
        if self.windows == 4:
            time.sleep(0.2)  # virtual windows take no time: let what was told be heard
            press_ctrl_c()


class CtrlCAtOnce(AnyProgram):
    """The user presses Ctrl-C before anything is measured."""

    def truth(self, label: str) -> Script:
        press_ctrl_c()
        return super().truth(label)
