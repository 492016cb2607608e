"""What ``import eatss`` costs and offers; what ``help`` tells: names, fields, keywords."""

from __future__ import annotations

import inspect
import pydoc
import re
import subprocess
import sys
from dataclasses import fields, is_dataclass
from importlib import import_module
from types import FunctionType
from typing import Any

import pytest

import eatss
from eatss.choose.expectation import ProgramExpectation
from eatss.measurement.energy_meter import CardEnergy
from eatss.measurement.meters.meter import PowerSample
from eatss.verify.result import Verification

HEAVY = ("z3", "islpy", "clang", "numpy", "networkx", "pydantic", "rich", "click")


def _modules_after(code: str) -> set[str]:
    script = f"{code}\nimport sys\nprint(' '.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return set(done.stdout.splitlines()[-1].split())


def test_importing_eatss_loads_no_solver_and_no_compiler() -> None:
    assert _modules_after("import eatss").isdisjoint(HEAVY)


def test_selecting_loads_neither_cupy_nor_nvml() -> None:
    code = """
import eatss
source = '''
void f(double a[100][100]) {
#pragma scop
  for (int i = 0; i < 100; i++)
    for (int j = 0; j < 100; j++)
      a[i][j] = 2 * a[i][j];
#pragma endscop
}
'''
assert eatss.select(source, gpu="h200").kernels
"""
    assert _modules_after(code).isdisjoint({"cupy", "pynvml"})


def test_every_public_name_exists_and_is_listed() -> None:
    assert all(getattr(eatss, name) is not None for name in eatss.__all__)
    assert dir(eatss) == sorted(eatss.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'selekt'"):
        eatss.selekt  # noqa: B018


PUBLIC = {name: getattr(eatss, name) for name in eatss.__all__}
NOUNS = [
    *(one for one in PUBLIC.values() if isinstance(one, type) and is_dataclass(one)),
    ProgramExpectation, Verification, CardEnergy, PowerSample,
]  # fmt: skip
LAZY = ("cards", "choose", "measurement")


def described(noun: type) -> str:
    """Return what ``help`` says of a noun and of those it extends."""
    return "\n".join(inspect.getdoc(one) or "" for one in noun.__mro__ if one is not object)


@pytest.mark.parametrize("noun", NOUNS, ids=lambda noun: noun.__name__)
def test_help_tells_of_every_field_and_of_no_other(noun: Any) -> None:
    names = {one.name for one in fields(noun)}
    text = described(noun)
    assert {name for name in names if f"    {name}: " not in text} == set()
    lines = text.partition("Attributes:\n")[2].partition("\n\n")[0].splitlines()
    told = {line.strip().partition(":")[0] for line in lines if re.match(" {4}[^ ]", line)}
    assert told <= names


@pytest.mark.parametrize(
    "function", [one for one in PUBLIC.values() if isinstance(one, FunctionType)],
    ids=lambda function: function.__name__,
)  # fmt: skip
def test_every_keyword_is_spelled_out_and_described(function: Any) -> None:
    signature = inspect.signature(function)
    text = inspect.getdoc(function) or ""
    for parameter in signature.parameters.values():
        assert parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
        assert f"\n    {parameter.name}: " in text, parameter.name


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
