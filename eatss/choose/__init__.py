"""``KernelFacts`` × ``GpuProfile`` × options in; proven-optimal ``Selection`` out.

Next folders: ``eatss/report`` shows a selection, ``eatss/lower`` turns it into code.

Importing this package is cheap; what an objective of one's own needs is loaded when asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from eatss.base.lazy_names import loading_names

if TYPE_CHECKING:
    from eatss.choose.objectives import OBJECTIVES, Objective

__all__ = ["OBJECTIVES", "Objective"]

__getattr__ = loading_names(__name__, dict.fromkeys(__all__, "objectives"))
