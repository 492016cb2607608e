"""``Program``: generated CUDA and its launch plan, as ``codegen`` hands it to who runs it.

Imports the standard library only, so that a program generated on one machine can be verified
and measured on another that has neither isl nor a solver. Next folder: ``eatss/verify``.
"""

from eatss.program.arithmetic import (
    at_least,
    difference,
    minimum,
    multiplied,
    names_in,
    negated,
    substitute,
    total,
)
from eatss.program.expression import (
    Apply,
    Constant,
    IntExpr,
    Name,
    Operator,
    c_text,
    evaluate,
)
from eatss.program.interface import Interface, InterfaceEntry
from eatss.program.plan import (
    Argument,
    Assumption,
    Entry,
    HostIf,
    HostLoop,
    HostStep,
    KernelCode,
    Launch,
    OperationCount,
    Original,
    Parameter,
    Program,
    Temporary,
    Work,
)
from eatss.program.plan_json import (
    PLAN_FILE,
    PROGRAM_SUFFIX,
    load_program,
    program_folder,
    program_from_dict,
    program_to_dict,
    save_program,
)

__all__ = [
    "PLAN_FILE",
    "PROGRAM_SUFFIX",
    "Apply",
    "Argument",
    "Assumption",
    "Constant",
    "Entry",
    "HostIf",
    "HostLoop",
    "HostStep",
    "IntExpr",
    "Interface",
    "InterfaceEntry",
    "KernelCode",
    "Launch",
    "Name",
    "OperationCount",
    "Operator",
    "Original",
    "Parameter",
    "Program",
    "Temporary",
    "Work",
    "at_least",
    "c_text",
    "difference",
    "evaluate",
    "load_program",
    "minimum",
    "multiplied",
    "names_in",
    "negated",
    "program_folder",
    "program_from_dict",
    "program_to_dict",
    "save_program",
    "substitute",
    "total",
]
