"""Variants are made and measured in threads; what fails in one is raised where it is waited for."""

from __future__ import annotations

from typing import NoReturn

import pytest

from eatss.base.diagnostics import InputError, input_error
from eatss.tune.processes import LocalLab


def no_workshop() -> NoReturn:
    raise input_error("EATSS-E046", "there is no card to make variants for")


def test_a_lab_that_cannot_make_anything_says_why() -> None:
    lab = LocalLab(no_workshop, 1, ())
    try:
        with pytest.raises(InputError, match="no card to make variants for"):
            lab.done(10.0)
    finally:
        lab.close()
