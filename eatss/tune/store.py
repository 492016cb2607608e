"""``Store``: the rows of a sweep in a file of SQLite, each on the disk as soon as it is added.

Locks are SQLite's own: a row is a transaction, and others read between two of them.
"""

from __future__ import annotations

import json
import re
import sqlite3
import tomllib
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

from eatss.base.codec import MisfitError, decode, encode
from eatss.base.diagnostics import Diagnostic, InputError, Severity, input_error
from eatss.base.files import StrPath
from eatss.base.shipped import located_sweep
from eatss.base.text import equations
from eatss.tune.rows import CardSeen, Identity, Row, Rows, Sweep

APPLICATION_ID = 0x65617473
"""``eats``: what tells a store from other databases of SQLite (``file`` shows it)."""

VERSION = 2
_WAITS_S = 60.0
_UNWRITTEN = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)

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
    measurement BLOB
);
CREATE INDEX rows_of_a_variant ON rows (variant);
"""
"""``value`` of ``identity``, ``point``, ``sizes`` and ``metrics`` are JSON; ``measurement`` is JSON
that zlib has packed (5 to 1), or nothing. Stores of before may have a column ``checksum``."""

_JSON = ("values", "sizes", "metrics")
_COLUMNS = {one.name: "point" if one.name == "values" else one.name for one in fields(Row)}
"""Columns by fields; ``values`` is a word of SQL."""

_CARD_FIELDS = tuple(one.name for one in fields(CardSeen))


def _insert(table: str, values: Mapping[str, Any]) -> tuple[str, list[Any]]:
    """Return what adds a row to a table; text that is no Unicode is spelled out."""
    places = ", ".join("?" * len(values))
    plain = [
        one.encode("utf-8", "backslashreplace").decode() if isinstance(one, str) else one
        for one in values.values()
    ]
    text = f"INSERT OR REPLACE INTO {table} ({', '.join(values)}) VALUES ({places})"  # noqa: S608 - our names
    return text, plain


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _stored(row: Row) -> dict[str, Any]:
    """Return a row as it stands in the columns of its table."""
    plain = encode(row)
    plain |= {name: _json(plain[name]) for name in _JSON}
    if plain["measurement"] is not None:
        plain["measurement"] = zlib.compress(_json(plain["measurement"]).encode())
    return {column: plain[name] for name, column in _COLUMNS.items()}


def _row(names: Iterable[str], values: Iterable[Any]) -> Row:
    """Return the row of some of its columns, by the names of its fields."""
    plain = dict(zip(names, values, strict=True))
    plain |= {name: json.loads(plain[name]) for name in _JSON}
    if plain.get("measurement") is not None:
        plain["measurement"] = json.loads(zlib.decompress(plain["measurement"]))
    return decode(Row, plain)


@contextmanager
def _faults(path: Path, what: str = "") -> Iterator[None]:
    """Turn errors of SQLite, of the system and of what stands in a store into those of a user."""
    try:
        yield
    except (sqlite3.Error, OSError, OverflowError, MisfitError, ValueError, zlib.error) as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK) & 0xFF
        if code == sqlite3.SQLITE_NOTADB:
            raise _no_store(path, "it is no database of SQLite") from None
        of_content = not isinstance(error, sqlite3.Error | OSError | OverflowError)
        is_damaged = code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_ERROR)
        if of_content or is_damaged or "Could not decode" in str(error):
            raise input_error(
                "EATSS-D002",
                f"the store '{path}' is damaged: {what}{error}",
                hint="sqlite3 OLD.db .recover | sqlite3 NEW.db saves what can be saved",
            ) from None
        raise input_error(
            "EATSS-D005",
            f"the store '{path}' cannot be used: {error}",
            hint="see that there is room, that you may write to its folder, and that no other "
            "program holds it; all rows of before are kept",
        ) from None


def _no_store(path: Path, why: str) -> InputError:
    return input_error(
        "EATSS-D002",
        f"'{path}' is no store of eatss: {why}",
        hint="name a file that 'eatss sweep -o' made, or a new one to write to",
    )


def store_place(path: StrPath) -> Path:
    """Return where a store is, or can be made.

    Raises:
        InputError: ``EATSS-D001``, there is no such folder; ``EATSS-D002``, it is no file.
    """
    place = Path(path)
    if not place.parent.is_dir():
        raise input_error(
            "EATSS-D001",
            f"there is no folder '{place.parent}' for the store",
            hint="make it first, or name another file with -o",
        )
    if place.exists() and not place.is_file():
        raise _no_store(place, "it is no regular file")
    return place


def _connected(path: Path, how: str) -> sqlite3.Connection:
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?{how}", uri=True, timeout=_WAITS_S, isolation_level=None
    )


class Store:
    """A store that is open to be written.

        with Store.create_or_resume("2mm.db", identity, space_text) as store:
            known = store.rows()
            store.add(row)

    ``path`` is its file.
    """

    def __init__(self, path: Path, how: str) -> None:
        self.path = path
        self._connection = _connected(path, how)

    @classmethod
    def create_or_resume(cls, path: StrPath, identity: Identity, space: str) -> Store:
        """Open a store to add to it; make it if it is not there.

        ``space`` takes the place of the text that is kept, if its variables have the same names:
        a space may grow from session to session, and rows outside of it stay.

        Raises:
            InputError: there is no folder (``EATSS-D001``); the file is no store or of a newer
                eatss or damaged (``D002``) or cannot be used (``D005``); it is of
                something else, or of a space of other variables (``D010``).
        """
        place = store_place(path)
        with _faults(place), ExitStack() as opened:
            store = opened.enter_context(cls(place, "mode=rwc"))
            store._connection.execute("BEGIN IMMEDIATE")
            with store._connection:
                store._make(identity, space)
                store._check_version()
                check_identity(place, store._identity(), identity)
                check_space(place, store._space(), space)
                store._connection.execute("UPDATE space SET text = ?", (space,))
            opened.pop_all()
            return store

    @staticmethod
    def read(path: StrPath, *, measurements: bool = True) -> Sweep:
        """Return all of a store as it is now; another process may be writing to it.

        Without ``measurements`` rows are read in a tenth of the time, and have none.

        Raises:
            InputError: ``EATSS-D001`` to ``EATSS-D005``, as of :meth:`create_or_resume`.
        """
        place = store_place(path)
        if not place.exists():
            hint = "'eatss sweep -o' makes one"
            raise input_error("EATSS-D001", f"there is no store '{place}'", hint=hint)
        with _faults(place), ExitStack() as opened:
            store = opened.enter_context(Store(place, "mode=rw"))
            try:
                store._check_version()
            except sqlite3.OperationalError as error:
                # the index of a log, which older stores have, cannot be made: nobody writes it
                if error.sqlite_errorcode & 0xFF not in _UNWRITTEN:
                    raise
                store = opened.enter_context(Store(place, "immutable=1"))
                store._check_version()
            store._connection.execute("BEGIN")
            return Sweep(
                identity=store._identity(),
                space=store._space(),
                cards=store._cards(),
                rows=store.rows(measurements=measurements),
            )

    def _number(self, pragma: str) -> int:
        found: int = self._connection.execute(f"PRAGMA {pragma}").fetchone()[0]
        return found

    def _check_version(self) -> None:
        if self._number("application_id") != APPLICATION_ID:
            raise _no_store(self.path, "it is a database of something else, or empty")
        found = self._number("user_version")
        if found > VERSION:
            why = f"it has version {found}, this eatss reads those up to {VERSION}"
            raise _no_store(self.path, why)

    def _make(self, identity: Identity, space: str) -> None:
        """Make the tables, if nothing was ever made in a database."""
        if self._number("application_id") or self._number("schema_version"):
            return
        for statement in TABLES.split(";"):
            self._connection.execute(statement)
        for name, value in encode(identity).items():
            row = {"field": name, "value": _json(value)}
            self._connection.execute(*_insert("identity", row))
        self._connection.execute(*_insert("space", {"text": space}))
        self._connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        self._connection.execute(f"PRAGMA user_version = {VERSION}")

    def _identity(self) -> Identity:
        found = self._connection.execute("SELECT field, value FROM identity").fetchall()
        with _faults(self.path, "its identity: "):
            return decode(Identity, {name: json.loads(text) for name, text in found})

    def _space(self) -> str:
        ((text,),) = self._connection.execute("SELECT text FROM space")
        return str(text)

    def _cards(self) -> tuple[CardSeen, ...]:
        found = self._connection.execute(
            f"SELECT {', '.join(_CARD_FIELDS)} FROM cards ORDER BY rowid"  # noqa: S608 - our names
        )
        seen = (dict(zip(_CARD_FIELDS, card, strict=True)) for card in found)
        return tuple(decode(CardSeen, one) for one in seen)

    def rows(self, *, measurements: bool = True) -> Rows:
        """Return the rows in the order in which they were added.

        Raises:
            InputError: ``EATSS-D002``, one is damaged.
        """
        names = [name for name in _COLUMNS if measurements or name != "measurement"]
        columns = ", ".join(_COLUMNS[name] for name in names)
        rows = []
        with _faults(self.path):
            found = self._connection.execute(f"SELECT id, {columns} FROM rows ORDER BY id")  # noqa: S608 - our names
            for number, *values in found.fetchall():
                with _faults(self.path, f"row {number}: "):
                    rows.append(_row(names, values))
        return tuple(rows)

    def add(self, row: Row) -> None:
        """Keep a row: it is on the disk when this returns, whatever comes then.

        Raises:
            InputError: ``EATSS-D005``, it is not kept; all others still are, and the store may be
                used on.
        """
        with _faults(self.path):
            self._connection.execute(*_insert("rows", _stored(row)))

    def add_card(self, card: CardSeen) -> None:
        """Keep a card; what was known of the same one, by its ``uuid``, is replaced.

        Raises:
            InputError: ``EATSS-D005``, it is not kept.
        """
        with _faults(self.path):
            self._connection.execute(*_insert("cards", encode(card)))

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


_HASH = re.compile(r"[0-9a-f]{32,}")
_NAMES = {"source_hash": "source", "defines": "defines and headers"}


def check_identity(path: Path, stored: Identity, wanted: Identity) -> None:
    """Refuse to go on with a store of something else.

    Raises:
        InputError: ``EATSS-D010``, with a note a field that differs.
    """
    there, now = encode(stored), encode(wanted)
    notes = [
        Diagnostic(
            code="EATSS-D010",
            message=f"{_NAMES.get(name, name)}: there {_text(there[name])}, now {_text(now[name])}",
            severity=Severity.NOTE,
        )
        for name in there
        if there[name] != now[name]
    ]
    if notes:
        found = Diagnostic(
            code="EATSS-D010",
            message=f"'{path}' holds a sweep of something else",
            hint="write to another file with -o, or measure with what this one was made with",
        )
        raise InputError(found, *notes)


def _text(value: object) -> str:
    if isinstance(value, dict):
        value = equations(value.items())
    elif isinstance(value, list):
        value = " ".join(map(str, value))
    text = str(value) or "none"
    return text[:12] if _HASH.fullmatch(text) else text


def check_space(path: Path, stored: str, wanted: str) -> None:
    """Refuse a space of other variables; one of other values, or filters, takes the place.

    Raises:
        InputError: ``EATSS-D010``.
    """
    tables = (tomllib.loads(text).get("iterators", {}) for text in (stored, wanted))
    there, here = (", ".join(sorted(own)) or "none" for own in tables)
    if there != here:
        raise input_error(
            "EATSS-D010",
            f"'{path}' holds a sweep of another space: its variables are {there}, now {here}",
            hint="write to another file with -o; a space of the same variables may have other "
            "values",
        )


def read_sweep(path: StrPath, *, measurements: bool = True) -> Sweep:
    """Return a sweep that ``eatss sweep`` keeps.

        sweep = eatss.read_sweep("2mm.db")
        best = min((row for row in sweep.rows if row.measured), key=lambda row: row.time_s)

    Another process may be measuring into it: what it has kept by now is there.

    Args:
        path: A store, or the name of a recorded sweep that comes with eatss (``"@gemm"``).
        measurements: Whether rows have their measurements; without them they are read in a tenth of
            the time.

    Raises:
        InputError: ``EATSS-D001`` to ``EATSS-D005``, the store cannot be read; ``EATSS-D001``, no
            sweep of this name comes with eatss.
    """
    return Store.read(located_sweep(path), measurements=measurements)


def check_no_store(output: Path, inputs: Sequence[StrPath]) -> None:
    """Refuse to write to a file that is read, or that is a database of SQLite.

    Raises:
        InputError: ``EATSS-C008``.
    """
    if not output.is_file():
        return
    with output.open("rb") as file:
        is_database = file.read(16) == b"SQLite format 3\0"
    if is_database or output.resolve() in [Path(one).resolve() for one in inputs]:
        raise input_error(
            "EATSS-C008",
            f"'{output}' is a store, or what is read, and would be lost",
            hint="name another file with -o",
        )
