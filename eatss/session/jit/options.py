"""What the user chooses of a callable.

Things that are made once, however many threads ask for them at the same time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from eatss.base.diagnostics import input_error
from eatss.base.frozen import frozen
from eatss.base.text import duration_s

LEAST_TUNE_S = 20.0
"""The shortest time in which two candidates are measured."""


@frozen
class CallOptions:
    """How a callable is compiled and kept.

    Attributes:
        exact_sizes: Select for the very sizes of a call, not for their class.
        tune: Time to measure the model's best candidates in, on the first call with a class of
            sizes: ``"30s"``, ``"2m"`` or seconds. The winner is kept on disk.
    """

    tune: str | float | None = None
    exact_sizes: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.exact_sizes, bool):
            message = f"exact_sizes is {self.exact_sizes!r}"
            raise input_error("EATSS-C004", message, hint="give True or False")
        self.tune_s()

    def tune_s(self) -> float | None:
        """Return the seconds to measure in; ``None`` for no measuring.

        Raises:
            InputError: ``EATSS-J020``, it is no time.
        """
        if self.tune is None:
            return None
        seconds = duration_s(str(self.tune))
        if not seconds:
            raise input_error(
                "EATSS-J020", f"tune is {self.tune!r}, which is no time", hint="write tune='30s'"
            )
        if seconds < LEAST_TUNE_S:
            raise input_error(
                "EATSS-J020",
                f"tune is {self.tune!r}, which is too short to compile and measure two candidates",
                hint=f"give at least tune='{LEAST_TUNE_S:.0f}s'",
            )
        return seconds


T = TypeVar("T")


class Once(Generic[T]):
    """Things by key: who asks first makes one, others wait for it; what fails is tried again."""

    def __init__(self) -> None:
        self._things: dict[Hashable, T] = {}
        self._making: dict[Hashable, threading.Lock] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._things)

    def values(self) -> tuple[T, ...]:
        """Return what is there."""
        with self._lock:
            return tuple(self._things.values())

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the thing of a key, made if need be."""
        with self._lock:
            making = self._making.setdefault(key, threading.Lock())
        with making:
            thing = self._things.get(key)
            if thing is None:
                thing = make()
                with self._lock:
                    self._things[key] = thing
            return thing

    def clear(self) -> None:
        """Forget all."""
        with self._lock:
            self._things.clear()
