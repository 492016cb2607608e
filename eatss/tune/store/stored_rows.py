"""Nouns of a store as rows of its tables, and back, through :mod:`eatss.base.codec`."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from eatss.base.codec import MisfitError, decode, encode
from eatss.base.diagnostics import InputError, input_error
from eatss.tune.store.faults import damaged, no_store, shown
from eatss.tune.store.nouns import CardSeen, Identity, Row, as_result

T = TypeVar("T")

_Stored = str | int | float | bytes | None


def _plain(value: Any) -> Any:
    """Return a value as SQLite takes it: text that is no Unicode is spelled out."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    return value


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class _Form:
    """How a field stands in its column."""

    write: Callable[[Any], _Stored]
    read: Callable[[Any], Any]


_AS_IT_IS = _Form(_plain, lambda value: value)
_AS_JSON = _Form(_json, json.loads)
_FORMS: Mapping[str, _Form] = {
    "values": _AS_JSON,
    "sizes": _AS_JSON,
    "metrics": _AS_JSON,
    "measurement": _Form(
        lambda value: None if value is None else zlib.compress(_json(value).encode()),
        lambda data: None if data is None else json.loads(zlib.decompress(data)),
    ),
}
_COLUMNS = {one.name: "point" if one.name == "values" else one.name for one in fields(Row)}
"""Columns by fields; ``values`` is a word of SQL."""


def _insert(table: str, columns: Collection[str]) -> str:
    values = ", ".join("?" * len(columns))
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({values})"  # noqa: S608 - our names


INSERT_ROW = _insert("rows", (*_COLUMNS.values(), "checksum"))


def stored_row(row: Row) -> tuple[_Stored, ...]:
    """Return a row as :data:`INSERT_ROW` takes it."""
    plain = encode(row)
    stored = {name: _FORMS.get(name, _AS_IT_IS).write(plain[name]) for name in _COLUMNS}
    return (*stored.values(), _checksum(stored))


def _checksum(stored: Mapping[str, Any]) -> int:
    """Return the checksum of a row as it stands in its columns, but for its measurement.

    SQLite has no NaN, and makes one number of 1 and 1.0, and of 0.0 and -0.0.
    """
    plain = (
        None if value != value else float(value) + 0.0 if isinstance(value, int | float) else value  # noqa: PLR0124
        for name, value in stored.items()
        if name != "measurement"
    )
    return zlib.crc32(repr(list(plain)).encode("utf-8", "surrogateescape"))


def read_rows(
    path: Path,
    connection: sqlite3.Connection,
    *,
    measurements: bool = True,
    left_out: Callable[[int, InputError], None] | None = None,
) -> Iterator[Row]:
    """Yield the rows in their order; without ``measurements``, which take longest, if need be.

    ``left_out`` is told of the numbers of rows that are damaged, and how; else they are errors.

    Raises:
        InputError: ``EATSS-D003``, one cannot be read.
    """
    names = [name for name in _COLUMNS if measurements or name != "measurement"]
    chosen = ", ".join(_COLUMNS[name] for name in names)
    found = connection.execute(f"SELECT id, checksum, {chosen} FROM rows ORDER BY id")  # noqa: S608 - our names
    for number, checksum, *values in found:
        try:
            stored = dict(zip(names, values, strict=True))
            row = _read(path, f"row {number}", Row, stored)
            if checksum not in (None, _checksum(stored)):
                raise damaged(path, f"row {number} is not what was written: its checksum differs")
        except InputError as error:
            if left_out is None:
                raise
            left_out(number, error)
        else:
            yield as_result(row)


_CARD_FIELDS = tuple(one.name for one in fields(CardSeen))

INSERT_CARD = (
    _insert("cards", _CARD_FIELDS)
    + " ON CONFLICT (uuid) DO UPDATE SET "
    + ", ".join(f"{name} = excluded.{name}" for name in _CARD_FIELDS[1:])
)


def stored_card(card: CardSeen) -> tuple[_Stored, ...]:
    """Return a card as :data:`INSERT_CARD` takes it."""
    plain = encode(card)
    return tuple(_plain(plain[name]) for name in _CARD_FIELDS)


def read_cards(path: Path, connection: sqlite3.Connection) -> tuple[CardSeen, ...]:
    """Return the cards, in the order in which they were seen.

    Raises:
        InputError: ``EATSS-D003``, one cannot be read.
    """
    found = connection.execute(f"SELECT {', '.join(_CARD_FIELDS)} FROM cards ORDER BY rowid")  # noqa: S608 - our names
    return tuple(
        _read(path, f"card {at}", CardSeen, dict(zip(_CARD_FIELDS, stored, strict=True)))
        for at, stored in enumerate(found)
    )


def stored_identity(identity: Identity) -> list[tuple[str, str]]:
    """Return the rows of the table ``identity``."""
    return [(name, _json(value)) for name, value in encode(identity).items()]


def read_identity(path: Path, connection: sqlite3.Connection) -> Identity:
    """Return what the store is of.

    Raises:
        InputError: ``EATSS-D003``, it cannot be read.
    """
    found = dict(connection.execute("SELECT field, value FROM identity"))
    return _read(path, "its identity", Identity, found, _AS_JSON)


