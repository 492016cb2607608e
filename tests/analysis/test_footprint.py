"""Footprints equal counting the elements one by one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import islpy as isl
from hypothesis import given, settings
from hypothesis import strategies as st

from eatss.analysis.footprint import footprint
from eatss.polyhedral.kernel import Loop, Reference, Subscript

NAMES = ("i", "j", "k")
NO_RELATION = isl.Map.read_from_str(isl.Context(), "{ k0[] -> A[] }")
Affine = tuple[dict[str, int], int]


def _reference(*subscripts: Affine) -> Reference:
    return Reference(
        array="A",
        text="A",
        statements=("S0",),
        reads=True,
        writes=False,
        subscripts=tuple(
            Subscript(
                coefficients=tuple((n, c[n]) for n in NAMES if c.get(n)), symbols=(), offset=o
            )
            for c, o in subscripts
        ),
        relation=NO_RELATION,
    )


def _loops(trips: int | None = None) -> tuple[Loop, ...]:
    return tuple(Loop(name=name, parallel=True, trip_count=trips) for name in NAMES)


def _count(references: Sequence[Reference], sizes: dict[str, int]) -> int:
    touched = set()
    for point in product(*(range(sizes[name]) for name in NAMES)):
        at = dict(zip(NAMES, point, strict=True))
        for reference in references:
            touched.add(
                tuple(
                    s.offset + sum(c * at[n] for n, c in s.coefficients)
                    for s in reference.subscripts
                )
            )
    return len(touched)


def _text(*references: Reference) -> tuple[str, bool]:
    elements, exact = footprint(references, _loops())
    return str(elements), exact


def test_a_plain_reference_touches_the_product_of_its_loops() -> None:
    assert _text(_reference(({"i": 1}, 0), ({"k": 1}, 0))) == ("T_i*T_k", True)


def test_the_halo_of_a_stencil_counts_once() -> None:
    line = [_reference(({"i": 1}, d)) for d in (-1, 0, 1)]
    assert _text(*line) == ("2 + T_i", True)


def test_the_halo_of_a_star_has_no_corners() -> None:
    star = [
        _reference(({"i": 1}, a), ({"j": 1}, b))
        for a, b in ((0, 0), (-1, 0), (1, 0), (0, -1), (0, 1))
    ]
    elements, exact = footprint(star, _loops())
    assert exact
    assert elements.evaluate({"i": 7, "j": 9}) == 9 * 11 - 4


def test_a_star_of_four_dimensions_is_counted() -> None:
    places = [tuple(by * (one == at) for one in range(4)) for at in range(4) for by in (-1, 0, 1)]
    names = (*NAMES, "l")
    star = [
        Reference(
            array="A", text="A", statements=("S0",), reads=True, writes=False, relation=NO_RELATION,
            subscripts=tuple(
                Subscript(coefficients=((name, 1),), symbols=(), offset=offset)
                for name, offset in zip(names, own, strict=True)
            ),
        )
        for own in places
    ]  # fmt: skip
    loops = [Loop(name=name, parallel=True, trip_count=None) for name in names]
    elements, exact = footprint(star, loops)
    assert exact
    assert elements.evaluate(dict.fromkeys(names, 5)) == 5**4 + 4 * 2 * 5**3


def test_a_bound_is_never_more_than_the_points_of_a_tile() -> None:
    """Rows of 1000 elements in an array of one dimension."""
    assert _text(_reference(({"i": 1000, "j": 1}, 0))) == ("T_i*T_j", False)


def test_references_that_move_differently_are_added_and_marked() -> None:
    one, other = _reference(({"i": 1}, 0), ({"k": 1}, 0)), _reference(({"j": 1}, 0), ({"k": 1}, 0))
    assert _text(one, other) == ("T_i*T_k + T_j*T_k", False)


def test_a_subscript_that_is_not_affine_is_bounded_by_its_loops() -> None:
    parts = (("i", 0), ("j", 0))
    odd = Subscript(coefficients=parts, symbols=(), offset=0, function="floor((i + j)/2)")
    reference = Reference(
        array="A", text="A", statements=("S0",), reads=True, writes=False,
        subscripts=(odd,), relation=NO_RELATION,
    )  # fmt: skip
    assert _text(reference) == ("T_i*T_j", False)


_coefficient = st.sampled_from([0, 0, 1, 1, 1, -1, 2, 3])
_subscript = st.tuples(st.fixed_dictionaries(dict.fromkeys(NAMES, _coefficient)), st.just(0))
_shift = st.integers(-3, 3)


@st.composite
def _references(draw: st.DrawFn) -> list[Reference]:
    """Draw translated copies of one reference, and sometimes an unrelated one."""
    shape = [draw(_subscript) for _ in range(draw(st.integers(1, 3)))]
    copies = [
        _reference(*((c, draw(_shift)) for c, _ in shape)) for _ in range(draw(st.integers(1, 4)))
    ]
    if draw(st.integers(0, 5)) == 0:
        copies.append(_reference(*((draw(_subscript)[0], draw(_shift)) for _ in shape)))
    return copies


@settings(max_examples=300, deadline=None)
@given(
    references=_references(),
    sizes=st.fixed_dictionaries({name: st.integers(4, 9) for name in NAMES}),
)
def test_footprints_equal_enumeration_or_bound_it(
    references: list[Reference], sizes: dict[str, int]
) -> None:
    elements, exact = footprint(references, _loops())
    found, truth = elements.evaluate(sizes), _count(references, sizes)
    assert found == truth if exact else found >= truth
