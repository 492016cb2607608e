"""What must hold between the figures of one card.

Each entry of ``ORDERED`` says that one figure is at most another, and why. The
list is data, so that a profile with several faults is told all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradiction:
    """Two figures that cannot both be right; ``field`` is the one to point at."""

    field: str
    message: str


ORDERED: tuple[tuple[str, str, str], ...] = (
    ("threads_per_warp", "threads_per_block", "a block holds at least one warp"),
    ("threads_per_block", "max_threads_per_sm", "a block runs on one SM"),
    ("registers_per_thread", "registers_per_block", "a block holds at least one thread"),
    ("registers_per_block", "registers_per_sm", "a block runs on one SM"),
    (
        "shared_per_block_bytes",
        "shared_per_block_optin_bytes",
        "opting in never gives a block less than the default",
    ),
    ("shared_per_block_optin_bytes", "shared_per_sm_bytes", "a block runs on one SM"),
    ("shared_per_sm_bytes", "l1_shared_bytes", "shared memory is a part of L1 + shared memory"),
    ("l2_bytes", "memory_bytes", "L2 caches the memory"),
    ("base_clock_mhz", "boost_clock_mhz", "boost is the higher of the two clocks"),
)
WHOLE_WARPS = ("threads_per_block", "max_threads_per_sm")


def contradictions(figures: Mapping[str, float]) -> Iterator[Contradiction]:
    """Yield what cannot hold among ``figures`` (field name to value); absent ones are skipped."""
    for small, large, why in ORDERED:
        if small in figures and large in figures and figures[small] > figures[large]:
            yield Contradiction(
                field=small,
                message=(
                    f"{small} = {_show(figures[small])} is more than "
                    f"{large} = {_show(figures[large])}, but {why}"
                ),
            )
    warp = figures.get("threads_per_warp")
    for field in WHOLE_WARPS:
        if warp and field in figures and figures[field] % warp:
            yield Contradiction(
                field=field,
                message=(
                    f"{field} = {_show(figures[field])} is not a multiple of "
                    f"threads_per_warp = {_show(warp)}"
                ),
            )


def _show(value: float) -> str:
    return str(int(value)) if value == int(value) else str(value)
