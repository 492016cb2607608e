"""What completion and ``help`` tell: names, fields with their units, keywords."""

from __future__ import annotations

import inspect
import pydoc
import subprocess
import sys
from dataclasses import fields, is_dataclass
from importlib import import_module
from types import FunctionType
from typing import Any

import pytest

import eatss
from eatss.choose.expectation import ProgramExpectation
from eatss.measurement.energy_measurement import CardEnergy
from eatss.measurement.meters.meter import PowerSample
from eatss.verify.result import Verification
from tests.base.test_shown import selected

PUBLIC = {name: getattr(eatss, name) for name in eatss.__all__}
NOUNS = [
    *(one for one in PUBLIC.values() if isinstance(one, type) and is_dataclass(one)),
    ProgramExpectation, Verification, CardEnergy, PowerSample,
]  # fmt: skip
LAZY = ("analysis", "choose", "frontend", "measurement", "polyhedral", "verify")


def described(noun: type) -> str:
    """Return what ``help`` says of a noun and of those it extends."""
    return "\n".join(inspect.getdoc(one) or "" for one in noun.__mro__ if one is not object)


@pytest.mark.parametrize("noun", NOUNS, ids=lambda noun: noun.__name__)
def test_help_tells_of_every_field(noun: Any) -> None:
    text = described(noun)
    untold = [one.name for one in fields(noun) if f"    {one.name}: " not in text]
    assert untold == []


@pytest.mark.parametrize("noun", NOUNS, ids=lambda noun: noun.__name__)
def test_help_tells_of_no_field_that_is_not_there(noun: Any) -> None:
    lines = described(noun).partition("Attributes:\n")[2].partition("\n\n")[0].splitlines()
    told = [
        line.strip().partition(":")[0] for line in lines if line[:4] == "    " and line[4] != " "
    ]
    assert set(told) <= {one.name for one in fields(noun)}


@pytest.mark.parametrize(
    "function", [one for one in PUBLIC.values() if isinstance(one, FunctionType)],
    ids=lambda function: function.__name__,
)  # fmt: skip
def test_every_keyword_is_spelled_out_and_described(function: Any) -> None:
    signature = inspect.signature(function)
    text = inspect.getdoc(function) or ""
    for parameter in signature.parameters.values():
        assert parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
        assert f"    {parameter.name}: " in text, parameter.name


@pytest.mark.parametrize(
    "made", [one for one in PUBLIC.values() if callable(one)], ids=lambda made: made.__name__
)
def test_signatures_show_nothing_of_the_command_line(made: Any) -> None:
    whole = made, getattr(made, "__init__") if isinstance(made, type) else made  # noqa: B009
    for signature in map(inspect.signature, whole):
        assert "ption(" not in str(signature)


def test_a_program_and_a_callable_tell_their_arguments() -> None:
    assert list(inspect.signature(eatss.Program.compile).parameters) == [
        "self", "cache",
    ]  # fmt: skip
    assert "maker" in inspect.signature(eatss.JitFunction).parameters
    missing = eatss.jit("no-such-file.c")
    assert str(inspect.signature(missing)) == "(*arguments: 'Any', **values: 'Any') -> 'None'"
    assert pydoc.render_doc(missing)


def test_names_are_listed_before_they_are_loaded() -> None:
    """In a process of its own, where nothing is loaded yet."""
    script = f"""
from importlib import import_module
for name in {LAZY}:
    package = import_module(f"eatss.{{name}}")
    print(set(package.__all__) - set(dir(package)))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["set()"] * len(LAZY)
    for name in LAZY:
        package = import_module(f"eatss.{name}")
        assert all(hasattr(package, one) for one in dir(package))


def test_results_complete_to_fields_and_tables() -> None:
    assert {"kernels", "ppcg_arguments", "to_rows"} <= set(dir(selected()))


def test_all_public_names_are_in_alphabetical_reach() -> None:
    assert dir(eatss) == sorted(eatss.__all__)
