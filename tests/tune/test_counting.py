"""Counting, walking, sampling and neighbours against a loop of plain Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator as Iterating
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eatss.base.diagnostics import InputError, NoSolutionError
from eatss.tune import counting
from eatss.tune.bound import BoundSpace, bind
from eatss.tune.points import Space
from tests.refusals import refusing

NAMES = ("a", "b", "c", "d", "k0.e")


@dataclass(frozen=True)
class Small:
    """A space, and the same as code of Python."""

    space: Space


def ranged(start: str, stop: str, step: str = "1") -> Any:
    return {"start": start, "stop": stop, "step": step}


def values_of(one: Any, row: dict[str, Any]) -> list[Any]:
    """Return the values of an iterator, as plain Python."""

    def value(text: str) -> int:
        return int(eval(text.replace("k0.e", "k0_e"), {"min": min}, plain(row)))

    if isinstance(one, tuple):
        return list(one)
    numbers = [*map(value, one.values())]
    if "divisors" in one:
        return [n for n in range(1, numbers[0] + 1) if numbers[0] % n == 0]
    first, last, by = numbers
    return list(range(first, last + (1 if by > 0 else -1), by))


def plain(row: dict[str, Any]) -> dict[str, Any]:
    return {name.replace(".", "_"): value for name, value in row.items()}


def met(condition: str, row: dict[str, Any]) -> bool:
    return bool(eval(condition.replace("k0.e", "k0_e"), {"min": min}, plain(row)))


def raw_points(space: Space, row: dict[str, Any]) -> Iterating[dict[str, Any]]:
    if len(row) == len(space.iterators):
        yield row
        return
    name, one = [*space.iterators.items()][len(row)]
    for value in values_of(one, row):
        yield from raw_points(space, {**row, name: value})


def brute(space: Space) -> tuple[int, list[dict[str, Any]], Counter[str]]:
    """Return how many raw points there are, the kept ones, and what each filter removes."""
    names = [*space.iterators]

    def last(condition: Any) -> int:
        used = {name for name in names if name in condition.replace("k0.e", "k0.e ").split()}
        return max([at for at, name in enumerate(names) if name in used], default=-1)

    order = sorted(space.filters.items(), key=lambda own: last(own[1]))
    raw, kept, removed = 0, [], Counter[str]()
    for row in raw_points(space, {}):
        raw += 1
        failed = next((name for name, text in order if not met(str(text), row)), None)
        if failed is None:
            kept.append(row)
        else:
            removed[failed] += 1
    return raw, kept, removed


@st.composite
def spaces(draw: st.DrawFn) -> Space:
    count = draw(st.integers(1, 5))
    iterators: dict[str, Any] = {}
    numbers: list[str] = []
    for name in NAMES[:count]:
        end = draw(st.sampled_from([*numbers, "3", "4", "7"]))
        kind = draw(st.integers(0, 4))
        if kind == 0:
            one = ranged(draw(st.sampled_from(["1", "2"])), end)
        elif kind == 1:
            one = ranged(end, "1", "-1")
        elif kind == 2:
            one = {"divisors": f"{end} + 1"}
        elif kind == 3 and numbers:
            step = draw(st.sampled_from(numbers))
            one = ranged(step, "6", step)
        else:
            listed = st.sampled_from([(4, 1, 3), (5,), ("x", "y"), (True, False)])
            one = draw(listed)
        iterators[name] = one
        if isinstance(one, dict) or type(one[0]) is int:
            numbers.append(name)
    condition = st.builds(
        lambda a, b, op, c: f"{a} * {b} {op} {c}",
        st.sampled_from([*numbers, "2"]),
        st.sampled_from([*numbers, "1"]),
        st.sampled_from(["<=", "!=", ">=", "%"]),
        st.sampled_from([*numbers, "3", "2"]),
    )
    conditions = draw(st.lists(condition, max_size=4))
    conditions = [c if "%" not in c else f"{c.split(' % ')[0]} % 3 != 1" for c in conditions]
    filters: dict[str, Any] = {f"f{at}": text for at, text in enumerate(conditions)}
    return Space(name="small", iterators=iterators, filters=filters)


@settings(max_examples=80, deadline=None)
@given(space=spaces(), chunk=st.sampled_from([4, 30, 1 << 17]), seed=st.integers(0, 9))
def test_a_space_is_what_a_loop_finds(space: Space, chunk: int, seed: int) -> None:
    raw, kept, removed = brute(space)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "CHUNK", chunk)
        bound = bind(space, {})
        count = bound.count()
        assert (count.raw, count.kept) == (raw, len(kept))
        assert {one.name: one.removed for one in count.filters} == {
            name: removed[name] for name in space.filters
        }
        points = list(bound.points())
        assert points == kept
        assert [list(map(type, p.values())) for p in points] == [
            list(map(type, p.values())) for p in kept
        ]
        if not kept:
            with pytest.raises(NoSolutionError):
                bound.sample(1, 0)
            return
        asked = min(len(kept), 4)
        sample = bound.sample(asked, seed)
        assert sample == bind(space, {}).sample(asked, seed)
        assert len({tuple(point.items()) for point in sample}) == asked
        assert all(point in kept for point in sample)
        every = bound.sample(len(kept) + 3, seed)
        assert sorted(map(repr, every)) == sorted(map(repr, kept))
        check_neighbours(bound, kept, sample[0])
        check_allowed(bound, space, kept)


def check_neighbours(bound: BoundSpace, kept: list[dict[str, Any]], point: dict[str, Any]) -> None:
    wanted = [own for own in kept if sum(own[name] != point[name] for name in own) == 1]
    found = bound.neighbours(point)
    assert sorted(map(repr, found)) == sorted(map(repr, wanted))
    distances = [distance(bound, point, own) for own in found]
    assert distances == sorted(distances)


def distance(bound: BoundSpace, point: dict[str, Any], other: dict[str, Any]) -> int:
    """Return how many values lie between two points along the iterator in which they differ."""
    at = next(n for n, name in enumerate(point) if point[name] != other[name])
    name = bound.names[at]
    values = values_of(bound.space.iterators[name], dict(list(point.items())[:at]))
    return abs(values.index(point[name]) - values.index(other[name]))


def check_allowed(bound: BoundSpace, space: Space, kept: list[dict[str, Any]]) -> None:
    for row in list(raw_points(space, {}))[:12]:
        reason = bound.allows(row)
        if row in kept:
            assert reason is None
        else:
            assert not met(str(space.filters[str(reason)]), row)


def plain_space(count: int, *conditions: str, last: int = 100) -> Space:
    return Space(
        name="plain",
        iterators={name: ranged("1", str(last)) for name in "abcdefgh"[:count]},
        filters={text: text for text in conditions},
    )


def test_a_space_of_more_points_than_64_bits_hold_is_counted_exactly() -> None:
    bound = bind(plain_space(8, "a <= b", "c * d != 7", last=1000), {})
    count = bound.count()
    assert count.raw == 1000**8
    assert count.filters[0].removed == (1000 * 999 // 2) * 1000**6
    assert count.filters[1].removed == (1000 * 1001 // 2) * 2 * 1000**4
    assert count.kept == (1000 * 1001 // 2) * (1000**2 - 2) * 1000**4
    sample = bound.sample(20, 3)
    assert all(bound.allows(point) is None for point in sample)
    assert len({tuple(point.values()) for point in sample}) == 20


def test_each_point_is_drawn_equally_often() -> None:
    bound = bind(plain_space(3, "a + b <= c", last=5), {})
    kept = list(bound.points())
    drawn = Counter(tuple(point.values()) for seed in range(600) for point in bound.sample(2, seed))
    assert len(drawn) == len(kept) == 20
    mean = 1200 / 20
    squares = sum((count - mean) ** 2 for count in drawn.values()) / mean
    assert squares < 43.8  # chi-squared of 19 degrees exceeds this once in a thousand


def test_two_parts_that_share_no_name_multiply() -> None:
    first = "a * b <= 40"
    second = "c * d % 3 == 0"
    both = bind(plain_space(4, first, second, last=60), {}).count()
    alone = bind(plain_space(2, first, last=60), {}).count()
    assert both.filters[0].removed == alone.filters[0].removed * 60**2
    assert both.kept == alone.kept * (60**2 - 40**2)


def test_constants_may_decide_alone() -> None:
    space = Space(
        name="none",
        iterators={"a": ranged("1", "9")},
        constants={"most": "card.sm_count - 1"},
        filters={"large cards": "most >= 100"},
    )
    assert bind(space, {"card.sm_count": 132}).count().kept == 9
    with pytest.raises(NoSolutionError, match='"large cards" removes the last 9 of 9'):
        bind(space, {"card.sm_count": 80}).require_points()


def test_the_filter_that_removes_the_last_points_is_named() -> None:
    bound = bind(plain_space(2, "a * b > 3", "a > 9", last=5), {})
    with pytest.raises(NoSolutionError) as raised:
        bound.require_points()
    assert raised.value.code == "EATSS-S016"
    assert '"a * b > 3" removes' not in str(raised.value)
    assert '"a > 9" removes the last 25 of 25' in str(raised.value)


def test_an_iterator_without_values_is_named() -> None:
    space = Space(
        name="none",
        iterators={"a": ranged("1", "9"), "b": ranged("a + 1", "1")},
    )
    with pytest.raises(NoSolutionError, match="b has no values"):
        bind(space, {}).require_points()


def test_a_step_of_0_and_a_division_tell_where() -> None:
    for one, words in (
        (ranged("1", "9", "a - 2"), "a step of 0"),
        (ranged("1", "9 // (a - 3)"), "division by zero at a = 3"),
        ({"powers": ("a", 1, 9)}, "powers of 1"),
    ):
        space = Space(name="wrong", iterators={"a": ranged("1", "4"), "b": one})
        with refusing("EATSS-S011", words):
            bind(space, {}).count()


def test_what_is_no_point_is_told() -> None:
    bound = bind(plain_space(2, "a <= b", last=5), {})
    assert bound.allows({"a": 1}) == "it differs in b from a point, which has a, b"
    assert bound.allows({"a": 1, "b": 2, "z": 3}) == "it differs in z from a point, which has a, b"
    assert bound.allows({"a": 1, "b": 9}) == "b = 9 is not among its values"
    assert bound.allows({"a": True, "b": 2}) == "a = True is not among its values"
    assert bound.allows({"a": 3, "b": 2}) == "a <= b"
    with refusing("EATSS-S018"):
        bound.neighbours({"a": 3})
    with pytest.raises(InputError, match="a sample of 0"):
        bound.sample(0, 1)


def test_decisions_are_the_variant_and_iterators_called_like_them() -> None:
    space = Space(
        name="gemm",
        iterators={
            "m": (16, 32),
            "tile_k": (4, 8),
            "k0.threads_i": (8,),
            "split": ("auto", 0.5),
            "layout": ("row", "column"),
        },
        constants={"twice": 2},
        variant={"tile_i": "m * twice", "model": "'paper'"},
    )
    bound = bind(space, {"N": 4000, "card.sm_count": 132})
    assert bound.decisions(next(bound.points())) == {
        "tile_i": 32,
        "tile_k": 4,
        "k0.threads_i": 8,
        "split": "auto",
        "model": "paper",
    }


def test_points_have_the_numbers_of_their_order() -> None:
    filters: dict[str, Any] = {"few": "a * b <= 6", "even": "c % 2 == 0"}
    iterators = {"a": ranged("1", "4"), "b": ranged("1", "4"), "c": ranged("1", "4")}
    bound = bind(Space(name="two parts", iterators=iterators, filters=filters), {})
    every = [*bound.points()]
    ranks = [*reversed(range(len(every)))]
    assert bound.walk.at(ranks) == every[::-1]


def test_what_no_filter_names_is_counted_without_walking() -> None:
    iterators = {"a": ranged("1", "9"), "b": ranged("a", "999"), "c": ranged("b", str(10**12))}
    bound = bind(Space(name="nested", iterators=iterators, filters={"odd": "a % 2 == 1"}), {})
    assert bound.count().kept == sum(
        10**12 + 1 - b for a in range(1, 10, 2) for b in range(a, 1000)
    )
