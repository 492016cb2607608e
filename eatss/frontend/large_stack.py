"""Runs a function on a thread with a large stack, for texts whose depth libclang recurses over."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import TypeVar

_Result = TypeVar("_Result")
_STACK_BYTES = 512 * 1024 * 1024


def on_large_stack(function: Callable[[], _Result]) -> _Result:
    """Return what ``function`` returns, or raise what it raises.

    libclang parses on a thread of its own with a small stack unless ``LIBCLANG_NOTHREADS`` is
    set, and offers no other way to ask for more; so the variable is set for the rest of the
    process. It changes where libclang runs, not what it does. The memory of the stack is only
    reserved; what is not used is never touched.
    """
    os.environ["LIBCLANG_NOTHREADS"] = "1"
    results: list[_Result] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(function())
        except BaseException as error:
            errors.append(error)

    before = threading.stack_size(_STACK_BYTES)
    try:
        thread = threading.Thread(target=run, name="eatss-frontend")
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    if errors:
        raise errors[0]
    return results[0]
