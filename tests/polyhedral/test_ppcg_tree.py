"""Schedule trees as PPCG's: nests of parallel loops are one band."""

from __future__ import annotations

import islpy as isl

from eatss.polyhedral.isl_names import node_kind
from eatss.polyhedral.ppcg import with_nests_merged

NEST = """\
{{ domain: "{{ S[i, j, k] : 0 <= i, j, k < 9 }}",
  child: {{ schedule: "[{{ S[i, j, k] -> [(i)] }}]", permutable: 1, coincident: [ 1 ],
    child: {{ schedule: "[{{ S[i, j, k] -> [(j)] }}]", permutable: 1, coincident: [ {middle} ],
      child: {{ schedule: "[{{ S[i, j, k] -> [(k)] }}]", permutable: 1, coincident: [ 1 ] }}
}} }} }}
"""


def members(middle: int) -> list[int]:
    schedule = isl.Schedule.read_from_str(isl.Context(), NEST.format(middle=middle))
    node = with_nests_merged(schedule).get_root().get_child(0)
    found = []
    while node_kind(node) == "band":
        assert node.band_get_permutable()
        found.append(node.band_n_member())
        node = node.get_child(0)
    return found


def test_parallel_loops_in_each_other_are_one_band() -> None:
    assert members(1) == [3]


def test_a_serial_loop_between_them_stays() -> None:
    assert members(0) == [1, 1, 1]
