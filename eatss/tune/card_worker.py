"""The process that holds a card for a sweep; it may crash or hang, its parent does not.

It opens the card, reads its idle power, then measures programs as they come. The first program of
a fresh process is the reference: what others compute is compared with what it computed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from eatss.base.diagnostics import EatssError
from eatss.base.supervisor import Refused, connect, end_at_sigterm
from eatss.measurement.card import LaunchError
from eatss.measurement.cupy_card import CupyCard
from eatss.measurement.job import CardLost, Emit, Entered, Job, Task
from eatss.measurement.metering import Metering
from eatss.measurement.meters.meter import MeterError
from eatss.measurement.options import MeasureOptions
from eatss.measurement.trials import IDLE_LIMIT_S, Known, idle_read, open_card, run_on
from eatss.tune.jobs import BenchJob, Order

ONLY_THE_REFERENCE = "only the reference of the sweep was compared with the original"


def main() -> None:
    """Hold the card and measure what standard input asks for, until it ends."""
    end_at_sigterm()
    job, orders, emit = connect(BenchJob, Order)
    _serve(job, orders, emit)


def _serve(job: BenchJob, orders: Iterator[Order], emit: Emit) -> None:
    try:
        card = open_card(job.card, job.measuring)
        metering = Metering(card, job.measuring.meter)
    except MeterError as error:
        emit(Refused(code="EATSS-E074", message=str(error), hint=error.remedy or None))
        return
    except LaunchError as error:
        emit(CardLost(reason=str(error)))
        return
    except EatssError as error:
        emit(Refused.because(error))
        return
    emit(metering.opened())
    if job.reads_idle:
        emit(Entered(task=None, stage="idle power", limit_s=IDLE_LIMIT_S))
        emit(idle_read(metering))
    bench = _Bench(job, card, metering, emit)
    for order in orders:
        if not bench.measured(order):
            return


class _Bench:
    """A card that is open, and the results that others are compared with."""

    def __init__(self, job: BenchJob, card: CupyCard, metering: Metering, emit: Emit) -> None:
        self._job = job
        self._card = card
        self._metering = metering
        self._emit = emit
        self._known = Known()
        self._referred: set[tuple[object, ...]] = set()

    def measured(self, order: Order) -> bool:
        """Measure a program; false if the card is lost."""
        place = (order.reference, *order.sizes)
        if order.reference is not None and place not in self._referred:
            self._referred.add(place)
            if order.reference != order.folder and not self._run_reference(order):
                return False
        options = order.care.options(self._job, order.sizes)
        return self._run(order, order.folder, order.label, options, self._emit)

    def _run_reference(self, order: Order) -> bool:
        """Let the reference compute, so that its results are there; what it takes is not told."""
        assert order.reference is not None
        options = replace(
            self._job.measuring,
            sizes=dict(order.sizes),
            check=True,
            least_windows=1,
            least_window_s=1e-3,
            least_updates=1,
            target=1e9,
            budget_s=1e-3,
            warm_up_s=0.0,
            settle_s=1e-3,
        )

        def told(event: object) -> None:
            if isinstance(event, Entered | CardLost):
                self._emit(event)

        return self._run(order, order.reference, "the reference", options, told)

    def _run(
        self, order: Order, folder: str, label: str, options: MeasureOptions, emit: Emit
    ) -> bool:
        unchecked = "" if order.care.checks and folder == order.folder else ONLY_THE_REFERENCE
        task = Task(index=0, label=label, directory=folder, unchecked=unchecked)
        job = Job(
            card=self._job.card,
            options=options,
            tasks=(task,),
            looks_around=False,
        )
        return run_on(self._card, self._metering, job, emit, self._known)


if __name__ == "__main__":
    main()
