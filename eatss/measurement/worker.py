"""The process that holds the card; it may crash or hang, its parent does not.

It is given a job, and tells of events.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from eatss.base.diagnostics import EatssError
from eatss.base.supervisor import Refused, connect, end_at_sigterm
from eatss.measurement.card import LaunchError
from eatss.measurement.job import Broken, CardLost, Emit, Job
from eatss.measurement.trials import open_card, run_trials


def main() -> None:
    """Run the job on standard input."""
    end_at_sigterm()
    job, _, emit = connect(Job)
    with faults_told(emit):
        try:
            options = job.options
            card = open_card(
                job.card, device=options.device, compiler=options.compiler, nvcc=options.nvcc
            )
        except LaunchError as error:
            emit(CardLost(reason=str(error)))
        except EatssError as error:
            emit(Refused.because(error))
        else:
            run_trials(card, job, emit)


@contextmanager
def faults_told(emit: Emit) -> Iterator[None]:
    """Tell of what fails in the block, which is a fault of eatss, and end the process then."""
    try:
        yield
    except Exception as error:
        traceback.print_exc()
        emit(Broken(error=f"{type(error).__name__}: {' '.join(str(error).split())}"))
        sys.exit(1)


if __name__ == "__main__":
    main()
