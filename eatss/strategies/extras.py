"""Packages that only some strategies need."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from eatss.diagnostics import input_error


def needed(module: str, strategy: str, install: str) -> ModuleType:
    """Return a module of a package that may not be installed; ``install`` is what pip is to.

    Raises:
        InputError: ``EATSS-T002``, it is not installed, or does not load.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise input_error(
            "EATSS-T002",
            f"the strategy '{strategy}' needs a package that does not load: {error}",
            hint=f"pip install '{install}'",
        ) from None
