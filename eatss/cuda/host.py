"""The host's part: loops around launches, and the function that runs a region."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import islpy as isl

from eatss.cuda.text import Lines
from eatss.isl_names import (
    coalesced,
    parameter_at_least,
    parameter_at_most,
    parameter_bound,
    without_parameters,
)
from eatss.lower.bounds import guard
from eatss.lower.index_range import widened
from eatss.lower.isl_text import TRUE, value_of
from eatss.lower.kernel_context import BuiltKernel
from eatss.lower.size_products import multiplies_sizes
from eatss.program import (
    INTEGERS,
    Apply,
    Assumption,
    Constant,
    HostIf,
    HostLoop,
    HostStep,
    IntExpr,
    KernelCode,
    Launch,
    Name,
    Operator,
    every_step,
    names_in,
    substitute,
)
from eatss.program.linear import strict
from eatss.program.source_names import converted, generated_text, size_text
from eatss.schedule.pieces import Piece


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
    position = 0
    while position < len(kernels):
        first = kernels[position]
        if len(first.piece.host) == depth:
            _append(steps, _launch(first, known))
            position += 1
            continue
        key = first.piece.host[depth].member.key
        end = position
        while end < len(kernels) and _key(kernels[end], depth) == key:
            end += 1
        _append(steps, _loop(kernels[position:end], depth, known))
        position = end
    return tuple(steps)


def _append(steps: list[HostStep], step: HostStep) -> None:
    """Append a step; steps under one condition share it."""
    last = steps[-1] if steps else None
    if isinstance(step, HostIf) and isinstance(last, HostIf) and last.condition == step.condition:
        steps[-1] = HostIf(condition=last.condition, body=last.body + step.body)
    else:
        steps.append(step)


def _key(placed: PlacedKernel, depth: int) -> tuple[int, int] | None:
    host = placed.piece.host
    return host[depth].member.key if len(host) > depth else None


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
    condition = guard(coalesced(here), known)
    return loop if condition == TRUE else HostIf(condition=condition, body=(loop,))


def _launch(placed: PlacedKernel, known: isl.Set) -> HostStep:
    launch = Launch(kernel=placed.kernel.kernel.name, grid=placed.kernel.grid)
    condition = guard(placed.kernel.launch, known)
    return launch if condition == TRUE else HostIf(condition=condition, body=(launch,))


def bounds_of_loops(steps: Sequence[HostStep]) -> Iterator[IntExpr]:
    """Yield the bounds of the host's loops."""
    for step, _ in every_step(steps):
        if isinstance(step, HostLoop):
            yield from (step.lower, step.upper)


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """Memory that a launcher allocates: ``count`` elements, filled with zeros if ``zeroed``."""

    c_type: str
    name: str
    count: IntExpr
    zeroed: bool


def launcher_text(
    name: str,
    parameters: Sequence[str],
    copies: Sequence[tuple[str, str, bool]],
    assumptions: Sequence[Assumption],
    temporaries: Sequence[Allocation],
    steps: Sequence[HostStep],
    kernels: Sequence[KernelCode],
    index_type: str,
    stream: str,
) -> str:
    """Return the host function that runs a region on device pointers.

    Args:
        name: its name.
        parameters: declarations of its parameters, the stream not among them.
        copies: sizes that are declared under another name, because their type is not ``int``:
            name, name of the parameter, and whether it is unsigned and 64 bits wide.
        assumptions: what must hold of the sizes.
        temporaries: what it allocates.
        steps: what it does.
        kernels: the kernels it may launch.
        index_type: type of counters.
        stream: the name of its last parameter.
    """
    lines = Lines()
    declared = ", ".join((*parameters, f"cudaStream_t {stream}"))
    lines.add(f'extern "C" int {name}({declared})', "{")
    body = Lines(1)
    for size, given, may_overflow in copies:
        if may_overflow:
            body.add(f"if ({given} > 0x7fffffffffffffffUL) return (int)cudaErrorInvalidValue;")
        body.add(f"const long {size_text(size)} = (long){given};")
    for number, assumption in enumerate(assumptions):
        wide = _widened(assumption.condition)
        body.add(f"if (!({generated_text(wide)})) return {-number - 1};  // {assumption.message}")
    by_name = {kernel.name: kernel for kernel in kernels}
    if index_type != "int":
        steps = [INTEGERS.rebuilt(step, _wide_product) for step in steps]
    for kernel in kernels:
        if kernel.dynamic_shared:
            _opt_in(body, kernel)
    for position, one in enumerate(temporaries):
        _allocate(body, one, [other.name for other in temporaries[:position]], stream)
    _emit_steps(body, steps, by_name, index_type, stream)
    if temporaries:
        body.add("const cudaError_t eatss_status = cudaGetLastError();")
        body.add(*(f"cudaFree({one.name});" for one in temporaries))
        body.add("return (int)eatss_status;")
    else:
        body.add("return (int)cudaGetLastError();")
    return lines.text() + body.text() + "}\n"


