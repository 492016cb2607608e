"""Where CUDA finds no card."""

from __future__ import annotations

from eatss.base.diagnostics import input_error


class NoCard:
    """Refuses to be opened."""

    def __init__(self, *, device: int | str, compiler: str) -> None:
        del device, compiler
        raise input_error("EATSS-E022", "CUDA finds no card: none", hint="plug one in")
