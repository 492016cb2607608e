"""What PPCG leaves on the host, because nothing is parallel there."""

from __future__ import annotations

HOST_INSTANCE_S = 0.25e-9
"""What one instance of a statement takes at least: a cycle at 4 GHz, for one waits for another."""


def host_time_s(instances: int | None) -> float | None:
    """Return the least time of statements on the host, ``None`` where they cannot be counted."""
    return None if instances is None else HOST_INSTANCE_S * instances
