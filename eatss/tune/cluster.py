"""A lab on a Dask cluster: one worker a card, workers that make variants, the scheduler in between.

The scheduler holds what is on the way. A worker that is lost is noticed, and what it had is done
again by others. A client that is lost leaves its variants with the scheduler under the name of the
sweep; the next client of the same sweep takes them on.

What workers of a Dask cluster run: make a variant, measure one.

A worker keeps its maker process and its card from task to task. Programs travel as the files of
their folders, so that hosts need share no disk.
"""

from __future__ import annotations

import logging
import os
import queue
import shutil
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar
from uuid import uuid4

from eatss.base.diagnostics import input_error
from eatss.base.frozen import frozen
from eatss.tune.jobs import BenchJob, Made, MakerJob, Wanted
from eatss.tune.processes import AHEAD, CardProcess, Desk, Done, Lab, MakerProcess, Work, Workshop


@frozen
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
    own = replace(job, folder=_home("maker").name)
    made = _only(_makers, own, MakerProcess).make(wanted)
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
        desk = _only(_desks, (sweep, bench), lambda place: Desk(CardProcess(place[1])))
        return desk.measured(work, own)
    finally:
        _removed(own)


K = TypeVar("K")
T = TypeVar("T", MakerProcess, Desk)


def _only(known: dict[K, T], key: K, made: Callable[[K], T]) -> T:
    """Return what this worker has of a key; that of an earlier one is closed."""
    if key not in known:
        for one in known.values():
            one.close()
        known.clear()
        known[key] = made(key)
    return known[key]


_makers: dict[MakerJob, MakerProcess] = {}
_desks: dict[tuple[str, BenchJob], Desk] = {}


@cache
def _reference(parcel: Parcel) -> Made:
    return unpacked(parcel, _home("card").name)


@cache
def _home(what: str) -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix=f"eatss-{what}-")


def _removed(made: Made) -> None:
    if made.folder is not None:
        shutil.rmtree(made.folder, ignore_errors=True)


CARD = "CARD"
"""The resource of a worker that has a card: ``dask worker … --resources CARD=1``."""

MAKE = "MAKE"
"""The resource of a worker that makes variants."""

CONNECT_S = 10.0
WORKERS_S = 60.0
LOCAL = "local"


class ClusterLab(Lab):
    """A lab whose work is done by the workers of a Dask cluster.

    Args:
        client: of the cluster.
        name: of the sweep, under which the scheduler holds its variants.
        bench: how each worker holds its card, device 0 of those it sees.
        job: what variants are made of by workers; ``None`` where this process makes them.
        workshop: makes variants in this process.
        makers: how many variants are made at once.
        cards: how many workers have a card.
    """

    def __init__(
        self,
        client: Any,
        name: str,
        bench: BenchJob,
        job: MakerJob | None,
        workshop: Workshop,
        makers: int,
        cards: int,
    ) -> None:
        super().__init__(cards, AHEAD * makers + 3 * cards)
        self._client = client
        self._session = f"{name}/{uuid4().hex}"
        self._name = name
        self._bench = bench
        self._job = job
        self._workshop = workshop
        self._ended: queue.Queue[Any] = queue.Queue()
        self._futures: dict[str, tuple[Any, Work]] = {}
        self._ready: deque[Done] = deque()
        self._reference: tuple[str, Parcel] | None = None
        self._made_here: dict[str, Made] = {}

    def adopted(self) -> list[Work]:
        """Take on what the scheduler still holds of this sweep; return the work."""
        found = []
        for name in self._client.list_datasets():
            if isinstance(name, str) and name.startswith(f"{self._name}/"):
                future, work = self._client.get_dataset(name)
                self._hold(name, future, work)
                found.append(work)
        return found

    def submit(self, work: Work) -> None:
        """Take a variant on."""
        name = self._name_of(work)
        made: Any
        if self._job is not None and work.reference is not None:
            made = self._client.submit(
                make, self._job, work.wanted, key=f"make-{name}", resources={MAKE: 1}
            )
        else:  # what becomes the reference has to be here
            own_made = self._workshop.make(work.wanted)
            made, self._made_here[name] = packed(own_made), own_made
        own = replace(work, reference=None)
        future = self._client.submit(
            measure,
            self._session,
            self._bench,
            own,
            made,
            self._reference_parcel(work.reference),
            key=f"measure-{name}",
            resources={CARD: 1},
            retries=2,
        )
        with suppress(KeyError):
            self._client.unpublish_dataset(name)
        self._client.publish_dataset((future, own), name=name)
        self._hold(name, future, own)

    def done(self, timeout_s: float) -> Done | None:
        """Return what is done next; ``None`` if nothing is within the time."""
        if not self._ready:
            try:
                name = self._ended.get(timeout=timeout_s)
            except queue.Empty:
                return None
            future, work = self._futures.pop(name)
            self._on_the_way = len(self._futures)
            here = self._made_here.pop(name, None)
            for done in self._answers(future, work):
                self._ready.append(done if here is None else replace(done, made=here))
        return self._ready.popleft()

    def kept(self, done: Done) -> None:
        """Let the scheduler forget a variant whose row is in the store."""
        if done.is_answer:
            with suppress(KeyError):
                self._client.unpublish_dataset(self._name_of(done.work))

    def close(self) -> None:
        """Forget everything that is on the way; nobody waits for it any more."""
        for name, (future, _) in self._futures.items():
            with suppress(Exception):  # the scheduler may be gone
                future.cancel()
                self._client.unpublish_dataset(name)
        self._workshop.close()

    def _name_of(self, work: Work) -> str:
        return f"{self._name}/{work.wanted.variant}/{work.care.stage}"

    def _hold(self, name: str, future: Any, work: Work) -> None:
        self._futures[name] = (future, work)
        self._on_the_way = len(self._futures)
        future.add_done_callback(lambda _: self._ended.put(name))

    def _reference_parcel(self, made: Made | None) -> Parcel | None:
        """Return the reference as workers get it."""
        if made is None or made.folder is None:
            return None
        if self._reference is None or self._reference[0] != made.folder:
            self._reference = (made.folder, packed(made))
        return self._reference[1]

    def _answers(self, future: Any, work: Work) -> list[Done]:
        from distributed import KilledWorker  # noqa: PLC0415 - an extra
        from distributed.client import FutureCancelledError  # noqa: PLC0415

        try:
            found: list[Done] = future.result()
        except (FutureCancelledError, OSError, TimeoutError) as error:
            raise input_error(
                "EATSS-W031",
                f"the scheduler is gone: {str(error) or type(error).__name__}",
                hint="start it again, and go on with the same command",
            ) from None
        except KilledWorker as error:
            made = Made(
                variant=work.wanted.variant,
                folder=None,
                status="launch error",
                reason=f"several workers died at it: {error}",
            )
            return [Done(work=work, made=made, tried=None, care=work.care)]
        return found


