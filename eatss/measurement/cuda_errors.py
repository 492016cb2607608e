"""Errors of CUDA in words, and which of them a context does not survive."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from eatss.measurement.card import LaunchError

_LOST = frozenset(
    (
        4,  # the driver shuts down
        46,  # devices unavailable
        *(214, 220, 226, 227),  # ECC or NVLink error that could not be corrected, or was contained
        *(700, 702, 709, 710),  # illegal address, launch timeout, context destroyed, assert
        *range(714, 720),  # hardware stack, illegal instruction, alignment, space, pc, failure
        *(721, 999),  # external device, unknown
    )
)
"""Errors after which every call of the process fails (CUDA driver and runtime API, error codes)."""

_OUT_OF_MEMORY = 2


@contextmanager
def translated(doing: str) -> Iterator[None]:
    """Turn errors of CUDA and CuPy into a :class:`LaunchError`; ``doing`` says what was done."""
    try:
        yield
    except LaunchError:
        raise
    except Exception as error:
        found = launch_error(error, doing)
        if found is None:
            raise
        raise found from error


def launch_error(error: Exception, doing: str) -> LaunchError | None:
    """Return an error of CUDA or CuPy as a sentence, ``None`` for any other error."""
    if isinstance(error, MemoryError):
        return LaunchError(f"{doing}: the card's memory is too small ({_one_line(error)})")
    kind, code = type(error).__name__, getattr(error, "status", None)
    if kind == "CompileException":
        return LaunchError(
            f"{doing}: CuPy cannot compile its own kernels ({_one_line(error)}); "
            "install the headers of CUDA: pip install 'cupy-cuda13x[ctk]'"
        )
    if not isinstance(code, int):
        return None
    lost = code in _LOST and kind != "NVRTCError"  # which counts its errors apart
    return LaunchError(f"{doing}: {_one_line(error)}", lost=lost)


def is_out_of_memory(error: Exception) -> bool:
    """Return whether memory was too small."""
    return isinstance(error, MemoryError) or getattr(error, "status", None) == _OUT_OF_MEMORY


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
