"""What the user chooses of a callable.

Things that are made once, however many threads ask for them at the same time.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
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
        specialize: Compile sizes into the machine code: fastest, and compiled again for other
            sizes. ``False`` compiles once for all sizes of a class.
        exact_sizes: Select for the very sizes of a call, not for their class.
        tune: Time to measure the model's best candidates in, on the first call with a class of
            sizes: ``"30s"``, ``"2m"`` or seconds. The winner is kept on disk.
    """

    specialize: bool = True
    tune: str | float | None = None

    exact_sizes: bool = False

    def __post_init__(self) -> None:
        for name in ("specialize", "exact_sizes"):
            value = getattr(self, name)
            if not isinstance(value, bool):
                raise input_error("EATSS-C004", f"{name} is {value!r}", hint="give True or False")
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
    """Things by key: who asks first makes one, others wait for it; what fails is tried again.

    Args:
        most: how many are kept; those not asked for longest go.
        dropped: called with each that goes.
    """

    def __init__(self, most: int, dropped: Callable[[T], None] | None = None) -> None:
        self._most = most
        self._dropped = dropped
        self._things: OrderedDict[Hashable, T] = OrderedDict()
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
        found = self._known(key)
        if found is not None:
            return found[0]
        with self._lock:
            making = self._making.setdefault(key, threading.Lock())
        with making:
            found = self._known(key)
            if found is not None:
                return found[0]
            try:
                thing = make()
            except BaseException:
                with self._lock:
                    self._making.pop(key, None)
                raise
            gone: list[T] = []
            with self._lock:
                self._things[key] = thing
                self._making.pop(key, None)
                while len(self._things) > self._most:
                    gone.append(self._things.popitem(last=False)[1])
        if self._dropped is not None:
            for one in gone:
                self._dropped(one)
        return thing

    def clear(self) -> None:
        """Forget all."""
        with self._lock:
            gone = tuple(self._things.values())
            self._things.clear()
        if self._dropped is not None:
            for one in gone:
                self._dropped(one)

    def _known(self, key: Hashable) -> tuple[T] | None:
        with self._lock:
            if key not in self._things:
                return None
            self._things.move_to_end(key)
            return (self._things[key],)
