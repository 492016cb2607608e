"""Rows of a store's tables from nouns and back, and the file opened to write or to read.

Nothing here opens the file itself, only SQLite does: as soon as a process closes any descriptor of
a file, all its record locks on it go, those of SQLite too.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import stat
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from eatss.base.codec import MisfitError, decode, encode
from eatss.base.diagnostics import InputError, input_error
from eatss.tune.faults import damaged, faults_told, no_store, shown, unusable
from eatss.tune.rows import CardSeen, Identity, Row, as_result

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
        InputError: ``EATSS-D002``, it is none, or a newer eatss wrote it.
    """
    if is_empty(connection):
        raise no_store(path, "it is empty")
    if _number(connection, "application_id") != APPLICATION_ID:
        raise no_store(path, "it is a database of something else")
    found = _number(connection, "user_version")
    if found > newest:
        raise input_error(
            "EATSS-D002",
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


_WAITS_S = 10.0
_NETWORK = ("nfs", "cifs", "smb", "lustre", "gpfs", "beegfs", "ceph", "9p", "afs", "fuse.sshfs")
"""Beginnings of names of file systems that several hosts share."""


def no_folder(place: Path) -> InputError:
    """Return the error of a store in a folder that is not there."""
    return input_error(
        "EATSS-D001",
        f"there is no folder '{shown(place.parent)}' for the store",
        hint="make it first, or name another file with -o",
    )


def real_path(path: str | os.PathLike[str]) -> Path:
    """Return where a store is, links followed.

    Raises:
        InputError: ``EATSS-D001``, the name is empty; ``EATSS-D002``, it is no file's.
    """
    if not os.fspath(path):
        raise input_error("EATSS-D001", "the store has no name", hint="name a file: 2mm.db")
    try:
        found = Path(os.path.realpath(path))
        mode = found.stat().st_mode if found.exists() else None
    except (OSError, ValueError) as error:
        raise unusable(Path(path), str(error)) from None
    if mode is not None and not stat.S_ISREG(mode):
        what = "a folder" if stat.S_ISDIR(mode) else "no regular file"
        raise no_store(Path(path), f"it is {what}")
    return found


def opened_to_write(path: Path, identity: Identity, space: str) -> sqlite3.Connection:
    """Return a connection to a store; the caller holds the lock.

    If it is not there, it is made, of ``identity`` and ``space``.

    Each statement is a transaction that is on the disk when it returns: ``synchronous`` is FULL,
    so that a loss of power takes nothing away either. A log (WAL) lets others read meanwhile. It
    needs memory that all its users share, so on a file system of several hosts there is a journal
    instead, and readers wait while a row is written.

    Raises:
        InputError: ``EATSS-D002`` to ``EATSS-D007``.
    """
    with faults_told(path):
        connection = _connected(path, "mode=rwc")
        try:
            _prepare(path, connection, identity, space)
        except BaseException:
            connection.close()
            raise
    return connection


@contextmanager
def opened_to_read(path: Path) -> Iterator[sqlite3.Connection]:
    """Give a connection that sees the store as it is now, whoever writes to it meanwhile.

    Raises:
        InputError: ``EATSS-D001`` to ``EATSS-D007``.
    """
    if not path.exists():
        raise input_error(
            "EATSS-D001", f"there is no store '{shown(path)}'", hint="'eatss sweep -o' makes one"
        )
    with faults_told(path), _reading(path) as connection:
        found = version_of(path, connection)
        if found == VERSION:
            connection.execute("BEGIN")
            yield connection
            return
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as copy:
            connection.backup(copy)
            migrate(copy, found)
            copy.text_factory = _any_text
            yield copy


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Keep all that is done within, or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    with connection:
        yield


def _prepare(path: Path, connection: sqlite3.Connection, identity: Identity, space: str) -> None:
    new = is_empty(connection)
    if not new:
        version_of(path, connection)  # what is no store stays as it is
    connection.execute(f"PRAGMA journal_mode = {'DELETE' if on_network(path) else 'WAL'}")
    connection.execute("PRAGMA synchronous = FULL")
    with transaction(connection):
        if new:
            create_tables(connection)
            connection.executemany(
                "INSERT INTO identity (field, value) VALUES (?, ?)", stored_identity(identity)
            )
            connection.execute("INSERT INTO space (text) VALUES (?)", (space,))
        else:
            migrate(connection, version_of(path, connection))
    if not new:
        (word,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if word != "ok":
            raise damaged(path, str(word))


@contextmanager
def _reading(path: Path) -> Iterator[sqlite3.Connection]:
    """Give a connection that only reads.

    It is opened to write where that may be: else it would leave the files of the log behind. In a
    folder that may not be written to, SQLite cannot make the index of a log. Where there is
    no log the file is read as one that nobody changes, else a copy of both is.
    """
    connection = _connected(path, "mode=rw")
    try:
        try:
            connection.execute("PRAGMA query_only = ON")
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.OperationalError as error:
            cannot = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
            if (error.sqlite_errorcode & 0xFF) not in cannot or not os.access(path, os.R_OK):
                raise
        else:
            yield connection
            return
    finally:
        connection.close()
    log = path.with_name(f"{path.name}-wal")
    if not log.exists() or log.stat().st_size == 0:
        with closing(_connected(path, "immutable=1")) as connection:
            yield connection
        return
    with TemporaryDirectory(prefix="eatss-store-") as folder:
        for part in (path, log):
            shutil.copyfile(part, Path(folder) / part.name)
        with closing(_connected(Path(folder) / path.name, "mode=rw")) as connection:
            yield connection


def _connected(path: Path, how: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.as_uri()}?{how}",
        uri=True,
        timeout=_WAITS_S,
        isolation_level=None,
        check_same_thread=False,
    )
    connection.text_factory = _any_text
    return connection


def _any_text(data: bytes) -> str:
    """Return text that may be no UTF-8: who reads a row says so of it."""
    return data.decode("utf-8", "surrogateescape")


def on_network(path: Path, mounts: Path = Path("/proc/self/mountinfo")) -> bool:
    """Return whether several hosts may share the file system of a path, as far as that is known."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return False
    best, kind = -1, ""
    for line in lines:
        before, _, after = line.partition(" - ")
        point = before.split()[4].encode("utf-8", "surrogateescape").decode("unicode_escape")
        if path.is_relative_to(point) and len(point) >= best:
            best, kind = len(point), after.split()[0]
    return kind.startswith(_NETWORK)
