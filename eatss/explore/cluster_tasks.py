"""What workers of a Dask cluster run: make a variant, measure one.

A worker keeps its maker process and its card from task to task. Programs travel as the files of
their folders, so that hosts need share no disk.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from eatss.explore.card_process import CardProcess
from eatss.explore.lab import Desk, Done, Work
from eatss.explore.maker_process import MakerProcess
from eatss.explore.nouns import BenchJob, Made, MakerJob, Wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class Parcel:
    """A variant that was made, with the files of its folder by their names."""

    made: Made
    files: tuple[tuple[str, bytes], ...]


def packed(made: Made) -> Parcel:
    """Return a variant with its files."""
    if made.folder is None:
        return Parcel(made=made, files=())
    folder = Path(made.folder)
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    files = tuple((str(path.relative_to(folder)), path.read_bytes()) for path in found)
    return Parcel(made=made, files=files)


def unpacked(parcel: Parcel, parent: str) -> Made:
    """Write the files of a variant into a new folder and return the variant there."""
    if parcel.made.folder is None:
        return parcel.made
    folder = Path(tempfile.mkdtemp(prefix=f"{parcel.made.variant}-", dir=parent))
    for name, data in parcel.files:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return replace(parcel.made, folder=str(folder))


def make(job: MakerJob, wanted: Wanted) -> Parcel:
    """Make a variant in this worker's maker process."""
    made = _maker(replace(job, folder=_home("maker").name)).make(wanted)
    parcel = packed(made)
    _removed(made)
    return parcel


def measure(
    sweep: str, bench: BenchJob, work: Work, made: Parcel, reference: Parcel | None
) -> list[Done]:
    """Measure a variant on this worker's card, and the reference beside it when that is due.

    The first measurement of a sweep on a card is of the reference.
    """
    if made.made.folder is None:
        return [Done(work=work, made=made.made, tried=None, care=work.care)]
    own = unpacked(made, _home("card").name)
    if reference is not None:
        work = replace(work, reference=_reference(reference))
    try:
        return _desk(sweep, bench).measured(work, own)
    finally:
        _removed(own)


_makers: dict[MakerJob, MakerProcess] = {}


def _maker(job: MakerJob) -> MakerProcess:
    """Return the maker of this worker for a job; that of an earlier one is ended."""
    if job not in _makers:
        for maker in _makers.values():
            maker.close()
        _makers.clear()
        _makers[job] = MakerProcess(job)
    return _makers[job]


_desks: dict[tuple[str, BenchJob], Desk] = {}


def _desk(sweep: str, bench: BenchJob) -> Desk:
    """Return the card of this worker for a sweep; that of an earlier one is given back."""
    place = (sweep, bench)
    if place not in _desks:
        for desk in _desks.values():
            desk.close()
        _desks.clear()
        _desks[place] = Desk(CardProcess(bench))
    return _desks[place]


@cache
def _reference(parcel: Parcel) -> Made:
    return unpacked(parcel, _home("card").name)


@cache
def _home(what: str) -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix=f"eatss-{what}-")


def _removed(made: Made) -> None:
    if made.folder is not None:
        shutil.rmtree(made.folder, ignore_errors=True)
