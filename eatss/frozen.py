"""``@frozen``, which declares a noun: its fields are named where one is made, and never change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

_Noun = TypeVar("_Noun")


@dataclass_transform(frozen_default=True, kw_only_default=True)
def frozen(noun: type[_Noun]) -> type[_Noun]:
    """Return a class as a frozen dataclass with slots whose fields are keywords."""
    return dataclass(frozen=True, slots=True, kw_only=True)(noun)
