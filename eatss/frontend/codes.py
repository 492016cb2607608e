"""The stable codes of the front end's findings: code, short title."""

from __future__ import annotations

from enum import Enum


class Code(Enum):
    """A finding of the front end; the value is the stable code users see."""

    UNREADABLE = "EATSS-F001"
    NOT_A_FILE = "EATSS-F002"
    TOO_LARGE = "EATSS-F003"
    EMPTY = "EATSS-F004"
    NUL_BYTE = "EATSS-F005"
    ENCODING = "EATSS-F006"
    SYNTAX = "EATSS-F007"
    UNDECLARED = "EATSS-F008"
    NESTING = "EATSS-F009"
    NO_REGION = "EATSS-F010"
    UNMATCHED_PRAGMA = "EATSS-F011"
    NON_AFFINE_SUBSCRIPT = "EATSS-F012"
    NON_AFFINE_BOUND = "EATSS-F013"
    NON_AFFINE_CONDITION = "EATSS-F014"
    INDIRECTION = "EATSS-F015"
    DATA_DEPENDENT_BOUND = "EATSS-F016"
    DATA_DEPENDENT_CONDITION = "EATSS-F017"
    WHILE_LOOP = "EATSS-F018"
    GOTO = "EATSS-F019"
    BREAK = "EATSS-F020"
    RETURN = "EATSS-F021"
    SWITCH = "EATSS-F022"
    CALL = "EATSS-F023"
    POINTER_ARITHMETIC = "EATSS-F024"
    ADDRESS_OF = "EATSS-F025"
    MEMBER = "EATSS-F026"
    ALIAS = "EATSS-F027"
    POINTER_TO_POINTER = "EATSS-F028"
    LOOP_FORM = "EATSS-F029"
    FLOAT_COUNTER = "EATSS-F030"
    COUNTER_WRITTEN = "EATSS-F031"
    BOUND_WRITTEN = "EATSS-F032"
    COUNTER_AFTER_LOOP = "EATSS-F033"
    STRIDE = "EATSS-F034"
    NOT_EQUAL = "EATSS-F035"
    UNSIGNED_WRAP = "EATSS-F036"
    NARROW_OVERFLOW = "EATSS-F037"
    SEVERAL_EFFECTS = "EATSS-F038"
    UNSUPPORTED = "EATSS-F039"
    TYPE = "EATSS-F040"
    VOLATILE = "EATSS-F041"
    DIVISOR = "EATSS-F042"
    TOO_COMPLEX = "EATSS-F043"
    LINEARISED = "EATSS-F044"
    REGION_PLACE = "EATSS-F045"
    EMPTY_REGION = "EATSS-F046"
    NO_SUCH_FUNCTION = "EATSS-F047"
    NO_SUCH_SCOP = "EATSS-F048"
    NO_SUCH_PARAMETER = "EATSS-F049"
    OPTION = "EATSS-F050"
    ENDLESS_LOOP = "EATSS-F051"
    STALE_SIZE = "EATSS-F052"
    OUT_OF_BOUNDS = "EATSS-F090"
    MISSING_HEADER = "EATSS-F091"
    ASSUMED_RANGE = "EATSS-F092"
    NEVER_RUN = "EATSS-F093"
    MACRO_NUMBER = "EATSS-F094"
    UNUSED_MACRO = "EATSS-F095"
    ASSUMED_ELEMENT = "EATSS-F096"

    @property
    def title(self) -> str:
        """The short title of the code, as the table of codes in the documentation has it."""
        return _TITLES[self]


_TITLES: dict[Code, str] = {
    Code.UNREADABLE: "file cannot be read",
    Code.NOT_A_FILE: "not a regular file",
    Code.TOO_LARGE: "file too large",
    Code.EMPTY: "empty file",
    Code.NUL_BYTE: "NUL byte in the source",
    Code.ENCODING: "source is not UTF-8",
    Code.SYNTAX: "not valid C",
    Code.UNDECLARED: "undeclared name or type",
    Code.NESTING: "nested too deeply",
    Code.NO_REGION: "no region",
    Code.UNMATCHED_PRAGMA: "unmatched pragma",
    Code.NON_AFFINE_SUBSCRIPT: "subscript is not affine",
    Code.NON_AFFINE_BOUND: "bound is not affine",
    Code.NON_AFFINE_CONDITION: "condition is not affine",
    Code.INDIRECTION: "indirection",
    Code.DATA_DEPENDENT_BOUND: "bound depends on data",
    Code.DATA_DEPENDENT_CONDITION: "condition depends on data",
    Code.WHILE_LOOP: "while loop",
    Code.GOTO: "goto, or a label that something goes to",
    Code.BREAK: "break or continue of no loop of the region",
    Code.RETURN: "return",
    Code.SWITCH: "switch",
    Code.CALL: "call with possible side effects",
    Code.POINTER_ARITHMETIC: "pointer arithmetic",
    Code.ADDRESS_OF: "address taken",
    Code.MEMBER: "struct or union member",
    Code.ALIAS: "possible alias",
    Code.POINTER_TO_POINTER: "pointer to pointer",
    Code.LOOP_FORM: "form of the loop",
    Code.FLOAT_COUNTER: "counter is not an integer",
    Code.COUNTER_WRITTEN: "counter written in the body",
    Code.BOUND_WRITTEN: "value used in a bound or subscript is written in the region",
    Code.COUNTER_AFTER_LOOP: "counter used outside its loop",
    Code.STRIDE: "stride",
    Code.NOT_EQUAL: "!= not provable",
    Code.UNSIGNED_WRAP: "unsigned value may wrap around",
    Code.NARROW_OVERFLOW: "value may not fit its type",
    Code.SEVERAL_EFFECTS: "several side effects in one expression",
    Code.UNSUPPORTED: "construct outside the subset",
    Code.TYPE: "type outside the subset",
    Code.VOLATILE: "volatile or atomic object",
    Code.DIVISOR: "divisor",
    Code.TOO_COMPLEX: "expression too complex",
    Code.LINEARISED: "linearised subscript not provable",
    Code.REGION_PLACE: "place of the region",
    Code.EMPTY_REGION: "region without statements",
    Code.NO_SUCH_FUNCTION: "no such function",
    Code.NO_SUCH_SCOP: "no such region",
    Code.NO_SUCH_PARAMETER: "no such parameter",
    Code.OPTION: "option not understood",
    Code.ENDLESS_LOOP: "loop does not end",
    Code.STALE_SIZE: "size of an array is stale",
    Code.OUT_OF_BOUNDS: "access outside the array",
    Code.MISSING_HEADER: "header not found",
    Code.ASSUMED_RANGE: "value assumed to fit its type",
    Code.NEVER_RUN: "statement never runs",
    Code.MACRO_NUMBER: "size stays a number in generated code",
    Code.UNUSED_MACRO: "macro given with -D changes nothing",
    Code.ASSUMED_ELEMENT: "element assumed to lie in its array",
}
