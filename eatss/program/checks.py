"""Whether the parts of a plan that was read from a file belong together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

from eatss.program.expression import Apply, Constant, IntExpr, Name, Operator
from eatss.program.plan import (
    Argument,
    Entry,
    HostIf,
    HostLoop,
    HostStep,
    KernelCode,
    Launch,
    Program,
    Temporary,
)
from eatss.program.tokens import tokens

_DIVISIONS = (Operator.FLOORDIV, Operator.MOD, Operator.QUOTIENT, Operator.REMAINDER)
_OF_TWO = (*_DIVISIONS, Operator.EQ, Operator.LE, Operator.LT, Operator.GE, Operator.GT)


def check_program(program: Program) -> None:
    """Check that names are defined, expressions well formed and files inside the folder.

    Raises:
        ValueError: something does not belong together.
    """
    _check_places(program)
    for parameter in program.parameters:
        _check_identifier("size", parameter.name)
        _check_identifier("macro", parameter.macro)
    words = frozenset(token.text for token in tokens(program.text) if token.kind == "word")
    for kernel in program.kernels:
        _check_defined("kernel", kernel.name, words)
        _check_kernel(kernel)
    for entry in program.entries:
        _check_defined("function", entry.launcher, words)
        _check_identifier("function", entry.function)
        _check_entry(entry, program)


def _check_places(program: Program) -> None:
    original = program.original
    for place in (original.file, *original.include_dirs):
        path = PurePosixPath(place)
        if not place or path.is_absolute() or ".." in path.parts or "\0" in place:
            raise ValueError(f"{place!r} is no place in its folder")


def _check_identifier(what: str, name: str) -> None:
    if not (name.isascii() and name.isidentifier()):
        raise ValueError(f"the {what} {name!r} has a name that C does not allow")


def _check_defined(what: str, name: str, words: frozenset[str]) -> None:
    _check_identifier(what, name)
    if name not in words:
        raise ValueError(f"the text has no {what} '{name}'")


def _check_kernel(kernel: KernelCode) -> None:
    if min(kernel.block) < 1 or min(kernel.shared_bytes, kernel.registers) < 0:
        raise ValueError(f"kernel '{kernel.name}' has a count that is none")


def _check_entry(entry: Entry, program: Program) -> None:
    sizes = frozenset(parameter.name for parameter in program.parameters)
    arrays: tuple[Argument | Temporary, ...] = (*entry.arguments, *entry.temporaries)
    shapes = [array.shape for array in arrays]
    for extent in (extent for shape in shapes for extent in shape):
        _check_expression(extent, sizes)
    for assumption in entry.assumptions:
        _check_expression(assumption.condition, sizes)
    if entry.work is not None:
        counts = [operation.count for operation in entry.work.operations or ()]
        for count in (*counts, entry.work.read_bytes, entry.work.written_bytes):
            if count is not None:
                _check_expression(count, sizes)
    values = sizes.union(array.name for array in arrays)
    _check_steps(entry.body, sizes, values, program.kernels)


def _check_steps(
    steps: Iterable[HostStep],
    counters: frozenset[str],
    values: frozenset[str],
    kernels: Sequence[KernelCode],
) -> None:
    for step in steps:
        match step:
            case Launch():
                _check_launch(step, counters, values, kernels)
            case HostLoop():
                if step.step < 1:
                    raise ValueError(f"the loop of '{step.counter}' has the step {step.step}")
                _check_expression(step.lower, counters)
                _check_expression(step.upper, counters)
                inner = counters | {step.counter}
                _check_steps(step.body, inner, values | inner, kernels)
            case HostIf():
                _check_expression(step.condition, counters)
                _check_steps(step.body, counters, values, kernels)


def _check_launch(
    launch: Launch,
    counters: frozenset[str],
    values: frozenset[str],
    kernels: Sequence[KernelCode],
) -> None:
    for extent in launch.grid:
        _check_expression(extent, counters)
    kernel = next((kernel for kernel in kernels if kernel.name == launch.kernel), None)
    if kernel is None:
        raise ValueError(f"there is no kernel '{launch.kernel}'")
    for name in kernel.arguments:
        if name not in values:
            raise ValueError(f"nothing is called '{name}', which '{launch.kernel}' takes")


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
