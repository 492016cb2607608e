"""The stable codes of the front end's findings: code, short title."""

from __future__ import annotations

from enum import Enum
from typing import Self


class Code(Enum):
    """A finding of the front end; the value is the stable code users see."""

    UNREADABLE = "EATSS-F001", "file cannot be read"
    NOT_A_FILE = "EATSS-F002", "not a regular file"
    TOO_LARGE = "EATSS-F003", "file too large"
    EMPTY = "EATSS-F004", "empty file"
    NUL_BYTE = "EATSS-F005", "NUL byte in the source"
    ENCODING = "EATSS-F006", "source is not UTF-8"
    SYNTAX = "EATSS-F007", "not valid C"
    UNDECLARED = "EATSS-F008", "undeclared name or type"
    NESTING = "EATSS-F009", "nested too deeply"
    NO_REGION = "EATSS-F010", "no region"
    UNMATCHED_PRAGMA = "EATSS-F011", "unmatched pragma"
    NON_AFFINE_SUBSCRIPT = "EATSS-F012", "subscript is not affine"
    NON_AFFINE_BOUND = "EATSS-F013", "bound is not affine"
    NON_AFFINE_CONDITION = "EATSS-F014", "condition is not affine"
    INDIRECTION = "EATSS-F015", "indirection"
    DATA_DEPENDENT_BOUND = "EATSS-F016", "bound depends on data"
    DATA_DEPENDENT_CONDITION = "EATSS-F017", "condition depends on data"
    WHILE_LOOP = "EATSS-F018", "while loop"
    GOTO = "EATSS-F019", "goto, or a label that something goes to"
    BREAK = "EATSS-F020", "break or continue of no loop of the region"
    RETURN = "EATSS-F021", "return"
    SWITCH = "EATSS-F022", "switch"
    CALL = "EATSS-F023", "call with possible side effects"
    POINTER_ARITHMETIC = "EATSS-F024", "pointer arithmetic"
    ADDRESS_OF = "EATSS-F025", "address taken"
    MEMBER = "EATSS-F026", "struct or union member"
    ALIAS = "EATSS-F027", "possible alias"
    POINTER_TO_POINTER = "EATSS-F028", "pointer to pointer"
    LOOP_FORM = "EATSS-F029", "form of the loop"
    FLOAT_COUNTER = "EATSS-F030", "counter is not an integer"
    COUNTER_WRITTEN = "EATSS-F031", "counter written in the body"
    BOUND_WRITTEN = "EATSS-F032", "value used in a bound or subscript is written in the region"
    COUNTER_AFTER_LOOP = "EATSS-F033", "counter used outside its loop"
    STRIDE = "EATSS-F034", "stride"
    NOT_EQUAL = "EATSS-F035", "!= not provable"
    UNSIGNED_WRAP = "EATSS-F036", "unsigned value may wrap around"
    NARROW_OVERFLOW = "EATSS-F037", "value may not fit its type"
    SEVERAL_EFFECTS = "EATSS-F038", "several side effects in one expression"
    UNSUPPORTED = "EATSS-F039", "construct outside the subset"
    TYPE = "EATSS-F040", "type outside the subset"
    VOLATILE = "EATSS-F041", "volatile or atomic object"
    DIVISOR = "EATSS-F042", "divisor"
    TOO_COMPLEX = "EATSS-F043", "expression too complex"
    LINEARISED = "EATSS-F044", "linearised subscript not provable"
    REGION_PLACE = "EATSS-F045", "place of the region"
    EMPTY_REGION = "EATSS-F046", "region without statements"
    NO_SUCH_FUNCTION = "EATSS-F047", "no such function"
    NO_SUCH_SCOP = "EATSS-F048", "no such region"
    NO_SUCH_PARAMETER = "EATSS-F049", "no such parameter"
    OPTION = "EATSS-F050", "option not understood"
    ENDLESS_LOOP = "EATSS-F051", "loop does not end"
    STALE_SIZE = "EATSS-F052", "size of an array is stale"
    OUT_OF_BOUNDS = "EATSS-F090", "access outside the array"
    MISSING_HEADER = "EATSS-F091", "header not found"
    ASSUMED_RANGE = "EATSS-F092", "value assumed to fit its type"
    NEVER_RUN = "EATSS-F093", "statement never runs"
    MACRO_NUMBER = "EATSS-F094", "size stays a number in generated code"
    UNUSED_MACRO = "EATSS-F095", "macro given with -D changes nothing"
    ASSUMED_ELEMENT = "EATSS-F096", "element assumed to lie in its array"

    title: str
    """The short title of the code, as the table of codes in the documentation has it."""

    def __new__(cls, code: str, title: str) -> Self:
        """Build a member whose value is its code."""
        made = object.__new__(cls)
        made._value_, made.title = code, title
        return made
