"""The prediction for generated code, ready to be asked: one kernel, one card, many layouts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from eatss.analysis.columns import mapped
from eatss.analysis.facts import KernelFacts
from eatss.analysis.layout import Candidates
from eatss.gpu.profile import GpuProfile
from eatss.prediction.card import Card, card_of
from eatss.prediction.code_constants import CodeConstants
from eatss.prediction.cuda import cuda_demands
from eatss.prediction.cuda_constants import CudaConstants
from eatss.prediction.demand import Column, Demand
from eatss.prediction.expected import Prediction
from eatss.prediction.model import prediction_at
from eatss.prediction.terms import Predicted, predict


@dataclass(frozen=True, slots=True)
class CudaPrediction:
    """What is expected of layouts of one structure.

    ``launches`` are demand and prediction of each launch; ``total`` is their sum. ``fits`` says
    which layouts keep their sums in registers.
    """

    launches: tuple[tuple[Demand, Predicted], ...]
    total: Predicted
    fits: npt.NDArray[np.bool_]

    @property
    def shared_bytes(self) -> Column:
        """Shared memory of the largest block, in bytes."""
        return np.asarray(np.maximum.reduce([demand.shared_bytes for demand, _ in self.launches]))

    def at(self, row: int) -> Prediction | None:
        """Return the prediction of one layout, ``None`` where it cannot launch.

        Blocks, threads and registers are those of the launch that takes longest.
        """
        demand, _ = max(self.launches, key=lambda launch: float(launch[1].time_s[row]))
        return prediction_at(demand, self.total, row)


@dataclass(frozen=True, slots=True, kw_only=True)
class CudaModel:
    """What generated code for one kernel does on one card."""

    facts: KernelFacts
    card: Card
    constants: CodeConstants
    code: CudaConstants

    @classmethod
    def of(cls, facts: KernelFacts, profile: GpuProfile) -> CudaModel:
        """Return the model of a kernel on a card."""
        code = CudaConstants()
        constants = replace(
            CodeConstants(),
            sharpness=code.sharpness,
            launch_wait=code.launch_wait,
        )
        return cls(facts=facts, card=card_of(profile), constants=constants, code=code)

    def columns(self, layout: Candidates) -> CudaPrediction:
        """Return what is expected of layouts under one structure, an entry each."""
        own = layout.map(lambda column: column.astype(np.float64))
        asked = cuda_demands(self.facts, own, self.card, self.constants, self.code)
        launches = tuple(
            (one.demand, predict(one.demand, self.card, self.constants)) for one in asked
        )
        return CudaPrediction(
            launches=launches,
            total=_sum([expected for _, expected in launches]),
            fits=np.logical_and.reduce([one.fits for one in asked]),
        )


def _sum(parts: Sequence[Predicted]) -> Predicted:
    """Return what launches take one after the other."""
    resident = np.minimum.reduce([part.resident_blocks for part in parts])
    total = mapped(lambda *columns: np.asarray(sum(columns)), *parts)
    return replace(total, resident_blocks=resident)
