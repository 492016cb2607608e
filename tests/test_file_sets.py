from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from eatss.file_sets import place_files


def contents(number: int) -> dict[str, bytes]:
    """Return files of which each says which set it is of."""
    return dict.fromkeys(("a", "b", "c/d", "last"), b"%d" % number)


def whole(folder: Path) -> set[bytes]:
    """Return what the files say."""
    return {(folder / name).read_bytes() for name in contents(0)}


def test_sets_that_are_placed_at_once_do_not_mix(tmp_path: Path) -> None:
    for turn in range(8):
        folder = tmp_path / str(turn)
        with ThreadPoolExecutor(8) as pool:
            sets = [contents(number) for number in range(24)]
            list(pool.map(lambda one: place_files(folder, one, last="last"), sets))  # noqa: B023
        assert len(whole(folder)) == 1
        assert sorted(path.name for path in folder.iterdir()) == ["a", "b", "c", "last"]


def test_a_file_that_cannot_be_placed_leaves_the_old_ones(tmp_path: Path) -> None:
    place_files(tmp_path / "out", contents(1))
    (tmp_path / "out" / "z").mkdir()
    with pytest.raises(IsADirectoryError):
        place_files(tmp_path / "out", {**contents(2), "z": b""})
    assert whole(tmp_path / "out") == {b"1"}


def test_a_folder_in_the_place_of_a_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="irectory"):
        place_files(tmp_path / "file", contents(1))
    assert (tmp_path / "file").read_text() == ""