@contextmanager
def cluster_lab(
    workshop: Callable[[], Workshop],
    job: MakerJob | None,
    name: str,
    benches: Sequence[BenchJob],
    makers: int,
    address: str,
) -> Iterator[ClusterLab]:
    """Yield a lab on a cluster: that of a scheduler, or one on this machine.

    Args:
        workshop: makes variants in this process, where no worker does.
        job: what variants are made of; ``None`` where they were made before.
        name: of the sweep.
        benches: the cards of this machine, for a cluster on it; of a scheduler's workers each has
            its own.
        makers: workers on this machine that make variants.
        address: of the scheduler, or ``"local"``.

    Raises:
        InputError: ``EATSS-W030`` Dask is not installed, ``EATSS-W031`` the scheduler does not
            answer, or none of its workers has a card.
    """
    try:
        import distributed  # noqa: PLC0415 - an extra
    except ImportError:
        raise input_error(
            "EATSS-W030",
            "a sweep over several cards or hosts needs dask.distributed, which is not installed",
            hint="pip install 'eatss[dask]'",
        ) from None
    with ExitStack() as stack:
        if address == LOCAL:
            cluster = stack.enter_context(_local_cluster(distributed, benches, makers))
            client = stack.enter_context(
                distributed.Client(cluster)  # type: ignore[no-untyped-call]
            )
            wanted = len(benches)
        else:
            client = stack.enter_context(_connected(distributed, address))
            wanted = 1
        cards = _workers_with(client, CARD, wanted)
        making = _workers_with(client, MAKE, 0)
        if not cards:
            raise input_error(
                "EATSS-W031",
                f"no worker of the scheduler at {address} has a card",
                hint=f"start one a card: dask worker {address} --nthreads 1 --resources CARD=1",
            )
        own = replace(benches[0], device=0)
        lab = ClusterLab(
            client, name, own, job if making else None, workshop(), max(1, making), cards
        )
        try:
            yield lab
        finally:
            lab.close()


@contextmanager
def _local_cluster(distributed: Any, benches: Sequence[BenchJob], makers: int) -> Iterator[Any]:
    """Yield a cluster on this machine: a worker a card, and workers that make variants.

    What they leave in their folder of temporary files goes with it.
    """
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
    workers: dict[str, Any] = {}
    with _quiet(), TemporaryDirectory(prefix="eatss-", ignore_cleanup_errors=True) as home:
        for bench in benches:
            device = bench.device
            if isinstance(device, int) and visible != [""] and device < len(visible):
                device = visible[device]
            environment = {"CUDA_VISIBLE_DEVICES": str(device), "TMPDIR": home}
            workers[f"card-{bench.device}"] = _worker({CARD: 1}, environment)
        for number in range(makers):
            workers[f"maker-{number}"] = _worker({MAKE: 1}, {"TMPDIR": home})
        scheduler = {"cls": distributed.Scheduler, "options": {"dashboard": False, "port": 0}}
        with distributed.SpecCluster(
            workers=workers, scheduler=scheduler, silence_logs=40
        ) as cluster:
            yield cluster


def _worker(resources: dict[str, int], environment: dict[str, str]) -> dict[str, Any]:
    """Return what Dask starts a worker from."""
    from eatss.tune.cluster_process import WorkerProcess  # noqa: PLC0415 - Dask is an extra

    return {"cls": WorkerProcess, "options": {"resources": resources, "environment": environment}}


@contextmanager
def _connected(distributed: Any, address: str) -> Iterator[Any]:
    try:
        client = distributed.Client(address, timeout=CONNECT_S)
    except (OSError, TimeoutError, ValueError) as error:
        why = str(error) or type(error).__name__
        raise input_error(
            "EATSS-W031",
            f"the scheduler at {address} does not answer: {why}",
            hint="see that it runs (dask scheduler) and that its address is tcp://HOST:8786",
        ) from None
    with client:
        yield client


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep Dask's own words about workers that end from the user's terminal."""
    logger = logging.getLogger("distributed")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


def _workers_with(client: Any, resource: str, wanted: int) -> int:
    """Return how many workers have a resource, once so many are there or time is over."""
    deadline_s = time.monotonic() + WORKERS_S
    while True:
        workers = client.scheduler_info(n_workers=-1)["workers"].values()
        found = sum(1 for worker in workers if worker.get("resources", {}).get(resource))
        if found >= wanted or time.monotonic() > deadline_s:
            return found
        time.sleep(0.2)
