"""What a store cannot do, it says in the user's terms; what it holds stays."""

from __future__ import annotations

import os
import shlex
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eatss.base.diagnostics import EatssError, EatssWarning, InputError, InternalError
from eatss.tune import tables
from eatss.tune.rows import Row, Sweep
from eatss.tune.store import Store, read_sweep
from eatss.tune.tables import MIGRATIONS, VERSION, migrate, on_network, opened_to_read
from tests.tune.sweeps import SPACE, card, identity, row

FULL_DISK = Path(__file__).with_name("full_disk.py")


def store_of(path: Path, count: int = 3) -> Path:
    with Store.create_or_resume(path, identity(), SPACE) as store:
        for number in range(count):
            store.add(row(number))
    return path


def code_of(doing: Callable[[], object]) -> str:
    with pytest.raises(InputError) as refusal:
        doing()
    return refusal.value.code


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("missing.db", "EATSS-D001"),
        ("missing/2mm.db", "EATSS-D001"),
        ("", "EATSS-D001"),
        ("folder", "EATSS-D002"),
        ("pipe", "EATSS-D002"),
        ("empty.db", "EATSS-D002"),
        ("text.db", "EATSS-D002"),
        ("long-text.db", "EATSS-D002"),
        ("other.db", "EATSS-D002"),
        ("a\0b", "EATSS-D006"),
    ],
)
def test_what_is_no_store_is_said_to_be_none(tmp_path: Path, name: str, code: str) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "empty.db").write_bytes(b"")
    (tmp_path / "text.db").write_text("program,time_s\n")
    (tmp_path / "long-text.db").write_text("program,time_s\n" * 9999)
    with closing(sqlite3.connect(tmp_path / "other.db")) as other:
        other.execute("CREATE TABLE rows (id INTEGER)")
    path = f"{tmp_path}/{name}" if name else ""
    assert code_of(lambda: Store.read(path)) == code
    if name not in ("missing.db", "empty.db"):  # of which a store is made
        before = Path(path).read_bytes() if name.endswith("t.db") else b""
        assert code_of(lambda: Store.create_or_resume(path, identity(), SPACE)) == code
        assert not before or Path(path).read_bytes() == before
    assert not list(tmp_path.glob("*-lock"))


def test_a_damaged_store_is_said_to_be_damaged(tmp_path: Path) -> None:
    path = store_of(tmp_path / "2mm.db", 60)
    data = bytearray(path.read_bytes())
    for at in range(3 * 4096, len(data), 4096):
        data[at : at + 600] = bytes([0xA5]) * 600
    path.write_bytes(data)
    assert code_of(lambda: Store.read(path)) == "EATSS-D003"
    assert code_of(lambda: Store.create_or_resume(path, identity(), SPACE)) == "EATSS-D003"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("UPDATE rows SET point = '{' WHERE id = 2", "row 2"),
        ("UPDATE rows SET status = 'fine' WHERE id = 3", "row 3: status: 'fine' is none of"),
        ("UPDATE rows SET measurement = x'00' WHERE id = 1", "row 1"),
        ("UPDATE identity SET value = '5' WHERE field = 'card'", "its identity: card"),
        ("DELETE FROM identity WHERE field = 'card'", "its identity: there is no 'card'"),
        ("DELETE FROM space", "it has no space"),
        ("DROP TABLE space", "no such table"),
    ],
)
def test_what_was_edited_badly_is_named(tmp_path: Path, change: str, said: str) -> None:
    path = store_of(tmp_path / "2mm.db")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(change)
    with pytest.raises(InputError, match=said) as refusal:
        Store.read(path)
    assert refusal.value.code == "EATSS-D003"


