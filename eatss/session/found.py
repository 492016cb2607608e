"""What was selected, generated or read, as it is kept for the next time."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from eatss.base.codec import decode, encode
from eatss.base.diagnostics import Diagnostic, EatssError
from eatss.base.frozen import frozen
from eatss.choose.selection import Selection
from eatss.program import Interface, Program

if TYPE_CHECKING:
    from eatss.choose.expectation import ProgramExpectation


@frozen
class FoundSelection:
    """A selection, and what was said of its source."""

    selection: Selection
    warnings: tuple[Diagnostic, ...]

    @classmethod
    def of(cls, selection: Selection, warnings: tuple[Diagnostic, ...]) -> FoundSelection:
        """Return a selection and what was said of its source, with what it says itself."""
        own = (one for one in selection.warnings if one not in warnings)
        return cls(selection=selection, warnings=(*warnings, *own))

    @property
    def lasting(self) -> bool:
        """Whether more time would not find better."""
        return self.selection.optimal == "proven"


@frozen
class FoundProgram:
    """A program, and what was said of its source.

    ``lasting`` tells whether more time would not find better sizes.
    """

    program: Program
    warnings: tuple[Diagnostic, ...]
    lasting: bool = True

    @classmethod
    def of(
        cls,
        program: Program,
        warnings: tuple[Diagnostic, ...],
        told: Selection | ProgramExpectation | None,
        *,
        lasting: bool,
    ) -> FoundProgram:
        """Return a program with what is expected of it, and what is said of that and its source."""
        if told is not None:
            program = replace(program, expected=told.expected)
            warnings += tuple(one for one in told.warnings if one not in warnings)
        return cls(program=program, warnings=warnings, lasting=lasting)


@frozen
class FoundInterface:
    """What callers of a program pass."""

    interface: Interface
    lasting: bool = True


_NOUNS: dict[str, Any] = {
    "select": FoundSelection,
    "codegen": FoundProgram,
    "interface": FoundInterface,
}


def found_bytes(found: FoundSelection | FoundProgram | FoundInterface) -> bytes:
    """Return a result as bytes."""
    plain = encode(found)
    if isinstance(found, FoundProgram):
        plain["program"]["text"] = found.program.text  # stands in a file of its own elsewhere
        plain["program"]["expected"] = encode(found.program.expected)
    return json.dumps(plain).encode("ascii")


def found_of(kind: str, data: bytes) -> FoundSelection | FoundProgram | FoundInterface | None:
    """Return a result that was bytes; ``None`` where they are none of it.

    Args:
        kind: what the cache calls such results.
        data: what :func:`found_bytes` made.
    """
    try:
        return cast("FoundSelection", decode(_NOUNS[kind], json.loads(data)))
    except (ValueError, TypeError, LookupError, RecursionError, EatssError):
        return None
