"""The launch plan as JSON, checked when it is read, and a program as a folder of files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePath, PurePosixPath
from typing import Any

from eatss.base.codec import Document
from eatss.base.diagnostics import input_error
from eatss.base.files import read_regular
from eatss.program.expression import Apply, Constant, IntExpr, Name, Operator
from eatss.program.plan import (
    INTEGERS,
    Argument,
    Entry,
    HostLoop,
    KernelCode,
    Launch,
    Program,
    Temporary,
    every_step,
)
from eatss.program.tokens import tokens

_DIVISIONS = (Operator.FLOORDIV, Operator.MOD, Operator.QUOTIENT, Operator.REMAINDER)
_OF_TWO = (*_DIVISIONS, Operator.EQ, Operator.LE, Operator.LT, Operator.GE, Operator.GT)


def check_program(program: Program) -> None:
    """Check that names are defined, expressions well formed and files inside the folder.

    Raises:
        ValueError: something does not belong together.
    """
    for place in (program.original.file, *program.original.include_dirs):
        path = PurePosixPath(place)
        if not place or path.is_absolute() or ".." in path.parts or "\0" in place:
            raise ValueError(f"{place!r} is no place in its folder")
    for parameter in program.parameters:
        _check_identifier("size", parameter.name)
        _check_identifier("macro", parameter.macro)
    words = frozenset(token.text for token in tokens(program.text) if token.kind == "word")
    for kernel in program.kernels:
        _check_defined("kernel", kernel.name, words)
        if min(kernel.block) < 1 or min(kernel.shared_bytes, kernel.registers) < 0:
            raise ValueError(f"kernel '{kernel.name}' has a count that is none")
    for entry in program.entries:
        _check_defined("function", entry.launcher, words)
        _check_identifier("function", entry.function)
        _check_entry(entry, program)


def _check_identifier(what: str, name: str) -> None:
    if not (name.isascii() and name.isidentifier()):
        raise ValueError(f"the {what} {name!r} has a name that C does not allow")


def _check_defined(what: str, name: str, words: frozenset[str]) -> None:
    _check_identifier(what, name)
    if name not in words:
        raise ValueError(f"the text has no {what} '{name}'")


def _check_entry(entry: Entry, program: Program) -> None:
    sizes = frozenset(parameter.name for parameter in program.parameters)
    arrays: tuple[Argument | Temporary, ...] = (*entry.arguments, *entry.temporaries)
    works = () if entry.work is None else (entry.work,)
    for noun in (*arrays, *entry.assumptions, *works):
        _check_expressions(noun, sizes)
    for step, around in every_step(entry.body):
        counters = sizes.union(loop.counter for loop in around)
        _check_expressions(step if isinstance(step, Launch) else replace(step, body=()), counters)
        if isinstance(step, HostLoop) and step.step < 1:
            raise ValueError(f"the loop of '{step.counter}' has the step {step.step}")
        if isinstance(step, Launch):
            values = counters.union(array.name for array in arrays)
            _check_launch(step, values, program.kernels)


def _check_launch(launch: Launch, values: frozenset[str], kernels: Sequence[KernelCode]) -> None:
    kernel = next((kernel for kernel in kernels if kernel.name == launch.kernel), None)
    if kernel is None:
        raise ValueError(f"there is no kernel '{launch.kernel}'")
    for name in kernel.arguments:
        if name not in values:
            raise ValueError(f"nothing is called '{name}', which '{launch.kernel}' takes")


def _check_expressions(noun: object, names: frozenset[str]) -> None:
    for one in INTEGERS.of(noun):
        _check_expression(one, names)


def _check_expression(expression: IntExpr, names: frozenset[str]) -> None:
    match expression:
        case Name(name):
            if name not in names:
                raise ValueError(f"nothing is called {name!r} in an expression")
        case Apply(operator, operands):
            wanted = 3 if operator is Operator.SELECT else 2 if operator in _OF_TWO else None
            if not operands or wanted not in (None, len(operands)):
                raise ValueError(f"'{operator}' is given {len(operands)} operands")
            divisor = operands[-1] if operator in _DIVISIONS else None
            if isinstance(divisor, Constant) and divisor.value < 1:
                raise ValueError(f"'{operator}' is by {divisor.value}")
            for operand in operands:
                _check_expression(operand, names)


PLAN_FILE = "plan.json"
PROGRAM_SUFFIX = ".eatss"
"""Of folders with a program that stand beside what a compiler of others wrote."""

_MOST_BYTES = 64 * 2**20

PLAN = Document(
    title="launch plan",
    kind=Program,
    other_version="EATSS-V001",
    damaged="EATSS-V002",
    hint="generate the program again with this version of eatss",
)
program_to_dict = PLAN.to_dict


def program_from_dict(document: Mapping[str, Any], text: str) -> Program:
    """Read what :func:`program_to_dict` wrote; the text is not part of it.

    Raises:
        InputError: ``EATSS-V001`` it is of another version, ``EATSS-V002`` it is damaged.
    """
    return PLAN.from_dict(document, text=text)


def save_program(program: Program, directory: Path) -> None:
    """Write text and launch plan into an existing folder."""
    (directory / program.file).write_text(program.text, encoding="utf-8")
    (directory / PLAN_FILE).write_text(PLAN.to_text(program), encoding="utf-8")


def program_folder(directory: Path) -> Path:
    """Return the folder with the program: this one, or the only ``NAME.eatss`` in it.

    Raises:
        InputError: ``EATSS-V003``, there are several.
    """
    try:
        if not directory.is_dir() or (directory / PLAN_FILE).exists():
            return directory
    except OSError:  # who reads it says why it cannot be
        return directory
    found = sorted(plan.parent for plan in directory.glob(f"*{PROGRAM_SUFFIX}/{PLAN_FILE}"))
    if len(found) > 1:
        names = ", ".join(str(folder) for folder in found)
        raise input_error(
            "EATSS-V003", f"'{directory}' holds several programs", hint=f"name one: {names}"
        )
    return found[0] if found else directory


def load_program(directory: Path) -> Program:
    """Read the program in a folder.

    Raises:
        InputError: there is none, or it is damaged.
    """
    path = directory / PLAN_FILE
    try:
        document = json.loads(read_regular(path, _MOST_BYTES))
        text = read_regular(directory / _file_name(document), _MOST_BYTES).decode()
    except FileNotFoundError as error:
        raise input_error(
            "EATSS-V003",
            f"'{directory}' holds no generated program: there is no '{error.filename}'",
            hint=_how_to_make(directory),
        ) from None
    except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        place = (error.filename if isinstance(error, OSError) else None) or path
        raise input_error(
            "EATSS-V002",
            f"'{place}' cannot be read: {reason}",
            hint="name the folder that 'eatss codegen -o' wrote"
            if isinstance(error, OSError)
            else "generate the program again",
        ) from None
    program = program_from_dict(document, text)
    try:
        check_program(program)
    except ValueError as error:
        raise PLAN.damage(str(error)) from None
    return program


def _how_to_make(directory: Path) -> str:
    """Return how a folder comes by a program; what PPCG wrote alone lacks the C it is from."""
    if any(directory.glob("*_host.cu")):
        made = f"--generated {directory} -- FILE.c -o {directory}"
        return f"make what PPCG wrote measurable with: eatss ppcg --gpu NAME {made}"
    return "make one with: eatss codegen FILE.c --gpu NAME -o DIR"


def _file_name(document: Any) -> str:
    """Return what the text's file is called, which is in the folder of the plan."""
    name = document["file"]
    if not isinstance(name, str) or PurePath(name).name != name:
        raise ValueError(f"{name!r} is no name of a file beside it")
    return name