DAMAGE = [
    ("reason = CAST(x'6f6bff' AS TEXT)", "row 2: column 'reason' has a byte that is no UTF-8"),
    ("variant = CAST(x'ff' AS TEXT)", "row 2: column 'variant' has a byte that is no UTF-8"),
    ("time_s = time_s * 2", "row 2 is not what was written: its checksum differs"),
    ("strategy = 'nobody'", "row 2 is not what was written: its checksum differs"),
]


@pytest.mark.parametrize(("change", "said"), DAMAGE)
def test_a_damaged_row_is_named_and_left_out(tmp_path: Path, change: str, said: str) -> None:
    path = store_of(tmp_path / "2mm.db")
    whole = Store.read(path).rows
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"UPDATE rows SET {change} WHERE id = 2")
    with pytest.raises(InputError, match=said) as refusal:
        Store.read(path)
    assert refusal.value.code == "EATSS-D003"
    assert "--damaged" in str(refusal.value)
    with pytest.warns(EatssWarning, match=f"1 damaged row is left out: .*{said}"):
        assert read_sweep(path).rows == (whole[0], whole[2])
    with Store.reopen(path) as store:
        assert store.remove_damaged() == 1
    assert Store.read(path).rows == (whole[0], whole[2])


@pytest.mark.parametrize(
    ("change", "said"),
    [("energy_j = -4.8", "energy_j is -4.8"), ("energy_j = 9e999", "energy_j is inf"),
     ("time_s = 0", "time_s is 0"), ("power_w = -1.0", "power_w is -1")],
)  # fmt: skip
def test_numbers_that_nothing_can_take_are_no_result(
    tmp_path: Path, change: str, said: str
) -> None:
    path = store_of(tmp_path / "2mm.db")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"UPDATE rows SET {change}, checksum = NULL WHERE id = 2")
    found = Store.read(path).rows[1]
    assert not found.measured
    assert found.reason == f"no result: {said}"
    assert (found.time_s, found.energy_j, found.power_w) == (None, None, None)


def test_a_byte_that_is_no_text_is_told_wherever_it_is(tmp_path: Path) -> None:
    for number, change in enumerate(
        ("identity SET value", "space SET text", "cards SET name", "cards SET host")
    ):
        path = store_of(tmp_path / f"{number}.db")
        with Store.reopen(path) as store:
            store.add_card(card())
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(f"UPDATE {change} = CAST(x'ff' AS TEXT)")
        assert code_of(lambda path=path: Store.read(path)) == "EATSS-D003"  # type: ignore[misc]
        if number < 2:  # cards are read by who asks for them
            assert code_of(lambda path=path: Store.reopen(path)) == "EATSS-D003"  # type: ignore[misc]


def test_rows_of_a_store_without_checksums_are_read(tmp_path: Path) -> None:
    path = store_of(tmp_path / "2mm.db")
    whole = Store.read(path).rows
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("ALTER TABLE rows DROP COLUMN checksum")
        connection.execute("PRAGMA user_version = 1")
    assert Store.read(path).rows == whole
    with Store.reopen(path) as store:
        store.add(row(99))
        assert store.rows() == (*whole, row(99))
    with closing(sqlite3.connect(path)) as connection:
        sums = [one for (one,) in connection.execute("SELECT checksum FROM rows ORDER BY id")]
    assert sums[:3] == [None] * 3
    assert sums[3] is not None


@settings(max_examples=15, deadline=None)
@given(st.builds(row, time_s=st.floats(1e-9, 1e9), energy_j=st.none() | st.floats(0, 1e9),
                 flops=st.none() | st.integers(0, 2**63 - 1), reason=st.text(),
                 metrics=st.just((("a", float("nan")),)), card_j=st.floats()))  # fmt: skip
def test_a_row_is_what_was_written_whatever_it_holds(kept: Row) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "2mm.db"
        Store.write_new(path, Sweep(identity=identity(), space=SPACE, cards=(), rows=(kept,)))
        assert len(Store.read(path).rows) == 1


