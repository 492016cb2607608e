"""Calls like those before: all was checked then, so that little is left to look at.

What calls are told apart by is read from the arrays themselves, in tenths of a microsecond each.
Whatever is not as before is left to the slow way, which says what is wrong.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from itertools import combinations
from math import prod
from typing import Any

from eatss.session.jit.arrays import ArrayView, Reader, note_written, reader_of
from eatss.session.jit.card import KEYWORD, CardPlan, stream_of_call, wait_for_others, written_on
from eatss.session.jit.signature import CallSignature, sizes_of

_MOST_SEEN = 4096


@dataclass(frozen=True, slots=True)
class _Bound:
    """What is known of calls with arguments of some shapes and types.

    ``spans`` are pairs of arrays by their places that must not overlap, with their bytes.
    ``written_on`` are streams of other libraries that are to be waited for.
    """

    plan: CardPlan
    spans: tuple[tuple[int, int, int, int], ...]
    written_on: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Names:
    """The arguments that a call has, and those of each kind in the order of the signature."""

    known: frozenset[str]
    arrays: tuple[str, ...]
    scalars: tuple[str, ...]
    sizes: tuple[str, ...]
    written: tuple[str, ...]

    @classmethod
    def of(cls, signature: CallSignature) -> _Names:
        return cls(
            known=frozenset(one.name for one in signature.arguments),
            arrays=tuple(one.name for one in signature.of_role("array", "cell")),
            scalars=tuple(one.name for one in signature.of_role("scalar")),
            sizes=tuple(one.name for one in sizes_of(signature)),
            written=signature.written,
        )


class KnownCalls:
    """The calls of one callable on cards; safe from several threads at once."""

    def __init__(self) -> None:
        self._seen: dict[Hashable, _Bound] = {}
        self._readers: dict[type, Reader] = {}
        self._names: _Names | None = None
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._seen)

    def launch(self, values: Mapping[str, Any]) -> bool:
        """Launch a call if there was one like it; tell whether there was.

        Args:
            values: all arguments by name.

        Raises:
            InputError: ``EATSS-J011``, ``J016``, ``J019`` or ``J021``, as for any call.
        """
        names = self._names
        if names is None:
            return False
        pointers: list[int] = []
        key: list[Hashable] = []
        try:
            for name in names.arrays:
                value = values[name]
                pointer, seen = self._readers[type(value)](value)
                pointers.append(pointer)
                key.append(seen)
            key.extend(map(values.get, names.sizes))
            bound = self._seen[tuple(key)]
        except (KeyError, TypeError, RuntimeError):
            return False
        scalars = [values.get(name) for name in names.scalars]
        missing = 0 in pointers or any(one is None for one in scalars)
        if missing or values.keys() - names.known - {KEYWORD}:
            return False
        for one, its, other, others in bound.spans:
            a, b = pointers[one], pointers[other]
            if a < b + others and b < a + its:
                return False
        device = bound.plan.device
        given = None if KEYWORD in names.known else values.get(KEYWORD)
        stream = stream_of_call(given, values, names.arrays, device)
        if bound.written_on:
            wait_for_others(bound.written_on, stream, device)
        bound.plan.launch(pointers, scalars, stream)
        note_written(values, names.written)
        return True

    def note(
        self,
        signature: CallSignature,
        plan: CardPlan,
        values: Mapping[str, Any],
        views: Mapping[str, ArrayView],
    ) -> None:
        """Remember a call that was checked, if its arrays are of kinds that are quick to read."""
        names = _Names.of(signature)
        readers = {type(values[name]): reader_of(values[name]) for name in names.arrays}
        key: list[Hashable] = []
        for name in names.arrays:
            reader = readers[type(values[name])]
            if reader is None:
                return
            try:
                key.append(reader(values[name])[1])
            except KeyError:  # it has a mask
                return
        key.extend(map(values.get, names.sizes))
        bound = _Bound(plan, tuple(_spans(signature, views)), written_on(views.values()))
        with self._lock:
            if len(self._seen) >= _MOST_SEEN:
                self._seen.clear()
            self._readers.update({kind: one for kind, one in readers.items() if one is not None})
            self._seen[tuple(key)] = bound
            self._names = names

    def forget(self, plan: CardPlan) -> None:
        """Forget the calls that a plan is for."""
        with self._lock:
            for key in [key for key, bound in self._seen.items() if bound.plan is plan]:
                del self._seen[key]

    def clear(self) -> None:
        """Forget all."""
        with self._lock:
            self._seen.clear()


def _spans(
    signature: CallSignature, views: Mapping[str, ArrayView]
) -> list[tuple[int, int, int, int]]:
    """Return the pairs of arrays of which one is written: places and bytes of both."""
    sized = [
        (place, prod(views[one.name].shape) * one.dtype.itemsize, one.writes)
        for place, one in enumerate(signature.of_role("array", "cell"))
    ]
    return [
        (a, a_bytes, b, b_bytes)
        for (a, a_bytes, a_written), (b, b_bytes, b_written) in combinations(sized, 2)
        if a_written or b_written
    ]
