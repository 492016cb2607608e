"""A kernel's vectors under several settings of PPCG's options, each differing code costed once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

import numpy as np
import numpy.typing as npt

from eatss.model.ppcg_lattice import Vector, candidates
from eatss.model.selection import PpcgOptions
from eatss.prediction.demand import Demand
from eatss.prediction.model import PpcgModel
from eatss.prediction.ppcg import PpcgCandidates, shared_groups
from eatss.prediction.terms import Predicted

_Rows = npt.NDArray[np.intp]


def under_settings(
    model: PpcgModel, vectors: tuple[Vector, ...], settings: Sequence[PpcgOptions]
) -> list[tuple[Demand, Predicted]]:
    """Return demand and prediction of every vector, for each setting.

    ``max_shared_memory`` decides which groups are staged and nothing else. Where a vector has the
    same ones as under an earlier setting, its code is the same.
    """
    sizes = candidates(model.kernel, vectors, shared_limit_bytes=0, unroll=False)
    offered = [_under(sizes, setting) for setting in settings]
    codes = [_code(model, one) for one in offered]
    rows = np.full((len(settings), len(vectors)), -1)
    new, count = [], 0
    for at, code in enumerate(codes):
        for before in range(at):
            same = (rows[at] < 0) & (code == codes[before]).all(axis=0)
            rows[at][same] = rows[before][same]
        fresh = np.flatnonzero(rows[at] < 0)
        rows[at][fresh] = count + np.arange(len(fresh))
        count += len(fresh)
        new.append(fresh)
    demand, expected = model.columns(_joined(offered, new))
    return [(_demand_at(demand, taken), _predicted_at(expected, taken)) for taken in rows]


def _under(sizes: PpcgCandidates, setting: PpcgOptions) -> PpcgCandidates:
    return replace(
        sizes,
        shared_limit_bytes=np.full(len(sizes), float(setting.max_shared_memory)),
        unroll=np.full(len(sizes), float(setting.unroll_gpu_tile)),
    )


def _code(model: PpcgModel, offered: PpcgCandidates) -> npt.NDArray[np.float64]:
    """Return what decides about the code of a vector, a column a candidate."""
    staged, _ = shared_groups(model.kernel, offered)
    return np.array([*staged, offered.unroll])


def _joined(offered: Sequence[PpcgCandidates], rows: Sequence[_Rows]) -> PpcgCandidates:
    """Return candidates of several settings, one after the other."""
    sizes, taken = offered[0], np.concatenate(rows)
    pairs = list(zip(offered, rows, strict=True))
    return PpcgCandidates(
        tiles={name: column[taken] for name, column in sizes.tiles.items()},
        blocks={name: column[taken] for name, column in sizes.blocks.items()},
        shared_limit_bytes=np.concatenate([one.shared_limit_bytes[at] for one, at in pairs]),
        unroll=np.concatenate([one.unroll[at] for one, at in pairs]),
    )


def _demand_at(demand: Demand, rows: _Rows) -> Demand:
    return Demand(**{field.name: getattr(demand, field.name)[rows] for field in fields(demand)})


def _predicted_at(expected: Predicted, rows: _Rows) -> Predicted:
    return Predicted(
        time_s=expected.time_s[rows],
        energy_j=expected.energy_j[rows],
        terms_s={name: term[rows] for name, term in expected.terms_s.items()},
        terms_j={name: term[rows] for name, term in expected.terms_j.items()},
        resident_blocks=expected.resident_blocks[rows],
    )
