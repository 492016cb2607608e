"""The host's part: loops around launches, and the function that runs a region."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import groupby
from typing import TypeVar

import islpy as isl

from eatss.cuda.text import Lines, argument_text, type_text
from eatss.lower.index_range import widened
from eatss.lower.isl_text import TRUE, condition_of, value_of
from eatss.lower.kernel_context import BuiltKernel
from eatss.lower.schedule.names import NameTable
from eatss.lower.schedule.pieces import Piece
from eatss.lower.size_products import multiplies_sizes
from eatss.polyhedral.isl_names import (
    coalesced,
    parameter_at_least,
    parameter_at_most,
    parameter_bound,
    without_parameters,
)
from eatss.program import (
    Apply,
    Constant,
    Entry,
    HostIf,
    HostLoop,
    HostStep,
    IntExpr,
    Launch,
    Name,
    Operator,
    Program,
    Temporary,
    at_least,
    every_step,
    multiplied,
    names_in,
    substitute,
)
from eatss.program.linear import strict
from eatss.program.source_names import converted, generated_text, size_text


@dataclass(frozen=True, slots=True)
class PlacedKernel:
    """A kernel and the piece it comes from."""

    piece: Piece
    kernel: BuiltKernel


def host_steps(kernels: Sequence[PlacedKernel], context: isl.Set) -> tuple[HostStep, ...]:
    """Return the loops and launches that run kernels in their order.

    Args:
        kernels: the kernels; those that share host loops stand next to each other.
        context: what is known of the sizes.
    """
    return _steps(kernels, 0, context)


def _steps(kernels: Sequence[PlacedKernel], depth: int, known: isl.Set) -> tuple[HostStep, ...]:
    steps: list[HostStep] = []

    def key(placed: PlacedKernel) -> tuple[int, tuple[int, int] | int]:
        host = placed.piece.host
        own = len(host) > depth
        return own, host[depth].member.key if own else id(placed)

    for (loops, _), together in groupby(kernels, key):
        own = list(together)
        _append(steps, _loop(own, depth, known) if loops else _launch(own[0], known))
    return tuple(steps)


def _append(steps: list[HostStep], step: HostStep) -> None:
    """Append a step; steps under one condition share it."""
    last = steps[-1] if steps else None
    if isinstance(step, HostIf) and isinstance(last, HostIf) and last.condition == step.condition:
        steps[-1] = HostIf(condition=last.condition, body=last.body + step.body)
    else:
        steps.append(step)


def _loop(kernels: Sequence[PlacedKernel], depth: int, known: isl.Set) -> HostStep:
    name = kernels[0].piece.host[depth].name
    values: isl.Set | None = None
    for placed in kernels:
        inner = [loop.name for loop in placed.piece.host[depth + 1 :]]
        part = without_parameters(placed.kernel.launch, inner)
        values = part if values is None else values.union(part)
    assert values is not None
    values = coalesced(values)
    here = known.intersect(without_parameters(values, [name]))
    lower = parameter_bound(values, name, upper=False).coalesce()
    upper = parameter_bound(values, name, upper=True).coalesce()
    # between its bounds the loop may meet values at which nothing is to be run
    inside = here.intersect(parameter_at_least(name, lower)).intersect(
        parameter_at_most(name, upper)
    )
    body = _steps(kernels, depth + 1, coalesced(inside))
    loop = HostLoop(
        counter=name, lower=value_of(lower, here), upper=value_of(upper, here), step=1, body=body
    )
    condition = condition_of(coalesced(here), known)
    return loop if condition == TRUE else HostIf(condition=condition, body=(loop,))


def _launch(placed: PlacedKernel, known: isl.Set) -> HostStep:
    launch = Launch(kernel=placed.kernel.kernel.name, grid=placed.kernel.grid)
    condition = condition_of(placed.kernel.launch, known)
    return launch if condition == TRUE else HostIf(condition=condition, body=(launch,))


def bounds_of_loops(steps: Sequence[HostStep]) -> Iterator[IntExpr]:
    """Yield the bounds of the host's loops."""
    for step, _ in every_step(steps):
        if isinstance(step, HostLoop):
            yield from (step.lower, step.upper)


def launcher_text(program: Program, entry: Entry, *, const: bool) -> str:
    """Return the host function that runs a region on device pointers.

    ``const`` says whether arrays that are only read are declared so. Sizes of another type than
    ``int`` are passed under other names.
    """
    names = NameTable(argument.name for argument in entry.arguments)
    counters = (one.counter for one, _ in every_step(entry.body) if isinstance(one, HostLoop))
    names.reserve(*(temporary.name for temporary in entry.temporaries), *counters)
    sizes = [one for one in entry.arguments if one.role == "parameter"]
    given = {a.name: names.fresh(f"{a.name}_given") for a in sizes if a.element_type != "int"}
    stream = names.fresh("stream")
    declared = [argument_text(argument, given, const=const) for argument in entry.arguments]
    lines = Lines()
    parameters = ", ".join((*declared, f"cudaStream_t {stream}"))
    lines.add(f'extern "C" int {entry.launcher}({parameters})', "{")
    with lines.indented():
        for one in sizes:
            own = given.get(one.name)
            if own is None:
                continue
            if one.element_type == "unsigned long":
                lines.add(f"if ({own} > 0x7fffffffffffffffUL) return (int)cudaErrorInvalidValue;")
            lines.add(f"const long {size_text(one.name)} = (long){own};")
        for number, assumption in enumerate(entry.assumptions):
            test = generated_text(_widened(assumption.condition))
            lines.add(f"if (!({test})) return {-number - 1};  // {assumption.message}")
        for kernel in program.kernels:
            if kernel.dynamic_shared:
                lines.add(*_OPT_IN.format(kernel=kernel).splitlines())
        for position, temporary in enumerate(entry.temporaries):
            _allocate(lines, temporary, entry.temporaries[:position], stream)
        _Steps(lines, program, stream).add(entry.body)
        status = "cudaGetLastError()"
        if entry.temporaries:
            lines.add(f"const cudaError_t eatss_status = {status};")
            lines.add(*(f"cudaFree({one.name});" for one in entry.temporaries))
            status = "eatss_status"
        lines.add(f"return (int){status};")
    lines.add("}")
    return lines.text()


