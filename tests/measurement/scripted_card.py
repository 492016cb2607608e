"""A card that exists in a script only: virtual time, true power, failures on demand.

A program's folder holds ``script.json``, a :class:`Script`; ``SCRIPTED_CARD`` in the environment
names the file of a :class:`CardScript`. Runs take no real time, apart from a hang.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from eatss.measurement.api import measure_variants
from eatss.measurement.card import CompileError, Difference, LaunchError, WrongResultError
from eatss.measurement.cupy_card import CupyCard
from eatss.measurement.measurement import CardState, DeviceInfo, Measurement
from eatss.measurement.meters.choose import METERS, ChosenMeters, MeterTarget
from eatss.measurement.meters.meter import MeterError
from eatss.measurement.options import MeasureOptions, Variant
from eatss.measurement.workload import CupyWorkload
from eatss.program import (
    Apply,
    Constant,
    Name,
    OperationCount,
    Operator,
    Parameter,
    Program,
    Work,
    save_program,
)
from eatss.verify.data import Flavour
from tests.measurement.scripted_power import ScriptedMeter, Timeline
from tests.plans import kernel_code, one_launch, plan

PATH = "tests.measurement.scripted_card:ScriptedCard"
RAMP_S = 0.2
"""For this long after idling a load draws half its power."""

CALL_S = 1e-4
"""The card waits this long at each call of ``timed``."""

Failure = Literal["compile error", "launch error", "wrong", "hang", "segv"]
Place = Literal["", "load", "check", "first run", "compare", "window"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """The truth about a program, and how it fails, if it does.

    ``noise`` is the relative standard deviation of time and of power from one call of ``timed`` to
    the next, ``drift`` by how much time grows each virtual second. ``drifts_after`` runs in a row
    spoil the data, 0 never.
    """

    time_s: float = 0.01
    power_w: float = 500.0
    noise: float = 0.0
    drift: float = 0.0
    overwrites: bool = False
    drifts_after: int = 0
    restore_s: float = 0.0
    restore_w: float = 0.0
    seed: int = 0
    result: float = 1.0
    fails_at: Place = ""
    fails_by: Failure = "launch error"
    fails_in_window: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class CardScript:
    """The truth about the card.

    ``load_clock_mhz`` is that of a card under load, at rest it runs at 1980 MHz.
    ``others`` are other processes, ``None`` if not known.
    """

    idle_w: float = 100.0
    meters: tuple[str, ...] = ("counter", "power")
    period_s: float = 0.1
    load_clock_mhz: int = 1980
    others: tuple[str, ...] | None = ()


class ScriptedWorkload(CupyWorkload):
    compiler: Literal["nvrtc", "nvcc"] = "nvrtc"
    launched_by: Literal["graph", "stream"] = "graph"
    flavour: Flavour | None = "uniform"

    def __init__(self, card: ScriptedCard, label: str, script: Script) -> None:
        self._card = card
        self._script = script
        self._label = label
        self._random = np.random.default_rng(sum(label.encode()) + 1000 * script.seed)
        self._in_a_row = 0
        self._windows = 0
        self._ran = False

    @property
    def overwrites_inputs(self) -> bool:
        return self._script.overwrites

    def reset(self) -> None:
        self._card.log.append(("reset", self._label))
        self._card.sleep(0.01)
        self._in_a_row = 0

    def restore(self, count: int = 1) -> None:
        self._card.timeline.spend(count * self._script.restore_s, self._script.restore_w)
        self._in_a_row = 0

    def timed(self, count: int, *, restoring: bool = False) -> float:
        script, timeline = self._script, self._card.timeline
        window = count * script.time_s >= 1.9
        self._windows += window
        if not self._ran:
            self._fail("first run")
        self._ran = True
        if window and self._windows == script.fails_in_window:
            self._fail("window")
        self._card.log.append(("window" if window else "timed", self._label))
        self._in_a_row = 1 if restoring else self._in_a_row + count
        slow = 1 + script.noise * float(self._random.standard_normal())
        strong = 1 + script.noise * float(self._random.standard_normal())
        slow *= 1 + script.drift * (timeline.now_s - 1000)
        self._card.wake(CALL_S)
        seconds, power_w = count * script.time_s * slow, script.power_w * strong
        if restoring:
            restored_s = count * script.restore_s
            mixed_w = (power_w * seconds + script.restore_w * restored_s) / (seconds + restored_s)
            self._card.draw(seconds + restored_s, mixed_w)
        else:
            self._card.draw(seconds, power_w)
        return seconds

    def drifted(self) -> str:
        limit = self._script.drifts_after
        return "C holds infinities" if limit and self._in_a_row > limit else ""

    def keep(self) -> Any:
        return self._script.result

    def difference(self, reference: object) -> Difference:
        self._fail("compare")
        equal, message = self._script.result == reference, "C[0] is 9 times off"
        return Difference(equal=equal, argument="C", worst=9.0 * (not equal), message=message)

    def magnified(self, found: Difference) -> str:
        return ""

    def resources(self) -> Any:
        return None

    def check(self, timeout_s: float) -> str:
        self._fail("check")
        self._card.log.append(("check", self._label))
        return "the original at N=37"

    def close(self) -> None:
        self._card.log.append(("close", self._label))

    def _fail(self, place: Place) -> None:
        if self._script.fails_at == place:
            fail(self._script.fails_by)


def fail(how: Failure) -> None:
    """Fail in one of the ways of real cards."""
    if how == "compile error":
        raise CompileError("error: expected a ';'")
    if how == "wrong":
        raise WrongResultError("C[0][0] is 2, the original gives 1")
    if how == "hang":
        time.sleep(60)
    if how == "segv":
        os.kill(os.getpid(), signal.SIGSEGV)
    raise LaunchError("too many resources requested for launch")


class ScriptedCard(CupyCard):
    """A card whose truth is known."""

    def __init__(
        self, *, device: int = 0, compiler: str = "auto", script: CardScript | None = None
    ) -> None:
        self.script = script or _read_card(Path(os.environ.get("SCRIPTED_CARD", os.devnull)))
        self.timeline = Timeline()
        self.log: list[tuple[str, str]] = []
        self._made: list[ScriptedMeter] = []
        self._idle = True
        self._seen: list[CardState] = []
        self._watch_s = 0.0

    @property
    def info(self) -> DeviceInfo:
        return DeviceInfo(
            name="Scripted",
            uuid="GPU-0",
            compute_capability=90,
            driver="1",
            toolkit="13.0",
            power_limit_w=700.0,
        )

    @property
    def _under_load(self) -> CardState:
        return CardState(sm_clock_mhz=self.script.load_clock_mhz, temperature_c=60, throttle=())

    @contextmanager
    def sampled_states(self, period_s: float) -> Iterator[Sequence[CardState]]:
        self._seen, self._watch_s = [], period_s
        try:
            yield self._seen
        finally:
            self._watch_s = 0.0

    def other_processes(self) -> tuple[str, ...] | None:
        return self.script.others

    def meters(self, choice: str) -> ChosenMeters:
        if choice == "none":
            return METERS.get("none")(MeterTarget())
        if choice == "jetson":
            raise MeterError("there is no Jetson here", "choose --meter auto")
        self._made = [ScriptedMeter(kind, self) for kind in self.script.meters]
        return ChosenMeters(meters=tuple(self._made))

    def load(
        self, program: Program, directory: Path, sizes: Mapping[str, int], seed: int
    ) -> ScriptedWorkload:
        script = Script(**json.loads((directory / "script.json").read_text()))
        self.log.append(("load", directory.name))
        if script.fails_at == "load":
            fail(script.fails_by)
        return ScriptedWorkload(self, directory.name, script)

    def wait(self) -> None:
        """Nothing is ever pending."""

    def now(self) -> float:
        return self.timeline.now_s

    def sleep(self, seconds: float) -> None:
        self.timeline.spend(seconds, self.script.idle_w)
        self._idle = True

    def wake(self, seconds: float) -> None:
        """Wait for the host, too short to count as idling."""
        self.timeline.spend(seconds, self.script.idle_w)

    def draw(self, seconds: float, power_w: float) -> None:
        """Let a load run; after idling its power is half of the whole at first."""
        ramp_s = min(RAMP_S, seconds) if self._idle else 0.0
        self.timeline.spend(ramp_s, power_w / 2)
        self.timeline.spend(seconds - ramp_s, power_w)
        self._idle = False
        if self._watch_s:
            self._seen += [self._under_load] * int(min(50, seconds / self._watch_s))


def _read_card(file: Path) -> CardScript:
    text = file.read_text()
    given: dict[str, Any] = json.loads(text) if text else {}
    lists: dict[str, Any] = {name: tuple(v) for name, v in given.items() if isinstance(v, list)}
    return CardScript(**(given | lists))


@dataclass(frozen=True, slots=True)
class Folders:
    """Writes programs with scripts, and the card's script, into a folder."""

    root: Path
    made: list[str] = field(default_factory=list)

    def variant(self, label: str, **script: object) -> Variant:
        """Return a variant whose truth is ``Script(**script)``."""
        directory = self.root / label
        directory.mkdir()
        save_program(matmul(), directory)
        (directory / "matmul.c").write_text("void matmul(void) {}\n")
        (directory / "script.json").write_text(json.dumps(asdict(Script(**script))))  # type: ignore[arg-type]
        return Variant(label=label, directory=directory)

    def card(self, **script: object) -> Path:
        """Return the file of the card's script, for the environment."""
        file = self.root / "card.json"
        file.write_text(json.dumps(asdict(CardScript(**script))))  # type: ignore[arg-type]
        return file


def measured(
    variants: list[Variant], *, card: ScriptedCard | None = None, **options: Any
) -> dict[str, Measurement]:
    """Return measurements by label."""
    card = card or ScriptedCard(script=CardScript())
    found = measure_variants(variants, MeasureOptions(**options), card=card)
    return {measurement.variant: measurement for measurement in found}


def matmul(n: int = 1000) -> Program:
    """Return a plan of a product of matrices; its text only names its parts."""
    size = Name("N")
    cubed, squared = Apply(Operator.MUL, (size,) * 3), Apply(Operator.MUL, (size,) * 2)
    entry = one_launch(
        "matmul",
        "matmul_k0",
        work=Work(
            operations=(
                OperationCount(kind="add", count=cubed),
                OperationCount(kind="multiply", count=cubed),
            ),
            read_bytes=Apply(Operator.MUL, (Constant(24), squared)),
            written_bytes=Apply(Operator.MUL, (Constant(8), squared)),
            notes=(),
        ),
    )
    return plan(
        "matmul",
        "__global__ void matmul_k0();  // names alone\nint matmul_cuda();\n",
        parameters=(Parameter(name="N", kind="macro", default=n, tile=16),),
        kernels=(kernel_code("matmul_k0"),),
        entries=(entry,),
    )
