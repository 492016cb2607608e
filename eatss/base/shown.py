"""How results show themselves: in a line or two, as a table in a notebook, as rows of a table.

A noun knows its own line only. What makes its table it names, and that is found when it is asked
for, because it needs the noun itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, ClassVar

from eatss.base.diagnostics import input_error

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-not-found,import-untyped,unused-ignore]

_NOTEBOOK = "eatss.report.render:html_of"

_LINES = 8
"""Lines of a result that has a line for each of many parts."""


class Shown:
    """A result that a notebook shows as the table that the command line prints."""

    __slots__ = ()

    shown_by: ClassVar[str]
    """``module:function`` that makes the table."""

    def _repr_html_(self) -> str:
        html: str = resolve_name(_NOTEBOOK)(parts_of(self))
        return html


def parts_of(noun: Shown) -> Any:
    """Return what is told of a result, part by part."""
    return resolve_name(noun.shown_by)(noun)


class Tabular(Shown):
    """A result that is also rows of a table."""

    __slots__ = ()

    rows_by: ClassVar[str]
    """``module:function`` that makes the rows."""

    def to_rows(self) -> list[dict[str, Any]]:
        """Return it as rows: dictionaries of texts and numbers, with units in the names.

        What was not measured is ``None``. ``polars.DataFrame(result.to_rows())`` takes them.
        """
        rows: list[dict[str, Any]] = resolve_name(self.rows_by)(self)
        return rows

    def to_dataframe(self) -> pd.DataFrame:
        """Return the rows of :meth:`to_rows` as a data frame of pandas.

        Raises:
            InputError: ``EATSS-C021``, pandas is not installed.
        """
        try:
            import pandas  # noqa: PLC0415 - an extra
        except ImportError:
            raise input_error(
                "EATSS-C021",
                "data frames need pandas, which is not installed",
                hint="pip install 'eatss[pandas]'; without it: to_rows()",
            ) from None
        return pandas.DataFrame(self.to_rows())


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
