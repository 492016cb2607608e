"""Commands whose ``--help`` has what is asked of most first, and flags without a type.

Whether a path can be read is left to who reads it.
"""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand, TyperGroup

_PANELS = ("Source", "Model", "Code", "PPCG", "Measuring", "Output")
"""Panels of options after those that have none; every command has ``Output``, so it comes last."""


class Command(TyperCommand):
    """A command with its options in the order of their panels."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters as they are shown."""
        return sorted(_shown(super().get_params(ctx)), key=_place)


class Group(TyperGroup):
    """A group of commands."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters as they are shown."""
        return _shown(super().get_params(ctx))


def _shown(parameters: list[Any]) -> list[Any]:
    for one in parameters:
        if getattr(one, "is_flag", False) and one.metavar is None:
            one.metavar = ""  # else it reads as if a word had to follow
        if one.param_type_name == "argument" and hasattr(one, "display_type_rich"):
            one.display_type_rich = _no_type  # <list[Path]> tells nobody anything
        for holder in (
            getattr(one, "type", None),
            getattr(getattr(one, "type_descriptor", None), "parameter_info", None),  # Typer 0.29
        ):
            if holder is not None and getattr(holder, "readable", False):
                holder.readable = False  # who reads it says why it cannot be, with a code
    return parameters


def _no_type(ctx: Any) -> str:
    del ctx
    return ""


def _place(parameter: Any) -> int:
    panel = getattr(parameter, "rich_help_panel", None)
    return _PANELS.index(panel) + 1 if panel in _PANELS else 0