def read_space(path: Path, connection: sqlite3.Connection) -> str:
    """Return the text of the space.

    Raises:
        InputError: ``EATSS-D003``, there is none.
    """
    found = connection.execute("SELECT text FROM space").fetchone()
    if found is None or not isinstance(found[0], str):
        raise damaged(path, "it has no space")
    try:
        _check_text("text", found[0])
    except ValueError as error:
        raise damaged(path, f"its space: {error}") from None
    return found[0]


def _check_text(name: str, value: str) -> None:
    """Refuse text with bytes that are no UTF-8."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(f"column '{name}' has a byte that is no UTF-8") from None


def _read(
    path: Path, what: str, kind: type[T], stored: Mapping[str, Any], form: _Form | None = None
) -> T:
    try:
        for name, value in stored.items():
            if isinstance(value, str):
                _check_text(name, value)
        plain = {
            name: (form or _FORMS.get(name, _AS_IT_IS)).read(value)
            for name, value in stored.items()
        }
        return decode(kind, plain)
    except (MisfitError, ValueError, TypeError, zlib.error, RecursionError) as error:
        raise damaged(path, f"{what}: {error}") from None


APPLICATION_ID = 0x65617473
"""``eats``: what tells a store from other databases of SQLite (``file`` shows it)."""

VERSION = 2

TABLES = """
CREATE TABLE identity (
    field TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE space (
    text TEXT NOT NULL
);
CREATE TABLE cards (
    uuid TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    host TEXT NOT NULL,
    compute_capability INTEGER,
    driver TEXT,
    power_limit_w REAL,
    idle_power_w REAL
);
CREATE TABLE rows (
    id INTEGER PRIMARY KEY,
    variant TEXT NOT NULL,
    point TEXT NOT NULL,
    status TEXT NOT NULL,
    role TEXT NOT NULL,
    stage TEXT NOT NULL,
    card TEXT,
    reason TEXT NOT NULL,
    sizes TEXT NOT NULL,
    time_s REAL,
    energy_j REAL,
    power_w REAL,
    time_error REAL,
    energy_error REAL,
    flops INTEGER,
    metrics TEXT NOT NULL,
    decided TEXT NOT NULL,
    made_s REAL NOT NULL,
    card_s REAL NOT NULL,
    card_j REAL,
    at_s REAL NOT NULL,
    strategy TEXT NOT NULL,
    created TEXT NOT NULL,
    measurement BLOB,
    checksum INTEGER
);
CREATE INDEX rows_of_a_variant ON rows (variant);
"""
"""``value`` of ``identity``, ``point``, ``sizes`` and ``metrics`` are JSON; ``measurement`` is JSON
that zlib has packed (5 to 1), or nothing. ``checksum`` is that of the other columns of a row, which
rows of version 1 do not have; zlib has its own of a measurement."""

MIGRATIONS: Mapping[int, str] = {1: "ALTER TABLE rows ADD COLUMN checksum INTEGER;\n"}
"""By the version that a store has: the SQL that makes it one of the next version.

What changes a column of rows that are there sets their ``checksum`` to NULL.
"""


def create_tables(connection: sqlite3.Connection) -> None:
    """Make the tables; the caller has begun a transaction."""
    _run(connection, TABLES)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {VERSION}")


def is_empty(connection: sqlite3.Connection) -> bool:
    """Return whether nothing was ever made in a database."""
    count = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    return bool(count == 0 and _number(connection, "application_id") == 0)


def version_of(path: Path, connection: sqlite3.Connection, newest: int = VERSION) -> int:
    """Return the version of a store.

    Raises:
        InputError: ``EATSS-D002``, it is none; ``EATSS-D004``, a newer eatss wrote it.
    """
    if is_empty(connection):
        raise no_store(path, "it is empty")
    if _number(connection, "application_id") != APPLICATION_ID:
        raise no_store(path, "it is a database of something else")
    found = _number(connection, "user_version")
    if found > newest:
        raise input_error(
            "EATSS-D004",
            f"the store '{shown(path)}' has version {found}; this eatss reads those up to {newest}",
            hint="a newer eatss wrote it: take that one",
        )
    return found


def migrate(
    connection: sqlite3.Connection,
    found: int,
    newest: int = VERSION,
    migrations: Mapping[int, str] = MIGRATIONS,
) -> None:
    """Make a store one of the newest version, step by step; the caller has begun a transaction."""
    for version in range(found, newest):
        _run(connection, migrations[version])
        connection.execute(f"PRAGMA user_version = {version + 1}")


def _number(connection: sqlite3.Connection, pragma: str) -> int:
    found: int = connection.execute(f"PRAGMA {pragma}").fetchone()[0]
    return found


def _run(connection: sqlite3.Connection, script: str) -> None:
    """Run statements inside a transaction, which ``executescript`` would end."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            connection.execute(statement)
            statement = ""
    assert not statement.strip(), "the last statement has no semicolon"
