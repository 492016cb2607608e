"""Prices of many batches of layouts by Python once: NumPy's operations are recorded, and run again.

A price is a thousand operations, and Python between them takes longer than they do. So a function
of columns runs once over columns that write down what is computed of them: a list without branches,
in which equal operations are one and no result that is not used is left. For the next batch the
list runs by itself. Decisions by numbers are made by :func:`never` alone: the list checks them, and
is recorded anew for a batch that has what there never was.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Sequence
from itertools import count
from math import inf
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from eatss.base.frozen import Numbers

Step: TypeAlias = tuple[Callable[..., Any], int, Numbers]
"""A function, the place of its result, and those of its operands."""

_Kind = TypeVar("_Kind")

_PLAIN = (np.ndarray, np.generic, int, float, type, str, tuple)

_RECORDED = 128
"""Rows of a batch that a function runs over when it is recorded, about."""

_ADDED = 8
"""Rows that were unlike what was recorded that are recorded, too, of a batch."""


class _UnlikeError(Exception):
    """What was left out concerns some layouts of this batch, by a flag of them."""


class Column(NDArrayOperatorsMixin):
    """A column of numbers that a tape records; ``value`` is that of the batch it records."""

    __slots__ = ("place", "tape", "value")

    def __init__(self, tape: Tape, place: int, value: Any) -> None:
        """Take what is at a place of the tape."""
        self.tape, self.place, self.value = tape, place, value

    def __len__(self) -> int:
        return len(self.value)

    def __bool__(self) -> bool:
        raise TypeError("a decision that no tape can record: never() is for these")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **_: Any) -> Any:
        """Record a function of NumPy; what it would change stays as it is."""
        return self.tape.made(ufunc, inputs) if method == "__call__" else NotImplemented

    def __array_function__(
        self, function: Any, types: Any, arguments: Sequence[Any], named: Any
    ) -> Any:
        """Record ``where`` and ``clip``."""
        return NotImplemented if named else self.tape.made(function, arguments)

    def astype(self, kind: type) -> Any:
        """Record another type of the numbers."""
        return self.tape.made(_as_type, (self, kind))


def _as_type(column: Any, kind: type) -> Any:
    return column.astype(kind)


class Tape:
    """Operations in order, over inputs and constants, which come first."""

    def __init__(self, columns: Iterable[Any]) -> None:
        """Begin with columns of a batch."""
        self.steps: list[Step] = []
        self._known: dict[tuple[Any, ...], Column] = {}
        self._constants: dict[tuple[type, Any], int] = {}
        self._places = count()
        self.forgets: list[Callable[[], None]] = []
        self.inputs = [Column(self, next(self._places), own) for own in columns]

    def made(self, function: Callable[..., Any], inputs: Sequence[Any]) -> Any:
        """Return what a function makes of columns and constants, each once.

        It is not known here where another kind of number is among them.
        """
        places: list[int] = []
        for one in inputs:
            if type(one) is Column:
                places.append(one.place)
            elif isinstance(one, _PLAIN):
                places.append(self._constant(_constant(one)))
            else:
                return NotImplemented
        key = function, *places
        known = self._known.get(key)
        if known is None:
            values = (one.value if type(one) is Column else _constant(one) for one in inputs)
            known = self._known[key] = Column(self, next(self._places), function(*values))
            self.steps.append((function, known.place, tuple(places)))
        return known

    def _constant(self, number: Any) -> int:
        key = type(number), number
        if key not in self._constants:
            self._constants[key] = next(self._places)
        return self._constants[key]

    def forget(self) -> None:
        """Leave all columns, so that nothing waits for Python to look for what it can leave."""
        for one in (self._known.clear, self.inputs.clear, *self.forgets):
            one()

    def ended(self, result: Any) -> Replay:
        """Return what makes a result, without steps that it does not need.

        What is used for the last time is left, so that numbers stay in the processor's cache.
        """
        known = isinstance(result, Column)
        output = result.place if known else self._constant(_constant(result))
        needed = {output}
        steps: list[tuple[Step, Numbers]] = []  # each with what is used there for the last time
        for step in reversed(self.steps):
            if step[1] in needed or step[0] is _refuse:
                steps.append((step, tuple({*step[2]} - needed)))
                needed.update(step[2])
        first: list[Any] = [None] * next(self._places)
        for (_, number), place in self._constants.items():
            first[place] = number
        return Replay(first, steps[::-1], output)


def _constant(one: Any) -> Any:
    """Return a number in the place of a column of equal ones, which goes with any batch."""
    if not isinstance(one, np.ndarray):
        return one
    number = one.flat[0]
    if not np.array_equal(one, np.full_like(one, number), equal_nan=True):
        raise TypeError("a column that is made of no other")
    return number


class Replay:
    """What was recorded: a result of columns, batch after batch."""

    def __init__(self, first: list[Any], steps: list[tuple[Step, Numbers]], output: int) -> None:
        """Take what places hold at first, steps with what each leaves, and where the result is."""
        self.first, self.steps, self.output = first, steps, output

    def result(self, columns: Any) -> Any:
        """Return the result of a batch.

        Raises:
            _UnlikeError: something was left out that concerns it.
        """
        held = [*columns, *self.first[len(columns) :]]
        for (function, place, operands), last in self.steps:
            if len(operands) == 2:  # most are, and a list takes as long as some of them
                one, other = operands
                held[place] = function(held[one], held[other])
            else:
                held[place] = function(*[held[one] for one in operands])
            for one in last:
                held[one] = None
        return np.broadcast_to(held[self.output], columns[0].shape)


class Taped:
    """A function of columns that Python runs through now and then, and a tape for all batches."""

    def __init__(
        self, function: Callable[..., Any], again: float = inf, *, later: bool = False
    ) -> None:
        """Take a function that returns a column, and times as many rows to record it anew.

        What is recorded ``later`` is so for the second batch, of which it takes more rows: the
        first may be the only one.
        """
        self.function, self.again, self.later = function, again, later
        self.rows = self.recorded = 0
        self.seen: list[Any] = []
        self.replay: Replay | None = None

    def __call__(self, *columns: Any) -> Any:
        """Return what the function makes of columns of one length."""
        table = np.stack(columns)
        rows = table.shape[1]
        if not rows:
            return np.empty(0)
        self.rows += rows
        if self.later and self.rows == rows:
            with np.errstate(all="ignore"):
                return np.broadcast_to(self.function(*table), rows)
        if self.replay is not None and self.rows >= self.again * self.recorded:
            self.replay = None
        with np.errstate(all="ignore"):  # what is chosen by rows is computed for all of them
            while True:
                if self.replay is None:
                    self.recorded = self.rows
                    most = 4 * _RECORDED if self.later else _RECORDED
                    self.replay = self._recorded(table[:, :: -(-rows // most)])
                try:
                    return self.replay.result(table)
                except _UnlikeError as error:
                    flag = np.broadcast_to(error.args[0], rows)
                    self.seen.append(table[:, np.flatnonzero(flag)[:_ADDED]])
                    self.replay = None

    def _recorded(self, table: Any) -> Replay:
        """Return what is recorded of some rows, and of those before: what concerned them stays."""
        self.seen.append(table)
        tape, collects = Tape(np.concatenate(self.seen, axis=1)), gc.isenabled()
        gc.disable()  # nothing of all that is made goes before the end
        try:
            return tape.ended(self.function(*tape.inputs))
        finally:
            tape.forget()
            if collects:
                gc.enable()


def never(flag: Any) -> bool:
    """Tell whether something holds for no row, of this batch and of all that are replayed.

    What is computed where it may hold must be right for any rows.
    """
    if not isinstance(flag, Column):
        return not np.any(flag)
    found = not np.any(flag.value)
    if found:
        flag.tape.made(_refuse, (flag,))
    return found


def _refuse(flag: Any) -> None:
    if np.any(flag):
        raise _UnlikeError(flag)


def when_recorded(columns: Iterable[Any], forget: Callable[[], None]) -> None:
    """Call a function when what is computed of columns has been recorded."""
    for tape in {one.tape for one in columns if isinstance(one, Column)}:
        tape.forgets.append(forget)


def whole(function: Callable[..., Any], *inputs: Any) -> Any:
    """Return what a function of columns makes of them, which a tape has as one step."""
    tape = next((one.tape for one in inputs if isinstance(one, Column)), None)
    return function(*inputs) if tape is None else tape.made(function, inputs)


def seen(column: Any) -> Any:
    """Return the numbers of the batch that is recorded, by which no result may be decided."""
    return column.value if isinstance(column, Column) else column
