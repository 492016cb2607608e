"""The process that holds a card; it may crash or hang, its parent does not.

It opens the card, then measures jobs as they come, and tells of events.
"""

from __future__ import annotations

from eatss.base.diagnostics import EatssError
from eatss.base.supervisor import connect, end_at_sigterm
from eatss.measurement.card import LaunchError
from eatss.measurement.job import Bench, CardLost, Job
from eatss.measurement.trials import open_card, run_trials


def main() -> None:
    """Hold the card and measure what standard input asks for, until it ends."""
    end_at_sigterm()
    bench, jobs, emit = connect(Bench, Job)
    try:
        card = open_card(bench.card, bench.options)
    except LaunchError as error:
        emit(CardLost(reason=str(error)))
    except EatssError as error:
        emit(error)
    else:
        run_trials(card, bench.options.meter, jobs, emit)


if __name__ == "__main__":
    main()
