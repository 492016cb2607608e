"""Findings that stop nothing, as warnings of Python at the line that called eatss.

import warnings
warnings.filterwarnings("error", category=eatss.EatssWarning)
warnings.filterwarnings("ignore", message=".*EATSS-F095", category=eatss.EatssWarning)
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, TypeAlias

from eatss.base.diagnostics import Diagnostic

_OWN = str(Path(__file__).parents[1]) + os.sep


class EatssWarning(UserWarning):
    """Something about the input that eatss accepts, and that is hardly meant so.

    ``str(warning)`` is what the command line prints. ``diagnostic`` is the finding.
    """

    def __init__(self, diagnostic: Diagnostic) -> None:
        self.diagnostic = diagnostic
        super().__init__(diagnostic)

    def __str__(self) -> str:
        return self.diagnostic.text()

    @property
    def code(self) -> str:
        """The stable code, ``"EATSS-F095"``."""
        return self.diagnostic.code


Warned: TypeAlias = Callable[[Sequence[Diagnostic]], None]
"""Is told of findings that stop nothing."""


def warn_caller(findings: Sequence[Diagnostic]) -> None:
    """Warn of findings, at the line outside of eatss from which it was called."""
    for finding in findings:
        warnings.warn(EatssWarning(finding), stacklevel=1 + _frames_of_eatss())


def _frames_of_eatss() -> int:
    """Return how many calls there are from the user's code to whoever calls this."""
    frame, count = sys._getframe(1), 0
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OWN):
        frame, count = frame.f_back, count + 1
    return count


class Told(Protocol):
    """Is told what is done now, and how much of how many is done, where that is known."""

    def __call__(self, what: str, done: float = 0, total: float | None = None) -> None:
        """Take note; it must be quick."""
        ...


def nobody(what: str, done: float = 0, total: float | None = None) -> None:
    """Is told, and does nothing."""
