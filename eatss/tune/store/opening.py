"""The file of a store, opened to write or to read.

Nothing here opens the file itself, only SQLite does: as soon as a process closes any descriptor of
a file, all its record locks on it go, those of SQLite too.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from eatss.base.diagnostics import InputError, input_error
from eatss.tune.store.faults import damaged, faults_told, no_store, shown, unusable
from eatss.tune.store.nouns import Identity
from eatss.tune.store.stored_rows import (
    VERSION,
    create_tables,
    is_empty,
    migrate,
    stored_identity,
    version_of,
)

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
