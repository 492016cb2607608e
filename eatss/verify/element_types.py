"""The element types of arguments: their names in NumPy, and their limits, without loading it."""

from __future__ import annotations

from collections.abc import Mapping

from eatss.base.diagnostics import input_error
from eatss.program import Argument, Temporary

_NAMES: Mapping[str, str] = {
    "_Float16": "f2",
    "float": "f4",
    "double": "f8",
    "_Bool": "?",
    "signed char": "i1",
    "char": "i1",
    "unsigned char": "u1",
    "short": "i2",
    "unsigned short": "u2",
    "int": "i4",
    "unsigned int": "u4",
    "unsigned": "u4",
    "long": "i8",
    "unsigned long": "u8",
    "long long": "i8",
    "unsigned long long": "u8",
}


def numpy_name(argument: Argument | Temporary) -> str:
    """Return what NumPy calls the type of an argument's elements: a letter, and bytes.

    Raises:
        InputError: ``EATSS-V004``, the plan names another type.
    """
    if argument.element_type not in _NAMES:
        raise input_error(
            "EATSS-V004",
            f"the launch plan gives '{argument.name}' the type '{argument.element_type}'",
            hint="generate the program again with this version of eatss",
        )
    return _NAMES[argument.element_type]


def limits_of(argument: Argument) -> tuple[int, int]:
    """Return the least and the greatest value of an integer argument."""
    name = numpy_name(argument)
    if name == "?":
        return 0, 1
    values = 1 << 8 * int(name[1:])
    return (0, values - 1) if name[0] == "u" else (-values // 2, values // 2 - 1)
