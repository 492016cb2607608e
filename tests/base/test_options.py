"""Options and keywords: declared once, shown, checked and documented everywhere."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest

import eatss
from eatss.base.options import Asked, Keywords, Option, argument, changed, option, spelled_out
from eatss.choose.options import SelectOptions
from eatss.cli.declared import COMMANDS, Command, Given, Group, parameters_of
from eatss.cli.typer_app import app
from eatss.cli.words import understood
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


@pytest.mark.parametrize("function", [eatss.select, eatss.predict, eatss.inspect, eatss.codegen])
def test_the_help_of_a_function_describes_every_argument(function: Any) -> None:
    said = inspect.getdoc(function) or ""
    for name in inspect.signature(function).parameters:
        assert f"\n    {name}: " in said


# -- the command line --------------------------------------------------------------------


def seasoning(*, hot: Annotated[bool, option("--hot/--cold")] = True) -> str:
    return "hot" if hot else "cold"


def cooked(
    *,
    name: Annotated[str, argument(help="What it is called.")],
    taste: Annotated[str, Group(make=seasoning)],
    dish: Asked[Dish],
    pan: Annotated[Path | None, option("--pan -p")] = None,
    size: Literal["small", "large"] = "small",
) -> None:
    SERVED.append(f"{name} {taste} {dish.made()} {pan} {size}")


SERVED: list[str] = []


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> Command:
    found = Command(path=("cook",), home="declared")
    monkeypatch.setattr(Command, "load", lambda self: cooked)
    monkeypatch.setattr("eatss.cli.words.COMMANDS", {("cook",): found})
    return found


def test_a_command_has_the_options_of_its_groups_and_nouns_where_they_stand() -> None:
    found = {one.name: one for one in parameters_of(cooked)}
    assert list(found) == ["name", "hot", "salt", "side", "pan", "size"]
    assert found["salt"].option == Option(min=0, help="Grams of it.")
    assert found["salt"].words == ("--salt",)


def test_a_group_and_a_noun_are_made_of_what_is_typed(command: Command) -> None:
    words = ["cook", "soup", "--cold", "--salt=3", "--side", "rice", "--side", "peas", "-pwok"]
    read = understood([*words, "--size", "large"])
    assert read is not None
    SERVED.clear()
    read[0].run(read[1])
    assert SERVED == ["soup cold Dish(salt=3, side=('rice', 'peas')) wok large"]
    assert read[1].typed_options == ("--hot", "--salt", "--side", "--pan", "-p", "--size")


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
        ["cook", "soup", "--help"],
        ["bake"],
    ],
    ids=" ".join,
)
def test_what_is_not_plainly_right_is_left_to_typer(command: Command, words: list[str]) -> None:
    assert understood(words) is None


def test_words_after_two_dashes_are_arguments(command: Command) -> None:
    read = understood(["cook", "--", "--salt"])
    assert read is not None
    assert read[1].values["name"] == "--salt"


@pytest.mark.parametrize(
    "words",
    [
        "select @gemm -gh200 -D NI=40 -DNJ=50 --param n=3 --explain --split 0.5 --dtype=half",
        "codegen kernels/gemm.c --gpu a100 -o out --tile i=32 --tile j=8 --no-cache -f json",
        "predict @mvt --gpu h200 --target cuda --unroll-gpu-tile --max-shared-memory 4096",
        "measure build/a build/b --size N=4,M=5 --window 0.5 --target 2% --force -q",
        "compare @gemm --tiles selected --tiles 32,32 --require energy<=1 --format csv",
        "meter --gpus 0,1 --repeat 3 --cpu --idle 0 -- ./program --quiet 5",
        "ppcg -g h200 --no-select -- gemm.c -o build -DN=5",
        "sweep @gemm --devices 0,1 --budget 30m -o a.db --counters 3 --seed 7",
        "results show a.db 1f0c --by time --top 3 --where status=ok --every",
        "verify build/a --device cpu --seed 3 --timeout 1.5 --diagnostics json --debug",
        "characterize --only stride --only launch --record a.jsonl --fresh",
        "roofline h200 --program a --program b.json --dtype float",
        "cache clear --kind cubin",
    ],
)
def test_words_are_read_as_typer_reads_them(words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is read without Typer has the values, and their origin, that Typer finds."""
    found: list[Given] = []
    monkeypatch.setattr(Command, "run", lambda self, given: found.append(given))
    read = understood(words.split())
    assert read is not None
    app(words.split(), standalone_mode=False)
    (other,) = found
    own = read[1]
    assert own.command == other.command
    assert own.values == other.values
    known = {name: source for name, source in other.sources.items() if source != "default"}
    assert own.sources == known


def test_every_command_is_where_it_is_said_to_be() -> None:
    for one in COMMANDS.values():
        names = [parameter.name for parameter in one.parameters()]
        assert names[-2:] == ["quiet", "verbose"]
        assert "Examples:" in one.examples
