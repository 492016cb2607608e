"""Different parts have different keys, equal ones the same, in every process."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eatss.base.cache import canonical, key_of, versions
from tests.examples import examples


class Colour(Enum):
    RED = "red"
    BLUE = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Noun:
    name: object
    size: object = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Other:
    name: object
    size: object = 1


LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(st.characters()),
    st.binary(max_size=8),
    st.sampled_from(Colour),
    st.sampled_from(["null", "list", "noun", "mapping", "set", "float", "\ud800\udc00", "𐀀"]),
    st.sampled_from([Path("a"), Path("b")]),
)
PARTS = st.recursive(
    LEAVES,
    lambda part: st.one_of(
        st.lists(part, max_size=4).map(tuple),
        st.dictionaries(st.text(max_size=3) | st.integers(), part, max_size=3),
        st.builds(Noun, name=part, size=part),
        st.builds(Other, name=part),
        st.frozensets(LEAVES, max_size=3),
    ),
    max_leaves=8,
)


def same(one: object, other: object) -> bool:
    """Tell whether two parts are equal and of the same types, at all depths."""
    if type(one) is not type(other):
        return False
    if isinstance(one, float) and isinstance(other, float):
        return one.hex() == other.hex()
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return len(one) == len(other) and all(
            any(same(key, k) and same(value, v) for k, v in other.items())
            for key, value in one.items()
        )
    if isinstance(one, frozenset) and isinstance(other, frozenset):
        return len(one) == len(other) and all(any(same(a, b) for b in other) for a in one)
    if isinstance(one, Noun | Other) and isinstance(other, Noun | Other):
        return same(one.name, other.name) and same(one.size, other.size)
    return one == other


@settings(max_examples=examples(15))
@given(PARTS, PARTS)
def test_two_parts_have_one_text_only_if_they_are_the_same(one: object, other: object) -> None:
    assert (canonical(one) == canonical(other)) == same(one, other)
    assert canonical(one) == canonical(one)


@given(st.lists(PARTS, max_size=3), st.lists(PARTS, max_size=3))
def test_parts_are_told_apart_from_their_neighbours(one: list[object], other: list[object]) -> None:
    assert (key_of(*one) == key_of(*other)) == same(tuple(one), tuple(other))


def test_what_looks_alike_differs() -> None:
    alike: list[tuple[object, ...]] = [
        (1,), (1.0,), (True,), ("1",), (b"1",), ((1,),), (1, 1), (11,), ("1", ""), ("", "1"),
        ((), (1,)), ({"1": 1},), ({1: 1},), (frozenset({1}),), (0.0,), (-0.0,), (None,), ("null",),
        (["list", 1],), (["float", "0x0.0p+0"],), (Colour.BLUE,), (Path("1"),),
    ]  # fmt: skip
    assert len({key_of(*parts) for parts in alike}) == len(alike)


def test_a_list_is_a_tuple_and_the_order_of_a_mapping_does_not_count() -> None:
    assert key_of([1, [2]]) == key_of((1, (2,)))
    assert key_of({"a": 1, "b": 2}) == key_of({"b": 2, "a": 1})


def test_what_is_no_value_is_no_part() -> None:
    for part in (object(), len, iter(()), Noun):
        with pytest.raises(TypeError, match="no part of a key"):
            key_of(part)


CHECK = """
import sys, time
from eatss.base.cache import versions, key_of, default_cache
start = time.perf_counter()
found = versions()
took_s = time.perf_counter() - start
default_cache()
heavy = {"islpy", "z3", "clang", "numpy", "networkx", "pydantic", "rich"} & set(sys.modules)
assert not heavy, heavy
print(key_of(found), took_s)
"""


def test_versions_are_the_same_in_every_process_and_import_nothing(tmp_path: Path) -> None:
    names = [name for name, _ in versions()]
    assert names == ["eatss", "python", "islpy", "z3-solver", "libclang", "networkx", "numpy"]
    said = subprocess.run(
        [sys.executable, "-c", CHECK], capture_output=True, text=True, check=True, cwd=tmp_path
    ).stdout.split()
    assert said[0] == key_of(versions())
    assert float(said[1]) < 1.0
