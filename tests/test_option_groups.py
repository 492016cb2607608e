"""Groups of options: a command has those of its groups, and gets what they make of them."""

from __future__ import annotations

import inspect
from typing import Annotated

import typer
from typer.testing import CliRunner

from eatss.cli.option_groups import takes

Salt = Annotated[int, typer.Option(help="Grams of it.")]


def seasoning(*, salt: Salt = 1) -> str:
    return "salty" if salt > 1 else "mild"


@takes(taste=seasoning)
def recipe(*, taste: str, sides: Annotated[list[str] | None, typer.Option("--side")] = None) -> str:
    return " ".join([taste, *(sides or ())])


@takes(dish=recipe)
def cook(*, name: Annotated[str, typer.Argument()], dish: Unknown, loud: bool = False) -> None:  # type: ignore[name-defined]  # noqa: F821 - as where it is imported for types alone
    text = f"{name}: {dish}"
    typer.echo(text.upper() if loud else text)


def test_options_stand_where_the_group_does() -> None:
    assert list(inspect.signature(cook).parameters) == ["name", "salt", "sides", "loud"]


def test_a_group_makes_one_value_of_its_options_and_of_other_groups() -> None:
    app = typer.Typer()
    app.command()(cook)
    done = CliRunner().invoke(app, ["soup", "--salt", "3", "--side", "rice", "--loud"])
    assert done.output == "SOUP: SALTY RICE\n"
    assert CliRunner().invoke(app, ["soup"]).output == "soup: mild\n"
    assert "Grams of it." in CliRunner().invoke(app, ["--help"]).output
