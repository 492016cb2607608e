"""Shapes in, sizes out, compared with trying all sizes; classes of sizes; times and signatures."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import eatss
from eatss.program import (
    Apply,
    Argument,
    Constant,
    Interface,
    InterfaceEntry,
    IntExpr,
    Name,
    Operator,
    Parameter,
    evaluate,
)
from eatss.session.jit.signature import (
    CallSignature,
    class_of,
    infer_sizes,
    signature_of,
)
from tests.examples import examples
from tests.refusals import refusing

MOST = 5
"""Sizes up to this are drawn, and up to three times as much is tried."""


def argument(name: str, *shape: IntExpr, **other: object) -> Argument:
    known: dict[str, object] = {
        "role": "array",
        "element_type": "double",
        "reads": True,
        "writes": False,
        "source": "parameter",
        "source_name": name,
        "position": None,
    }
    return Argument(name=name, shape=shape, **(known | other))  # type: ignore[arg-type]


def signature(
    *arguments: Argument, defaults: dict[str, int | None], more: tuple[Argument, ...] = ()
) -> CallSignature:
    """Return the signature of a function with these arguments, and of another with more."""
    entries = [InterfaceEntry(function="f", arguments=arguments)]
    if more:
        entries.append(InterfaceEntry(function="g", arguments=more))
    return signature_of(
        Interface(
            parameters=tuple(
                Parameter(name=name, kind="macro", default=value)
                for name, value in defaults.items()
            ),
            entries=tuple(entries),
        )
    )


def line(terms: dict[str, int], rest: int) -> IntExpr:
    """Return ``2 * n + m - 1``."""
    parts = [Apply(Operator.MUL, (Constant(factor), Name(name))) for name, factor in terms.items()]
    return Apply(Operator.ADD, (*parts, Constant(rest)))


LINES = st.builds(
    line,
    st.dictionaries(st.sampled_from("nmk"), st.integers(1, 3), min_size=1, max_size=2),
    st.integers(-2, 3),
)
SHAPES = st.lists(st.lists(LINES, min_size=1, max_size=3), min_size=1, max_size=3)


@settings(max_examples=examples(60))
@given(SHAPES, st.tuples(*[st.integers(1, MOST)] * 3), st.booleans(), st.data())
def test_sizes_are_those_that_fit_all_shapes(
    shapes: list[list[IntExpr]], truth: tuple[int, int, int], spoilt: bool, data: st.DataObject
) -> None:
    """What is found fits; a size that one array alone determines is found; nothing else fits."""
    taken = signature(
        *(argument(f"A{number}", *shape) for number, shape in enumerate(shapes)),
        defaults=dict.fromkeys("nmk"),
    )
    at = dict(zip("nmk", truth, strict=True))
    extents = {
        f"A{number}": tuple(max(0, evaluate(one, at)) for one in shape)
        for number, shape in enumerate(shapes)
    }
    if spoilt:
        name = data.draw(st.sampled_from(sorted(extents)))
        axis = data.draw(st.integers(0, len(extents[name]) - 1))
        changed = list(extents[name])
        changed[axis] += data.draw(st.integers(1, 3))
        extents[name] = tuple(changed)
    fitting = [
        dict(zip("nmk", values, strict=True))
        for values in product(range(1, 3 * MOST), repeat=3)
        if all(
            max(0, evaluate(one, dict(zip("nmk", values, strict=True)))) == extent
            for number, shape in enumerate(shapes)
            for one, extent in zip(shape, extents[f"A{number}"], strict=True)
        )
    ]
    found = found_or_code(taken, extents)
    if found == "EATSS-J003":
        assert len(fitting) != 1 or not _triangular(shapes), "a size was not found"
    elif isinstance(found, str):
        assert found == "EATSS-J003"
        assert not fitting, "sizes that fit were not found"
    else:
        for number, shape in enumerate(shapes):
            assert tuple(max(0, evaluate(one, found)) for one in shape) == extents[f"A{number}"]
        assert infer_sizes(taken, extents, found) == found


def found_or_code(
    taken: CallSignature, extents: dict[str, tuple[int, ...]]
) -> dict[str, int] | str:
    """Return the sizes of shapes, or the code of what is wrong."""
    try:
        return infer_sizes(taken, extents, {})
    except eatss.InputError as error:
        return error.code


def _triangular(shapes: list[list[IntExpr]]) -> bool:
    """Tell whether the sizes follow one after another, each from an extent with no other new."""
    known: set[str] = set()
    for _ in range(3):
        for shape in shapes:
            for one in shape:
                assert isinstance(one, Apply)
                names = {part.operands[1].name for part in one.operands[:-1]}  # type: ignore[union-attr]
                if len(names - known) == 1:
                    known |= names
    return known == set("nmk")


N, M = Name("n"), Name("m")
PLUS = Apply(Operator.ADD, (N, Constant(1)))
SUM = Apply(Operator.ADD, (N, M))
TWICE = Apply(Operator.SUB, (Apply(Operator.MUL, (Constant(2), N)), Constant(1)))


@pytest.mark.parametrize(
    ("shapes", "given_sizes", "said", "hint"),
    [
        (
            {"A": (5,), "B": (5,)},
            {},
            "'B' has the shape (5,), and (6,) is needed: dimension 0 is n + 1, n=5 [EATSS-J003]",
            "the program takes B[n + 1]",
        ),
        (
            {"A": (5,), "B": (6,)},
            {"n": 4},
            "'A' has the shape (5,), and (4,) is needed: dimension 0 is n, n=4 [EATSS-J003]",
            "the program takes A[n]",
        ),
        (
            {"A": (5, 1), "B": (6,)},
            {},
            "'A' has 2 dimensions [EATSS-J003]",
            "the program takes A[n]",
        ),
        (
            {"C": (7,)},
            {},
            "no array determines the size 'n', and it is not given [EATSS-J003]",
            "call with n=VALUE",
        ),
        (
            {"D": (6,)},
            {"m": 3},
            "no array determines the size 'n', and it is not given [EATSS-J003]",
            "call with n=VALUE",
        ),
    ],
)
def test_shapes_that_do_not_fit_are_explained(
    shapes: dict[str, tuple[int, ...]], given_sizes: dict[str, int], said: str, hint: str
) -> None:
    taken = signature(
        argument("A", N),
        argument("B", PLUS),
        argument("C", SUM),
        argument("D", TWICE),
        defaults={"n": None, "m": 50},
    )
    with pytest.raises(eatss.InputError) as caught:
        infer_sizes(taken, shapes, given_sizes)
    assert str(caught.value).splitlines()[0] == f"error: {said}"
    assert caught.value.diagnostics[0].hint == hint


def test_sizes_of_the_source_stand_where_nothing_says_more() -> None:
    taken = signature(argument("A", N), argument("C", SUM), defaults={"n": 100, "m": 20})
    assert infer_sizes(taken, {}, {}) == {"n": 100, "m": 20}
    assert infer_sizes(taken, {"A": (5,)}, {}) == {"n": 5, "m": 20}
    assert infer_sizes(taken, {"A": (5,), "C": (8,)}, {}) == {"n": 5, "m": 3}
    assert infer_sizes(taken, {"C": (8,)}, {"m": 1}) == {"n": 7, "m": 1}
    with pytest.raises(eatss.InputError, match=r"n=100, m=20"):
        infer_sizes(taken, {"C": (8,)}, {})


@given(st.integers(0, 2**40))
def test_a_class_is_named_by_its_least_size_and_is_narrow(value: int) -> None:
    least = class_of(value)
    assert class_of(least) == least <= value
    assert value - least <= least / 8
    assert class_of(value + 1) >= least
    if value < 33:
        assert least == value


# signatures ---------------------------------------------------------------------------------


def test_arguments_of_several_functions_are_joined() -> None:
    taken = signature(
        argument("A", N, reads=True),
        argument("u", N, reads=False),
        argument("x", role="scalar"),
        defaults={"n": 9},
        more=(
            argument("v", N, source_name="A", reads=False, writes=True),
            argument("u", M, reads=True),
        ),
    )
    assert [one.name for one in taken.arguments] == ["A", "u", "x", "n"]
    assert taken["A"].writes
    assert taken["u"].used
    assert taken["u"].shape == (M,)
    assert taken.names == ((("A", "A"), ("u", "u"), ("x", "x")), (("A", "v"), ("u", "u")))
    assert str(taken) == "A, u, x, *, n=9"


@pytest.mark.parametrize(
    ("other", "what"),
    [
        (argument("A", N, M), "an array of 2 dimensions of float64"),
        (argument("A", N, element_type="float"), "an array of 1 dimension of float32"),
        (argument("A", role="scalar"), "a scalar of float64"),
        (argument("A", role="cell", writes=True), "a scalar it writes of float64"),
    ],
)
def test_one_name_for_different_things_is_refused(other: Argument, what: str) -> None:
    with pytest.raises(eatss.InputError) as caught:
        signature(argument("A", N), defaults={"n": 9}, more=(other,))
    assert str(caught.value).splitlines()[0] == (
        f"error: 'A' is an array of 1 dimension of float64 in one region and {what} in 'g' "
        "[EATSS-J014]"
    )
    assert caught.value.diagnostics[0].hint == "make a callable of one function, function='g'"


# times --------------------------------------------------------------------------------------


def test_a_word_is_no_yes() -> None:
    with refusing("EATSS-C004"):
        eatss.jit("nowhere.c", exact_sizes="no")  # type: ignore[arg-type]
