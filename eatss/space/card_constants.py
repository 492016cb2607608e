"""The figures of a card as constants of a space."""

from __future__ import annotations

from eatss.gpu.profile import FIGURES, GpuProfile
from eatss.point import Value

ALSO_CALLED = {"max_threads_per_block": "threads_per_block", "warp_size": "threads_per_warp"}
"""Other names of figures, those of CUDA."""


def card_constants(profile: GpuProfile) -> dict[str, Value]:
    """Return the figures of a card by name: ``card.sm_count``.

    Besides them ``card.compute_capability`` (90 for 9.0), ``card.name``, and some figures by the
    names of CUDA. A figure that no source gives is left out.
    """
    major, minor = profile.compute_capability
    figures = {name: getattr(profile, name) for name in FIGURES}
    figures |= {other: figures[name] for other, name in ALSO_CALLED.items()}
    known: dict[str, Value] = {
        f"card.{name}": value for name, value in figures.items() if value is not None
    }
    return {**known, "card.compute_capability": 10 * major + minor, "card.name": profile.name}
