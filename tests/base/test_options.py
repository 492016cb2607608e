"""Options and keywords: declared once, shown, checked and documented everywhere."""

from __future__ import annotations

import inspect
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any, Literal

import pytest

from eatss.base.diagnostics import InputError
from eatss.base.options import Asked, Keywords, argument, changed, option, spelled_out
from eatss.choose.options import SelectOptions
from eatss.cli.app import COMMANDS, Command, run, typed
from eatss.lower.recipe import CodeRequest


@dataclass(frozen=True, kw_only=True)
class Dish:
    """A dish.

    Attributes:
        salt: Grams of it,
            in all.
        side: What comes with it.
    """

    salt: Annotated[int, option(min=0, help="Grams of it.")] = 1
    side: Annotated[tuple[str, ...], option(kind=list[str] | None, made=tuple)] = ()


@dataclass(frozen=True, kw_only=True)
class Cooking(Keywords, Dish):
    name: str = field(kw_only=False)
    hot: bool = True


@spelled_out(Cooking, Dish)
def cook(asked: Cooking) -> tuple[str, bool, Dish]:
    """Cook.

    Args:
        name: What it is called.
        hot: Whether it is.
        **options: Those of :class:`Dish`.

    Raises:
        ValueError: never.
    """
    return asked.name, asked.hot, asked.of(Dish)


def test_a_signature_spells_shared_keywords_out() -> None:
    assert str(inspect.signature(cook)) == (
        "(name: 'str', *, hot: 'bool' = True, salt: 'int' = 1, side: 'tuple[str, ...]' = ())"
        " -> 'tuple[str, bool, Dish]'"
    )
    assert cook("soup", salt=3) == ("soup", True, Dish(salt=3))
    assert cook(name="soup", hot=False) == ("soup", False, Dish())


def test_documentation_describes_them_where_they_stand() -> None:
    said = inspect.getdoc(cook) or ""
    assert "hot: Whether it is.\n    salt: Grams of it,\n        in all.\n    side:" in said
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


# -- the command line --------------------------------------------------------------------


def cooked(
    *,
    name: Annotated[str, argument(help="What it is called.")],
    hot: Annotated[bool, option("--hot/--cold")] = True,
    dish: Asked[Dish],
    pan: Annotated[Path | None, option("--pan -p")] = None,
    size: Literal["small", "large"] = "small",
) -> None:
    SERVED.append(f"{name} {hot} {dish.made()} {pan} {size}")
    SERVED.append(typed("name", "hot", "salt", "side", "pan", "size"))


SERVED: list[Any] = []


@pytest.fixture
def cook_command(monkeypatch: pytest.MonkeyPatch) -> None:
    module = SimpleNamespace(cook=cooked, EXAMPLES={"cook": ""})
    monkeypatch.setitem(sys.modules, "eatss.cli.cook", module)
    monkeypatch.setattr("eatss.cli.app.COMMANDS", {"cook": "Cards"})
    SERVED.clear()


@pytest.mark.usefixtures("cook_command")
def test_a_command_has_the_options_of_its_nouns_where_they_stand() -> None:
    names = [one.name for one in Command("cook").params]
    assert names == ["name", "hot", "salt", "side", "pan", "size", "debug", "quiet", "verbose"]


@pytest.mark.usefixtures("cook_command")
def test_a_noun_is_made_of_what_is_typed() -> None:
    words = ["cook", "soup", "--cold", "--salt=3", "--side", "rice", "--side", "peas", "-pwok"]
    run([*words, "--size", "large"])
    assert SERVED == [
        "soup False Dish(salt=3, side=('rice', 'peas')) wok large",
        ["name", "--hot", "--salt", "--side", "--pan", "--size"],
    ]
    run(["cook", "--", "--salt"])
    assert SERVED[2:] == ["--salt True Dish(salt=1, side=()) None small", ["name"]]


@pytest.mark.usefixtures("cook_command")
@pytest.mark.parametrize(
    "words",
    [
        ["cook"],
        ["cook", "soup", "more"],
        ["cook", "soup", "--salt", "-1"],
        ["cook", "soup", "--salt", "x"],
        ["cook", "soup", "--salt"],
        ["cook", "soup", "--size", "huge"],
        ["cook", "soup", "--pepper"],
        ["cook", "soup", "--hot=yes"],
        ["bake"],
    ],
    ids=" ".join,
)
def test_a_command_line_that_is_wrong_is_a_finding(words: list[str]) -> None:
    with pytest.raises(InputError, match="EATSS-C004"):
        run(words)


def test_every_command_is_where_it_is_said_to_be() -> None:
    for name in COMMANDS:
        assert "Examples:" in (Command(name).epilog or "")