def _allocate(body: Lines, one: Allocation, before: Sequence[str], stream: str) -> None:
    """Print how memory is allocated; where that fails, what was allocated before is freed."""
    size = f"sizeof({one.c_type}) * ({generated_text(_widened(one.count))})"
    body.add(f"{one.c_type} *{one.name} = nullptr;")
    calls = [(f"cudaMalloc(&{one.name}, {size})", before)]
    if one.zeroed:
        calls.append((f"cudaMemsetAsync({one.name}, 0, {size}, {stream})", [*before, one.name]))
    for call, there in calls:
        with body.block(f"if (cudaError_t eatss_error = {call})"):
            body.add(*(f"cudaFree({name});" for name in there), "return (int)eatss_error;")


def _opt_in(body: Lines, kernel: KernelCode) -> None:
    body.add(
        f"if (cudaError_t eatss_error = cudaFuncSetAttribute({kernel.name},",
        f"        cudaFuncAttributeMaxDynamicSharedMemorySize, {kernel.shared_bytes})) "
        "return (int)eatss_error;",
    )


def _emit_steps(
    body: Lines,
    steps: Sequence[HostStep],
    kernels: dict[str, KernelCode],
    index_type: str,
    stream: str,
    counters: frozenset[str] = frozenset(),
) -> None:
    for step in steps:
        if isinstance(step, HostIf):
            condition = strict(step.condition)
            if index_type == "int":  # no condition has told yet that the sizes are small
                sizes = set(names_in(condition)) - counters
                condition = widened(condition, sizes)
            with body.block(f"if ({generated_text(condition)})"):
                _emit_steps(body, step.body, kernels, index_type, stream, counters)
        elif isinstance(step, HostLoop):
            counter = step.counter
            increment = f"++{counter}" if step.step == 1 else f"{counter} += {step.step}"
            goes_on = strict(Name(counter) <= step.upper)
            head = (
                f"for ({index_type} {counter} = {generated_text(step.lower)}; "
                f"{generated_text(goes_on)}; {increment})"
            )
            with body.block(head):
                inside = counters | {counter}
                _emit_steps(body, step.body, kernels, index_type, stream, inside)
        else:
            _emit_launch(body, step, kernels[step.kernel], stream)


def _emit_launch(body: Lines, launch: Launch, kernel: KernelCode, stream: str) -> None:
    grid = ", ".join(generated_text(extent) for extent in _trimmed(launch.grid))
    block = ", ".join(str(size) for size in kernel.block[: _used(kernel.block)])
    shared = kernel.shared_bytes if kernel.dynamic_shared else 0
    arguments = ", ".join(map(size_text, kernel.arguments))
    body.add(
        f"EATSS_LAUNCH({kernel.name}, dim3({grid}), dim3({block}), {shared}, {stream}"
        + (f", {arguments});" if arguments else ");")
    )


def _trimmed(grid: tuple[IntExpr, IntExpr, IntExpr]) -> tuple[IntExpr, ...]:
    used = max((k + 1 for k, extent in enumerate(grid) if extent != Constant(1)), default=1)
    return grid[:used]


def _used(block: tuple[int, int, int]) -> int:
    return max((k + 1 for k, size in enumerate(block) if size != 1), default=1)


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


def _wide_product(expression: IntExpr) -> IntExpr:
    """Return an expression that multiplies sizes in 64 bits."""
    return _in_long(expression) if multiplies_sizes(expression) else expression


def _is_product(condition: IntExpr) -> bool:
    """Tell whether a condition bounds a product of sizes."""
    if not isinstance(condition, Apply) or condition.operator is not Operator.LE:
        return False
    product = condition.operands[0]
    return isinstance(product, Apply) and product.operator is Operator.MUL
