"""Lets a package and a function of the API share a name: ``eatss.codegen`` is both."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class _CallablePackage(ModuleType):
    """A package whose call is a call of the API function of its name."""

    _function: str
    _home: str

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Call the function; its arguments, result and errors are its own."""
        return getattr(import_module(self._home), self._function)(*arguments, **keywords)

    @property
    def __wrapped__(self) -> Any:
        """The function itself, where ``help`` and ``inspect.signature`` look for it."""
        return getattr(import_module(self._home), self._function)


def make_callable(package: str, function: str, *, home: str = "eatss.api") -> None:
    """Let a call of a package be a call of the function of the module ``home``.

    The import system binds a package's name in its parent when the package is first imported,
    which would hide a function of that name, depending on who imported what before.
    """
    module = sys.modules[package]
    module.__class__ = _CallablePackage
    module._function = function  # type: ignore[attr-defined]
    module._home = home  # type: ignore[attr-defined]
