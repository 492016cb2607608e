"""Things that are made once, however many threads ask for them at the same time."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

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
