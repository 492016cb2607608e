"""How results show themselves: a line or two as text, a table in a notebook, rows for tables.

A noun knows no text but its own line. What needs more is found by its name when it is asked for,
because it needs the nouns itself.
"""

from __future__ import annotations

from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from eatss.diagnostics import input_error

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-not-found,import-untyped,unused-ignore]

_NOTEBOOK = "eatss.report.notebook:html_of"
_ROWS = "eatss.table_rows:rows_of"


class Shown:
    """A result that a notebook shows as the table that the command line prints."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        html: str = resolve_name(_NOTEBOOK)(self)
        return html


class Tabular(Shown):
    """A result that is also rows of a table."""

    __slots__ = ()

    def to_rows(self) -> list[dict[str, Any]]:
        """Return it as rows: dictionaries of texts and numbers, with units in the names.

        What was not measured is ``None``. ``polars.DataFrame(result.to_rows())`` takes them.
        """
        rows: list[dict[str, Any]] = resolve_name(_ROWS)(self)
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
