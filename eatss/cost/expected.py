"""What the model expects of one kernel: milliseconds, joules and what bounds it."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from eatss.base.codec import BY_NAME, JsonForm
from eatss.base.frozen import frozen
from eatss.base.shown import energy_text, time_text

Parts: TypeAlias = Annotated[tuple[tuple[str, float], ...], BY_NAME]


@frozen
class Prediction:
    """Expected time and energy of a kernel over all its launches of one run, in s and J.

    ``times_s`` are what each part of the card would take alone, the largest first; ``energies_j``
    where the energy goes, the largest first. ``blocks`` and ``threads`` are those of a launch and a
    block, ``resident_blocks`` those of an SM that run at a time. ``registers`` are of a
    thread, an estimate; ``shared_bytes`` of a block.
    """

    json_layout = JsonForm(also=("power_w", "bound"))

    time_s: float
    energy_j: float
    times_s: Parts
    energies_j: Parts
    launches: int
    blocks: int
    threads: int
    registers: int
    shared_bytes: int
    resident_blocks: int

    @property
    def power_w(self) -> float:
        """Mean power while the kernel runs."""
        return self.energy_j / self.time_s if self.time_s else 0.0

    @property
    def amounts(self) -> str:
        """Time and energy as text."""
        return f"{time_text(self.time_s)}, {energy_text(self.energy_j)}"

    @property
    def bound(self) -> str:
        """What takes longest on its own: ``memory``, ``issue``, ``latency`` …, or nothing."""
        return self.times_s[0][0] if self.times_s else ""


HOST_INSTANCE_S = 0.25e-9
"""What one instance of a statement takes at least: a cycle at 4 GHz, for one waits for another."""


def host_time_s(instances: int | None) -> float | None:
    """Return the least time of statements that PPCG leaves on the host: nothing is parallel there.

    ``None`` where they cannot be counted.
    """
    return None if instances is None else HOST_INSTANCE_S * instances
