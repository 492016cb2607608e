"""The tables of a store, and how one of an older version becomes one of this."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from pathlib import Path

from eatss.diagnostics import input_error
from eatss.store.faults import no_store, shown

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
