"""Tests of cards that need what a machine for measuring does not have are skipped there."""

from __future__ import annotations

import importlib.util

import pytest

from eatss.base.diagnostics import input_error
from tests.conftest import missing_of_selecting


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    raised = ModuleNotFoundError("No module named 'islpy'", name="islpy")
    told = input_error("EATSS-C030", "this needs z3-solver, islpy, not installed here", hint="")
    caused = RuntimeError("it failed")
    caused.__cause__ = raised
    assert {missing_of_selecting(one) for one in (raised, caused)} == {"islpy"}
    assert missing_of_selecting(told) in ("islpy", "z3")
    assert missing_of_selecting(ModuleNotFoundError("No module named 'own'", name="own")) is None
    assert missing_of_selecting(AssertionError("islpy")) is None


def test_what_is_installed_and_fails_is_a_failure() -> None:
    assert missing_of_selecting(ModuleNotFoundError("", name="pytest")) is None
    assert missing_of_selecting(ModuleNotFoundError("", name="numpy")) is None
