"""What the model expects of a variant, as numbers beside what is measured."""

from __future__ import annotations

from collections.abc import Sequence

from eatss.model.selection import KernelSelection
from eatss.store.nouns import Metrics


def predicted_metrics(kernels: Sequence[KernelSelection]) -> Metrics:
    """Return the predictions of a whole program, where every kernel with tiles has one."""
    sized = [kernel for kernel in kernels if kernel.tile_sizes]
    predicted = [kernel.predicted for kernel in sized if kernel.predicted is not None]
    if not sized or len(predicted) < len(sized):
        return ()
    return (
        ("predicted_time_s", sum(one.time_s for one in predicted)),
        ("predicted_energy_j", sum(one.energy_j for one in predicted)),
    )
