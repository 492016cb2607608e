"""The sizes a program is measured at."""

from __future__ import annotations

from collections.abc import Mapping

from eatss.diagnostics import input_error
from eatss.program import Program


def complete_sizes(program: Program, given: Mapping[str, int]) -> dict[str, int]:
    """Return values of all parameters, the defaults where none is given.

    Raises:
        InputError: ``EATSS-E072`` there is no such size, ``EATSS-E073`` one has no value.
    """
    names = [parameter.name for parameter in program.parameters]
    for name in given:
        if name not in names:
            raise input_error(
                "EATSS-E072",
                f"'{program.name}' has no size '{name}'",
                hint=f"its sizes are {', '.join(names)}"
                if names
                else "all its sizes are fixed; generate it without -D for them",
            )
    values: dict[str, int] = {}
    for parameter in program.parameters:
        value = given.get(parameter.name, parameter.default)
        if value is None:
            raise input_error(
                "EATSS-E073",
                f"size '{parameter.name}' of '{program.name}' has no value",
                hint=f"give it, like --size {parameter.name}=1000",
            )
        values[parameter.name] = value
    return values
