"""``Store``: measurements in a file of SQLite, each there as soon as :meth:`Store.add` returns.

Stores of the same thing are merged; of different things each field that differs is told.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import sqlite3
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import RLock
from types import TracebackType

from eatss.base.codec import Document, encode
from eatss.base.diagnostics import (
    Diagnostic,
    InputError,
    InternalError,
    Severity,
    Warned,
    input_error,
    warn_caller,
)
from eatss.base.files import read_regular
from eatss.base.frozen import frozen
from eatss.base.shipped import located_sweep
from eatss.tune.faults import WriterLock, faults_told, lock_for_writing, shown
from eatss.tune.rows import (
    CardSeen,
    Identity,
    Pruned,
    Row,
    Rows,
    Sweep,
    Unwanted,
    as_result,
    pruned,
)
from eatss.tune.tables import (
    INSERT_CARD,
    INSERT_ROW,
    no_folder,
    opened_to_read,
    opened_to_write,
    read_cards,
    read_identity,
    read_rows,
    read_space,
    real_path,
    stored_card,
    stored_row,
    transaction,
)

_HASH = re.compile(r"[0-9a-f]{32,}")
_NAMES = {"source_hash": "source", "defines": "defines and headers"}


def check_identity(path: Path, stored: Identity, wanted: Identity) -> None:
    """Refuse to go on with a store of something else.

    Raises:
        InputError: ``EATSS-D010``, with a note a field that differs.
    """
    _check_alike(
        f"'{shown(path)}' holds a sweep of something else",
        ("there", stored),
        ("now", wanted),
        hint="write to another file with -o, or measure with what this one was made with",
    )


def _check_alike(
    message: str, first: tuple[str, Identity], second: tuple[str, Identity], *, hint: str
) -> None:
    """Refuse two identities that differ: a note a field, with both values."""
    one, other = encode(first[1]), encode(second[1])
    differing = [name for name in one if one[name] != other[name]]
    if not differing:
        return
    raise InputError(
        Diagnostic(code="EATSS-D010", message=message, hint=hint),
        *(
            Diagnostic(
                code="EATSS-D010",
                message=f"{_NAMES.get(name, name)}: {first[0]} {_text(one[name])}, "
                f"{second[0]} {_text(other[name])}",
                severity=Severity.NOTE,
            )
            for name in differing
        ),
    )


def check_space(path: Path, stored: str, wanted: str) -> None:
    """Refuse a space of other variables; one of other values, or filters, takes the place.

    Raises:
        InputError: ``EATSS-D010``.
    """
    there, here = variables(stored), variables(wanted)
    if stored == wanted or (there is not None and there == here):
        return
    raise input_error(
        "EATSS-D010",
        f"'{shown(path)}' holds a sweep of another space: its variables are "
        f"{_listed(there)}, now {_listed(here)}",
        hint="write to another file with -o; a space of the same variables may have other values",
    )


def variables(space: str) -> set[str] | None:
    """Return the names of the iterators; ``None`` where the text is no space in TOML."""
    try:
        found = tomllib.loads(space).get("iterators")
    except tomllib.TOMLDecodeError:
        return None
    return set(found) if isinstance(found, dict) else None


def _listed(names: set[str] | None) -> str:
    return "not known" if names is None else ", ".join(sorted(names)) or "none"


def _text(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}={one}" for name, one in value.items()) or "none"
    if isinstance(value, list):
        return " ".join(map(str, value)) or "none"
    text = str(value)
    return text[:12] if _HASH.fullmatch(text) else text or "none"


@frozen
class _Part:
    """The rows that a sweep adds; ``start_s`` is the ``at_s`` of the last one known before."""

    rows: Rows
    start_s: float = 0.0

    @property
    def cards(self) -> set[str | None]:
        """The cards of the rows; of refused rows only, that of none."""
        found: set[str | None] = {row.card for row in self.rows if row.card is not None}
        return found or {row.card for row in self.rows}

    @property
    def created(self) -> str:
        """When the first row was done; what is not known comes last."""
        return min((row.created for row in self.rows if row.created), default="~")


def merged(sweeps: Sequence[tuple[str, Sweep]]) -> Sweep:
    """Return sweeps, each with its name, as one: the first with what the others have besides.

    Rows tell their card by its ``uuid``, so those of several cards stay apart. The same row in two
    sweeps, to its last digit, is one measurement. The space is that of the first. Where sweeps were
    on one card, ``at_s`` of a later one, by ``created``, goes on where the earlier one ended.

    Raises:
        InputError: ``EATSS-D010``, they are of different things, or of spaces with
            other variables.
    """
    (first, start), *others = sweeps
    rows = list(start.rows)
    parts = [_Part(rows=start.rows)]
    cards = {card.uuid: card for card in start.cards}
    for name, sweep in others:
        _check_alike(
            f"'{first}' and '{name}' are sweeps of different things",
            (first, start.identity),
            (name, sweep.identity),
            hint="only what was measured of the same thing, in the same way, goes into one store",
        )
        check_space(Path(first), start.space, sweep.space)
        cards = {card.uuid: card for card in sweep.cards} | cards
        new = _not_in(rows, sweep.rows)
        known = Counter(map(id, sweep.rows)) - Counter(map(id, new))
        start_s = max((row.at_s for row in sweep.rows if id(row) in known), default=0.0)
        parts.append(_Part(rows=tuple(new), start_s=start_s))
        rows += new
    return Sweep(
        identity=start.identity,
        space=start.space,
        cards=tuple(cards.values()),
        rows=tuple(row for part in _one_after_another(parts) for row in part),
    )


def _one_after_another(parts: Sequence[_Part]) -> list[Rows]:
    """Return rows with times (``at_s``) that lie behind those of earlier sweeps on a card."""
    ends: dict[str | None, float] = {}
    placed = {}
    for number in sorted(range(len(parts)), key=lambda one: parts[one].created):
        part = parts[number]
        known = [ends[card] for card in part.cards if card in ends]
        overlaps = bool(known) and min(row.at_s for row in part.rows) < max(known)
        shift_s = max(0.0, max(known) - part.start_s) if overlaps else 0.0
        moved = tuple(
            replace(row, at_s=row.at_s + shift_s) if shift_s else row for row in part.rows
        )
        placed[number] = moved
        last = max((row.at_s for row in moved), default=0.0)
        ends |= {card: max(last, ends.get(card, 0.0)) for card in part.cards}
    return [placed[number] for number in range(len(parts))]


def _not_in(known: Sequence[Row], rows: Sequence[Row]) -> list[Row]:
    """Return the rows that are not known, in their order; equal ones are known as often."""
    left = Counter(map(_sign, known))
    new = []
    for row in rows:
        key = _sign(row)
        if left[key] > 0:
            left[key] -= 1
        else:
            new.append(row)
    return new


def _sign(row: Row) -> tuple[object, ...]:
    """Return what a row is told by; ``at_s`` may have been shifted, unless nothing says when."""
    return tuple(stored_row(replace(row, at_s=0.0) if row.created else row))


SWEEP = Document(
    title="sweep",
    kind=Sweep,
    other_version="EATSS-D020",
    damaged="EATSS-D020",
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
        InputError: ``EATSS-D001`` to ``EATSS-D007``, the store cannot be read; ``EATSS-D001``, no
            sweep of this name comes with eatss; ``EATSS-D020``, the JSON is of
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
        InputError: ``EATSS-D001``, it cannot be read; ``EATSS-D020``, it is of another version,
            damaged, or no JSON.
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
            "EATSS-D020", f"'{os.fspath(path)}' is no JSON: {error}", hint="check the file"
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
            InputError: there is no folder (``EATSS-D001``); the file is no store
                or of a newer eatss (``D002``), damaged (``D003``), written by another process
                (``D005``) or cannot be opened (``D006``); there is no room (``D007``); it is of
                something else, or of a space of other variables (``D010``).
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
