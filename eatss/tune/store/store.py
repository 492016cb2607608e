"""``Store``: measurements in a file of SQLite, each there as soon as :meth:`Store.add` returns."""

from __future__ import annotations

import json
import os
import secrets
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import RLock
from types import TracebackType

from eatss.base.codec import Document
from eatss.base.diagnostics import Diagnostic, InputError, InternalError, Severity, input_error
from eatss.base.files import read_regular
from eatss.base.notices import Warned, warn_caller
from eatss.base.shipped import located_sweep
from eatss.tune.store.conditions import Pruned, Unwanted, pruned
from eatss.tune.store.faults import faults_told
from eatss.tune.store.identity import check_identity, check_space
from eatss.tune.store.nouns import CardSeen, Identity, Row, Rows, Sweep, as_result
from eatss.tune.store.opening import (
    no_folder,
    opened_to_read,
    opened_to_write,
    real_path,
    transaction,
)
from eatss.tune.store.stored_rows import (
    INSERT_CARD,
    INSERT_ROW,
    read_cards,
    read_identity,
    read_rows,
    read_space,
    stored_card,
    stored_row,
)
from eatss.tune.store.writer_lock import WriterLock, lock_for_writing

SWEEP = Document(
    title="sweep",
    kind=Sweep,
    other_version="EATSS-D020",
    damaged="EATSS-D021",
    hint="export it again: eatss results export STORE -o FILE.json",
)

MOST_BYTES = 1 << 30
"""Of a file of JSON that is read."""


def read_sweep(
    path: str | os.PathLike[str], *, measurements: bool = True, warned: Warned = warn_caller
) -> Sweep:
    """Return a sweep that ``eatss sweep`` keeps, or one that was exported as JSON (``.json``).

        sweep = eatss.read_sweep("2mm.db")
        best = min((row for row in sweep.rows if row.measured), key=lambda row: row.time_s)

    Another process may be measuring into it: what it has kept by now is there.

    Args:
        path: A store, a JSON file of ``eatss results export``, or the name of a recorded sweep that
            comes with eatss (``"@gemm"``).
        measurements: Whether rows of a store have their measurements; without them they are read in
            a tenth of the time.
        warned: Is told of damaged rows of a store, which are left out; by default as
            ``EatssWarning``.

    Raises:
        InputError: ``EATSS-D001`` to ``EATSS-D007``, the store cannot be read; ``EATSS-D017``, no
            sweep of this name comes with eatss; ``EATSS-D020`` or ``EATSS-D021``, the JSON is of
            another version or damaged.
    """
    if not os.fspath(path).endswith(".json"):
        left_out: list[InputError] = []
        found = Store.read(
            located_sweep(path),
            measurements=measurements,
            left_out=lambda _, error: left_out.append(error),
        )
        if left_out:
            warned([_of_damaged(path, left_out)])
        return found
    return read_exported(path)


def _of_damaged(path: str | os.PathLike[str], left_out: Sequence[InputError]) -> Diagnostic:
    """Return the warning of rows that are left out: how many, and the first one's damage."""
    rows = "1 damaged row is" if len(left_out) == 1 else f"{len(left_out)} damaged rows are"
    first = left_out[0].diagnostics[0]
    return Diagnostic(
        code="EATSS-D009",
        severity=Severity.WARNING,
        message=f"{rows} left out: {first.message}",
        hint=f"take a copy; 'eatss results prune {os.fspath(path)} --damaged' removes such rows, "
        "and a sweep that goes on measures them again",
    )


def read_exported(path: str | os.PathLike[str]) -> Sweep:
    """Return the sweep of a JSON file of ``eatss results export``.

    Raises:
        InputError: ``EATSS-D001``, it cannot be read; ``EATSS-D020``, it is of another version;
            ``EATSS-D021``, it is damaged, or no JSON.
    """
    try:
        found = SWEEP.from_dict(json.loads(read_regular(path, MOST_BYTES)))
    except OSError as error:
        raise input_error(
            "EATSS-D001",
            f"'{os.fspath(path)}' cannot be read: {error.strerror or error}",
            hint="check the path",
        ) from None
    except (ValueError, RecursionError) as error:
        raise input_error(
            "EATSS-D021", f"'{os.fspath(path)}' is no JSON: {error}", hint="check the file"
        ) from None
    return replace(found, rows=tuple(map(as_result, found.rows)))


