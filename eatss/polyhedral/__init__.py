"""``Scop`` in; dependences, schedule tree and GPU ``Kernel``s out.

Next folder: ``eatss/analysis``. Importing this package is cheap: networkx and the passes
are loaded when a region is scheduled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from eatss.base.lazy_names import loading_names

if TYPE_CHECKING:
    from eatss.polyhedral.dependences import MAX_OPERATIONS, compute_dependences
    from eatss.polyhedral.kernel import (
        Dependences,
        Footprint,
        Kernel,
        Loop,
        Reduction,
        Reference,
        ScheduledScop,
        Subscript,
    )
    from eatss.polyhedral.schedule import schedule_scop

__all__ = [
    "MAX_OPERATIONS",
    "Dependences",
    "Footprint",
    "Kernel",
    "Loop",
    "Reduction",
    "Reference",
    "ScheduledScop",
    "Subscript",
    "compute_dependences",
    "schedule_scop",
]

_HOME = {
    "MAX_OPERATIONS": "dependences",
    "Dependences": "kernel",
    "Footprint": "kernel",
    "Kernel": "kernel",
    "Loop": "kernel",
    "Reduction": "kernel",
    "Reference": "kernel",
    "ScheduledScop": "kernel",
    "Subscript": "kernel",
    "compute_dependences": "dependences",
    "schedule_scop": "schedule",
}

__getattr__ = loading_names(__name__, _HOME)
