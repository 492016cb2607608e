"""The stable codes of findings about Python source."""

from __future__ import annotations

from enum import Enum


class Code(Enum):
    """Codes of findings; none ever changes its meaning."""

    NO_SOURCE = "EATSS-Y001"
    SYNTAX = "EATSS-Y002"
    NO_FUNCTION = "EATSS-Y003"
    ANNOTATION = "EATSS-Y004"
    FUNCTION = "EATSS-Y005"
    NAME = "EATSS-Y006"
    EXTENT = "EATSS-Y007"
    UNKNOWN_NAME = "EATSS-Y010"
    STATEMENT = "EATSS-Y011"
    EXPRESSION = "EATSS-Y012"
    LOOP = "EATSS-Y013"
    STEP = "EATSS-Y014"
    COUNTER = "EATSS-Y015"
    CALL = "EATSS-Y016"
    SUBSCRIPT = "EATSS-Y017"
    TARGET = "EATSS-Y018"
    TYPES = "EATSS-Y019"
    NO_VALUE = "EATSS-Y020"
    ARITHMETIC = "EATSS-Y021"
    NUMBER = "EATSS-Y022"
    CONDITION = "EATSS-Y023"
    CALLED = "EATSS-Y030"
    MACROS = "EATSS-Y031"
