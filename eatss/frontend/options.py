"""What the front end is asked, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass

from eatss.diagnostics import Diagnostic
from eatss.scop import Scop


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontendOptions:
    """Options of one run.

    ``include_dirs`` and ``defines`` (``"NAME=VALUE"`` or ``"NAME"``) are those of a C
    compiler. ``function`` restricts the run to the regions of one function, ``scop`` to
    one region (counted from 0 over the whole file). ``parameter_values`` fixes
    parameters in the context.
    """

    include_dirs: tuple[str, ...] = ()
    defines: tuple[str, ...] = ()
    function: str | None = None
    scop: int | None = None
    parameter_values: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontendResult:
    """The regions of a file in source order, and warnings about them."""

    scops: tuple[Scop, ...]
    warnings: tuple[Diagnostic, ...]
