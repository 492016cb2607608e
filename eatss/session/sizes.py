"""A source at other sizes than its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from eatss.frontend.options import Reading

if TYPE_CHECKING:
    from eatss.session.session import Session


def at_sizes(session: Session, sizes: Sequence[tuple[str, int]]) -> Reading:
    """Return how a source is read at some sizes: macros defined, parameters given."""
    reading = session.reading
    macros = dict(session.parsed_symbolic.values)
    given = {name: value for name, value in sizes if name not in macros}
    defines = [one for one in reading.frontend().defines if one.split("=")[0] not in macros]
    defines += [f"{name}={value}" for name, value in sizes if name in macros]
    return replace(
        reading,
        defines=tuple(defines),
        parameters={**given, **(reading.parameters or {})} or None,
    )