def test_a_store_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    path = store_of(tmp_path / "2mm.db")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {VERSION + 1}")
    assert code_of(lambda: Store.read(path)) == "EATSS-D002"
    assert code_of(lambda: Store.create_or_resume(path, identity(), SPACE)) == "EATSS-D002"


def test_a_store_of_an_older_version_is_read_and_migrated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The older version, which never was, has no strategies and another name of the reasons."""
    path = store_of(tmp_path / "2mm.db")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("ALTER TABLE rows DROP COLUMN checksum")
        connection.execute("ALTER TABLE rows DROP COLUMN strategy")
        connection.execute("ALTER TABLE rows RENAME COLUMN reason TO why")
        connection.execute("PRAGMA user_version = 0")
    steps = {**MIGRATIONS} | {
        0: "ALTER TABLE rows ADD COLUMN strategy TEXT NOT NULL DEFAULT 'unknown; then';\n"
        "ALTER TABLE rows RENAME COLUMN why\nTO reason;\n"
    }

    def stepped(connection: sqlite3.Connection, found: int) -> None:
        migrate(connection, found, migrations=steps)

    monkeypatch.setattr(tables, "migrate", stepped)
    wanted = tuple(row(number, strategy="unknown; then") for number in range(3))
    before = path.read_bytes()
    assert Store.read(path).rows == wanted
    assert path.read_bytes() == before, "reading changes nothing"
    with Store.create_or_resume(path, identity(), SPACE) as store:
        assert store.rows() == wanted
    monkeypatch.undo()
    assert Store.read(path).rows == wanted


def test_a_migration_that_fails_leaves_the_store_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = store_of(tmp_path / "2mm.db")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 0")
        connection.execute("ALTER TABLE rows DROP COLUMN checksum")

    def fails(connection: sqlite3.Connection, found: int) -> None:
        migrate(connection, found, migrations={0: "DELETE FROM rows;\nSELECT nothing;\n"})

    monkeypatch.setattr(tables, "migrate", fails)
    assert code_of(lambda: Store.create_or_resume(path, identity(), SPACE)) == "EATSS-D003"
    monkeypatch.undo()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 1")
    assert len(Store.read(path).rows) == 3


def test_a_full_store_is_told_and_goes_on_when_there_is_room(tmp_path: Path) -> None:
    with Store.create_or_resume(tmp_path / "2mm.db", identity(), SPACE) as store:
        connection = store._connection
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages + 4}")
        kept = 0
        with suppress(InputError):
            while True:
                store.add(row(kept))
                kept += 1
        assert kept > 0
        assert code_of(lambda: store.add(row(kept))) == "EATSS-D007"
        assert store.rows() == tuple(row(number) for number in range(kept))
        connection.execute("PRAGMA max_page_count = 1000000")
        store.add(row(kept))
        assert len(Store.read(store.path).rows) == kept + 1


def test_a_bound_on_files_is_as_a_full_disk(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, FULL_DISK, tmp_path, "limit"], capture_output=True, text=True, check=False
    )
    assert (done.stdout.split(), done.stderr) == (["EATSS-D007", "1"], "")


def test_a_full_disk_is_told_and_goes_on_when_there_is_room(tmp_path: Path) -> None:
    unshare = shutil.which("unshare") or "unshare"
    apart = [unshare, "-m"] if os.geteuid() == 0 else [unshare, "-rm"]
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(tmp_path)]
    tried = subprocess.run(
        ["sh", "-c", shlex.join([*apart, *mount])], capture_output=True, check=False
    )
    if tried.returncode:
        pytest.skip("no file system may be mounted here")
    done = subprocess.run(
        [*apart, "sh", "-c", '"$@" && exec $RUN', "sh", *mount],
        env={**os.environ, "RUN": f"{sys.executable} {FULL_DISK} {tmp_path} size"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout.split(), done.stderr) == (["EATSS-D007", "1"], "")


def as_nobody(doing: Callable[[], object]) -> str:
    """Return what is said by a process that the rights of files hold for."""
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
            said = str(doing())
        except EatssError as error:
            said = str(error)
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        os.write(writing, said.encode())
        os._exit(0)
    os.close(writing)
    os.waitpid(process, 0)
    with os.fdopen(reading, encoding="utf-8") as said_here:
        return said_here.read()


@pytest.fixture
def shut(tmp_path: Path) -> Path:
    """Return a folder that nobody may write to, and all may enter."""
    for folder in (tmp_path, *tmp_path.parents):
        if folder.owner() == Path.home().owner() and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o055)
    found = tmp_path / "shut"
    found.mkdir()
    return found


def test_a_store_is_read_from_a_folder_that_may_not_be_written(shut: Path) -> None:
    store_of(shut / "2mm.db")
    shut.chmod(0o555)
    assert as_nobody(lambda: len(Store.read(shut / "2mm.db").rows)) == "3"
    told = as_nobody(lambda: Store.create_or_resume(shut / "2mm.db", identity(), SPACE))
    assert "EATSS-D006" in told
    told = as_nobody(lambda: Store.create_or_resume(shut / "new.db", identity(), SPACE))
    assert "EATSS-D006" in told
    shut.chmod(0o755)


def test_rows_that_are_still_in_the_log_are_read_from_such_a_folder(
    shut: Path, tmp_path: Path
) -> None:
    with Store.create_or_resume(tmp_path / "2mm.db", identity(), SPACE) as store:
        for number in range(3):
            store.add(row(number))
        for name in ("2mm.db", "2mm.db-wal"):
            shutil.copyfile(tmp_path / name, shut / name)
    assert (shut / "2mm.db-wal").stat().st_size > 0
    shut.chmod(0o555)
    assert as_nobody(lambda: len(Store.read(shut / "2mm.db").rows)) == "3"
    shut.chmod(0o755)


def test_a_file_that_may_not_be_read_is_told(shut: Path) -> None:
    store_of(shut / "2mm.db").chmod(0o200)
    if os.geteuid() == 0:
        assert "it may not be read [EATSS-D006]" in as_nobody(lambda: Store.read(shut / "2mm.db"))
    (shut / "2mm.db").chmod(0o444)
    shut.chmod(0o755)
    assert as_nobody(lambda: len(Store.read(shut / "2mm.db").rows)) == "3"


def test_a_forked_process_may_not_use_the_store_of_its_parent(tmp_path: Path) -> None:
    with Store.create_or_resume(tmp_path / "2mm.db", identity(), SPACE) as store:

        def tries() -> str:
            store.close()  # does nothing
            try:
                store.add(row())
            except InternalError as error:
                return error.code
            return "added"

        assert as_nobody(tries) == "EATSS-D900"
        store.add(row())
    assert len(Store.read(tmp_path / "2mm.db").rows) == 1


def test_file_systems_of_several_hosts_are_known(tmp_path: Path) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
        "30 22 0:40 / /home rw shared:2 - nfs4 server:/home rw\n"
        "31 30 0:41 / /home/my\\040own rw - tmpfs tmpfs rw\n"
        "32 22 0:42 / /homework rw - xfs /dev/sdb rw\n"
    )
    asked = {"/data/a.db": False, "/home/a.db": True, "/homework/a.db": False}
    asked |= {"/home/my own/a.db": False, "/home/my/a.db": True}
    assert {name: on_network(Path(name), mounts) for name in asked} == asked
    assert not on_network(Path("/home/a.db"), tmp_path / "missing")


def test_on_such_a_file_system_there_is_a_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "on_network", lambda path: True)
    path = tmp_path / "2mm.db"
    with Store.create_or_resume(path, identity(), SPACE) as store:
        store.add(row())
        assert not (tmp_path / "2mm.db-wal").exists()
        assert len(Store.read(path).rows) == 1
    monkeypatch.undo()
    with opened_to_read(path) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
