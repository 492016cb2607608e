"""Stencils of many points: dataflow takes their reads as one, and finds what it finds for each."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from eatss.frontend import parse_source
from eatss.polyhedral import compute_dependences, dependences
from eatss.polyhedral.dependences import dependent_accesses, flow_by_read
from eatss.polyhedral.scop import Scop
from tests.large_programs import stencil


def region(*, kept: Sequence[int] | None = None) -> Scop:
    (scop,) = parse_source(stencil(2, 2, buffered=True, kept=kept)).scops
    return scop


def test_reads_that_make_one_box_have_one_tag() -> None:
    tags = {one.tag for one in dependent_accesses(region()) if not one.access.is_write}
    assert len(tags) == 1


def test_reads_far_from_each_other_have_tags_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dependences, "_MANY", 4)
    found = dependent_accesses(region(kept=(0, 8, 11, 17, 24)))
    assert all(one.tag == one.number for one in found)


def test_what_a_statement_writes_itself_is_in_no_group() -> None:
    (scop,) = parse_source(stencil(2, 3, buffered=True).replace("(t + 1) % 2", "t % 2")).scops
    found = dependent_accesses(scop)
    own = [one for one in found if one.access.text == "A[t % 2][i][j]"]
    assert [one.tag for one in own] == [one.number for one in own]
    assert len({one.tag for one in found}) == 3


def test_groups_change_no_dependence_and_no_source_of_a_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (scop,) = parse_source(stencil(2, 1, buffered=True)).scops
    monkeypatch.setattr(dependences, "_MANY", 4)
    together = compute_dependences(scop)
    of_each = flow_by_read(scop, together.tagged_flow)
    monkeypatch.setattr(dependences, "_MANY", 1000)
    apart = compute_dependences(scop)
    for name in ("flow", "anti", "output", "forced"):
        assert getattr(together, name).is_equal(getattr(apart, name))
    expected = flow_by_read(scop, apart.tagged_flow)
    assert of_each.keys() == expected.keys()
    assert all(of_each[place].is_equal(expected[place]) for place in expected)
