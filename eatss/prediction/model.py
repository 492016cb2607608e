"""The prediction for PPCG's code, ready to be asked: one kernel, one card, many candidates."""

from __future__ import annotations

from eatss.analysis.facts import KernelFacts
from eatss.frozen import frozen
from eatss.gpu.profile import GpuProfile
from eatss.prediction.card import Card, card_of
from eatss.prediction.code_constants import CodeConstants
from eatss.prediction.demand import Demand
from eatss.prediction.expected import Prediction
from eatss.prediction.ppcg import ppcg_demand
from eatss.prediction.ppcg_groups import PpcgKernel, ppcg_kernel
from eatss.prediction.ppcg_launch import PpcgCandidates, PpcgLaunch
from eatss.prediction.terms import Predicted, predict


@frozen
class PpcgModel:
    """What PPCG's code for one kernel does on one card."""

    kernel: PpcgKernel
    card: Card
    constants: CodeConstants

    @classmethod
    def of(cls, facts: KernelFacts, profile: GpuProfile) -> PpcgModel:
        """Return the model of a kernel on a card."""
        return cls(
            kernel=ppcg_kernel(facts),
            card=card_of(profile),
            constants=CodeConstants(),
        )

    def launch(self, candidates: PpcgCandidates) -> PpcgLaunch:
        """Return a launch of each candidate's code in numbers."""
        return PpcgLaunch(
            kernel=self.kernel, candidates=candidates, card=self.card, constants=self.constants
        )

    def columns(self, candidates: PpcgCandidates) -> tuple[Demand, Predicted]:
        """Return demand of a launch and prediction of a run, both with an entry a candidate."""
        demand = ppcg_demand(self.launch(candidates))
        return demand, predict(demand, self.card, self.constants)

    def prediction(self, candidates: PpcgCandidates, row: int = 0) -> Prediction | None:
        """Return the prediction of the candidate ``row``, ``None`` where it cannot launch."""
        demand, expected = self.columns(candidates)
        return prediction_at(demand, expected, row)


def prediction_at(demand: Demand, expected: Predicted, row: int) -> Prediction | None:
    """Return one entry of the columns, ``None`` where that candidate cannot launch."""
    if not expected.resident_blocks[row]:
        return None
    return Prediction(
        time_s=float(expected.time_s[row]),
        energy_j=float(expected.energy_j[row]),
        times_s=_ordered({name: float(column[row]) for name, column in expected.terms_s.items()}),
        energies_j=_ordered({n: float(column[row]) for n, column in expected.terms_j.items()}),
        launches=int(demand.launches[row]),
        blocks=int(demand.blocks[row]),
        threads=int(demand.threads[row]),
        registers=int(demand.registers[row]),
        shared_bytes=int(demand.shared_bytes[row]),
        resident_blocks=int(expected.resident_blocks[row]),
    )


def _ordered(terms: dict[str, float]) -> tuple[tuple[str, float], ...]:
    return tuple(sorted(terms.items(), key=lambda item: -item[1]))
