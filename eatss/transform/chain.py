"""From a kernel as it was lowered to the one that is printed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from eatss.diagnostics import Diagnostic, InternalError, input_error
from eatss.instructions import INSTRUCTIONS
from eatss.kernel.barriers import barrier_faults
from eatss.kernel.checks import kernel_faults
from eatss.kernel.nodes import Kernel
from eatss.kernel.uses import without_unused
from eatss.transform import TRANSFORMATIONS
from eatss.transform.barriers import with_barriers
from eatss.transform.use_instruction import use_instruction


def transformed(
    kernel: Kernel,
    *,
    transformations: Sequence[str],
    instructions: Sequence[str],
    sizes: Collection[str],
    strict_fp: bool,
) -> Kernel:
    """Return a kernel with what a recipe names done to it, and barriers put.

    Args:
        kernel: without barriers.
        transformations: names of transformations, in their order.
        instructions: names of instructions to use where they fit.
        sizes: names that kernels know without being passed them.
        strict_fp: whether floating-point operations are to be those of the source.

    Raises:
        InputError: ``EATSS-X005``, there is no such transformation or instruction; ``EATSS-K019``,
            an instruction rounds otherwise than is asked for.
        InternalError: ``EATSS-K904`` a kernel is not well formed, ``EATSS-K903`` threads may meet
            in shared memory without a barrier.
    """
    _check(kernel, "lowering", sizes)
    for name in transformations:
        kernel = TRANSFORMATIONS.get(name)(kernel)
        _check(kernel, f"the transformation {name}", sizes)
    for name in instructions:
        instruction = INSTRUCTIONS.get(name)
        if strict_fp and not instruction.exact:
            raise input_error(
                "EATSS-K019",
                f"the instruction {name} may round otherwise than C, and --strict-fp keeps every "
                "operation",
                hint="leave one of the two out",
            )
        kernel = use_instruction(kernel, instruction)
    kernel = replace(kernel, body=with_barriers(without_unused(kernel.body)))
    for fault in barrier_faults(kernel.body):
        raise InternalError(Diagnostic(code="EATSS-K903", message=f"{kernel.name}: {fault}"))
    return kernel


def _check(kernel: Kernel, step: str, sizes: Collection[str]) -> None:
    for fault in kernel_faults(kernel, sizes):
        message = f"{kernel.name} after {step}: {fault}"
        raise InternalError(Diagnostic(code="EATSS-K904", message=message))