_OPT_IN = """\
if (cudaError_t eatss_error = cudaFuncSetAttribute({kernel.name},
        cudaFuncAttributeMaxDynamicSharedMemorySize, {kernel.shared_bytes})) \
return (int)eatss_error;
"""


def elements_of(one: Temporary) -> IntExpr:
    """Return the number of elements; none where nothing of a dimension is needed."""
    none: IntExpr = Constant(1)
    return reduce(multiplied, (at_least(extent, 0) for extent in one.shape), none)


def _allocate(lines: Lines, one: Temporary, before: Sequence[Temporary], stream: str) -> None:
    """Print how memory is allocated; where that fails, what was allocated before is freed."""
    c_type = type_text(one.element_type)
    size = f"sizeof({c_type}) * ({generated_text(_widened(elements_of(one)))})"
    lines.add(f"{c_type} *{one.name} = nullptr;")
    calls = [(f"cudaMalloc(&{one.name}, {size})", before)]
    if one.zeroed:
        calls.append((f"cudaMemsetAsync({one.name}, 0, {size}, {stream})", (*before, one)))
    for call, there in calls:
        with lines.block(f"if (cudaError_t eatss_error = {call})"):
            lines.add(*(f"cudaFree({other.name});" for other in there), "return (int)eatss_error;")


class _Steps:
    """Prints what the host does."""

    def __init__(self, lines: Lines, program: Program, stream: str) -> None:
        self._lines, self._program, self._stream = lines, program, stream
        self._wide = program.index_bits != 32

    def add(self, steps: Sequence[HostStep], counters: frozenset[str] = frozenset()) -> None:
        for step in steps:
            if isinstance(step, Launch):
                self._launch(step)
                continue
            head = self._loop(step) if isinstance(step, HostLoop) else self._test(step, counters)
            with self._lines.block(head):
                own = {step.counter} if isinstance(step, HostLoop) else ()
                self.add(step.body, counters.union(own))

    def _own(self, expression: IntExpr) -> IntExpr:
        """Return an expression whose products of sizes are computed in 64 bits if indices are."""
        wide = self._wide and multiplies_sizes(expression)
        return _in_long(expression) if wide else expression

    def _test(self, step: HostIf, counters: frozenset[str]) -> str:
        condition = strict(self._own(step.condition))
        if not self._wide:  # no condition has told yet that the sizes are small
            condition = widened(condition, set(names_in(condition)) - counters)
        return f"if ({generated_text(condition)})"

    def _loop(self, step: HostLoop) -> str:
        counter, c_type = step.counter, "long" if self._wide else "int"
        increment = f"++{counter}" if step.step == 1 else f"{counter} += {step.step}"
        goes_on = generated_text(strict(Name(counter) <= self._own(step.upper)))
        lower = generated_text(self._own(step.lower))
        return f"for ({c_type} {counter} = {lower}; {goes_on}; {increment})"

    def _launch(self, launch: Launch) -> None:
        kernel = self._program.kernel(launch.kernel)
        extents = _used(launch.grid, Constant(1))
        grid = ", ".join(generated_text(self._own(extent)) for extent in extents)
        block = ", ".join(map(str, _used(kernel.block, 1)))
        shared = kernel.shared_bytes if kernel.dynamic_shared else 0
        passed = ", ".join((self._stream, *map(size_text, kernel.arguments)))
        text = f"{kernel.name}, dim3({grid}), dim3({block}), {shared}, {passed}"
        self._lines.add(f"EATSS_LAUNCH({text});")


_Extent = TypeVar("_Extent")


def _used(extents: Sequence[_Extent], one: _Extent) -> Sequence[_Extent]:
    """Return extents along the first axes, up to the last of more than one."""
    return extents[: max((at for at, own in enumerate(extents, 1) if own != one), default=1)]


def _widened(expression: IntExpr) -> IntExpr:
    """Return the expression computed in 64 bits, or with products of sizes that may pass them.

    A double tells exactly on which side of 2^31 a product lies.
    """
    return _in_double(expression) if _is_product(expression) else _in_long(expression)


def _in_long(expression: IntExpr) -> IntExpr:
    names = set(names_in(expression))
    return substitute(expression, {name: converted("long", name) for name in names})


def _in_double(expression: IntExpr) -> IntExpr:
    """Return sums and products computed in doubles; what only integers have, as a remainder, is."""
    if isinstance(expression, Apply) and expression.operator in _OF_DOUBLES:
        operands = tuple(_in_double(operand) for operand in expression.operands)
        return replace(expression, operands=operands)
    if isinstance(expression, Apply):
        return Name(f"(double)({generated_text(_in_long(expression))})")
    return converted("double", expression.name) if isinstance(expression, Name) else expression


_OF_DOUBLES = (Operator.ADD, Operator.SUB, Operator.MUL, Operator.LE)


def _is_product(condition: IntExpr) -> bool:
    """Tell whether a condition bounds a product of sizes."""
    if not isinstance(condition, Apply) or condition.operator is not Operator.LE:
        return False
    product = condition.operands[0]
    return isinstance(product, Apply) and product.operator is Operator.MUL
