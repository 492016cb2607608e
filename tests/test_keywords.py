"""Keywords that functions share: declared once, shown, checked and documented everywhere."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, fields
from typing import Any, TypedDict, Unpack

import pytest

import eatss
from eatss.frontend.options import PpcgReadingKeywords, Reading
from eatss.keywords import changed, keywords_of, taken
from eatss.model.options import SelectKeywords, SelectOptions
from eatss.recipe.requests import CodeKeywords, CodeRequest


@dataclass(frozen=True)
class Dish:
    """A dish.

    Attributes:
        salt: Grams of it,
            in all.
        side: What comes with it.
    """

    salt: int = 1
    side: tuple[str, ...] = ()


class DishKeywords(TypedDict, total=False):
    salt: int
    side: tuple[str, ...]


@keywords_of(DishKeywords, Dish)
def cook(name: str, *, hot: bool = True, **dish: Unpack[DishKeywords]) -> tuple[str, bool, Dish]:
    """Cook.

    Args:
        name: What it is called.
        **dish: Those of :class:`Dish`.

    Raises:
        ValueError: never.
    """
    return name, hot, taken(Dish, dish)


def test_a_signature_spells_shared_keywords_out() -> None:
    assert str(inspect.signature(cook)) == (
        "(name: 'str', *, hot: 'bool' = True, salt: 'int' = 1, side: 'tuple[str, ...]' = ())"
        " -> 'tuple[str, bool, Dish]'"
    )
    assert cook("soup", salt=3) == ("soup", True, Dish(salt=3))


def test_documentation_describes_them_where_they_stand() -> None:
    said = inspect.getdoc(cook) or ""
    assert "name: What it is called.\n    salt: Grams of it,\n        in all.\n    side:" in said
    assert said.endswith("ValueError: never.")


def test_a_keyword_that_is_none_is_refused_by_name() -> None:
    wrong: Any = {"pepper": 1}
    with pytest.raises(TypeError, match=r"cook\(\) got an unexpected keyword argument 'pepper'"):
        cook("soup", **wrong)


def test_what_was_chosen_is_what_is_not_as_by_default() -> None:
    assert changed(Dish()) == ()
    assert changed(Dish(salt=0, side=("rice",))) == ("salt", "side")
    assert changed(Dish(salt=0, side=("rice",)), but=("side",)) == ("salt",)
    assert changed(SelectOptions(split=0.0)) == ("split",)
    assert changed(CodeRequest(tiles={})) == ()


@pytest.mark.parametrize(
    ("keywords", "noun", "others"),
    [
        (PpcgReadingKeywords, Reading, {"schedule"}),
        (SelectKeywords, SelectOptions, {"target"}),
        (CodeKeywords, CodeRequest, {"shared_limit_bytes"}),
    ],
)
def test_keywords_are_the_fields_of_their_noun(
    keywords: type, noun: type, others: set[str]
) -> None:
    own = {field.name for field in fields(noun)} - others
    assert keywords.__annotations__.keys() == own


@pytest.mark.parametrize("function", [eatss.select, eatss.predict, eatss.inspect, eatss.codegen])
def test_the_help_of_a_function_describes_every_argument(function: Any) -> None:
    said = inspect.getdoc(function) or ""
    for name in inspect.signature(function).parameters:
        assert f"\n    {name}: " in said
