"""Loops that code runs slowly, what forces it to, and what would free them."""

from __future__ import annotations

from collections.abc import Sequence

from eatss.base.diagnostics import Diagnostic, Severity, SourceSpan
from eatss.base.frozen import frozen


@frozen
class SlowLoop:
    """A loop of a kernel that dependences on one array or scalar keep from running fast.

    Attributes:
        kernel: The kernel, as it is called in selections.
        loop: The loop.
        effect: What becomes of it: ``"is not tiled"``, ``"runs in one thread"``.
        array: The array, or the scalar.
        dependence: How its values bind iterations: ``"each iteration of j sets it anew"``,
            ``"iteration i needs i - 1"``.
        spans: Where the source accesses it, in order; at least one place.
        rewrite: What to write instead.
        statements: Those that wait for it, where kernels of generated code say so.
    """

    kernel: str
    loop: str
    effect: str
    array: str
    dependence: str
    spans: tuple[SourceSpan, ...]
    rewrite: str
    statements: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """What is told of it, and the rewrite, in one line."""
        return f"{self.message}; {self.rewrite}"

    @property
    def message(self) -> str:
        """What is told of it."""
        return (
            f"the loop {self.loop} of {self.kernel} {self.effect} because of "
            f"'{self.array}' ({_lines(self.spans)}): {self.dependence}"
        )

    def note(self) -> Diagnostic:
        """Return the finding that tells it."""
        return Diagnostic(
            code="EATSS-A010",
            severity=Severity.NOTE,
            message=self.message,
            span=self.spans[0],
            hint=self.rewrite,
        )


def _lines(spans: Sequence[SourceSpan]) -> str:
    lines = sorted({span.line for span in spans})
    if len(lines) == 1:
        return f"line {lines[0]}"
    return f"lines {', '.join(map(str, lines[:-1]))} and {lines[-1]}"
