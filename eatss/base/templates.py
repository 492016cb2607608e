"""Templates of C and C++ in Jinja, with ``${ }`` around what is filled in."""

from __future__ import annotations

from functools import cache

from jinja2 import Environment, StrictUndefined, Template

_ENVIRONMENT = Environment(  # noqa: S701 - of C
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
    undefined=StrictUndefined,
    variable_start_string="${",
    variable_end_string="}",
)


@cache
def template(text: str) -> Template:
    """Return the template that a text is."""
    return _ENVIRONMENT.from_string(text)
