"""The process that holds the card; it may crash or hang, its parent does not.

It is given a job, and tells of events.
"""

from __future__ import annotations

from eatss.base.diagnostics import EatssError
from eatss.base.supervisor import Refused, connect, end_at_sigterm
from eatss.measurement.card import LaunchError
from eatss.measurement.job import CardLost, Job
from eatss.measurement.trials import open_card, run_trials


def main() -> None:
    """Run the job on standard input."""
    end_at_sigterm()
    job, _, emit = connect(Job)
    try:
        card = open_card(job.card, job.options)
    except LaunchError as error:
        emit(CardLost(reason=str(error)))
    except EatssError as error:
        emit(Refused.because(error))
    else:
        run_trials(card, job, emit)


if __name__ == "__main__":
    main()
