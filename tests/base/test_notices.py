"""What eatss warns of reaches who calls its functions, at the line of the call."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eatss
from eatss.base.cache import Cache
from eatss.base.diagnostics import Diagnostic, Severity, SourceSpan
from tests.end_to_end.in_process import eatss as command

SCRIPTED = "tests.end_to_end.scripted_for_any:AnyProgram"
MISSPELT: dict[str, Any] = {"defines": {"NI": 200, "MM": 3}}
READING = eatss.SourceOptions(gpu="h200", **MISSPELT)
ARRAYS = {"A": np.ones((9, 9)), **{name: np.ones(9) for name in ("x1", "x2", "y1", "y2")}}

CALLS: dict[str, Callable[[], object]] = {
    "select": lambda: eatss.select("@mvt", gpu="h200", **MISSPELT),
    "predict": lambda: eatss.predict("@mvt", gpu="h200", **MISSPELT),
    "inspect": lambda: eatss.inspect("@mvt", **MISSPELT),
    "codegen": lambda: eatss.codegen("@mvt", gpu="h200", **MISSPELT),
    "measure": lambda: eatss.measure("@mvt", reading=READING, card=SCRIPTED),
    "compare": lambda: eatss.compare("@mvt", reading=READING, card=SCRIPTED, tiles=("8", "16")),
    "jit": lambda: eatss.jit("@mvt", gpu="h200", defines={"MM": 3})(**ARRAYS),
}
"""Calls that read a kernel with a macro that it has not, each in a line of its own."""


def told(function: Callable[[], object]) -> list[warnings.WarningMessage]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        function()
    return [one for one in found if issubclass(one.category, eatss.EatssWarning)]


@pytest.mark.parametrize("name", [*CALLS][:2])
def test_functions_warn_at_the_line_of_the_caller(name: str) -> None:
    function = CALLS[name]
    (found,) = told(function)
    assert found.filename == __file__
    assert found.lineno == function.__code__.co_firstlineno
    assert isinstance(found.message, eatss.EatssWarning)
    assert found.message.code == "EATSS-F095"
    assert str(found.message) == found.message.diagnostic.text()
    assert "-D MM changes nothing" in str(found.message)


def test_what_is_kept_warns_each_time(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    for _ in range(2):
        assert len(told(lambda: eatss.select("@mvt", gpu="h200", cache=cache, **MISSPELT))) == 1
    assert list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["select", "predict", "codegen"])
def test_the_command_line_tells_it_once(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", eatss.EatssWarning)
        words = ("@mvt", "--gpu", "h200", "-D", "NI=200", "-D", "MM=3", "--format", "json")
        done = command(name, *words)
    assert done.returncode == 0
    assert done.stderr.count("EATSS-F095") == 1, done.stderr


FOUND = Diagnostic(
    code="EATSS-F095",
    message="-D N changes nothing",
    severity=Severity.WARNING,
    span=SourceSpan(file="k.c", line=1, column=9, end_line=1, end_column=10),
    source_line="#define N 256",
    hint="write #ifndef N before it",
)


def test_a_warning_goes_from_process_to_process() -> None:
    warning = eatss.EatssWarning(FOUND)
    again = pickle.loads(pickle.dumps(warning))
    assert again.diagnostic == FOUND
    assert str(again) == str(warning)
