"""Changes of a kernel that keep what it computes: ``Kernel`` in, ``Kernel`` out.

A recipe names those that are to be made, in their order; barriers are put last.
"""

from collections.abc import Callable
from typing import TypeAlias

from eatss.base.extensions import Registry
from eatss.lower.kernel.nodes import Kernel
from eatss.lower.transform.point_groups import swizzle

Transformation: TypeAlias = Callable[[Kernel], Kernel]

TRANSFORMATIONS: Registry[Transformation] = Registry(
    "eatss.transformations", "transformation", {"swizzle": swizzle}
)

__all__ = ["TRANSFORMATIONS", "Transformation"]
