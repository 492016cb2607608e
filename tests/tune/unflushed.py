"""Has stores leave it to the system when the disk has what they write: no test cuts the power."""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from pathlib import Path

from eatss.tune import store

_flushing = store._connected


def connected(path: Path, how: str) -> sqlite3.Connection:
    """Return what stores return, a connection that does not wait for the disk."""
    connection = _flushing(path, how)
    with suppress(sqlite3.Error):  # which what comes next meets, too
        connection.execute("PRAGMA synchronous = OFF")
    return connection
