"""The stack of a kernel's threads, local memory, and a warning where it is much."""

from __future__ import annotations

from collections.abc import Iterable

from eatss.base.diagnostics import Diagnostic, Severity

MUCH_STACK_BYTES = 256
"""A quarter of the registers that a thread can have, 255 of four bytes.

Calls of functions and a few values out of turn take less. More are arrays that should have been
registers: they are slow, and compilers were seen to make wrong code of 3664 bytes.
"""


def stack_warnings(stacks: Iterable[tuple[str, int]], *, of: str = "") -> tuple[Diagnostic, ...]:
    """Return a warning for each kernel whose threads have much stack.

    Args:
        stacks: kernels with the bytes of a thread, as a compiler or a driver says.
        of: which of several programs they are of.
    """
    program = f" of '{of}'" if of else ""
    return tuple(
        Diagnostic(
            code="EATSS-V047",
            severity=Severity.WARNING,
            message=f"a thread of kernel '{kernel}'{program} has {stack} bytes of stack, "
            f"over {MUCH_STACK_BYTES}: arrays that found no registers, which is slow, and "
            "compilers have made wrong code of it",
            hint="give a thread fewer points: smaller tiles, or more threads for the same tile; "
            "then compare results with those of the original, as 'eatss measure' does",
        )
        for kernel, stack in stacks
        if stack > MUCH_STACK_BYTES
    )
