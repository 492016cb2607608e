"""How results show themselves: in a line or two, as a table in a notebook, as rows of a table.

A noun knows its own line only, and names the page that makes its table. :class:`ExpectedRun` is
what one run of a program is expected to take on a card, in words ``5.503 ms, 3.108 J``.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pkgutil import resolve_name
from typing import ClassVar, Protocol

from eatss.base.codec import JsonObject
from eatss.base.frozen import complete, frozen, their_names

_NOTEBOOK = "eatss.report.pages:html_of"

_LINES = 8
"""Lines of a result that has a line for each of many parts."""


class Shown:
    """A result that a notebook shows as the table that the command line prints."""

    __slots__ = ()

    shown_by: ClassVar[str]
    """Name of the page that it is shown by, of those in ``eatss/report/templates``."""

    def _repr_html_(self) -> str:
        html: str = resolve_name(_NOTEBOOK)(self)
        return html


class Tabular(Shown):
    """A result that is also rows of a table."""

    __slots__ = ()

    rows_by: ClassVar[str]
    """``module:function`` that makes the rows."""

    def to_rows(self) -> list[JsonObject]:
        """Return it as rows: dictionaries of texts and numbers, with units in the names.

        What was not measured is ``None``. ``DataFrame(result.to_rows())``, of pandas or polars,
        takes them.
        """
        rows: list[JsonObject] = resolve_name(self.rows_by)(self)
        return rows


def in_lines(head: str, parts: Sequence[str]) -> str:
    """Return a text in angle brackets: a head, and a line for each part as far as there is room."""
    shown = list(parts[:_LINES])
    if len(parts) > _LINES:
        shown.append(f"… {len(parts) - _LINES} more")
    return "<" + "\n  ".join((head, *shown)) + ">"


def figure(value: float | None, unit: str, factor: float = 1.0) -> str:
    """Return a number with its unit, ``- J`` where there is none."""
    return f"{'-' if value is None else format(value * factor, '.4g')} {unit}"


def time_text(seconds: float | None) -> str:
    """Return a time in the unit that suits, ``54.90 µs``; ``-`` for none."""
    return _amount(
        seconds,
        (("h", 3600.0), ("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9), ("ps", 1e-12)),
    )


def energy_text(joules: float | None) -> str:
    """Return an energy in the unit that suits, ``22.30 kJ``; ``-`` for none."""
    return _amount(joules, (("MJ", 1e6), ("kJ", 1e3), ("J", 1.0), ("mJ", 1e-3), ("µJ", 1e-6)))


def _amount(value: float | None, units: tuple[tuple[str, float], ...]) -> str:
    if value is None:
        return "-"
    unit, size = next((one for one in units if abs(value) >= one[1]), units[-1])
    amount = value / size
    four_digits = f"{amount:#.4g}".rstrip(".")
    return f"{four_digits if abs(amount) < 1000 else f'{amount:.0f}'} {unit}"


def pairs_text(pairs: Sequence[tuple[str, int]]) -> str:
    """Return names and numbers, ``i 16, j 384``."""
    return ", ".join(f"{name} {value}" for name, value in pairs)


FAR = 100
"""So many times the time at the roofline is not told without a word."""


@frozen
class ExpectedRun:
    """Time and energy of a run, in s and J, at some sizes of the program.

    ``host_time_s`` is the part of the time that statements on the host take, at least; the energy
    is the card's. ``least_time_s`` is the time of the work at the roofline of the card.
    """

    time_s: float
    energy_j: float
    least_time_s: float
    sizes: tuple[ProgramSize, ...] = ()
    host_time_s: float = 0.0

    def __str__(self) -> str:
        return f"{self.amounts} {sizes_text(self.sizes)}{self.distance}"

    @property
    def distance(self) -> str:
        """How far it is from the roofline as text, where that is very far."""
        if self.times_least < FAR:
            return ""
        least = time_text(self.least_time_s)
        return (
            f"; {self._at_least}{self.times_least:.0f} times the least time of this work, {least}"
        )

    @property
    def amounts(self) -> str:
        """Time and energy as text."""
        card = f", {energy_text(self.energy_j)}" if self.energy_j else ""
        return f"{self.time_words}{card}"

    @property
    def time_words(self) -> str:
        """The time as text: ``at least`` so much where the host is in it."""
        return f"{self._at_least}{time_text(self.time_s)}"

    @property
    def _at_least(self) -> str:
        return "at least " if self.host_time_s else ""

    @property
    def times_least(self) -> float:
        """How many times the least time of the work it takes; 0 where that is not known."""
        return self.time_s / self.least_time_s if self.least_time_s else 0.0


class OfRun:
    """Has time and energy of what a run of a program is ``expected`` to take."""

    __slots__ = ()

    @property
    def expected(self) -> ExpectedRun | None:
        """What a run takes, ``None`` where that is not known of all of it."""
        raise NotImplementedError

    @property
    def time_s(self) -> float | None:
        """Time of a run, that of the host with its least, ``None`` where it is not known."""
        return None if self.expected is None else self.expected.time_s

    @property
    def energy_j(self) -> float | None:
        """Energy of the card in a run, likewise."""
        return None if self.expected is None else self.expected.energy_j


class Amounts(Protocol):
    """What a kernel is expected to take."""

    @property
    def time_s(self) -> float:
        """Time over all launches."""
        ...

    @property
    def energy_j(self) -> float:
        """Energy over all launches."""
        ...


class Predictable(Protocol):
    """A kernel, and why nothing is predicted of it."""

    @property
    def name(self) -> str:
        """What the kernel is called."""

    @property
    def note(self) -> str | None:
        """Why nothing is predicted, where that is so."""

    @property
    def predicted(self) -> Amounts | None:
        """What it is expected to take."""


def why_unknown(kernels: Sequence[Predictable]) -> str:
    """Return why it is not known what a run takes that :func:`run_of` has nothing of."""
    for kernel in kernels:
        if kernel.predicted is None:
            why = f": {kernel.note}" if kernel.note else ""
            return f"not known, because {kernel.name} is not predicted{why}"
    return "not known, because what the host runs cannot be counted"


def run_of(
    kernels: Sequence[Amounts | None],
    *,
    host_time_s: float | None,
    least_time_s: float,
    sizes: tuple[ProgramSize, ...],
) -> ExpectedRun | None:
    """Return what a run takes, ``None`` where something of it is not known, or does not launch."""
    known = complete(kernels)
    if host_time_s is None or known is None:
        return None
    return ExpectedRun(
        time_s=sum(one.time_s for one in known) + host_time_s,
        energy_j=sum(one.energy_j for one in known),
        least_time_s=least_time_s,
        sizes=sizes,
        host_time_s=host_time_s,
    )


@frozen
class ProgramSize:
    """A size of a program by its name in the source; ``assumed`` where nothing says its value."""

    name: str
    value: int
    assumed: bool = False


def sizes_text(sizes: Sequence[ProgramSize]) -> str:
    """Return the sizes that a prediction is for, ``at T=20, n=4096 assumed, --param n=…``."""
    if not sizes:
        return "at the sizes in the source"
    given = [one for one in sizes if not one.assumed]
    assumed = [one for one in sizes if one.assumed]
    parts = _equations(given)
    if assumed:
        parts += [
            f"{' '.join(_equations(assumed))} assumed",
            " ".join(f"--param {one.name}=…" for one in assumed),
        ]
    return f"at {', '.join(parts)}"


def _equations(sizes: Sequence[ProgramSize]) -> list[str]:
    """Return sizes as texts, neighbours of one value together."""
    return [
        f"{'='.join(their_names(same))}={value}"
        for value, same in groupby(sizes, key=lambda one: one.value)
    ]
