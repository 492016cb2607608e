"""Nouns are dataclasses that never change, whatever is inherited, left out of comparison or made.

Each is declared as :mod:`dataclasses` does, too, which says what is right.
"""

from __future__ import annotations

import copy
import inspect
import pickle
from dataclasses import FrozenInstanceError, asdict, dataclass, field, fields, replace
from typing import Any

import pytest

from eatss.base.frozen import fixed, frozen


@frozen
class Tile:
    rows: int
    columns: int = 32
    names: list[str] = field(default_factory=list)
    note: str = field(default="", compare=False, repr=False)
    extra: dict[str, int] | None = field(default=None, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "note", self.note or "none")


@dataclass(frozen=True, kw_only=True)
class UsualTile:
    rows: int
    columns: int = 32
    names: list[str] = field(default_factory=list)
    note: str = field(default="", compare=False, repr=False)
    extra: dict[str, int] | None = field(default=None, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "note", self.note or "none")


@fixed
class Point:
    x: float


@fixed
class Named(Point):
    name: str = "origin"

    def __hash__(self) -> int:
        return 7


def test_a_noun_is_what_a_dataclass_is() -> None:
    for how in ({"rows": 4}, {"rows": 4, "columns": 2, "note": "n", "names": ["a"]}):
        ours: Any = Tile(**how)
        usual: Any = UsualTile(**how)
        assert repr(ours) == repr(usual).replace("UsualTile", "Tile")
        assert asdict(ours) == asdict(usual)
        assert str(inspect.signature(Tile)).split(" ->")[0].count("=") == 4
        assert Tile.__init__.__annotations__ == UsualTile.__init__.__annotations__
        with pytest.raises(TypeError):
            hash(ours)  # for its list
    assert Tile(rows=1, note="a") == Tile(rows=1, note="b") != Tile(rows=2, note="a")
    other: Any = UsualTile(rows=1)
    assert Tile(rows=1) != other
    assert Tile(rows=1).names is not Tile(rows=1).names
    assert replace(Tile(rows=2), columns=8) == Tile(rows=2, columns=8)
    with pytest.raises(TypeError, match=r"Tile.__init__\(\) takes 1"):
        Tile(4)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Tile()  # type: ignore[call-arg]


def test_fields_in_order_are_inherited_and_own_methods_kept() -> None:
    nan = float("nan")
    assert Point(nan) == Point(nan)  # one object, as in a tuple
    assert hash(Point(2.0)) == hash((2.0,))
    assert Named(1.0) == Named(1.0, "origin") != Point(1.0)
    assert hash(Named(1.0)) == 7
    assert [own.name for own in fields(Named)] == ["x", "name"]
    assert Named.__match_args__ == ("x", "name")


def test_nothing_changes_it_and_copies_are_equal() -> None:
    for one in (Tile(rows=3, extra={"a": 1}), Named(2.0, "there")):
        name = fields(one)[0].name
        with pytest.raises(FrozenInstanceError):
            setattr(one, name, 1)
        with pytest.raises(FrozenInstanceError):
            delattr(one, name)
        assert not hasattr(one, "__dict__")
        assert pickle.loads(pickle.dumps(one)) == copy.deepcopy(one) == copy.copy(one) == one
