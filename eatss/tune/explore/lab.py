"""A lab makes variants and measures them, many on the way at once; one machine's, to begin with.

Variants are made in parallel, ahead of the cards. Each card measures one at a time, and measures
the reference now and then, which says what drift of the card and differences of cards are.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence

from eatss.base.frozen import frozen
from eatss.tune.explore.card_process import CardProcess
from eatss.tune.explore.maker_process import Workshop
from eatss.tune.explore.nouns import BenchJob, Care, Made, Order, Tried, Wanted

REFERENCE_EVERY = 50
"""Variants between two measurements of the reference on a card."""

AHEAD = 2
"""Variants on the way for each process that makes them, beside those on cards."""


@frozen
class Work:
    """A variant and how carefully it is measured, beside a reference that was made before."""

    wanted: Wanted
    care: Care
    reference: Made | None = None
    reference_care: Care | None = None


@frozen
class Done:
    """What became of a variant; ``tried`` is ``None`` where it never came to a card."""

    work: Work
    made: Made
    tried: Tried | None
    care: Care

    @property
    def is_answer(self) -> bool:
        """Whether it is what was asked for, and not the reference beside it."""
        return self.care == self.work.care


class Lab:
    """Where variants are made and measured.

    Args:
        cards: how many cards measure.
        limit: how many variants may be on the way.
    """

    def __init__(self, cards: int, limit: int) -> None:
        self.cards = cards
        self._limit = limit
        self._on_the_way = 0

    @property
    def room(self) -> int:
        """How many variants more may be on the way now."""
        return self._limit - self._on_the_way

    def submit(self, work: Work) -> None:
        """Take a variant on; does not wait."""
        raise NotImplementedError

    def adopted(self) -> list[Work]:
        """Take on what an earlier session of the same sweep left on the way; return it."""
        return []

    def kept(self, done: Done) -> None:
        """Learn that what was done is in the store."""

    def done(self, timeout_s: float) -> Done | None:
        """Return what is done next; ``None`` if nothing is within the time.

        Raises:
            EatssError: the machine cannot make or measure.
        """
        raise NotImplementedError

    def close(self) -> None:
        """End everything that is on the way."""


class Desk:
    """A card with its reference: measures variants, and the reference when it is due."""

    def __init__(self, process: CardProcess) -> None:
        self._process = process
        self._since: int | None = None

    def close(self) -> None:
        """Give the card back."""
        self._process.close()

    def measured(self, work: Work, made: Made) -> list[Done]:
        """Measure a variant, and the reference before it if it is due.

        Raises:
            CardGoneError: the card does not answer.
            InputError: it cannot be used from here.
        """
        found: list[Done] = []
        reference = work.reference
        due = self._since is None or self._since >= REFERENCE_EVERY
        if reference is not None and work.reference_care is not None and due:
            self._since = 0
            tried = self._tried(work, reference, work.reference_care, "reference")
            care = work.reference_care
            found.append(Done(work=work, made=reference, tried=tried, care=care))
        self._since = (self._since or 0) + 1
        tried = self._tried(work, made, work.care, work.wanted.role or work.wanted.variant)
        return [*found, Done(work=work, made=made, tried=tried, care=work.care)]

    def _tried(self, work: Work, made: Made, care: Care, label: str) -> Tried:
        assert made.folder is not None
        reference = work.reference
        return self._process.measure(
            Order(
                label=label,
                folder=made.folder,
                sizes=made.sizes,
                care=care,
                reference=None if reference is None else reference.folder,
            )
        )


class LocalLab(Lab):
    """The cards of this machine, and processes that make variants for them.

    Args:
        workshop: makes a workshop.
        count: how many there are to be.
        benches: the cards; without any, variants are made and not measured.
    """

    def __init__(
        self, workshop: Callable[[], Workshop], count: int, benches: Sequence[BenchJob]
    ) -> None:
        super().__init__(len(benches), AHEAD * count + 2 * len(benches))
        self._to_make: queue.Queue[Work | None] = queue.Queue()
        self._to_measure: queue.Queue[tuple[Work, Made] | None] = queue.Queue()
        self._done: queue.Queue[Done | BaseException] = queue.Queue()
        self._ending = False
        self._busy: list[Workshop | CardProcess] = []
        self._threads = [
            threading.Thread(target=self._make, args=(workshop,), daemon=True) for _ in range(count)
        ] + [threading.Thread(target=self._measure, args=(job,), daemon=True) for job in benches]
        for thread in self._threads:
            thread.start()

    def submit(self, work: Work) -> None:
        """Take a variant on."""
        self._on_the_way += 1
        self._to_make.put(work)

    def done(self, timeout_s: float) -> Done | None:
        """Return what is done next; ``None`` if nothing is within the time."""
        try:
            found = self._done.get(timeout=timeout_s)
        except queue.Empty:
            return None
        if isinstance(found, BaseException):
            raise found
        self._on_the_way -= found.is_answer
        return found

    def close(self) -> None:
        """End everything."""
        self._ending = True
        for one in self._busy:
            one.stop()
        for _ in self._threads:
            self._to_make.put(None)
            self._to_measure.put(None)
        for thread in self._threads:
            thread.join()

    def _make(self, workshop: Callable[[], Workshop]) -> None:
        try:
            own = workshop()
        except BaseException as error:
            self._done.put(error)
            return
        self._busy.append(own)
        try:
            own.warm()
            while not self._ending and (work := self._to_make.get()) is not None:
                made = own.make(work.wanted)
                if made.folder is None or not self.cards:
                    self._done.put(Done(work=work, made=made, tried=None, care=work.care))
                else:
                    self._to_measure.put((work, made))
        except BaseException as error:
            self._done.put(error)
        finally:
            own.close()

    def _measure(self, job: BenchJob) -> None:
        process = CardProcess(job)
        self._busy.append(process)
        desk = Desk(process)
        try:
            while not self._ending and (found := self._to_measure.get()) is not None:
                for done in desk.measured(*found):
                    self._done.put(done)
        except BaseException as error:
            self._done.put(error)
        finally:
            process.close()