@dataclass(slots=True, kw_only=True)
class Store:
    """A store that is open to be written, by this process alone.

        with Store.create_or_resume("2mm.db", identity, space_text) as store:
            known = store.rows()
            store.add(row)

    Threads may share it. A process that is forked off may not use it.

    Attributes:
        path: The file, links followed.
        identity: What all its rows are of.
        space: The text of its space.
    """

    path: Path
    identity: Identity
    space: str
    _connection: sqlite3.Connection
    _lock: WriterLock
    _process: int = field(default_factory=os.getpid)
    _turn: RLock = field(default_factory=RLock)

    @classmethod
    def create_or_resume(
        cls, path: str | os.PathLike[str], identity: Identity, space: str
    ) -> Store:
        """Open a store to add to it; make it if it is not there.

        ``space`` takes the place of the text that is kept, if its variables have the same names:
        a space may grow from session to session, and rows outside of it stay.

        Raises:
            InputError: there is no folder (``EATSS-D001``); the file is no store (``D002``),
                damaged (``D003``), of a newer eatss (``D004``), written by another process
                (``D005``) or cannot be opened (``D006``); there is no room (``D007``); it is of
                something else (``D010``) or of a space of other variables (``D011``).
        """
        place = real_path(path)
        if not place.parent.is_dir():
            raise no_folder(place)
        with ExitStack() as undone:
            lock = lock_for_writing(place)
            undone.callback(lock.release)
            connection = undone.enter_context(closing(opened_to_write(place, identity, space)))
            with faults_told(place):
                check_identity(place, read_identity(place, connection), identity)
                known = read_space(place, connection)
                if known != space:
                    check_space(place, known, space)
                    connection.execute("UPDATE space SET text = ?", (space,))
            undone.pop_all()
        return cls(path=place, identity=identity, space=space, _connection=connection, _lock=lock)

    @classmethod
    def reopen(cls, path: str | os.PathLike[str]) -> Store:
        """Open a store that is there to change it, whatever it is of.

        Raises:
            InputError: ``EATSS-D001`` to ``EATSS-D007``, as of :meth:`create_or_resume`.
        """
        place = real_path(path)
        with opened_to_read(place) as connection:
            identity, space = read_identity(place, connection), read_space(place, connection)
        return cls.create_or_resume(path, identity, space)

    @classmethod
    def write_new(cls, path: str | os.PathLike[str], sweep: Sweep) -> None:
        """Write a sweep to a store that is not there yet: all of it, or nothing.

        Raises:
            InputError: ``EATSS-D012``, the file is there already; else as of
                :meth:`create_or_resume`.
        """
        place = real_path(path)
        if place.exists():
            raise input_error(
                "EATSS-D012",
                f"'{os.fspath(path)}' is there already",
                hint="name another file with -o, or remove that one first",
            )
        beside = place.with_name(f".eatss-{secrets.token_hex(6)}-{place.name}")
        try:
            with cls.create_or_resume(beside, sweep.identity, sweep.space) as store:
                store._add_all(sweep)
            with faults_told(place):
                for ending in ("-wal", "-shm"):  # of one of that name whose file was removed
                    place.with_name(place.name + ending).unlink(missing_ok=True)
                beside.rename(place)
        except BaseException:
            for ending in ("", "-wal", "-shm"):
                beside.with_name(beside.name + ending).unlink(missing_ok=True)
            raise

    @classmethod
    def read(
        cls,
        path: str | os.PathLike[str],
        *,
        measurements: bool = True,
        left_out: Callable[[int, InputError], None] | None = None,
    ) -> Sweep:
        """Return all of a store as it is now; another process may be writing to it.

        Without ``measurements`` rows are read in a tenth of the time, and have none. ``left_out``
        is told of the numbers of damaged rows, and how they are; without it they are an error.

        Raises:
            InputError: ``EATSS-D001`` to ``EATSS-D007``, as of :meth:`create_or_resume`.
        """
        place = real_path(path)
        with opened_to_read(place) as connection:
            rows = read_rows(place, connection, measurements=measurements, left_out=left_out)
            return Sweep(
                identity=read_identity(place, connection),
                space=read_space(place, connection),
                cards=read_cards(place, connection),
                rows=tuple(rows),
            )

    def rows(self, *, measurements: bool = True) -> Rows:
        """Return the rows in the order in which they were added.

        Raises:
            InputError: ``EATSS-D003``, one is damaged.
        """
        with self._using() as connection:
            return tuple(read_rows(self.path, connection, measurements=measurements))

    def cards(self) -> tuple[CardSeen, ...]:
        """Return the cards that rows were measured on, in the order in which they came.

        Raises:
            InputError: ``EATSS-D003``, one is damaged.
        """
        with self._using() as connection:
            return read_cards(self.path, connection)

    def add(self, row: Row) -> None:
        """Keep a row: it is on the disk when this returns, whatever comes then.

        Raises:
            InputError: ``EATSS-D006`` or ``EATSS-D007``, it is not kept; all others still are, and
                the store may be used on.
        """
        stored = stored_row(row)
        with self._using() as connection:
            connection.execute(INSERT_ROW, stored)

    def add_card(self, card: CardSeen) -> None:
        """Keep a card; what was known of the same one, by its ``uuid``, is replaced.

        Raises:
            InputError: ``EATSS-D006`` or ``EATSS-D007``, it is not kept.
        """
        with self._using() as connection:
            connection.execute(INSERT_CARD, stored_card(card))

    def prune(self, unwanted: Unwanted) -> Pruned:
        """Remove rows that are not wanted any more, and give their room back.

        Raises:
            InputError: ``EATSS-D003``, a row is damaged; ``EATSS-D006`` or ``EATSS-D007``, it
                cannot be written: none is removed.
        """
        found = pruned(self.rows(measurements=False), unwanted)
        with self._using() as connection:
            numbers = connection.execute("SELECT id FROM rows ORDER BY id").fetchall()
            _remove(connection, [numbers[place][0] for place in found.rows])
            connection.execute("VACUUM")
        return found

    def remove_damaged(self) -> int:
        """Remove the rows that cannot be read, and return how many.

        Raises:
            InputError: ``EATSS-D006`` or ``EATSS-D007``, it cannot be written: none is removed.
        """
        numbers: list[int] = []
        with self._using() as connection:
            list(read_rows(self.path, connection, left_out=lambda at, _: numbers.append(at)))
            _remove(connection, numbers)
        return len(numbers)

    def _add_all(self, sweep: Sweep) -> None:
        with self._using() as connection, transaction(connection):
            connection.executemany(INSERT_CARD, map(stored_card, sweep.cards))
            connection.executemany(INSERT_ROW, map(stored_row, sweep.rows))

    def close(self) -> None:
        """Let others write; closing again does nothing."""
        if self._process == os.getpid():
            with self._turn:
                self._connection.close()
                self._lock.release()

    @contextmanager
    def _using(self) -> Iterator[sqlite3.Connection]:
        """Give the connection to one thread at a time.

        Raises:
            InternalError: ``EATSS-D900``, a process that was forked off would use it.
            InputError: ``EATSS-D003`` to ``EATSS-D007``.
        """
        if self._process != os.getpid():
            raise InternalError(
                Diagnostic(code="EATSS-D900", message="a forked process uses its parent's store")
            )
        with self._turn, faults_told(self.path):
            yield self._connection

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _remove(connection: sqlite3.Connection, numbers: Sequence[int]) -> None:
    """Remove rows by their numbers: all or none."""
    with transaction(connection):
        connection.executemany("DELETE FROM rows WHERE id = ?", [(at,) for at in numbers])
