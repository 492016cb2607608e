"""Where elements lie: each in a place of its own, columns of a swizzled box in all banks."""

from __future__ import annotations

from itertools import product

import pytest

from eatss.lower.kernel.nodes import Extents
from eatss.program import Constant, Name, c_text, evaluate


def layout(*extents: int, padding: int = 0, swizzle: int = 0) -> Extents:
    return Extents(tuple(map(Constant, extents)), padding, swizzle)


LAYOUTS = (
    layout(4, 8), layout(4, 8, padding=1), layout(4, 8, swizzle=8), layout(16, 8, swizzle=4),
    layout(2, 3, 4, swizzle=2), layout(5), layout(),
)  # fmt: skip


@pytest.mark.parametrize("one", LAYOUTS)
def test_no_two_elements_lie_in_one_place(one: Extents) -> None:
    indices = product(*(range(evaluate(extent, {})) for extent in one.extents))
    places = [evaluate(one.address([Constant(k) for k in index]), {}) for index in indices]
    assert len(set(places)) == len(places)
    assert one.elements is not None
    assert all(0 <= place < one.elements for place in places)


def test_strides_are_those_of_the_allocated_box() -> None:
    strides = Extents((Name("n"), Name("m"), Constant(8)), padding=1).strides
    assert [c_text(stride) for stride in strides] == ["9 * m", "9", "1"]


@pytest.mark.parametrize("one", [layout(32, 32, padding=1), layout(32, 32, swizzle=32)])
def test_a_column_lies_in_all_banks(one: Extents) -> None:
    column = [one.address([Constant(row), Constant(5)]) for row in range(32)]
    assert len({evaluate(place, {}) % 32 for place in column}) == 32


@pytest.mark.parametrize(
    ("extents", "padding", "swizzle"),
    [((4, 8), 0, 3), ((4, 8), 0, 16), ((4, 8), 1, 8), ((8,), 0, 8), ((4, 6), 0, 4)],
)
def test_a_swizzle_that_leaves_the_row_is_refused(
    extents: tuple[int, ...], padding: int, swizzle: int
) -> None:
    with pytest.raises(ValueError, match="does not fit"):
        layout(*extents, padding=padding, swizzle=swizzle)


def test_the_text_of_a_swizzle() -> None:
    places = layout(16, 16, swizzle=8).place([Name("i"), Name("j")])
    assert [c_text(place) for place in places] == ["i", "(j ^ (i % 8))"]
