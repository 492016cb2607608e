"""Halves that are copied one by one, since rows of their array begin anywhere.

Where warps multiply they come through registers, a turn ahead [``eatss.transform.narrow_lines``].
"""

from __future__ import annotations

from math import prod

import numpy as np

from eatss.analysis.structure import WORD_BYTES
from eatss.prediction.cuda_boxes import box_of
from eatss.prediction.cuda_launch import CudaLaunch
from eatss.prediction.demand import Column


def is_narrow(of: CudaLaunch, group: int) -> bool:
    """Tell whether elements of a stageable group are copied one by one, through registers."""
    own = of.staging[group]
    narrow = own.element_bytes < WORD_BYTES and not own.aligned
    return of.structure.instruction is not None and narrow


def line_words(of: CudaLaunch) -> Column:
    """Return the registers of a thread for what is on its way: each element has one."""
    words = of.zeros
    for group in range(len(of.cut.stageable)):
        if is_narrow(of, group):
            own = [one for one in of.all_uniform_sets if one.group == group]
            sizes = [prod(box_of(of, one, declared=True), start=of.ones) for one in own]
            each = np.ceil(np.maximum.reduce(sizes) / of.shape.block_threads)
            words = words + of.staged(group) * each
    return np.asarray(words * (of.layout.boxes > 1))
