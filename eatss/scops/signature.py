"""What the C program around a region declares: parameters of the function, and who owns what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from eatss.scops.array import ElementType

ParameterOrigin: TypeAlias = Literal["parameter", "member", "global", "static", "local", "macro"]
"""As :data:`~eatss.scops.array.Origin`; ``macro`` is a size that ``-D`` may set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionParameter:
    """A parameter of the function a region stands in.

    ``c_type`` is its type in C, macros and typedefs expanded (``double[4000][4000]``,
    ``const float *``, ``int``). ``is_pointer`` holds for arrays and pointers, not for scalars
    passed by value. ``position`` counts from 0. ``element_type`` is the arithmetic type of the
    value or of the elements, ``None`` for what regions cannot use (structures, ``void *``).
    """

    name: str
    c_type: str
    is_pointer: bool
    position: int
    element_type: ElementType | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterDeclaration:
    """An integer parameter of a region: its name there, its name in C, type and origin."""

    name: str
    source_name: str
    element_type: ElementType
    origin: ParameterOrigin
